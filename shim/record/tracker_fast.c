/*
 * tracker_fast.c - an allocation that its thread made before on the same stack, and the release of a block of its own.
 *
 * Nearly every event of a running program is of this kind, so each is one function without calls; instructions and cache lines here are
 * the cost of recording. Each function first checks that the event is of this kind, and changes nothing before it knows. Else the slow
 * path in tracker.c takes over (tracker_parts.h). tests/bench/BUDGET.md has the account, sites/CACHES.md the caches that are asked.
 *
 * A record found here is the calling thread's own (S4): the cache holds no others, and a release compares the slot.
 */
#include "record/tracker_parts.h"

#include <stdatomic.h>

#include "base/counter.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "python/python_frames.h"
#include "python/python_runtime.h"
#include "record/heap_samples.h"
#include "record/library_due.h"
#include "record/tracker.h"
#include "sites/callbacks.h"
#include "sites/event_cache.h"
#include "sites/event_site.h"
#include "sites/releases.h"
#include "sites/site_table.h"
#include "tables/generations.h"
#include "tables/peak.h"

/*
 * A thread's tally: bytes that it may allocate before it moves the clock of generations, and events before it asks for the heartbeat. Both
 * are counted down, and either makes it do both. A tally is up to an eighth shorter than this, so that it is in step with no loop of
 * the program: its first block may be watched (sites/releases.h).
 */
#define TALLY_BYTES UINT64_C(65536)
#define TALLY_EVENTS 1024u

/* How often the clock is asked where libraries' own allocators have reservations. */
#define LIBRARY_EVENTS 16u

/* This block is the first of the next tally. It is not in the map yet, where a heartbeat would look for it: with a large one the heartbeat comes after. */
static __attribute__((noinline, cold)) void
tally_over(struct thread_slot *slot, const void *addr, uint64_t bytes)
{
	bool has_volume = slot->tally_bytes > slot->tally_given; // it went below 0

	slot->tally_address = (uint64_t)addr;
	releases_watch_no_more(slot);
	steps_look(&slot->steps, slot->owner.slot, atomic_load_explicit(&slot->last_site, memory_order_relaxed),
	           slot->tally_begun - slot->tally_events);
	// a thread's first: nothing was set
	slot->tally_counted += slot->tally_given != 0 ? slot->tally_begun - slot->tally_events : 1;
	if (library_due_is())
		record_callbacks.library_due(NULL);

	bool is_often = atomic_load_explicit(&library_map_is_any, memory_order_relaxed);

	slot->tally_begun = slot->tally_events = (is_often ? LIBRARY_EVENTS : TALLY_EVENTS) - 1;
	if (slot->tally_given != 0 && !has_volume && slot->tally_counted < TALLY_EVENTS)
		return;
	tracker_look_after(slot->tally_given - slot->tally_bytes,
	                   slot->tally_counted < TALLY_EVENTS ? slot->tally_counted : TALLY_EVENTS,
	                   bytes < POINTER_MAP_LARGE_BYTES);
	slot->owes_beat = bytes >= POINTER_MAP_LARGE_BYTES;
	slot->tally_bytes = slot->tally_given = TALLY_BYTES - 1 - (slot->looks * UINT32_C(0x9e3779b9) >> 19);
	slot->tally_counted = 0;
	if (releases_watch(slot))
		slot->tally_begun = slot->tally_events = 0; // the next allocation is no more
}

/*
 * The interpreter's function is called early, when no register holds anything that would have to be saved. 0: the request is not the
 * interpreter's allocator's.
 */
static inline uint64_t
state_of(bool is_python)
{
	return is_python ? python_frames_state() : 0;
}

static inline const void *
tagged(const void *hook_frame, bool is_python)
{
	return (const void *)((uintptr_t)hook_frame | (is_python ? TRACKER_FRAME_PYTHON : 0));
}

/* The site of a new block of this thread, index + 1; 0 = none, the event is lost. */
static inline uint32_t
site_of(struct thread_slot *slot, const void *hook_frame, const void *addr, uint64_t bytes, bool is_python,
        uint64_t state, bool has_interpreter)
{
	/* Both are counted down. */
	if (__builtin_expect(counter_take(&slot->tally_bytes, bytes), 0) ||
	    __builtin_expect(counter_take32(&slot->tally_events, 1), 0))
		tally_over(slot, addr, bytes);

	struct event_lookup lookup = is_python ? event_cache_find_python(&slot->events, state)
	                                       : event_cache_find(&slot->events, &slot->stack.caches, hook_frame,
	                                                          has_interpreter);
	if (__builtin_expect(lookup.site == 0, 0))
		return tracker_site_slow(slot, tagged(hook_frame, is_python), lookup, bytes);
	if (lookup.kind == EVENT_LOOKUP_PYTHON_ONLY &&
	    __builtin_expect(event_site_needs_native(slot, lookup.site, bytes), 0)) {
		uint32_t number = event_site_whole(slot, hook_frame, lookup.site, bytes, generations_clock());

		return number != 0 ? number : tracker_site_slow(slot, tagged(hook_frame, is_python), lookup, bytes);
	}
	thread_slot_publish(slot, lookup.site);
	return lookup.site;
}

/* A new block: the counters of the thread's own record. Its generation and the peak words are booked already. */
static inline void
book_born_fast(struct kmem_site *site, uint64_t bytes)
{
	counter_add_own(&site->allocated_bytes, bytes);
	counter_add_own(&site->allocated_count, 1);
}

/* The same for a release, with the generation, which generations_is_counted(). */
static inline void
book_dead_fast(struct kmem_site *site, uint64_t bytes, size_t generation)
{
	generations_died_own(site, generation);
	counter_add_own(&site->freed_bytes, bytes);
	counter_add_own(&site->freed_count, 1);
}

/* After the books, before the program gets the address: no release is booked before its allocation. */
static inline void
map_small(struct thread_slot *slot, struct pointer_map_place place, void *addr, struct address_block block)
{
	if (__builtin_expect(place.first == NULL || block.bytes > POINTER_MAP_BYTES_MAX ||
	                         !pointer_map_put_word(place, (uint64_t)addr,
	                                               pointer_map_pack_small((uint64_t)addr, block) | slot->map_bits),
	                     0))
		tracker_map_slow(slot, addr, block.bytes, block.site, block.generation);
}

static inline __attribute__((always_inline)) void
allocated(const void *hook_frame, uint8_t object_bit, void *addr, uint64_t bytes, bool is_python, uint64_t state)
{
	struct thread_slot *slot = thread_slot_current;
	struct pointer_map_place place = pointer_map_place_of((uint64_t)addr);
	bool has_interpreter = is_python || python_frames_available();

	if (__builtin_expect(slot == NULL || bytes < settings.slow_below, 0) ||
	    (has_interpreter && __builtin_expect(python_runtime_is_finalizing(), 0))) {
		tracker_allocated_slow(tagged(hook_frame, is_python), object_bit, addr, bytes);
		return;
	}
	// seldom in the cache; recognising the event takes as long as fetching it
	__builtin_prefetch((const void *)place.first, 1);

	uint32_t number = site_of(slot, hook_frame, addr, bytes, is_python, state, has_interpreter);

	if (__builtin_expect(number == 0, 0))
		return;
	struct kmem_site *site = site_table_at(number);
	uint8_t generation = generations_born_own(site, number) | object_bit;

	if (__builtin_expect(peak_gain_fast(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, &slot->heap, &site->peak, bytes),
	                     1)) {
		book_born_fast(site, bytes);
		// a large one is not held back
		map_small(slot, place, addr, (struct address_block){ bytes, number, generation });
	} else {
		tracker_gain_slow(slot, addr, (struct address_block){ bytes, number, generation });
	}
}

__attribute__((flatten)) void
tracker_allocated(const void *hook_frame, void *addr, size_t bytes)
{
	allocated(hook_frame, 0, addr, bytes, false, 0);
}

__attribute__((flatten)) void
tracker_allocated_python(const void *hook_frame, uint8_t object_bit, void *addr, size_t bytes)
{
	allocated(hook_frame, object_bit, addr, bytes, true, python_frames_state());
}

static inline __attribute__((always_inline)) void
resized(const void *hook_frame, uint8_t object_bit, struct live_block old, void *addr, uint64_t bytes, bool is_python)
{
	uint64_t state = state_of(is_python);
	struct thread_slot *slot = thread_slot_current;
	struct pointer_map_place place = pointer_map_place_of((uint64_t)addr);
	struct kmem_site *old_site = site_table_at(old.site);
	bool has_interpreter = is_python || python_frames_available();

	if (__builtin_expect(slot == NULL || addr == NULL || old.site == 0, 0) ||
	    __builtin_expect(bytes < settings.slow_below || python_runtime_is_finalizing(), 0) ||
	    __builtin_expect(old_site->slot != slot->owner.slot, 0) ||
	    __builtin_expect(!generations_is_counted(old_site, old.generation), 0)) {
		tracker_resized_slow(tagged(hook_frame, is_python), object_bit, old, addr, bytes);
		return;
	}
	__builtin_prefetch((const void *)place.first, 1);

	struct address_block gone = { old.bytes, old.site, old.generation };
	uint32_t number = site_of(slot, hook_frame, addr, bytes, is_python, state, has_interpreter);

	if (__builtin_expect(number == 0, 0)) {
		tracker_dead_slow(slot, gone);
		return;
	}
	struct kmem_site *site = site_table_at(number);
	uint8_t generation = generations_born_own(site, number) | object_bit;

	if (__builtin_expect(peak_resize_fast(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, &slot->heap, &old_site->peak,
	                                      old.bytes, &site->peak, bytes),
	                     1)) {
		book_born_fast(site, bytes);
		book_dead_fast(old_site, gone.bytes, gone.generation);
		map_small(slot, place, addr, (struct address_block){ bytes, number, generation });
	} else {
		tracker_resize_slow(slot, gone, addr, (struct address_block){ bytes, number, generation });
	}
}

__attribute__((flatten)) void
tracker_resized(const void *hook_frame, struct live_block old, void *addr, size_t bytes)
{
	resized(hook_frame, 0, old, addr, bytes, false);
}

__attribute__((flatten)) void
tracker_resized_python(const void *hook_frame, uint8_t object_bit, struct live_block old, void *addr, size_t bytes)
{
	resized(hook_frame, object_bit, old, addr, bytes, true);
}

/* A large block, whose word does not say its owner. One of POINTER_MAP_LARGE_BYTES never goes the fast way: who releases it is noted. */
static __attribute__((noinline)) bool
freed_large(struct thread_slot *slot, struct pointer_map_place place, uint64_t addr)
{
	struct pointer_map_large *large = pointer_map_large_at(place, addr);
	uint64_t seen = atomic_load_explicit(&large->word, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&large->bytes, memory_order_relaxed);
	struct address_block block = pointer_map_unpack(seen);

	if (!pointer_map_is_of(seen, addr) || (seen & POINTER_MAP_WATCHED) != 0 || bytes >= POINTER_MAP_LARGE_BYTES)
		return false;

	uint32_t number = site_table_own_known(&slot->owner, block.site);
	struct kmem_site *site = site_table_at(number);

	if (number == 0 || !generations_is_counted(site, block.generation) || site->slot != slot->owner.slot ||
	    !peak_release_fast(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, &slot->heap, &site->peak, bytes))
		return false;
	atomic_store_explicit(&large->word, pointer_map_gone(seen), memory_order_relaxed);
	heap_samples_forget((const void *)addr);
	book_dead_fast(site, bytes, block.generation);
	return true;
}

/* Its word went to another place meanwhile. */
static __attribute__((noinline)) void
take_moved(uint64_t addr)
{
	struct address_block block;

	(void)pointer_map_take_slow(addr, &block);
}

__attribute__((flatten)) bool
tracker_freed_fast(void *addr)
{
	struct thread_slot *slot = thread_slot_current;
	struct pointer_map_place place = pointer_map_place_of((uint64_t)addr);

	if (__builtin_expect(slot == NULL || place.state == NULL || python_runtime_is_finalizing(), 0))
		return false;

	uint64_t wanted = pointer_map_position_of((uint64_t)addr) | slot->own_bits;
	pointer_map_word *word = NULL;

	if (__builtin_expect(place.first != NULL, 1))
		word = pointer_map_search(place.first, wanted);
	if (__builtin_expect(word == NULL, 0))
		return freed_large(slot, place, (uint64_t)addr);

	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed); // perhaps moved since
	struct address_block block = pointer_map_unpack(seen);
	uint32_t number = block.site;

	if (__builtin_expect(
			((seen ^ wanted) & (POINTER_MAP_START_MASK | POINTER_MAP_OWNER_MASK | POINTER_MAP_WATCHED)) != 0, 0)) {
		if ((seen & POINTER_MAP_OWNER_MASK) != 0)
			number = site_table_own_known(&slot->owner, block.site);
		if (!pointer_map_is_of(seen, (uint64_t)addr) || (seen & POINTER_MAP_WATCHED) != 0 || number == 0 ||
		    !generations_is_counted(site_table_at(number), block.generation))
			return false;
	}

	struct kmem_site *site = site_table_at(number);

	/* A generation is one of the record where the block was born. */
	if (__builtin_expect(site->slot != slot->owner.slot, 0) ||
	    !peak_release_fast(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, &slot->heap, &site->peak, block.bytes))
		return false;
	if (__builtin_expect(!pointer_map_take_word(word, seen), 0))
		take_moved((uint64_t)addr);
	book_dead_fast(site, block.bytes, seen >> POINTER_MAP_GENERATION_SHIFT & POINTER_MAP_GENERATION_MASK);
	return true;
}
