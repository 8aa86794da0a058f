/*
 * test_steps.c - which rounds are seen in the stacks of allocations, and how does the clock go by them?
 */
#include "unit.h"

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "sites/steps.h"
#include "tables/generations.h"

#define SITES_MAX 64

static struct steps_thread main_thread;
static struct steps_thread worker;
static uint32_t site_count;

SETUP(start_empty)
{
	capture_file_forked();
	steps_forked();
	memset(&main_thread, 0, sizeof(main_thread));
	memset(&worker, 0, sizeof(worker));
	capture_file_header()->generation_clock = 1;
	site_count = 0;
}

static uint32_t
code(uint16_t flags)
{
	uint32_t index;
	struct kmem_code *record = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*record), &index);

	assert_non_null(record);
	record->record.type = KMEM_RECORD_CODE;
	record->record.flags = flags;
	return index;
}

static uint64_t
frame(uint32_t code_index, uint32_t line)
{
	return KMEM_FRAME_PYTHON | code_index | (uint64_t)line << KMEM_FRAME_OFFSET_SHIFT;
}

/* The outermost frame first; 0 ends it. Returns the site's number. */
static uint32_t
site(uint16_t flags, const uint64_t *frames)
{
	uint32_t stack_index, index;
	uint32_t count = 0;
	struct kmem_stack *stack;
	struct kmem_site *record;

	while (frames[count] != 0)
		count++;
	stack = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*stack) + count * 8, &stack_index);
	stack->record.type = KMEM_RECORD_STACK;
	stack->record.flags = flags;
	stack->frame_count = stack->own_count = count;
	for (uint32_t i = 0; i < count; i++)
		stack->frames[i] = frames[count - 1 - i];
	record = capture_file_append(KMEM_SECTION_SITES, sizeof(*record), &index);
	record->stack = stack_index + 1;
	record->slot = 1;
	return index + 1;
}
#define SITE(...) site(KMEM_STACK_EVALUATOR_CUT, (const uint64_t[]){ __VA_ARGS__, 0 })

static void
look(uint32_t number)
{
	main_thread.next_ticks = 0; // no two looks are too near to each other here
	steps_look(&main_thread, 1, number, 1);
}

static uint64_t
counted(void)
{
	return capture_file_timeline()->steps.count;
}

static uint32_t
source(void)
{
	return capture_file_timeline()->steps.source;
}

TEST(a_line_that_goes_back_is_a_round)
{
	uint32_t main_code = code(0);
	uint32_t first = SITE(frame(main_code, 10)), second = SITE(frame(main_code, 20)),
			 third = SITE(frame(main_code, 30));

	for (unsigned i = 0; i < 100; i++) {
		look(first);
		look(second);
		look(third);
	}
	assert_int_equal(source(), KMEM_STEPS_LOOP);
	assert_int_equal(counted(), 99); // nobody saw the first begin
	assert_int_equal(capture_file_timeline()->steps.depth, 1);
}

TEST(the_same_line_again_and_again_is_a_round_each_time)
{
	uint32_t only = SITE(frame(code(0), 10));

	for (unsigned i = 0; i < 100; i++)
		look(only);
	assert_int_equal(source(), KMEM_STEPS_LOOP);
	assert_int_equal(counted(), 99);
}

/* It may be a loop of the library's, and an import of it runs once: nobody sees whether the user's line came again. */
TEST(T3_a_line_makes_no_rounds_while_a_library_runs_below_it)
{
	uint32_t own_code = code(0);
	uint64_t own = frame(own_code, 10), library = frame(code(KMEM_CODE_LIBRARY), 7);
	uint32_t next = SITE(frame(own_code, 11));
	uint32_t sites[] = { SITE(own, library), SITE(own, library, 0x1234),
		                 SITE(own, frame(code(KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB), 5), library) };

	for (unsigned i = 0; i < 300; i++)
		look(sites[i / 100]);
	assert_int_equal(source(), KMEM_STEPS_NONE);
	assert_int_equal(counted(), 0);
	for (unsigned i = 0; i < 100; i++) { // the user's line went on in between
		look(sites[0]);
		look(sites[0]);
		look(next);
	}
	assert_int_equal(counted(), 99);
}

/* A data set of a thousand small blocks, of which every 64th is seen. */
TEST(a_line_that_makes_many_small_blocks_makes_no_rounds)
{
	uint32_t only = SITE(frame(code(0), 10));

	for (unsigned i = 0; i < 100; i++)
		steps_look(&main_thread, 1, only, 64);
	assert_int_equal(counted(), 0);
}

TEST(T1_loops_inside_a_round_are_no_steps)
{
	uint32_t main_code = code(0), step_code = code(0);
	uint32_t before = SITE(frame(main_code, 10));
	uint32_t inner = SITE(frame(main_code, 20), frame(step_code, 5));
	uint32_t other = SITE(frame(main_code, 20), frame(step_code, 7));
	uint32_t after = SITE(frame(main_code, 30));

	for (unsigned i = 0; i < 100; i++) {
		look(before);
		for (unsigned k = 0; k < 20; k++) {
			look(inner);
			look(other);
		}
		look(after);
	}
	assert_in_range(counted(), 90, 100); // of the outer one alone, once it took over
	assert_int_equal(capture_file_timeline()->steps.depth, 1);
}

TEST(T1_a_loop_is_seen_around_one_that_it_begins_with)
{
	uint32_t main_code = code(0), step_code = code(0);
	uint32_t inner = SITE(frame(main_code, 20), frame(step_code, 5));
	uint32_t after = SITE(frame(main_code, 30));

	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 20; k++)
			look(inner);
		look(after);
	}
	assert_in_range(counted(), 90, 100);
	assert_int_equal(capture_file_timeline()->steps.depth, 1);
}

TEST(T2_a_later_loop_takes_over_and_the_count_begins_anew)
{
	uint32_t main_code = code(0);
	uint32_t load = SITE(frame(main_code, 10)), parse = SITE(frame(main_code, 12));
	uint32_t forward = SITE(frame(main_code, 50)), backward = SITE(frame(main_code, 60));

	for (unsigned i = 0; i < 1000; i++) {
		look(load);
		look(parse);
	}
	assert_int_equal(counted(), 999);
	for (unsigned i = 0; i < 7; i++) {
		look(forward);
		look(backward);
	}
	assert_int_equal(counted(), 999); // not yet
	for (unsigned i = 0; i < 43; i++) {
		look(forward);
		look(backward);
	}
	assert_int_equal(counted(), 49);
}

TEST(T3_libraries_and_foreign_frames_make_no_rounds)
{
	uint32_t library = code(KMEM_CODE_LIBRARY), import = code(KMEM_CODE_IMPORTLIB), own = code(0);
	const uint64_t foreign[] = { frame(own, 10), 0 }, foreign_later[] = { frame(own, 20), 0 };
	uint32_t sites[] = { SITE(frame(library, 10)),
		                 SITE(frame(library, 20)),
		                 SITE(frame(import, 10)),
		                 SITE(frame(import, 20)),
		                 site(KMEM_STACK_WHILE, foreign),
		                 site(KMEM_STACK_STARTED_BY, foreign_later),
		                 site(KMEM_STACK_TRUNCATED, foreign) };

	for (unsigned i = 0; i < 1000; i++)
		look(sites[i % 7]);
	assert_int_equal(source(), KMEM_STEPS_NONE);
	assert_int_equal(counted(), 0);
}

/* A server: one line of the user's runs a library, which waits and calls the function that serves. */
struct server {
	uint32_t wait, accept, route, answer, later;
};

static struct server
server(uint16_t flags)
{
	uint64_t own = frame(code(0), 15);
	uint64_t library = frame(code(flags), 232), routing = frame(code(flags), 318);
	uint32_t handler = code(0), helper = code(0), writing = code(KMEM_CODE_LIBRARY);

	return (struct server){
		.wait = SITE(own, library),
		.accept = SITE(own, library, frame(code(flags), 40)),
		.route = SITE(own, library, routing, frame(handler, 5), frame(helper, 9)),
		.answer = SITE(own, library, routing, frame(handler, 7), frame(writing, 4)),
		.later = SITE(own, library, routing, frame(handler, 11)),
	};
}

TEST(a_request_is_a_round)
{
	struct server at = server(KMEM_CODE_LIBRARY);

	for (unsigned i = 0; i < 100; i++) {
		look(at.wait);
		look(at.accept);
		look(at.route);
		look(at.route); // what happens inside is no step
		look(at.answer);
		look(at.route);
	}
	assert_int_equal(source(), KMEM_STEPS_LOOP);
	assert_in_range(counted(), 98, 100);
	assert_int_equal(capture_file_timeline()->steps.depth, 4); // the function that serves is told
}

/* A loop in the function that serves is learnt from the first request. */
TEST(a_request_is_a_round_around_the_loops_in_it)
{
	struct server at = server(KMEM_CODE_LIBRARY);

	for (unsigned i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 20; k++) {
			look(at.route);
			look(at.answer);
		}
		look(at.wait);
		look(at.accept);
	}
	assert_in_range(counted(), 85, 100);
}

/* Another thread, whose first look leads through a library to what it was made to run. */
static void
serve_once(uint16_t slot, uint32_t bootstrap, uint32_t inside, unsigned rounds)
{
	memset(&worker, 0, sizeof(worker));
	steps_look(&worker, slot, bootstrap, 1);
	for (unsigned i = 0; i < rounds; i++) {
		worker.next_ticks = 0;
		steps_look(&worker, slot, inside, 1);
	}
}

TEST(a_thread_for_each_request_is_a_round)
{
	uint64_t library = frame(code(KMEM_CODE_LIBRARY), 975), handler = frame(code(0), 5);
	uint32_t before = site(KMEM_STACK_EVALUATOR_CUT | KMEM_STACK_LIBRARY_ONLY, (const uint64_t[]){ library, 0 });
	uint32_t inside = SITE(library, handler);
	uint32_t accept = SITE(frame(code(0), 15), library);
	uint32_t load = SITE(frame(code(0), 3));

	for (unsigned i = 0; i < 20; i++) { // a loop that goes on beside them stays
		look(load);
		serve_once(2, before, inside, 1);
	}
	assert_int_equal(counted(), 19);
	for (unsigned i = 0; i < 6; i++)
		serve_once(2, before, inside, 1);
	assert_int_equal(counted(), 19);
	for (unsigned i = 0; i < 93; i++) {
		serve_once((uint16_t)(2 + i % 3), before, inside, 1 + i % 2 * 30); // loops inside are no steps
		look(accept);                                                      // meanwhile a thread accepts
	}
	assert_int_equal(source(), KMEM_STEPS_LOOP);
	assert_int_equal(capture_file_timeline()->steps.depth, 2);
	assert_in_range(counted(), 95, 100);
}

/* Threads of a pool are made once, and run it again and again. */
TEST(a_pool_of_threads_goes_on_counting)
{
	static struct steps_thread pool[16];
	uint32_t inside = SITE(frame(code(KMEM_CODE_LIBRARY), 975), frame(code(0), 5));

	memset(pool, 0, sizeof(pool));
	for (unsigned i = 0; i < 16 * 300; i++) {
		pool[i % 16].next_ticks = 0;
		steps_look(&pool[i % 16], (uint16_t)(2 + i % 16), inside, 1);
	}
	assert_in_range(counted(), 3000, 4800);
}

TEST(a_coroutine_that_goes_on_is_no_new_request)
{
	struct server at = server(KMEM_CODE_LIBRARY);

	for (unsigned i = 0; i < 100; i++) {
		look(at.wait);
		look(at.route);
		look(at.accept);
		look(at.answer);
		look(at.wait);
		look(at.later);
	}
	assert_in_range(counted(), 98, 100);
}

/* Each module is another function, and what runs it is no server. */
TEST(what_an_import_runs_is_no_request)
{
	struct server at = server(KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB);

	for (unsigned i = 0; i < 100; i++) {
		look(at.wait);
		look(at.accept);
		look(at.route);
	}
	assert_int_not_equal(capture_file_timeline()->steps.depth, 4);
}

/* A loop of the user's around calls of a library that call back: its rounds count. */
TEST(a_loop_around_callbacks_takes_over)
{
	uint32_t main_code = code(0), library = code(KMEM_CODE_LIBRARY), callback = code(0);
	uint32_t load = SITE(frame(main_code, 10));
	uint32_t fit = SITE(frame(main_code, 20), frame(library, 7));
	uint32_t called = SITE(frame(main_code, 20), frame(library, 7), frame(callback, 3));

	for (unsigned i = 0; i < 100; i++) {
		look(load);
		for (unsigned k = 0; k < 5; k++) {
			look(fit);
			look(called);
		}
	}
	assert_in_range(counted(), 85, 100);
	assert_int_equal(capture_file_timeline()->steps.depth, 1);
}

TEST(T4_the_programs_own_count_is_the_only_one)
{
	uint32_t only = SITE(frame(code(0), 10));

	for (unsigned i = 0; i < 100; i++)
		look(only);
	assert_int_equal(counted(), 99);
	for (unsigned i = 0; i < 7; i++) {
		steps_next();
		for (unsigned k = 0; k < 10; k++)
			look(only);
	}
	assert_int_equal(source(), KMEM_STEPS_PROGRAM);
	assert_int_equal(counted(), 7);
}

/* In[number] was met. */
static void
cell(uint32_t number)
{
	uint32_t index;
	struct kmem_cell *made = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*made), &index);

	made->record.type = KMEM_RECORD_CELL;
	made->number = number;
	capture_file_header()->cells = kmem_twice(index + 1);
}

TEST(cells_are_steps_and_short_loops_in_them_are_not)
{
	uint32_t main_code = code(0);
	uint32_t first = SITE(frame(main_code, 10)), second = SITE(frame(main_code, 20));

	for (uint32_t number = 1; number <= 20; number++) {
		cell(number);
		for (unsigned i = 0; i < 10; i++) {
			look(first);
			look(second);
		}
		assert_int_equal(source(), KMEM_STEPS_CELLS);
		assert_int_equal(counted(), number);
	}
}

TEST(cells_without_allocations_count_too)
{
	uint32_t only = SITE(frame(code(0), 10));

	cell(1);
	look(only);
	cell(4);
	look(only);
	assert_int_equal(counted(), 4);
	cell(2); // of another kernel in the same process
	look(only);
	assert_int_equal(counted(), 5);
	cell(1000);
	look(only);
	assert_int_equal(counted(), 5 + 8); // no more at once
}

TEST(a_long_loop_of_a_cell_counts_until_the_next_cell)
{
	uint32_t main_code = code(0);
	uint32_t first = SITE(frame(main_code, 10)), second = SITE(frame(main_code, 20));

	for (uint32_t number = 1; number <= 3; number++) {
		unsigned rounds = 0;

		cell(number);
		look(first);
		assert_int_equal(source(), KMEM_STEPS_CELLS);
		assert_int_equal(counted(), number);
		for (; source() == KMEM_STEPS_CELLS && rounds < 1000; rounds++) {
			look(second);
			look(first);
		}
		assert_in_range(rounds, 60u << (number - 1), 80u << (number - 1));
	}
}

/* A second thread's loop does not disturb the main thread's; while that rests, it counts: a server's requests. */
TEST(threads_take_turns)
{
	uint32_t main_code = code(0), request_code = code(0);
	uint32_t first = SITE(frame(main_code, 10)), second = SITE(frame(main_code, 20));
	uint32_t open = SITE(frame(request_code, 10)), reply = SITE(frame(request_code, 20));

	for (unsigned i = 0; i < 50; i++) {
		look(first);
		look(second);
		worker.next_ticks = 0;
		steps_look(&worker, 2, open, 1);
		worker.next_ticks = 0;
		steps_look(&worker, 2, reply, 1);
	}
	assert_int_equal(counted(), 49);
	for (unsigned i = 0; i < 50; i++) {
		worker.next_ticks = 0;
		steps_look(&worker, 2, open, 1);
		worker.next_ticks = 0;
		steps_look(&worker, 2, reply, 1);
	}
	assert_in_range(counted(), 45, 51);
}

/* 1.5 million objects are imported, then 100 steps of a megabyte: by volume that were two ticks. */
TEST(the_clock_ticks_in_short_steps_after_a_large_import)
{
	uint8_t before, after;

	for (unsigned i = 0; i < 500; i++)
		generations_tick(1 << 20, 3000);
	before = generations_clock();
	for (unsigned i = 0; i < 100; i++) {
		steps_next();
		generations_tick(1 << 20, 1);
	}
	after = generations_clock();
	assert_in_range(after - before, 30, 45); // 8, then 8 per doubling
	assert_in_range(kmem_rough_count_of(capture_file_timeline()->steps.count_at[after]), 88, 100);
}

/* Steps that allocate alike tick no faster than by what they allocate. */
TEST(steps_and_volume_are_not_added_up)
{
	for (unsigned i = 0; i < 1000; i++)
		generations_tick(1 << 16, 1);
	uint8_t by_volume = generations_clock();
	start_empty(NULL);
	for (unsigned i = 0; i < 1000; i++) {
		steps_next();
		generations_tick(1 << 16, 1);
	}
	assert_in_range(generations_clock(), by_volume, by_volume + 3);
}

/* A week: ten billion events of 10 KiB, 100 million steps. Counters are set, not run. */
TEST(after_a_week_nothing_has_wrapped_and_a_leak_has_generations)
{
	struct kmem_header *header = capture_file_header();
	struct kmem_steps *steps = &capture_file_timeline()->steps;
	uint64_t volume = UINT64_C(10000000000) * 10240;

	steps_next();
	header->volume_bytes = header->tick_bytes = header->generation_clock_bytes = volume;
	header->tick_blocks = UINT64_C(10000000000) * KMEM_TICK_BLOCK_BYTES;
	header->generation_clock = kmem_clock_at(volume);
	steps->count = 100000000;
	steps->tick_steps = steps->count * KMEM_TICK_STEP_BYTES;
	steps->measure = volume;
	uint8_t before = generations_clock();
	assert_in_range(before, 100, KMEM_CLOCK_MAX - 16); // two doublings are left: a month
	for (unsigned i = 0; i < 1000; i++) {
		steps_next();
		generations_tick(1 << 20, 1);
	}
	assert_int_equal(steps->count, 100001000);
	assert_int_equal(generations_clock(), before); // a thousand of 100 million are no tick
	assert_true(header->volume_bytes > volume);
	assert_in_range(kmem_rough_count_of(kmem_rough_count(steps->count)), 99900000, 100001000);
	assert_int_equal(kmem_rough_count_of(kmem_rough_count(UINT64_MAX)) >> 50, 15);
}

RUN_TESTS(start_empty, NULL)
