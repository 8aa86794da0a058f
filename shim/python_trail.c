/*
 * python_trail.c - is the chain of Python frames the one of the last event (see python_trail.h)?
 *
 * Not read: who owns a frame and where an evaluator begins. A frame of that code at that instruction and address has one
 * owner; and without KMEMSHIM_NATIVE=full only the innermost evaluator matters, to which the thread state leads.
 */
#include "python_trail.h"

#include <stddef.h>

#include "python_memory.h"

#define LOOKS 4 // kept frames that are compared with a frame that has moved

/* An address says which code it is in: no two living code objects share one. */
static inline __attribute__((always_inline)) uint64_t
instruction_of(const struct python_layout *layout, bool is_pointer, uint64_t frame)
{
	if (is_pointer)
		return python_memory_u64(frame + layout->frame_instruction);
	return python_memory_u64(frame + layout->frame_code) * UINT64_C(0xff51afd7ed558ccd) +
	       python_memory_u32(frame + layout->frame_instruction);
}

static inline uint64_t
mix(uint64_t sum, const struct python_trail_frame *frame)
{
	sum ^= frame->frame_addr + frame->instruction * UINT64_C(0xc4ceb9fe1a85ec53);
	return (sum ^ sum >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* How many of kept[0, count), from its end on, the chain does not go on with as it did; kept[count - 1] is in the chain. */
static inline __attribute__((always_inline)) uint32_t
compare(const struct python_trail *trail, const struct python_layout *layout, bool is_pointer, uint32_t count)
{
	const struct python_trail_frame *kept = trail->kept + count;
	const uint64_t previous = layout->frame_previous;

	while (kept != trail->kept) {
		if (((instruction_of(layout, is_pointer, kept[-1].frame_addr) ^ kept[-1].instruction) |
		     (python_memory_u64(kept[-1].frame_addr + previous) ^ kept[-1].previous)) != 0)
			break;
		kept--;
	}
	return (uint32_t)(kept - trail->kept);
}

/* The chain from `frame` outwards. False when it cannot be read. Sets how much of kept[] it ends with, and how many are fresh. */
static inline __attribute__((always_inline)) bool
follow(struct python_trail *trail, const struct python_layout *layout, bool is_pointer, uint64_t frame, uint32_t *joined,
       uint32_t *fresh_count)
{
	uint32_t guess = trail->count;
	uint32_t count = 0;

	for (*joined = 0; frame != 0;) {
		uint32_t at = guess;

		while (at != 0 && guess - at < LOOKS && trail->kept[at - 1].frame_addr != frame)
			at--;
		if (at != 0 && trail->kept[at - 1].frame_addr == frame) {
			uint32_t changed = compare(trail, layout, is_pointer, at);

			if (changed == 0) {
				*joined = at;
				break;
			}
			for (guess = at; guess > changed && count < PYTHON_TRAIL_FRAMES; guess--)
				trail->fresh[count++] = trail->kept[guess - 1];
			frame = trail->kept[changed - 1].frame_addr;
			guess = changed - 1;
		}
		if (count == PYTHON_TRAIL_FRAMES || !python_memory_is_object(frame))
			return false;
		struct python_trail_frame *fresh = &trail->fresh[count++];

		fresh->frame_addr = frame;
		fresh->instruction = instruction_of(layout, is_pointer, frame);
		fresh->previous = frame = python_memory_u64(frame + layout->frame_previous);
	}
	*fresh_count = count;
	return *joined + count <= PYTHON_TRAIL_FRAMES;
}

/* Number + 1 of the frame among the last of kept[]; 0 = it is not there. */
static inline __attribute__((always_inline)) uint32_t
find_last(const struct python_trail *trail, uint64_t frame)
{
	uint32_t at = trail->count;

	for (unsigned looks = 0; looks < LOOKS && at != 0; looks++, at--) {
		if (trail->kept[at - 1].frame_addr == frame)
			return at;
	}
	return 0;
}

/*
 * The usual changes: the innermost frame went on, those inside it ended, or it called one more. Everything outside it is as it was.
 * False, and nothing is changed, when it is not that simple.
 */
static inline __attribute__((always_inline)) bool
go_on(struct python_trail *trail, const struct python_layout *layout, bool is_pointer, uint64_t frame, uint64_t *digest)
{
	uint32_t at = find_last(trail, frame);
	struct python_trail_frame *innermost;
	uint64_t instruction;
	uint64_t previous;

	if (!python_memory_is_object(frame))
		return false;
	previous = python_memory_u64(frame + layout->frame_previous);
	if (at != 0 && trail->kept[at - 1].previous != previous)
		return false;
	if (at == 0) {
		at = find_last(trail, previous) + 1;
		if (at == 1 || at > PYTHON_TRAIL_FRAMES)
			return false;
	}
	if (compare(trail, layout, is_pointer, at - 1) != 0)
		return false;
	innermost = &trail->kept[at - 1];
	instruction = instruction_of(layout, is_pointer, frame);
	if (innermost->frame_addr != frame || innermost->instruction != instruction || innermost->previous != previous ||
	    trail->count < at) {
		innermost->frame_addr = frame;
		innermost->instruction = instruction;
		innermost->previous = previous;
		innermost->digest = mix(at > 1 ? trail->kept[at - 2].digest : 0, innermost);
	}
	trail->count = at;
	*digest = innermost->digest;
	return true;
}

bool
python_trail_digest(struct python_trail *trail, const struct python_layout *layout, uint64_t frame, uint64_t *digest)
{
	bool is_pointer = layout->instruction == PYTHON_INSTRUCTION_POINTER;
	uint32_t fresh = 0;
	uint32_t count;

	if (is_pointer ? go_on(trail, layout, true, frame, digest) : go_on(trail, layout, false, frame, digest))
		return true;
	if (!(is_pointer ? follow(trail, layout, true, frame, &count, &fresh) : follow(trail, layout, false, frame, &count, &fresh))) {
		trail->count = 0;
		return false;
	}
	uint64_t sum = count != 0 ? trail->kept[count - 1].digest : 0;

	trail->count = count + fresh;
	for (struct python_trail_frame *kept = &trail->kept[count]; fresh != 0; kept++) {
		*kept = trail->fresh[--fresh];
		kept->digest = sum = mix(sum, kept);
	}
	*digest = sum;
	return true;
}
