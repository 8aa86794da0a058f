/*
 * test_thread_attribution.c - is a thread without Python frames given the right ones, and only those?
 */
#include "unit.h"

#include "base/settings.h"
#include "capture_fixture.h"
#include "python/fake_chain.h"
#include "sites/site_table.h"
#include "sites/thread_attribution.h"
#include "sites/thread_slot.h"
#include "sites/thread_start.h"

static uint64_t
frame_of(uint16_t code_flags, uint64_t line)
{
	uint32_t index;
	struct kmem_code *code = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*code), &index);

	assert_non_null(code);
	code->record.type = KMEM_RECORD_CODE;
	code->record.flags = code_flags;
	code->record.bytes = sizeof(*code);
	return KMEM_FRAME_PYTHON | line << KMEM_FRAME_OFFSET_SHIFT | index;
}

static struct call_stack
stack_of(uint16_t flags, unsigned count, ...)
{
	static uint64_t hash;
	struct call_stack stack = { .hash = ++hash, .flags = flags, .frame_count = count };
	va_list values;

	va_start(values, count);
	for (unsigned i = 0; i < count; i++)
		stack.frames[i] = va_arg(values, uint64_t);
	va_end(values);
	return stack;
}

/* A thread that runs Python code. What it does: */
static struct {
	struct call_stack stack; // allocates there
	uint16_t code_flags;     // and walked frames of this kind
	pthread_barrier_t allocated;
	pthread_barrier_t may_end;
} python;

static void *
python_thread(void *unused)
{
	struct thread_slot *slot = thread_slot_here();

	thread_slot_publish(slot, site_table_find(&slot->owner, &python.stack, KMEM_DOMAIN_HEAP, 1));
	slot->stack.python = (struct python_stack){ .count = 1, .frames = { { .code_flags = python.code_flags } } };
	thread_attribution_claim(&slot->parent, &slot->stack.python);
	pthread_barrier_wait(&python.allocated);
	pthread_barrier_wait(&python.may_end);
	return unused;
}

static pthread_t
begin_python(struct call_stack stack, uint16_t code_flags)
{
	pthread_t thread;

	python.stack = stack;
	python.code_flags = code_flags;
	pthread_barrier_init(&python.allocated, NULL, 2);
	pthread_barrier_init(&python.may_end, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, python_thread, NULL), 0);
	pthread_barrier_wait(&python.allocated);
	return thread;
}

static void
end_python(pthread_t thread)
{
	pthread_barrier_wait(&python.may_end);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static struct call_stack
given(void)
{
	struct call_stack stack = stack_of(0, 1, UINT64_C(0x1234));

	thread_attribution_append(&stack);
	return stack;
}

TEST(nothing_known_nothing_given)
{
	assert_non_null(thread_slot_here());
	assert_int_equal(thread_attribution_find(), 0);
	assert_int_equal(given().frame_count, 1);
	assert_int_equal(given().flags, 0);
}

TEST(Q2_the_innermost_line_of_the_users_own)
{
	uint64_t library = frame_of(KMEM_CODE_LIBRARY, 1);
	uint64_t line = frame_of(0, 2);
	uint64_t outer = frame_of(0, 3);
	pthread_t thread = begin_python(stack_of(0, 4, UINT64_C(0x5000), library, line, outer), 0);

	thread_slot_here();
	assert_int_equal(thread_attribution_find(), line);
	struct call_stack stack = given();

	assert_int_equal(stack.frame_count, 2);
	assert_int_equal(stack.frames[1], line);
	assert_int_equal(stack.flags, KMEM_STACK_WHILE);
	end_python(thread);
	assert_int_equal(thread_attribution_find(), 0); // it has ended
}

TEST(stacks_that_share_their_outer_frames_are_read_whole)
{
	struct thread_slot *slot = thread_slot_here();
	uint64_t library = frame_of(KMEM_CODE_LIBRARY, 1);
	uint64_t line = frame_of(0, 7);
	struct call_stack before = stack_of(0, 4, UINT64_C(0x5100), library, line, frame_of(0, 3));
	struct call_stack stack = before;

	stack.hash = before.hash + 1000;
	stack.frames[0] = UINT64_C(0x5200);
	python.stack = before;
	/* One slot after the other stores both: the second record holds one word of its own. */
	assert_int_not_equal(site_table_find(&slot->owner, &before, KMEM_DOMAIN_HEAP, 1), 0);
	uint32_t site = site_table_find(&slot->owner, &stack, KMEM_DOMAIN_HEAP, 1);
	uint32_t stored = atomic_load(&site_table_at(site)->stack);

	assert_int_equal(((struct kmem_stack *)capture_file_item(KMEM_SECTION_RECORDS, stored))->own_count, 1);
	pthread_t thread = begin_python(stack, 0);
	assert_int_equal(thread_attribution_find(), line);
	end_python(thread);
}

TEST(Q2_what_was_given_is_not_given_on)
{
	uint64_t line = frame_of(0, 2);
	pthread_t thread = begin_python(stack_of(KMEM_STACK_WHILE, 2, UINT64_C(0x5000), line), 0);

	thread_slot_here();
	assert_int_equal(thread_attribution_find(), 0);
	end_python(thread);
	thread = begin_python(stack_of(KMEM_STACK_STARTED_BY, 2, UINT64_C(0x6000), line), 0);
	assert_int_equal(thread_attribution_find(), 0);
	end_python(thread);
}

TEST(threads_of_libraries_do_not_speak_for_the_user)
{
	pthread_t thread = begin_python(stack_of(0, 1, frame_of(0, 2)), KMEM_CODE_LIBRARY);

	thread_slot_here();
	assert_int_equal(thread_attribution_find(), 0);
	end_python(thread);
	thread = begin_python(stack_of(0, 1, frame_of(KMEM_CODE_LIBRARY, 2)), 0);
	assert_int_equal(thread_attribution_find(), 0);
	end_python(thread);
}

TEST(nobody_is_told_the_own_last_line)
{
	struct thread_slot *slot = thread_slot_here();
	struct call_stack stack = stack_of(0, 1, frame_of(0, 2));

	thread_slot_publish(slot, site_table_find(&slot->owner, &stack, KMEM_DOMAIN_HEAP, 1));
	slot->stack.python = (struct python_stack){ .count = 1 };
	thread_attribution_claim(&slot->parent, &slot->stack.python);
	assert_int_equal(thread_attribution_find(), 0);
	thread_attribution_over();
}

TEST(what_is_done_for_an_import_is_marked)
{
	uint64_t line = frame_of(0, 2);
	uint64_t machinery = frame_of(KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB, 9);
	pthread_t thread = begin_python(stack_of(KMEM_STACK_IMPORT_CUT, 2, frame_of(KMEM_CODE_LIBRARY, 1), line), 0);

	thread_slot_here();
	(void)thread_attribution_find();
	assert_int_equal(given().flags, KMEM_STACK_WHILE | KMEM_STACK_IMPORT_CUT);
	assert_int_equal(given().frames[1], line); // without the mark
	end_python(thread);
	thread = begin_python(stack_of(0, 2, machinery, line), 0);
	(void)thread_attribution_find();
	assert_int_equal(given().flags, KMEM_STACK_WHILE | KMEM_STACK_IMPORT_CUT);
	end_python(thread);
}

TEST(lines_and_sites_are_limited)
{
	pthread_t thread;
	uint64_t sites_max = settings.sites_max;

	thread_slot_here();
	thread_attribution_forked(); // no line yet
	for (unsigned i = 0; i < THREAD_ATTRIBUTION_LINES_MAX + 3; i++) {
		uint64_t line = frame_of(0, i);

		thread = begin_python(stack_of(0, 1, line), 0);
		assert_int_equal(thread_attribution_find(), i < THREAD_ATTRIBUTION_LINES_MAX ? line : 0);
		end_python(thread);
	}
	thread_attribution_forked();
	thread = begin_python(stack_of(0, 1, frame_of(0, 1)), 0);
	assert_int_not_equal(thread_attribution_find(), 0);
	settings.sites_max = 2 * capture_file_count(KMEM_SECTION_SITES);
	assert_int_equal(thread_attribution_find(), 0);
	settings.sites_max = sites_max;
	end_python(thread);
}

/* ---- started by ---- */

static uint64_t given_key;
static struct call_stack given_stack;
static struct thread_start *inherited;

static void
start_chain(unsigned count)
{
	static uint64_t area[CFRAMES][4];

	cframes = area;
	start(0x030d);
	chain_of(count);
	(void)heap_cframe;
}

static void *
new_thread(void *start_record)
{
	thread_start_begin(start_record);
	present_state = NULL; // no Python here
	given_key = thread_attribution_find();
	given_stack = given();
	inherited = thread_start_prepare(NULL, NULL);
	present_state = (char *)state;
	return NULL;
}

TEST(Q1_Q3_a_thread_knows_where_it_was_made)
{
	pthread_t thread;

	start_chain(3);
	thread_slot_here();
	struct thread_start *start_record = thread_start_prepare(new_thread, &thread);
	assert_non_null(start_record);
	assert_int_equal(start_record->count, 3);
	assert_ptr_equal(start_record->routine, new_thread);
	assert_ptr_equal(start_record->argument, &thread);
	struct thread_start *second = thread_start_prepare(NULL, NULL);
	assert_ptr_not_equal(second, start_record); // Q3
	thread_start_forget(second);

	uint64_t innermost = start_record->frames[0];

	assert_int_equal(pthread_create(&thread, NULL, new_thread, start_record), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_not_equal(given_key, 0);
	assert_int_equal(given_stack.frame_count, 4);
	assert_int_equal(given_stack.frames[1], innermost);
	assert_int_equal(given_stack.flags, KMEM_STACK_STARTED_BY);
	assert_non_null(inherited); // by the threads that it makes
	assert_int_equal(inherited->count, 3);
	assert_int_equal(inherited->frames[0], innermost);
	thread_start_forget(inherited);

	uint64_t key = given_key;
	chain_of(2);
	start_record = thread_start_prepare(new_thread, NULL);
	assert_int_equal(pthread_create(&thread, NULL, new_thread, start_record), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_not_equal(given_key, key); // Q1
	assert_int_equal(given_stack.frame_count, 3);
	thread_start_forget(inherited);

	/* The slot goes on to a thread that nobody said anything about. */
	atomic_store(&python_runtime.state, PYTHON_RUNTIME_NOT_FOUND);
	struct thread_start empty = { .is_taken = true };
	assert_int_equal(pthread_create(&thread, NULL, new_thread, &empty), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(given_stack.frame_count, 1);
	assert_null(inherited);
}

TEST(Q3_without_records_threads_are_made_all_the_same)
{
	struct thread_start *taken[80];
	unsigned count = 0;

	start_chain(1);
	thread_slot_here();
	while (count < 80 && (taken[count] = thread_start_prepare(NULL, NULL)) != NULL)
		count++;
	assert_int_equal(count, 64);
	while (count-- != 0)
		thread_start_forget(taken[count]);
	assert_non_null(taken[0] = thread_start_prepare(NULL, NULL));
	thread_start_forget(taken[0]);
	atomic_store(&python_runtime.state, PYTHON_RUNTIME_NOT_FOUND);
	assert_null(thread_start_prepare(NULL, NULL));
}

static struct call_stack library_stack;

static void *
library_thread(void *start_record)
{
	struct thread_slot *slot = thread_slot_here();

	slot->parent.has_kept_library = true;
	slot->events.python[5].key = 5;
	thread_start_begin(start_record);
	assert_int_equal(slot->events.python[5].key, 0); // Q1: of the slot's thread before
	given_key = thread_attribution_find_library(&slot->parent);
	library_stack = stack_of(0, 1, UINT64_C(0x1234));
	thread_attribution_append_library(&library_stack);
	return NULL;
}

/* Frames of libraries at the inner end are left out: what was given begins with a line of the user's. */
TEST(Q1_a_thread_that_runs_a_library_is_given_lines)
{
	static const struct {
		uint32_t libraries; // between the user's line and the new thread
		uint32_t frame_count;
		uint16_t flags;
	} cases[] = {
		{ 0, 4, KMEM_STACK_STARTED_BY | KMEM_STACK_LIBRARY_ONLY },
		{ 1, 3, KMEM_STACK_STARTED_BY | KMEM_STACK_LIBRARY_ONLY },
		{ 2, 3, KMEM_STACK_WHILE | KMEM_STACK_STARTED_BY | KMEM_STACK_LIBRARY_ONLY }, // a pool
		{ 3, 2, KMEM_STACK_WHILE | KMEM_STACK_LIBRARY_ONLY },
	};
	uint64_t line = frame_of(0, 2);
	pthread_t python_one = begin_python(stack_of(0, 1, line), 0);
	uint64_t key_before = 0;

	start_chain(3);
	thread_slot_here();
	for (unsigned i = 0; i < 4; i++) {
		struct thread_start *start_record = thread_start_prepare(library_thread, NULL);
		pthread_t thread;

		assert_non_null(start_record);
		assert_int_equal(start_record->count, 3);
		start_record->user = cases[i].libraries;
		assert_int_equal(pthread_create(&thread, NULL, library_thread, start_record), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(library_stack.frame_count, cases[i].frame_count);
		assert_int_equal(library_stack.flags, cases[i].flags);
		if ((cases[i].flags & KMEM_STACK_WHILE) != 0)
			assert_int_equal(library_stack.frames[1], line);
		if (i == 2)
			assert_int_not_equal(given_key, key_before); // Q1: the line is part of it
		key_before = given_key;
	}
	end_python(python_one);
	atomic_store(&python_runtime.state, PYTHON_RUNTIME_NOT_FOUND);

	/* The first thread, and those that native code made, are given nothing. */
	struct call_stack own = stack_of(0, 1, UINT64_C(0x1234));

	assert_int_equal(thread_attribution_find_library(&thread_slot_here()->parent), 0);
	thread_attribution_append_library(&own);
	assert_int_equal(own.frame_count, 1);
}

int
main(void)
{
	thread_slot_start();
	return test_run(NULL, NULL, NULL, NULL);
}
