/*
 * Keeps blocks in ways that have a name in C, each by a function of its own, then waits.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN __attribute__((noinline))
#define COUNT 16

struct node {
	struct node *next;
	char rest[60000];
};

char **global_table;                         // of_global
static struct node *static_list;             // of_static
static __thread char *volatile thread_block; // of_thread
static char *volatile middle;                // of_middle
static int waits[2];

OWN static void *
fresh(size_t bytes)
{
	char *block = malloc(bytes);

	memset(block, 1, bytes);
	__asm__ volatile("" ::"r"(block) : "memory");
	return block;
}

OWN static void
of_global(void)
{
	global_table = calloc(4 * COUNT, sizeof(*global_table));
	for (int i = 0; i < 4 * COUNT; i++) {
		char *block = malloc(50000);

		memset(block, 1, 50000);
		global_table[i] = block;
	}
}

OWN static void
of_static(void)
{
	for (int i = 0; i < COUNT; i++) {
		struct node *node = malloc(sizeof(*node));

		memset(node, 1, sizeof(*node));
		node->next = static_list;
		static_list = node;
	}
}

OWN static void
of_thread(void)
{
	thread_block = malloc(900000);
	memset(thread_block, 1, 900000);
}

OWN static void
of_middle(void)
{
	char *block = malloc(800000);

	memset(block, 1, 800000);
	middle = block + 4000;
}

OWN static void
lost(void)
{
	for (int i = 0; i < COUNT; i++) {
		char *volatile block = malloc(70000);

		memset(block, 1, 70000);
		block = NULL;
	}
}

OWN static void
lost_by_lost(void)
{
	for (int i = 0; i < COUNT; i++) {
		char *volatile *volatile holder = malloc(3000);

		memset((void *)holder, 0, 3000);
		holder[1] = malloc(65000);
		memset(holder[1], 1, 65000);
		holder = NULL;
	}
}

OWN static void
sparse(void)
{
	static char **volatile table; // one pointer in a megabyte

	table = malloc(1 << 20);
	memset(table, 0, 1 << 20);
	table[70001] = malloc(1100000);
	memset(table[70001], 1, 1100000);
}

OWN static void *
wait_with_block(void *context)
{
	char *volatile block = malloc(700000);
	char word;

	(void)context;
	memset(block, 1, 700000);
	(void)!write(waits[1], "r", 1);
	(void)!read(waits[0], &word, 1);
	free(block);
	return NULL;
}

OWN static void
overwrite_stack(void)
{
	volatile char space[20000];

	memset((void *)space, 0, sizeof(space));
}

int
main(void)
{
	pthread_t thread;
	int ready[2];
	int go[2];
	char word;

	if (pipe(ready) != 0 || pipe(go) != 0)
		return 2;
	waits[0] = go[0];
	waits[1] = ready[1];
	if (pthread_create(&thread, NULL, wait_with_block, NULL) != 0 || read(ready[0], &word, 1) != 1)
		return 2;
	of_global();
	of_static();
	of_thread();
	of_middle();
	lost();
	lost_by_lost();
	sparse();
	free(fresh(100));
	overwrite_stack();
	puts("ready");
	fflush(stdout);
	if (getchar() != 'x')
		return 3;
	(void)!write(go[1], "g", 1);
	pthread_join(thread, NULL);
	return 0;
}
