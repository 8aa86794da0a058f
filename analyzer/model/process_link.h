/*
 * process_link.h - which process started which?
 *
 * Safe from   one thread.
 */
#ifndef PROCESS_LINK_H
#define PROCESS_LINK_H

#include <stddef.h>

#include "model/model.h"

/* Sets `parent` of every process: by pid and, since pids are used again, by start. */
void process_link_parents(struct model_process *processes, size_t count);

#endif
