/*
 * thread_start.c - where was this thread created (see thread_start.h)?
 *
 * Invariant, tested by number in tests/unit/shim/sites/test_thread_attribution.c:
 *   Q3  a start record belongs to its creator until the new thread takes it, and is given back once.
 */
#include "sites/thread_start.h"

#include <string.h>

#include "sites/stack_frames.h"
#include "sites/thread_attribution.h"
#include "sites/thread_slot.h"

#define STARTS_MAX 64u

static struct thread_start starts[STARTS_MAX]; // untouched ones cost nothing

struct thread_start *
thread_start_prepare(void *(*routine)(void *), void *argument)
{
	struct thread_slot *slot = thread_slot_here();
	struct python_stack *python;
	struct thread_start *start = NULL;

	if (slot == NULL || !python_frames_available())
		return NULL;
	python = &slot->stack.python;
	python_frames_walk(python);
	if (python->count == 0 && slot->parent.started_count == 0)
		return NULL;
	for (unsigned i = 0; start == NULL && i < STARTS_MAX; i++) {
		/* acquire: pairs with give_back() (Q3). */
		if (!atomic_load_explicit(&starts[i].is_taken, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&starts[i].is_taken, true, memory_order_acquire))
			start = &starts[i];
	}
	if (start == NULL)
		return NULL;
	start->routine = routine;
	start->argument = argument;
	start->count = python->count;
	for (uint32_t i = 0; i < python->count; i++)
		start->frames[i] = call_stack_python_frame(&python->frames[i]);
	start->user = 0;
	while (start->user < start->count &&
	       (python->frames[start->user].code_flags & (KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB)) != 0)
		start->user++;
	if (start->user == start->count) { // of libraries: behind them stands what this thread was given
		uint32_t room = PYTHON_FRAMES_MAX - start->count;
		uint32_t given = slot->parent.started_count < room ? slot->parent.started_count : room;

		memcpy(start->frames + start->count, slot->parent.started, given * sizeof(start->frames[0]));
		start->user += slot->parent.started_user < given ? slot->parent.started_user : given;
		start->count += given;
	}
	return start;
}

static void
give_back(struct thread_start *start)
{
	/* release: our use of the record comes before its next user's. Pairs with thread_start_prepare() (Q3). */
	atomic_store_explicit(&start->is_taken, false, memory_order_release);
}

void
thread_start_begin(struct thread_start *start)
{
	struct thread_slot *slot = thread_slot_here();
	uint64_t hash = start->count;

	if (slot != NULL) {
		for (uint32_t i = 0; i < start->count; i++) {
			slot->parent.started[i] = start->frames[i];
			hash = (hash ^ start->frames[i]) * UINT64_C(0xff51afd7ed558ccd);
			hash ^= hash >> 32;
		}
		atomic_store_explicit(&thread_attribution_is_any, true, memory_order_relaxed);
		slot->parent.started_count = start->count;
		slot->parent.started_user = start->user;
		slot->parent.work_line = 0;
		if (slot->parent.has_kept_library) // Q1
			memset(slot->events.python, 0, sizeof(slot->events.python));
		slot->parent.has_kept_library = false;
		slot->parent.started_hash = hash;
	}
	give_back(start);
}

void
thread_start_forget(struct thread_start *start)
{
	give_back(start);
}

void
thread_start_forked(void)
{
	for (uint32_t i = 0; i < STARTS_MAX; i++) {
		if (atomic_load_explicit(&starts[i].is_taken, memory_order_relaxed)) // a write would copy the page
			atomic_store_explicit(&starts[i].is_taken, false, memory_order_relaxed);
	}
}
