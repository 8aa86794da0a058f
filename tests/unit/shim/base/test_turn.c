/*
 * test_turn.c - does what a hook had taken come back, wherever it was left?
 */
#include "unit.h"

#include "base/turn.h"
#include "left_at.h"

static struct turn one, other, completed;
static unsigned completions;

static void
complete(void)
{
	completions++;
	assert_int_not_equal(completed.holder, 0); // nobody else is at it meanwhile
}

static void *
take_in_thread(void *turn)
{
	bool is_taken = turn_take(turn);

	return is_taken ? turn : NULL; // and the thread ends
}

static bool
another_takes(struct turn *turn)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, take_in_thread, turn), 0);
	pthread_join(thread, &result);
	return result != NULL;
}

TEST(T1_one_thread_at_a_time_has_it)
{
	assert_true(turn_take(&one));
	assert_false(turn_take(&one));
	assert_false(another_takes(&one));
	turn_give(&one);
	assert_true(turn_take(&one));
	turn_give(&one);
	assert_int_equal(turn_list.count, 0);
}

TEST(they_need_not_be_given_back_in_order)
{
	assert_true(turn_take(&one));
	assert_true(turn_take(&other));
	turn_give(&one);
	assert_true(turn_take(&one));
	turn_give(&other);
	turn_left();
	assert_int_equal(one.holder | other.holder, 0);
}

TEST(who_has_too_many_takes_no_more)
{
	static struct turn many[TURNS_MAX + 1];

	for (unsigned i = 0; i < TURNS_MAX; i++)
		assert_true(turn_take(&many[i]));
	assert_false(turn_take(&many[TURNS_MAX]));
	turn_left();
	for (unsigned i = 0; i < TURNS_MAX + 1; i++)
		assert_int_equal(many[i].holder, 0);
}

static void
take_two(void)
{
	if (turn_take(&other))
		turn_give(&other);
	if (turn_take(&one)) {
		if (turn_take(&other))
			turn_give(&other);
		turn_give(&one);
	}
}

TEST(T2_what_a_hook_had_comes_back_wherever_it_was_left)
{
	unsigned instruction = 0;

	for (; left_at(instruction, take_two); instruction = left_at_next(instruction)) {
		turn_left();
		assert_int_equal(turn_list.count, 0);
		assert_int_equal(one.holder | other.holder, 0);
	}
	assert_true(instruction > 20);
	assert_true(another_takes(&other));
	for (instruction = 0; left_at(instruction, take_two); instruction = left_at_next(instruction)) {
		turn_left();
		assert_int_equal(one.holder, 0);
		assert_int_not_equal(other.holder, 0); // another thread's stays
	}
	other.holder = 0;
}

TEST(T3_what_is_half_changed_is_completed_first)
{
	completions = 0;
	assert_true(turn_take(&completed));
	turn_left();
	assert_int_equal(completions, 1);
	assert_int_equal(completed.holder, 0);
	assert_int_equal(turn_list.count, 0);
	turn_left();
	assert_int_equal(completions, 1);
}

/* A thread that is at it when another one forks is not in the child. */
TEST(T4_a_child_takes_what_was_taken_in_its_parent)
{
	pthread_t thread;
	int status;

	completions = 0;
	for (struct turn *turn = &one; turn != NULL; turn = turn == &one ? &completed : NULL) {
		assert_int_equal(pthread_create(&thread, NULL, take_in_thread, turn), 0);
		pthread_join(thread, NULL);
		assert_false(turn_take(turn));
	}
	if (fork() == 0) {
		turn_forked();
		if (!turn_take(&one) || turn_take(&one) || !turn_take(&completed) || completions != 1)
			_exit(1);
		turn_give(&one);
		turn_give(&completed);
		_exit(!another_takes(&one) || another_takes(&one));
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_false(turn_take(&one));
	one.holder = completed.holder = 0;
}

int
main(void)
{
	completed.complete = complete;
	return test_run(NULL, NULL, NULL, NULL);
}
