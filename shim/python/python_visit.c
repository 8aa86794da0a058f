/*
 * python_visit.c - a thread's own copy of some bytecode; see python_visit.h.
 *
 * The array of copies is replaced when it becomes too small, and freed once no attached thread can be reading it. A thread that
 * has detached itself (it is in C code) is not waited for: it asks the kernel for the words.
 */
#include "python/python_visit.h"

#include "base/checked_memory.h"
#include "python/python_runtime.h"

uint64_t
python_visit_copy(const struct python_layout *layout, uint64_t code, int32_t copy)
{
	uint64_t copies = python_memory_u64(code + layout->code_copies);
	uint64_t at = copies + 8 + 8 * (uint64_t)(uint32_t)copy;
	struct checked_window window = { .addr = CHECKED_WINDOW_EMPTY };
	uint64_t count = 0;
	uint64_t addr = 0;

	if (copy < 0 || !python_memory_is_object(copies))
		return 0;
	if (python_runtime.current_state() != NULL) {
		count = python_memory_u64(copies);
		return (uint64_t)copy < count ? python_memory_u64(at) : 0;
	}
	if (!checked_memory_word(&window, copies, &count) || (uint64_t)copy >= count ||
	    !checked_memory_word(&window, at, &addr))
		return 0;
	return addr;
}
