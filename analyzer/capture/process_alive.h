/*
 * process_alive.h - does the process of a capture run now?
 *
 * When failing  it is taken as ended.
 */
#ifndef PROCESS_ALIVE_H
#define PROCESS_ALIVE_H

#include <stdbool.h>

#include "kmem_format.h"

/*
 * Does the process run now, on this machine? Same pid, same start, same boot. Of a container (a namespace of pids that is not ours)
 * only what runs in one below ours is seen.
 */
bool process_is_alive(const struct kmem_identity *identity);

/* What it has in memory now; 0 = it does not run, or cannot be seen. */
uint64_t process_resident_bytes(const struct kmem_identity *identity);

/* Of this number: it is gone, or has ended and was not waited for yet. */
bool process_is_dead(const char *pid);

/* Its number where it runs, which is another one in a container; 0 = not known. */
uint32_t process_inner_pid(const char *pid);

/* It ran in another container than this command: it may still run, unseen. */
bool process_is_hidden(const struct kmem_identity *identity);

#endif
