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
#include "python/python_frames.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/checked_memory.h"
#include "base/effort.h"
#include "base/settings.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "python/python_cells.h"
#include "python/python_code.h"
#include "python/python_layout.h"
#include "python/python_lines.h"
#include "python/python_memory.h"
#include "python/python_runtime.h"
#include "python/python_visit.h"

#define RUN_FRAMES_MAX 16384u            // of one evaluator: followed beyond what is visited, to see where it begins
#define VISITS_MAX PYTHON_CHAIN_DIGESTED // of frames of all kinds: no others tell two stacks apart
#define SCAN_BYTES 32768u
#define EVALUATOR_FRAME_BYTES 1024u // it needs 300 to 400 in 3.8 and 3.9

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
		python_cells_forked();
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
	return python_frames_available() &&
	       ((pc >= python_runtime.text_addr && pc < python_runtime.text_end) ||
	        (pc >= python_runtime_second.text_addr && pc < python_runtime_second.text_end));
}

bool
python_frames_is_evaluator(uint64_t pc)
{
	return (pc >= python_runtime.evaluator_addr && pc < python_runtime.evaluator_end) ||
	       (pc >= python_runtime_second.evaluator_addr && pc < python_runtime_second.evaluator_end);
}

/* The thread state that finalises the interpreter, or 0. relaxed: nothing is read through it. */
static uint64_t
finalizing_state(const struct python_runtime *runtime)
{
	const _Atomic uint64_t *word = (const _Atomic uint64_t *)(runtime->addr +
	                                                          runtime->interpreter.layout.runtime_finalizing);

	return atomic_load_explicit(word, memory_order_relaxed);
}

bool
python_frames_is_attached(void)
{
	if (!python_frames_available())
		return false;

	void *current = python_runtime.current_state();

	return current != NULL && (python_runtime.interpreter.layout.has_lock_for_each_interpreter ||
	                           current == python_runtime.thread_state());
}

/* --- the walk -------------------------------------------------------------------------------------- */

/* Has a second interpreter been made? Before, nobody's thread state but the thread's own can be current. */
static inline bool
has_subinterpreters(const struct python_runtime *runtime)
{
	uint64_t interpreters = runtime->addr + runtime->interpreter.layout.runtime_interpreters;

	return python_memory_u64(interpreters) != python_memory_u64(interpreters + 8);
}

static inline uint64_t
own_thread_state(const struct python_runtime *runtime)
{
	const struct python_layout *layout = &runtime->interpreter.layout;
	uint64_t current;

	if (layout->has_lock_for_each_interpreter) {
		/* Up to 3.14 this is no thread variable; a thread that has a state has looked at its variables. */
		if (__builtin_expect(runtime->is_late, 0) && runtime->thread_state() == NULL)
			return 0;
		current = (uint64_t)runtime->current_state();
		return current != 0 ? current : (uint64_t)runtime->thread_state();
	}

	uint64_t own = (uint64_t)runtime->thread_state();

	if (!has_subinterpreters(runtime))
		return own;
	current = (uint64_t)runtime->current_state();
	if (current != own && python_memory_is_object(current) &&
	    python_memory_u64(current + layout->tstate_thread_id) == (uint64_t)pthread_self())
		return current;
	return own;
}

static bool
has_second(void)
{
	/* Pairs with python_runtime_look_at(). */
	return atomic_load_explicit(&python_runtime_second.state, memory_order_acquire) == PYTHON_RUNTIME_FOUND;
}

/* The innermost frame of a thread state, whatever it is, and what leads to it; 0 = none. */
static inline uint64_t
frame_of_state(const struct python_layout *layout, uint64_t state, uint64_t *cframe)
{
	if (layout->tstate_cframe != 0) { // it leads to the evaluator, and in some versions to the frame
		*cframe = python_memory_u64(state + layout->tstate_cframe);
		if (layout->tstate_frame == 0)
			return python_memory_is_object(*cframe) ? python_memory_u64(*cframe + layout->cframe_frame) : 0;
	}
	return python_memory_u64(state + layout->tstate_frame);
}

/* One walk that is under way. */
struct walk {
	const struct python_interpreter *python;
	struct python_stack *stack;
	uint64_t frame;  // where it stands: the next frame to look at,
	uint64_t cframe; // and the evaluator that runs it (before 3.12)
	uint64_t sp;     // anchors lie in this part of the C stack: (sp, end)
	uint64_t end;
	uint32_t run; // frames before the run of the evaluator that is being read
	uint64_t deaths;
};

/* The frames of the open run belong to one evaluator. */
static inline void
close_run(struct walk *walk, uint64_t anchor)
{
	struct python_stack *stack = walk->stack;

	for (; walk->run < stack->count; walk->run++)
		stack->frames[walk->run].anchor_addr = anchor > walk->sp && anchor < walk->end ? anchor : 0;
}

/* Goes on to the frame behind this one. */
static inline void
step(struct walk *walk, const struct python_visit *visit, enum python_visit_kind kind)
{
	const struct python_layout *layout = &walk->python->layout;

	walk->frame = python_memory_u64(visit->frame_addr + layout->frame_previous);
	if (!python_visit_ends_run(layout->chain, visit, kind))
		return;
	close_run(walk, kind == PYTHON_VISIT_SHIM ? visit->frame_addr : walk->cframe);
	if (layout->cframe_previous != 0 && layout->chain != PYTHON_CHAIN_CFRAME_SHIM &&
	    python_memory_is_object(walk->cframe))
		walk->cframe = python_memory_u64(walk->cframe + layout->cframe_previous);
}

/* From 3.11 on frames lie one behind the other, 80 bytes and more each: those of 32 KiB have a place each. */
static inline struct python_visited *
visited_at(struct python_stack *stack, uint64_t frame)
{
	return &stack->visited[frame / 64 % PYTHON_FRAMES_VISITED];
}

static inline bool
was_visited(const struct walk *walk, const struct python_visit *visit, const struct python_visited *visited)
{
	return visited->frame_addr == visit->frame_addr && visited->instruction_word == visit->instruction_word &&
	       visited->code_word == visit->code_word && visited->owner_word == visit->owner_word &&
	       visited->deaths == walk->deaths;
}

/* What the frame shows is put behind the inner ones. */
static inline void
show(struct python_stack *stack, const struct python_visited *visited)
{
	struct python_frame *frame = &stack->frames[stack->count++];

	frame->code = visited->code;
	frame->offset = visited->offset;
	frame->code_flags = visited->code_flags;
	frame->anchor_addr = 0;
}

/* The same, and remembered. */
static void
keep(struct walk *walk, const struct python_visit *visit, uint32_t offset, struct python_visited *visited)
{
	uint64_t addr = python_visit_code(&walk->python->layout, visit->code_word);
	struct python_code code = python_code_find(walk->python, addr);

	if (code.is_new_cell)
		python_cells_note(walk->python, visit->frame_addr);
	if (!code.is_found)
		return; // it is counted as lost

	visited->frame_addr = 0; // a hook may be left in the middle
	atomic_signal_fence(memory_order_seq_cst);
	visited->code_word = visit->code_word;
	visited->instruction_word = visit->instruction_word;
	visited->deaths = walk->deaths;
	visited->owner_word = visit->owner_word;
	visited->code = code.index;
	visited->offset = python_lines_first(code.index, offset);
	visited->code_flags = code.flags;
	atomic_signal_fence(memory_order_seq_cst);
	visited->frame_addr = visit->frame_addr;
	show(walk->stack, visited);
}

/*
 * There are more frames than are shown. The evaluator that runs those of the open run is where the native frames that belong to this
 * allocation end. From 3.13 on only frames further out lead to it. There may be very many, and no key of a remembered stack covers
 * them. So they are followed only where each stack is walked; else merge_cut() finds the evaluator among the native frames.
 */
static void
find_anchor(struct walk *walk)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t anchor = walk->cframe; // in 3.12 of the innermost run, the only one that counts

	if (settings.native == SETTINGS_NATIVE_ALL &&
	    (layout->chain == PYTHON_CHAIN_CFRAME_SHIM || layout->chain == PYTHON_CHAIN_SHIM)) {
		anchor = walk->frame;
		for (uint32_t i = 0; python_memory_is_object(anchor) &&
		                     python_visit_owner_word(layout, layout->chain, anchor) < PYTHON_OWNER_SHIM_FIRST;
		     i++)
			anchor = i < RUN_FRAMES_MAX ? python_memory_u64(anchor + layout->frame_previous) : 0;
	}
	close_run(walk, anchor);
}

/* Outwards, until there is no frame, or no room for one. */
static void
walk_chain(struct walk *walk)
{
	struct python_stack *stack = walk->stack;

	for (uint32_t visits = 0; walk->frame != 0; visits++) {
		struct python_visited *visited = visited_at(stack, walk->frame);
		struct python_visit visit;
		uint32_t offset = 0;
		enum python_visit_kind kind = PYTHON_VISIT_INVALID;
		bool is_known = false;

		if (python_memory_is_object(walk->frame)) {
			python_visit_read(&walk->python->layout, walk->frame, &visit);
			is_known = was_visited(walk, &visit, visited);
			kind = is_known ? PYTHON_VISIT_FRAME : python_visit_judge(walk->python, &visit, &offset);
		}
		if (kind == PYTHON_VISIT_INVALID) {
			capture_file_lost(KMEM_LOST_PYTHON_FRAMES, 1);
			return;
		}
		if (visits == VISITS_MAX || (kind == PYTHON_VISIT_FRAME && stack->count == PYTHON_FRAMES_MAX)) {
			stack->is_cut = true;
			find_anchor(walk);
			return;
		}
		if (is_known)
			show(stack, visited);
		else if (kind == PYTHON_VISIT_FRAME)
			keep(walk, &visit, offset, visited);
		else if (kind == PYTHON_VISIT_SKIP)
			python_code_is_remembered(python_visit_code(&walk->python->layout, visit.code_word));
		step(walk, &visit, kind);
	}
}

/* Where this runtime's chain begins. False on a thread that has none, or none that may be read now. */
static bool
begin(struct walk *walk, const struct python_runtime *runtime)
{
	const struct python_layout *layout = &runtime->interpreter.layout;
	uint64_t state = own_thread_state(runtime);
	uint64_t finalizing = finalizing_state(runtime);

	walk->python = &runtime->interpreter;
	walk->cframe = 0;
	if (!python_memory_is_object(state) || (finalizing != 0 && finalizing != state))
		return false;
	walk->frame = frame_of_state(layout, state, &walk->cframe);
	return walk->frame != 0;
}

/*
 * An address inside the native frame of the function [text_addr, text_end) that runs `frame`, for interpreters whose thread state leads to
 * none: the innermost return address into that function which has `frame` among the words of its own frame. 0: not found in 32 KiB of
 * this thread's stack. That may be a signal's or a coroutine's, whose end nobody knows: there the kernel is asked about each page before
 * a word is read.
 *
 * Not chosen  the first word that equals `frame`: functions that the evaluator calls save its registers, so the match is often in a frame
 *             of theirs.
 */
static uint64_t
evaluator_frame(uint64_t sp, uint64_t frame, uint64_t text_addr, uint64_t text_end)
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

void
python_frames_walk(struct python_stack *stack)
{
	const struct python_runtime *runtime = &python_runtime;
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	struct walk walk = { .stack = stack, .sp = sp, .deaths = python_code_deaths() };

	python_stack_clear(stack);
	bool has_frames = python_frames_available() && begin(&walk, runtime);

	if (!has_frames && has_second()) {
		runtime = &python_runtime_second;
		has_frames = begin(&walk, runtime);
	}
	if (!has_frames)
		return;

	uint64_t innermost = walk.frame;

	walk.end = thread_stack_end(sp);
	walk_chain(&walk);
	effort_count(KMEM_EFFORT_PYTHON_WALKS);
	effort_count_many(KMEM_EFFORT_PYTHON_FRAMES, stack->count);
	if (stack->count != 0 && walk.python->layout.chain == PYTHON_CHAIN_OBJECTS && runtime->evaluator_addr != 0) {
		stack->is_scanned = true;
		stack->frames[0].anchor_addr = evaluator_frame(sp, innermost, runtime->evaluator_addr, runtime->evaluator_end);
	}
}

/* The same of the calling thread. */
static inline uint64_t
innermost_frame(const struct python_runtime *runtime, uint64_t *state, uint64_t *cframe)
{
	*cframe = 0;
	*state = own_thread_state(runtime);
	return python_memory_is_object(*state) ? frame_of_state(&runtime->interpreter.layout, *state, cframe) : 0;
}

static inline bool
digest_of(const struct python_runtime *runtime, struct python_chain *chain, uint64_t *digest)
{
	uint64_t state;
	uint64_t cframe;
	uint64_t frame = innermost_frame(runtime, &state, &cframe);
	uint64_t sum;

	if (frame == 0)
		return true;
	if (!python_chain_digest(chain, &runtime->interpreter.layout, frame, &sum))
		return false;
	sum = (sum ^ state ^ cframe << 32) * UINT64_C(0x9e3779b97f4a7c15);
	*digest = (sum ^ sum >> 29) | 1;
	return true;
}

bool
python_frames_digest(struct python_chain *chain, uint64_t *digest)
{
	*digest = 0;
	if (!digest_of(&python_runtime, chain, digest))
		return false;
	return __builtin_expect(*digest != 0, 1) || !has_second() || digest_of(&python_runtime_second, chain, digest);
}

/* Is the current thread state this thread's own? */
static __attribute__((noinline, cold)) bool
is_own_state(struct python_chain *chain, uint64_t state)
{
	if (!python_memory_is_object(state) || own_thread_state(&python_runtime) != state)
		return false;
	chain->state_addr = state + 1;
	return true;
}

uint64_t
python_frames_state(void)
{
	return (uint64_t)python_runtime.current_state();
}

bool
python_frames_digest_attached(struct python_chain *chain, uint64_t state, uint64_t *digest)
{
	const struct python_layout *layout = &python_runtime.interpreter.layout;
	uint64_t frame;

	if (__builtin_expect(state + 1 != chain->state_addr, 0) && !is_own_state(chain, state))
		return false;
	if (layout->tstate_frame != 0) {
		frame = python_memory_u64(state + layout->tstate_frame);
	} else { // of a current state it is 0 at most
		uint64_t cframe = python_memory_u64(state + layout->tstate_cframe);

		frame = cframe != 0 ? python_memory_u64(cframe + layout->cframe_frame) : 0;
	}
	return python_chain_digest(chain, layout, frame, digest);
}

bool
python_frames_were_attached(struct python_chain *chain)
{
	bool were = chain->state_addr != 0;

	chain->state_addr = 0; // proven anew by the next one
	return were;
}

bool
python_frames_are_any(void)
{
	uint64_t state;
	uint64_t cframe;

	return python_frames_available() &&
	       (innermost_frame(&python_runtime, &state, &cframe) != 0 ||
	        (has_second() && innermost_frame(&python_runtime_second, &state, &cframe) != 0));
}
