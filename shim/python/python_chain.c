/*
 * python_chain.c - is the chain of Python frames the one of the last event (see python_chain.h)?
 *
 * Not read: who owns a frame and where an evaluator begins. A frame of that code at that instruction and address has one
 * owner; and without KMEMSHIM_NATIVE=all only the innermost evaluator matters, to which the thread state leads.
 */
#include "python/python_chain.h"

#include <assert.h>
#include <stddef.h>

#include "base/effort.h"
#include "python/python_memory.h"

/* An address says which code it is in: no two living code objects share one. */
static inline __attribute__((always_inline)) uint64_t
instruction_of(const struct python_layout *layout, bool is_pointer, uint64_t frame)
{
	if (is_pointer)
		return python_memory_u64(frame + layout->frame_instruction);
	return python_memory_u64(frame + layout->frame_code) * UINT64_C(0xff51afd7ed558ccd) +
	       python_memory_u32(frame + layout->frame_instruction);
}

/*
 * With addresses where frames lie: from 3.11 on the interpreter's own frames are on the C stack, and say how far the native walk goes.
 * Before, frames are objects, and the next call's may lie anywhere.
 */
static inline __attribute__((always_inline)) uint64_t
word_of(const struct python_chain_frame *frame, bool is_pointer)
{
	uint64_t word = (is_pointer ? frame->frame_addr : 0) + frame->instruction * UINT64_C(0xc4ceb9fe1a85ec53);

	return (word ^ word >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
}

#define BASE UINT64_C(0x9e3779b97f4a7c15)
#define DIGESTED_BYTES (PYTHON_CHAIN_DIGESTED * sizeof(struct python_chain_frame))

/* What a frame's word counts in the sum of the frame that lies so many further in. */
static inline uint64_t
base_to_digested(void)
{
	uint64_t power = BASE;

	for (unsigned i = 0; i < 6; i++)
		power *= power; // to 64
	return power * power * power;
}
static_assert(PYTHON_CHAIN_DIGESTED == 3 * 64, "the power");

static inline struct python_chain_frame *
none_of(struct python_chain *chain)
{
	return &chain->kept[PYTHON_CHAIN_LOOKS - 1];
}

static inline struct python_chain_frame *
last_of(struct python_chain *chain)
{
	return (struct python_chain_frame *)(void *)((char *)none_of(chain) + chain->last_bytes);
}

static inline void
set_last(struct python_chain *chain, const struct python_chain_frame *last)
{
	chain->last_bytes = (uint64_t)((const char *)last - (const char *)none_of(chain));
}

/* The digest of the chain whose innermost frame is `last`. */
static inline __attribute__((always_inline)) uint64_t
digest_at(struct python_chain *chain, const struct python_chain_frame *last)
{
	uint64_t bytes = (uint64_t)((const char *)last - (const char *)none_of(chain));

	if (bytes + chain->least_bytes <= DIGESTED_BYTES)
		return last->sum;
	return ~(last->sum - last[-PYTHON_CHAIN_DIGESTED].sum * base_to_digested());
}

/* Behind those of the digested frames that are `kept` or outside it, where `inner` are further in. */
static inline __attribute__((always_inline)) const struct python_chain_frame *
digested_end(struct python_chain *chain, const struct python_chain_frame *kept, uint64_t inner)
{
	const struct python_chain_frame *none = none_of(chain);

	if (__builtin_expect(inner + (uint64_t)(kept - none) <= PYTHON_CHAIN_DIGESTED, 1))
		return none;
	return inner < PYTHON_CHAIN_DIGESTED ? kept - (PYTHON_CHAIN_DIGESTED - inner) : kept;
}

/* Does the chain go on from kept->frame_addr, which is `frame` and in it, as it did? Then *frame is the next one. */
static inline __attribute__((always_inline)) bool
goes_on(const struct python_chain_frame *kept, const struct python_layout *layout, bool is_pointer, uint64_t *frame)
{
	uint64_t previous = kept[-1].frame_addr;

	if (instruction_of(layout, is_pointer, *frame) != kept->instruction ||
	    python_memory_u64(*frame + layout->frame_previous) != previous)
		return false;
	*frame = previous;
	return true;
}

/* The innermost of `kept` and those outside it with which the chain does not go on as it did; `end`, behind them all: there is none. */
static inline __attribute__((always_inline)) const struct python_chain_frame *
compare(const struct python_chain_frame *kept, const struct python_chain_frame *end, const struct python_layout *layout,
        bool is_pointer)
{
	uint64_t frame = kept->frame_addr;

	for (; kept >= end + 4; kept -= 4) { // four at a time: a quarter fewer instructions
		if (!goes_on(kept, layout, is_pointer, &frame))
			return kept;
		if (!goes_on(kept - 1, layout, is_pointer, &frame))
			return kept - 1;
		if (!goes_on(kept - 2, layout, is_pointer, &frame))
			return kept - 2;
		if (!goes_on(kept - 3, layout, is_pointer, &frame))
			return kept - 3;
	}
	for (; kept != end && goes_on(kept, layout, is_pointer, &frame); kept--)
		;
	return kept;
}

/* The frame, or the zeroed one for 0, among `kept` and those outside it. NULL: it is not there. */
static inline __attribute__((always_inline)) struct python_chain_frame *
find(struct python_chain_frame *kept, uint64_t frame)
{
	for (unsigned looks = 0; looks < PYTHON_CHAIN_LOOKS; looks++, kept--) {
		if (kept->frame_addr == frame)
			return kept;
	}
	return NULL;
}

/*
 * The innermost PYTHON_CHAIN_CUT frames of those that were read: `count` fresh ones, then kept ones from `at` outwards (NULL: none). All of
 * them are fresh then.
 */
static __attribute__((noinline, cold)) void
cut(struct python_chain *chain, const struct python_chain_frame *at, uint32_t count)
{
	for (; count <= PYTHON_CHAIN_CUT; at--)
		chain->fresh[count++] = *at;
	none_of(chain)->frame_addr = chain->fresh[PYTHON_CHAIN_CUT].frame_addr;
	chain->least_bytes = DIGESTED_BYTES;
}

/*
 * The chain from `frame` outwards. False when it cannot be read. Sets how much of kept[] it ends with, and how many are fresh.
 */
static inline __attribute__((always_inline)) bool
follow(struct python_chain *chain, const struct python_layout *layout, bool is_pointer, uint64_t frame,
       uint32_t *joined, uint32_t *fresh_count)
{
	struct python_chain_frame *guess = last_of(chain);
	uint32_t count = 0;

	for (*joined = 0; frame != 0;) {
		struct python_chain_frame *at = find(guess, frame);

		if (at != NULL && at != none_of(chain)) {
			const struct python_chain_frame *end = digested_end(chain, at, count);
			const struct python_chain_frame *changed = compare(at, end, layout, is_pointer);

			if (changed == end) {
				*joined = (uint32_t)(at - none_of(chain));
				if (*joined + count > PYTHON_CHAIN_FRAMES)
					cut(chain, at, count);
				else if (chain->least_bytes == 0 || *joined + count >= PYTHON_CHAIN_DIGESTED)
					break;
				else // too few, and what is outside them was never seen
					return false;
				*joined = 0;
				count = PYTHON_CHAIN_CUT;
				break;
			}
			for (; at != changed && count < PYTHON_CHAIN_FRAMES; at--)
				chain->fresh[count++] = *at;
			frame = changed->frame_addr;
			guess = at - 1;
		}
		if (!python_memory_is_object(frame))
			return false;
		if (count == PYTHON_CHAIN_FRAMES) {
			cut(chain, NULL, count);
			count = PYTHON_CHAIN_CUT;
			break;
		}
		struct python_chain_frame *fresh = &chain->fresh[count++];

		fresh->frame_addr = frame;
		fresh->instruction = instruction_of(layout, is_pointer, frame);
		frame = python_memory_u64(frame + layout->frame_previous);
	}
	if (frame == 0) {
		none_of(chain)->frame_addr = 0;
		chain->least_bytes = 0;
	}
	*fresh_count = count;
	return true;
}

/* The instruction and the sum of the frame at->frame_addr, which comes behind those that `at` is behind of. */
static inline __attribute__((always_inline)) void
keep(struct python_chain_frame *at, const struct python_layout *layout, bool is_pointer)
{
	at->instruction = instruction_of(layout, is_pointer, at->frame_addr);
	at->sum = at[-1].sum * BASE + word_of(at, is_pointer);
}

/*
 * The usual changes: a frame went on, those inside it ended, and it called a few more. Everything outside it is as it was.
 * False when it is not that simple; what is kept is then as good as before. Without may_be_long it is not that simple where there are more
 * frames than are digested.
 */
static inline __attribute__((always_inline)) bool
go_on(struct python_chain *chain, const struct python_layout *layout, bool is_pointer, bool may_be_long, uint64_t frame,
      uint64_t *digest)
{
	struct python_chain_frame *last = last_of(chain);
	struct python_chain_frame *at = find(last, frame);
	uint64_t called[PYTHON_CHAIN_LOOKS];
	unsigned count = 0;

	for (; __builtin_expect(at == NULL, 0); at = find(last, frame)) {
		if (count == PYTHON_CHAIN_LOOKS || !python_memory_is_object(frame))
			return false;
		called[count++] = frame;
		frame = python_memory_u64(frame + layout->frame_previous);
	}
	uint64_t bytes = (uint64_t)((const char *)(at + count) - (const char *)none_of(chain));

	if (may_be_long ? bytes < chain->least_bytes // what is outside them was never seen
	                : __builtin_expect(bytes + chain->least_bytes > DIGESTED_BYTES, 0))
		return false;
	if (__builtin_expect(at != none_of(chain), 1)) {
		const struct python_chain_frame *end = may_be_long ? digested_end(chain, at - 1, count + 1) : none_of(chain);

		if (at[-1].frame_addr != python_memory_u64(frame + layout->frame_previous) ||
		    compare(at - 1, end, layout, is_pointer) != end)
			return false;
		if (instruction_of(layout, is_pointer, frame) != at->instruction)
			keep(at, layout, is_pointer);
	} else if (count == 0) {
		return false; // there is no frame
	}
	while (count != 0) {
		if (++at == &chain->kept[PYTHON_CHAIN_LOOKS + PYTHON_CHAIN_FRAMES] && may_be_long)
			return false;
		at->frame_addr = called[--count];
		keep(at, layout, is_pointer);
	}
	set_last(chain, at);
	*digest = may_be_long ? digest_at(chain, at) : at->sum;
	return true;
}

static inline bool
is_long(const struct python_chain *chain)
{
	return chain->last_bytes + chain->least_bytes > DIGESTED_BYTES - PYTHON_CHAIN_LOOKS * sizeof(chain->kept[0]);
}

void
python_chain_forget(struct python_chain *chain)
{
	chain->last_bytes = chain->least_bytes = none_of(chain)->frame_addr = 0;
}

struct digest_rest {
	uint64_t digest;
	bool is_known;
};

/* The rest of python_chain_digest(); the result in registers, or the usual one would be kept in memory. */
static __attribute__((noinline)) struct digest_rest
digest_rest(struct python_chain *chain, const struct python_layout *layout, uint64_t frame)
{
	bool is_pointer = layout->instruction == PYTHON_INSTRUCTION_POINTER;
	struct python_chain_frame *kept;
	uint32_t fresh = 0;
	uint32_t count;

	uint64_t digest;

	if (frame == 0)
		return (struct digest_rest){ 0, false };
	if (is_pointer ? is_long(chain) && go_on(chain, layout, true, true, frame, &digest)
	               : go_on(chain, layout, false, true, frame, &digest))
		return (struct digest_rest){ digest, true };
	effort_count(KMEM_EFFORT_PYTHON_CHAINS);
	while (!(is_pointer ? follow(chain, layout, true, frame, &count, &fresh)
	                    : follow(chain, layout, false, frame, &count, &fresh))) {
		bool was_cut = chain->least_bytes != 0;

		python_chain_forget(chain);
		if (!was_cut)
			return (struct digest_rest){ 0, false };
	}
	for (kept = none_of(chain) + count; fresh != 0;) {
		*++kept = chain->fresh[--fresh];
		kept->sum = kept[-1].sum * BASE + word_of(kept, is_pointer);
	}
	set_last(chain, kept);
	return (struct digest_rest){ digest_at(chain, kept), true };
}

bool
python_chain_digest(struct python_chain *chain, const struct python_layout *layout, uint64_t frame, uint64_t *digest)
{
	uint64_t usual;

	if (__builtin_expect(
			layout->instruction == PYTHON_INSTRUCTION_POINTER && go_on(chain, layout, true, false, frame, &usual), 1)) {
		*digest = usual;
		return true;
	}
	struct digest_rest rest = digest_rest(chain, layout, frame);

	*digest = rest.digest;
	return rest.is_known;
}
