/*
 * leaks.c - native programs that leak, and programs that do not, for leakset.py: is the leak found, how soon, and is no other called one?
 *
 *   leaks SCENE STEPS      as a program
 *   leak_from_c(bytes)     as a library, which leaks.py loads
 *
 * A line that leaks ends with the name of its scene behind two slashes. RSS_OF_STEPS names a file that gets the resident set of each step;
 * STEP_MS is how long the program sleeps after each.
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define APART __attribute__((noinline, noclone))
#define LIST_MAX 100000

static void *volatile sink;
static void *list[LIST_MAX];
static unsigned listed;
static uint32_t seed = 12345;

static unsigned
number_below(unsigned most)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % most;
}

static void *
filled(void *block, size_t bytes)
{
	memset(block, 1, bytes);
	sink = block;
	return block;
}

static void
keep(void *block)
{
	list[listed++ % LIST_MAX] = block;
}

/* What a step of work takes and gives back. */
APART static void
work(void)
{
	for (unsigned i = 0; i < 20; i++) {
		void *block = malloc(20 * KIB);

		free(filled(block, 20 * KIB));
	}
}

static void
step_ends(void)
{
	static FILE *figures;
	static unsigned sleep_us;
	static bool is_asked;
	char line[128];
	int file;

	if (!is_asked) {
		is_asked = true;
		figures = getenv("RSS_OF_STEPS") != NULL ? fopen(getenv("RSS_OF_STEPS"), "w") : NULL;
		sleep_us = getenv("STEP_MS") != NULL ? (unsigned)strtoul(getenv("STEP_MS"), NULL, 10) * 1000 : 0;
	}
	if (sleep_us != 0)
		usleep(sleep_us);
	if (figures == NULL)
		return;
	file = open("/proc/self/statm", O_RDONLY);
	line[read(file, line, sizeof(line) - 1)] = '\0';
	close(file);
	fprintf(figures, "%ld\n", strtol(strchr(line, ' '), NULL, 10) * 4096);
	fflush(figures);
}

#define EACH_STEP(i, count) for (unsigned i = 0; i < (count); step_ends(), i++)

/* ---- leaks ---- */

APART static void
leak_block(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc(8 * KIB), 8 * KIB)); // leak_block
	}
}

APART static void
leak_bare_loop(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		keep(filled(malloc(MIB), MIB)); // leak_bare_loop
	}
}

APART static void
leak_tiny(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		work();
		for (unsigned k = 0; k < 200; k++)
			sink = malloc(40); // leak_tiny
	}
}

APART static void
leak_after_pool(unsigned steps)
{
	keep(calloc(1, 256 * MIB));
	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 30; k++)
			keep(filled(malloc(1000), 1000)); // leak_after_pool
		work();
	}
}

APART static void
leak_one_in_ten(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 50; k++) {
			void *block = filled(malloc(1000 + k * 10), 1000); // leak_one_in_ten

			if (k % 10 != 0)
				free(block);
		}
	}
}

APART static void
leak_in_churn(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 2000; k++) {
			void *block = filled(malloc(KIB), KIB); // leak_in_churn

			if (k % 500 != 0)
				free(block);
		}
	}
}

APART static void
leak_in_bursts(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		work();
		for (unsigned k = 0; i % 5 == 0 && k < 20; k++)
			keep(filled(malloc(4000), 4000)); // leak_in_bursts
	}
}

APART static void
leak_late(unsigned steps)
{
	for (unsigned i = 0; i < 400; i++)
		work();
	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc(16 * KIB), 16 * KIB)); // leak_late
	}
}

static void *
short_thread(void *unused)
{
	(void)unused;
	work();
	return filled(malloc(20000), 20000); // leak_of_short_threads
}

APART static void
leak_of_short_threads(unsigned steps)
{
	pthread_t thread;

	EACH_STEP(i, steps)
	{
		pthread_create(&thread, NULL, short_thread, NULL);
		pthread_join(thread, NULL);
	}
}

static sem_t is_waiting;

static void *
waiting_thread(void *unused)
{
	filled(malloc(12 * KIB), 12 * KIB); // leak_of_waiting_threads
	sem_post(&is_waiting);
	for (;;)
		pause();
	return unused;
}

APART static void
leak_of_waiting_threads(unsigned steps)
{
	pthread_t thread;
	pthread_attr_t attributes;

	sem_init(&is_waiting, 0, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 * KIB);
	EACH_STEP(i, steps)
	{
		pthread_create(&thread, &attributes, waiting_thread, NULL); // leak_of_waiting_threads
		sem_wait(&is_waiting);
		work();
	}
}

struct share {
	unsigned steps;
	bool is_first;
};

static void *
leaking_thread(void *argument)
{
	const struct share *share = argument;

	for (unsigned i = 0; i < share->steps; i++) {
		work();
		sink = filled(malloc(4 * KIB), 4 * KIB); // leak_in_four_threads
		if (share->is_first)
			step_ends();
	}
	return NULL;
}

APART static void
leak_in_four_threads(unsigned steps)
{
	pthread_t threads[4];
	struct share shares[4];

	for (unsigned i = 0; i < 4; i++) {
		shares[i] = (struct share){ steps, i == 0 };
		pthread_create(&threads[i], NULL, leaking_thread, &shares[i]);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

APART static void
leak_in_child(unsigned steps)
{
	pid_t child = fork();

	if (child == 0) {
		EACH_STEP(i, steps)
		{
			work();
			keep(filled(malloc(100 * KIB), 100 * KIB)); // leak_in_child
		}
		exit(0);
	}
	waitpid(child, NULL, 0);
}

static void
free_all(void)
{
	for (unsigned i = 0; i < listed && i < LIST_MAX; i++) {
		free(list[i]);
		list[i] = NULL;
	}
	listed = 0;
}

APART static void
leak_swept_by_atexit(unsigned steps)
{
	atexit(free_all);
	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc(300 * KIB), 300 * KIB)); // leak_swept_by_atexit
	}
}

APART static void
leak_swept_by_main(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc(300 * KIB), 300 * KIB)); // leak_swept_by_main
	}
	free_all();
}

APART static void
leak_of_mappings(unsigned steps)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;

	EACH_STEP(i, steps)
	{
		work();
		void *area = mmap(NULL, 128 * KIB, PROT_READ | PROT_WRITE, flags, -1, 0); // leak_of_mappings

		filled(area, 128 * KIB);
	}
}

/* Three lines, one cause. The payload is the biggest. */
APART static void
leak_together(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		void **node = malloc(64);

		work();
		node[0] = malloc(3000);
		node[1] = filled(malloc(40 * KIB), 40 * KIB); // leak_together
		keep(node);
	}
}

APART static void
leak_growing(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc((i + 1) * KIB), (i + 1) * KIB)); // leak_growing
	}
}

APART static void
leak_of_copies(unsigned steps)
{
	char text[9000];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	EACH_STEP(i, steps)
	{
		work();
		keep(strdup(text)); // leak_of_copies
	}
}

APART static void
leak_beside_sawtooth(unsigned steps)
{
	static void *teeth[60];

	EACH_STEP(i, steps)
	{
		keep(filled(malloc(5 * KIB), 5 * KIB)); // leak_beside_sawtooth
		for (unsigned k = 0; k < 60; k++) {
			free(teeth[k]);
			teeth[k] = i % 10 < 9 ? malloc(30 * KIB) : NULL;
		}
	}
}

/* ---- unseen: leaks that begin late, or that the program's end sweeps away, written before the rules for them (leakset.py, UNSEEN) ---- */

APART static void
begin_late(void)
{
	for (unsigned i = 0; i < 400; i++)
		work();
}

static char *
grown(char *block, size_t bytes)
{
	char *larger = realloc(block, bytes); // leak_late_of_sessions leak_swept_of_sessions

	return filled(larger, bytes);
}

APART static void
leak_late_of_sessions(unsigned steps)
{
	begin_late();
	EACH_STEP(i, steps)
	{
		char *text = NULL;

		work();
		for (size_t bytes = KIB; bytes <= 16 * KIB; bytes *= 2)
			text = grown(text, bytes); // leak_late_of_sessions
		keep(text);
	}
}

APART static void
leak_late_after_large(unsigned steps)
{
	for (unsigned i = 0; i < 100; i++)
		free(filled(malloc(16 * MIB), KIB));
	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc(40 * KIB), 40 * KIB)); // leak_late_after_large
	}
}

/* One block, longer and longer. */
APART static void
leak_late_array(unsigned steps)
{
	char *array = NULL;

	begin_late();
	EACH_STEP(i, steps)
	{
		work();
		array = realloc(array, (i + 1) * 16 * KIB); // leak_late_array
		sink = memset(array + i * 16 * KIB, 1, 16 * KIB);
	}
}

APART static void
leak_swept_of_sessions(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		char *text = NULL;

		work();
		for (size_t bytes = 75 * KIB; bytes <= 300 * KIB; bytes *= 2)
			text = grown(text, bytes); // leak_swept_of_sessions
		keep(text);
	}
	free_all();
}

APART static void
leak_swept_array(unsigned steps)
{
	char *array = NULL;

	EACH_STEP(i, steps)
	{
		work();
		array = realloc(array, (i + 1) * 300 * KIB); // leak_swept_array
		sink = memset(array + i * 300 * KIB, 1, 300 * KIB);
	}
	free(array);
}

static void *
thread_that_sweeps(void *argument)
{
	unsigned steps = *(unsigned *)argument;

	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc(300 * KIB), 300 * KIB)); // leak_swept_by_thread
	}
	free_all();
	return NULL;
}

APART static void
leak_swept_by_thread(unsigned steps)
{
	pthread_t thread;

	pthread_create(&thread, NULL, thread_that_sweeps, &steps);
	pthread_join(thread, NULL);
}

/* ---- controls ---- */

APART static void
control_warm_up(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 10 && i < steps / 4; k++)
			keep(filled(malloc(8 * KIB), 8 * KIB));
		work();
	}
}

/* Of 100 keys each step wants four: what is new becomes rare. */
APART static void
control_cache_that_fills(unsigned steps)
{
	static void *cache[100];

	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 4; k++) {
			unsigned key = number_below(100);

			if (cache[key] == NULL)
				cache[key] = filled(malloc(20 * KIB), 20 * KIB);
		}
		work();
	}
}

APART static void
control_cache_that_evicts(unsigned steps)
{
	static void *cache[64];

	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 3; k++) {
			unsigned key = (i * 3 + k) % 64;

			free(cache[key]);
			cache[key] = filled(malloc(10 * KIB), 10 * KIB);
		}
		work();
	}
}

APART static void
control_sawtooth(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		keep(filled(malloc(50 * KIB), 50 * KIB));
		work();
		if (i % 25 == 24)
			free_all();
	}
}

APART static void
control_pool(unsigned steps)
{
	for (unsigned i = 0; i < 64; i++)
		keep(filled(malloc(64 * KIB), 64 * KIB));
	EACH_STEP(i, steps)
	{
		work();
	}
}

APART static void
control_ring(unsigned steps)
{
	static void *ring[16];

	EACH_STEP(i, steps)
	{
		free(ring[i % 16]);
		ring[i % 16] = filled(malloc(MIB), MIB);
		work();
	}
}

APART static void
control_batches_of_varying_size(unsigned steps)
{
	void *batch = NULL;

	EACH_STEP(i, steps)
	{
		size_t bytes = (1 + number_below(40)) * 50 * KIB;

		free(batch);
		batch = filled(malloc(bytes), bytes);
		work();
	}
}

/* It becomes resident page by page. */
APART static void
control_mapping_that_fills(unsigned steps)
{
	char *map = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EACH_STEP(i, steps)
	{
		memset(map + (size_t)i * (64 * MIB / steps), 1, 64 * MIB / steps);
		work();
	}
}

APART static void
control_file_scan(unsigned steps)
{
	int file = open("/proc/self/exe", O_RDONLY);
	char *map = mmap(NULL, 32 * KIB, PROT_READ, MAP_PRIVATE, file, 0);
	char *line = NULL;

	EACH_STEP(i, steps)
	{
		size_t bytes = 64 * KIB;

		line = realloc(line, bytes);
		sink = memcpy(line, map + i % 4096, 4096);
		work();
	}
}

/* Chunks of an arena, all of them given back where a round of the program ends. */
APART static void
control_arena(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 4; k++)
			keep(filled(malloc(64 * KIB), 64 * KIB));
		free_all();
		work();
	}
}

APART static void
control_queue(unsigned steps)
{
	static void *queue[256];
	unsigned first = 0;
	unsigned last = 0;

	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 4; k++)
			queue[last++ % 256] = filled(malloc(10 * KIB), 10 * KIB);
		while (i % 20 == 19 && first < last)
			free(queue[first++ % 256]);
		work();
	}
}

/* In a long run the last generation is nearly all of it: as many of the queue's blocks seem to be of each quarter. */
APART static void
control_long_queue(unsigned steps)
{
	static void *queue[1500];

	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 15000; k++) {
			free(queue[k % 1500]);
			queue[k % 1500] = malloc(6 * KIB);
		}
		work();
	}
}

APART static void
control_table_built_once(unsigned steps)
{
	for (unsigned i = 0; i < 3000; i++)
		keep(filled(malloc(2 * KIB), 2 * KIB));
	EACH_STEP(i, steps)
	{
		for (unsigned k = 0; k < 20; k++)
			sink = memcpy(list[number_below(3000)], list[number_below(3000)], KIB);
		work();
	}
}

APART static void
control_high_then_done(unsigned steps)
{
	for (unsigned i = 0; i < 40; i++)
		keep(filled(malloc(MIB), MIB));
	free_all();
	EACH_STEP(i, steps)
	{
		work();
	}
}

static void *
pool_thread(void *argument)
{
	unsigned steps = *(unsigned *)argument;
	void *own = filled(malloc(200 * KIB), 200 * KIB);

	for (unsigned i = 0; i < steps; i++)
		work();
	free(own);
	return NULL;
}

APART static void
control_pool_of_threads(unsigned steps)
{
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, pool_thread, &steps);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EACH_STEP(i, steps)
	{
		work();
	}
}

/* ---- unseen controls: the same two kinds ---- */

APART static void
control_late_table(unsigned steps)
{
	begin_late();
	for (unsigned i = 0; i < 800; i++)
		keep(filled(malloc(4 * KIB), 4 * KIB));
	EACH_STEP(i, steps)
	{
		work();
	}
}

APART static void
control_late_ring(unsigned steps)
{
	static void *ring[16];

	begin_late();
	EACH_STEP(i, steps)
	{
		free(ring[i % 16]);
		ring[i % 16] = filled(malloc(64 * KIB), 64 * KIB);
		work();
	}
}

APART static void
control_late_array(unsigned steps)
{
	char *array = NULL;

	begin_late();
	for (unsigned i = 0; i < 64; i++) {
		array = realloc(array, (i + 1) * 32 * KIB);
		sink = memset(array + i * 32 * KIB, 1, 32 * KIB);
	}
	keep(array);
	EACH_STEP(i, steps)
	{
		work();
	}
}

/* The last one ends with the program. */
APART static void
control_stages_then_end(unsigned steps)
{
	EACH_STEP(i, steps)
	{
		work();
		keep(filled(malloc(300 * KIB), 300 * KIB));
		if (i % (steps / 4) == steps / 4 - 1)
			free_all();
	}
}

APART static void
control_loaded_then_swept(unsigned steps)
{
	for (unsigned i = 0; i < 40; i++)
		keep(filled(malloc(MIB), MIB));
	EACH_STEP(i, steps)
	{
		work();
	}
	free_all();
}

APART static void
control_array_up_and_down(unsigned steps)
{
	char *array = NULL;

	EACH_STEP(i, steps)
	{
		work();
		array = realloc(array, (1 + i % 20) * 300 * KIB);
		sink = memset(array, 1, (1 + i % 20) * 300 * KIB);
	}
	free(array);
}

/* ---- for leaks.py ---- */

void *leak_from_c(size_t bytes);
void *cached_in_c(unsigned key, size_t bytes);

void *
leak_from_c(size_t bytes)
{
	work();
	return filled(malloc(bytes), bytes); // leak_in_extension leak_in_extension_swept leak_in_extension_threads
}

void *
cached_in_c(unsigned key, size_t bytes)
{
	static void *cache[50];

	work();
	if (cache[key % 50] == NULL)
		cache[key % 50] = filled(malloc(bytes), bytes);
	return cache[key % 50];
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
		void (*run)(unsigned steps);
	} scenes[] = {
		SCENE(leak_block),
		SCENE(leak_bare_loop),
		SCENE(leak_tiny),
		SCENE(leak_after_pool),
		SCENE(leak_one_in_ten),
		SCENE(leak_in_churn),
		SCENE(leak_in_bursts),
		SCENE(leak_late),
		SCENE(leak_of_short_threads),
		SCENE(leak_of_waiting_threads),
		SCENE(leak_in_four_threads),
		SCENE(leak_in_child),
		SCENE(leak_swept_by_atexit),
		SCENE(leak_swept_by_main),
		SCENE(leak_of_mappings),
		SCENE(leak_together),
		SCENE(leak_growing),
		SCENE(leak_of_copies),
		SCENE(leak_beside_sawtooth),
		SCENE(leak_late_of_sessions),
		SCENE(leak_late_after_large),
		SCENE(leak_late_array),
		SCENE(leak_swept_of_sessions),
		SCENE(leak_swept_array),
		SCENE(leak_swept_by_thread),
		SCENE(control_warm_up),
		SCENE(control_cache_that_fills),
		SCENE(control_cache_that_evicts),
		SCENE(control_sawtooth),
		SCENE(control_pool),
		SCENE(control_ring),
		SCENE(control_batches_of_varying_size),
		SCENE(control_mapping_that_fills),
		SCENE(control_file_scan),
		SCENE(control_arena),
		SCENE(control_queue),
		SCENE(control_long_queue),
		SCENE(control_table_built_once),
		SCENE(control_high_then_done),
		SCENE(control_pool_of_threads),
		SCENE(control_late_table),
		SCENE(control_late_ring),
		SCENE(control_late_array),
		SCENE(control_stages_then_end),
		SCENE(control_loaded_then_swept),
		SCENE(control_array_up_and_down),
	};

	for (size_t i = 0; argc == 3 && i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (strcmp(argv[1], scenes[i].name) == 0) {
			scenes[i].run((unsigned)strtoul(argv[2], NULL, 10));
			return 0;
		}
	}
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		puts(scenes[i].name);
	return argc != 1;
}
