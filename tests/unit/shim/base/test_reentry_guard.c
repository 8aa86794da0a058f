/*
 * test_reentry_guard.c - who is inside, what kind of work is it, and was it left by a jump?
 */
#include "unit.h"

#include <signal.h>
#include <ucontext.h>

#include "base/reentry_guard.h"

#define NOINLINE __attribute__((noinline))

static ucontext_t here, elsewhere;
static bool was_entered;

static NOINLINE bool
enter_deep(enum reentry_guard_kind kind)
{
	volatile char frame[4096] = { 0 };
	bool is_entered = reentry_guard_enter_as(kind);

	frame[1] = frame[0];
	return is_entered;
}

static void *
inside(void *unused)
{
	static const enum reentry_guard_kind kinds[] = { REENTRY_GUARD_HOOK, REENTRY_GUARD_OWN_WORK, REENTRY_GUARD_PYTHON,
		                                             REENTRY_GUARD_NEW };

	assert_true(reentry_guard_is_outside());
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		assert_true(reentry_guard_enter_as(kinds[i]));
		assert_false(reentry_guard_is_outside());
		for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
			assert_int_equal(reentry_guard_is(kinds[k]), k == i);
			assert_false(enter_deep(kinds[k]));
		}
		reentry_guard_change(REENTRY_GUARD_HOOK);
		assert_true(reentry_guard_is(REENTRY_GUARD_HOOK));
		reentry_guard_change(kinds[i]);
		reentry_guard_leave_new();
		assert_int_equal(reentry_guard_is_outside(), kinds[i] == REENTRY_GUARD_NEW);
		reentry_guard_leave();
	}
	return unused;
}

static void *
left(void *unused)
{
	for (int i = 0; i < 3; i++) {
		assert_true(enter_deep(REENTRY_GUARD_PYTHON));
		assert_true(reentry_guard_enter()); // nobody leaves it any more
		assert_true(reentry_guard_is(REENTRY_GUARD_HOOK));
		assert_false(enter_deep(REENTRY_GUARD_HOOK));
		reentry_guard_leave();
	}
	return unused;
}

/* Enters as a hook does, and is left at once. */
static NOINLINE bool
enter_here(enum reentry_guard_kind kind)
{
	return reentry_guard_enter_as(kind);
}

static void *
left_near(void *unused)
{
	for (int i = 0; i < 3; i++) {
		assert_true(enter_here(REENTRY_GUARD_PYTHON)); // each time in the same place as the one before
		assert_true(reentry_guard_is(REENTRY_GUARD_PYTHON));
	}
	reentry_guard_leave();
	return unused;
}

static jmp_buf inner, outer, on_coroutine;

static NOINLINE void
set_inner(void)
{
	(void)setjmp(inner);
}

static NOINLINE void
be_left_by_a_jump(void)
{
	assert_true(reentry_guard_enter());
	set_inner();
	reentry_guard_jumps(inner); // of a handler, to another place in it
	assert_false(reentry_guard_is_outside());
	reentry_guard_jumps(on_coroutine);
	assert_false(reentry_guard_is_outside());
	reentry_guard_jumps(outer);
	assert_true(reentry_guard_is_outside());
}

static void
set_on_coroutine(void)
{
	(void)setjmp(on_coroutine);
}

static void *
jumps(void *unused)
{
	static char stack[64 << 10];

	getcontext(&elsewhere);
	elsewhere.uc_stack.ss_sp = stack;
	elsewhere.uc_stack.ss_size = sizeof(stack);
	elsewhere.uc_link = &here;
	makecontext(&elsewhere, set_on_coroutine, 0);
	swapcontext(&here, &elsewhere);
	(void)setjmp(outer);
	be_left_by_a_jump();
	return unused;
}

static void
enter_elsewhere(void)
{
	was_entered = reentry_guard_enter();
}

static void
enter_in_handler(int number)
{
	enter_elsewhere();
}

static void *
on_other_stacks(void *unused)
{
	static char stack[64 << 10];
	char own[64 << 10]; // further out than what holds the guard
	stack_t signal_stack = { .ss_sp = own, .ss_size = sizeof(own) };
	struct sigaction action = { .sa_handler = enter_in_handler, .sa_flags = SA_ONSTACK };

	assert_true(enter_deep(REENTRY_GUARD_HOOK));
	getcontext(&elsewhere);
	elsewhere.uc_stack.ss_sp = stack;
	elsewhere.uc_stack.ss_size = sizeof(stack);
	elsewhere.uc_link = &here;
	makecontext(&elsewhere, enter_elsewhere, 0);
	was_entered = true;
	swapcontext(&here, &elsewhere);
	assert_false(was_entered);

	was_entered = true;
	assert_int_equal(sigaltstack(&signal_stack, NULL), 0);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	assert_false(was_entered);
	signal_stack.ss_flags = SS_DISABLE;
	sigaltstack(&signal_stack, NULL);
	reentry_guard_leave();
	return unused;
}

static void
in_thread(void *(*run)(void *))
{
	pthread_t thread; // its stack is known without a start

	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	pthread_join(thread, NULL);
}

TEST(whoever_is_inside_keeps_others_out)
{
	in_thread(inside);
}

TEST(a_hook_that_was_left_is_noticed_from_further_out)
{
	in_thread(left);
}

TEST(a_hook_that_was_left_is_noticed_from_as_far_out)
{
	in_thread(left_near);
}

TEST(a_jump_leaves_the_guard_where_it_leaves_the_hook)
{
	in_thread(jumps);
}

TEST(a_coroutine_and_a_signal_stack_say_nothing_about_the_hook)
{
	in_thread(on_other_stacks);
}

int
main(void)
{
	reentry_guard_start();
	return test_run(NULL, NULL, NULL, NULL);
}
