/*
 * Loses blocks in known ways, then waits; "end" ends it, where a leak sanitizer sees the same.
 *
 * Lost directly: 100 of 1000 bytes by lose(), 20 of 64 bytes by lose_list() and as many by lose_circle(), 1 of 300000 bytes by
 * lose_large(), 5 of 500 bytes that lead to themselves alone by lose_self(). Lost indirectly: what these 20 lead to: 20 * 9 of 64 bytes by
 * lose_list(), 20 of 64 bytes by lose_circle(), 20 of 2000 bytes by hang_on(). Reachable: by a global, a static, the middle of the
 * block, the stack, thread-local memory, another thread's stack, a mapping.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct node {
	struct node *next;
	void *data;
	char rest[48];
};

char *global_block;
static char *volatile middle_of_block;
static __thread char *volatile local_block;
static char **volatile mapping;

#define OWN __attribute__((noinline))

OWN static void *
fresh(size_t bytes)
{
	char *block = malloc(bytes);

	memset(block, 0, bytes);
	__asm__ volatile("" ::"r"(block) : "memory");
	return block;
}

OWN static void
lose(void)
{
	(void)fresh(1000);
}

OWN static void
lose_large(void)
{
	(void)fresh(300000);
}

OWN static void *
hang_on(void)
{
	return fresh(2000);
}

OWN static void
lose_list(void)
{
	struct node *first = NULL;

	for (int i = 0; i < 10; i++) {
		struct node *node = fresh(sizeof(*node));

		node->next = first;
		first = node;
	}
	first->data = hang_on();
}

OWN static void
lose_circle(void)
{
	struct node *one = fresh(sizeof(*one));
	struct node *other = fresh(sizeof(*other));

	one->next = other;
	other->next = one;
}

OWN static void
lose_self(void)
{
	char **self = fresh(500);

	self[3] = (char *)self;
}

OWN static void
lose_all(void)
{
	for (int i = 0; i < 100; i++)
		lose();
	for (int i = 0; i < 20; i++) {
		lose_list();
		lose_circle();
	}
	for (int i = 0; i < 5; i++)
		lose_self();
	lose_large();
}

OWN static void
keep(void)
{
	global_block = fresh(4000);
	middle_of_block = (char *)fresh(4001) + 2000;
	local_block = fresh(4002);
	mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mapping[7] = fresh(4003);
	*(char **)global_block = fresh(4004);
}

static void *
wait_with_block(void *barrier)
{
	char *volatile held = fresh(4005);

	pthread_barrier_wait(barrier);
	pause();
	return held;
}

/* What is left of calls on the stack and in registers would hold some of it. */
OWN static void
wipe(void)
{
	volatile char room[65536];

	memset((char *)room, 0, sizeof(room));
}

int
main(int count, char **arguments)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	(void)arguments;
	lose_all();
	keep();
	wipe();
	if (count > 1)
		return 0;
	char *volatile held = fresh(4006);

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, wait_with_block, &barrier);
	pthread_barrier_wait(&barrier);
	char *room = fresh(2 << 20); // the capture is there

	puts("ready");
	fflush(stdout);
	if (getchar() == 'x')
		puts(held + (room[0] != 0));
	return 0;
}
