/* native_memo_room.c - see native_memo_room.h. */
#include "unwind/native_memo_room.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/raw_sys.h"
#include "kmem_format.h"

#define SPAN (UINT64_C(1) << 32) // as in native_memo.c

static_assert(NATIVE_MEMO_FRAMES_DEEP < NATIVE_MEMO_NEEDS_BP, "word_firsts has room for one flag");
static_assert(sizeof(struct native_memo) <= 206 << 10, "one for each thread");

/* ---- room ---- */

/* Puts the arrays, of `room` places, there; NULL: how many bytes they are. */
static size_t
place_arrays(struct native_memo *memo, uint8_t *at, uint32_t room)
{
	size_t bytes = 0;

#define PLACE(array, count)                                             \
	do {                                                                \
		if (at != NULL)                                                 \
			memo->array = (void *)(at + bytes);                         \
		bytes += ((count) * sizeof(memo->array[0]) + 63) & ~(size_t)63; \
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
native_memo_first_room(struct native_memo *memo)
{
	memo->room = NATIVE_MEMO_FRAMES;
	memo->sp_offsets = memo->own_sp_offsets;
	memo->word_firsts = memo->own_word_firsts;
	memo->pcs = memo->own_pcs;
	memo->rbps = memo->own_rbps;
	memo->runs = memo->own_runs;
	memo->word_offsets = memo->own_word_offsets;
	memo->words = memo->own_words;
	memo->steps = memo->own_steps;
}

__attribute__((cold)) bool
native_memo_more_room(struct native_memo *memo, uint64_t step_count)
{
	uint32_t deep = NATIVE_MEMO_FRAMES_DEEP;
	uint8_t *mapping = NULL;

	if (memo->room != NATIVE_MEMO_FRAMES || memo->has_no_mapping)
		return false;
	for (; mapping == NULL && deep > 8 * NATIVE_MEMO_FRAMES; deep /= 8) {
		size_t bytes = place_arrays(memo, NULL, deep);

		if (bytes <= raw_reserve_max())
			mapping = raw_reserve(KMEM_OWN_THREADS, bytes, PROT_READ | PROT_WRITE);
		if (mapping != NULL)
			break;
	}
	if (mapping == NULL) {
		memo->has_no_mapping = true;
		return false;
	}
	uint64_t first = NATIVE_MEMO_FRAMES - memo->frame_count;
	uint64_t word = memo->frame_count != 0 ? memo->own_word_firsts[first] & ~NATIVE_MEMO_NEEDS_BP : NATIVE_MEMO_FRAMES;
	uint64_t more = deep - NATIVE_MEMO_FRAMES;

	(void)place_arrays(memo, mapping, deep);
	atomic_signal_fence(memory_order_release); // a child that is forked here gives the mapping back by `room`
	memo->room = deep;
	for (uint64_t i = first; i < NATIVE_MEMO_FRAMES; i++) {
		memo->sp_offsets[more + i] = memo->own_sp_offsets[i];
		memo->word_firsts[more + i] = memo->own_word_firsts[i] + (uint32_t)more; // the flag stays
		memo->pcs[more + i] = memo->own_pcs[i];
		memo->rbps[more + i] = memo->own_rbps[i];
		memo->runs[more + i] = memo->own_runs[i];
	}
	memo->sp_offsets[deep] = UINT32_MAX;
	for (uint64_t i = word; i < NATIVE_MEMO_FRAMES; i++) {
		memo->word_offsets[more + i] = memo->own_word_offsets[i];
		memo->words[more + i] = memo->own_words[i];
	}
	memcpy(memo->steps, memo->own_steps, step_count * sizeof(memo->steps[0]));
	return true;
}

static void
release(struct native_memo *memo)
{
	if (memo->room <= NATIVE_MEMO_FRAMES)
		return;
	raw_unreserve(memo->sp_offsets, place_arrays(memo, NULL, memo->room));
	memo->room = 0;
	memo->stack_end = 0;
}

void
native_memo_release(struct native_memos *memos)
{
	release(&memos->own);
	release(&memos->alternate);
}

/* ---- giving out ---- */

/* From `frame` on, as if its run began there, until `room` frames are in the stack, or to the end. */
static void
give_some(const struct native_memo *memo, uint64_t frame, uint64_t end, uint32_t room, struct native_stack *stack)
{
	uint32_t count = stack->count;

	while (frame < end && count < room) {
		uint64_t length = memo->runs[frame].length;
		uint64_t last = frame + length;

		for (uint64_t i = frame; i < last && count < room; i++) {
			bool is_long = length > NATIVE_STACK_RUN;

			if (is_long && i == frame + 1)
				i = last - 1;
			stack->own_pc[count] = memo->pcs[i] | (is_long && i == frame ? KMEM_FRAME_REPEATED : 0);
			stack->own_sp[count++] = memo->stack_end - SPAN + memo->sp_offsets[i];
			stack->numbers[count - 1] = i;
		}
		frame = last;
	}
	stack->count = count;
}

/* Where the outermost NATIVE_STACK_OUTER frames that are given out begin: a run begins there, or is left with its outermost frame. */
static uint64_t
outer_first(const struct native_memo *memo, uint64_t first, uint64_t end)
{
	uint64_t low = first;
	uint64_t high = end;

	while (low < high) { // `shown` does not grow outwards
		uint64_t middle = low + (high - low) / 2;

		if (memo->runs[middle].shown <= NATIVE_STACK_OUTER)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void
native_memo_give_parts(const struct native_memo *memo, uint64_t first, uint64_t end, struct native_stack *stack)
{
	bool has_gap = memo->runs[first].shown > NATIVE_STACK_MAX;

	stack->count = 0;
	stack->omitted = 0;
	give_some(memo, first, end, has_gap ? NATIVE_STACK_INNER : NATIVE_STACK_MAX, stack);
	if (has_gap) {
		uint64_t outer = outer_first(memo, first, end);

		stack->omitted = (uint32_t)(outer - stack->numbers[NATIVE_STACK_INNER - 1] - 1);
		give_some(memo, outer, end, NATIVE_STACK_MAX, stack);
	}
	stack->pc = stack->own_pc;
	stack->sp_offsets = NULL;
}
