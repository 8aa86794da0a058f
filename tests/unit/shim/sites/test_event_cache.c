/*
 * test_event_cache.c - is a remembered event always the one that a walk would find?
 */
#include "dive.h"
#include "unit.h"

#include <ucontext.h>

#include "capture/capture_file.h"
#include "python/python_code.h"
#include "python/python_frames.h"
#include "python/python_runtime.h"
#include "random.h"
#include "sites/event_cache.h"
#include "unwind/native_cache.h"
#include "unwind/native_stack.h"

#define NOINLINE __attribute__((noinline))
#define HERE __builtin_frame_address(0)
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") // no tail call

static struct event_cache *cache;
static struct native_caches natives;
static struct native_stack stack;
static uint64_t hits;
static uint64_t misses;
static uint32_t found;  // by the last event
static bool is_walking; // what is not remembered is walked, as for a thread that has no interpreter

SETUP(start_empty)
{
	if (cache != NULL)
		event_cache_release(cache);
	free(cache);
	cache = aligned_alloc(64, sizeof(*cache));
	memset(cache, 0, sizeof(*cache));
	memset(&natives, 0, sizeof(natives));
	hits = misses = 0;
	is_walking = false;
}

static int
start_walking(void **state)
{
	(void)start_empty(state);
	is_walking = true;
	return 0;
}

/* A site for each stack, as the site table gives them: here by the frames themselves. */
static uint32_t
site_of(const struct native_stack *walked)
{
	enum { SITES = 1 << 15 };
	static struct {
		uint32_t count;
		uint64_t pc[NATIVE_STACK_MAX];
	} sites[SITES];
	static uint32_t used;
	static uint32_t index[4 * SITES];
	uint64_t hash = walked->count;

	for (uint32_t i = 0; i < walked->count; i++)
		hash = (hash ^ walked->pc[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 31;
	for (uint64_t at = hash % (4 * SITES);; at = (at + 1) % (4 * SITES)) {
		if (index[at] == 0) {
			assert_in_range(used, 0, SITES - 1);
			sites[used].count = walked->count;
			memcpy(sites[used].pc, walked->pc, walked->count * 8);
			return index[at] = ++used;
		}
		if (sites[index[at] - 1].count == walked->count &&
		    memcmp(sites[index[at] - 1].pc, walked->pc, walked->count * 8) == 0)
			return index[at];
	}
}

static NOINLINE void
hook(void)
{
	struct event_lookup lookup = event_cache_find(cache, is_walking ? &natives : NULL, HERE, false);
	uint32_t site;

	found = lookup.site;
	assert_true(lookup.kind == EVENT_LOOKUP_WHOLE || lookup.kind == EVENT_LOOKUP_WALKED); // no Python here
	native_stack_walk(&natives.own, HERE, 0, &stack);
	assert_true(stack.is_complete && stack.is_remembered);
	site = site_of(&stack);
	if (found != 0) {
		assert_int_equal(found, site); // E1
		hits++;
	} else {
		misses++;
		event_cache_keep(cache, lookup, HERE, &natives.own, site);
	}
	KEEP_FRAME();
}

/* ---- call trees ---- */

static uint64_t random_state;
static int budget;

static void tree(unsigned depth);

static void
use(char *room)
{
	__asm__ volatile("" : : "r"(room) : "memory");
}

#define NODE(name, before)                         \
	static NOINLINE void name(unsigned depth)      \
	{                                              \
		before;                                    \
		tree(depth);                               \
		KEEP_FRAME();                              \
		if (random_below(&random_state, 3) == 0) { \
			tree(depth);                           \
			KEEP_FRAME();                          \
		}                                          \
	}
NODE(plain, (void)0)
NODE(large, char room[700]; use(room))
NODE(sized, use(__builtin_alloca(16 + 16 * random_below(&random_state, 9))))
NODE(aligned, _Alignas(64) char room[64]; use(room))

static NOINLINE void
tree(unsigned depth)
{
	static void (*const nodes[])(unsigned) = { plain, large, sized, aligned };

	if (budget-- <= 0 || depth == 0 || random_below(&random_state, 4) == 0) {
		hook();
		KEEP_FRAME();
		return;
	}
	nodes[random_below(&random_state, 4)](depth - 1);
	KEEP_FRAME();
}

TEST_WITH(E1_what_is_remembered_is_what_a_walk_finds, start_empty, NULL)
{
	uint64_t seed = random_seed();
	uint64_t which = seed;

	for (unsigned round = 0; round < 3000; round++) {
		random_state = seed + random_below(&which, 12); // a few trees, again and again
		budget = 300;
		tree(12);
	}
	print_message("%lu remembered, %lu walked\n", (unsigned long)hits, (unsigned long)misses);
	assert_true(hits > misses); // else it proves little
}

/* ---- one word ---- */

static NOINLINE void
inner(void)
{
	hook();
	KEEP_FRAME();
}

static NOINLINE void
one_way(void)
{
	inner();
	KEEP_FRAME();
}

static NOINLINE void
other_way(void)
{
	inner();
	KEEP_FRAME();
}

TEST_WITH(E1_another_caller_at_the_same_depth_is_another_event, start_empty, NULL)
{
	static void (*const paths[])(void) = { one_way, other_way };
	uint32_t sites[2] = { 0 };

	for (unsigned i = 0; i < 200; i++) {
		unsigned way = i < 20 ? 0 : i / 3 % 2;

		paths[way](); // one place: the same sp and pc, another return address further out
		if (found != 0) {
			assert_true(sites[way] == 0 || sites[way] == found);
			sites[way] = found;
		}
	}
	assert_int_not_equal(sites[0], 0);
	assert_int_not_equal(sites[1], 0);
	assert_int_not_equal(sites[0], sites[1]);
	assert_true(hits > 180);
}

/* One place of the code, whatever the compiler does to loops. */
static NOINLINE void
repeat(unsigned times)
{
	for (volatile unsigned i = 0; i < times; i++)
		one_way();
}

TEST_WITH(an_event_is_remembered_when_it_comes_again, start_empty, NULL)
{
	repeat(3);
	assert_int_equal(hits, 1); // seen, kept, found
	repeat(10);                // another place
	assert_int_equal(misses, 4);
	assert_int_equal(hits, 9);
}

TEST_WITH(E4_nothing_outlives_a_module_or_a_code_object, start_empty, NULL)
{
	repeat(5);
	assert_int_equal(misses, 2);
	native_stack_modules_changed();
	repeat(1);
	assert_int_equal(found, 0);
	repeat(5);
	assert_int_not_equal(found, 0);
	python_code_forget(0x1234560);
	repeat(1);
	assert_int_equal(found, 0);
	repeat(5);
	assert_int_not_equal(found, 0);
	event_cache_clear(cache);
	repeat(1);
	assert_int_equal(found, 0);
}

/* Recursions of every depth: many units each, again and again. */
DIVE(hook)

static NOINLINE void
dive_often(unsigned depth, unsigned times)
{
	for (volatile unsigned i = 0; i < times; i++)
		dive(depth);
}

/* Other addresses each time, within the reach of an offset. */
static NOINLINE void
dive_below(unsigned number, unsigned depth)
{
	use(__builtin_alloca(16 * (number % 20000)));
	dive_often(depth, 3);
	KEEP_FRAME();
}

TEST_WITH(when_it_is_full_it_begins_anew, start_empty, NULL)
{
	uint32_t most = 0;
	unsigned times_cleared = 0;

	for (unsigned round = 0; round < 400; round++) {
		for (unsigned depth = 20; depth < 110; depth++) {
			dive_below(round * 90 + depth, depth);
			times_cleared += cache->used < most;
			most = cache->used;
			assert_in_range(cache->used, 0, EVENT_CACHE_UNITS);
		}
	}
	assert_true(times_cleared > 3);
	assert_true(hits > 10000);
}

/* ---- many paths to one place ---- */

static uint64_t path; // one bit a frame

static void right(unsigned depth);

#define STEP(name)                                                     \
	static NOINLINE void name(unsigned depth)                          \
	{                                                                  \
		if (depth == 0)                                                \
			hook();                                                    \
		else if (path >> depth & 1)                                    \
			right(depth - 1);                                          \
		else                                                           \
			left(depth - 1);                                           \
		__asm__ volatile("# " #name ::: "memory"); /* two functions */ \
	}
static void left(unsigned depth);
STEP(left)
STEP(right)

TEST_WITH(E3_native_paths_that_read_the_same_places_are_told_apart, start_empty, NULL)
{
	enum { WAYS = 500, DEPTH = 40, ROUNDS = 20, FEW = 5 }; // some may hide each other before they are kept
	uint32_t sites[WAYS] = { 0 };
	uint64_t which = 0;
	unsigned lost = 0;

	for (volatile unsigned i = 0; i < ROUNDS * WAYS; i++) { // one place of the code
		unsigned way = i < 3 * WAYS ? i % WAYS : (unsigned)random_below(&which, WAYS);

		path = (way + 1) * UINT64_C(0x9e3779b97f4a7c15);
		left(DEPTH);
		if (i < 2 * WAYS)
			continue;
		lost += found == 0;
		assert_true(sites[way] == 0 || found == 0 || sites[way] == found);
		sites[way] = found != 0 ? found : sites[way];
	}
	assert_in_range(lost, 0, FEW * ROUNDS); // remembered, however many there are
	assert_in_range(misses, 0, 2 * WAYS + FEW * ROUNDS);
	assert_in_range(cache->used, WAYS - FEW,
	                WAYS + 2 * 8); // the offsets stand there once; twice, where some hide each other (3 runs in 200)
}

static uint64_t lines; // one bit a call

static NOINLINE void
call_itself(unsigned calls)
{
	if (calls == 0)
		hook();
	else if (lines >> calls & 1)
		call_itself(calls - 1);
	else
		call_itself(calls - 1);
	__asm__ volatile("" : : "r"(calls) : "memory");
}

/* A loop of more paths than `seen` can tell: found by the words, however many there are, from one place or from several. */
TEST_WITH(native_paths_are_remembered_however_many_come, start_empty, NULL)
{
	enum { WAYS = 2 * EVENT_CACHE_SEEN, DEPTHS = 3, ROUNDS_MAX = 40 };
	uint64_t misses_before = 0;

	/* Until it has grown enough: lines of it fill up at moments that depend on where things lie. */
	for (volatile unsigned round = 0; round < ROUNDS_MAX && (round < 2 || misses - misses_before > WAYS / 20);
	     round++) {
		misses_before = misses;
		for (volatile unsigned way = 0; way < WAYS; way++) {
			path = (way + 1) * UINT64_C(0x9e3779b97f4a7c15);
			left(30 + way % DEPTHS);
		}
	}
	assert_in_range(misses - misses_before, 0, WAYS / 20);
	assert_in_range(cache->used, 0, WAYS / 2); // most have no unit
	native_stack_modules_changed();            // E4
	misses_before = misses;
	for (volatile unsigned way = 0; way < WAYS; way++) {
		path = (way + 1) * UINT64_C(0x9e3779b97f4a7c15);
		left(30 + way % DEPTHS);
	}
	assert_true(misses - misses_before > WAYS / 2);
}

/* Each time another way through the same function, which are one stack: walked, and found by their frames. */
TEST_WITH(E1_a_native_path_that_never_came_is_found_by_its_frames, start_walking, NULL)
{
	uint64_t which = 0;

	for (volatile unsigned i = 0; i < 20000; i++) { // one place of the code
		lines = random_below(&which, UINT64_C(1) << 40);
		call_itself(3 + i % 35);
	}
	assert_in_range(misses, 1, 10);        // the outermost call from either line
	assert_in_range(cache->used, 0, 2000); // nor is it kept, then
	native_stack_modules_changed();        // E4
	lines = 0;
	for (volatile unsigned i = 0; i < 3; i++) {
		call_itself(20 + i);
		assert_true(i == 1 || (found != 0) == (i == 2));
	}
}

TEST_WITH(what_has_too_many_words_is_not_remembered, start_empty, NULL)
{
	dive_often(100, 5);
	assert_int_not_equal(found, 0);
	dive_often(300, 5);
	assert_int_equal(found, 0);
}

/* ---- another stack than the thread's ---- */

static ucontext_t coroutine, resumer;

static NOINLINE void
event_of_a_coroutine(void)
{
	struct event_lookup lookup = event_cache_find(cache, &natives, HERE, false);

	native_stack_walk(&natives.own, HERE, 0, &stack);
	found = lookup.site;
	if (found != 0)
		assert_int_equal(found, site_of(&stack));
	else
		event_cache_keep(cache, lookup, HERE, &natives.own, site_of(&stack));
	KEEP_FRAME();
}

static NOINLINE void
event_in_another_page(unsigned bytes)
{
	use(__builtin_alloca(bytes));
	event_of_a_coroutine();
	KEEP_FRAME();
}

static NOINLINE void
one_caller(unsigned bytes)
{
	event_in_another_page(bytes);
	KEEP_FRAME();
}

static NOINLINE void
other_caller(unsigned bytes)
{
	event_in_another_page(bytes);
	__asm__ volatile("# another function" ::: "memory");
}

static void
run_as_coroutine(void)
{
	for (volatile unsigned i = 0; i < 20; i++)
		event_of_a_coroutine();
	for (volatile unsigned i = 0; i < 20; i++) { // who called is told by words of a page that is not read
		(i % 2 == 0 ? one_caller : other_caller)(10000);
		assert_int_equal(found, 0);
	}
	(void)swapcontext(&coroutine, &resumer);
}

/* Nothing can be read above it. */
TEST_WITH(E2_words_of_another_stack_are_in_the_page_of_the_return_address, start_empty, NULL)
{
	enum { STACK_BYTES = 1 << 18, NOTHING_BYTES = 1 << 16 };
	char *pages = mmap(NULL, STACK_BYTES + NOTHING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + STACK_BYTES, NOTHING_BYTES, PROT_NONE), 0);
	assert_int_equal(getcontext(&coroutine), 0);
	coroutine.uc_stack.ss_sp = pages;
	coroutine.uc_stack.ss_size = STACK_BYTES;
	makecontext(&coroutine, run_as_coroutine, 0);
	assert_int_equal(swapcontext(&resumer, &coroutine), 0);
	assert_true(stack.count >= 2); // the coroutine and its hook
	(void)munmap(pages, STACK_BYTES + NOTHING_BYTES);
}

/* ---- stacks of Python frames alone ---- */

static struct {
	uint64_t previous, instruction;
} frame;
static struct {
	void *before;
	void *frame;
} thread_state; // an offset of 0 says that there is no such member

static void *
give_state(void)
{
	return &thread_state;
}

/* The event of a thread whose only frame is at that instruction. */
static struct event_lookup
find_python(uint64_t instruction)
{
	frame.instruction = instruction;
	return event_cache_find_python(cache, python_frames_state());
}

TEST_WITH(E1_stacks_of_python_that_share_a_place_are_told_apart, start_empty, NULL)
{
	uint64_t instructions[EVENT_CACHE_PYTHON_LINE];
	uint64_t first_key = 0;
	uint32_t count = 0;

	thread_state.frame = &frame;
	python_runtime.current_state = python_runtime.thread_state = give_state;
	python_runtime.interpreter.layout = (struct python_layout){
		.has_lock_for_each_interpreter = true,
		.instruction = PYTHON_INSTRUCTION_POINTER,
		.tstate_frame = offsetof(typeof(thread_state), frame),
		.frame_previous = offsetof(typeof(frame), previous),
		.frame_instruction = offsetof(typeof(frame), instruction),
	};
	for (uint64_t instruction = 2; count < EVENT_CACHE_PYTHON_LINE; instruction += 2) {
		struct event_lookup lookup = find_python(instruction);

		assert_int_equal(lookup.site, 0);
		if (count == 0)
			first_key = lookup.key;
		if (((lookup.key ^ first_key) >> 40 & (EVENT_CACHE_PYTHON - 1)) == 0)
			instructions[count++] = instruction;
	}
	for (unsigned i = 0; i < 2; i++) { // two that come in turn
		struct event_lookup lookup = find_python(instructions[i]);

		assert_int_equal(lookup.site, 0);
		event_cache_keep(cache, lookup, NULL, NULL, i + 1);
	}
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(find_python(instructions[i]).site, i + 1);
	}
	// more than that may drive each other out, and are never mixed up
	for (unsigned i = 2; i < EVENT_CACHE_PYTHON_LINE; i++) {
		struct event_lookup lookup = find_python(instructions[i]);

		assert_int_equal(lookup.site, 0);
		event_cache_keep(cache, lookup, NULL, NULL, i + 1);
		assert_int_equal(find_python(instructions[i]).site, i + 1);
		for (unsigned other = 0; other < i; other++)
			assert_true(find_python(instructions[other]).site == 0 ||
			            find_python(instructions[other]).site == other + 1);
	}
}

/* A loop of more than the places: they are found, however many there are. */
TEST_WITH(stacks_of_python_are_remembered_however_many_come, start_empty, NULL)
{
	enum { MANY = 3 * EVENT_CACHE_PYTHON };
	unsigned lost = 0;

	for (unsigned round = 0; round < 5; round++) {
		lost = 0;
		for (uint32_t i = 0; i < MANY; i++) {
			struct event_lookup lookup = find_python(2 * (i + 1));

			assert_true(lookup.site == 0 || lookup.site == i + 1);
			lost += lookup.site == 0;
			if (lookup.site == 0)
				event_cache_keep(cache, lookup, NULL, NULL, i + 1);
		}
	}
	assert_in_range(lost, 0, MANY / 200); // too many of one line
	python_code_forget(0x1234560);        // E4, where something may be remembered of it
	python_code_is_remembered(0x1234560);
	python_code_forget(0x1234560);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(find_python(2 * (i + 1)).site, 0);
}

/* ---- other domains ---- */

/* An event whose Python frames, where there are any, are its stack. */
static NOINLINE struct event_lookup
find_python_other(unsigned domain)
{
	struct event_lookup lookup = event_cache_find_other(cache, HERE, domain, true);

	assert_int_equal(lookup.kind, EVENT_LOOKUP_PYTHON);
	KEEP_FRAME();
	return lookup;
}

static NOINLINE void
other_hook(unsigned domain, uint32_t site, bool is_python, bool is_known)
{
	struct event_lookup lookup = event_cache_find_other(cache, HERE, domain, is_python);

	assert_int_equal(lookup.site, is_known ? site : 0);
	assert_int_equal(lookup.kind, EVENT_LOOKUP_WHOLE);
	if (!is_known) {
		native_stack_walk(&natives.own, HERE, 0, &stack);
		event_cache_keep(cache, lookup, HERE, &natives.own, site);
	}
	KEEP_FRAME();
}

/* One place of the code; kept when it came twice. */
static void
whole_stacks_in_each_domain(bool is_python, uint32_t first_site)
{
	for (volatile unsigned round = 0; round < 4; round++) {
		for (volatile unsigned domain = 5; domain < 8; domain++)
			other_hook(domain, first_site + domain, is_python, round >= 2);
	}
}

TEST_WITH(E1_one_stack_has_a_site_in_each_domain, start_empty, NULL)
{
	whole_stacks_in_each_domain(true, 0);
	python_runtime.state = PYTHON_RUNTIME_FOUND;
	whole_stacks_in_each_domain(false, 0x200);
	for (unsigned domain = 5; domain < 8; domain++) {
		struct event_lookup lookup = find_python_other(domain);

		assert_int_equal(lookup.site, 0);
		event_cache_keep(cache, lookup, NULL, NULL, domain);
	}
	for (unsigned domain = 5; domain < 8; domain++)
		assert_int_equal(find_python_other(domain).site, domain);
	frame.instruction += 2;
	assert_int_equal(find_python_other(5).site, 0);
	whole_stacks_in_each_domain(false, 0x300);
	python_runtime.state = PYTHON_RUNTIME_NEVER_LOOKED;
}

TEST_AGAIN(E1_what_is_walked_is_what_a_walk_finds, E1_what_is_remembered_is_what_a_walk_finds, start_walking, NULL)
TEST_AGAIN(E3_native_paths_that_are_walked_are_told_apart, E3_native_paths_that_read_the_same_places_are_told_apart,
           start_walking, NULL)
TEST_AGAIN(native_paths_that_are_walked_are_remembered_however_many_come, native_paths_are_remembered_however_many_come,
           start_walking, NULL)

int
main(void)
{
	native_stack_start();
	event_cache_start();
	return test_run(NULL, NULL, NULL, NULL);
}
