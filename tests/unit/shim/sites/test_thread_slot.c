/*
 * test_thread_slot.c - has every thread a slot of its own, and does the next one get what an ended thread left?
 */
#include "unit.h"

#include <sys/resource.h>

#include "base/reentry_guard.h"
#include "sites/thread_slot.h"

static pthread_key_t late; // its destructor runs in the same rounds as the slot's
static struct thread_slot *slot_in_destructor;

static void
in_destructor(void *round)
{
	slot_in_destructor = thread_slot_here();
	if ((uintptr_t)round < 3)
		pthread_setspecific(late, (char *)round + 1);
}

static void *
note_slot(void *result)
{
	struct thread_slot *slot = thread_slot_here();

	*(struct thread_slot **)result = slot;
	assert_ptr_equal(thread_slot_here(), slot);
	if (slot != NULL)
		slot->owner.last.count++;
	return NULL;
}

static void *
note_slot_and_use_it_late(void *result)
{
	note_slot(result);
	pthread_setspecific(late, (void *)1);
	return NULL;
}

static void
run(void *(*work)(void *), struct thread_slot **slot)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, work, slot), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(N1_threads_one_after_the_other_use_one_slot)
{
	struct thread_slot *first;
	struct thread_slot *next;
	struct thread_slot *mine = thread_slot_here();

	assert_non_null(mine);
	run(note_slot, &first);
	assert_ptr_not_equal(first, mine);
	for (uint32_t i = 0; i < 50; i++) {
		run(note_slot, &next);
		assert_ptr_equal(next, first);
		assert_int_equal(next->owner.last.count, i + 2); // what it held stays
		assert_int_equal(next->owner.slot, first->owner.slot);
	}
	assert_int_equal(thread_slot_count(), 2);
}

TEST(N2_a_thread_that_runs_its_destructors_has_no_slot)
{
	struct thread_slot *slot;

	slot_in_destructor = (void *)1;
	run(note_slot_and_use_it_late, &slot);
	assert_non_null(slot);
	assert_null(slot_in_destructor);
	run(note_slot, &slot); // it is free again
	assert_non_null(slot);
}

/* As a handler that ends the thread inside a hook. */
static void *
note_slot_and_end_inside(void *result)
{
	note_slot(result);
	assert_true(reentry_guard_enter());
	pthread_exit(NULL);
}

TEST(N1_a_thread_that_ends_inside_a_hook_gives_its_slot_back)
{
	struct thread_slot *first;
	struct thread_slot *next;

	run(note_slot_and_end_inside, &first);
	run(note_slot, &next);
	assert_non_null(next);
	assert_ptr_equal(next, first);
}

static void *
release_only(void *results)
{
	struct thread_slot **slot = results;

	for (unsigned i = 0; i < 10; i++)
		slot[0] = thread_slot_to_release(); // what libc made for it, freed after its last destructor
	for (unsigned i = 0; i < 200; i++)
		slot[1] = thread_slot_to_release();
	return NULL;
}

TEST(a_thread_that_only_releases_a_little_takes_no_slot)
{
	struct thread_slot *slots[2];
	uint32_t before = thread_slot_count();

	run(release_only, slots);
	assert_null(slots[0]);
	assert_non_null(slots[1]);
	assert_int_equal(thread_slot_count(), before);
}

static pthread_barrier_t has_slot, may_end, has_asked, may_ask;

static void *
hold_a_slot_for_a_while(void *unused)
{
	assert_non_null(thread_slot_here());
	pthread_barrier_wait(&has_slot);
	pthread_barrier_wait(&may_end);
	return unused;
}

static void *
ask_twice(void *unused)
{
	pthread_barrier_wait(&may_ask);
	assert_null(thread_slot_here());
	pthread_barrier_wait(&has_asked);
	pthread_barrier_wait(&may_ask);
	assert_non_null(thread_slot_here());
	return unused;
}

/* There is no memory for a third slot. */
TEST(N3_a_thread_without_a_slot_gets_one_that_was_given_back)
{
	pthread_barrier_t *const barriers[] = { &has_slot, &may_end, &has_asked, &may_ask };
	struct rlimit before;
	struct rlimit none;
	pthread_t holder;
	pthread_t asker;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("the sanitizer maps memory itself: address space cannot be limited under it\n");
	skip();
#endif
	assert_non_null(thread_slot_here());
	for (size_t i = 0; i < ARRAY_LEN(barriers); i++)
		pthread_barrier_init(barriers[i], NULL, 2);
	assert_int_equal(pthread_create(&holder, NULL, hold_a_slot_for_a_while, NULL), 0);
	pthread_barrier_wait(&has_slot);
	assert_int_equal(pthread_create(&asker, NULL, ask_twice, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){ 1, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	pthread_barrier_wait(&may_ask);
	pthread_barrier_wait(&has_asked);
	pthread_barrier_wait(&may_end);
	pthread_join(holder, NULL);
	pthread_barrier_wait(&may_ask);
	pthread_join(asker, NULL);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

#define TOGETHER 2000

struct meeting {
	pthread_barrier_t barrier;
	struct thread_slot *slots[TOGETHER];
};

struct guest {
	struct meeting *meeting;
	unsigned number;
};

static void *
meet(void *context)
{
	struct guest *guest = context;

	guest->meeting->slots[guest->number] = thread_slot_here();
	assert_ptr_equal(thread_slot_here(), guest->meeting->slots[guest->number]);
	pthread_barrier_wait(&guest->meeting->barrier);
	return NULL;
}

TEST(two_thousand_threads_at_the_same_time_have_different_slots)
{
	static struct meeting meeting;
	static struct guest guests[TOGETHER];
	static pthread_t threads[TOGETHER];
	static bool is_seen[THREAD_SLOTS_MAX + 1];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	pthread_barrier_init(&meeting.barrier, NULL, TOGETHER);
	for (unsigned i = 0; i < TOGETHER; i++) {
		guests[i] = (struct guest){ &meeting, i };
		assert_int_equal(pthread_create(&threads[i], &small, meet, &guests[i]), 0);
	}
	for (unsigned i = 0; i < TOGETHER; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < TOGETHER; i++) {
		assert_non_null(meeting.slots[i]);
		assert_in_range(meeting.slots[i]->owner.slot, 1, THREAD_SLOTS_MAX);
		assert_false(is_seen[meeting.slots[i]->owner.slot]);
		is_seen[meeting.slots[i]->owner.slot] = true;
	}
	assert_int_equal(thread_slot_count(), TOGETHER + 1); // one is this thread's
}

TEST(a_forked_child_begins_with_empty_slots)
{
	struct thread_slot *mine = thread_slot_here();

	mine->owner.last.count = 99;
	thread_slot_forked();
	mine = thread_slot_here();
	assert_int_equal(mine->owner.slot, 1);
	assert_int_equal(mine->owner.last.count, 0);
	assert_int_equal(thread_slot_count(), 1);
}

int
main(void)
{
	thread_slot_start();
	pthread_key_create(&late, in_destructor);
	return test_run(NULL, NULL, NULL, NULL);
}
