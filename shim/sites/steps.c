/*
 * steps.c - what does the program do again and again (see steps.h)?
 *
 * Two stacks of one thread, one after the other, have the same frames from the outer end to some depth. What differs there tells:
 *
 *   the same code, and its line goes back         a round of a loop in that frame, or the function was called again
 *   the same site again, with few events between  a round of a loop at that line, if no library runs below it: that may have a loop of its own
 *   other code, called by the same line           that line calls several functions, perhaps in turn; one of two orders counts as a round
 *   a library ran, and now it runs your function  a round of that function: a request, a callback
 *   the line goes on, or one stack has no frame   nothing
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_steps.c:
 *   T1  what happens inside a round, loops of its own too, is no step.
 *   T2  a loop around the present one, or one that follows it, takes over when it has made LATER_ROUNDS. Before there is any, FIRST_ROUNDS.
 *   T3  frames of libraries make no rounds, nor do threads that were given another thread's frames. Functions that they call do.
 *   T4  the program's own count, once there is one, is the only one.
 *
 * Not chosen  to look for jumps in the bytecode: it would serve Python alone, and tells where loops are, not which one is run.
 *             To look at each event: the fast path would grow, for an estimate.
 */
#include "sites/steps.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arch.h"
#include "base/clock.h"
#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "sites/site_table.h"
#include "tables/generations.h"

#define FIRST_ROUNDS 4u
#define LATER_ROUNDS 8u
#define DEPTH_MAX 128u
#define UNSAID_MAX 16u   // sites that told nothing: then the latest is where we stand
#define RESTARTS_MAX 12u // the clock has 255 ticks
// of the processor's clock, about a tenth of a millisecond, between two stacks that are compared
#define LOOK_TICKS (UINT64_C(1) << 18)
#define BURST 64u
#define EVENTS_MAX 16u // of a line that comes again, between two looks
#define MAIN_SLOT 1u
#define NO_SLOT UINT16_MAX // a loop of many threads is of none
// of a loop inside one cell, before it counts instead of the cells; twice as many each time that the cells took over again
#define CELL_ROUNDS 64u
#define CELL_DOUBLINGS 10u // at most
#define CELLS_MAX 8u       // between two looks

enum says { UNKNOWN, NOTHING, STANDS_STILL, ROUND_OF_CURRENT, ROUND_OF_CANDIDATE };

/* Of the process. relaxed, all: several threads may make steps; an estimate loses one at worst. */
static _Atomic uint64_t loop_key; // of the loop that is counted; 0 = none
static _Atomic uint32_t loop_slot;
static _Atomic bool is_loop_of_threads;   // each round is a thread
static _Atomic uint64_t thread_key;       // what the latest threads were made to run
static _Atomic uint32_t threads_with_key; // how many of them, one after the other
static _Atomic uint64_t threads_count;    // steps of the process, at the latest of them
static _Atomic uint32_t restarts;
static _Atomic uint64_t cells_seen;
static _Atomic uint32_t cell_number; // In[12] of the newest
static _Atomic uint64_t cells_run;
static _Atomic uint32_t cells_took_over;

/* ---- stacks, from the outer end ---- */

#define UNFIT_FLAGS                                                                                               \
	(KMEM_STACK_TRUNCATED | KMEM_STACK_NO_END | KMEM_STACK_IMPORT_CUT | KMEM_STACK_MERGED | KMEM_STACK_NO_STACK | \
	 KMEM_STACK_ALTERNATE | KMEM_STACK_WHILE | KMEM_STACK_STARTED_BY | KMEM_STACK_ARENA | KMEM_STACK_ESTIMATED |  \
	 KMEM_STACK_LIBRARY_ONLY)

static const struct kmem_stack *
stack_of(uint32_t site, uint32_t *index)
{
	/* relaxed: S2; the thread has found the site itself, and its stack with it. */
	*index = atomic_load_explicit(&site_table_at(site)->stack, memory_order_relaxed);
	const struct kmem_stack *stack = *index != 0 ? capture_file_item(KMEM_SECTION_RECORDS, *index) : NULL;

	return stack != NULL && (stack->record.flags & UNFIT_FLAGS) == 0 ? stack : NULL;
}

/* The frame that has `depth` others outside of it; the caller asks for those that there are. 0: the file was cut. */
static uint64_t
frame_at(const struct kmem_stack *stack, uint32_t depth)
{
	for (unsigned links = 0; links <= KMEM_STACK_CHAIN_MAX && depth < stack->frame_count; links++) {
		uint32_t inner = stack->frame_count - 1 - depth;

		if (inner < stack->own_count)
			return stack->frames[inner];
		if (stack->record.previous == 0)
			return 0;
		stack = capture_file_item(KMEM_SECTION_RECORDS, stack->record.previous);
	}
	return 0;
}

static uint64_t
code_of(uint64_t frame)
{
	return (frame & KMEM_FRAME_PYTHON) != 0 ? frame & KMEM_FRAME_CODE_MASK : 0;
}

static uint64_t
line_of(uint64_t frame)
{
	return (frame & KMEM_FRAME_PYTHON) != 0 ? frame >> KMEM_FRAME_OFFSET_SHIFT & KMEM_FRAME_OFFSET_MASK
	                                        : frame & KMEM_FRAME_PC_MASK;
}

/* May a round be made in this frame (T3)? Native ones behind Python ones are the interpreter's and of extensions. */
static bool
is_users(uint64_t frame, bool has_python)
{
	if ((frame & KMEM_FRAME_PYTHON) == 0)
		return !has_python && frame != 0;
	const struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, (uint32_t)(frame & KMEM_FRAME_CODE_MASK));

	return (code->record.flags & (KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB)) == 0;
}

static uint64_t
digest_of(const struct kmem_stack *stack, uint32_t depth)
{
	uint64_t sum = UINT64_C(0x9e3779b97f4a7c15);

	for (uint32_t i = 0; i < depth; i++)
		sum = (sum ^ frame_at(stack, i)) * UINT64_C(0xff51afd7ed558ccd) ^ sum >> 29;
	return sum | 1;
}

/* ---- loops ---- */

static struct steps_loop
loop_at(const struct kmem_stack *stack, uint32_t index, uint32_t depth, uint64_t last_line, enum steps_kind kind)
{
	uint64_t frame = frame_at(stack, depth);

	return (struct steps_loop){
		.outside = digest_of(stack, depth),
		.code = code_of(frame),
		.low = line_of(frame),
		.high = last_line,
		.depth = depth,
		.kind = kind,
		.rounds = 1,
		.stack = index,
	};
}

/* The innermost frame of Python, or of all where there is none; false: it is not the user's, who may stand at one call of a library (T3). */
static bool
users_depth(const struct kmem_stack *stack, uint32_t *depth)
{
	bool has_python = (stack->record.flags & KMEM_STACK_EVALUATOR_CUT) != 0;

	for (uint32_t i = stack->frame_count; i > 0; i--) {
		*depth = i - 1;
		if (!has_python || (frame_at(stack, i - 1) & KMEM_FRAME_PYTHON) != 0)
			return is_users(frame_at(stack, i - 1), has_python);
	}
	return false;
}

static bool
is_import(uint64_t frame)
{
	const struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, (uint32_t)(frame & KMEM_FRAME_CODE_MASK));

	return (frame & KMEM_FRAME_PYTHON) != 0 && (code->record.flags & KMEM_CODE_IMPORTLIB) != 0;
}

/*
 * In the first stack a library runs, and the second leads through it to a function of the user's: it was called since then. common: so many
 * outer frames both have. *depth: of the function.
 */
static bool
is_called_anew(const struct kmem_stack *from, const struct kmem_stack *to, uint32_t common, uint32_t *depth)
{
	uint32_t most = to->frame_count < DEPTH_MAX ? to->frame_count : DEPTH_MAX;

	if ((to->record.flags & from->record.flags & KMEM_STACK_EVALUATOR_CUT) == 0 || from->frame_count > DEPTH_MAX ||
	    (from->frame_count == common && common != 0 && is_users(frame_at(from, common - 1), true)))
		return false;
	for (uint32_t i = common; i < from->frame_count; i++) {
		if (is_users(frame_at(from, i), true))
			return false;
	}
	for (*depth = common; *depth < most && !is_users(frame_at(to, *depth), true); ++*depth) {
		if (is_import(frame_at(to, *depth)))
			return false;
	}
	return *depth < most && *depth != 0 && !is_users(frame_at(to, *depth - 1), true);
}

/* Which round does the second of the two stacks begin? `outside` 0: none. *stands_still: they tell nothing of each other. */
static struct steps_loop
round_between(const struct kmem_stack *from, const struct kmem_stack *to, uint32_t to_index, bool *stands_still)
{
	const struct steps_loop none = { 0 };
	bool has_python = (to->record.flags & KMEM_STACK_EVALUATOR_CUT) != 0;
	uint32_t most = from->frame_count < to->frame_count ? from->frame_count : to->frame_count;
	uint32_t depth = 0;
	uint32_t called;
	uint64_t before, now;

	*stands_still = false;
	while (depth < most && depth < DEPTH_MAX && frame_at(from, depth) == frame_at(to, depth))
		depth++;
	if (depth == DEPTH_MAX)
		return none;
	if (is_called_anew(from, to, depth, &called))
		return loop_at(to, to_index, called, UINT64_MAX, STEPS_CALLED);
	if (depth == most) { // one is the other's outer part, or the same lines in another domain
		*stands_still = true;
		return none;
	}
	before = frame_at(from, depth);
	now = frame_at(to, depth);
	if ((before & KMEM_FRAME_PYTHON) != (now & KMEM_FRAME_PYTHON) || !is_users(now, has_python)) {
		*stands_still = (now & KMEM_FRAME_PYTHON) == 0; // the same line, in native code
		return none;
	}
	if (code_of(before) == code_of(now))
		return line_of(now) < line_of(before) ? loop_at(to, to_index, depth, line_of(before), STEPS_LINES) : none;
	if (code_of(now) > code_of(before) || depth == 0 || !is_users(frame_at(to, depth - 1), has_python))
		return none;
	return loop_at(to, to_index, depth - 1, line_of(frame_at(to, depth - 1)), STEPS_LINE);
}

static bool
is_same(const struct steps_loop *loop, const struct steps_loop *other)
{
	return loop->outside == other->outside && loop->code == other->code && loop->depth == other->depth &&
	       loop->kind == other->kind && loop->low <= other->high && other->low <= loop->high && loop->outside != 0;
}

/* It becomes as wide as both. True: it was not yet. */
static bool
widen(struct steps_loop *loop, const struct steps_loop *other)
{
	bool is_wider = other->low < loop->low || other->high > loop->high;

	if (other->low < loop->low) {
		loop->low = other->low;
		loop->stack = other->stack;
	}
	if (other->high > loop->high)
		loop->high = other->high;
	return is_wider;
}

static bool
is_around(const struct steps_loop *outer, const struct steps_loop *inner)
{
	if (outer->depth != inner->depth)
		return outer->depth < inner->depth;
	return outer->kind == STEPS_CALLED ? inner->kind != STEPS_CALLED
	                                   : outer->kind == STEPS_LINES && inner->kind == STEPS_LINE;
}

/* T1. A round further out leads to a stack that lies inside as well. */
static bool
is_inside(const struct steps_loop *loop, const struct steps_loop *round, const struct kmem_stack *stack)
{
	uint64_t frame = loop->outside != 0 && stack->frame_count > loop->depth ? frame_at(stack, loop->depth) : 0;

	return frame != 0 && !is_around(round, loop) && code_of(frame) == loop->code && line_of(frame) >= loop->low &&
	       line_of(frame) <= loop->high && digest_of(stack, loop->depth) == loop->outside;
}

static uint64_t
key_of(const struct steps_loop *loop)
{
	return ((loop->outside ^ loop->code) * UINT64_C(0xff51afd7ed558ccd) + loop->depth * 4 + loop->kind) | 1;
}

/* ---- the process ---- */

static struct kmem_steps *
steps(void)
{
	return &capture_file_timeline()->steps;
}

/* Another source, or another loop: what was counted before is not in it. */
static void
begin(enum kmem_step_source source, uint64_t count)
{
	struct kmem_steps *now = steps();

	atomic_store_explicit(&now->count, count, memory_order_relaxed);
	atomic_store_explicit(&now->source, source, memory_order_relaxed);
	atomic_store_explicit(&now->place, 0, memory_order_relaxed);
	atomic_store_explicit(&now->began_ns, clock_now_ns(), memory_order_relaxed);
	for (unsigned i = 0; i <= KMEM_CLOCK_MAX; i++)
		atomic_store_explicit(&now->count_at[i], 0, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&restarts, 1, memory_order_relaxed) < RESTARTS_MAX)
		generations_steps_anew();
}

/* Cells, and what the program says, move the clock of generations. */
static void
tick(uint64_t count)
{
	for (uint64_t i = 0; i < count && i < 8; i++)
		generations_step();
}

/*
 * Rounds that were only recognised do not move the clock of generations: a table that is built in one loop would look like one that grows in
 * each of many steps.
 */
static void
add(uint64_t count)
{
	uint32_t from = atomic_load_explicit(&steps()->source, memory_order_relaxed);

	atomic_fetch_add_explicit(&steps()->count, count, memory_order_relaxed);
	if (from == KMEM_STEPS_PROGRAM || from == KMEM_STEPS_CELLS)
		tick(count);
}

static enum kmem_step_source
source(void)
{
	return (enum kmem_step_source)atomic_load_explicit(&steps()->source, memory_order_relaxed);
}

void
steps_next(void)
{
	if (source() != KMEM_STEPS_PROGRAM) // T4
		begin(KMEM_STEPS_PROGRAM, 0);
	add(1);
}

/* In a notebook a loop is a step of its cell, unless it is long; in a thread that serves one request it is a step of that. */
static uint32_t
rounds_to_claim(void)
{
	uint32_t times = atomic_load_explicit(&cells_took_over, memory_order_relaxed);

	if (source() != KMEM_STEPS_CELLS)
		return atomic_load_explicit(&is_loop_of_threads, memory_order_relaxed) ? CELL_ROUNDS : LATER_ROUNDS;
	return CELL_ROUNDS << (times < CELL_DOUBLINGS ? times : CELL_DOUBLINGS);
}

/* The loop, of a thread, is that of the process from now on. */
static void
claim(const struct steps_loop *loop, uint16_t slot)
{
	atomic_store_explicit(&loop_key, key_of(loop), memory_order_relaxed);
	atomic_store_explicit(&loop_slot, slot, memory_order_relaxed);
	atomic_store_explicit(&is_loop_of_threads, false, memory_order_relaxed);
	if (source() == KMEM_STEPS_PROGRAM)
		return;
	begin(KMEM_STEPS_LOOP, loop->rounds);
	atomic_store_explicit(&steps()->depth, loop->depth + 1, memory_order_relaxed);
	atomic_store_explicit(&steps()->place, kmem_twice(loop->stack), memory_order_relaxed);
}

/* It was none, the thread's own, or the main thread takes it; another thread's goes on until it rests. */
static void
take_over(struct steps_thread *thread, uint16_t slot)
{
	uint64_t known = atomic_load_explicit(&loop_key, memory_order_relaxed);
	uint32_t owner = atomic_load_explicit(&loop_slot, memory_order_relaxed);

	thread->current = thread->candidate;
	thread->candidate = (struct steps_loop){ 0 };
	thread->version++;
	thread->rounds_alone = 0;
	if (source() == KMEM_STEPS_CELLS) {
		thread->count_before = atomic_load_explicit(&steps()->count, memory_order_relaxed);
		return;
	}
	if (known == 0 || owner == slot || (slot == MAIN_SLOT && key_of(&thread->current) != known))
		claim(&thread->current, slot);
}

/* A loop whose count does not move while another thread makes LATER_ROUNDS, or as many threads begin, rests: a server waits, and its threads serve. */
static void
count_current(struct steps_thread *thread, uint16_t slot)
{
	uint64_t count = atomic_load_explicit(&steps()->count, memory_order_relaxed);

	thread->current.rounds++;
	if (key_of(&thread->current) == atomic_load_explicit(&loop_key, memory_order_relaxed)) {
		if (source() == KMEM_STEPS_LOOP)
			add(1);
		return;
	}
	thread->rounds_alone = count == thread->count_before ? thread->rounds_alone + 1 : 0;
	thread->count_before = count;
	if (thread->rounds_alone < rounds_to_claim())
		return;
	thread->current.rounds = LATER_ROUNDS;
	claim(&thread->current, slot);
}

/* How many cells were begun since the one before the newest: those that allocate nothing are not seen, but have numbers too. */
static uint32_t
cells_since(uint64_t newest)
{
	const struct kmem_cell *cell = capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)newest); // once of twice
	uint32_t number = cell != NULL ? cell->number : 0;
	uint32_t before = atomic_exchange_explicit(&cell_number, number, memory_order_relaxed);

	if (number <= before) // another kernel's namespace
		return 1;
	return number - before < CELLS_MAX ? number - before : CELLS_MAX;
}

/* Cells are noted when their code is met first. A loop of the cell before is over. */
static void
look_at_cells(void)
{
	uint64_t cells = atomic_load_explicit(&capture_file_header()->cells, memory_order_relaxed);
	uint64_t seen = atomic_load_explicit(&cells_seen, memory_order_relaxed);

	if (cells == seen || source() == KMEM_STEPS_PROGRAM ||
	    !atomic_compare_exchange_strong_explicit(&cells_seen, &seen, cells, memory_order_relaxed, memory_order_relaxed))
		return;
	uint32_t count = cells_since(cells);
	uint64_t before = atomic_fetch_add_explicit(&cells_run, count, memory_order_relaxed);

	if (source() != KMEM_STEPS_CELLS) {
		if (source() == KMEM_STEPS_LOOP && before != 0)
			atomic_fetch_add_explicit(&cells_took_over, 1, memory_order_relaxed);
		atomic_store_explicit(&loop_key, 0, memory_order_relaxed);
		begin(KMEM_STEPS_CELLS, before);
	}
	add(count);
}

/* ---- one look ---- */

static void
count_candidate(struct steps_thread *thread, uint16_t slot)
{
	if (++thread->candidate.rounds >= (thread->current.outside != 0 ? LATER_ROUNDS : FIRST_ROUNDS))
		take_over(thread, slot);
}

/* Not seen before, or not since the loops changed. */
static enum says
judge(struct steps_thread *thread, uint32_t from_site, uint32_t to_site, uint32_t *line)
{
	uint32_t from_index, to_index, depth;
	const struct kmem_stack *from = stack_of(from_site, &from_index);
	const struct kmem_stack *to = stack_of(to_site, &to_index);
	struct steps_loop round = { 0 };
	bool stands_still = false;

	if (to == NULL)
		return STANDS_STILL;
	if (from == NULL)
		return NOTHING;
	if (from_site != to_site)
		round = round_between(from, to, to_index, &stands_still);
	else if (users_depth(to, &depth))
		round = loop_at(to, to_index, depth, line_of(frame_at(to, depth)), STEPS_LINE);
	*line = round.kind == STEPS_CALLED ? (uint32_t)round.low : 0;
	if (round.kind == STEPS_CALLED)
		round.low = 0; // wherever it goes on
	if (round.outside == 0)
		return stands_still ? STANDS_STILL : NOTHING;
	if (is_same(&thread->current, &round)) {
		thread->version += widen(&thread->current, &round);
		return ROUND_OF_CURRENT;
	}
	if (is_inside(&thread->current, &round, to))
		return NOTHING;
	if (is_same(&thread->candidate, &round)) {
		thread->version += widen(&thread->candidate, &round);
		return ROUND_OF_CANDIDATE;
	}
	if (is_inside(&thread->candidate, &round, to))
		return NOTHING;
	round.rounds = 0;
	thread->candidate = round;
	thread->version++;
	return ROUND_OF_CANDIDATE;
}

/* BURST at once, then one each LOOK_TICKS: a loop is learnt within a few rounds, and a program that never does the same twice pays little. */
static bool
may_compare(struct steps_thread *thread)
{
	if (!raw_sys_has_clock()) // who reads it all the same is ended by SIGSEGV
		return false;

	uint64_t now = arch_ticks();

	if (thread->next_ticks < now ||
	    thread->next_ticks - now > (BURST + 1) * LOOK_TICKS) // the latter: another processor's clock
		thread->next_ticks = now;
	if (thread->next_ticks - now > BURST * LOOK_TICKS)
		return false;
	thread->next_ticks += LOOK_TICKS;
	return true;
}

/* A coroutine that goes on further down was not called anew. line: 0 = of another kind of round */
static bool
goes_on(struct steps_thread *thread, uint32_t line)
{
	uint32_t before = thread->called_line;

	if (line != 0)
		thread->called_line = line;
	return line != 0 && before != 0 && line > before;
}

static void
act(struct steps_thread *thread, uint16_t slot, enum says says, uint32_t line)
{
	if (goes_on(thread, line))
		return;
	if (says == ROUND_OF_CURRENT) {
		count_current(thread, slot);
		/* What follows the present loop was not behind it; a loop around it goes on. */
		if (thread->candidate.outside != 0 && !is_around(&thread->candidate, &thread->current)) {
			thread->candidate = (struct steps_loop){ 0 };
			thread->version++;
		}
	} else if (says == ROUND_OF_CANDIDATE) {
		count_candidate(thread, slot);
	}
}

/*
 * A thread's first stack that leads through a library to a function of the user's: the thread was made to run it. A server that makes a thread
 * for each request has its rounds so. False: this stack does not tell.
 */
static bool
begin_thread(uint16_t slot, uint32_t site)
{
	uint32_t index, depth;
	const struct kmem_stack *stack = stack_of(site, &index);
	const struct kmem_stack nothing = { .record.flags = KMEM_STACK_EVALUATOR_CUT };

	if (stack == NULL)
		return false;
	if (slot == MAIN_SLOT || source() == KMEM_STEPS_CELLS || !is_called_anew(&nothing, stack, 0, &depth))
		return true;
	struct steps_loop loop = loop_at(stack, index, depth, UINT64_MAX, STEPS_CALLED);
	uint64_t key = key_of(&loop);

	if (key == atomic_load_explicit(&loop_key, memory_order_relaxed)) {
		if (source() == KMEM_STEPS_LOOP)
			add(1);
		return true;
	}
	uint64_t count = atomic_load_explicit(&steps()->count, memory_order_relaxed);
	bool is_at_rest = atomic_exchange_explicit(&threads_count, count, memory_order_relaxed) == count;

	if (atomic_exchange_explicit(&thread_key, key, memory_order_relaxed) != key || !is_at_rest)
		atomic_store_explicit(&threads_with_key, 0, memory_order_relaxed);
	loop.rounds = atomic_fetch_add_explicit(&threads_with_key, 1, memory_order_relaxed) + 1;
	if (loop.rounds >= LATER_ROUNDS) {
		claim(&loop, NO_SLOT);
		atomic_store_explicit(&is_loop_of_threads, true, memory_order_relaxed);
	}
	return true;
}

void
steps_look(struct steps_thread *thread, uint16_t slot, uint32_t site, uint32_t events)
{
	uint32_t from = thread->last_site;
	uint32_t place = (from * UINT32_C(0x9e3779b1) ^ site * UINT32_C(0x85ebca6b)) >> (32 - STEPS_PAIRS_BITS);
	enum says says;
	uint32_t line = 0;

	look_at_cells();
	if (site == 0 || source() == KMEM_STEPS_PROGRAM || (site == from && events > EVENTS_MAX))
		return;
	if (from == 0) {
		if (may_compare(thread) && begin_thread(slot, site))
			thread->last_site = site;
		return;
	}
	if (thread->pairs[place].from == from && thread->pairs[place].to == site &&
	    thread->pairs[place].version == thread->version) {
		says = (enum says)thread->pairs[place].says;
		line = thread->pairs[place].line;
	} else {
		if (!may_compare(thread))
			return;
		says = judge(thread, from, site, &line);
		thread->pairs[place].from = from;
		thread->pairs[place].to = site;
		thread->pairs[place].version = thread->version;
		thread->pairs[place].says = says;
		thread->pairs[place].line = line;
	}
	act(thread, slot, says, line);
	if (says == STANDS_STILL && ++thread->unsaid < UNSAID_MAX)
		return;
	thread->unsaid = 0;
	thread->last_site = site;
}

void
steps_forked(void)
{
	atomic_store_explicit(&loop_key, 0, memory_order_relaxed);
	atomic_store_explicit(&loop_slot, 0, memory_order_relaxed);
	atomic_store_explicit(&is_loop_of_threads, false, memory_order_relaxed);
	atomic_store_explicit(&thread_key, 0, memory_order_relaxed);
	atomic_store_explicit(&threads_with_key, 0, memory_order_relaxed);
	atomic_store_explicit(&threads_count, 0, memory_order_relaxed);
	atomic_store_explicit(&restarts, 0, memory_order_relaxed);
	atomic_store_explicit(&cells_seen, 0, memory_order_relaxed);
	atomic_store_explicit(&cell_number, 0, memory_order_relaxed);
	atomic_store_explicit(&cells_run, 0, memory_order_relaxed);
	atomic_store_explicit(&cells_took_over, 0, memory_order_relaxed);
}
