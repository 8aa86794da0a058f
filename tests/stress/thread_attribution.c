/*
 * thread_attribution.c - do workers read whole sites of Python threads that allocate meanwhile, and are start records handed over whole?
 */
#include "stress.h"

#include "capture/capture_file.h"
#include "python/python_runtime.h"
#include "sites/site_table.h"
#include "sites/thread_attribution.h"
#include "sites/thread_slot.h"
#include "sites/thread_start.h"

#define SCRIPTS ((STRESS_THREADS + 1) / 2) // of the threads, see work()
#define ROUNDS 3000

static _Atomic uint64_t lines_seen;
static _Atomic unsigned scripts_ended; // relaxed: a number

/* Allocates at stacks of its own, each with a new line; speaks for the user now and then. */
static void
python(unsigned thread, struct thread_slot *slot, uint64_t *random)
{
	slot->stack.python = (struct python_stack){ .count = 1 };
	for (uint64_t i = 1; i < ROUNDS; i++) {
		uint32_t index;
		struct kmem_code *code = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*code), &index);
		uint64_t line = KMEM_FRAME_PYTHON | (uint64_t)(thread + 1) << KMEM_FRAME_OFFSET_SHIFT;
		struct call_stack stack = { .hash = i << 8 | thread,
			                        .frame_count = 3,
			                        .frames = { i, line | index, line | index } };

		code->record.type = KMEM_RECORD_CODE;
		code->first_line = thread + 1;
		thread_slot_publish(slot, site_table_find(&slot->owner, &stack, 0, 1));
		if (random_below(random, 4) == 0)
			thread_attribution_claim(&slot->parent, &slot->stack.python);
	}
	atomic_fetch_add_explicit(&scripts_ended, 1, memory_order_relaxed);
}

/* As long as there is something to see: on a busy machine it may begin late. */
static void
worker(void)
{
	for (unsigned i = 0; i < ROUNDS * 4 || atomic_load_explicit(&scripts_ended, memory_order_relaxed) < SCRIPTS; i++) {
		uint64_t line = thread_attribution_find();

		if (line == 0)
			continue;
		const struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, (uint32_t)(line & KMEM_FRAME_CODE_MASK));

		CHECK(code->record.type == KMEM_RECORD_CODE);
		CHECK(code->first_line == (line >> KMEM_FRAME_OFFSET_SHIFT & KMEM_FRAME_OFFSET_MASK));
		atomic_fetch_add_explicit(&lines_seen, 1, memory_order_relaxed);
	}
}

static void
work(unsigned thread, uint64_t *random)
{
	struct thread_slot *slot = thread_slot_here();

	if (thread % 2 == 0)
		python(thread, slot, random);
	else
		worker();
}

/* Every thread gives what it was given to the next owner of the record. */
static void
hand_over(unsigned thread, uint64_t *random)
{
	struct thread_slot *slot = thread_slot_here();

	slot->parent.started_count = 3;
	for (unsigned i = 0; i < ROUNDS; i++) {
		slot->parent.started[0] = slot->parent.started[1] = slot->parent.started[2] = thread;
		struct thread_start *start = thread_start_prepare(NULL, (void *)(uintptr_t)i);

		if (start == NULL)
			continue;
		CHECK(start->frames[0] == start->frames[2] && start->argument == (void *)(uintptr_t)i);
		if (random_below(random, 2) == 0)
			thread_start_begin(start);
		else
			thread_start_forget(start);
	}
}

static void *
no_state(void)
{
	return NULL;
}

int
main(void)
{
	uint64_t seed = random_seed();

	thread_slot_start();
	stress_run(STRESS_THREADS, work, seed);
	CHECK(lines_seen != 0);

	python_runtime.interpreter.layout.version = 0x030d;
	python_runtime.current_state = python_runtime.thread_state = no_state;
	python_runtime.addr = (uint64_t)&python_runtime; // never followed: no thread has a state
	atomic_store_explicit(&python_runtime.state, PYTHON_RUNTIME_FOUND, memory_order_release);
	stress_run(STRESS_THREADS, hand_over, seed);
	return 0;
}
