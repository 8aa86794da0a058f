/*
 * hooks_python_end.c - has the program's own Python code ended (see hooks_python_end.h)?
 *
 * When failing  the end is noticed when the interpreter says so, after the handlers of atexit. Free-threaded builds are such a case:
 *               their code objects have no exact count of references (gh-117376 of CPython), and die with the collector's last round.
 *
 * Not chosen  the interpreter's word that it finalises, set before the handlers run: it exists only from 3.12 on, and at another place
 *             in each version. A handler of ours: handlers that were registered last run first, and ours would have to be moved whenever
 *             one is added.
 */
#include "hooks/hooks_python_end.h"

#include "base/reentry_guard.h"
#include "python/python_code.h"
#include "python/python_runtime.h"
#include "record/tracker.h"
#include "sites/call_stack.h"

static void (*on_end)(void);

/* Is there no frame of Python on the stack, but further out the function that runs programs? */
static bool
is_between_program_and_handlers(void)
{
	struct call_stack_memory *memory = thread_slot_current != NULL ? &thread_slot_current->stack : NULL;
	const struct call_stack *stack = call_stack_take(memory, __builtin_frame_address(0), CALL_STACK_WHOLE);
	bool is_inside = false;

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		if ((stack->frames[i] & KMEM_FRAME_PYTHON) != 0) { // behind the native ones another thread's may stand
			is_inside = is_inside && (stack->flags & (KMEM_STACK_WHILE | KMEM_STACK_STARTED_BY)) != 0;
			break;
		}
		is_inside = is_inside || python_runtime_runs_programs(stack->frames[i] & KMEM_FRAME_PC_MASK);
	}
	call_stack_give_back(memory, stack);
	return is_inside;
}

static void
code_dies(uint64_t code)
{
	bool has_ended = false;

	if (!tracker_is_awake() || !python_code_is_program(&python_runtime.interpreter, code) ||
	    !reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK))
		return;
	has_ended = is_between_program_and_handlers();
	reentry_guard_leave();
	if (has_ended)
		on_end();
}

void
hooks_python_end_start(void (*end)(void))
{
	on_end = end;
	python_runtime_on_death = code_dies;
}
