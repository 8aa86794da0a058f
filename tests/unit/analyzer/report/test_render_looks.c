/*
 * test_render_looks.c - what was looked at some time before the end: does the page say so?
 */

#include "hand_model.h"
#include "written.h"

#include "base/memory.h"

static struct hand_model hand;

static void
make(void)
{
	hand_model_make(&hand);
	hand_model_site(&hand, HEAP, 41, 400 * MIB);
}

static void
add_page(const struct report *report, struct document *document)
{
	render_totals(report, document);
	written_lines(report, document);
	render_remarks(report, document);
}

/* The page of the model that was made, for free(). */
static char *
page(const char *domain)
{
	const struct report_options rows = { .top = 5, .domain = domain };

	return written_part(&hand.model, &rank_sites, &rows, add_page);
}

static void
check_page(const char *says)
{
	OWNED char *text = page(NULL);

	if (strstr(text, says) == NULL)
		fail_msg("wanted \"%s\" in:\n%s", says, text);
}

/* Whoever asks for one domain is not told of the others' memory. */
TEST(a_page_of_one_domain_is_of_that_alone)
{
	static const char *const others[] = { "\n  cuda:0 ", "Resident set", "Processes", "  64.0 KiB  heap" };
	char *text;

	for (unsigned i = 0; i < 2; i++) {
		make();
		hand_model_site(&hand, CUDA0, 50, 20 * MIB);
		hand_model_refuse(&hand, 64 * KIB);
		hand.failed.domain = i == 0 ? HEAP : CUDA0;
		text = page(i == 0 ? "heap" : "mmap");
		assert_int_equal(strstr(text, "\n  heap  ") != NULL, i == 0);
		assert_int_equal(strstr(text, "Refused requests\n") != NULL, i == 0);
		assert_null(strstr(text, "sums over"));
		for (size_t k = 0; k < ARRAY_LEN(others) - (i == 0); k++) {
			if (strstr(text, others[k]) != NULL)
				fail_msg("\"%s\" in:\n%s", others[k], text);
		}
		free(text);
	}
}

/* How long before the end was it looked at? Where that is not known: before what was seen last. */
TEST(the_age_of_the_resident_set_is_said)
{
	static const struct {
		bool is_end_known;
		uint64_t beat_ns, end_ns; // after the look
		const char *says;
		uint64_t beat_bytes;
	} cases[] = {
		{ true, 10000000, 640000000, "Resident set, sampled 0.6 s before exit\n", 300 * MIB },
		{ true, 10000000, 90000000, "Resident set at exit\n", 300 * MIB },
		{ true, UINT64_C(16000000000), UINT64_C(17000000000), "Resident set, sampled 17.0 s before exit\n", 300 * MIB },
		{ false, UINT64_C(1900000000), 0, "Resident set, sampled 1.9 s before it was last seen, with 300 MiB\n",
		  300 * MIB },
		{ false, 90000000, 0, "Resident set at the last sample\n", 300 * MIB },
		{ true, UINT64_C(13000000000), UINT64_C(14000000000),
		  "Resident set, sampled 14.0 s before exit; it was last seen with 900 MiB\n", 900 * MIB },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make();
		hand.resident.monotonic_ns = UINT64_C(7000000000);
		hand.heartbeat.monotonic_ns = hand.resident.monotonic_ns + cases[i].beat_ns;
		hand.heartbeat.resident_bytes = cases[i].beat_bytes;
		if (cases[i].is_end_known)
			hand.process.ended_monotonic_ns = hand.resident.monotonic_ns + cases[i].end_ns;
		check_page(cases[i].says);
	}
}

/* A mapping of a block that found no room is nobody's. */
TEST(what_found_no_room_is_not_attributed)
{
	static const char libraries[] = "  not attributed  1.0 MiB  mapped by direct system calls or by libraries";
	static const char blocks[] = ", or blocks that were not\n                           recorded (see Losses)\n  total";
	char says[256];

	make();
	(void)snprintf(says, sizeof(says), "%s\n  total", libraries);
	check_page(says);
	hand.process.losses[KMEM_LOST_EVENT_BYTES] = 64 * MIB;
	hand.process.losses[KMEM_LOST_EVENTS] = 8;
	(void)snprintf(says, sizeof(says), "%s%s", libraries, blocks);
	check_page(says);
}

static void
add_waste(const struct report *report, struct document *document)
{
	render_waste(report, 5, document);
}

/* A fifth of what was in memory is no finding of its own, and is told in the sentence about all: both are one figure. */
TEST(what_malloc_keeps_is_the_verdicts_part)
{
	static const struct report_options rows = { .top = 5 };

	make();
	hand.resident.part_bytes[KMEM_RESIDENT_HEAP] = 250 * MIB;
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 100, .empty_bytes = 60 * MIB };
	OWNED char *text = written_part(&hand.model, &rank_sites, &rows, add_waste);
	assert_non_null(strstr(text, " 60.0 MiB  in all: 20 % of what was in memory\n"));
}

static void
add_views(const struct report *report, struct document *document)
{
	const struct tree_options wanted = { .heading = report->heading, .bytes_of = model_site_peak, .is_peak = true };

	render_tree(report, &wanted, document);
	render_groups(report, GROUPING_FILE, 5, document);
}

/* What was asked for and not touched is in neither: one heading, one figure. */
TEST(views_of_one_figure_agree)
{
	static const struct report_options rows = { .top = 5 };

	make();
	hand.sites[0].untouched_bytes = 300 * MIB;
	OWNED char *text = written_part(&hand.model, &rank_peak, &rows, add_views);
	assert_non_null(
		strstr(text, "Held at the peak: 100 MiB of the host's memory\n300 MiB more was asked for and not touched\n"));
	assert_non_null(
		strstr(text, "Held at the peak, by file: 100 MiB of the host's memory\n300 MiB more was asked for"));
}

/* Kinds are counted now and then: of a process that was killed, blocks came and went since. */
TEST(kinds_that_were_counted_earlier_say_so)
{
	static struct model_tally kinds[] = { { { "float" }, 510 }, { { "dict" }, 7 } };
	static const struct {
		int process_state;
		uint64_t blocks;
		const char *says;
	} cases[] = {
		{ KMEM_STATE_RUNNING, 5700, "of   about 510 float when last counted\n" },
		{ KMEM_STATE_RUNNING, 100, "of   about 510 float when last counted\n" },
		{ KMEM_STATE_RUNNING, 520, "of   about 510 float\n" },
		{ KMEM_STATE_CLEAN_EXIT, 5700, "of   about 510 float\n" }, // the others are no objects
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make();
		hand.process.state = cases[i].process_state;
		hand.sites[0].types = kinds;
		hand.sites[0].type_count = 2;
		hand.sites[0].live_count = cases[i].blocks;
		check_page(cases[i].says);
	}
}

/* A line has room for some kinds: one that is as frequent may have none. */
TEST(kinds_that_are_left_out_are_said)
{
	static struct model_tally kinds[] = { { { "tuple" }, 650 }, { { "float" }, 630 }, { { "str" }, 600 } };
	static const struct {
		uint64_t blocks;
		const char *says;
	} cases[] = {
		{ 2460, "of   about 650 tuple, 630 float, 600 str, and others\n" },
		{ 2350, "of   about 650 tuple, 630 float, 600 str\n" }, // four fifths: the sums are estimates
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make();
		hand_model_domain(&hand.domains[HEAP], "python/object");
		hand.model.sample_bytes = 512;
		hand.process.state = KMEM_STATE_CLEAN_EXIT;
		hand.sites[0].types = kinds;
		hand.sites[0].type_count = 3;
		hand.sites[0].live_count = cases[i].blocks;
		check_page(cases[i].says);
	}
}

/* Figures of several processes are sums: of what was there at the same time, or of more? */
TEST(whether_sums_were_there_at_once_is_always_said)
{
	static const struct {
		size_t process_count;
		size_t unknown_end_count;
		uint64_t together_bytes;
		const char *says;
	} cases[] = {
		{ 2, 1, 400 * MIB,
		  "\n  sums over 2 processes that may have run at the same time (the end of 1 is not known)\n" },
		{ 2, 0, 400 * MIB, "\n  sums over 2 processes that ran at the same time\n" },
		{ 2, 0, 400 * MIB, "\nCapture: kmemshim.out/python.4242.1.kmem and 1 more, recorded " },
		{ 1, 0, 400 * MIB, "\nCapture: kmemshim.out/python.4242.1.kmem, recorded " },
		{ 2, 0, 300 * MIB, "\n  sums over 2 processes; highest at the same time: heap 300 MiB peak, 300 MiB live\n" },
		{ 1, 0, 400 * MIB, "        1            1\nResident set" },
	};
	static struct model_process processes[2];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make();
		processes[0] = processes[1] = hand.process;
		processes[1].parent = 0;
		hand.model.processes = processes;
		hand.model.process_count = cases[i].process_count;
		hand.model.unknown_end_count = cases[i].unknown_end_count;
		hand.domains[HEAP].concurrent_peak_bytes = hand.domains[HEAP].together_live_bytes = cases[i].together_bytes;
		hand.model.domain_count = 1;
		check_page(cases[i].says);
	}
}

/* A stripped program: "allocated at st", with frames that read "?", helps nobody. */
TEST(what_has_no_name_has_an_address_and_a_way_to_get_one)
{
	const struct report_options rows = { .top = 5, .frames_bytes = UINT64_MAX };

	make();
	hand.frames[0][2] = (struct model_frame){ .kind = MODEL_FRAME_NATIVE,
		                                      .function = "",
		                                      .file = "",
		                                      .module = "st",
		                                      .module_path = "/srv/st",
		                                      .module_offset = 0x1159,
		                                      .is_user = true };
	check_page("  st+0x1159\n");
	check_page("\n           NAME+0x...: no symbols for NAME; install its debug package, or build it with -g\n");
	OWNED char *text = written(&hand.model, &rank_sites, &rows, render_json);
	assert_non_null(strstr(
		text, "\"where\": {\"file\": \"\", \"line\": 0, \"function\": \"\", \"module\": \"st\", \"offset\": 4441, "));
	assert_non_null(strstr(
		text,
		"{\"kind\": \"native\", \"function\": \"\", \"file\": \"\", \"line\": 0, \"module\": \"st\", \"offset\": 4441}"));
	assert_non_null(strstr(text, "\"module\": \"libfast-0a1b2c3d.so.1.2\"}")); // has a name
}

/* Of a recursion the innermost frames are recorded: the page must not read as if that were all. */
TEST(that_outer_frames_are_missing_is_said)
{
	static const struct {
		uint32_t omitted, before_gap;
		const char *says;
	} cases[] = {
		{ 2845, 4,
		  "                    from train.py:95 <module>\n                    ...  at least 2,845 outer frames were not recorded\n" },
		{ 1, 4, "...  at least 1 outer frame was not recorded\n" },
		{ 2845, 3, "                    ...  2,845 frames left out\n                    from train.py:95 <module>\n" },
		{ 0, 0, "                    from train.py:95 <module>\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make();
		hand.sites[0].omitted = cases[i].omitted;
		hand.sites[0].frames_before_gap = cases[i].before_gap;
		check_page(cases[i].says);
	}
}

/* That some sums agree is no word about the processes, and a filter leaves out some of the last requests. */
TEST(of_one_domain_nothing_is_said_of_all)
{
	struct model_process processes[2];

	make();
	hand_model_refuse(&hand, 64 * KIB);
	hand.process.failed_count = 450;
	processes[0] = processes[1] = hand.process;
	processes[1].failed_count = 0;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	char *text = page("heap");
	assert_non_null(strstr(text, "\n  sums over 2 processes\n"));
	assert_non_null(strstr(text, "\nRefused requests: of the last 1 of 450\n"));
	free(text);
	check_page("\n  sums over 2 processes that ran at the same time\n");
	check_page("\nRefused requests: the last 1 of 450\n");
}

TEST(one_is_no_plural)
{
	make();
	hand.process.losses[KMEM_LOST_EVENTS] = hand.process.losses[KMEM_LOST_UNKNOWN_FREES] = 1;
	check_page(" 1  allocation not recorded");
	check_page(" 1  release of an unknown block");
}

/* A note that is wider than the page is broken below its own beginning. */
TEST(losses_fit_the_page)
{
	make();
	for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++)
		hand.process.losses[i] = 3;
	OWNED char *text = page(NULL);
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 100);
}

static char *
efforts_text(void)
{
	const struct report_options rows = { .top = 5 };

	return written_part(&hand.model, &rank_sites, &rows, render_efforts);
}

TEST(what_recording_did_is_told_for_each_thousand_events)
{
	struct model_efforts *efforts;

	make();
	char *text = efforts_text();
	assert_string_equal(text, ""); // of an older capture nobody knows it
	free(text);

	efforts = &hand.process.efforts;
	efforts->events = 40000;
	efforts->counts[KMEM_EFFORT_WALKS] = 50;
	efforts->longest_pause_ns = 1234567;
	efforts->longest_pause = KMEM_EFFORT_GROWTHS;
	text = efforts_text();
	assert_string_equal(
		text, "\n"
			  "What recording did  per 1,000 events\n"
			  "            40,000                    allocations and releases that were recorded\n"
			  "                50              1.25  walks of native frames\n"
			  "          1.235 ms                    the longest pause, in one of the times that the capture grew\n");
	free(text);

	efforts->events = 0; // there may be walks without one
	for (unsigned i = 0; i < KMEM_EFFORT_COUNT; i++)
		efforts->counts[i] = UINT64_MAX;
	text = efforts_text();
	assert_null(strstr(text, "1.25"));
	free(text);
}

RUN_TESTS(NULL, NULL)
