/* native_cache_room.c - see native_cache_room.h. */
#include "unwind/native_cache_room.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/raw_sys.h"
#include "kmem_format.h"

#define SPAN (UINT64_C(1) << 32) // as in native_cache.c

static_assert(NATIVE_CACHE_FRAMES_DEEP < NATIVE_CACHE_NEEDS_BP, "word_firsts has room for one flag");
static_assert(sizeof(struct native_cache) <= 206 << 10, "one for each thread");

/* ---- room ---- */

/* Puts the arrays, of `room` places, there; NULL: how many bytes they are. */
static size_t
place_arrays(struct native_cache *cache, uint8_t *at, uint32_t room)
{
	size_t bytes = 0;

#define PLACE(array, count)                                              \
	do {                                                                 \
		if (at != NULL)                                                  \
			cache->array = (void *)(at + bytes);                         \
		bytes += ((count) * sizeof(cache->array[0]) + 63) & ~(size_t)63; \
	} while (0)
	PLACE(sp_offsets, room + 1);
	PLACE(word_firsts, room);
	PLACE(pcs, room);
	PLACE(rbps, room);
	PLACE(runs, room);
	PLACE(word_offsets, room);
	PLACE(words, room);
	PLACE(steps, room);
#undef PLACE
	return bytes;
}

void
native_cache_first_room(struct native_cache *cache)
{
	cache->room = NATIVE_CACHE_FRAMES;
	cache->sp_offsets = cache->own_sp_offsets;
	cache->word_firsts = cache->own_word_firsts;
	cache->pcs = cache->own_pcs;
	cache->rbps = cache->own_rbps;
	cache->runs = cache->own_runs;
	cache->word_offsets = cache->own_word_offsets;
	cache->words = cache->own_words;
	cache->steps = cache->own_steps;
}

__attribute__((cold)) bool
native_cache_more_room(struct native_cache *cache, uint64_t step_count)
{
	uint32_t deep = NATIVE_CACHE_FRAMES_DEEP;
	uint8_t *mapping = NULL;

	if (cache->room != NATIVE_CACHE_FRAMES || cache->has_no_mapping)
		return false;
	for (; mapping == NULL && deep > 8 * NATIVE_CACHE_FRAMES; deep /= 8) {
		size_t bytes = place_arrays(cache, NULL, deep);

		if (bytes <= raw_reserve_max())
			mapping = raw_reserve(KMEM_OWN_THREADS, bytes, PROT_READ | PROT_WRITE);
		if (mapping != NULL)
			break;
	}
	if (mapping == NULL) {
		cache->has_no_mapping = true;
		return false;
	}
	uint64_t first = NATIVE_CACHE_FRAMES - cache->frame_count;
	uint64_t word = cache->frame_count != 0 ? cache->own_word_firsts[first] & ~NATIVE_CACHE_NEEDS_BP
	                                        : NATIVE_CACHE_FRAMES;
	uint64_t more = deep - NATIVE_CACHE_FRAMES;

	(void)place_arrays(cache, mapping, deep);
	atomic_signal_fence(memory_order_release); // a child that is forked here gives the mapping back by `room`
	cache->room = deep;
	for (uint64_t i = first; i < NATIVE_CACHE_FRAMES; i++) {
		cache->sp_offsets[more + i] = cache->own_sp_offsets[i];
		cache->word_firsts[more + i] = cache->own_word_firsts[i] + (uint32_t)more; // the flag stays
		cache->pcs[more + i] = cache->own_pcs[i];
		cache->rbps[more + i] = cache->own_rbps[i];
		cache->runs[more + i] = cache->own_runs[i];
	}
	cache->sp_offsets[deep] = UINT32_MAX;
	for (uint64_t i = word; i < NATIVE_CACHE_FRAMES; i++) {
		cache->word_offsets[more + i] = cache->own_word_offsets[i];
		cache->words[more + i] = cache->own_words[i];
	}
	memcpy(cache->steps, cache->own_steps, step_count * sizeof(cache->steps[0]));
	return true;
}

void
native_cache_release_room(struct native_cache *cache)
{
	if (cache->room <= NATIVE_CACHE_FRAMES)
		return;
	raw_unreserve(cache->sp_offsets, place_arrays(cache, NULL, cache->room));
	cache->room = 0;
	cache->stack_end = 0;
}

/* ---- giving out ---- */

/* From `frame` on, as if its run began there, until `room` frames are in the stack, or to the end. */
static void
give_some(const struct native_cache *cache, uint64_t frame, uint64_t end, uint32_t room, struct native_stack *stack)
{
	uint32_t count = stack->count;

	while (frame < end && count < room) {
		uint64_t length = cache->runs[frame].length;
		uint64_t last = frame + length;

		for (uint64_t i = frame; i < last && count < room; i++) {
			bool is_long = length > NATIVE_STACK_RUN;

			if (is_long && i == frame + 1)
				i = last - 1;
			stack->own_pc[count] = cache->pcs[i] | (is_long && i == frame ? KMEM_FRAME_REPEATED : 0);
			stack->own_sp[count++] = cache->stack_end - SPAN + cache->sp_offsets[i];
			stack->numbers[count - 1] = i;
		}
		frame = last;
	}
	stack->count = count;
}

/* Where the outermost NATIVE_STACK_OUTER frames that are given out begin: a run begins there, or is left with its outermost frame. */
static uint64_t
outer_first(const struct native_cache *cache, uint64_t first, uint64_t end)
{
	uint64_t low = first;
	uint64_t high = end;

	while (low < high) { // `shown` does not grow outwards
		uint64_t middle = low + (high - low) / 2;

		if (cache->runs[middle].shown <= NATIVE_STACK_OUTER)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void
native_cache_give_parts(const struct native_cache *cache, uint64_t first, uint64_t end, struct native_stack *stack)
{
	bool has_gap = cache->runs[first].shown > NATIVE_STACK_MAX;

	stack->count = 0;
	stack->omitted = 0;
	give_some(cache, first, end, has_gap ? NATIVE_STACK_INNER : NATIVE_STACK_MAX, stack);
	if (has_gap) {
		uint64_t outer = outer_first(cache, first, end);

		stack->omitted = (uint32_t)(outer - stack->numbers[NATIVE_STACK_INNER - 1] - 1);
		give_some(cache, outer, end, NATIVE_STACK_MAX, stack);
	}
	stack->pc = stack->own_pc;
	stack->sp_offsets = NULL;
}
