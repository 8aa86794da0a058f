/*
 * thread_slot.h - what belongs to the calling thread alone?
 *
 * A slot is a number and private memory: tables in front of the shared ones, what was remembered of the last walks, sums that
 * are not in the capture's totals yet. The thread's records in the capture carry the number (kmem_site.slot). When a thread
 * ends its slot goes on to the next one, with all that is in it.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook on any thread: one thread-local load; a thread's first call makes a mapping.
 * When full   NULL: more threads at once than slots, no memory, or a thread that is ending. Such threads share slot 0.
 */
#ifndef THREAD_SLOT_H
#define THREAD_SLOT_H

#include <stdatomic.h>
#include <stdint.h>

#include "sites/call_stack.h"
#include "sites/event_cache.h"
#include "sites/site_table.h"
#include "sites/steps.h"
#include "sites/thread_attribution.h"
#include "tables/peak.h"
#include "tables/pointer_map.h"

#define THREAD_SLOTS_MAX 32768u // a multiple of 64. No memory is taken for those that no thread had
#define THREAD_SLOT_ROOMS 64u   // a power of two

/* While this thread's record of a Python-only site holds less, it need not be asked what other threads' hold (event_site.c). */
struct thread_slot_room {
	uint32_t site;
	int64_t until_bytes;
	int64_t most_bytes; // that it was reckoned from: when the heap has shrunk by half, it is void
};

/* Zeroed is empty. */
struct thread_slot {
	struct peak_batch heap; // of the domain "heap"
	uint64_t tally_bytes;   // tracker_fast.c
	uint64_t own_bits;      // of words of its own blocks: thread_slot_map_bits()
	uint32_t tally_events;
	_Atomic uint32_t last_site; // index + 1, of this thread's last event; 0 = none
	uint64_t map_bits;          // of the word that it puts into the map next: own_bits, or of a watched block
	struct site_owner owner;
	struct call_stack_memory stack;
	struct event_cache events;
	struct thread_attribution parent;
	uint64_t tally_given;
	uint32_t tally_begun;   // tally_events, when it was set
	uint32_t tally_counted; // events of this tally before that
	uint32_t looks;         // releases.c
	uint64_t tally_address; // of the block with which this tally began
	bool owes_beat;         // that block is large: what asks whether a heartbeat is due comes when it is in the map
	struct thread_slot_room rooms[THREAD_SLOT_ROOMS];
	struct steps_thread steps;
};

/* Present, and owner. */
static inline uint64_t
thread_slot_map_bits(uint32_t number)
{
	return POINTER_MAP_PRESENT | ((uint64_t)number << POINTER_MAP_OWNER_SHIFT & POINTER_MAP_OWNER_MASK);
}

extern __thread struct thread_slot *thread_slot_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

struct thread_slot *thread_slot_acquire(void); // the rest of thread_slot_here()

static inline struct thread_slot *
thread_slot_here(void)
{
	struct thread_slot *slot = thread_slot_current;

	return __builtin_expect(slot != NULL, 1) ? slot : thread_slot_acquire();
}

/* For other threads to see: thread_attribution.h. release: what the site leads to. Pairs with line_of_python(). */
static inline void
thread_slot_publish(struct thread_slot *slot, uint32_t site)
{
	atomic_store_explicit(&slot->last_site, site, memory_order_release);
}

struct thread_slot *thread_slot_acquire_to_release(void);

/* For a release: NULL also before a thread's first allocation, unless it releases much. */
static inline struct thread_slot *
thread_slot_to_release(void)
{
	struct thread_slot *slot = thread_slot_current;

	return __builtin_expect(slot != NULL, 1) ? slot : thread_slot_acquire_to_release();
}

uint32_t thread_slot_count(void); // most slots that were in use at the same time

void thread_slot_left(void);   // a hook of this thread was left in the middle: what it remembers may be half written
void thread_slot_start(void);  // once, before the first thread asks, outside any hook
void thread_slot_forked(void); // forked child: one thread; everything remembered is void

#endif
