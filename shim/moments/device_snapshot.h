/*
 * device_snapshot.h - what was alive on a device when it refused a request, call site by call site?
 *
 * An exception that unwinds, or a program that goes on, releases what was held. So it is written down at once.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook: two passes over all call sites, no lock, no allocation. One thread at a time takes a snapshot; a second thread that
 *             comes meanwhile gets none.
 * When full   the smallest records have no place, and are counted. If a program goes on in spite of refused requests, snapshots take a
 *             fiftieth of its time at most.
 */
#ifndef DEVICE_SNAPSHOT_H
#define DEVICE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

/* Does the domain belong to a device, so that a snapshot can be taken? */
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
