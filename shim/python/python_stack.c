/*
 * python_stack.c - the calling thread's C stack as words; see python_stack.h.
 *
 * The scan may run on a signal's or a coroutine's stack, whose end nobody knows. There the kernel is asked
 * about each page before a word is read.
 *
 * Not chosen  the first word that equals `frame`: functions that the evaluator calls save its registers, so the
 *             match is often in a frame of theirs.
 */
#include "python/python_stack.h"

#include "base/checked_memory.h"
#include "base/thread_stack.h"
#include "python/python_memory.h"

#define SCAN_BYTES 32768u
#define EVALUATOR_FRAME_BYTES 1024u // it needs 300 to 400 in 3.8 and 3.9

uint64_t
python_stack_find_evaluator(uint64_t sp, uint64_t frame, uint64_t text_addr, uint64_t text_end)
{
	uint64_t end = thread_stack_end(sp);

	sp = (sp + 7) & ~UINT64_C(7);
	if (end > sp + SCAN_BYTES)
		end = sp + SCAN_BYTES;
	end &= ~UINT64_C(7);
	if (end <= sp || (!thread_stack_contains(sp) && checked_memory_readable_from(sp, end) > sp))
		return 0;

	for (uint64_t at = sp; at < end; at += 8) {
		uint64_t word = python_memory_u64(at);

		if (word < text_addr || word >= text_end)
			continue;

		uint64_t frame_end = at + 8 + EVALUATOR_FRAME_BYTES;

		for (uint64_t local = at + 8; local < end && local < frame_end; local += 8)
			if (python_memory_u64(local) == frame)
				return at + 8;
	}
	return 0;
}
