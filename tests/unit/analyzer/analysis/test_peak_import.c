/*
 * test_peak_import.c - was a program at its highest while it imported a module?
 */
#include "hand_model.h"

#include "analysis/peak_import.h"
#include "threshold.h"

#define HIGHEST (800 * MIB)
#define PEAK_MS 1000 // after its start

static struct hand_model hand;
static struct model_point peak;
static struct model_point_site held[2];

/* At its peak nearly all was of the import of pandas, and it is alive. A line of the user's appeared afterwards. */
static void
make(void)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 3, HIGHEST);
	site->import = "pandas";
	hand.frames[0][1].is_importlib = true;
	site->first_ms = 100;
	hand_model_site(&hand, HEAP, 41, MIB)->first_ms = PEAK_MS + 1;
	held[0] = (struct model_point_site){ .site = 0, .bytes = HIGHEST };
	peak = (struct model_point){ .live_bytes = HIGHEST,
		                         .monotonic_ns = hand.identity.start_monotonic_ns + PEAK_MS * UINT64_C(1000000),
		                         .site_count = 1,
		                         .sites = held };
	hand.process.points = &peak;
	hand.process.point_count = 1;
	hand.process.live_bytes = 0;
}

static bool
is_at_import(void)
{
	char name[PEAK_IMPORT_BYTES];
	bool is = peak_import_of(&hand.model, &hand.process, name);

	assert_string_equal(name, is ? "pandas" : "");
	return is;
}

TEST(the_module_is_named)
{
	make();
	assert_true(is_at_import());
	hand.process.point_count = 0; // without a timeline nothing is told
	assert_false(is_at_import());
	make();
	hand.sites[0].import = "";
	assert_false(is_at_import());
	make();
	hand.sites[0].domain = CUDA0;
	assert_false(is_at_import());
}

static bool
is_enough_of_the_import(uint64_t bytes)
{
	make();
	held[0].bytes = bytes;
	return is_at_import();
}

static bool
is_enough_gone(uint64_t live_bytes)
{
	make();
	hand.process.live_bytes = live_bytes;
	return is_at_import();
}

/* A line of the user's was there by then. */
static bool
is_before_the_user(uint64_t first_ms)
{
	make();
	hand.sites[1].first_ms = (uint32_t)first_ms;
	return is_at_import();
}

TEST(thresholds)
{
	static const struct threshold rows[] = {
		{ "of the import", is_enough_of_the_import, HIGHEST / 8 * 7, HIGHEST / 8 * 7 - 1 },
		{ "gone at the end", is_enough_gone, HIGHEST / 8 * 7, HIGHEST / 8 * 7 + 1 },
		{ "the tick of the peak", is_before_the_user, PEAK_MS / 5 * 4, PEAK_MS / 5 * 4 - 1 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

RUN_TESTS(NULL, NULL)
