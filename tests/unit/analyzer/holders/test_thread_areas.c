/*
 * test_thread_areas.c - are thread-local variables of libraries found in each thread, and does damage end nothing?
 *
 * The memory is this program's own; what is read of it may be changed on the way.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../../../random.h"
#include "holders/thread_areas.h"
#include "memory_moved.h"

#define LIBRARIES_MAX 4096u
#define RUNS 200

static __thread long own_variable = 7;

struct fixture {
	struct process_memory memory;
	struct process_modules modules;
	struct text_pool *pool;
	struct stopped_thread threads[2];
	struct stopped_process process;
	long *variables[2];
	int *errors[2];
	pthread_t thread;
	int ready[2];
	int go[2];
	/* How what is read is changed. */
	size_t (*fetch)(void *context, uint64_t addr, void *to, size_t bytes);
	void *context;
	uint64_t random;  // 0 = it is not
	uint64_t word_at; // whose word is another one; 0 = none
	uint64_t word;
};

static void
see_thread(struct fixture *fixture, unsigned number)
{
	own_variable = 9;
	fixture->threads[number].thread_addr = (uintptr_t)__builtin_thread_pointer();
	fixture->variables[number] = &own_variable;
	fixture->errors[number] = &errno;
}

static void *
other_thread(void *context)
{
	struct fixture *fixture = context;
	char word;

	see_thread(fixture, 1);
	(void)!write(fixture->ready[1], "r", 1);
	(void)!read(fixture->go[0], &word, 1);
	return NULL;
}

static size_t
changed_fetch(void *context, uint64_t addr, void *to, size_t bytes)
{
	struct fixture *fixture = context;
	size_t got = fixture->fetch(fixture->context, addr, to, bytes);

	if (fixture->word_at >= addr && fixture->word_at + 8 <= addr + got)
		memcpy((char *)to + (fixture->word_at - addr), &fixture->word, 8);
	for (unsigned i = 0; fixture->random != 0 && got >= 8 && i < 1 + random_below(&fixture->random, 64); i++) {
		uint64_t word = random_next(&fixture->random) >> random_below(&fixture->random, 64);

		memcpy((char *)to + random_below(&fixture->random, got / 8) * 8, &word, 8);
	}
	return got;
}

static void
find(struct fixture *fixture, struct thread_areas *areas)
{
	memory_moved(&fixture->memory);
	thread_areas_find(&fixture->memory, &fixture->process, &fixture->modules, areas);
}

static int
set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct fail fail;
	char word;

	assert_non_null(fixture);
	assert_int_equal(pipe(fixture->ready), 0);
	assert_int_equal(pipe(fixture->go), 0);
	see_thread(fixture, 0);
	assert_int_equal(pthread_create(&fixture->thread, NULL, other_thread, fixture), 0);
	assert_int_equal(read(fixture->ready[0], &word, 1), 1);
	fixture->process = (struct stopped_process){ .pid = getpid(), .count = 2, .threads = fixture->threads };
	fixture->pool = text_pool_new();
	assert_true(process_memory_open("test", getpid(), &fixture->memory, &fail));
	process_modules_make(&fixture->memory, getpid(), fixture->pool, &fixture->modules);
	fixture->fetch = fixture->memory.fetch;
	fixture->context = fixture->memory.context;
	fixture->memory.fetch = changed_fetch;
	fixture->memory.fetch_pages = NULL;
	fixture->memory.context = fixture;
	*state = fixture;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *fixture = *state;

	(void)!write(fixture->go[1], "g", 1);
	(void)pthread_join(fixture->thread, NULL);
	fixture->memory.context = fixture->context;
	fixture->memory.fetch = fixture->fetch; // whose context is freed with it
	process_modules_free(&fixture->modules);
	process_memory_close(&fixture->memory);
	text_pool_free(fixture->pool);
	for (unsigned i = 0; i < 2; i++) {
		(void)close(fixture->ready[i]);
		(void)close(fixture->go[i]);
	}
	free(fixture);
	return 0;
}

/* Under an emulator the kernel knows other addresses. */
static void
need_own_memory(struct fixture *fixture)
{
	if (process_memory_word(&fixture->memory, (uintptr_t)fixture->variables[0]) != 9)
		skip();
}

TEST(variables_of_the_program_and_of_a_library_are_found_in_each_thread)
{
	struct fixture *fixture = *test_state;
	struct thread_areas areas;

	need_own_memory(fixture);
	find(fixture, &areas);
	for (unsigned i = 0; i < 2; i++) {
		const struct thread_area *own = thread_areas_at(&areas, (uintptr_t)fixture->variables[i]);
		const struct thread_area *of_libc = thread_areas_at(&areas, (uintptr_t)fixture->errors[i]);

		assert_true(own != NULL && of_libc != NULL);
		assert_int_equal(own->thread, i);
		assert_int_equal(of_libc->thread, i);
		assert_ptr_equal(own->module, process_modules_at(&fixture->modules, (uintptr_t)other_thread));
		assert_non_null(strstr(of_libc->module->path, "libc"));
	}
	assert_null(thread_areas_at(&areas, (uintptr_t)fixture));
	assert_null(thread_areas_at(&areas, 0));
	thread_areas_free(&areas);
}

static uint64_t
loaders_list(struct fixture *fixture)
{
	uint64_t global = 0;
	uint64_t described = 0;

	for (size_t i = 0; i < fixture->modules.count; i++) {
		struct process_module *module = &fixture->modules.modules[i];

		if (strstr(module->path, "/ld-") != NULL)
			global = process_module_named(&fixture->modules, module, "_rtld_global");
		if (strstr(module->path, "/libc.so") != NULL)
			described = process_module_named(&fixture->modules, module,
			                                 "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list");
	}
	assert_true(global != 0 && described != 0);
	return process_memory_word(&fixture->memory, global + process_memory_half(&fixture->memory, described + 8));
}

TEST(a_list_without_end_is_left)
{
	struct fixture *fixture = *test_state;
	uint64_t list;
	const struct {
		uint64_t at;
		uint64_t word;
	} changes[] = { { 8, 0 }, { 0, UINT64_MAX } }; // the next one is itself; it has no end

	need_own_memory(fixture);
	list = loaders_list(fixture);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct thread_areas areas;

		fixture->word_at = list + changes[i].at;
		fixture->word = changes[i].word != 0 ? changes[i].word : list;
		find(fixture, &areas);
		assert_true(areas.count >= 4 && areas.count <= 2 * LIBRARIES_MAX);
		thread_areas_free(&areas);
	}
	fixture->word_at = 0;
}

TEST(damage_ends_nothing)
{
	struct fixture *fixture = *test_state;
	uint64_t seed = random_seed();

	for (unsigned i = 0; i < RUNS; i++) {
		struct thread_areas areas;

		fixture->random = seed + i + 1;
		find(fixture, &areas);
		for (size_t k = 0; k < areas.count; k++)
			assert_true(areas.areas[k].start < areas.areas[k].end && areas.areas[k].thread < 2);
		thread_areas_free(&areas);
	}
	fixture->random = 0;
}

int
main(void)
{
	return test_run(set_up, tear_down, NULL, NULL);
}
