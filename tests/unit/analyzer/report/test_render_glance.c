/*
 * test_render_glance.c - what is said first of a program that has ended?
 */

#include "hand_model.h"
#include "written.h"

#include "base/memory.h"

static struct hand_model hand;

static void
write_glance(const struct report *report, FILE *stream)
{
	struct fail fail;

	assert_true(
		render_glance((struct report *)(uintptr_t)report, &(struct glance_options){ .columns = 100 }, stream, &fail));
}

TEST(what_a_sample_found_was_in_memory_too)
{
	struct kmem_resident resident = { .resident_bytes = 102 * MIB };

	hand_model_make(&hand);
	(void)hand_model_site(&hand, HEAP, 41, 40 * MIB);
	hand_model_exited(&hand, 0);
	hand.launcher.max_resident_bytes = 101 * MIB;
	hand.process.resident = &resident;
	OWNED char *text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
	assert_non_null(strstr(text, "It had at most 102 MiB in memory"));
}

TEST(an_eighth_more_than_was_ever_in_memory_is_told)
{
	static const struct {
		uint64_t most_bytes;
		const char *says;
	} cases[] = {
		{ 800 * MIB, "Held at the peak (900 MiB in all):\n" },
		{ 799 * MIB, "Held at the peak (900 MiB in all, at most 799 MiB of it in memory):\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		(void)hand_model_site(&hand, HEAP, 41, 900 * MIB);
		hand_model_exited(&hand, 0);
		hand.launcher.max_resident_bytes = cases[i].most_bytes;
		hand.process.resident = NULL;
		OWNED char *text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
		if (strstr(text, cases[i].says) == NULL)
			fail_msg("wanted \"%s\" in:\n%s", cases[i].says, text);
	}
}

/* Of a line that works with much and leaks a little, the word alone would blame all of it. */
TEST(how_much_of_a_row_leaks_is_told_where_it_is_little)
{
	static const struct {
		uint64_t leaking_bytes, other_bytes;
		const char *says;
	} cases[] = {
		{ 2 * MIB, 40 * MIB, "train.py:41 epoch  (leak of 2.0 MiB)\n" },
		{ 40 * MIB, 40 * MIB, "train.py:41 epoch  (leak)\n" },
		{ 2 * MIB, 198 * MIB, "train.py:41 epoch  (leak of 2.0 MiB)\n" },
		{ 2 * MIB, 199 * MIB, "train.py:41 epoch\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, cases[i].leaking_bytes), 12, 12, 3, 3);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, cases[i].other_bytes), 1, 12, 0, 3);
		hand_model_exited(&hand, 0);
		OWNED char *text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
		if (strstr(text, cases[i].says) == NULL)
			fail_msg("wanted \"%s\" in:\n%s", cases[i].says, text);
	}
}

/* Each kind of memory had its peak at a moment of its own: the sum was never there. */
TEST(what_was_not_there_at_one_time_is_a_sum)
{
	hand_model_make(&hand);
	(void)hand_model_site(&hand, HEAP, 41, 60 * MIB);
	(void)hand_model_site(&hand, MMAP, 42, 40 * MIB);
	hand.process.peak_bytes = 60 * MIB;
	hand_model_exited(&hand, 0);
	char *text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
	assert_non_null(strstr(text, "\nHeld at the peak of each kind of memory (100 MiB in sum):\n"));
	free(text);
	hand.process.peak_bytes = 100 * MIB;
	text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
	assert_non_null(strstr(text, "\nHeld at the peak (100 MiB in all):\n"));
	free(text);
}

/* Pages that others read first are in its memory and not in its container's sum: both figures are right. */
TEST(more_in_memory_than_the_limit_is_explained)
{
	static const struct {
		uint64_t limit_bytes, machine_bytes, most_bytes, charged_bytes, sampled_bytes;
		const char *says;
	} cases[] = {
		{ 200 * MIB, 16 * GIB, 202 * MIB, 202 * MIB, 100 * MIB,
		  "It had at most 202 MiB in memory. The container's limit is 200 MiB: libraries and files that another\n"
		  "container read first do not count against it.\n" },
		{ 200 * MIB, 16 * GIB, 190 * MIB, 50 * MIB, 180 * MIB,
		  "It had at most 190 MiB in memory. Of the container's limit of 200 MiB at most 50.0 MiB (25 %) was in\n"
		  "use at a sample: libraries and files that another container read first do not count.\n" },
		{ 200 * MIB, 16 * GIB, 190 * MIB, 14 * MIB, 20 * MIB, // a sample of long before
		  "It had at most 190 MiB in memory: 95 % of the container's limit of 200 MiB.\n" },
		{ 200 * MIB, 16 * GIB, 100 * MIB, 100 * MIB, 100 * MIB,
		  "It had at most 100 MiB in memory: 50 % of the container's limit of 200 MiB.\n" },
		{ UINT64_MAX, 1 * GIB, 1025 * MIB, 1025 * MIB, 100 * MIB,
		  "It had at most 1.00 GiB in memory; the machine has 1.00 GiB.\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		(void)hand_model_site(&hand, HEAP, 41, 40 * MIB);
		hand_model_exited(&hand, 0);
		hand.launcher.max_resident_bytes = cases[i].most_bytes;
		hand.process.resident = NULL;
		hand.heartbeat.limit_bytes = cases[i].limit_bytes;
		hand.heartbeat.resident_bytes = cases[i].sampled_bytes;
		hand.heartbeat.cgroup_bytes = cases[i].charged_bytes;
		hand.identity.machine_bytes = cases[i].machine_bytes;
		OWNED char *text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
		if (strstr(text, cases[i].says) == NULL)
			fail_msg("wanted \"%s\" in:\n%s", cases[i].says, text);
	}
}

/* What the driver gave PyTorch and what its tensors take are two figures of one device: the difference is named. */
TEST(what_pytorch_caches_is_not_in_the_lines_of_a_device)
{
	static const struct {
		bool is_alive;
		const char *says;
	} cases[] = {
		{ false, "cuda:0 held at most 15.0 GiB.\n"
		         "Held on the device at its peak (9.00 GiB in all, without what PyTorch caches):\n" },
		{ true, "Held on the device now (9.00 GiB in all, without what PyTorch caches):\n"
		        "   9.00 GiB  100 %  ██████████  train.py:44 epoch\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		(void)hand_model_site(&hand, HEAP, 12, 180 * MIB);
		hand.model.domain_count = HAND_DOMAINS + 1;
		struct model_site *site = hand_model_site(&hand, CUDA0, 44, 15 * GIB);
		hand.frames[site - hand.sites][0].module = "libc10_cuda.so";
		(void)hand_model_site(&hand, TENSORS0, 44, 9 * GIB);
		if (cases[i].is_alive)
			hand.process.is_alive = true;
		else
			hand_model_exited(&hand, 0);
		if (cases[i].is_alive) {
			hand_model_refuse(&hand, 8 * GIB);
			hand.failed.domain = TENSORS0;
			hand.failed.site = &hand.sites[2];
			hand.failed.free_bytes = 4 * GIB;
			hand.failed.total_bytes = 16 * GIB;
		}
		OWNED char *text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
		if (strstr(text, cases[i].says) == NULL)
			fail_msg("wanted \"%s\" in:\n%s", cases[i].says, text);
	}
}

/* The rows say where all of it is, but for a twentieth. */
TEST(what_no_row_has_is_told)
{
	static const struct {
		uint64_t rest;
		bool is_told;
	} cases[] = { { 27, true }, { 13, false } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		(void)hand_model_site(&hand, HEAP, 41, 146 * MIB);
		(void)hand_model_site(&hand, HEAP, 42, 86 * MIB);
		(void)hand_model_site(&hand, HEAP, 43, 31 * MIB);
		(void)hand_model_site(&hand, HEAP, 44, (cases[i].rest - 9) * MIB);
		(void)hand_model_site(&hand, HEAP, 45, 9 * MIB);
		hand_model_exited(&hand, 0);
		OWNED char *text = written(&hand.model, &rank_peak, &(struct report_options){ .top = 5 }, write_glance);
		assert_int_equal(strstr(text, "27.0 MiB    9 %  ▉           in other lines\n") != NULL, cases[i].is_told);
		assert_int_equal(strstr(text, "in other lines") != NULL, cases[i].is_told);
	}
}

RUN_TESTS(NULL, NULL)
