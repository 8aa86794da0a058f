/*
 * holdings.h - what was alive on a device when it refused a request, call site by call site?
 *
 * An exception that unwinds, or a program that goes on, releases what was held: so it is written down at once.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook: two passes over all call sites, no lock, no allocation. One thread at a time looks; others go without.
 * When full   the smallest records have no place, and are counted. A program that lives with refusals is looked at for a fiftieth
 *             of its time at most.
 */
#ifndef HOLDINGS_H
#define HOLDINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Are the domain's refusals those of devices: is there anything to look at? */
bool holdings_has(unsigned domain);

/*
 * record            in and out: where it stands, index + 1 in RECORDS; 0 = nowhere yet
 * sequence          of the refused request
 * allocated_count   out: allocations that were booked in the domain so far
 * returns           false: nothing was written, and nothing is in what `record` leads to
 */
bool holdings_take(uint32_t *record, unsigned domain, uint64_t sequence, uint64_t *allocated_count);

void holdings_forked(void); // forked child: one thread

#endif
