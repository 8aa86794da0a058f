/*
 * call_stack.c - one merged stack of native and Python frames (see call_stack.h).
 *
 * Each activation of the evaluator has an address on the C stack that leads to the Python frames it runs (their anchor): the
 * native frame whose extent contains it is that evaluator, and the Python frames take its place. No symbol is looked at.
 *
 * By default the native walk ends at the innermost evaluator, and the interpreter's own frames above it are left out: the
 * Python chain is the stack from there on, and a line of Python stays one site however the interpreter got from it to malloc.
 * KMEMSHIM_NATIVE=all keeps everything. Python-only stacks (event_site.h) have none of them.
 */
#include "sites/call_stack.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/settings.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "kmem_format.h"
#include "python/python_frames.h"
#include "sites/thread_attribution.h"
#include "unwind/native_cache.h"
#include "unwind/native_stack.h"

#define SHARED_MEMORIES 16 // for threads without their own that are inside a hook at the same moment

/*
 * Invariant, tested in tests/unit/shim/sites/test_call_stack.c:
 *   C1  between take and give back a shared memory belongs to one thread; threads are never twice inside (reentry guard).
 */
static struct {
	struct turn turn;
	struct call_stack_memory memory;
} shared[SHARED_MEMORIES]; // untouched ones cost nothing

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
	push(stack, call_stack_python_frame(frame));
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
		uint16_t flags = python->frames[i].code_flags;

		if ((flags & KMEM_CODE_LIBRARY) == 0)
			return 0;
		if ((flags & KMEM_CODE_MODULE_BODY) != 0 && (python->frames[i + 1].code_flags & KMEM_CODE_IMPORTLIB) != 0)
			return i;
	}
	return 0;
}

static void
push_chain(const struct python_stack *python, struct call_stack *stack)
{
	for (uint32_t i = 0; i < python->count; i++)
		push_python(stack, &python->frames[i]);
}

/*
 * Of a walk that went on behind the evaluator: how many frames lie before it. Where it is not known by its address (built of functions that
 * call each other as their last step, from 3.14 on) those before the interpreter's first.
 */
static uint32_t
count_inside(const struct native_stack *native)
{
	uint32_t first = 0;

	while (first < native->count && !python_frames_is_interpreter(native->pc[first] & KMEM_FRAME_PC_MASK))
		first++;
	for (uint32_t i = first; i < native->count; i++) {
		if (python_frames_is_evaluator(native->pc[i] & KMEM_FRAME_PC_MASK))
			return i;
	}
	return first;
}

static void
merge_cut(const struct native_stack *native, const struct python_stack *python, struct call_stack *stack)
{
	bool is_open = python->is_cut && python->frames[0].anchor_addr == 0;
	uint32_t count = is_open ? count_inside(native) : native->count;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t pc = native->pc[i] & KMEM_FRAME_PC_MASK;

		if (i == NATIVE_STACK_INNER)
			note_gap(stack, native->omitted);
		if (!python_frames_is_interpreter(pc))
			push(stack, native->pc[i]);
	}
	push_chain(python, stack);
}

/* What stands inside the module's body is left out, native frames too. */
static void
merge_import(const struct python_stack *python, uint32_t first, struct call_stack *stack)
{
	stack->flags |= KMEM_STACK_IMPORT_CUT;
	for (uint32_t i = first; i < python->count; i++) {
		if ((python->frames[i].code_flags & KMEM_CODE_IMPORTLIB) == 0) // the machinery of the import
			push_python(stack, &python->frames[i]);
	}
}

/*
 * The line that made the arenas grow says little, but an import does: most of what it makes stays, and imports of a framework need
 * a hundred arenas. User code that runs inside an import does not count as the import.
 */
static void
take_arena(struct python_stack *python, struct call_stack *stack)
{
	for (uint32_t i = 0; i < python->count; i++) {
		uint16_t flags = python->frames[i].code_flags;

		if ((flags & KMEM_CODE_IMPORTLIB) != 0) {
			merge_import(python, import_cut(python), stack);
			if (stack->frame_count == 0) // the interpreter's own, as it starts
				push_chain(python, stack);
			return;
		}
		if ((flags & KMEM_CODE_LIBRARY) == 0)
			break;
	}
	stack->flags |= KMEM_STACK_ARENA;
	python->is_cut = false;
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
		uint64_t anchor = python->frames[*next].anchor_addr;

		if (anchor == 0 ? *next == first && end != UINT64_MAX : anchor >= end)
			return;
		push_python(stack, &python->frames[(*next)++]);
	}
}

static void
merge_native(const struct native_stack *native, struct call_stack *stack)
{
	for (uint32_t i = 0; i < native->count; i++)
		stack->frames[i] = native->pc[i];
	stack->frame_count = native->count;
	if (native->omitted != 0) {
		stack->omitted = native->omitted;
		stack->omitted_at = NATIVE_STACK_INNER;
		stack->flags |= KMEM_STACK_TRUNCATED;
	}
}

static void
merge_full(const struct native_stack *native, const struct python_stack *python, struct call_stack *stack)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < native->count; i++) {
		/* How far the last frame of a walk that broke off reaches is not known: it is not taken for an evaluator. */
		uint64_t last_end = native->is_complete ? UINT64_MAX : 0;
		uint64_t end = i + 1 < native->count ? native_stack_sp(native, i + 1) : last_end;
		uint32_t before = next;

		if (i == NATIVE_STACK_INNER)
			note_gap(stack, native->omitted);
		push_run(python, &next, end, stack);
		if (next == before) // not an evaluator
			push(stack, native->pc[i]);
	}
	push_run(python, &next, UINT64_MAX, stack);
}

/* Four products at a time, so that they do not wait for each other. The frames are compared as well: see site_table.c. */
uint64_t
call_stack_hash(const struct call_stack *stack)
{
	static const uint64_t odd[4] = { UINT64_C(0xff51afd7ed558ccd), UINT64_C(0xc4ceb9fe1a85ec53),
		                             UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9) };
	uint64_t lane[4] = { stack->flags, stack->omitted, stack->frame_count, 0 };
	uint32_t count = stack->frame_count;
	uint32_t i = 0;

	for (; i + 4 <= count; i += 4) {
		for (unsigned k = 0; k < 4; k++) {
			lane[k] = (lane[k] ^ stack->frames[i + k]) * odd[k];
			lane[k] ^= lane[k] >> 32;
		}
	}
	for (unsigned k = 0; i < count; i++, k++)
		lane[k] = (lane[k] ^ stack->frames[i]) * odd[k];

	uint64_t hash = 0;
	for (unsigned k = 0; k < 4; k++)
		hash = ((hash ^ lane[k]) * odd[k]) ^ (hash >> 29);
	return hash != 0 ? hash : 1;
}

/*
 * A thread without Python frames. A thread state with frames that run no code has a digest of its own in the event cache's key,
 * in which a parent does not show.
 */
static void
merge_alone(struct call_stack_memory *memory, struct call_stack *stack)
{
	merge_native(&memory->native, stack);
	thread_attribution_append(stack);
	if (python_frames_are_any())
		memory->is_repeatable = false;
}

/* Without the outermost frames it is not known. */
static bool
is_library_only(const struct python_stack *python)
{
	for (uint32_t i = 0; i < python->count; i++) {
		if ((python->frames[i].code_flags & (KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB)) == 0)
			return false;
	}
	return python->count != 0 && !python->is_cut;
}

/* Native frames are walked to the innermost evaluator, or to the end. */
static void
take_native(struct call_stack_memory *memory, const void *hook_frame, uint64_t stop_sp)
{
	memory->walked = native_cache_choose(&memory->caches, hook_frame);
	native_stack_walk(memory->walked, hook_frame, stop_sp, &memory->native);
	if (!memory->native.is_complete)
		memory->stack.flags |= KMEM_STACK_NO_END;
	if (memory->native.is_alternate)
		memory->stack.flags |= KMEM_STACK_ALTERNATE;
	/* A scan for the evaluator reads words that are no return addresses. */
	memory->is_repeatable = memory->native.is_complete && memory->native.is_remembered && !memory->python.is_scanned;
}

static void
take(struct call_stack_memory *memory, const void *hook_frame, enum call_stack_extent extent)
{
	struct call_stack *stack = &memory->stack;
	struct python_stack *python = &memory->python;
	uint32_t first = 0;

	stack->frame_count = stack->omitted = stack->omitted_at = 0;
	stack->flags = 0;
	python_stack_clear(python);
	memory->walked = NULL;
	memory->is_repeatable = true;
	if (python_frames_available())
		python_frames_walk(python);
	memory->is_library_only = is_library_only(python);
	/* Of a thread without Python the frames that it was given stand for all native paths. */
	if (python->count == 0 && extent == CALL_STACK_PYTHON_ONLY && !python_frames_are_any())
		thread_attribution_append(stack);
	if (extent == CALL_STACK_ARENA) {
		take_arena(python, stack);
	} else if (stack->frame_count != 0) {
		stack->flags |= KMEM_STACK_PYTHON_ONLY;
	} else if (python->count == 0 || settings.native == SETTINGS_NATIVE_ALL) {
		take_native(memory, hook_frame, 0);
		if (python->count == 0)
			merge_alone(memory, stack);
		else
			merge_full(&memory->native, python, stack);
	} else {
		stack->flags |= KMEM_STACK_EVALUATOR_CUT;
		first = import_cut(python);
		if (first != 0) {
			merge_import(python, first, stack);
		} else if (extent != CALL_STACK_WHOLE) {
			if (extent == CALL_STACK_PYTHON_ONLY)
				stack->flags |= KMEM_STACK_PYTHON_ONLY;
			push_chain(python, stack);
		} else {
			take_native(memory, hook_frame, python->frames[0].anchor_addr);
			merge_cut(&memory->native, python, stack);
		}
	}
	if (memory->is_library_only && extent != CALL_STACK_ARENA)
		thread_attribution_append_library(stack);
	if (python->is_cut || stack->omitted != 0) {
		stack->flags |= KMEM_STACK_TRUNCATED;
		stack->omitted += python->is_cut; // at least
		if (stack->omitted_at == 0)
			stack->omitted_at = stack->frame_count;
	}
	stack->hash = call_stack_hash(stack);
}

const struct call_stack *
call_stack_take(struct call_stack_memory *memory, const void *hook_frame, enum call_stack_extent extent)
{
	static const struct call_stack none = { .hash = 1, .flags = KMEM_STACK_NO_STACK };

	for (unsigned i = 0; memory == NULL && i < SHARED_MEMORIES; i++) {
		if (turn_take(&shared[i].turn)) {
			memory = &shared[i].memory;
			native_cache_clear(&memory->caches);
		}
	}
	if (memory == NULL) {
		capture_file_lost(KMEM_LOST_STACKS, 1);
		return &none;
	}
	take(memory, hook_frame, extent);
	return &memory->stack;
}

void
call_stack_give_back(const struct call_stack_memory *memory, const struct call_stack *stack)
{
	for (unsigned i = 0; memory == NULL && i < SHARED_MEMORIES; i++) {
		if (stack == &shared[i].memory.stack)
			turn_give(&shared[i].turn);
	}
}
