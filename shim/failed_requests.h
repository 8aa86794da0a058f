/*
 * failed_requests.h - what did the system refuse, and what was asked for last?
 *
 * Called by   tracker.c, inside the reentry guard.
 * Safe from   any hook.
 * When full   the oldest of KMEM_FAILED_MAX gives way.
 */
#ifndef FAILED_REQUESTS_H
#define FAILED_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* Before a large request is passed on; small ones are not noted. */
void failed_requests_attempt(unsigned domain, uint64_t bytes);

/* A request was refused. True: now and then, and when it was a large one, it is worth a heartbeat. */
bool failed_requests_note(unsigned domain, uint64_t bytes, int error, uint32_t site);

#endif
