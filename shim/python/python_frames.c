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

#define RUN_FRAMES_MAX 16384u // of one evaluator: followed beyond what is visited, to see where it begins
#define DEEP_WALKS 64u        // where the chain is longer than the cache, so many walks in a row stop at what is shown
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
	void *current;

	if (!python_frames_available())
		return false;
	current = python_runtime.current_state();
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
	uint64_t own;
	uint64_t current;

	if (layout->has_lock_for_each_interpreter) {
		/* Up to 3.14 this is no thread variable; a thread that has a state has looked at its variables. */
		if (__builtin_expect(runtime->is_late, 0) && runtime->thread_state() == NULL)
			return 0;
		current = (uint64_t)runtime->current_state();
		return current != 0 ? current : (uint64_t)runtime->thread_state();
	}

	own = (uint64_t)runtime->thread_state();
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

/* One walk that is under way. Fresh visits and frames lie at the upper ends of the cache's arrays. */
struct walk {
	const struct python_interpreter *python;
	struct python_cache *cache;
	struct python_position position;
	struct python_extent extent;
	uint32_t count; // what the cache remembers, as long as it is not overwritten
	uint32_t known;
	uint32_t visits; // fresh ones
	uint32_t frames;
	uint32_t run_visits; // those before the run of the evaluator that is being read
	uint32_t run_frames;
	uint32_t changed; // innermost remembered frames that took a new visit: 0 or 1
	bool is_whole;    // every visit had room and a meaning that lasts
};

/* The fresh visits and frames of the open run, and what remembered ones continue it, belong to one evaluator. */
static inline void
close_run(struct walk *walk, uint64_t anchor, bool is_anchored)
{
	struct python_cache *cache = walk->cache;

	for (uint32_t i = walk->run_visits; i < walk->visits; i++) {
		cache->visits[PYTHON_CACHE_FRAMES - 1 - i].anchor_addr = anchor;
		cache->visits[PYTHON_CACHE_FRAMES - 1 - i].is_anchored = is_anchored;
	}
	for (uint32_t i = walk->run_frames; i < walk->frames; i++)
		cache->frames[PYTHON_CACHE_FRAMES - 1 - i].anchor_addr = is_anchored ? anchor : 0;
	walk->run_visits = walk->visits;
	walk->run_frames = walk->frames;
}

/* Where the next visit is written. */
static inline struct python_visit *
next_visit(struct walk *walk)
{
	return &walk->cache->visits[PYTHON_CACHE_FRAMES - 1 - walk->visits];
}

/* The visit in next_visit() counts, with what it found; goes on to the next frame. */
static inline void
step(struct walk *walk, struct python_visit *visit)
{
	const struct python_layout *layout = &walk->python->layout;
	struct python_cache *cache = walk->cache;
	struct python_position *position = &walk->position;
	bool ends_run = python_visit_ends_run(layout->chain, visit);

	visit->anchor_addr = position->cframe;
	visit->is_anchored = false;
	if (python_visit_is_special(layout->chain, visit))
		visit->owner_word |= PYTHON_VISIT_IS_SPECIAL;
	if (visit->kind == PYTHON_VISIT_FRAME) {
		struct python_frame *frame = &cache->frames[PYTHON_CACHE_FRAMES - 1 - walk->frames++];

		frame->code = visit->code;
		frame->offset = visit->offset;
		frame->code_flags = visit->code_flags;
		frame->anchor_addr = 0;
	}
	walk->visits++;
	if (walk->known > PYTHON_CACHE_FRAMES - walk->visits)
		walk->known = PYTHON_CACHE_FRAMES - walk->visits;

	position->frame = python_memory_u64(visit->frame_addr + layout->frame_previous);
	if (ends_run) {
		uint64_t anchor = visit->kind == PYTHON_VISIT_SHIM ? visit->frame_addr : position->cframe;

		close_run(walk, anchor, python_extent_contains(&walk->extent, anchor));
		if (layout->cframe_previous != 0 && layout->chain != PYTHON_CHAIN_CFRAME_SHIM &&
		    python_memory_is_object(position->cframe))
			position->cframe = python_memory_u64(position->cframe + layout->cframe_previous);
	}
}

/*
 * Is the innermost frame the remembered one, gone on to another instruction of the same code, and all outer ones as they were? That is
 * the usual change: the new visit takes the place of the old one. When it is not that simple, nothing has changed.
 */
static inline bool
replace_innermost(struct walk *walk, uint32_t at)
{
	const struct python_layout *layout = &walk->python->layout;
	struct python_cache *cache = walk->cache;
	struct python_visit *old = &cache->visits[at];
	struct python_visit visit;
	uint32_t offset = 0;

	python_visit_read(layout, walk->position.frame, &visit);
	if (old->kind != PYTHON_VISIT_FRAME || visit.code_word != old->code_word ||
	    visit.owner_word != (old->owner_word & ~PYTHON_VISIT_IS_SPECIAL) ||
	    python_visit_judge(walk->python, &visit, &offset) != PYTHON_VISIT_FRAME ||
	    !python_cache_continues(walk->python, cache, at, &walk->extent, walk->position))
		return false;

	old->instruction_word = visit.instruction_word;
	old->offset = python_lines_first(old->code, offset);
	cache->frames[cache->kept[at] - 1].offset = old->offset;
	walk->changed = 1;
	return true;
}

/*
 * The frame at the position, of which the cache knows at best another moment: visits[at], when at is inside. False when the chain cannot
 * be followed any further.
 */
static inline bool
visit_frame(struct walk *walk, uint32_t at)
{
	struct python_visit *visit = next_visit(walk);
	struct python_visit known = { .kind = PYTHON_VISIT_INVALID };
	uint32_t offset = 0;

	if (!python_memory_is_object(walk->position.frame))
		return false;
	if (at < walk->known)
		known = walk->cache->visits[at]; // its place may be the one that is written now
	python_visit_read(&walk->python->layout, walk->position.frame, visit);
	visit->kind = (uint8_t)python_visit_judge(walk->python, visit, &offset);
	if (visit->kind == PYTHON_VISIT_INVALID)
		return false;
	if (visit->kind == PYTHON_VISIT_FRAME) {
		struct python_code code = { .index = known.code, .flags = known.code_flags, .is_found = true };

		// else the record is the same (P2)
		if (known.kind != PYTHON_VISIT_FRAME || known.code_word != visit->code_word) {
			code = python_code_find(walk->python, python_visit_code(&walk->python->layout, visit->code_word));
			if (code.is_new_cell)
				python_cells_note(walk->python, walk->position.frame);
		}
		if (code.is_found) {
			visit->code = code.index;
			visit->code_flags = code.flags;
			visit->offset = python_lines_first(code.index, offset);
		} else { // counted as lost
			visit->kind = PYTHON_VISIT_SKIP;
			walk->is_whole = false;
		}
	} else if (visit->kind == PYTHON_VISIT_SKIP) {
		python_code_is_remembered(python_visit_code(&walk->python->layout, visit->code_word));
	}
	step(walk, visit);
	return true;
}

/*
 * The chain goes on beyond what is visited. The evaluator that runs the frames of the open run is looked for all the same: that is where
 * the native frames that belong to this allocation end.
 */
static void
find_anchor(struct walk *walk)
{
	const struct python_layout *layout = &walk->python->layout;
	uint64_t anchor = walk->position.cframe;

	if (layout->chain == PYTHON_CHAIN_CFRAME_SHIM || layout->chain == PYTHON_CHAIN_SHIM) {
		anchor = walk->position.frame;
		for (uint32_t i = 0; python_memory_is_object(anchor) &&
		                     python_visit_owner_word(layout, layout->chain, anchor) < PYTHON_OWNER_SHIM_FIRST;
		     i++)
			anchor = i < RUN_FRAMES_MAX ? python_memory_u64(anchor + layout->frame_previous) : 0;
	}
	close_run(walk, anchor, python_extent_contains(&walk->extent, anchor));
}

/*
 * Walks outwards. Returns how many remembered visits, outermost ones, the chain ends with; the fresh ones lead to these.
 */
static uint32_t
walk_chain(struct walk *walk)
{
	struct python_cache *cache = walk->cache;
	uint32_t guess = PYTHON_CACHE_FRAMES;
	uint32_t seen = 0;
	bool is_deep = cache->deep % DEEP_WALKS != 0;

	while (walk->position.frame != 0) {
		uint32_t at = python_cache_find(cache, walk->position.frame, guess, walk->known);

		if (at < walk->known) {
			struct python_position position = walk->position;
			uint32_t last = at < walk->count ? 0 : walk->count;
			uint32_t equal = python_cache_verify(walk->python, cache, at, last, &walk->extent, &position);

			guess = at - equal - 1; // wraps: no guess
			if (at < walk->count && equal == at + 1 && position.frame == 0) {
				close_run(walk, cache->visits[at].anchor_addr, cache->visits[at].is_anchored);
				return at + 1;
			}
			if (equal == 0 && at < walk->count && walk->visits == 0 && replace_innermost(walk, at))
				return at + 1;
			if (equal > PYTHON_CACHE_FRAMES - seen)
				equal = PYTHON_CACHE_FRAMES - seen;
			for (uint32_t i = 0; i < equal; i++) {
				struct python_visit *visit = next_visit(walk);

				*visit = cache->visits[at - i]; // the same place, or one behind it
				step(walk, visit);
			}
			seen += equal;
			if (equal != 0)
				continue;
		}
		if (seen++ >= PYTHON_CACHE_FRAMES || (is_deep && walk->frames > PYTHON_FRAMES_MAX)) {
			find_anchor(walk);
			walk->is_whole = false;
			cache->deep++;
			break;
		}
		if (!visit_frame(walk, at)) {
			capture_file_lost(KMEM_LOST_PYTHON_FRAMES, 1);
			walk->is_whole = false;
			break;
		}
	}
	return 0;
}

/* Starts a walk; does the cache still say something about it? Leaves it empty when not (P2, P5, P6). */
static void
recall(struct python_cache *cache, uint64_t state, uint64_t stack_end, bool is_finalizing)
{
	uint64_t deaths = python_code_deaths();

	if (cache->deaths != deaths || cache->state_addr != state || cache->stack_end != stack_end || is_finalizing)
		cache->count = cache->known = 0;
	cache->deaths = deaths;
	cache->state_addr = state;
	cache->stack_end = stack_end;
	if (cache->scanned != 0)
		cache->frames[cache->scanned - 1].anchor_addr = 0;
	cache->scanned = 0;
}

/* The last `total` frames up to frames[end - 1] are the chain's, as far as there is room for them. */
static void
show(struct walk *walk, uint32_t end, uint32_t total, uint32_t unchanged, struct python_stack *stack)
{
	struct python_cache *cache = walk->cache;
	bool was_cut = cache->is_cut;

	stack->count = total < PYTHON_FRAMES_MAX ? total : PYTHON_FRAMES_MAX;
	stack->frames = &cache->frames[end - stack->count];
	stack->is_cut = cache->is_cut = total > stack->count;
	stack->unchanged = stack->is_cut || was_cut ? 0 : unchanged;
}

/* Where this runtime's chain begins. False on a thread that has none, or none that may be read now. */
static bool
begin(struct walk *walk, const struct python_runtime *runtime, uint64_t sp)
{
	const struct python_layout *layout = &runtime->interpreter.layout;
	uint64_t state = own_thread_state(runtime);
	uint64_t finalizing = finalizing_state(runtime);
	uint64_t cframe = 0;

	walk->python = &runtime->interpreter;

	if (!python_memory_is_object(state) || (finalizing != 0 && finalizing != state))
		return false;
	if (layout->tstate_cframe != 0)
		cframe = python_memory_u64(state + layout->tstate_cframe);
	walk->position.cframe = cframe;
	if (layout->tstate_frame != 0)
		walk->position.frame = python_memory_u64(state + layout->tstate_frame);
	else if (python_memory_is_object(cframe))
		walk->position.frame = python_memory_u64(cframe + layout->cframe_frame);
	else
		return false;
	walk->extent = (struct python_extent){ .sp = sp, .end = thread_stack_end(sp) };
	recall(walk->cache, state, walk->extent.end, finalizing != 0);
	walk->count = walk->cache->count;
	walk->known = walk->cache->known;
	walk->cache->count = walk->cache->known = 0; // until the end of the walk (P6)
	return true;
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
python_frames_walk(struct python_cache *cache, struct python_stack *stack)
{
	struct walk walk = { .cache = cache, .is_whole = true };
	const struct python_runtime *runtime = &python_runtime;
	uint64_t sp = (uint64_t)__builtin_frame_address(0);

	*stack = (struct python_stack){ .frames = cache->frames };
	bool has_frames = python_frames_available() && begin(&walk, runtime, sp) && walk.position.frame != 0;

	if (!has_frames && has_second()) {
		runtime = &python_runtime_second;
		has_frames = begin(&walk, runtime, sp);
	}
	if (!has_frames) {
		cache->count = cache->known = 0;
		return;
	}

	uint64_t innermost = walk.position.frame;
	uint32_t joined = walk_chain(&walk);
	uint32_t unchanged = joined == 0 ? 0 : cache->kept[joined - 1] - walk.changed;

	effort_count(KMEM_EFFORT_PYTHON_WALKS);
	effort_count_many(KMEM_EFFORT_PYTHON_FRAMES, walk.visits + walk.changed);

	if (joined != 0 || walk.is_whole) {
		uint32_t total = walk.visits != 0 || joined == 0 ? python_cache_join(cache, joined, walk.visits, walk.frames)
		                                                 : cache->kept[joined - 1];

		show(&walk, total, total, unchanged, stack);
	} else {
		show(&walk, PYTHON_CACHE_FRAMES, walk.frames, 0, stack);
	}
	if (walk.is_whole) {
		cache->deep = 0;
		cache->count = joined + walk.visits;
		cache->known = walk.known > cache->count ? walk.known : cache->count;
	}

	if (stack->count != 0 && walk.python->layout.chain == PYTHON_CHAIN_OBJECTS && runtime->evaluator_addr != 0) {
		cache->scanned = (uint32_t)(stack->frames - cache->frames) + stack->count;
		cache->frames[cache->scanned - 1].anchor_addr = evaluator_frame(sp, innermost, runtime->evaluator_addr,
		                                                                runtime->evaluator_end);
	}
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
