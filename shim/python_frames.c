/*
 * python_frames.c - the frame chain of the calling thread; see python_frames.h.
 *
 * Why raw loads are sound: the walk runs on the thread that owns the chain, inside a call that this thread
 * made. Only that thread links and unlinks its frames, a linked frame keeps its code object alive, and that
 * keeps its texts. Two things are not the thread's own. Up to 3.11 the current thread state is a global of
 * whoever holds the lock: it is used only when it proves to be ours. During finalisation other threads'
 * states are freed: then only the finalising thread is walked.
 *
 * Not chosen  the interpreter's functions: they make frame objects, which allocates, collects garbage, and
 *             runs the program's finalisers inside its malloc.
 */
#include "python_frames.h"

#include <pthread.h>
#include <stdatomic.h>

#include "capture_file.h"
#include "python_code.h"
#include "python_layout.h"
#include "python_lines.h"
#include "python_memory.h"
#include "python_runtime.h"
#include "python_stack.h"
#include "settings.h"
#include "thread_stack.h"

/* What a frame's owner byte says. */
#define OWNER_GENERATOR 1
#define OWNER_SHIM_FIRST 3 // this and above: the interpreter's own frame at the bottom of an evaluator
#define OWNER_LAST 4

#define UNIT_BYTES 2 // of bytecode

void
python_frames_start(void)
{
	if (settings.python)
		python_runtime_find();
}

void
python_frames_forked(void)
{
	if (python_frames_available()) {
		python_code_forked();
		python_lines_forked();
	}
	python_runtime_forked();
}

bool
python_frames_available(void)
{
	/* Pairs with python_runtime_find(). */
	return atomic_load_explicit(&python_runtime.state, memory_order_acquire) == PYTHON_RUNTIME_FOUND;
}

bool
python_frames_is_interpreter(uint64_t pc)
{
	return python_frames_available() && pc >= python_runtime.text_addr && pc < python_runtime.text_end;
}

/* The thread state that finalises the interpreter, or 0. relaxed: nothing is read through it. */
static uint64_t
finalizing_state(void)
{
	const _Atomic uint64_t *word = (const _Atomic uint64_t *)(python_runtime.addr +
	                                                          python_runtime.interpreter.layout.runtime_finalizing);

	return atomic_load_explicit(word, memory_order_relaxed);
}

bool
python_frames_is_finalizing(void)
{
	return python_frames_available() && finalizing_state() != 0;
}

/* --- the walk -------------------------------------------------------------------------------------- */

/* Has a second interpreter been made? Before, nobody's thread state but the thread's own can be current. */
static bool
has_subinterpreters(void)
{
	uint64_t interpreters = python_runtime.addr + python_runtime.interpreter.layout.runtime_interpreters;

	return python_memory_u64(interpreters) != python_memory_u64(interpreters + 8);
}

static uint64_t
own_thread_state(void)
{
	uint64_t own;
	uint64_t current;

	if (python_runtime.interpreter.layout.version >= 0x030c) {
		current = (uint64_t)python_runtime.current_state();
		return current != 0 ? current : (uint64_t)python_runtime.thread_state();
	}

	own = (uint64_t)python_runtime.thread_state();
	if (!has_subinterpreters())
		return own;
	current = (uint64_t)python_runtime.current_state();
	if (current != own && python_memory_is_object(current) &&
	    python_memory_u64(current + python_runtime.interpreter.layout.tstate_thread_id) == (uint64_t)pthread_self())
		return current;
	return own;
}

enum visit { VISIT_FRAME, VISIT_SKIP, VISIT_SHIM, VISIT_INVALID };

/* What is this frame, which code does it run and where is it in it? */
static inline enum visit
visit_frame(const struct python_layout *layout, uint64_t frame, uint64_t *code, uint32_t *offset)
{
	uint8_t owner = 0;

	if (!python_memory_is_object(frame))
		return VISIT_INVALID;
	if (layout->frame_owner != 0) {
		owner = python_memory_u8(frame + layout->frame_owner);
		if (owner > OWNER_LAST)
			return VISIT_INVALID;
		if (owner >= OWNER_SHIM_FIRST)
			return VISIT_SHIM;
	}

	*code = python_memory_u64(frame + layout->frame_code) & ~(uint64_t)layout->code_tag_mask;
	if (!python_memory_is_object(*code))
		return VISIT_INVALID;
	if (python_memory_u64(*code + layout->object_type) != python_runtime.interpreter.types.code)
		return layout->chain == PYTHON_CHAIN_SHIM ? VISIT_SKIP : VISIT_INVALID; // 3.13: None is allowed

	int64_t at;
	uint64_t size_bytes;

	if (layout->instruction == PYTHON_INSTRUCTION_POINTER) {
		at = (int64_t)(python_memory_u64(frame + layout->frame_instruction) -
		               (*code + layout->code_bytecode));
		size_bytes = python_memory_u64(*code + layout->object_size) * UNIT_BYTES;

		/* Being set up: arguments are not bound yet, and the interpreter hides it as well. */
		if (owner != OWNER_GENERATOR &&
		    at < UNIT_BYTES * (int64_t)python_memory_i32(*code + layout->code_first_traceable))
			return VISIT_SKIP;
	} else {
		uint64_t bytecode = python_memory_u64(*code + layout->code_bytecode);

		at = python_memory_i32(frame + layout->frame_instruction);
		if (layout->instruction == PYTHON_INSTRUCTION_UNITS)
			at *= UNIT_BYTES;
		size_bytes = python_memory_u64(bytecode + layout->object_size);
	}

	if (at < 0) // -1: before the first instruction
		at = 0;
	if ((uint64_t)at >= size_bytes || (uint64_t)at > KMEM_FRAME_OFFSET_MASK)
		return VISIT_INVALID;
	*offset = (uint32_t)at;
	return VISIT_FRAME;
}

static inline void
keep_frame(struct python_stack *stack, uint64_t code_addr, uint32_t offset)
{
	struct python_code code = python_code_find(&python_runtime.interpreter, code_addr);

	if (code.is_found) // otherwise counted as lost
		stack->frames[stack->count++] = (struct python_frame){
			.code = code.index,
			.offset = python_lines_first(code.index, offset),
			.code_flags = code.flags,
		};
}

/* Frames [first, count) run in the evaluator whose native frame holds `addr`. */
static void
set_anchor(struct python_stack *stack, uint32_t first, uint64_t addr)
{
	for (uint32_t i = first; i < stack->count; i++)
		stack->frames[i].anchor_addr = addr;
}

void
python_frames_walk(struct python_stack *stack)
{
	const struct python_layout *layout = &python_runtime.interpreter.layout;

	stack->count = 0;
	stack->omitted = 0;
	if (!python_frames_available())
		return;

	uint64_t state = own_thread_state();
	uint64_t finalizing = finalizing_state();

	if (!python_memory_is_object(state) || (finalizing != 0 && finalizing != state))
		return;

	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	uint64_t stack_end = thread_stack_end(sp);
	uint64_t cframe = layout->tstate_cframe != 0 ? python_memory_u64(state + layout->tstate_cframe) : 0;
	uint64_t frame;
	uint32_t run = 0; // first frame of the evaluator that is being read
	uint32_t visits;

	if (layout->tstate_frame != 0)
		frame = python_memory_u64(state + layout->tstate_frame);
	else if (python_memory_is_object(cframe))
		frame = python_memory_u64(cframe + layout->cframe_frame);
	else
		return;

	for (visits = 0; frame != 0 && visits < PYTHON_FRAMES_VISITS_MAX; visits++) {
		uint64_t code = 0;
		uint32_t offset = 0;
		enum visit visit = visit_frame(layout, frame, &code, &offset);
		bool ends_run = visit == VISIT_SHIM;
		uint64_t anchor = ends_run ? frame : cframe;

		if (visit == VISIT_INVALID) {
			capture_file_lost(KMEM_LOST_PYTHON_FRAMES, 1);
			break;
		}
		if (visit == VISIT_FRAME) {
			if (stack->count >= PYTHON_FRAMES_MAX)
				stack->omitted++;
			else
				keep_frame(stack, code, offset);
		}

		if (layout->chain == PYTHON_CHAIN_OBJECTS_CFRAME)
			ends_run = true;
		else if (layout->chain == PYTHON_CHAIN_CFRAME_ENTRY)
			ends_run = python_memory_u8(frame + layout->frame_is_entry) != 0;
		if (ends_run) {
			if (anchor > sp && anchor < stack_end)
				set_anchor(stack, run, anchor);
			run = stack->count;
			if (layout->chain != PYTHON_CHAIN_SHIM && layout->chain != PYTHON_CHAIN_CFRAME_SHIM &&
			    python_memory_is_object(cframe))
				cframe = python_memory_u64(cframe + layout->cframe_previous);
		}
		frame = python_memory_u64(frame + layout->frame_previous);
	}

	if (stack->count != 0 && layout->chain == PYTHON_CHAIN_OBJECTS && python_runtime.evaluator_addr != 0)
		stack->frames[0].anchor_addr =
			python_stack_find_evaluator(sp, python_memory_u64(state + layout->tstate_frame),
			                            python_runtime.evaluator_addr, python_runtime.evaluator_end);
}

/*
 * The words that a walk reads, without looking at what they mean: the multiplications run beside the chase of the links. Not
 * read: who owns a frame and where an evaluator begins. A frame of that code at that instruction and address has one owner; and
 * without KMEMSHIM_NATIVE=full only the innermost evaluator matters, to which the thread state leads.
 */
bool
python_frames_digest(uint64_t *digest)
{
	const struct python_layout *layout = &python_runtime.interpreter.layout;
	bool is_pointer = layout->instruction == PYTHON_INSTRUCTION_POINTER;
	uint64_t frame;
	uint64_t state;
	uint64_t sum;

	*digest = 0;
	if (!python_frames_available())
		return true;
	state = own_thread_state();
	if (!python_memory_is_object(state))
		return true;
	sum = state;
	if (layout->tstate_cframe != 0) { // it leads to the evaluator, and in some versions to the frame
		uint64_t cframe = python_memory_u64(state + layout->tstate_cframe);

		sum = (sum ^ cframe) * UINT64_C(0x9e3779b97f4a7c15);
		if (layout->tstate_frame == 0 && !python_memory_is_object(cframe))
			return true;
		frame = python_memory_u64(layout->tstate_frame != 0 ? state + layout->tstate_frame
		                                                    : cframe + layout->cframe_frame);
	} else {
		frame = python_memory_u64(state + layout->tstate_frame);
	}
	for (uint32_t visits = 0; frame != 0; visits++) {
		if (visits == PYTHON_FRAMES_MAX || !python_memory_is_object(frame))
			return false;
		uint64_t code = python_memory_u64(frame + layout->frame_code);
		uint64_t instruction = is_pointer ? python_memory_u64(frame + layout->frame_instruction)
		                                  : python_memory_u32(frame + layout->frame_instruction);
		sum ^= frame + (code * UINT64_C(0xff51afd7ed558ccd) ^ instruction * UINT64_C(0xc4ceb9fe1a85ec53));
		sum = (sum ^ sum >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
		frame = python_memory_u64(frame + layout->frame_previous);
	}
	*digest = (sum ^ sum >> 29) | 1;
	return true;
}
