/*
 * limit_owner.h - who set the limit of a cgroup, and where?
 *
 * Slurm, Kubernetes, Docker and systemd give their cgroups names of a kind. Within a container the path is often cut, and says nothing.
 */
#ifndef LIMIT_OWNER_H
#define LIMIT_OWNER_H

#include <stdbool.h>

#define LIMIT_OWNER_BYTES 128

/*
 * path    folder of the cgroup
 * text    out: "Slurm job 41 (sbatch --mem)"
 * returns false when the path does not tell
 */
bool limit_owner_of(const char *path, char text[LIMIT_OWNER_BYTES]);

#endif
