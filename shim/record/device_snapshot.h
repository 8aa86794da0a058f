/*
 * device_snapshot.h - what was alive on a device when it refused a request, call site by call site?
 *
 * An exception that unwinds, or a program that goes on, releases what was held: so it is written down at once.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook: two passes over all call sites, no lock, no allocation. One thread at a time looks; others go without.
 * When full   the smallest records have no place, and are counted. A program that lives with refused requests is looked at for a fiftieth
 *             of its time at most.
 */
#ifndef DEVICE_SNAPSHOT_H
#define DEVICE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

/* Are the domain's failed_requests those of devices: is there anything to look at? */
bool device_snapshot_has(unsigned domain);

/*
 * record            in and out: where it stands, index + 1 in RECORDS; 0 = nowhere yet
 * sequence          of the refused request
 * allocated_count   out: allocations that were booked in the domain so far
 * returns           false: nothing was written, and nothing is in what `record` leads to
 */
bool device_snapshot_take(uint32_t *record, unsigned domain, uint64_t sequence, uint64_t *allocated_count);

void device_snapshot_forked(void); // forked child: one thread

#endif
