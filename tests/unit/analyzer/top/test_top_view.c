/*
 * test_top_view.c - what does a screen of this size show, and does nothing stand outside of it?
 */

#include "made_sample.h"

#include <locale.h>

#include "top/top_view.h"
#include "base/memory.h"

static struct hand_model hand;
static struct top_sample *sample;
static struct top_state state_of;
static struct top_canvas canvas;
static char text[1 << 14];

static int
use_utf8(void **state)
{
	return setlocale(LC_CTYPE, "C.UTF-8") == NULL; // which characters take a column
}

static int
begin(void **state)
{
	hand_model_make(&hand);
	sample = made_sample(&hand, 100);
	state_of = (struct top_state){ .message = "q quit" };
	return 0;
}

SETUP(end)
{
	made_sample_free(sample);
	top_canvas_free(&canvas);
}

/* Row `at` without the blanks behind it, in UTF-8. */
static const char *
row_text(unsigned at)
{
	size_t used = 0;

	for (unsigned i = 0; i < canvas.columns; i++) {
		wchar_t character = canvas.cells[(size_t)at * canvas.columns + i].character;
		int length = wctomb(text + used, character != 0 ? character : L' ');

		assert_true(length > 0);
		used += (size_t)length;
	}
	while (used != 0 && text[used - 1] == ' ')
		used--;
	text[used] = '\0';
	return text;
}

static unsigned char
style_at(unsigned row, unsigned column)
{
	return canvas.cells[(size_t)row * canvas.columns + column].style;
}

static void
draw(unsigned rows, unsigned columns)
{
	top_canvas_free(&canvas);
	top_canvas_make(&canvas, rows, columns);
	top_view_draw(sample, &state_of, &canvas);
}

static void
make_rows(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const char *place = TEXT(64, "train.py:%u epoch", i + 1);
		(void)made_row(sample, place, (count - i) * MIB, 200 * MIB);
	}
}

TEST_WITH(each_figure_has_its_column, begin, end)
{
	make_rows(2);
	sample->has_growth = sample->has_rate = true;
	sample->growth_seconds = 60;
	sample->growth_bytes = (int64_t)MIB;
	sample->rate_bytes = 5 * MIB;
	sample->resident_bytes = 80 * MIB;
	sample->peak_bytes = 9 * MIB;
	struct top_row *row = &sample->rows[0];
	row->has_growth = row->has_rate = true;
	row->growth_bytes = -(int64_t)(MIB / 2);
	row->rate_bytes = 5 * MIB;
	row->is_estimated = true;
	row->leak = "leak";
	row->domain = "mmap";
	sample->growth_seconds = 0.3;
	draw(24, 90);
	assert_string_equal(row_text(2),
	                    "live 3.0 MiB  +1.0 MiB in 0.3 s  in memory 80.0 MiB  allocates 5.0 MiB/s  peak 9.0 MiB");
	assert_string_equal(row_text(4), "      live share     +0.3 s    rate/s  allocated at");
	sample->growth_seconds = 60;
	draw(24, 80);
	assert_string_equal(row_text(0), "kmemshim top  train.py (pid 4242)  running");
	assert_string_equal(
		row_text(2),
		"live 3.0 MiB  +1.0 MiB in 60 s  in memory 80.0 MiB  allocates 5.0 MiB/s"); // "peak 9." would be another figure
	draw(24, 90);
	assert_string_equal(row_text(2),
	                    "live 3.0 MiB  +1.0 MiB in 60 s  in memory 80.0 MiB  allocates 5.0 MiB/s  peak 9.0 MiB");
	sample->resident_age = 1.9;
	draw(24, 90);
	assert_null(strstr(row_text(2), "ago"));
	sample->resident_age = 37.4; // the program has not allocated since
	draw(24, 90);
	assert_non_null(strstr(row_text(2), "  in memory 80.0 MiB 37 s ago  allocates"));
	draw(24, 80);
	assert_string_equal(row_text(3), "domain: host  process: all  lines: all  order: live");
	assert_string_equal(row_text(4), "      live share      +60 s    rate/s  allocated at");
	assert_string_equal(row_text(5), "  ≈2.0 MiB  67 %   -512 KiB   5.0 MiB  train.py:1 epoch [mmap] (leak)");
	assert_string_equal(row_text(6), "   1.0 MiB  33 %                       train.py:2 epoch");
	assert_string_equal(row_text(7), "");
	assert_string_equal(row_text(23), "q quit");
	assert_int_equal(style_at(5, 0), TOP_CHOSEN);
	assert_int_equal(style_at(6, 0), TOP_PLAIN);
}

/* With fewer than 60 columns figures give way to places; a place that is too long shows that there is more. */
TEST_WITH(a_narrow_screen_shows_places, begin, end)
{
	make_rows(1);
	free(sample->rows[0].place);
	sample->rows[0].place = memory_text("a_folder/with_a_long_name/train.py:41 epoch");
	draw(10, 40);
	assert_string_equal(row_text(4), "      live  allocated at");
	assert_string_equal(row_text(5), "   1.0 MiB  a_folder/with_a_long_name/t\342\200\246");
	sample->rows[0].leak = "leak"; // keeps its room
	draw(10, 40);
	assert_string_equal(row_text(5), "   1.0 MiB  a_folder/with_a_long\342\200\246 (leak)");
	draw(10, 20); // unless little is left
	assert_string_equal(row_text(5), "   1.0 MiB  a_folde\342\200\246");
}

/* All sizes of a terminal that somebody pulls at: address sanitizer looks on. */
TEST_WITH(nothing_stands_outside_of_any_size, begin, end)
{
	make_rows(40);
	for (unsigned rows = 0; rows < 12; rows++) {
		for (unsigned columns = 0; columns < 90; columns += columns < 12 ? 1 : 13) {
			for (unsigned open = 0; open < 2; open++) {
				state_of.is_open = open != 0;
				state_of.chosen = 39;
				sample->rows[39].line = SIZE_MAX; // what imports left has no stack
				draw(rows, columns);
			}
		}
	}
	draw(1, 12);
	assert_string_equal(row_text(0), "kmemshim top");
}

TEST_WITH(the_chosen_row_can_be_seen, begin, end)
{
	static const struct {
		size_t chosen, first; // as it was
		size_t shown_first;   // of four rows
		size_t shown_chosen;
	} cases[] = { { 0, 0, 0, 0 }, { 3, 0, 0, 3 },     { 4, 0, 1, 4 },    { 20, 3, 17, 20 },
		          { 2, 9, 2, 2 }, { 12, 10, 10, 12 }, { 999, 0, 36, 39 } };

	make_rows(40);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		state_of.chosen = cases[i].chosen;
		state_of.first = cases[i].first;
		draw(10, 80);
		assert_int_equal(state_of.first, cases[i].shown_first);
		assert_int_equal(state_of.chosen, cases[i].shown_chosen);
		const char *wanted = TEXT(64, "train.py:%zu epoch", cases[i].shown_first + 1);
		assert_non_null(strstr(row_text(5), wanted));
		assert_int_equal(style_at((unsigned)(5 + cases[i].shown_chosen - cases[i].shown_first), 0), TOP_CHOSEN);
	}
	state_of.chosen = 3; // on paper nothing is chosen
	state_of.message = NULL;
	draw(24, 80);
	assert_int_equal(style_at(8, 0), TOP_PLAIN);
}

TEST_WITH(what_is_used_of_the_limit_stands_on_top, begin, end)
{
	static const struct {
		uint64_t used_mib, limit_bytes;
		double growth_seconds;
		int64_t growth_mib;
		bool is_running;
		const char *says;
		enum top_style style;
	} cases[] = {
		{ 100, UINT64_MAX, 0, 0, true, "100 MiB in use, no limit is known", TOP_PLAIN },
		{ 100, 200 * MIB, 0, 0, true, "100 MiB in use of the limit of 200 MiB: 50 %  ██████████░░░░░░░░░░", TOP_PLAIN },
		{ 190, 200 * MIB, 0, 0, true, "190 MiB in use of the limit of 200 MiB: 95 %  ███████████████████░", TOP_ALARM },
		{ 100, 200 * MIB, 20, 40, true,
		  "100 MiB in use of the limit of 200 MiB: 50 %  ██████████░░░░░░░░░░  full in 50 s if it goes on so",
		  TOP_PLAIN },
		{ 100, 200 * MIB, 60, 20, true,
		  "100 MiB in use of the limit of 200 MiB: 50 %  ██████████░░░░░░░░░░  full in 5 min if it goes on so",
		  TOP_PLAIN },
		{ 100, 200 * MIB, 5, 40, true, "100 MiB in use of the limit of 200 MiB: 50 %  ██████████░░░░░░░░░░",
		  TOP_PLAIN },
		{ 100, 200 * MIB, 60, -20, true, "100 MiB in use of the limit of 200 MiB: 50 %  ██████████░░░░░░░░░░",
		  TOP_PLAIN },
		{ 100, 200 * MIB, 20, 40, false, "100 MiB in use of the limit of 200 MiB: 50 %  ██████████░░░░░░░░░░",
		  TOP_PLAIN },
		{ 210, 200 * MIB, 20, 40, true,
		  "210 MiB in use of the limit of 200 MiB: 100 %  ████████████████████  full in 0 s if it goes on so",
		  TOP_ALARM },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		sample->used_bytes = cases[i].used_mib * MIB;
		sample->limit_bytes = cases[i].limit_bytes;
		sample->has_growth = cases[i].growth_seconds > 0;
		sample->growth_seconds = cases[i].growth_seconds;
		sample->growth_bytes = cases[i].growth_mib * (int64_t)MIB;
		sample->is_running = cases[i].is_running;
		draw(24, 120);
		assert_string_equal(row_text(1), cases[i].says);
		assert_int_equal(style_at(1, 0), cases[i].style);
	}
	draw(24, 50); // no room for a bar
	assert_null(strstr(row_text(1), "█"));
	sample->used_bytes = 100 * MIB;
	sample->is_running = true;
	draw(24, 84); // a shorter one, so that the forecast is whole
	assert_string_equal(row_text(1),
	                    "100 MiB in use of the limit of 200 MiB: 50 %  ████░░░  full in 50 s if it goes on so");
	draw(24, 80);
	assert_string_equal(row_text(1), "100 MiB in use of the limit of 200 MiB: 50 %  full in 50 s if it goes on so");
	draw(24, 60);
	assert_string_equal(row_text(1), "100 MiB in use of the limit of 200 MiB: 50 %");
}

TEST_WITH(a_name_cannot_steer_the_terminal, begin, end)
{
	make_rows(1);
	free(sample->rows[0].place);
	sample->rows[0].place = memory_text(
		"a\033[2J\tb\342\200\256c\346\227\245\303\266\377d:3 f"); // escape, tab, right to left, wide, o umlaut, broken
	draw(24, 80);
	assert_string_equal(row_text(5) + 18, "a?[2J?b?c?\303\266?d:3 f");
}

TEST_WITH(how_it_ended_is_said, begin, end)
{
	static const struct {
		int wait_status;
		const char *says;
	} cases[] = {
		{ 3 << 8, "kmemshim top  train.py (pid 4242)  ended: exit status 3" },
		{ 9, "kmemshim top  train.py (pid 4242)  ended: by signal 9" },
		{ -1, "kmemshim top  train.py (pid 4242)  ended: nobody saw how" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		made_sample_free(sample);
		hand_model_make(&hand);
		if (cases[i].wait_status >= 0)
			hand_model_waited(&hand, cases[i].wait_status);
		sample = made_sample(&hand, 0);
		sample->is_running = false;
		draw(24, 80);
		assert_string_equal(row_text(0), cases[i].says);
		assert_string_equal(row_text(5), "  nothing is held here");
	}
}

/* Of Python lines alone, or of native ones; scrolled as far as there is something. */
TEST_WITH(an_open_line_shows_its_stack, begin, end)
{
	made_sample_free(sample);
	(void)hand_model_site(&hand, HEAP, 41, 50 * MIB);
	sample = made_sample(&hand, 0);
	(void)made_row(sample, "train.py:41 epoch", 50 * MIB, 90 * MIB);
	state_of.is_open = true;
	draw(24, 80);
	assert_string_equal(row_text(4), "train.py:41 epoch");
	assert_string_equal(row_text(5), "50.0 MiB live, 90.0 MiB allocated in all, domain heap");
	assert_string_equal(row_text(6), "Stack of its largest call site, 50.0 MiB live, innermost first:");
	assert_string_equal(row_text(7), "  fast/core.py:330 full");
	assert_string_equal(row_text(8), "  train.py:41 epoch");
	assert_string_equal(row_text(9), "  train.py:95 <module>");
	assert_string_equal(row_text(10), "Its native frames:");
	assert_string_equal(row_text(11), "  libfast-0a1b2c3d.so.1.2 alloc");
	assert_int_equal(style_at(7, 2), TOP_SOFT);
	assert_int_equal(style_at(8, 2), TOP_PLAIN);
	state_of.wish.kind = TOP_PYTHON;
	draw(24, 80);
	assert_string_equal(row_text(7), "  fast/core.py:330 full");
	state_of.wish.kind = TOP_NATIVE;
	draw(24, 80);
	assert_string_equal(row_text(7), "  libfast-0a1b2c3d.so.1.2 alloc");
	assert_string_equal(row_text(8), "");
	state_of.wish.kind = TOP_ALL;
	state_of.scrolled = 3;
	draw(24, 80);
	assert_string_equal(row_text(5), "  train.py:41 epoch");
	state_of.scrolled = 1000;
	draw(24, 80);
	assert_int_equal(state_of.scrolled, 6); // the last of its seven rows
}

/* Where it leaves the name alone. */
TEST_WITH(the_moment_of_the_sample_stands_on_the_right, begin, end)
{
	(void)setenv("TZ", "UTC", 1);
	state_of.taken = 3723;
	state_of.every_seconds = 4.2;
	draw(24, 80);
	assert_string_equal(row_text(0),
	                    "kmemshim top  train.py (pid 4242)  running                   01:02:03, every 4 s");
	draw(24, 64);
	assert_string_equal(row_text(0), "kmemshim top  train.py (pid 4242)  running   01:02:03, every 4 s");
	draw(24, 62);
	assert_string_equal(row_text(0), "kmemshim top  train.py (pid 4242)  running");
	state_of.taken = 0;
	draw(24, 80);
	assert_string_equal(row_text(0), "kmemshim top  train.py (pid 4242)  running");
}

RUN_TESTS_IN(use_utf8, NULL)
