/*
 * tracker_parts.h - what the files of the tracker have of each other. Nobody else includes it.
 *
 * tracker_again.c books an allocation that its thread made before, and the release of a block of its own: nearly every event. It is
 * called for all of them, and what is not as usual goes on to tracker.c, out of line.
 */
#ifndef TRACKER_PARTS_H
#define TRACKER_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "counter.h"
#include "failed_requests.h"
#include "peak.h"
#include "pointer_map.h"
#include "thread_slot.h"
#include "tracker.h"

#define TRACKER_RARE __attribute__((noinline, cold))

/* ---- tracker.c, for tracker_again.c. These keep errno. ---- */

/* Nothing is done yet: all steps. `mark` is a free bit of the block's generation, as in tracker.h. */
TRACKER_RARE void tracker_allocated_rest(const void *hook_frame, uint8_t mark, void *addr, uint64_t bytes);
TRACKER_RARE void tracker_resized_rest(const void *hook_frame, uint8_t mark, struct live_block old, void *addr,
                                       uint64_t bytes); // sets errno

/*
 * The event is not in the thread's memo, which was asked: its site, index + 1, by walking the stack; 0 = it is lost, or of Python's
 * teardown, and counted.
 */
TRACKER_RARE uint32_t tracker_walk(struct thread_slot *slot, const void *hook_frame, uint64_t bytes);

/* Counters and peak words when peak_gain_again() did nothing, and what follows a change of the total. */
TRACKER_RARE void tracker_gain_rest(struct thread_slot *slot, struct kmem_site *site, uint64_t bytes);

/* The same for peak_resize_again(); the old block's record is the calling thread's. Sets errno. */
TRACKER_RARE void tracker_resize_rest(struct thread_slot *slot, struct address_block old, struct kmem_site *site, uint64_t bytes);

/* A block that was taken out of the map is gone. */
TRACKER_RARE void tracker_dead_rest(struct thread_slot *slot, struct address_block block);

/* A booked block into the map, whatever stands there. */
TRACKER_RARE void tracker_map_rest(struct thread_slot *slot, void *addr, uint64_t bytes, uint32_t site, uint8_t generation);

/* Now and then: moves the clock of generations by so much, and looks whether a heartbeat is due. */
TRACKER_RARE void tracker_look_after(uint64_t volume_bytes);

/* ---- tracker.c and tracker_devices.c, for each other ---- */

/* Everything about a new block but its address. site 0: it could not be booked, which is counted. */
struct address_block tracker_born(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes);
void tracker_dead(struct thread_slot *slot, struct address_block block);
/* No room for its address: better not alive at all than alive for ever. */
void tracker_lost(struct thread_slot *slot, struct address_block block);
void tracker_refused(const void *hook_frame, struct failed_request request); // its site is found here
bool tracker_is_teardown(void);
void tracker_devices_clear(void);

/* ---- books ---- */

/*
 * After the total, an event changes what a record has counted and what it holds: a thread that is killed in between leaves them apart
 * by one request (analyzer/capture_agree.c). So nothing is made or looked at in between: no record, no heartbeat.
 */
static inline void
book_born(struct kmem_site *site, uint64_t bytes, bool is_whole, uint32_t epoch)
{
	if (__builtin_expect(site->slot != 0, 1)) {
		counter_add_own(&site->allocated_count, is_whole);
		counter_add_own(&site->allocated_bytes, bytes);
		peak_apply_own(&site->peak, (int64_t)bytes, epoch);
		return;
	}
	atomic_fetch_add_explicit(&site->allocated_count, is_whole, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->allocated_bytes, bytes, memory_order_relaxed);
	peak_apply(&site->peak, (int64_t)bytes, epoch);
}

static inline void
book_dead(struct kmem_site *site, uint64_t bytes, bool is_whole, uint32_t epoch)
{
	if (__builtin_expect(site->slot != 0, 1)) {
		counter_add_own(&site->freed_count, is_whole);
		counter_add_own(&site->freed_bytes, bytes);
		peak_apply_own(&site->peak, -(int64_t)bytes, epoch);
		return;
	}
	atomic_fetch_add_explicit(&site->freed_count, is_whole, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->freed_bytes, bytes, memory_order_relaxed);
	peak_apply(&site->peak, -(int64_t)bytes, epoch);
}

#endif
