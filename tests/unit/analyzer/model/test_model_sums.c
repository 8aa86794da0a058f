/*
 * test_model_sums.c - do the records of all threads add up to what their process held?
 *
 * A call site has one record for each thread that requested or released there, domains have no counters of their own, and
 * the words of peaks lag behind: what the model says is made of sums.
 */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmem_words.h"
#include "load_built.h"
#include "owned.h"

static struct model *
load(struct capture_builder *builder)
{
	return load_built(builder, KMEM_STATE_CLEAN_EXIT);
}

static struct model *
load_sound(struct capture_builder *builder)
{
	struct model *model = load(builder);

	if (model->damage_count != 0)
		fail_msg("damaged: %s", model->damages[0]);
	return model;
}

static uint32_t
new_stack(struct capture_builder *builder, uint64_t innermost)
{
	uint64_t frames[] = { innermost, 0x500200 };

	return capture_builder_stack(builder, frames, 2, 0);
}

/* The second record of a thread that released more than it requested. */
static struct kmem_site *
new_record(struct capture_builder *builder, uint32_t stack, uint16_t slot, uint64_t allocated_bytes,
           uint64_t allocated_count, uint64_t freed_bytes, uint64_t freed_count)
{
	struct kmem_site *site = capture_builder_site_at(builder, capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack,
	                                                                               allocated_bytes, allocated_count,
	                                                                               freed_bytes, freed_count));

	site->slot = slot;
	return site;
}

/* "<unknown> <unknown>" is no place. */
TEST(code_without_room_for_its_name_is_said_in_words)
{
	struct capture_builder *builder = capture_builder_new();
	uint64_t frame = capture_builder_python_frame(
		capture_builder_code(builder, "<unknown>", "<unknown>", 0, 0, NULL, 0), 0);

	capture_builder_site(builder, KMEM_DOMAIN_HEAP, capture_builder_stack(builder, &frame, 1, 0), 5000, 50, 1000, 10);
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_string_equal(model->sites[0].where->function, "Python code whose name found no room");
	assert_string_equal(model->sites[0].where->file, "");
	assert_false(model->sites[0].where->is_user);
}

TEST(a_domain_is_the_sum_of_its_sites)
{
	struct capture_builder *builder = capture_builder_new();

	capture_builder_site(builder, KMEM_DOMAIN_HEAP, new_stack(builder, 0x400100), 5000, 50, 1000, 10);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, 0, 700, 7, 100, 1); // not published yet (S1)
	capture_builder_site(builder, KMEM_DOMAIN_MMAP, new_stack(builder, 0x400200), 0, 0, 0, 0);
	capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->is_used = 0; // sites are use enough
	capture_builder_domain(builder, KMEM_DOMAIN_MMAP)->is_used = 0; // this one is not: nothing was ever booked
	capture_builder_header(builder)->failed[0] = (struct kmem_failed){ .sequence = 1, .bytes = 1, .events_before = 56 };
	capture_builder_header(builder)->failed[1] = (struct kmem_failed){
		.sequence = 2, .bytes = 1, .events_before = 57, .monotonic_ns = 1
	};
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->domain_count, 1);
	assert_int_equal(model->domains[0].allocated_bytes, 5700);
	assert_int_equal(model->domains[0].allocated_count, 57);
	assert_int_equal(model->domains[0].freed_bytes, 1100);
	assert_int_equal(model->domains[0].freed_count, 11);
	assert_int_equal(model->domains[0].live_bytes, 4600);
	assert_int_equal(model->domains[0].live_count, 46);
	assert_int_equal(model->processes[0].allocated_bytes, 5700);
	assert_int_equal(model->processes[0].live_bytes, 4600);
	assert_int_equal(model->processes[0].peak_bytes, 4600);
	assert_int_equal(model->site_count, 2);
	assert_int_equal(model->sites[1].frame_count, 0);
	assert_int_equal(model->sites[1].live_bytes, 600);
	assert_true(model->failed[0].had_success_after);
	assert_false(model->failed[1].had_success_after);
}

/* What the domain's word says is live lags behind, upwards and downwards. */
TEST(peaks_are_of_what_the_sites_hold)
{
	static const struct {
		uint64_t word_now, first_now, second_now;
		uint64_t domain_peak, first_peak, second_peak;
	} cases[] = {
		{ 1000, 4000, 2000, 6000, 4000, 2000 },           // a new maximum that the word does not know
		{ 7000, 3000, 1000, 5000, 3500, 1000 },           // the word does not know the fall either
		{ 7000, 9000, UINT64_MAX - 999, 8000, 9000, 0 },  // a site that released more
		{ 7000, 1000, UINT64_MAX - 1999, 5000, 3500, 0 }, // as all of them, in between
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = capture_builder_new();

		/* Its epoch is the domain's: it held 3500 when that began. The other one was not touched since. */
		struct kmem_site *site = new_record(builder, new_stack(builder, 0x400100), 1, 20000, 2, 10000, 1);
		site->peak = kmem_peak_pack(cases[i].first_now, 3500, 3);
		site = new_record(builder, new_stack(builder, 0x400200), 1, 20000, 2, 10000, 1);
		site->peak = kmem_peak_pack(cases[i].second_now, 77, 2);
		capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->peak = kmem_peak_pack(cases[i].word_now, 5000, 3);
		OWNED_BY(model) struct model *model = load_sound(builder);
		assert_int_equal(model->domains[0].peak_bytes, cases[i].domain_peak);
		assert_int_equal(model->processes[0].peak_bytes, cases[i].domain_peak);
		assert_int_equal(model->sites[0].peak_bytes, cases[i].first_peak);
		assert_int_equal(model->sites[1].peak_bytes, cases[i].second_peak);
	}
}

/* Each thread may have been killed in a request: between what the domain counts and what its site does. More than that is damage. */
TEST(a_request_that_was_in_progress_explains_a_difference)
{
	static const unsigned domains[] = { KMEM_DOMAIN_HEAP, KMEM_DOMAIN_MMAP, KMEM_DOMAIN_SHARED };

	for (size_t count = 1; count <= 3; count++) {
		struct capture_builder *builder = capture_builder_new();

		(void)new_record(builder, new_stack(builder, 0x400100), 1, 4000, 1, 0, 0);
		for (size_t i = 0; i < count; i++)
			capture_builder_domain(builder, domains[i])->peak = kmem_peak_pack(256 * 1024 + 4000, 300000, 3);
		OWNED_BY(model) struct model *model = load_built(builder, KMEM_STATE_RUNNING);
		assert_int_equal(model->capture_damage_count, count);
		assert_non_null(strstr(model->damages[0], "a request was in progress, or the file is damaged"));
		assert_int_equal(model->under_way_count, count <= 2 ? count : 0); // a thread changes two at most, in realloc
		char told[MODEL_DAMAGE_BYTES];
		assert_int_equal(strstr(model_damage_text(model, told), "damaged; all was read") != NULL, count <= 2);
		assert_int_equal(strstr(told, "damaged; 3 damaged places in total, the rest was read") != NULL, count == 3);
	}
}

TEST(threads_that_release_for_others_are_one_site)
{
	struct capture_builder *builder = capture_builder_new();
	uint32_t stack = new_stack(builder, 0x400100);

	new_record(builder, stack, 1, 0, 0, 6000, 6)->peak = kmem_peak_pack(UINT64_C(0) - 6000, UINT64_C(0) - 1500, 9);
	new_record(builder, new_stack(builder, 0x400200), 1, 100, 1, 0, 0)->peak = kmem_peak_pack(100, 0, 0);
	new_record(builder, stack, 2, 10000, 10, 0, 0)->peak = kmem_peak_pack(10000, 9000, 9);
	new_record(builder, new_stack(builder, 0x400100), 3, 500, 1, 700, 2)->peak = kmem_peak_pack(UINT64_C(0) - 200, 0,
	                                                                                            4);
	capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->peak = kmem_peak_pack(3900, 9000, 9);
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->site_count, 2);
	assert_int_equal(model->sites[0].process_count, 1);
	assert_int_equal(model->sites[0].allocated_bytes, 10500);
	assert_int_equal(model->sites[0].allocated_count, 11);
	assert_int_equal(model->sites[0].live_bytes, 3800);
	assert_int_equal(model->sites[0].live_count, 3);
	assert_int_equal(model->sites[0].peak_bytes, 9000 - 1500 - 200);
	assert_int_equal(model->sites[0].generations_alive, 1);
	assert_int_equal(model->sites[1].live_bytes, 100);
	assert_int_equal(model->domains[0].live_bytes, 3900);
	assert_int_equal(model->domains[0].live_count, 4);
}

TEST(only_the_sum_can_be_impossible)
{
	struct capture_builder *builder = capture_builder_new();
	uint32_t stack = new_stack(builder, 0x400100);

	new_record(builder, stack, 1, 1000, 3, 0, 0);
	new_record(builder, stack, 2, 0, 0, 1001, 3);
	OWNED_BY(model) struct model *model = load(builder);
	assert_int_equal(model->damage_count, 1);
	assert_non_null(strstr(model->damages[0], "1 counter released more than was allocated:"));
	assert_int_equal(model->sites[0].live_bytes, 0);
	assert_int_equal(model->sites[0].live_count, 0);
	assert_int_equal(model->sites[0].peak_bytes, 0);
	assert_int_equal(model->domains[0].live_bytes, 0);
	assert_int_equal(model->domains[0].peak_bytes, 0);
}

TEST(a_record_of_frees_alone_is_a_use)
{
	struct capture_builder *builder = capture_builder_new();

	new_record(builder, new_stack(builder, 0x400100), 1, 0, 0, 10, 1);
	capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->is_used = 0;
	OWNED_BY(model) struct model *model = load(builder);
	assert_int_equal(model->damage_count, 1);
	assert_non_null(strstr(model->damages[0], "2 counters released more than was allocated:"));
	assert_int_equal(model->domain_count, 1);
	assert_int_equal(model->domains[0].freed_bytes, 10);
}

TEST(generations_of_threads_are_summed_by_tick)
{
	struct capture_builder *builder = capture_builder_new();
	uint32_t stack = new_stack(builder, 0x400100);

	capture_builder_header(builder)->generation_clock = 40;
	new_record(builder, stack, 1, 8000, 8, 0, 0)->first_generation = 9;
	new_record(builder, stack, 2, 4000, 4, 0, 0)->first_generation = 30;
	new_record(builder, stack, 3, 0, 0, 2000, 2)->first_generation = 38;
	struct kmem_generations *block = capture_builder_generations(builder, 0, 25, 31);
	*capture_builder_born(block, 25) = 3;
	*capture_builder_born(block, 26) = 2;
	*capture_builder_born(block, 31) = 1;
	block = capture_builder_generations(builder, 1, 35, 38);
	*capture_builder_born(block, 26) = (uint32_t)-2; // together nothing
	*capture_builder_born(block, 27) = (uint32_t)-1; // less than nothing is nothing
	*capture_builder_born(block, 38) = 2;
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->sites[0].live_count, 10);
	assert_int_equal(model->sites[0].generations_total, 12); // seven and four, and what is older
	assert_int_equal(model->sites[0].generations_alive, 4);  // of the first, seventh and last; 4 of 10 are older
	assert_int_equal(model->sites[0].recent_total, 3);
	assert_int_equal(model->sites[0].recent_alive, 1); // the latest birth is that of the second thread
	assert_int_equal(model->sites[0].survivors.count, 12);
	assert_memory_equal(model->sites[0].survivors.cells, ((uint8_t[]){ 9, 7, 0, 0, 0, 0, 0, 3, 0, 0, 0, 5 }), 12);
}

/* One thread makes blocks of five generations, another, which makes none, releases them all but one. */
TEST(what_a_consumer_releases_is_not_alive)
{
	struct capture_builder *builder = capture_builder_new();
	uint32_t stack = new_stack(builder, 0x400100);

	capture_builder_header(builder)->generation_clock = 40;
	new_record(builder, stack, 1, 10000, 10, 0, 0)->first_generation = 30;
	new_record(builder, stack, 2, 0, 0, 9000, 9)->first_generation = 31;
	struct kmem_generations *made = capture_builder_generations(builder, 0, 34, 38);
	struct kmem_generations *released = capture_builder_generations(builder, 1, 0, 0); // it has no births of its own
	for (unsigned tick = 34; tick <= 38; tick++) {
		*capture_builder_born(made, tick) = 2;
		*capture_builder_born(released, tick) = (uint32_t)(tick == 37 ? -1 : -2);
	}
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->sites[0].live_count, 1);
	assert_int_equal(model->sites[0].generations_total, 6);
	assert_int_equal(model->sites[0].generations_alive, 1);
}

/* The clock runs eight times per doubling: 33 to 41 is one doubling of the volume, 41 to 44 three eighths of that again. */
TEST(what_was_built_at_one_go_does_not_accumulate)
{
	static const struct {
		unsigned first, latest, clock;
		bool is_recent, has_paused;
		unsigned total;
	} cases[] = {
		{ 33, 41, 41, true, false, 9 },  { 33, 41, 42, true, false, 9 },  { 33, 41, 43, true, true, 9 },
		{ 33, 41, 44, false, true, 12 }, { 33, 41, 60, false, true, 28 }, { 9, 41, 44, true, true, 9 },
		{ 9, 41, 45, false, true, 37 },  { 1, 9, 10, true, false, 9 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = capture_builder_new();
		uint32_t stack = new_stack(builder, 0x400100);

		capture_builder_header(builder)->generation_clock = cases[i].clock;
		new_record(builder, stack, 1, 9000, 9, 0, 0)->first_generation = (uint8_t)cases[i].first;
		struct kmem_generations *block = capture_builder_generations(builder, 0, cases[i].latest - 7, cases[i].latest);
		for (unsigned j = 0; j < 8; j++)
			*capture_builder_born(block, cases[i].latest - j) = 1;
		OWNED_BY(model) struct model *model = load_sound(builder);
		assert_int_equal(model->sites[0].generations_alive, 9); // eight, and what is older
		assert_int_equal(model->sites[0].generations_total, cases[i].total);
		assert_int_equal(model->sites[0].recent_alive != 0, cases[i].is_recent);
		assert_int_equal(model->sites[0].has_paused, cases[i].has_paused);
		assert_int_equal(model->sites[0].survivors.count, cases[i].total < 32 ? cases[i].total : 32);
		assert_int_equal(model->sites[0].survivors.cells[cases[i].total < 32 ? 8 : 0], 9);
		if (!cases[i].is_recent) // nothing is left of what the line did not allocate any more
			assert_int_equal(model->sites[0].survivors.cells[model->sites[0].survivors.count - 1], 0);
	}
}

/* The first of all epochs decides how old a site without counters is; who released others' blocks hides none. */
TEST(generations_without_counters_begin_with_the_first_record)
{
	struct capture_builder *builder = capture_builder_new();
	uint32_t stack = new_stack(builder, 0x400100);

	capture_builder_header(builder)->generation_clock = 20;
	new_record(builder, stack, 1, 0, 0, 1000, 1)->first_generation = 15;
	new_record(builder, stack, 2, 3000, 3, 0, 0)->first_generation = 11;
	new_record(builder, stack, 2, 0, 0, 1000, 1)->first_generation = 19;
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->sites[0].generations_total, 10);
	assert_int_equal(model->sites[0].generations_alive, 1);
}

/* No thread ever holds an older block of the line, so that none has counters. */
TEST(threads_that_keep_one_block_each_are_generations)
{
	static const struct {
		unsigned threads, kept_from, clock;
		uint32_t total, alive, recent;
	} cases[] = {
		{ 12, 0, 22, 12, 12, 3 }, // a thread in each tick, all keep theirs
		{ 12, 10, 22, 12, 2, 2 }, // only the latest do
		{ 12, 0, 40, 31, 12, 0 }, // they came long ago
		{ 5, 0, 15, 6, 1, 0 },    // too few to be judged so
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = capture_builder_new();
		uint32_t stack = new_stack(builder, 0x400100);

		capture_builder_header(builder)->generation_clock = cases[i].clock;
		for (unsigned k = 0; k < cases[i].threads; k++) {
			unsigned freed = k < cases[i].kept_from;

			new_record(builder, stack, (uint16_t)(k + 1), 1000, 1, 1000 * freed, freed)
				->first_generation = (uint8_t)(10 + k);
		}
		OWNED_BY(model) struct model *model = load_sound(builder);
		assert_int_equal(model->sites[0].generations_total, cases[i].total);
		assert_int_equal(model->sites[0].generations_alive, cases[i].alive);
		assert_int_equal(model->sites[0].recent_alive, cases[i].recent);
	}
}

/* Eight ticks of 64 KiB: two are a quarter. */
TEST(survivors_are_told_by_quarters_of_the_volume)
{
	static const struct {
		unsigned first, latest, births;
		uint32_t live[8];
		uint64_t quarters[SURVIVAL_QUARTERS];
	} cases[] = {
		{ 1, 8, 7, { 5, 5, 5, 5, 5, 5, 5 }, { 6, 10, 10, 10 } }, // in each tick, and one block before
		{ 1, 8, 2, { 7, 9 }, { 1, 0, 0, 16 } },                  // the first ticks had none
		{ 1, 5, 4, { 8, 4, 2, 0 }, { 9, 6, 0, 0 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = capture_builder_new();
		uint32_t stack = new_stack(builder, 0x400100);
		uint64_t live = 1;

		capture_builder_header(builder)->generation_clock = 9;
		for (unsigned k = 0; k < cases[i].births; k++)
			live += cases[i].live[k];
		new_record(builder, stack, 1, live * 1000, live, 0, 0)->first_generation = (uint8_t)cases[i].first;
		struct kmem_generations *block = capture_builder_generations(builder, 0, cases[i].latest + 1 - cases[i].births,
		                                                             cases[i].latest);
		for (unsigned k = 0; k < cases[i].births; k++)
			*capture_builder_born(block, cases[i].latest + 1 - cases[i].births + k) = cases[i].live[k];
		OWNED_BY(model) struct model *model = load_sound(builder);
		for (unsigned k = 0; k < SURVIVAL_QUARTERS; k++)
			assert_int_equal(model->sites[0].quarters[k], cases[i].quarters[k]);
	}
}

/*
 * A line that allocates evenly for longer than there are buckets: what is left of its first ticks, one block in each, is counted with the
 * latest ones. It leaks, or it is a queue of which the latest blocks are alive.
 */
TEST(a_long_run_is_told_by_its_latest_ticks)
{
	enum { FIRST = 28, CLOCK = 150 };
	static const struct {
		unsigned alive_from;
		uint32_t alive;
		bool is_even;
	} cases[] = { { 1, 60, true }, { CLOCK - 10, 11, false }, { CLOCK, 1, false } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = capture_builder_new();
		uint32_t born[CLOCK + 1] = { 0 };
		uint64_t live = 0;

		capture_builder_header(builder)->generation_clock = CLOCK;
		for (unsigned tick = FIRST > cases[i].alive_from ? FIRST : cases[i].alive_from; tick <= CLOCK; tick++) {
			born[tick] = (uint32_t)((capture_builder_volume(tick + 1) - capture_builder_volume(tick)) >> 20) + 1;
			live += born[tick];
		}
		new_record(builder, new_stack(builder, 0x400100), 1, live * 1000, live, 0, 0)->first_generation = FIRST;
		struct kmem_generations *block = capture_builder_generations(builder, 0, CLOCK - KMEM_GENERATION_BUCKETS + 1,
		                                                             CLOCK);
		for (unsigned tick = FIRST; tick <= CLOCK; tick++)
			*capture_builder_born(block, tick) += born[tick];
		OWNED_BY(model) struct model *model = load_sound(builder);
		assert_int_equal(model->sites[0].generations_total, KMEM_GENERATION_BUCKETS + 1);
		assert_int_equal(model->sites[0].generations_alive, cases[i].alive);
		for (unsigned k = 0; k < SURVIVAL_QUARTERS && cases[i].is_even; k++)
			assert_in_range(model->sites[0].quarters[k], live / 4 - live / 16, live / 4 + live / 16);
	}
}

TEST(peaks_are_off_by_what_the_head_says)
{
	struct capture_builder *builder = capture_builder_new();

	capture_builder_header(builder)->peak_error_bytes = 4096;
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->processes[0].peak_error_bytes, 4096);
}

/* One record requests, one far behind it releases what was requested, as fast as they can. */
static void
write_forever(struct kmem_site *first, struct kmem_site *last)
{
	for (;;) {
		first->peak.now += 1000;
		atomic_fetch_add(&first->allocated_bytes, 1000);
		atomic_fetch_add(&first->allocated_count, 1);
		last->peak.now = (last->peak.now - 1000) & KMEM_PEAK_BYTES_MASK;
		atomic_fetch_add(&last->freed_bytes, 1000);
		atomic_fetch_add(&last->freed_count, 1);
	}
}

TEST(a_program_that_writes_is_never_impossible)
{
	enum { RECORDS = 3000 };
	struct capture_builder *builder = capture_builder_new();
	struct model_options options = { .capture = scratch_file };
	uint32_t stack = new_stack(builder, 0x400100);
	size_t bytes;

	for (unsigned i = 0; i < RECORDS; i++)
		new_record(builder, stack, (uint16_t)i, 1, 1, 1, 1);
	unsigned char *file = capture_builder_finish(builder, KMEM_STATE_RUNNING, &bytes);
	capture_builder_write(scratch_file, file, bytes);
	free(file);
	capture_builder_free(builder);
	int fd = open(scratch_file, O_RDWR);
	assert_true(fd >= 0);
	file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	(void)close(fd);
	pid_t writer = fork();
	assert_true(writer >= 0);
	struct kmem_site *sites = (struct kmem_site *)(void *)(file + KMEM_HEAD_BYTES);
	if (writer == 0)
		write_forever(&sites[0], &sites[900]); // both in the first chunk
	for (unsigned i = 0; i < 100; i++) {
		struct fail fail = { .text = "" };
		OWNED_BY(model) struct model *model = model_load(&options, &fail);

		if (model == NULL || model->damage_count != 0) {
			(void)kill(writer, SIGKILL);
			fail_msg("round %u: %s", i, model == NULL ? fail.text : model->damages[0]);
		}
	}
	(void)kill(writer, SIGKILL);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
	(void)munmap(file, bytes);
}

RUN_TESTS_IN(scratch_make, scratch_remove)
