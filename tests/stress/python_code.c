/*
 * python_code.c - code objects are born, named by several threads and die, all at once.
 *
 * lives          Addresses with a life each: threads that hold one (as a running frame does) must find the name of
 *                its present life; a thread that holds it alone ends it (as the dealloc slot does) and lets
 *                another life begin at the same address. What a thread has found holds for as long as no death is
 *                counted, with no order between threads but the one that hands the object over.
 * first_sights   Threads meet the same new objects at the same moment, in opposite order, without any lock: the
 *                tables' own release and acquire order the records' bytes. One thread reads what another wrote.
 *
 * SEED seeds the random numbers; it is printed.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/shim/python/python_fakes.h"
#include "capture/capture_file.h"
#include "python/python_code.h"

enum { THREADS = 4, ADDRESSES = 64, STEPS = 60000, OBJECTS = 3000 };

static struct python_interpreter python;
static struct fake_code fakes[OBJECTS];
static char names[OBJECTS][24];
static pthread_rwlock_t lives[ADDRESSES];
static _Atomic uint64_t misnamed;
static pthread_barrier_t barrier;
static unsigned seed;

static bool
is_named(struct python_code code, const char *name)
{
	if (!code.is_found)
		return false;
	const struct kmem_code *record = capture_file_at(KMEM_SECTION_RECORDS, code.index);
	return record->function_bytes == strlen(name) &&
	       memcmp((const char *)(record + 1) + record->file_bytes, name, strlen(name)) == 0;
}

static void *
live_and_die(void *argument)
{
	unsigned random = seed + (unsigned)(uintptr_t)argument;
	struct python_code found = { .is_found = false };
	uint64_t found_at = 0; // deaths
	int last = 0;

	for (int step = 0; step < STEPS; step++) {
		int i = rand_r(&random) % 4 != 0 ? last : rand_r(&random) % ADDRESSES;

		if (rand_r(&random) % 8 != 0) {
			pthread_rwlock_rdlock(&lives[i]);

			uint64_t deaths = python_code_deaths();
			bool is_wrong = found.is_found && i == last && deaths == found_at && !is_named(found, names[i]);

			found = python_code_find(&python, (uint64_t)fakes[i].code);
			found_at = deaths;
			last = i;
			if (is_wrong || !is_named(found, names[i]))
				atomic_fetch_add_explicit(&misnamed, 1, memory_order_relaxed);
			pthread_rwlock_unlock(&lives[i]);
		} else {
			pthread_rwlock_wrlock(&lives[i]);
			python_code_forget((uint64_t)fakes[i].code);
			snprintf(names[i], sizeof(names[i]), "life_%d", rand_r(&random) % 500);
			fake_code_make(&fakes[i], "/x.py", names[i], 1, "t");
			pthread_rwlock_unlock(&lives[i]);
		}
	}
	return NULL;
}

static void *
meet(void *argument)
{
	bool is_reverse = (uintptr_t)argument % 2 == 1;

	pthread_barrier_wait(&barrier);
	for (int round = 0; round < 2; round++)
		for (int n = 0; n < OBJECTS; n++) {
			int i = is_reverse ? OBJECTS - 1 - n : n;

			if (!is_named(python_code_find(&python, (uint64_t)fakes[i].code), names[i]))
				atomic_fetch_add_explicit(&misnamed, 1, memory_order_relaxed);
		}
	return NULL;
}

static void
run_threads(void *(*body)(void *))
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load_explicit(&misnamed, memory_order_relaxed), 0);
}

static void
make_objects(int count)
{
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "object_%d", i);
		fake_code_make(&fakes[i], "/x.py", names[i], 1, "t");
	}
}

TEST(names_belong_to_the_present_life)
{
	make_objects(ADDRESSES);
	for (int i = 0; i < ADDRESSES; i++)
		pthread_rwlock_init(&lives[i], NULL);
	run_threads(live_and_die);
}

TEST(first_sights_by_all_threads)
{
	python_code_forked();
	make_objects(OBJECTS);
	pthread_barrier_init(&barrier, NULL, THREADS);
	run_threads(meet);
}

int
main(void)
{
	const char *given = getenv("SEED");

	seed = given != NULL && *given != '\0' ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
	printf("SEED=%u\n", seed);
	python = fake_interpreter();
	return test_run(NULL, NULL, NULL, NULL);
}
