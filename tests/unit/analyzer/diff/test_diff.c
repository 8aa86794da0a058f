/*
 * test_diff.c - are lines of two runs paired as diff_match.h says, and is what changed told?
 *
 * Golden texts: tests/golden/diff. `make golden` writes them anew, and the difference is for review.
 */

#include "hand_model.h"

#include <jansson.h>

#include "base/document.h"
#include "base/items.h"
#include "diff/diff_match.h"
#include "golden.h"
#include "model/site_key.h"
#include "random.h"
#include "owned.h"

static struct hand_model hand;

#define OBJECTS MMAP // is python/object where `is_sampled`

/* One line of a run; a function of the name is 10 lines above it. NULL: behind the last. */
struct held {
	const char *function;
	uint32_t line;
	uint32_t first_line;
	uint64_t live_bytes;
	uint64_t peak_bytes;
	uint64_t count;
	unsigned domain;
	bool is_leaking;
};

static struct diff_side *
side_of(const char *path, const struct held *held, bool is_sampled, const char *domain)
{
	const struct report_options rows = { .top = UINT64_MAX };
	struct fail fail = { .text = "" };

	hand_model_make(&hand);
	hand_model_exited(&hand, 0);
	if (is_sampled) {
		hand_model_domain(&hand.domains[OBJECTS], "python/object");
		hand.model.sample_bytes = KMEM_PYTHON_SAMPLE_BYTES;
	}
	for (size_t i = 0; held[i].function != NULL; i++) {
		struct model_site *site = hand_model_site(&hand, held[i].domain, held[i].line, held[i].live_bytes);

		hand.frames[i][2].function = held[i].function;
		hand.frames[i][2].first_line = held[i].first_line;
		hand.domains[held[i].domain].peak_bytes += held[i].peak_bytes - held[i].live_bytes;
		site->peak_bytes = held[i].peak_bytes;
		site->allocated_count = held[i].count != 0 ? held[i].count : 1;
		site->samples = is_sampled && held[i].domain == OBJECTS ? held[i].live_bytes / KMEM_PYTHON_SAMPLE_BYTES : 0;
		hand_model_generations(site, held[i].is_leaking ? 12 : 1, 12, held[i].is_leaking ? 3 : 0, 3);
	}
	while (hand.model.domain_count > 1 && hand.domains[hand.model.domain_count - 1].allocated_count == 0)
		hand.model.domain_count--;
	site_key_assign(hand.sites, hand.model.site_count, hand.domains);
	site_key_assign_places(hand.sites, hand.model.site_count);
	struct report *report = report_build(&hand.model, &rank_sites, &rows, &fail);
	if (report == NULL)
		fail_msg("no report: %s", fail.text);
	struct diff_side *side = diff_side_new(report, path, domain);
	side->session = path;
	report_free(report);
	return side;
}

/* ---- pairs ---- */

/* The new side's line for each of the old one, by line numbers; 0 = gone. */
static const struct {
	const char *name;
	const char *newer; // run; NULL = another one
	struct held before[5];
	struct held after[5];
	uint32_t pairs[4];
} alignments[] = {
	{ "all moved by the same",
	  NULL,
	  { { "f", 10, 5, MIB, MIB, 1, HEAP, 0 }, { "f", 12, 5, MIB, MIB, 1, HEAP, 0 } },
	  { { "f", 30, 25, MIB, MIB, 1, HEAP, 0 }, { "f", 32, 25, MIB, MIB, 1, HEAP, 0 } },
	  { 30, 32 } },
	{ "one came in front",
	  NULL,
	  { { "f", 10, 0, 5 * MIB, 5 * MIB, 1, HEAP, 0 }, { "f", 12, 0, MIB, MIB, 1, HEAP, 0 } },
	  { { "f", 14, 0, 9 * MIB, 9 * MIB, 1, HEAP, 0 },
	    { "f", 16, 0, 5 * MIB, 5 * MIB, 1, HEAP, 0 },
	    { "f", 18, 0, MIB, MIB, 1, HEAP, 0 } },
	  { 16, 18 } },
	{ "the first went, another came behind the second",
	  NULL,
	  { { "f", 10, 0, 5 * MIB, 5 * MIB, 1, HEAP, 0 }, { "f", 20, 0, MIB, MIB, 1, HEAP, 0 } },
	  { { "f", 15, 0, MIB, MIB, 1, HEAP, 0 }, { "f", 25, 0, 9 * MIB, 9 * MIB, 1, HEAP, 0 } },
	  { 0, 15 } },
	{ "the second one works with larger blocks now",
	  NULL,
	  { { "f", 10, 5, MIB, MIB, 1, HEAP, 0 },
	    { "f", 11, 5, 2 * MIB, 2 * MIB, 1, HEAP, 0 },
	    { "f", 12, 5, 4 * MIB, 4 * MIB, 1, HEAP, 0 } },
	  { { "f", 20, 15, MIB, MIB, 1, HEAP, 0 },
	    { "f", 21, 15, 9 * MIB, 9 * MIB, 1, HEAP, 0 },
	    { "f", 22, 15, 4 * MIB, 4 * MIB, 1, HEAP, 0 } },
	  { 20, 21, 22 } },
	{ "a method where the other version has no qualified names",
	  NULL,
	  { { "Store.fill", 10, 5, MIB, MIB, 1, HEAP, 0 }, { "Other.fill", 40, 35, 3 * MIB, 3 * MIB, 1, HEAP, 0 } },
	  { { "fill", 10, 5, MIB, MIB, 1, HEAP, 0 }, { "fill", 40, 35, 3 * MIB, 3 * MIB, 1, HEAP, 0 } },
	  { 10, 40 } },
	{ "methods of one name change places in the file",
	  NULL,
	  { { "Store.fill", 10, 5, MIB, MIB, 1, HEAP, 0 }, { "Other.fill", 40, 35, MIB, MIB, 1, HEAP, 0 } },
	  { { "Store.fill", 40, 35, MIB, MIB, 1, HEAP, 0 }, { "Other.fill", 10, 5, MIB, MIB, 1, HEAP, 0 } },
	  { 40, 10 } },
	{ "renamed",
	  NULL,
	  { { "load", 10, 5, MIB, MIB, 1, HEAP, 0 }, { "same", 30, 25, MIB, MIB, 1, HEAP, 0 } },
	  { { "read", 10, 5, MIB, MIB, 1, HEAP, 0 }, { "same", 30, 25, MIB, MIB, 1, HEAP, 0 } },
	  { 10, 30 } },
	{ "of two that may have been renamed the one that holds exactly as much",
	  NULL,
	  { { "load", 10, 5, 64 * KIB, 64 * KIB, 1, HEAP, 0 } },
	  { { "a", 10, 5, 66 * KIB, 66 * KIB, 1, HEAP, 0 }, { "b", 20, 15, 64 * KIB, 64 * KIB, 1, HEAP, 0 } },
	  { 20 } },
	{ "another function of another size",
	  NULL,
	  { { "load", 10, 5, MIB, MIB, 1, HEAP, 0 } },
	  { { "read", 10, 5, 2 * MIB, 2 * MIB, 1, HEAP, 0 } },
	  { 0 } },
	{ "another domain",
	  NULL,
	  { { "load", 10, 5, MIB, MIB, 1, HEAP, 0 } },
	  { { "load", 10, 5, MIB, MIB, 1, MMAP, 0 } },
	  { 0 } },
	{ "another line of the function, in the same run",
	  "old",
	  { { "work", 6, 5, MIB, MIB, 1, HEAP, 0 }, { "same", 30, 25, MIB, MIB, 1, HEAP, 0 } },
	  { { "work", 8, 5, MIB, MIB, 1, HEAP, 0 }, { "same", 30, 25, 2 * MIB, 2 * MIB, 1, HEAP, 0 } },
	  { 0, 30 } },
	{ "another function that holds as much, in the same run",
	  "old",
	  { { "load", 10, 5, MIB, MIB, 1, HEAP, 0 } },
	  { { "read", 20, 15, MIB, MIB, 1, HEAP, 0 } },
	  { 0 } },
};

static uint32_t
paired_with(const struct diff_pair *pairs, size_t count, uint32_t line)
{
	for (size_t i = 0; i < count; i++) {
		if (pairs[i].before != NULL && pairs[i].before->line == line)
			return pairs[i].after != NULL ? pairs[i].after->line : 0;
	}
	fail_msg("line %u is in no pair", line);
	return 0;
}

TEST(lines_are_known_again)
{
	for (size_t i = 0; i < ARRAY_LEN(alignments); i++) {
		OWNED_BY(side) struct diff_side *before = side_of("old", alignments[i].before, false, NULL);
		OWNED_BY(side)
		struct diff_side *after = side_of(alignments[i].newer != NULL ? alignments[i].newer : "new",
		                                  alignments[i].after, false, NULL);
		size_t count;
		OWNED struct diff_pair *pairs = diff_match(before, after, &count);

		for (size_t j = 0; alignments[i].before[j].function != NULL; j++) {
			uint32_t line = alignments[i].before[j].line;

			if (paired_with(pairs, count, line) != alignments[i].pairs[j])
				fail_msg("%s: line %u became %u", alignments[i].name, line, paired_with(pairs, count, line));
		}
	}
}

/* ---- sums ---- */

static void
random_run(uint64_t *random, struct held held[13])
{
	static const char *const functions[] = { "f", "g", "Store.fill", "fill", "<module>" };
	size_t count = random_below(random, 13);

	memset(held, 0, 13 * sizeof(*held));
	for (size_t i = 0; i < count; i++)
		held[i] = (struct held){ .function = functions[random_below(random, 5)],
			                     .line = 1 + (uint32_t)random_below(random, 20),
			                     .first_line = (uint32_t)random_below(random, 2),
			                     .live_bytes = random_below(random, 4) * 40 * KIB,
			                     .peak_bytes = (1 + random_below(random, 4)) * 40 * KIB,
			                     .domain = random_below(random, 2) == 0 ? HEAP : CUDA0 };
}

struct sums {
	uint64_t live[2];
	uint64_t peak[2];
	uint64_t lines;
};

static struct sums
sums_of_rows(const struct diff *diff)
{
	struct sums sums = { .lines = 0 };

	for (size_t i = 0; i < diff->row_count; i++) {
		const struct diff_row *row = &diff->rows[i];

		sums.live[0] += row->then.live_bytes;
		sums.live[1] += row->now.live_bytes;
		sums.peak[0] += row->then.peak_bytes;
		sums.peak[1] += row->now.peak_bytes;
		assert_true((row->before == NULL) == (row->state == DIFF_NEW));
		assert_true((row->after == NULL) == (row->state == DIFF_GONE));
		assert_true(i == 0 || row[-1].state <= row->state);
	}
	return sums;
}

static void
check_sums(const struct diff_side *before, const struct diff_side *after, enum diff_by by)
{
	const struct diff_side *sides[] = { before, after };
	OWNED_BY(diff) struct diff *diff = diff_compare(before, after, by, SIZE_MAX);
	struct sums sums = sums_of_rows(diff);

	for (size_t i = 0; i < 2; i++) {
		uint64_t live = 0;
		uint64_t peak = 0;

		for (size_t j = 0; j < sides[i]->line_count; j++) {
			live += sides[i]->lines[j].held.live_bytes;
			peak += sides[i]->lines[j].held.peak_bytes;
		}
		assert_int_equal(sums.live[i], live);
		assert_int_equal(sums.peak[i], peak);
	}
}

TEST(each_line_is_in_one_row)
{
	uint64_t random = random_seed();
	struct held held[2][13];

	for (unsigned round = 0; round < 300; round++) {
		random_run(&random, held[0]);
		random_run(&random, held[1]);
		OWNED_BY(side) struct diff_side *before = side_of("old", held[0], false, NULL);
		OWNED_BY(side) struct diff_side *after = side_of("new", held[1], false, NULL);

		check_sums(before, after, DIFF_BY_LINE);
		check_sums(before, after, DIFF_BY_FUNCTION);
		OWNED_BY(diff) struct diff *same = diff_compare(before, before, DIFF_BY_LINE, SIZE_MAX);

		assert_int_equal(same->counts[DIFF_SAME], same->row_count); // whatever it is, it is itself
	}
}

/* More lines than can be aligned: by their numbers. */
TEST(a_function_of_very_many_lines)
{
	enum { MANY = 3000 };
	struct diff_line *lines[2];
	struct diff_side sides[2];
	size_t count;

	for (unsigned side = 0; side < 2; side++) {
		lines[side] = calloc(MANY, sizeof(struct diff_line));
		for (uint32_t i = 0; i < MANY; i++)
			lines[side][i] = (struct diff_line){ .where = "x",
				                                 .function = "x",
				                                 .domain = "heap",
				                                 .source = "",
				                                 .line = i + side,
				                                 .position = i + side,
				                                 .held = { .live_bytes = 1 } };
		sides[side] = (struct diff_side){ .session = side == 0 ? "old" : "new",
			                              .line_count = MANY,
			                              .lines = lines[side] };
	}
	struct diff_pair *pairs = diff_match(&sides[0], &sides[1], &count);

	assert_int_equal(paired_with(pairs, count, 7), 7);
	assert_true(count <= MANY + 1);
	free(pairs);
	free(lines[0]);
	free(lines[1]);
}

/* ---- estimates ---- */

TEST(a_change_within_the_error_is_no_change)
{
	static const struct held before[] = { { "f", 10, 5, 20 * MIB, 20 * MIB, 1, OBJECTS, 0 }, { .function = NULL } };
	static const struct held after[] = { { "f", 10, 5, 22 * MIB, 22 * MIB, 1, OBJECTS, 0 }, { .function = NULL } };
	static const struct held much[] = { { "f", 10, 5, 90 * MIB, 90 * MIB, 1, OBJECTS, 0 }, { .function = NULL } };
	struct diff_side *sides[] = { side_of("old", before, true, NULL), side_of("new", after, true, NULL),
		                          side_of("new", much, true, NULL) };
	struct diff *doubtful = diff_compare(sides[0], sides[1], DIFF_BY_LINE, SIZE_MAX);
	struct diff *sure = diff_compare(sides[0], sides[2], DIFF_BY_LINE, SIZE_MAX);

	assert_true(doubtful->rows[0].is_within_error);
	assert_true(doubtful->rows[0].live_error_bytes > sides[0]->lines[0].held.live_error_bytes);
	assert_false(sure->rows[0].is_within_error);
	assert_string_equal(doubtful->headline,
	                    "No line changed by more than the error of its estimate: 2.0 MiB more in small Python objects "
	                    "(estimated, \302\2617.1 MiB).");
	diff_free(doubtful);
	diff_free(sure);
	for (size_t i = 0; i < ARRAY_LEN(sides); i++)
		diff_side_free(sides[i]);
}

/* ---- golden texts ---- */

static const struct situation {
	const char *name;
	enum diff_by by;
	bool is_sampled;
	const char *domain;
	struct held before[8];
	struct held after[8];
} situations[] = {
	{ "a_leak_came",
	  DIFF_BY_LINE,
	  false,
	  NULL,
	  { { "load", 12, 10, 40 * MIB, 40 * MIB, 1, HEAP, 0 },
	    { "epoch", 41, 38, 2 * MIB, 60 * MIB, 900, HEAP, 0 },
	    { "save", 70, 66, 0, 12 * MIB, 3, HEAP, 0 } },
	  { { "load", 16, 14, 40 * MIB, 40 * MIB, 1, HEAP, 0 },
	    { "epoch", 45, 42, 130 * MIB, 188 * MIB, 900, HEAP, 1 },
	    { "save", 74, 70, 0, 12 * MIB, 3, HEAP, 0 },
	    { "log", 90, 88, 3 * MIB, 3 * MIB, 9000, HEAP, 0 } } },
	{ "nothing_but_the_peak",
	  DIFF_BY_FUNCTION,
	  false,
	  NULL,
	  { { "batch", 20, 18, MIB, 200 * MIB, 50, HEAP, 0 },
	    { "batch", 22, 18, MIB, 100 * MIB, 50, HEAP, 0 },
	    { "old_cache", 30, 28, 9 * MIB, 9 * MIB, 4, HEAP, 0 } },
	  { { "batch", 20, 18, MIB, 400 * MIB, 50, HEAP, 0 }, { "batch", 22, 18, MIB, 100 * MIB, 50, HEAP, 0 } } },
	{ "on_a_device_and_renamed",
	  DIFF_BY_LINE,
	  false,
	  NULL,
	  { { "forward", 50, 40, 700 * MIB, 900 * MIB, 12, CUDA0, 0 },
	    { "weights", 60, 58, 2 * GIB, 2 * GIB, 300, CUDA0, 0 },
	    { "read", 7, 5, 30 * MIB, 30 * MIB, 1, HEAP, 0 } },
	  { { "forward", 50, 40, 100 * MIB, 900 * MIB, 12, CUDA0, 0 },
	    { "load_weights", 60, 58, 2 * GIB, 2 * GIB, 300, CUDA0, 0 },
	    { "read", 7, 5, 31 * MIB, 31 * MIB, 1, HEAP, 0 } } },
	{ "small_objects",
	  DIFF_BY_LINE,
	  true,
	  NULL,
	  { { "parse", 20, 18, 60 * MIB, 60 * MIB, 9, OBJECTS, 0 },
	    { "index", 30, 28, 20 * MIB, 20 * MIB, 9, OBJECTS, 0 },
	    { "text", 40, 38, 10 * MIB, 10 * MIB, 9, HEAP, 0 } },
	  { { "parse", 20, 18, 160 * MIB, 160 * MIB, 9, OBJECTS, 0 },
	    { "index", 30, 28, 21 * MIB, 21 * MIB, 9, OBJECTS, 0 },
	    { "text", 40, 38, 10 * MIB, 10 * MIB, 9, HEAP, 0 } } },
	{ "nearly_nothing_beside_an_estimate",
	  DIFF_BY_LINE,
	  true,
	  NULL,
	  { { "index", 30, 28, 20 * MIB, 20 * MIB, 9, OBJECTS, 0 }, { "text", 40, 38, 10 * MIB, 10 * MIB, 9, HEAP, 0 } },
	  { { "index", 30, 28, 20 * MIB + 128 * KIB, 20 * MIB + 128 * KIB, 9, OBJECTS, 0 },
	    { "text", 40, 38, 10 * MIB + 9 * KIB, 10 * MIB + 9 * KIB, 9, HEAP, 0 } } },
	{ "nothing_changed",
	  DIFF_BY_LINE,
	  false,
	  "heap",
	  { { "load", 12, 10, 40 * MIB, 40 * MIB, 1, HEAP, 0 }, { "weights", 60, 58, 2 * GIB, 2 * GIB, 300, CUDA0, 0 } },
	  { { "load", 12, 10, 40 * MIB, 40 * MIB, 1, HEAP, 0 } } },
};

static void
is_told_as_agreed(void **state)
{
	const struct situation *situation = *state;
	OWNED_BY(side)
	struct diff_side *before = side_of("before.kmem", situation->before, situation->is_sampled, situation->domain);
	OWNED_BY(side)
	struct diff_side *after = side_of("after.kmem", situation->after, situation->is_sampled, situation->domain);
	OWNED_BY(diff) struct diff *diff = diff_compare(before, after, situation->by, SIZE_MAX);
	struct document document = { .count = 0 };
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	render_diff(diff, 10, &document);
	document_put(&document, stream);
	(void)fputs("\n---- --markdown ----\n", stream);
	render_diff(diff, 10, &document);
	document_put_markdown(&document, stream);
	assert_int_equal(fclose(stream), 0);
	const char *name = TEXT(128, "diff/%s.txt", situation->name);
	golden_compare(name, text);
	free(text);
}

int
main(void)
{
	EACH (situation, situations, ARRAY_LEN(situations))
		test_add((struct CMUnitTest){
			.name = situation->name, .test_func = is_told_as_agreed, .initial_state = (void *)(uintptr_t)situation });
	return test_run(NULL, NULL, NULL, NULL);
}
