/*
 * leak_classes.c - programs that leak, and programs that do not, for test_leak_classes.py: which class does the line `kept` get?
 *
 *   leak_classes SCENE
 *
 * Each scene calls kept() for the blocks of which the class is asked, and others for the rest.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)
#define APART __attribute__((noinline, noclone))

static void *volatile sink;

APART static void *
kept(size_t bytes)
{
	void *block = malloc(bytes); // kept

	sink = block;
	return block;
}

APART static void *
pool(size_t bytes)
{
	void *block = calloc(1, bytes);

	sink = block;
	return block;
}

/* What a round of work allocates and releases again. */
APART static void
work(size_t bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		void *block = malloc(bytes);

		sink = block;
		free(block);
	}
}

APART static void
leak_small_blocks(void)
{
	for (unsigned i = 0; i < 20000; i++) {
		kept(1000);
		work(400, 5);
	}
}

APART static void
leak_after_a_pool(void)
{
	pool(512 * MIB);
	for (unsigned i = 0; i < 40000; i++)
		kept(1000);
}

APART static void
leak_after_an_arena(void)
{
	sink = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < 5000; i++) {
		kept(1000);
		work(100, 2);
	}
}

/* Gigabytes went through before, in large buffers. */
APART static void
leak_after_large_buffers(void)
{
	work(64 * MIB, 200);
	for (unsigned i = 0; i < 60000; i++) {
		kept(200);
		work(200, 1);
	}
}

APART static void
leak_before_a_large_block(void)
{
	for (unsigned i = 0; i < 4000; i++) {
		kept(600);
		work(600, 20);
	}
	free(pool(512 * MIB));
}

APART static void
leak_large_blocks(void)
{
	for (unsigned i = 0; i < 60; i++) {
		kept(MIB / 2);
		work(8 * MIB, 2);
	}
}

APART static void
leak_one_in_ten(void)
{
	for (unsigned i = 0; i < 60000; i++) {
		void *block = kept(300 + i % 700);

		if (i % 10 != 0)
			free(block);
	}
}

/* Of few blocks, every other one. */
APART static void
leak_one_large_in_two(void)
{
	for (unsigned i = 0; i < 60; i++) {
		void *block = kept(MIB);

		if (i % 2 != 0)
			free(block);
		work(MIB, 1);
	}
}

APART static void
leak_beside_a_sawtooth(void)
{
	static void *teeth[400];

	for (unsigned i = 0; i < 12000; i++) {
		kept(200);
		free(teeth[i % 400]);
		teeth[i % 400] = NULL;
		if (i % 400 < 300)
			teeth[i % 400] = pool(16384);
		else
			for (unsigned j = 0; j < 300; j++) {
				free(teeth[j]);
				teeth[j] = NULL;
			}
	}
}

APART static void
leak_now_and_then(void)
{
	for (unsigned i = 0; i < 20000; i++) {
		if (i % 200 == 0)
			kept(20000);
		work(2000, 4);
	}
}

APART static void
leak_after_a_warm_up(void)
{
	for (unsigned i = 0; i < 20000; i++)
		pool(500);
	for (unsigned i = 0; i < 40000; i++) {
		kept(500);
		work(500, 2);
	}
}

static void *
leaking_thread(void *unused)
{
	(void)unused;
	leak_small_blocks();
	return NULL;
}

APART static void
leak_in_threads(void)
{
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, leaking_thread, NULL);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

APART static void
leak_of_short_threads(void)
{
	static pthread_t threads[200];

	for (unsigned i = 0; i < 200; i++) {
		pthread_create(&threads[i], NULL, (void *(*)(void *))kept, (void *)20000);
		pthread_join(threads[i], NULL);
		work(1000, 200);
	}
}

APART static void
leak_of_growing_blocks(void)
{
	for (unsigned i = 1; i < 1500; i++) {
		kept(i * 16);
		work(i * 16, 3);
	}
}

APART static void
control_cache(void)
{
	static void *slots[500];

	for (unsigned i = 0; i < 60000; i++) {
		free(slots[i % 500]);
		slots[i % 500] = kept(2000);
		work(300, 2);
	}
}

APART static void
control_sawtooth(void)
{
	static void *teeth[2000];

	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 2000; i++)
			teeth[i] = kept(1000);
		for (unsigned i = 0; i < 2000; i++)
			free(teeth[i]);
	}
	for (unsigned i = 0; i < 1000; i++)
		teeth[i] = kept(1000);
}

APART static void
control_data_set(void)
{
	for (unsigned i = 0; i < 20000; i++)
		kept(1500);
	for (unsigned i = 0; i < 40000; i++)
		work(2000, 2);
}

/* A data set of large blocks, and work in small ones after it. */
APART static void
control_large_data_set(void)
{
	for (unsigned i = 0; i < 12; i++)
		kept(32 * MIB);
	for (unsigned i = 0; i < 40000; i++)
		work(2000, 2);
}

/* The same from many small blocks after a large one: as many blocks are worked with as it has. */
APART static void
control_data_set_after_a_pool(void)
{
	pool(512 * MIB);
	for (unsigned i = 0; i < 20000; i++)
		kept(1500);
	for (unsigned i = 0; i < 40000; i++)
		work(2000, 2);
}

APART static void
control_ring_of_large_blocks(void)
{
	static void *ring[16];

	for (unsigned i = 0; i < 400; i++) {
		free(ring[i % 16]);
		ring[i % 16] = kept(MIB);
		work(20000, 4);
	}
}

APART static void
control_queue(void)
{
	static void *queue[8000];
	unsigned first = 0;
	unsigned last = 0;

	for (unsigned i = 0; i < 60000; i++) {
		queue[last++ % 8000] = kept(700);
		if (i % 4000 == 3999)
			while (first < last - 1000)
				free(queue[first++ % 8000]);
	}
}

/* Few large blocks wait for their turn. */
APART static void
control_queue_of_large_blocks(void)
{
	static void *queue[20];

	for (unsigned i = 0; i < 80; i++) {
		free(queue[i % 20]);
		queue[i % 20] = kept(MIB);
		work(MIB, 1);
	}
}

APART static void
control_large_scratch(void)
{
	void *scratch = NULL;

	pool(256 * MIB);
	for (unsigned i = 0; i < 300; i++) {
		free(scratch);
		scratch = kept(4 * MIB);
		work(1000, 50);
	}
}

APART static void
control_start_up(void)
{
	for (unsigned i = 0; i < 300; i++)
		kept(1000);
	work(64 * MIB, 100);
	for (unsigned i = 0; i < 40000; i++)
		work(200, 4);
}

int
main(int argc, char **argv)
{
#define SCENE(name) \
	{               \
#name, name \
	}
	static const struct {
		const char *name;
		void (*run)(void);
	} scenes[] = {
		SCENE(leak_small_blocks),
		SCENE(leak_after_a_pool),
		SCENE(leak_after_an_arena),
		SCENE(leak_after_large_buffers),
		SCENE(leak_before_a_large_block),
		SCENE(leak_large_blocks),
		SCENE(leak_one_in_ten),
		SCENE(leak_one_large_in_two),
		SCENE(leak_beside_a_sawtooth),
		SCENE(leak_now_and_then),
		SCENE(leak_after_a_warm_up),
		SCENE(leak_in_threads),
		SCENE(leak_of_short_threads),
		SCENE(leak_of_growing_blocks),
		SCENE(control_cache),
		SCENE(control_sawtooth),
		SCENE(control_data_set),
		SCENE(control_large_data_set),
		SCENE(control_data_set_after_a_pool),
		SCENE(control_ring_of_large_blocks),
		SCENE(control_queue),
		SCENE(control_queue_of_large_blocks),
		SCENE(control_large_scratch),
		SCENE(control_start_up),
	};

	for (size_t i = 0; argc == 2 && i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (strcmp(argv[1], scenes[i].name) == 0) {
			scenes[i].run();
			return 0;
		}
	}
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		puts(scenes[i].name);
	return argc != 1;
}
