/*
 * tracker_parts.h - what the files of the tracker have of each other, gpu/tracker_devices.c among them. Nobody else includes it.
 *
 * tracker_fast.c has the fast path: an allocation that its thread made before, and the release of a block of its own. That is nearly
 * every event. All events begin there; one that is not of this kind goes on to tracker.c, out of line. What belongs together:
 *
 *   step                 fast path                                    slow path
 *   whole event          tracker_allocated(), tracker_resized()       tracker_allocated_slow(), tracker_resized_slow()
 *                        tracker_freed_fast()                         tracker_freed()
 *   site                 event_cache_find()                           tracker_site_slow()
 *   total and peak word  peak_gain_fast(), peak_release_fast(),       peak_gain(), peak_release(),
 *                        peak_resize_fast()                           tracker_net_change()
 *   counters             book_born_fast(), book_dead_fast()           book_born_slow(), book_dead_slow()
 *   these and the map    -                                            tracker_gain_slow(), tracker_resize_slow()
 *   map                  map_small()                                  tracker_map_slow()
 *
 * Not chosen  one text for both. The fast path only changes a record of the calling thread, and only if the peak's epoch is still the
 *             one in which that record was changed last. So it needs no locked instruction, no second question and no loop. The slow
 *             path needs all three, because it takes any record and any domain.
 */
#ifndef TRACKER_PARTS_H
#define TRACKER_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "capture/capture_file.h"
#include "moments/failed_requests.h"
#include "record/tracker.h"
#include "sites/thread_slot.h"
#include "tables/peak.h"
#include "tables/pointer_map.h"

#define TRACKER_RARE __attribute__((noinline, cold))

/* ---- tracker.c, for tracker_fast.c. These keep errno. ---- */

/* Nothing is done yet: all steps. `object_bit` is a free bit of the block's generation, as in tracker.h. */
TRACKER_RARE void tracker_allocated_slow(const void *hook_frame, uint8_t object_bit, void *addr, uint64_t bytes);
TRACKER_RARE void tracker_resized_slow(const void *hook_frame, uint8_t object_bit, struct live_block old, void *addr,
                                       uint64_t bytes); // sets errno

/* The site, index + 1, of an event that is not in the thread's cache: walks the stack. 0 = it is lost, or of the teardown, and counted. */
TRACKER_RARE uint32_t tracker_site_slow(struct thread_slot *slot, const void *hook_frame, struct event_lookup lookup,
                                        uint64_t bytes);

/*
 * After peak_gain_fast() returned false: counters, peak words and map, and then what follows a change of the total, which looks into the
 * map.
 */
TRACKER_RARE void tracker_gain_slow(struct thread_slot *slot, void *addr, struct address_block block);

/* The same for peak_resize_fast(); the old block's record is the calling thread's. Sets errno. */
TRACKER_RARE void tracker_resize_slow(struct thread_slot *slot, struct address_block old, void *addr,
                                      struct address_block block);

/* A block that was taken out of the map is booked as released. */
TRACKER_RARE void tracker_dead_slow(struct thread_slot *slot, struct address_block block);

/* Puts a booked block into the map, even if there is one at this address. */
TRACKER_RARE void tracker_map_slow(struct thread_slot *slot, void *addr, uint64_t bytes, uint32_t site,
                                   uint8_t generation);

/* Now and then: moves the clock of generations, as generations_tick() does, and asks, if it may, whether a heartbeat is due. */
TRACKER_RARE void tracker_look_after(uint64_t bytes, uint64_t blocks, bool may_beat);

/* ---- the tracker's files, for each other ---- */

/* Everything about a new block but its address. site 0: it could not be booked, which is counted. */
struct address_block tracker_born(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes);
void tracker_dead(struct thread_slot *slot, struct address_block block);
/* There is no room for its address: better not alive at all than alive for ever. */
void tracker_lost(struct thread_slot *slot, struct address_block block);
void tracker_refused(const void *hook_frame, struct failed_request request); // its site is found here
bool tracker_is_teardown(uint64_t bytes);                                    // and counts what is asked for
/* Site and generation of a new block, not yet in the books; tracker_place_at() where the site is known. site 0: it cannot be booked. */
struct address_block tracker_place(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes);
struct address_block tracker_place_at(uint32_t site, uint64_t bytes);
void tracker_gain(struct thread_slot *slot, uint32_t site, unsigned domain, uint64_t bytes, bool is_whole);
/*
 * tracker_own_record(): this thread's record for a release, written to before; 0 = none, the release is lost. tracker_net_change(): the
 * change of the total that the release is a part of.
 */
uint32_t tracker_own_record(struct thread_slot *slot, uint32_t site, uint8_t generation, uint64_t bytes, bool is_whole);
uint32_t tracker_net_change(struct thread_slot *slot, unsigned domain, uint64_t old_bytes, uint64_t bytes);
/* A block that was taken out of a map: it is booked as released or, while Python is torn down, kept for later. */
void tracker_gone(struct thread_slot *slot, struct address_block block, bool is_whole);
uint64_t tracker_live_bytes(unsigned domain);
uint64_t tracker_live_host_bytes(void);
void tracker_look_after_total(void); // after an event of another domain than the heap
void tracker_devices_clear(void);

/* ---- books ---- */

static inline void
lose_event(uint64_t bytes)
{
	capture_file_lost(KMEM_LOST_EVENTS, 1);
	capture_file_lost(KMEM_LOST_EVENT_BYTES, bytes);
}

/*
 * An event changes three numbers, one after the other: the total, the counters of a record, and what the record holds. A thread that is
 * killed in between leaves the last two apart by one request. analyzer/capture/capture_cross_check.c takes that for damage. So the time
 * in between is kept short: no record is made and no heartbeat is written there. The record's page may have to be brought back, and
 * memory may run out on that: so this function writes to the record before the first of the changes.
 */
static inline void
book_prepare(struct kmem_site *site)
{
	if (site->slot != 0)
		counter_add_own(&site->freed_count, 0);
}

/* For any record, with its peak word. The fast path has book_born_fast(), for a record of its own whose peak word is changed already. */
static inline void
book_born_slow(struct kmem_site *site, uint64_t bytes, uint64_t blocks, uint32_t epoch)
{
	if (__builtin_expect(site->slot != 0, 1)) {
		counter_add_own(&site->allocated_count, blocks);
		counter_add_own(&site->allocated_bytes, bytes);
		peak_apply_own(&site->peak, (int64_t)bytes, epoch);
		return;
	}
	atomic_fetch_add_explicit(&site->allocated_count, blocks, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->allocated_bytes, bytes, memory_order_relaxed);
	peak_apply_shared(&site->peak, (int64_t)bytes, epoch);
}

static inline void
book_dead_slow(struct kmem_site *site, uint64_t bytes, uint64_t blocks, uint32_t epoch)
{
	if (__builtin_expect(site->slot != 0, 1)) {
		counter_add_own(&site->freed_count, blocks);
		counter_add_own(&site->freed_bytes, bytes);
		peak_apply_own(&site->peak, -(int64_t)bytes, epoch);
		return;
	}
	atomic_fetch_add_explicit(&site->freed_count, blocks, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->freed_bytes, bytes, memory_order_relaxed);
	peak_apply_shared(&site->peak, -(int64_t)bytes, epoch);
}

#endif
