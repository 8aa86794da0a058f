/*
 * kill_counters.h - how often has the kernel killed for memory here, up to now?
 *
 * When failing  what cannot be read is UINT64_MAX; a counter that is not known proves nothing.
 */
#ifndef KILL_COUNTERS_H
#define KILL_COUNTERS_H

#include "kmem_format.h"

/*
 * The same files that the recorder read at start.
 *
 * identity   of the capture: cgroup version and folders
 * counters   out
 */
void kill_counters_read(const struct kmem_identity *identity, struct kmem_kill_counters *counters);

#endif
