/*
 * site_counts.h - how much was allocated before this moment?
 *
 * Called by   tracker.c, when a request was refused. Safe from any hook.
 */
#ifndef SITE_COUNTS_H
#define SITE_COUNTS_H

#include <stdint.h>

/*
 * Allocations booked in the domain so far. All records are read for that: no more often than costs a fiftieth of the time, for a
 * program may live with refusals; in between the last sums stand.
 */
uint64_t site_counts_allocated(unsigned domain, uint64_t now_ns);

#endif
