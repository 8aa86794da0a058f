/* unwind_libunwind.c - see unwind_libunwind.h. The only file that sees libunwind. */
#define UNW_LOCAL_ONLY
#include "unwind_libunwind.h"

#include <errno.h>
#include <libunwind.h>
#include <stdatomic.h>

#include "capture_file.h"
#include "diag.h"
#include "kmem_format.h"

#define OWN_FRAMES_MAX 64 // between this file and the hook's caller
#define NOTES_MAX      4u

void
unwind_libunwind_start(void)
{
	unw_context_t registers;
	unw_cursor_t cursor;

	/* Per thread: the global cache has a lock, which a fork could leave taken for ever. */
	(void)unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
	if (unw_getcontext(&registers) == 0 && unw_init_local(&cursor, &registers) == 0)
		(void)unw_step(&cursor);
}

void
unwind_libunwind_flush(void)
{
	unw_flush_cache(unw_local_addr_space, 0, 0);
}

static bool
position(unw_cursor_t *cursor, uint64_t *pc, uint64_t *sp)
{
	unw_word_t word_pc = 0;
	unw_word_t word_sp = 0;

	if (unw_get_reg(cursor, UNW_REG_IP, &word_pc) != 0 ||
	    unw_get_reg(cursor, UNW_REG_SP, &word_sp) != 0)
		return false;
	*pc = word_pc;
	*sp = word_sp;
	return true;
}

enum unwind_end
unwind_libunwind_walk(uint64_t first_sp, unwind_visitor *visit, void *context)
{
	int host_errno = errno;
	enum unwind_end end = UNWIND_END_LOST;
	unw_context_t registers;
	unw_cursor_t cursor;
	uint64_t pc = 0;
	uint64_t sp = 0;
	unsigned own_frames = 0;

	if (unw_getcontext(&registers) != 0 || unw_init_local(&cursor, &registers) != 0)
		goto out;
	do {
		if (++own_frames > OWN_FRAMES_MAX || unw_step(&cursor) <= 0 || !position(&cursor, &pc, &sp))
			goto out;
	} while (sp != first_sp);

	uint64_t exact =
		0; // the frame below was interrupted by a signal: its address is the instruction's own

	for (unsigned visits = 0; visits < NATIVE_STACK_VISITS_MAX; visits++) {
		uint64_t this_pc = pc | exact;
		uint64_t this_sp = sp;
		int step = unw_step(&cursor);

		if (step > 0 && !position(&cursor, &pc, &sp))
			goto out;
		if (!visit(context, this_pc, this_sp, step > 0 ? sp : 0)) {
			end = UNWIND_END_ASKED;
			goto out;
		}
		if (step <= 0 || pc == 0) {
			end = step < 0 ? UNWIND_END_LOST : UNWIND_END_OUTERMOST;
			goto out;
		}
		if (pc >> KMEM_ADDRESS_BITS != 0)
			goto out;
		exact = unw_is_signal_frame(&cursor) > 0 ? KMEM_FRAME_EXACT
		                                         : 0; // true of the interrupted frame
	}
out:
	errno = host_errno;
	return end;
}

struct comparison {
	const struct native_stack *stack;
	bool is_to_the_end;
	uint64_t position;  // frames seen
	uint64_t first_bad; // position + 1 of the first difference, 0 = none
	uint64_t pc;        // what libunwind has there
	uint64_t sp;
};

static bool
compare_frame(void *context, uint64_t pc, uint64_t sp, uint64_t cfa)
{
	struct comparison *comparison = context;
	const struct native_stack *stack = comparison->stack;
	uint64_t at = comparison->position++;

	(void)cfa;
	if (at >= NATIVE_STACK_INNER && stack->omitted != 0) {
		if (at - NATIVE_STACK_INNER < stack->omitted)
			return true; // we did not keep this one
		at -= stack->omitted;
	}
	if (at >= stack->count && !comparison->is_to_the_end)
		return false; // ours ended here, at stop_sp
	if (at < stack->count && stack->pc[at] == pc && stack->sp[at] == sp)
		return true;
	comparison->first_bad = comparison->position;
	comparison->pc = pc;
	comparison->sp = sp;
	return false;
}

void
unwind_libunwind_verify(uint64_t first_sp, const struct native_stack *stack, bool is_to_the_end)
{
	static _Atomic uint32_t notes; // relaxed: a count
	struct kmem_header *header = capture_file_header();
	struct comparison comparison = { .stack = stack, .is_to_the_end = is_to_the_end };
	uint64_t frames = (uint64_t)stack->count + stack->omitted;
	enum unwind_end end = unwind_libunwind_walk(first_sp, compare_frame, &comparison);

	if (end == UNWIND_END_LOST && comparison.first_bad == 0)
		return; // libunwind could not do it: nothing to compare with
	/* relaxed: statistics */
	atomic_fetch_add_explicit(&header->verify_checked, 1, memory_order_relaxed);
	if (comparison.first_bad == 0 && comparison.position < frames)
		comparison.first_bad = comparison.position + 1; // libunwind says that it ends earlier
	if (comparison.first_bad == 0)
		return;
	atomic_fetch_add_explicit(&header->verify_mismatched, 1, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&notes, 1, memory_order_relaxed) >= NOTES_MAX)
		return;

	char text[200];
	uint64_t at = comparison.first_bad - 1;

	if (at >= NATIVE_STACK_INNER && stack->omitted != 0)
		at -= stack->omitted;
	(void)diag_format(
		text, sizeof text,
		"unwinding differs from libunwind at frame %lu: 0x%lx (stack 0x%lx), libunwind "
		"0x%lx (stack 0x%lx)",
		comparison.first_bad - 1, at < stack->count ? stack->pc[at] : 0,
		at < stack->count ? stack->sp[at] : 0, comparison.pc, comparison.sp);
	capture_file_note(text);
}
