/*
 * test_refused_requests.c - what became of a refused request, and is a device shown as it was when it refused?
 */
#include "hand_model.h"

#include <stdlib.h>
#include <unistd.h>

#include "analysis/device_parts.h"
#include "capture_builder.h"
#include "kmem_words.h"
#include "model/model_load.h"
#include "analysis/refused_requests.h"

#define ERROR_PATH_KIB 256
#define SECOND_NS UINT64_C(1000000000)

static struct hand_model hand;
static const struct verdict_now this_boot = { .boot_id = "this-boot" };

static void
exit_1(void)
{
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 1;
}
static void
exit_0(void)
{
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 0;
}
static void
gone(void)
{
	hand.heartbeat.monotonic_ns = 50 * SECOND_NS;
}
static void
lives(void)
{
	hand.process.is_alive = true;
}

static struct model_failed
refused(unsigned domain, uint64_t bytes, uint64_t at_ns)
{
	return (struct model_failed){ .domain = domain, .bytes = bytes, .monotonic_ns = at_ns, .error = 2, .thread = 7 };
}

TEST(what_became_of_a_request_to_a_device)
{
	static const struct {
		const char *why;
		void (*end)(void);
		unsigned domain;
		uint64_t before_end_ns;
		enum kmem_failed_outcome outcome;
		bool had_success_after;
		const char *wanted;
	} cases[] = {
		{ "nothing came of it", exit_1, CUDA0, 100, KMEM_FAILED_OPEN, false, "fatal" },
		{ "the cache was given back, and it tried again", exit_1, CUDA0, 100, KMEM_FAILED_GOT_ENOUGH, true,
		  "recovered" },
		{ "an allocator of regions asked for less", exit_1, CUDA0, 100, KMEM_FAILED_GOT_LESS, true, "recovered" },
		{ "others got something", exit_1, CUDA0, 100, KMEM_FAILED_OPEN, true, "fatal" },
		{ "others got something, and it lived on", exit_1, CUDA0, 30 * SECOND_NS, KMEM_FAILED_OPEN, true, "recovered" },
		{ "an error path makes small tensors", exit_1, TENSORS0, 100, KMEM_FAILED_GOT_LESS, true, "fatal" },
		{ "a smaller batch did", exit_1, TENSORS0, 30 * SECOND_NS, KMEM_FAILED_GOT_LESS, true, "recovered" },
		{ "it exited well", exit_0, TENSORS0, 100, KMEM_FAILED_OPEN, false, "recovered" },
		{ "PyTorch gave up, and nothing else was done: a notebook", lives, TENSORS0, 100, KMEM_FAILED_OPEN, false,
		  "pending" },
		{ "the driver's alone may be tried again", lives, CUDA0, 100, KMEM_FAILED_OPEN, false, "pending" },
		{ "a notebook goes on", lives, TENSORS0, 100, KMEM_FAILED_OPEN, true, "recovered" },
		{ "killed right after", gone, TENSORS0, 100, KMEM_FAILED_GOT_LESS, true, "fatal" },
		{ "killed much later", gone, TENSORS0, 30 * SECOND_NS, KMEM_FAILED_OPEN, true, "recovered" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *got;

		hand_model_make(&hand);
		hand.model.domain_count = HAND_DOMAINS + 1;
		hand.process.ended_monotonic_ns = cases[i].end == exit_1 || cases[i].end == exit_0 ? 50 * SECOND_NS : 0;
		cases[i].end();
		hand.failed = refused(cases[i].domain, GIB, 50 * SECOND_NS - cases[i].before_end_ns);
		hand.failed.outcome = cases[i].outcome;
		hand.failed.had_success_after = cases[i].had_success_after;
		hand.model.failed_count = 1;
		got = refusal_state_name(refusal_state(&hand.model, &this_boot, &hand.failed));
		if (strcmp(got, cases[i].wanted) != 0)
			print_error("%s: wanted %s, got %s\n", cases[i].why, cases[i].wanted, got);
		assert_string_equal(got, cases[i].wanted);
		/* Of a notebook it is what there is to tell: PyTorch asks no second time. */
		assert_int_equal(refusal_of_end(&hand.model, &this_boot, 0) != NULL,
		                 strcmp(got, "fatal") == 0 || (strcmp(got, "pending") == 0 && cases[i].domain == TENSORS0));
	}
}

/* A program that caught the first one ended with the second; the third is its error path's. */
TEST(of_several_the_one_that_it_did_not_go_on_from)
{
	struct model_failed failed[3];

	hand_model_make(&hand);
	hand.model.domain_count = HAND_DOMAINS + 1;
	exit_1();
	hand.process.ended_monotonic_ns = 50 * SECOND_NS;
	for (unsigned i = 0; i < 3; i++) {
		failed[i] = refused(TENSORS0, i == 2 ? MIB : 40 * MIB, 49 * SECOND_NS + i);
		failed[i].events_before = 100 * (i + 1);
		failed[i].had_success_after = true;
	}
	hand.model.failed = failed;
	hand.model.failed_count = 3;
	assert_string_equal(refusal_state_name(refusal_state(&hand.model, &this_boot, &failed[0])), "recovered");
	assert_string_equal(refusal_state_name(refusal_state(&hand.model, &this_boot, &failed[1])), "fatal");
	assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[1]);
}

/* Caught, and within the second memory ran out: only from what an error path asks for is there a step back. */
TEST(a_larger_one_that_was_caught_is_not_blamed)
{
	static const struct {
		uint64_t last_bytes;
		unsigned wanted;
	} cases[] = { { MIB + MIB / 2, 2 }, { 256 * KIB, 2 }, { 56, 0 }, { 100 * KIB, 0 }, { MIB, 1 } };
	struct model_failed failed[3];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		exit_1();
		hand.process.ended_monotonic_ns = 50 * SECOND_NS;
		failed[0] = refused(HEAP, 7 * GIB, 49 * SECOND_NS);
		failed[1] = refused(HEAP, MIB, 49 * SECOND_NS + 800000000); // an equal one is the same, asked for again
		failed[2] = refused(HEAP, cases[i].last_bytes, 49 * SECOND_NS + 900000000);
		for (unsigned k = 0; k < 3; k++)
			failed[k].had_success_after = true;
		hand.model.failed = failed;
		hand.model.failed_count = 3;
		assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[cases[i].wanted]);
	}
}

/* Of small ones alone the largest says nothing: standard I/O asks for 4 KiB to print what the request before it came to. */
TEST(of_small_ones_the_first_began_it)
{
	static const uint64_t bytes[] = { 800, 633, 4 * KIB, 4 * KIB };
	static const uint64_t after_ns[] = { 0, 3000000000, 3000300000, 3000400000 };
	struct model_failed failed[ARRAY_LEN(bytes)];

	hand_model_make(&hand);
	exit_1();
	hand.process.ended_monotonic_ns = 50 * SECOND_NS;
	for (unsigned i = 0; i < ARRAY_LEN(bytes); i++)
		failed[i] = refused(HEAP, bytes[i], 46 * SECOND_NS + after_ns[i]);
	hand.model.failed = failed;
	hand.model.failed_count = ARRAY_LEN(bytes);
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
		uint64_t bytes;
		uint64_t got_bytes;
		const char *wanted;
	} cases[] = {
		{ "the fallback's block, and more", 75 * GIB, 300 * MIB, "recovered" },
		{ "a smaller batch", 2 * GIB, GIB, "recovered" },
		{ "half of it", 40 * MIB, 20 * MIB, "recovered" },
		{ "it gave up, and said so at length", 2 * GIB, 30 * MIB, "fatal" },
		{ "less than half", 60 * MIB, 29 * MIB, "fatal" },
		{ "of a small one a traceback is far more", 633, 3 * MIB, "fatal" },
		{ "a small one, caught", 633, 40 * MIB, "recovered" },
		{ "nothing, or nobody knows", GIB, 0, "fatal" },
	};
	struct model_failed failed[2];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *got;

		hand_model_make(&hand);
		exit_1();
		hand.process.ended_monotonic_ns = 50 * SECOND_NS;
		failed[0] = refused(HEAP, cases[i].bytes, 49 * SECOND_NS);
		failed[1] = refused(HEAP, 100, 49 * SECOND_NS + 5);
		failed[0].had_success_after = failed[1].had_success_after = true;
		failed[0].got_bytes = cases[i].got_bytes;
		hand.model.failed = failed;
		hand.model.failed_count = 2;
		got = refusal_state_name(refusal_state(&hand.model, &this_boot, &failed[0]));
		if (strcmp(got, cases[i].wanted) != 0)
			print_error("%s: wanted %s, got %s\n", cases[i].why, cases[i].wanted, got);
		assert_string_equal(got, cases[i].wanted);
		/* What it went on from is not what ended it, however large. */
		assert_ptr_equal(refusal_of_end(&hand.model, &this_boot, 0), &failed[strcmp(got, "recovered") == 0]);
	}
}

/* An exception is an allocation, too. Nobody saw when the process ended: then what its thread was given since tells, and when it was seen last. */
TEST(of_one_that_nobody_saw_end_less_is_needed)
{
	static const struct {
		const char *why;
		bool is_got_known;
		uint64_t got_bytes;
		uint64_t seen_later_ns;
		const char *wanted;
	} cases[] = {
		{ "an exception", true, 0, SECOND_NS, "fatal" },
		{ "and what tells of it", true, 4 * MIB - 1, SECOND_NS, "fatal" },
		{ "more than that", true, 4 * MIB, SECOND_NS, "recovered" },
		{ "who knows", false, 0, SECOND_NS, "recovered" },
		{ "at work shortly before 5 s were over", true, 0, 5 * SECOND_NS - 1, "fatal" },
		{ "at work 5 s later", true, 0, 5 * SECOND_NS, "recovered" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *got;

		hand_model_make(&hand);
		gone();
		hand.process.heartbeats = &hand.heartbeat;
		hand.process.heartbeat_count = 1;
		hand.failed = refused(HEAP, GIB, 50 * SECOND_NS - cases[i].seen_later_ns);
		hand.failed.had_success_after = true;
		hand.failed.is_got_known = cases[i].is_got_known;
		hand.failed.got_bytes = cases[i].got_bytes;
		hand.model.failed_count = 1;
		got = refusal_state_name(refusal_state(&hand.model, &this_boot, &hand.failed));
		if (strcmp(got, cases[i].wanted) != 0)
			print_error("%s: wanted %s, got %s\n", cases[i].why, cases[i].wanted, got);
		assert_string_equal(got, cases[i].wanted);
	}
}

/* A handler, a finally block or an atexit function allocates as well: how much is no proof, and says that nothing is certain. */
TEST(a_request_that_was_perhaps_caught_is_no_certain_cause)
{
	static const struct {
		int status;
		uint64_t got_bytes;
		unsigned python;
		const char *confidence, *says;
	} cases[] = {
		{ 1, 0, 1, "likely", "Likely: nothing shows that it went on after that." },
		{ 1, 3 * MIB, 1, "likely", "No more than 40.0 MiB was live then." },
		{ 1, 38 * MIB, 1, "possible", "Possible: the same thread was given 38.0 MiB afterwards." },
		{ 2, 46 * MIB, 1, "possible",
		  "given 46.0 MiB afterwards, and an uncaught error ends Python with status 1. It held at most" },
		{ 2, 0, 1, "possible", "Possible: an uncaught error ends Python with status 1." },
		{ 2, 0, 0, "likely", "nothing shows that it went on after that" },
	};
	struct verdict verdict;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is_possible = strcmp(cases[i].confidence, "possible") == 0;

		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 41, 40 * MIB);
		hand_model_exited(&hand, cases[i].status);
		hand.process.python_version *= cases[i].python;
		hand_model_refuse(&hand, 58 * GIB * 1024);
		hand.failed.got_bytes = cases[i].got_bytes;
		hand_model_decide(&hand, &verdict);
		if (strcmp(verdict_confidence_name(verdict.confidence), cases[i].confidence) != 0 ||
		    strstr(verdict.text, cases[i].says) == NULL ||
		    (strstr(verdict.next, "read the program's own error message; if it says that memory ran out") != NULL) !=
		        is_possible)
			fail_msg("%zu: %s: %s Next: %s", i, verdict_confidence_name(verdict.confidence), verdict.text,
			         verdict.next);
	}
}

/* What the driver refused for a tensor ends as the tensor does, and says how much was free. */
TEST(the_driver_speaks_for_the_tensor)
{
	struct model_failed failed[4];

	hand_model_make(&hand);
	hand.model.domain_count = HAND_DOMAINS + 1;
	exit_1();
	hand.process.ended_monotonic_ns = 50 * SECOND_NS;
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
	hand.model.failed = failed;
	hand.model.failed_count = 4;
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(refusal_state_name(refusal_state(&hand.model, &this_boot, &failed[i])), "fatal");
	assert_string_equal(refusal_state_name(refusal_state(&hand.model, &this_boot, &failed[3])), "recovered");
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
		hand_model_make(&hand);
		hand.model.domain_count = HAND_DOMAINS + 1;
		segments = hand_model_site(&hand, CUDA0, 41, 60 * MIB);
		losses = hand_model_site(&hand, TENSORS0, 44, 0);
		losses->live_count = 0;
		steps = hand_model_site(&hand, TENSORS0, 45, 2 * MIB);
		hand.frames[0][0].module = "libc10_cuda.so";
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
		exit_1();
		hand.process.ended_monotonic_ns = 50 * SECOND_NS;
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
	struct kmem_device_snapshot *stored;
	struct kmem_header *header;
	char path[] = "/tmp/kmem-refused_requests-XXXXXX";
	struct model_options options = { .capture = path };
	struct fail fail = { .text = "" };
	struct model *model;
	unsigned char *file;
	uint32_t stack, other;
	size_t bytes;

	assert_true(close(mkstemp(path)) == 0);
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_TENSORS_FIRST)->name, "cuda:0/tensors");
	stack = capture_builder_stack(builder, frames, 1, 0);
	capture_builder_site(builder, KMEM_DOMAIN_TENSORS_FIRST, stack, 1000 * KIB, 100, 0, 0);
	other = capture_builder_site(builder, KMEM_DOMAIN_TENSORS_FIRST, stack, 0, 0, 900 * KIB, 90);
	capture_builder_site_at(builder, other)->slot = 1;
	(void)capture_builder_generations(builder, 0, 0, 0);
	header = capture_builder_header(builder);
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
	stored = capture_builder_device_snapshot(builder, 1);
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
	file = capture_builder_finish(builder, KMEM_STATE_RUNNING, &bytes);
	capture_builder_write(path, file, bytes);
	model = model_load(&options, &fail);
	assert_non_null(model);
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
	free(file);
	capture_builder_free(builder);
	assert_int_equal(unlink(path), 0);
}

/* Of what was given out, only what is the thread's, is a process's own memory, and came after. */
TEST(what_a_thread_got_since_is_its_own)
{
	static const uint64_t frames[] = { 0x400100 };
	struct capture_builder *builder = capture_builder_new();
	char path[] = "/tmp/kmem-refused_requests-XXXXXX";
	struct model_options options = { .capture = path };
	struct fail fail = { .text = "" };
	struct kmem_header *header;
	struct model *model;
	unsigned char *file;
	uint32_t stack, site;
	size_t bytes;

	assert_true(close(mkstemp(path)) == 0);
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_RESERVED)->name, "reserved");
	stack = capture_builder_stack(builder, frames, 1, 0);
	for (unsigned slot = 1; slot <= 2; slot++) {
		site = capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, slot == 1 ? 100 * MIB : GIB, 10, 99 * MIB, 9);
		capture_builder_site_at(builder, site)->slot = (uint16_t)slot;
		site = capture_builder_site(builder, slot == 1 ? KMEM_DOMAIN_MMAP : KMEM_DOMAIN_RESERVED, stack, 9 * MIB, 1, 0,
		                            0);
		capture_builder_site_at(builder, site)->slot = 1;
	}
	header = capture_builder_header(builder);
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
	file = capture_builder_finish(builder, KMEM_STATE_RUNNING, &bytes);
	capture_builder_write(path, file, bytes);
	model = model_load(&options, &fail);
	assert_non_null(model);
	assert_int_equal(model->damage_count, 0);
	assert_int_equal(model->failed_count, 3);
	assert_int_equal(model->failed[0].got_bytes, 49 * MIB);
	assert_int_equal(model->failed[0].pool_kept_bytes, 0);
	assert_int_equal(model->failed[0].thread, 0);
	assert_int_equal(model->failed[1].got_bytes, 0); // its records had no room, or it is an estimate
	assert_int_equal(model->failed[2].got_bytes, 0); // of an older recorder
	model_free(model);
	free(file);
	capture_builder_free(builder);
	assert_int_equal(unlink(path), 0);
}

RUN_TESTS(NULL, NULL)
