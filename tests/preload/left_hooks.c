/*
 * left_hooks.c - hooks that are left by a jump out of a signal handler, and hooks that only look so; the first argument says which.
 *
 * A hook that was left is noticed when another one is called from as far out or further out.
 *
 * overflow   recurses to the end of a thread's stack and jumps back, beginning at each place; what malloc needs itself is always there
 * main       the same on the main thread's stack
 * With left_hooks_next.c between us and libc, valloc() is interrupted by a handler, which
 * jump       does not come back
 * near       does not come back, and what follows is called from as far in
 * deeper     does not come back, and what follows is called from further in
 * nested     allocates
 * alternate  allocates on a signal stack that is a part of the thread's own stack, further out than the hook
 * switch     goes to a coroutine, which allocates, and comes back
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline))
#define FRAME_BYTES 4096
#define MALLOC_NEEDS 1200 // of the stack, at most, with our frame; we need more for a new call site
#define ROUNDS (FRAME_BYTES / 16)

static sigjmp_buf target;
static void *volatile sink;
static volatile int recovered;
static char signal_stack[64 << 10];

static NOINLINE void
late(void)
{
	for (int i = 0; i < 1000; i++)
		sink = malloc(1000);
}

/* ---- overflow ---- */

static void
jump_back(int number)
{
	(void)number;
	siglongjmp(target, 1);
}

static NOINLINE void
touch(void)
{
	volatile char room[MALLOC_NEEDS];

	for (size_t i = 0; i < sizeof(room); i += 64)
		room[i] = 1;
}

static NOINLINE int
recurse(int depth)
{
	volatile char frame[FRAME_BYTES];

	for (size_t i = 0; i < sizeof(frame); i += 64)
		frame[i] = (char)depth;
	touch();
	sink = malloc(24);
	touch();
	sink = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(sink, 4096);
	return recurse(depth + 1) + frame[(size_t)depth % sizeof(frame)];
}

static void *
overflow(void *unused)
{
	stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };

	sigaltstack(&stack, NULL);
	sink = malloc(24);
	for (volatile int i = 0; i < ROUNDS; i++) {
		char *volatile pad = __builtin_alloca((size_t)16); // each time further in

		(void)pad;
		if (sigsetjmp(target, 1) == 0)
			recurse(0);
		else
			recovered++;
	}
	late();
	return unused;
}

/* ---- interrupted ---- */

static const char *what;
static ucontext_t handler_context, coroutine;

static NOINLINE void
inside(void)
{
	sink = malloc(300);
}

static void
coroutine_main(void)
{
	inside();
	swapcontext(&coroutine, &handler_context);
}

static void
interrupt(int number)
{
	(void)number;
	if (strcmp(what, "jump") == 0 || strcmp(what, "near") == 0 || strcmp(what, "deeper") == 0)
		siglongjmp(target, 1);
	if (strcmp(what, "switch") == 0)
		swapcontext(&handler_context, &coroutine);
	else
		inside();
}

static NOINLINE void
deep(void)
{
	volatile char frame[FRAME_BYTES] = { 0 };

	sink = valloc(5000);
	sink = (void *)&frame[0];
}

static NOINLINE void
late_and_deep(void)
{
	volatile char frame[FRAME_BYTES] = { 0 };

	late();
	sink = (void *)&frame[0];
}

static NOINLINE void
near(void)
{
	sink = valloc(5000);
}

static void
interrupted(void)
{
	char own_stack[64 << 10]; // further out than what comes
	stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
	struct sigaction action = { .sa_handler = interrupt };

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = signal_stack;
	coroutine.uc_stack.ss_size = sizeof(signal_stack);
	makecontext(&coroutine, coroutine_main, 0);
	if (strcmp(what, "alternate") == 0) {
		action.sa_flags = SA_ONSTACK;
		sigaltstack(&stack, NULL);
	}
	sigaction(SIGUSR1, &action, NULL);
	if (sigsetjmp(target, 1) != 0)
		recovered++;
	else if (strcmp(what, "near") == 0 || strcmp(what, "deeper") == 0)
		near();
	else
		deep();
	if (strcmp(what, "deeper") == 0)
		late_and_deep();
	else
		late();
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
}

int
main(int count, char **words)
{
	struct sigaction action = { .sa_handler = jump_back, .sa_flags = SA_ONSTACK };
	bool is_main;

	what = words[count - 1];
	is_main = strcmp(what, "main") == 0;
	if (!is_main && strcmp(what, "overflow") != 0) {
		interrupted();
	} else {
		sigaction(SIGSEGV, &action, NULL);
		if (is_main) {
			overflow(NULL);
		} else {
			pthread_attr_t attributes;
			pthread_t thread;

			pthread_attr_init(&attributes);
			pthread_attr_setstacksize(&attributes, 128 << 10);
			pthread_create(&thread, &attributes, overflow, NULL);
			pthread_join(thread, NULL);
		}
	}
	printf("%d\n", recovered);
	return 0;
}
