/*
 * long_run.c - 24 GB of work, and beside it a line of each class (test_leak_classes.py): its name, and what it does, stand at the end of the line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 1200000
#define KEYS 4000
#define RING 500
#define LINE __attribute__((noinline, noclone)) static void *

static void *kept[ROUNDS];
static void *ring[RING];
static void *cached[KEYS];
static void *queue[ROUNDS];

/* clang-format off */
LINE work(void) { return memset(malloc(20000), 1, 64); }
LINE always(void) { return malloc(200); }    // leak: one block in a thousand rounds, from the first on
LINE from_half(void) { return malloc(200); } // leak: the same, from the middle of the run on
LINE at_first(void) { return malloc(300); }  // steady: 5,000 blocks at first, then they are released at once
LINE ringed(void) { return malloc(400); }    // steady: the latest 500 blocks
LINE keyed(void) { return malloc(500); }     // filling: a cache of 4,000 keys, one in a hundred rounds
LINE queued(void) { return malloc(600); }    // backlog: each hundredth round, three of five are released later
/* clang-format on */

int
main(void)
{
	uint64_t random = 1;
	size_t count = 0;
	size_t first = 0;
	size_t last = 0;

	for (unsigned i = 0; i < 5000; i++)
		kept[count++] = at_first();
	for (unsigned i = 0; i < ROUNDS; i++) {
		void *block = always();
		void *late = from_half();

		free(work());
		free(at_first());
		if (i % 1000 == 0)
			kept[count++] = block;
		else
			free(block);
		if (i % 500 == 0 && i > ROUNDS / 2)
			kept[count++] = late;
		else
			free(late);
		free(ring[i % RING]);
		ring[i % RING] = ringed();
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		uint64_t key = (random >> 33) % (100 * KEYS);
		if (key < KEYS && cached[key] == NULL)
			cached[key] = keyed();
		if (i % 100 == 0) {
			queue[last++] = queued();
			if (i / 100 % 5 < 3)
				free(queue[first++]);
		}
	}
	abort(); // nothing is released
}
