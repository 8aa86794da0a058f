/*
 * call_stack.c - one merged stack of native and Python frames (see call_stack.h).
 *
 * Each activation of the evaluator has an address on the C stack that leads to the Python frames it runs (their anchor): the
 * native frame whose extent contains it is that evaluator, and the Python frames take its place. No symbol is looked at.
 *
 * By default the native walk ends at the innermost evaluator, and the interpreter's own frames above it are left out: the
 * Python chain is the stack from there on, and a line of Python stays one site however the interpreter got from it to malloc.
 * KMEMSHIM_NATIVE=full keeps everything.
 */
#include "call_stack.h"

#include <stdatomic.h>
#include <stddef.h>

#include "capture_file.h"
#include "kmem_format.h"
#include "native_stack.h"
#include "python_frames.h"
#include "settings.h"

#define ROOMS 128 // threads that may be inside a hook at the same moment

/*
 * Where one event gathers its frames. A thread comes back to the room it had last, so its lines stay in its cache.
 *
 * Invariant, tested in tests/unit/test_call_stack.c:
 *   C1  between take and give back a room belongs to one thread; threads are never twice inside (reentry guard).
 */
struct room {
	_Atomic bool is_taken;
	struct call_stack stack;
	struct native_stack native;
	struct python_stack python;
	struct python_memo memo; // may have served another thread: C1 orders that
};

static struct room rooms[ROOMS]; // untouched ones cost nothing
static __thread unsigned last_room __attribute__((tls_model("initial-exec")));

static void
push(struct call_stack *stack, uint64_t frame)
{
	if (stack->frame_count < CALL_STACK_FRAMES_MAX)
		stack->frames[stack->frame_count++] = frame;
	else
		stack->omitted++;
}

static void
push_python(struct call_stack *stack, const struct python_frame *frame)
{
	push(stack, KMEM_FRAME_PYTHON | (uint64_t)frame->code |
	                (uint64_t)(frame->offset & KMEM_FRAME_OFFSET_MASK) << KMEM_FRAME_OFFSET_SHIFT);
}

/* The gap that the native walk left, now that its inner end stands in frames[]. */
static void
note_gap(struct call_stack *stack, uint32_t omitted)
{
	if (omitted == 0)
		return;
	stack->omitted += omitted;
	stack->omitted_at = stack->frame_count;
	stack->flags |= KMEM_STACK_TRUNCATED;
}

/*
 * Inside the import of a library nobody asks which of its decorators allocated: the stack begins at the innermost module body that
 * is being executed. Code of the user's own that runs inside is never cut. Returns the first frame that is kept.
 */
static uint32_t
import_cut(const struct python_stack *python)
{
	if (settings.imports_full)
		return 0;
	for (uint32_t i = 0; i + 1 < python->count; i++) {
		uint16_t flags = python_stack_at(python, i)->code_flags;

		if ((flags & KMEM_CODE_LIBRARY) == 0)
			return 0;
		if ((flags & KMEM_CODE_MODULE_BODY) != 0 &&
		    (python_stack_at(python, i + 1)->code_flags & KMEM_CODE_IMPORTLIB) != 0)
			return i;
	}
	return 0;
}

static void
merge_cut(const struct native_stack *native, const struct python_stack *python, struct call_stack *stack)
{
	uint32_t first = import_cut(python);

	stack->flags |= KMEM_STACK_EVALUATOR_CUT;
	if (first != 0) {
		stack->flags |= KMEM_STACK_IMPORT_CUT;
	} else {
		for (uint32_t i = 0; i < native->count; i++) {
			if (i == NATIVE_STACK_INNER)
				note_gap(stack, native->omitted);
			if (!python_frames_is_interpreter(native->pc[i] & KMEM_FRAME_PC_MASK))
				push(stack, native->pc[i]);
		}
	}
	for (uint32_t i = first; i < python->count; i++) {
		bool is_machinery = (python_stack_at(python, i)->code_flags & KMEM_CODE_IMPORTLIB) != 0;

		if (first == 0 || !is_machinery)
			push_python(stack, python_stack_at(python, i));
	}
}

/*
 * Emits Python frames from *next on, as long as their evaluator lies below `end` on the C stack. A frame whose anchor is unknown
 * goes with the one before it; with none before it, it waits for the end.
 */
static void
push_run(const struct python_stack *python, uint32_t *next, uint64_t end, struct call_stack *stack)
{
	uint32_t first = *next;

	while (*next < python->count) {
		uint64_t anchor = python_stack_at(python, *next)->anchor_addr;

		if (anchor == 0 ? *next == first && end != UINT64_MAX : anchor >= end)
			return;
		push_python(stack, python_stack_at(python, (*next)++));
	}
}

static void
merge_full(const struct native_stack *native, const struct python_stack *python, struct call_stack *stack)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < native->count; i++) {
		/* How far the last frame of a walk that broke off reaches is not known: it is not taken for an evaluator. */
		uint64_t last_end = native->is_complete ? UINT64_MAX : 0;
		uint64_t end = i + 1 < native->count ? native->sp[i + 1] : last_end;
		uint32_t before = next;

		if (i == NATIVE_STACK_INNER)
			note_gap(stack, native->omitted);
		push_run(python, &next, end, stack);
		if (next == before) // not an evaluator
			push(stack, native->pc[i]);
	}
	push_run(python, &next, UINT64_MAX, stack);
}

static uint64_t
hash_of(const struct call_stack *stack)
{
	uint64_t hash = stack->flags ^ (uint64_t)stack->omitted << 32;

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		hash = (hash ^ stack->frames[i]) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	return hash != 0 ? hash : 1;
}

static void
take(const void *hook_frame, struct room *room)
{
	struct call_stack *stack = &room->stack;
	struct native_stack *native = &room->native;
	struct python_stack *python = &room->python;
	uint64_t stop_sp = 0;

	stack->frame_count = stack->omitted = stack->omitted_at = 0;
	stack->flags = 0;
	*python = (struct python_stack){ 0 };
	if (python_frames_available())
		python_frames_walk(&room->memo, python);
	bool is_cut = python->count != 0 && !settings.native_full;
	if (is_cut)
		stop_sp = python_stack_at(python, 0)->anchor_addr;
	native_stack_walk(hook_frame, stop_sp, native);
	if (!native->is_complete)
		stack->flags |= KMEM_STACK_NO_END;
	if (native->is_alternate)
		stack->flags |= KMEM_STACK_ALTERNATE;
	if (is_cut)
		merge_cut(native, python, stack);
	else
		merge_full(native, python, stack);
	if (python->omitted != 0 || stack->omitted != 0) {
		stack->flags |= KMEM_STACK_TRUNCATED;
		stack->omitted += python->omitted;
		if (stack->omitted_at == 0)
			stack->omitted_at = stack->frame_count;
	}
	stack->hash = hash_of(stack);
}

const struct call_stack *
call_stack_take(const void *hook_frame)
{
	static const struct call_stack none = { .hash = 1, .flags = KMEM_STACK_NO_STACK };

	for (unsigned probe = 0; probe < ROOMS; probe++) {
		struct room *room = &rooms[(last_room + probe) % ROOMS];

		/* acquire: pairs with call_stack_give_back(); what its last user wrote is done. */
		if (atomic_exchange_explicit(&room->is_taken, true, memory_order_acquire))
			continue;
		last_room = (last_room + probe) % ROOMS;
		take(hook_frame, room);
		return &room->stack;
	}
	capture_file_lost(KMEM_LOST_STACKS, 1);
	return &none;
}

void
call_stack_give_back(const struct call_stack *stack)
{
	/* release: our use of the room comes before its next user's. Pairs with call_stack_take(). */
	if ((stack->flags & KMEM_STACK_NO_STACK) == 0)
		atomic_store_explicit(&rooms[last_room].is_taken, false, memory_order_release);
}

void
call_stack_forked(void)
{
	for (unsigned i = 0; i < ROOMS; i++)
		atomic_store_explicit(&rooms[i].is_taken, false, memory_order_relaxed);
}
