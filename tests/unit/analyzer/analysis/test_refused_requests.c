/*
 * test_refused_requests.c - what became of a refused request, and is a device shown as it was when it refused?
 */
#include "verdict_case.h"

#include "analysis/device_parts.h"
#include "kmem_words.h"
#include "load_built.h"
#include "analysis/refused_requests.h"
#include "owned.h"

#define ERROR_PATH_KIB 256
#define SECOND_NS UINT64_C(1000000000)

static const struct verdict_now this_boot = { .boot_id = "this-boot" };

/* It ended 50 seconds after the start of time. */
#define EXIT_1 "closed 1; process ended_monotonic_ns=50s; "
#define GONE "heartbeat monotonic_ns=50s; "

static struct model_failed
refused(unsigned domain, uint64_t bytes, uint64_t at_ns)
{
	return (struct model_failed){ .domain = domain, .bytes = bytes, .monotonic_ns = at_ns, .error = 2, .thread = 7 };
}

/* Of the last request alone. */
static const char *
state_of(const struct model_failed *failed)
{
	return refusal_state_name(refusal_state(&hand.model, &this_boot, failed));
}

/* The model has these. */
static void
have_failed(struct model_failed *failed, size_t count)
{
	hand.model.failed = failed;
	hand.model.failed_count = count;
}

TEST(what_became_of_a_request_to_a_device)
{
#define TO(domain, before) "refuse 1G error=2 thread=7 of=" domain " monotonic_ns=50s-" before
#define SINCE " had_success_after=1"
	static const struct {
		const char *why, *scene;
		enum kmem_failed_outcome outcome;
		const char *wanted;
	} cases[] = {
		{ "nothing came of it", EXIT_1 TO("cuda0", "100"), KMEM_FAILED_OPEN, "fatal" },
		{ "the cache was given back, and it tried again", EXIT_1 TO("cuda0", "100") SINCE, KMEM_FAILED_GOT_ENOUGH,
		  "recovered" },
		{ "an allocator of regions asked for less", EXIT_1 TO("cuda0", "100") SINCE, KMEM_FAILED_GOT_LESS,
		  "recovered" },
		{ "others got something", EXIT_1 TO("cuda0", "100") SINCE, KMEM_FAILED_OPEN, "fatal" },
		{ "others got something, and it lived on", EXIT_1 TO("cuda0", "30s") SINCE, KMEM_FAILED_OPEN, "recovered" },
		{ "an error path makes small tensors", EXIT_1 TO("tensors", "100") SINCE, KMEM_FAILED_GOT_LESS, "fatal" },
		{ "a smaller batch did", EXIT_1 TO("tensors", "30s") SINCE, KMEM_FAILED_GOT_LESS, "recovered" },
		{ "it exited well", "closed 0; process ended_monotonic_ns=50s; " TO("tensors", "100"), KMEM_FAILED_OPEN,
		  "recovered" },
		{ "PyTorch gave up, and nothing else was done: a notebook", "alive; " TO("tensors", "100"), KMEM_FAILED_OPEN,
		  "pending" },
		{ "the driver's alone may be tried again", "alive; " TO("cuda0", "100"), KMEM_FAILED_OPEN, "pending" },
		{ "a notebook goes on", "alive; " TO("tensors", "100") SINCE, KMEM_FAILED_OPEN, "recovered" },
		{ "killed right after", GONE TO("tensors", "100") SINCE, KMEM_FAILED_GOT_LESS, "fatal" },
		{ "killed much later", GONE TO("tensors", "30s") SINCE, KMEM_FAILED_OPEN, "recovered" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scene("model domain_count=5; %s", cases[i].scene);
		hand.failed.outcome = cases[i].outcome;
		const char *got = state_of(&hand.failed);
		if (strcmp(got, cases[i].wanted) != 0)
			fail_msg("%s: wanted %s, got %s", cases[i].why, cases[i].wanted, got);
		/* Of a notebook it is what there is to tell: PyTorch asks no second time. */
		assert_int_equal(refusal_of_end(&hand.model, &this_boot, 0) != NULL,
		                 strcmp(got, "fatal") == 0 || (strcmp(got, "pending") == 0 && hand.failed.domain == TENSORS0));
	}
}

/* A program that caught the first one ended with the second; the third is its error path's. */
TEST(of_several_the_one_that_it_did_not_go_on_from)
{
	struct model_failed failed[3];

	scene("model domain_count=5; " EXIT_1);
	for (unsigned i = 0; i < 3; i++) {
		failed[i] = refused(TENSORS0, i == 2 ? MIB : 40 * MIB, 49 * SECOND_NS + i);
		failed[i].events_before = 100 * (i + 1);
		failed[i].had_success_after = true;
	}
	have_failed(failed, 3);
	assert_string_equal(state_of(&failed[0]), "recovered");
	assert_string_equal(state_of(&failed[1]), "fatal");
	assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[1]);
}

/* Caught, and within the second memory ran out: only from what an error path asks for is there a step back. */
TEST(a_larger_one_that_was_caught_is_not_blamed)
{
	static const struct {
		uint64_t last_bytes;
		unsigned wanted;
	} cases[] = { { MIB + MIB / 2, 2 }, { 256 * KIB, 2 }, { 56, 0 }, { 100 * KIB, 0 }, { MIB, 1 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		/* An equal one is the same, asked for again. */
		struct model_failed failed[] = { refused(HEAP, 7 * GIB, 49 * SECOND_NS),
			                             refused(HEAP, MIB, 49 * SECOND_NS + 800000000),
			                             refused(HEAP, cases[i].last_bytes, 49 * SECOND_NS + 900000000) };

		scene(EXIT_1);
		for (unsigned k = 0; k < 3; k++)
			failed[k].had_success_after = true;
		have_failed(failed, 3);
		assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[cases[i].wanted]);
	}
}

/* Of small ones alone the largest says nothing: standard I/O asks for 4 KiB to print what the request before it came to. */
TEST(of_small_ones_the_first_began_it)
{
	struct model_failed failed[] = { refused(HEAP, 800, 46 * SECOND_NS), refused(HEAP, 633, 49 * SECOND_NS),
		                             refused(HEAP, 4 * KIB, 49 * SECOND_NS + 300000),
		                             refused(HEAP, 4 * KIB, 49 * SECOND_NS + 400000) };

	scene(EXIT_1);
	have_failed(failed, ARRAY_LEN(failed));
	assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[1]);
	failed[1].bytes = ERROR_PATH_KIB * KIB; // a large one before small ones began it, whatever was refused before
	failed[0].monotonic_ns = failed[1].monotonic_ns - 100;
	assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[1]);
}

/* What its thread got since tells who went on, within a second as well: telling an error takes less. */
TEST(who_got_enough_since_went_on)
{
	static const struct {
		const char *why;
		uint64_t bytes, got_bytes;
		bool went_on;
	} cases[] = {
		{ "the fallback's block, and more", 75 * GIB, 300 * MIB, true },
		{ "a smaller batch", 2 * GIB, GIB, true },
		{ "half of it", 40 * MIB, 20 * MIB, true },
		{ "it gave up, and said so at length", 2 * GIB, 30 * MIB, false },
		{ "less than half", 60 * MIB, 29 * MIB, false },
		{ "of a small one a traceback is far more", 633, 3 * MIB, false },
		{ "a small one, caught", 633, 40 * MIB, true },
		{ "nothing, or nobody knows", GIB, 0, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_failed failed[] = { refused(HEAP, cases[i].bytes, 49 * SECOND_NS),
			                             refused(HEAP, 100, 49 * SECOND_NS + 5) };

		scene(EXIT_1);
		failed[0].had_success_after = failed[1].had_success_after = true;
		failed[0].got_bytes = cases[i].got_bytes;
		have_failed(failed, 2);
		if (strcmp(state_of(&failed[0]), cases[i].went_on ? "recovered" : "fatal") != 0)
			fail_msg("%s: %s", cases[i].why, state_of(&failed[0]));
		/* What it went on from is not what ended it, however large. */
		assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[cases[i].went_on]);
	}
}

/* An exception is an allocation, too. Nobody saw when the process ended: then what its thread was given since tells, and when it was seen last. */
TEST(of_one_that_nobody_saw_end_less_is_needed)
{
	static const struct {
		const char *why, *request, *wanted;
		bool is_got_known;
	} cases[] = {
		{ "an exception", "got_bytes=0 monotonic_ns=49s", "fatal", true },
		{ "and what tells of it", "got_bytes=4M-1 monotonic_ns=49s", "fatal", true },
		{ "more than that", "got_bytes=4M monotonic_ns=49s", "recovered", true },
		{ "who knows", "got_bytes=0 monotonic_ns=49s", "recovered", false },
		{ "at work shortly before 5 s were over", "got_bytes=0 monotonic_ns=45s+1", "fatal", true },
		{ "at work 5 s later", "got_bytes=0 monotonic_ns=45s", "recovered", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scene(GONE "refuse 1G error=2 thread=7 had_success_after=1 %s", cases[i].request);
		hand.failed.is_got_known = cases[i].is_got_known;
		if (strcmp(state_of(&hand.failed), cases[i].wanted) != 0)
			fail_msg("%s: %s", cases[i].why, state_of(&hand.failed));
	}
}

/* A handler, a finally block or an atexit function allocates as well: how much is no proof, and says that nothing is certain. */
TEST(a_request_that_was_perhaps_caught_is_no_certain_cause)
{
#define ASKED "heap:41 40M; refuse 59392G got_bytes="
#define ERROR_MESSAGE "read the program's own error message; if it says that memory ran out"
	static const char *const cases[][3] = {
		{ ASKED "0; exit 1", "likely", "Likely: nothing shows that it went on after that." },
		{ ASKED "3M; exit 1", "likely", "No more than 40.0 MiB was live then." },
		{ ASKED "38M; exit 1", "possible", "Possible: the same thread was given 38.0 MiB afterwards." },
		{ ASKED "46M; exit 2", "possible",
		  "given 46.0 MiB afterwards, and an uncaught error ends Python with status 1. It held at most" },
		{ ASKED "0; exit 2", "possible", "Possible: an uncaught error ends Python with status 1." },
		{ ASKED "0; exit 2; process python_version=0", "likely", "nothing shows that it went on after that" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, NULL, "%s", cases[i][0]);
		assert_string_equal(verdict_confidence_name(verdict.confidence), cases[i][1]);
		said(cases[i][2]);
		next(strcmp(cases[i][1], "possible") == 0 ? ERROR_MESSAGE : "!" ERROR_MESSAGE);
	}
}

/* What the driver refused for a tensor ends as the tensor does, and says how much was free. */
TEST(the_driver_speaks_for_the_tensor)
{
	struct model_failed failed[4];

	scene("model domain_count=5; " EXIT_1);
	failed[0] = refused(CUDA0, 20 * MIB, 49 * SECOND_NS);     // the cache is given back ...
	failed[1] = refused(CUDA0, 20 * MIB, 49 * SECOND_NS + 5); // ... and that is not enough
	failed[2] = refused(TENSORS0, MIB, 49 * SECOND_NS + 9);
	failed[3] = refused(CUDA0, 20 * MIB, 49 * SECOND_NS + 20); // of another thread
	failed[0].total_bytes = failed[1].total_bytes = 64 * MIB;
	failed[0].free_bytes = 3 * MIB;
	failed[1].free_bytes = 5 * MIB;
	failed[1].pool_kept_bytes = 7 * MIB;
	failed[0].outcome = failed[1].outcome = failed[2].outcome = KMEM_FAILED_GOT_LESS;
	failed[3].outcome = KMEM_FAILED_GOT_LESS;
	failed[3].thread = 8;
	for (unsigned i = 0; i < 4; i++)
		failed[i].had_success_after = true;
	have_failed(failed, 4);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(state_of(&failed[i]), "fatal");
	assert_string_equal(state_of(&failed[3]), "recovered");
	assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[2]);
	refused_requests_settle(&hand.model, &this_boot);
	assert_int_equal(failed[2].free_bytes, 5 * MIB);
	assert_int_equal(failed[2].total_bytes, 64 * MIB);
	assert_int_equal(failed[2].pool_kept_bytes, 7 * MIB);
}

/* The exception released what filled the device: the report shows it as it was. */
TEST(a_device_is_as_it_was_when_it_refused)
{
	static uint64_t bytes[HAND_DOMAINS + 1] = { [CUDA0] = 60 * MIB, [TENSORS0] = 50 * MIB };
	struct model_held held[3];
	struct model_site *segments, *losses, *steps;
	struct device_parts parts;

	for (unsigned is_fatal = 0; is_fatal < 2; is_fatal++) {
		scene("cuda0:41 60M module=libc10_cuda.so; tensors:44 0 live_count=0; tensors:45 2M; " EXIT_1);
		segments = &hand.sites[0];
		losses = &hand.sites[1];
		steps = &hand.sites[2];
		memset(held, 0, sizeof(held));
		held[0] = (struct model_held){ .site = segments,
			                           .live_bytes = 60 * MIB,
			                           .end_bytes = 60 * MIB,
			                           .live_count = 3,
			                           .end_count = segments->live_count };
		held[1] = (struct model_held){ .site = losses,
			                           .live_bytes = 40 * MIB,
			                           .live_count = 40,
			                           .has_generations = true,
			                           .generations_alive = 12,
			                           .generations_total = 12,
			                           .recent_alive = 3,
			                           .recent_total = 3 };
		held[2] = (struct model_held){
			.site = steps, .live_bytes = 10 * MIB, .live_count = 5, .end_bytes = 2 * MIB, .end_count = steps->live_count
		};
		hand.failed = refused(TENSORS0, MIB, 49 * SECOND_NS);
		hand.failed.outcome = is_fatal ? KMEM_FAILED_OPEN : KMEM_FAILED_GOT_ENOUGH;
		hand.failed.has_held = true;
		hand.failed.domain_bytes = bytes;
		hand.failed.domain_count = HAND_DOMAINS + 1;
		hand.failed.held = held;
		hand.failed.held_count = 3;
		hand.model.failed_count = 1;
		refused_requests_settle(&hand.model, &this_boot);
		rank_leaks_classify(&hand.model);
		assert_int_equal(losses->live_bytes, is_fatal ? 40 * MIB : 0);
		assert_int_equal(losses->leak, is_fatal ? MODEL_LEAK_LEAK : MODEL_LEAK_NONE);
		assert_int_equal(steps->live_bytes, (is_fatal ? 10 : 2) * MIB);
		assert_int_equal(hand.domains[TENSORS0].live_bytes, (is_fatal ? 50 : 2) * MIB);
		assert_int_equal(hand.domains[TENSORS0].together_live_bytes, hand.domains[TENSORS0].live_bytes);
		assert_int_equal(hand.domains[TENSORS0].is_at_refusal, is_fatal);
		assert_true(device_parts_of(&hand.model, CUDA0, NULL, &parts));
		assert_int_equal(parts.tensor_bytes, (is_fatal ? 50 : 2) * MIB);
		/* Of the moment itself it is told in any case. */
		assert_true(device_parts_of(&hand.model, CUDA0, &hand.failed, &parts));
		assert_int_equal(parts.tensor_bytes, 50 * MIB);
		assert_int_equal(parts.cache_bytes, 10 * MIB);
	}
}

/* ---- from a capture ---- */

/* One call site with a record for each of two threads, of which the second released blocks of the first. */
TEST(records_of_a_site_are_one)
{
	static const uint64_t frames[] = { 0x400100 };
	struct capture_builder *builder = capture_builder_new();
	const struct model_held *held;
	uint32_t stack, other;

	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_TENSORS_FIRST)->name, "cuda:0/tensors");
	stack = capture_builder_stack(builder, frames, 1, 0);
	capture_builder_site(builder, KMEM_DOMAIN_TENSORS_FIRST, stack, 1000 * KIB, 100, 0, 0);
	other = capture_builder_site(builder, KMEM_DOMAIN_TENSORS_FIRST, stack, 0, 0, 900 * KIB, 90);
	capture_builder_site_at(builder, other)->slot = 1;
	(void)capture_builder_generations(builder, 0, 0, 0);
	struct kmem_header *header = capture_builder_header(builder);
	header->generation_clock = 20;
	header->failed_count = 1;
	header->failed[1] = (struct kmem_failed){
		.sequence = 1,
		.bytes = MIB,
		.domain = KMEM_DOMAIN_TENSORS_FIRST,
		.thread = 7,
		.error = 2,
		.site = 1,
		.flags = KMEM_FAILED_MEMORY_KNOWN,
		.free_bytes = 3,
		.total_bytes = 64 * MIB,
		.outcome = KMEM_FAILED_GOT_LESS,
		.pool_kept = kmem_rough(9 * MIB),
	};
	struct kmem_device_snapshot *stored = capture_builder_device_snapshot(builder, 1);
	stored->clock = 12;
	stored->left_out = 3;
	stored->live_bytes[KMEM_DOMAIN_TENSORS_FIRST] = (int64_t)(700 * KIB);
	stored->sites[5] = (struct kmem_snapshot_site){ .site = 1, .live_count = 90, .live_bytes = (int64_t)(900 * KIB) };
	stored->sites[9] = (struct kmem_snapshot_site){ .site = 2, .live_count = -20, .live_bytes = -(int64_t)(200 * KIB) };
	stored->sites[10] = (struct kmem_snapshot_site){ .site = 77, .live_count = 1, .live_bytes = 1 }; // of no record
	stored->generations[0].site = 1;
	capture_builder_births(&stored->generations[0], 3, 12);
	for (unsigned tick = 3; tick <= 12; tick++)
		*capture_builder_born(&stored->generations[0], tick) = 9;
	stored->generations[1].site = 2;
	*capture_builder_born(&stored->generations[1], 3) = (uint32_t)-9;
	*capture_builder_born(&stored->generations[1], 4) = (uint32_t)-9;
	capture_builder_seal(&stored->record);
	struct model *model = load_built(builder, KMEM_STATE_RUNNING);
	assert_int_equal(model->damage_count, 0);
	assert_int_equal(model->failed_count, 1);
	assert_int_equal(model->failed[0].free_bytes, 3);
	assert_int_equal(model->failed[0].total_bytes, 64 * MIB);
	assert_int_equal(model->failed[0].pool_kept_bytes, 9 * MIB);
	assert_int_equal(model->failed[0].thread, 7);
	assert_int_equal(model->failed[0].outcome, KMEM_FAILED_GOT_LESS);
	assert_int_equal(model->failed[0].domain_bytes[model->failed[0].domain], 700 * KIB);
	assert_int_equal(model->failed[0].held_count, 1);
	held = &model->failed[0].held[0];
	assert_ptr_equal(held->site, &model->sites[0]);
	assert_int_equal(held->live_bytes, 700 * KIB);
	assert_int_equal(held->live_count, 70);
	assert_int_equal(held->end_bytes, 100 * KIB);
	assert_int_equal(held->end_count, 10);
	assert_true(held->has_generations);
	assert_int_equal(held->generations_total, 11);
	assert_int_equal(held->generations_alive, 8);
	model_free(model);
}

/* Of what was given out, only what is the thread's, is a process's own memory, and came after. */
TEST(what_a_thread_got_since_is_its_own)
{
	static const uint64_t frames[] = { 0x400100 };
	struct capture_builder *builder = capture_builder_new();
	uint32_t stack, site;

	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_RESERVED)->name, "reserved");
	stack = capture_builder_stack(builder, frames, 1, 0);
	for (unsigned slot = 1; slot <= 2; slot++) {
		site = capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, slot == 1 ? 100 * MIB : GIB, 10, 99 * MIB, 9);
		capture_builder_site_at(builder, site)->slot = (uint16_t)slot;
		site = capture_builder_site(builder, slot == 1 ? KMEM_DOMAIN_MMAP : KMEM_DOMAIN_RESERVED, stack, 9 * MIB, 1, 0,
		                            0);
		capture_builder_site_at(builder, site)->slot = 1;
	}
	struct kmem_header *header = capture_builder_header(builder);
	header->failed_count = 3;
	for (unsigned i = 1; i <= 3; i++)
		header->failed[i] = (struct kmem_failed){
			.sequence = i,
			.bytes = GIB,
			.domain = KMEM_DOMAIN_HEAP,
			.error = 12,
			.site = 1,
			.monotonic_ns = i,
			.flags = i == 3 ? 0 : KMEM_FAILED_SLOT_KNOWN,
			.pool_kept = 1,
			.thread = i == 2 ? 110 : 60,
		};
	OWNED_BY(model) struct model *model = load_built(builder, KMEM_STATE_RUNNING);
	assert_int_equal(model->damage_count, 0);
	assert_int_equal(model->failed_count, 3);
	assert_int_equal(model->failed[0].got_bytes, 49 * MIB);
	assert_int_equal(model->failed[0].pool_kept_bytes, 0);
	assert_int_equal(model->failed[0].thread, 0);
	assert_int_equal(model->failed[1].got_bytes, 0); // its records had no room, or it is an estimate
	assert_int_equal(model->failed[2].got_bytes, 0); // of an older recorder
}

RUN_TESTS(scratch_make, scratch_remove)
