/*
 * test_render.c - is what renderers write exactly what was agreed (tests/golden)?
 *
 * Run from the root of the repository. `make golden` writes the files anew; the difference is for review.
 */

#include "hand_model.h"

#include <signal.h>

#include "base/place.h"
#include "cli/cmd_report.h"
#include "gate/check_outputs.h"
#include "golden.h"
#include "model/site_key.h"
#include "base/paragraph.h"
#include "written.h"
#include "owned.h"

static struct hand_model hand;

/* A training script that was killed at its container's limit, with one of everything that a report can show. */
static void
make_death(void)
{
	struct model_site *site;

	hand_model_make(&hand);
	for (unsigned i = 0; i < 3; i++) {
		site = hand_model_site(&hand, HEAP, 41, (100 + i) * MIB);
		site->live_count = site->allocated_count = 400;
		hand_model_generations(site, 12 - i, 12, 3, 3);
		hand.frames[i][0].module_offset = i;
	}
	site = hand_model_site(&hand, HEAP, 12, 64 * MIB);
	site->live_bytes = 0;
	site->live_count = 0;
	hand.frames[3][2].function = "load \"all\" <&>\n\x1b[31m\xff";
	site = hand_model_site(&hand, HEAP, 1, 90 * MIB);
	hand.frames[4][1].is_importlib = true;
	site = hand_model_site(&hand, MMAP, 0, 3 * MIB);
	site->where = NULL;
	site->frame_count = 0;
	site->stack_flags = KMEM_STACK_NO_STACK;
	site = hand_model_site(&hand, RESERVED, 60, 8 * GIB);
	site = hand_model_site(&hand, CUDA0, 70, 700 * MIB);
	site->frames_before_gap = 2;
	site->omitted = 112;
	site_key_assign(hand.sites, hand.model.site_count, hand.domains);
	hand.domains[HEAP].live_bytes -= 64 * MIB;

	hand.heartbeat.limit_bytes = 512 * MIB;
	hand.heartbeat.cgroup_bytes = 509 * MIB;
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 900, 1 };
	hand_model_waited(&hand, SIGKILL);
	static const uint64_t held_bytes[] = { [HEAP] = 393 * MIB, [CUDA0] = 600 * MIB };
	static struct model_held held;
	held = (struct model_held){ .site = &hand.sites[7], .live_bytes = 600 * MIB, .live_count = 6 };
	hand.failed = (struct model_failed){ .bytes = 2 * GIB,
		                                 .domain = CUDA0,
		                                 .error = 2,
		                                 .had_success_after = true,
		                                 .monotonic_ns = hand.identity.start_monotonic_ns,
		                                 .site = &hand.sites[7],
		                                 .free_bytes = 300 * MIB,
		                                 .total_bytes = GIB,
		                                 .pool_kept_bytes = 64 * MIB,
		                                 .has_held = true,
		                                 .domain_count = HAND_DOMAINS,
		                                 .domain_bytes = held_bytes,
		                                 .held_count = 1,
		                                 .held = &held };
	hand.process.failed_count = 4;
	hand.model.failed_count = 1;
	hand.process.losses[KMEM_LOST_EVENTS] = 1234;
	hand.process.losses[KMEM_LOST_EVENT_BYTES] = 3 * MIB;
	hand.process.losses[KMEM_LOST_UNWINDS] = 2;
	hand.process.verify_checked = 1000;
	hand.process.verify_mismatched = 1;
	static const char *const notes[] = { "Python 3.99: frames are not read: no table for this version" };
	hand.process.notes = notes;
	hand.process.note_count = 1;
	static const char *const damages[] = { "python.4243.1.kmem: cut off at byte 65536; what is intact was read" };
	hand.model.damages = damages;
	hand.model.damage_count = 1;
}

static struct report *
build(const struct ranking *ranking, const struct report_options *options)
{
	struct fail fail;
	struct report *report = report_build(&hand.model, ranking, options, &fail);

	assert_non_null(report);
	return report;
}

TEST(the_json_is_schema_1)
{
	const struct report_options all = { .top = UINT64_MAX, .frames_bytes = UINT64_MAX };

	make_death();
	OWNED char *text = written(&hand.model, &rank_leaks, &all, render_json);
	golden_compare("report.json", text);
}

TEST(the_page_is_for_a_person)
{
	const struct report_options all = { .top = 5 };
	const struct options options = { .top = UINT64_MAX };
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	struct document document = { .count = 0 };
	struct fail fail;

	make_death();
	OWNED_BY(report) struct report *report = build(&rank_peak, &all);
	assert_true(cmd_report_page(report, &options, 5, &document, &fail));
	document_put(&document, stream);
	assert_int_equal(fclose(stream), 0);
	golden_compare("report.txt", text);
	for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += *line == '\n';
		assert_true(text_columns(line, strcspn(line, "\n")) <=
		            110); // 100 columns; a long name may stand out at the end
		assert_null(memchr(line, '\x1b', strcspn(line, "\n")));
	}
	free(text);
}

static void
add_native(const struct report *report, struct document *document)
{
	const struct render_options native = { .is_native = true };

	render_lines(report, &native, document);
}

TEST(native_frames_are_shown_when_wanted)
{
	const struct report_options two = { .top = 2, .domain = "cuda" };

	make_death();
	OWNED char *text = written_part(&hand.model, &rank_sites, &two, add_native);
	golden_compare("sites-native.txt", text);
}

static char *
lines_of(const struct ranking *ranking, uint64_t top)
{
	const struct report_options options = { .top = top };

	return written_part(&hand.model, ranking, &options, written_lines);
}

/* Does the table say `told`, and not `untold`? NULL: not asked. */
static void
tells(const struct ranking *ranking, uint64_t top, const char *told, const char *untold)
{
	OWNED char *text = lines_of(ranking, top);

	if ((told != NULL && strstr(text, told) == NULL) || (untold != NULL && strstr(text, untold) != NULL))
		fail_msg("%s: %s in:\n%s", told, untold, text);
}

/* Of some imports no module is known: the import system's own file helps nobody. */
TEST(imports_without_a_name_are_one_row)
{
	hand_model_make(&hand);
	for (unsigned i = 0; i < 2; i++) {
		hand_model_site(&hand, HEAP, 100 + i, (3 + i) * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand.frames[i][2].file = "<frozen importlib._bootstrap_external>";
	}
	tells(&rank_peak, 5, "7.0 MiB  left by imports\n             7.0 MiB  the import system\n", NULL);
}

TEST(two_callers_of_one_library_function_are_both_named)
{
	static const uint64_t held[] = { 30, 16, 4, 3, 2, 0 };
	hand_model_make(&hand);
	for (unsigned i = 0; i < ARRAY_LEN(held); i++) {
		hand_model_site(&hand, HEAP, 4, held[i] * MIB);
		hand.frames[i][3].line = 6 + i % 5;
		hand.frames[i][3].function = i % 5 == 0 ? "parse" : "handle";
	}
	hand_model_site(&hand, HEAP, 4, 5 * MIB); // a second stack of the first caller
	hand.frames[6][3].line = 6;
	hand.frames[6][3].function = "parse";
	tells(&rank_peak, 5,
	      "from train.py:6 parse  58 %\n                    from train.py:7 handle  27 %\n"
	      "                    from train.py:8 handle  7 %\n                    and 2 more\n",
	      "train.py:9");
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 4, 1000 * MIB);
	hand_model_site(&hand, HEAP, 4, MIB); // a trifle
	hand.frames[1][3].line = 7;
	tells(&rank_leaks, 5, "from train.py:95 <module>\n", "train.py:7");
}

TEST(imports_are_a_row_for_each_module)
{
	static const char *const modules[] = { "torch", "torch", "numpy", "json", "site", "", "" };
	hand_model_make(&hand);
	for (unsigned i = 0; i < ARRAY_LEN(modules); i++) { // of several lines and domains
		hand_model_site(&hand, i % 2 == 1 ? MMAP : HEAP, 2 + i / 3, (20 - i) * MIB)->import = modules[i];
		hand.frames[i][1].is_importlib = true;
	}
	hand_model_site(&hand, RESERVED, 2, 64 * MIB)->import = "pyarrow"; // address space is no memory
	hand.frames[7][1].is_importlib = true;
	tells(&rank_peak, 5,
	      "  119 MiB  left by imports\n            39.0 MiB  import torch\n"
	      "            18.0 MiB  import numpy\n            17.0 MiB  import json\n"
	      "            45.0 MiB  3 more modules\n",
	      NULL);
	hand.sites[2].untouched_bytes = 17 * MIB; // as what OpenBLAS maps
	tells(&rank_peak, 5, "  119 MiB  left by imports\n                    102 MiB of it in memory\n", NULL);
}

TEST(a_module_is_one_line_whoever_imported_it)
{
	const struct report_options all = { .top = UINT64_MAX, .frames_bytes = UINT64_MAX };
	struct report_line line;

	hand_model_make(&hand);
	for (unsigned i = 0; i < 3; i++) {
		hand_model_site(&hand, HEAP, 1 + i, MIB)->import = i == 2 ? "numpy" : "torch";
		hand.frames[i][1].is_importlib = true;
	}
	hand_model_site(&hand, HEAP, 1, 1)->import = "torch"; // the importing line's own: no import in its stack
	OWNED_BY(report) struct report *report = build(&rank_peak, &all);
	assert_int_equal(report->line_total, 3);
	line = report_line(report, 0);
	assert_false(line.of.is_import);
	assert_string_equal(line.import, "");
	line = report_line(report, 1);
	assert_string_equal(line.import, "torch");
	assert_int_equal(line.of.peak_bytes, 2 * MIB);
	assert_string_equal(report_line(report, 2).import, "numpy");
}

TEST(callers_are_the_users_own_where_there_are_any)
{
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, MIB);
	/* train.py:95 <- library <- train.py:41 */
	hand.stacks[0][4] = hand.stacks[0][3];
	hand.stacks[0][3] = &hand.frames[0][1];
	hand.sites[0].frame_count = 5;
	tells(&rank_peak, 5, "via  fast/core.py:330 full\n                    from train.py:95 <module>\n", NULL);
	hand.frames[0][3].is_user = false; // none: what dispatches to the line
	tells(&rank_peak, 5, "from fast/core.py:330 full\n", "train.py:95");
	hand.frames[0][2].is_user = false; // nor is the line: everything
	tells(&rank_peak, 5, "from fast/core.py:330 full\n                    from train.py:95 <module>\n", NULL);
}

TEST(frames_of_very_many_sites_are_left_out_of_the_json_unless_asked_for)
{
	static char name[1000];
	struct report_options options = { .top = UINT64_MAX };

	hand_model_make(&hand);
	memset(name, 'f', sizeof(name) - 1);
	for (unsigned i = 0; i < 10; i++) {
		hand_model_site(&hand, HEAP, 1 + i, (20 - i) * MIB);
		hand.frames[i][2].function = hand.frames[i][3].function = hand.frames[i][0].function = name;
		hand.sites[i].where = &hand.frames[i][1];
	}
	for (unsigned round = 0; round < 2; round++) {
		size_t empty = 0;

		options.frames_bytes = round == 1 ? UINT64_MAX : 18 * sizeof(name);
		OWNED char *text = written(&hand.model, &rank_peak, &options, render_json);
		for (const char *at = text;
		     (at = strstr(at, "\"frames_omitted\": 4, \"frames_before_gap\": 0, \"frames\": []")); at++)
			empty++;
		assert_int_equal(empty, round == 0 ? 4 : 0); // three such names each: six sites make 18 full
	}
}

TEST(what_the_interpreter_starts_with_is_one_row_at_the_end)
{
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, MIB);
	hand_model_site(&hand, HEAP, 0, 2 * MIB)->where = &hand.frames[1][0];
	hand.frames[1][1] = hand.frames[1][2] = hand.frames[1][3] = hand.frames[1][0];
	hand.frames[1][3].function = "Py_BytesMain";
	tells(&rank_peak, 5, "\n  2.0 MiB  left by the interpreter\n", "alloc\n");
	tells(&rank_peak, 5, NULL, "left by imports");
}

TEST(no_rows_wanted_is_not_nothing_allocated)
{
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, MIB);
	tells(&rank_peak, 0, "1.0 MiB  in 1 other line\n", "nothing was allocated");
}

TEST(library_files_are_named_from_their_package_on)
{
	static const struct {
		const char *file;
		const char *wanted;
	} cases[] = {
		{ "/usr/lib/python3.11/multiprocessing/pool.py", "multiprocessing/pool.py:48 f" },
		{ "/opt/v/lib/python3.11/site-packages/numpy/core/x.py", "numpy/core/x.py:48 f" },
		{ "/usr/lib/python3/dist-packages/fast/core.py", "fast/core.py:48 f" },
		{ "/usr/lib64/python3.13t/pool.py", "pool.py:48 f" },
		{ "/data/me/python3.11/src/pool.py", "pool.py:48 f" },
		{ "/data/me/lib/python3.x/pool.py", "pool.py:48 f" },
		{ "<string>", "<string>:48 f" },
	};
	char text[PLACE_TEXT_BYTES];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(place_text(cases[i].file, 48, "f", "", 0, text), cases[i].wanted);
}

TEST(top_cuts_and_a_huge_one_does_not)
{
	struct report_options options = { .top = 2 };
	struct fail fail;

	make_death();
	OWNED_BY(report) struct report *report = build(&rank_peak, &options);
	assert_int_equal(report->line_count, 2);
	assert_int_equal(report->site_count, 2);
	assert_int_equal(report->site_total, 8);
	assert_int_equal(report->line_total, 6);
	options.top = UINT64_MAX;
	assert_true(report_rank(report, &rank_peak, &options, &fail));
	assert_int_equal(report->site_count, 8);
	options.domain = "nothing";
	assert_false(report_rank(report, &rank_peak, &options, &fail));
	assert_int_equal(fail.code, EXIT_USAGE);
	assert_non_null(strstr(fail.text, "heap, mmap, reserved, cuda:0"));
}

static struct baseline *
baseline_of(uint64_t bytes, uint64_t new_bytes)
{
	struct baseline_builder *builder = baseline_begin();

	hand_model_make(&hand);
	hand_model_generations(hand_model_site(&hand, HEAP, 41, bytes), 12, 12, 3, 3);
	if (new_bytes != 0) {
		hand_model_generations(hand_model_site(&hand, HEAP, 52, new_bytes), 12, 12, 3, 3);
		hand.frames[1][2].function = "<genexpr> & 'more'";
	}
	site_key_assign(hand.sites, hand.model.site_count, hand.domains);
	rank_leaks_classify(&hand.model);
	baseline_add_run(builder, (struct finished_model){ &hand.model });
	return baseline_finish(builder);
}

TEST(a_check_names_the_line_in_every_output)
{
	const struct check_tolerance usual = { .absolute_bytes = MIB, .relative_ppm = 50000 };
	OWNED_BY(baseline) struct baseline *before = baseline_of(10 * MIB, 0);
	OWNED_BY(baseline) struct baseline *after = baseline_of(10 * MIB, 30 * MIB);
	OWNED_BY(check) struct check *check = check_compare(before, after, usual, NULL);
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	check->repeat = "kmemshim run -o again -- python 'my train.py'; kmemshim check again --baseline base.json";
	check_note(check, "100%% of\n%s", "<this>");
	for (size_t i = 0; i < check_output_count; i++)
		check_outputs[i].render(check, stream);
	check->ended_badly = "train.py (pid 1) was ended by signal 9 (SIGKILL)";
	check->ended_path = "run.kmem";
	for (size_t i = 0; i < check_output_count; i++)
		check_outputs[i].render(check, stream);
	assert_int_equal(fclose(stream), 0);
	golden_compare("check.txt", text);
	free(text);
}

TEST(a_leak_below_the_tolerance_is_remarked)
{
	const struct check_tolerance usual = { .absolute_bytes = MIB, .relative_ppm = 50000 };
	OWNED_BY(baseline) struct baseline *before = baseline_of(10 * MIB, 0);
	OWNED_BY(baseline) struct baseline *after = baseline_of(10 * MIB, 800 * KIB);
	struct check *check = check_compare(before, after, usual, NULL);
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	render_check_text(check, stream);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(check->failed_count, 0);
	assert_non_null(strstr(text, "\nnote: a new leak of 800 KiB at train.py:52 <genexpr> & 'more' (less than the "
	                             "tolerance of 1.0 MiB or 5 %)\n"));
	free(text);
	check_free(check);
	check = check_compare(after, after, usual, NULL); // known to the baseline
	assert_null(check->small_leak);
	check_free(check);
}

/* Exact peaks: not a word. Else one line, of the process that is off most. */
TEST(peaks_that_may_be_off_are_remarked)
{
	static const char told
		[] = "peaks may be off by up to 192 KiB, because threads add up small events first: KMEMSHIM_EXACT_PEAK=1 is exact\n";
	const struct report_options all = { .top = 5 };
	struct model_process processes[3];

	for (unsigned is_off = 0; is_off < 2; is_off++) {
		char *text[3] = { NULL };

		make_death();
		for (unsigned i = 0; i < 3; i++) {
			processes[i] = hand.process;
			processes[i].peak_error_bytes = is_off == 0 ? 0 : i == 1 ? 192 * 1024 : 64 * 1024;
		}
		hand.model.processes = processes;
		hand.model.process_count = 3;
		for (unsigned i = 0; i < 3; i++)
			text[i] = written_by(&hand.model, &rank_peak, &all,
			                     i == 0   ? render_remarks
			                     : i == 1 ? render_peak_error
			                              : NULL,
			                     render_json);
		assert_int_equal(strstr(text[0], "peaks may be off by up to 192 KiB") != NULL, is_off);
		assert_string_equal(text[1], is_off != 0 ? told : "");
		assert_non_null(strstr(text[2], is_off != 0 ? "\"peak_error_bytes\": 196608" : "\"peak_error_bytes\": 0"));
		for (unsigned i = 0; i < 3; i++)
			free(text[i]);
	}
}

int
main(void)
{
	(void)setenv("TZ", "UTC", 1);
	return test_run(NULL, NULL, NULL, NULL);
}
