/*
 * Keeps blocks in a list of NODES nodes, which lie in memory in no order, and loses LOST blocks, then waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NODES
#define NODES 3000
#endif
#ifndef PAYLOAD
#define PAYLOAD 5000
#endif
#ifndef LOST
#define LOST 0
#endif

struct node {
	struct node *next;
	char *payload;
};
static struct node *volatile head;

__attribute__((noinline)) static char *
make_payload(void)
{
	char *payload = malloc(PAYLOAD);

	memset(payload, 1, PAYLOAD);
	return payload;
}

__attribute__((noinline)) static struct node *
make_node(void)
{
	return malloc(sizeof(struct node));
}

static void
overwrite_stack(void)
{
	volatile char space[20000];

	memset((void *)space, 0, sizeof(space));
}

static void
make_list(void)
{
	static struct node *nodes[NODES];

	for (int i = 0; i < NODES; i++)
		nodes[i] = make_node();
	for (int i = 0; i < NODES; i++) {
		struct node *node = nodes[i * 1009 % NODES];

		node->next = head;
		node->payload = make_payload();
		head = node;
	}
	memset(nodes, 0, sizeof(nodes));
	__asm__ volatile("" ::"r"(nodes) : "memory");
}

__attribute__((noinline)) static void
lose(void)
{
	for (int i = 0; i < LOST; i++) {
		char *volatile block = malloc(30000);

		memset(block, 1, 30000);
	}
}

int
main(void)
{
	make_list();
	lose();
	overwrite_stack();
	puts("ready");
	fflush(stdout);
	return getchar() == 'x' ? 0 : 3;
}
