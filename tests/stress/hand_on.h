/*
 * hand_on.h - one pair of release and acquire at a time (see handed_on.c).
 *
 * Each case is a few steps, each in a thread of its own, one after the other; what tells a thread that it is its turn orders
 * nothing. The first step writes a plain word and ends with the release, the others begin with an acquire and read the word: the
 * order under test is all that there is between them. This finds a missing order every time, whatever is behind it (also where that
 * is only atomics, or memory that the kernel zeroed), but not a mistake that needs two threads at once: the other programs are for
 * those.
 */
#ifndef HAND_ON_H
#define HAND_ON_H

#include "stress.h"

#include <string.h>

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "sites/thread_slot.h"
#include "tables/pointer_map.h"
#include "unwind/native_stack.h"

/* acquire: as the reader of the capture does it, from another process, or a copy of the file that the kernel makes. */
#define READ(word) ((void)atomic_load_explicit(&(word), memory_order_acquire))

#define STEPS_MAX 5

static uint64_t handed_on;    // plain
static _Atomic unsigned turn; // relaxed, everywhere
static pthread_key_t last_of_thread;

struct step {
	pthread_t id;
	unsigned number;
	void (*act)(void);
};

/* After the destructor of the thread's slot, whose key is older. */
static void
end_turn(void *unused)
{
	atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
}

static void *
run_step(void *context)
{
	struct step *step = context;

	while (atomic_load_explicit(&turn, memory_order_relaxed) != step->number)
		sched_yield();
	if (step->number == 0)
		handed_on = 1;
	step->act();
	CHECK(handed_on == 1);
	pthread_setspecific(last_of_thread, step);
	return NULL;
}

static void
run_steps(void (*const acts[STEPS_MAX])(void))
{
	struct step steps[STEPS_MAX];
	unsigned count = 0;

	handed_on = 0;
	turn = 0;
	for (; count < STEPS_MAX && acts[count] != NULL; count++) {
		steps[count] = (struct step){ .number = count, .act = acts[count] };
		CHECK(pthread_create(&steps[count].id, NULL, run_step, &steps[count]) == 0);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(steps[i].id, NULL);
}

struct hand_on_case {
	const char *name;
	void (*prepare)(void); // both may be NULL
	void (*finish)(void);
	void (*acts[STEPS_MAX])(void);
};

/* Runs all, in this order, or the one that is named. */
static int
hand_on(const struct hand_on_case *cases, size_t count, const char *name)
{
	bool was_any = false;

	native_stack_start();
	thread_slot_start();
	pointer_map_start(true);
	capture_file_make_room();
	CHECK(pthread_key_create(&last_of_thread, end_turn) == 0);
	for (size_t i = 0; i < count; i++) {
		if (name != NULL && strcmp(name, cases[i].name) != 0)
			continue;
		was_any = true;
		if (cases[i].prepare != NULL)
			cases[i].prepare();
		run_steps(cases[i].acts);
		if (cases[i].finish != NULL)
			cases[i].finish();
		printf("[       OK ] %s\n", cases[i].name);
	}
	return was_any ? 0 : 1;
}

#endif
