/*
 * tracker_again.c - an allocation that its thread made before on the same stack, and the release of a block of its own.
 *
 * That is what nearly every event of a running program is, so each is one function without calls; instructions and cache lines
 * here are the cost of recording. First it looks whether all is as usual, then it changes anything; else the rest in tracker.c
 * does it. tests/bench/BUDGET.md has the account.
 *
 * A record found here is the calling thread's own (S4): the memo holds no others, and a release compares the slot.
 */
#include "tracker_parts.h"

#include <stdatomic.h>

#include "capture_file.h"
#include "event_memo.h"
#include "generations.h"
#include "peak.h"
#include "settings.h"
#include "site_table.h"
#include "teardown.h"
#include "tracker.h"

/*
 * A thread's tally: bytes that it allocated since it last moved the clock of generations, in bits 0 to 52, and events since it last
 * looked at the heartbeat above. It is time for either when a bit of DUE is set.
 */
#define TALLY_EVENT (UINT64_C(1) << 53)
#define TALLY_BYTES_MASK (TALLY_EVENT - 1)
#define TALLY_DUE (UINT64_C(1) << 63 | (TALLY_BYTES_MASK & ~UINT64_C(0xffff)))

/* A counter that only its own thread changes. relaxed: a reader sums (S4). */
static inline void
add_own(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value, memory_order_relaxed);
}

/* Of the words that this thread puts into the map. */
static inline uint64_t
owner_bits(const struct thread_slot *slot)
{
	return (uint64_t)slot->owner.slot << POINTER_MAP_OWNER_SHIFT & POINTER_MAP_OWNER_MASK;
}

static inline __attribute__((always_inline)) void
allocated(const void *hook_frame, void *addr, size_t bytes, bool is_python)
{
	struct thread_slot *slot = thread_slot_current;
	pointer_map_word *word = pointer_map_own_word((uint64_t)addr);

	if (__builtin_expect(slot == NULL || word == NULL || settings.walks_all || !teardown_is_none(), 0)) {
		tracker_allocated_rest(hook_frame, addr, bytes);
		return;
	}
	__builtin_prefetch((const void *)word, 1); // seldom in the cache; recognising the event takes as long as fetching it
	slot->tally += TALLY_EVENT + bytes;
	if (__builtin_expect((slot->tally & TALLY_DUE) != 0, 0)) {
		tracker_look_after(slot->tally & TALLY_BYTES_MASK);
		slot->tally = 0;
	}

	uint32_t number = is_python ? event_memo_find_python(&slot->events) : event_memo_find(&slot->events, hook_frame);

	if (__builtin_expect(number == 0, 0)) {
		number = tracker_walk(slot, hook_frame, bytes);
		if (number == 0)
			return;
	}

	thread_slot_publish(slot, number);

	struct kmem_site *site = site_table_at(number);
	struct address_block block = { .bytes = bytes, .site = number, .generation = generations_born_own(site, number) };

	if (is_python)
		block.generation |= tracker_object_bit(hook_frame);
	add_own(&site->allocated_bytes, bytes);
	add_own(&site->allocated_count, 1);
	if (!peak_gain_again(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, &slot->heap, &site->peak, bytes))
		tracker_gain_rest(slot, site, bytes);
	/* The books before the word, the word before the program gets the address: no release is booked before its allocation. */
	if (__builtin_expect(bytes >= POINTER_MAP_BYTES_MASK || atomic_load_explicit(word, memory_order_relaxed) > POINTER_MAP_GONE, 0))
		tracker_map_rest(slot, addr, block);
	else
		atomic_store_explicit(word, pointer_map_pack((uint64_t)addr, block) | owner_bits(slot), memory_order_relaxed);
}

__attribute__((flatten)) void
tracker_allocated(const void *hook_frame, void *addr, size_t bytes)
{
	allocated(hook_frame, addr, bytes, false);
}

__attribute__((flatten)) void
tracker_allocated_python(const void *tagged_frame, void *addr, size_t bytes)
{
	allocated(tagged_frame, addr, bytes, true);
}

__attribute__((flatten)) void
tracker_freed(void *addr)
{
	struct thread_slot *slot = thread_slot_current;
	pointer_map_word *word = pointer_map_own_word((uint64_t)addr);

	if (__builtin_expect(slot == NULL || word == NULL || !teardown_is_none(), 0)) {
		tracker_freed_rest(addr);
		return;
	}

	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
	struct address_block block = pointer_map_unpack(seen);
	uint64_t differs = seen ^ (pointer_map_start_of((uint64_t)addr) | owner_bits(slot));
	uint32_t number = block.site;

	if (__builtin_expect((differs & (POINTER_MAP_START_MASK | POINTER_MAP_OWNER_MASK)) != 0, 0)) {
		if ((seen & POINTER_MAP_OWNER_MASK) != 0)
			number = site_table_own_known(&slot->owner, block.site);
		if ((differs & POINTER_MAP_START_MASK) != 0 || number == 0) {
			tracker_freed_rest(addr);
			return;
		}
	}

	struct kmem_site *site = site_table_at(number);

	/* A size that stands elsewhere is too large for peak_release_again(). */
	if (__builtin_expect(site->slot != slot->owner.slot || site->domain != KMEM_DOMAIN_HEAP, 0) ||
	    !peak_release_again(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, &slot->heap, &site->peak, block.bytes)) {
		tracker_freed_rest(addr);
		return;
	}
	atomic_store_explicit(word, POINTER_MAP_GONE, memory_order_relaxed);
	generations_died_own(site, number, block.generation);
	add_own(&site->freed_bytes, block.bytes);
	add_own(&site->freed_count, 1);
}
