/*
 * test_render.c - is what renderers write exactly what was agreed (tests/golden)?
 *
 * Run from the root of the repository. UPDATE_GOLDEN=1 writes the files anew; the difference is for review.
 */
#include "hand_model.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "check.h"
#include "cmd_report.h"
#include "render.h"
#include "report.h"
#include "site_key.h"

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
	hand.failed = (struct model_failed){ .bytes = 2 * GIB, .domain = CUDA0, .error = 2, .had_success_after = true,
		.monotonic_ns = hand.identity.start_monotonic_ns, .site = &hand.sites[7] };
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

static char *
read_all(FILE *stream)
{
	static char text[1 << 18];
	size_t length = fread(text, 1, sizeof(text) - 1, stream);

	text[length] = '\0';
	return text;
}

/* Compares what was written with the golden file, and says where they part. */
static void
compare(const char *name, const char *written)
{
	char path[256];
	const char *wanted;
	size_t same = 0;
	FILE *stream;

	(void)snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (getenv("UPDATE_GOLDEN") != NULL) {
		stream = fopen(path, "w");
		assert_non_null(stream);
		assert_true(fputs(written, stream) >= 0);
		assert_int_equal(fclose(stream), 0);
		return;
	}
	stream = fopen(path, "r");
	if (stream == NULL)
		fail_msg("%s: %s: run from the root of the repository", path, strerror(errno));
	wanted = read_all(stream);
	(void)fclose(stream);
	while (written[same] != '\0' && written[same] == wanted[same])
		same++;
	if (strcmp(written, wanted) != 0)
		fail_msg("%s differs at byte %zu: wanted \"%.60s\", got \"%.60s\"", path, same, wanted + same, written + same);
	assert_true(same > 100);
}

static struct report *
build(const struct ranking *ranking, const struct report_options *options)
{
	struct fail fail;
	struct report *report = report_build(&hand.model, ranking, options, &fail);

	assert_non_null(report);
	return report;
}

static void
the_json_is_schema_1(void **state)
{
	const struct report_options all = { .top = UINT64_MAX };
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	struct report *report;

	(void)state;
	make_death();
	report = build(&rank_leaks, &all);
	render_json(report, stream);
	assert_int_equal(fclose(stream), 0);
	compare("report.json", text);
	free(text);
	report_free(report);
}

static void
the_page_is_for_a_person(void **state)
{
	const struct report_options all = { .top = 5 };
	const struct options options = { .top = UINT64_MAX };
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	struct report *report;
	struct fail fail;

	(void)state;
	make_death();
	report = build(&rank_peak, &all);
	assert_true(cmd_report_page(report, &options, 5, stream, &fail));
	assert_int_equal(fclose(stream), 0);
	compare("report.txt", text);
	for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += *line == '\n';
		assert_true(strcspn(line, "\n") <= 110); // 100 columns; a long name may stand out at the end
		assert_null(memchr(line, '\x1b', strcspn(line, "\n")));
	}
	free(text);
	report_free(report);
}

static void
native_frames_are_shown_when_wanted(void **state)
{
	const struct report_options two = { .top = 2, .domain = "cuda" };
	const struct render_options native = { .is_native = true };
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	struct report *report;

	(void)state;
	make_death();
	report = build(&rank_sites, &two);
	render_text_lines(report, &native, stream);
	assert_int_equal(fclose(stream), 0);
	compare("sites-native.txt", text);
	free(text);
	report_free(report);
}

static void
top_cuts_and_a_huge_one_does_not(void **state)
{
	struct report_options options = { .top = 2 };
	struct report *report;
	struct fail fail;

	(void)state;
	make_death();
	report = build(&rank_peak, &options);
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
	report_free(report);
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
	baseline_add_run(builder, &hand.model);
	return baseline_finish(builder);
}

static void
a_check_names_the_line_in_text_and_junit(void **state)
{
	const struct check_tolerance usual = { .absolute_bytes = MIB, .relative_ppm = 50000 };
	struct baseline *before = baseline_of(10 * MIB, 0);
	struct baseline *after = baseline_of(10 * MIB, 30 * MIB);
	struct check *check = check_compare(before, after, usual);
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	(void)state;
	render_check_text(check, stream);
	render_check_junit(check, stream);
	check->ended_badly = "train.py (pid 1) was ended by signal 9 (SIGKILL)";
	check->ended_path = "run.kmem";
	render_check_text(check, stream);
	render_check_junit(check, stream);
	assert_int_equal(fclose(stream), 0);
	compare("check.txt", text);
	free(text);
	check_free(check);
	baseline_free(before);
	baseline_free(after);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_json_is_schema_1),
		cmocka_unit_test(the_page_is_for_a_person),
		cmocka_unit_test(native_frames_are_shown_when_wanted),
		cmocka_unit_test(top_cuts_and_a_huge_one_does_not),
		cmocka_unit_test(a_check_names_the_line_in_text_and_junit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
