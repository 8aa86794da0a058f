/*
 * test_family.c - processes of one session: who copied whose memory, what was held at the same time, whom the kernel killed?
 */

#include <signal.h>

#include "capture_builder.h"
#include "kmem_words.h"
#include "scratch.h"
#include "verdict/verdict.h"
#include "written.h"
#include "owned.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)
#define PARENT 100u
#define KILLS_BEFORE 3u

struct member {
	uint32_t pid;
	uint32_t parent;     // 0: the first
	uint64_t start, end; // seconds; end 0 = not closed
	uint64_t peak_mib;   // released again but for half of it
	uint64_t copied_mib;
	enum kmem_state state;
};

static uint32_t
line_in(struct capture_builder *builder, const char *function, uint16_t flags)
{
	uint32_t code = capture_builder_code(builder, "/srv/a/train.py", function, 12, flags, NULL, 0);
	uint64_t frame = capture_builder_python_frame(code, 0);

	return capture_builder_stack(builder, &frame, 1, 0);
}

static struct kmem_identity *
identify(struct capture_builder *builder, const struct member *member)
{
	struct kmem_identity *identity = &capture_builder_header(builder)->identity;

	identity->pid = member->pid;
	identity->parent_pid = member->parent != 0 ? member->parent : 1;
	identity->forked_from = member->parent;
	identity->is_forked = member->parent != 0;
	identity->is_first = member->parent == 0;
	identity->start_ticks = member->pid;
	identity->start_monotonic_ns = (1 + member->start) * SECOND;
	identity->start_realtime_ns = (1000000 + member->start) * SECOND;
	identity->before.cgroup_oom_kill = KILLS_BEFORE;
	strcpy(identity->boot_id, "this-boot");
	strcpy(identity->session, "family");
	return identity;
}

static void
finish(struct capture_builder *builder, const struct member *member)
{
	size_t bytes;

	if (member->state == KMEM_STATE_CLEAN_EXIT) {
		capture_builder_header(builder)->ended_monotonic_ns = (1 + member->end) * SECOND;
		capture_builder_header(builder)->exit_code = 0;
	}
	unsigned char *file = capture_builder_finish(builder, member->state, &bytes);
	const char *path = TEXT(128, "%s/p.%u.%llu.kmem", scratch_folder, member->pid, (unsigned long long)member->start);
	capture_builder_write(path, file, bytes);
	free(file);
	capture_builder_free(builder);
}

/* Holds 60 MiB at one line by two threads, 30 at another, 200 at one that came after the fork. */
static void
write_parent(const struct member *member)
{
	struct capture_builder *builder = capture_builder_new();
	uint32_t stack = line_in(builder, "load", 0);

	identify(builder, member);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 50 * MIB, 5, 0, 0);
	capture_builder_site_at(builder, capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 10 * MIB, 1, 0, 0))
		->slot = 2;
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, line_in(builder, "index", 0), 30 * MIB, 1, 0, 0);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, line_in(builder, "heavy", 0), 200 * MIB, 1, 0, 0);
	finish(builder, member);
}

static void
write_child(const struct member *member)
{
	struct capture_builder *builder = capture_builder_new();
	struct kmem_inherited *inherited = &capture_builder_header(builder)->inherited;

	identify(builder, member);
	if (member->peak_mib != 0) {
		uint32_t site = capture_builder_site(builder, KMEM_DOMAIN_HEAP, line_in(builder, "work", 0),
		                                     member->peak_mib * MIB, 2, member->peak_mib * MIB / 2, 1);

		(void)site;
		capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->peak.high = member->peak_mib * MIB;
	}
	capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->inherited_bytes = 90 * MIB;
	capture_builder_header(builder)->python_version = kmem_twice(0x030b07f0);
	atomic_store(&inherited->copied_bytes, member->copied_mib * MIB);
	atomic_store(&inherited->faulted_bytes, MIB);
	inherited->site_count = 4;
	inherited->sites[0] = (struct kmem_inherited_site){ .site = 1, .live_bytes = 50 * MIB };
	inherited->sites[1] = (struct kmem_inherited_site){ .site = 3, .live_bytes = 30 * MIB };
	inherited->sites[2] = (struct kmem_inherited_site){ .site = 2, .live_bytes = 10 * MIB };
	inherited->sites[3] = (struct kmem_inherited_site){ .site = 999, .live_bytes = 1 * MIB }; // a lie
	inherited->figures_checksum = kmem_inherited_figures(inherited);
	inherited->sites_checksum = kmem_inherited_sites(inherited);
	finish(builder, member);
}

static struct model *
load(const struct member *members, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(i == 0 ? write_parent : write_child)(&members[i]);
	struct model *model = loaded((struct model_options){ .capture = scratch_folder });
	assert_int_equal(model->process_count, count);
	rank_leaks_classify(model);
	return model;
}

static void
no_counters(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	memset(counters, 0xff, sizeof(*counters));
}

static const struct verdict_now now = { .boot_id = "this-boot", .read_counters = no_counters };

static struct verdict verdict;

static void
decide(struct model *model)
{
	rank_leaks_classify(model);
	verdict_decide((struct finished_model){ model }, &now, &verdict);
}

TEST(copies_are_told_with_the_lines_that_built_them)
{
	/* Two pairs of workers, one after the other, and one that copied too little to be sure. */
	static const struct member members[] = {
		{ PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },     { 101, PARENT, 10, 20, 0, 80, KMEM_STATE_CLEAN_EXIT },
		{ 102, PARENT, 11, 21, 0, 70, KMEM_STATE_CLEAN_EXIT }, { 103, PARENT, 30, 40, 0, 60, KMEM_STATE_CLEAN_EXIT },
		{ 104, PARENT, 31, 41, 0, 50, KMEM_STATE_CLEAN_EXIT }, { 105, PARENT, 31, 41, 0, 5, KMEM_STATE_CLEAN_EXIT },
	};
	OWNED_BY(model) struct model *model = load(members, 6);

	assert_int_equal(model->processes[1].parent, 0);
	assert_int_equal(model->processes[1].inherited_bytes, 90 * MIB);
	assert_int_equal(model->processes[1].built_count, 2); // threads are one, a record that is not there is none
	assert_int_equal(model->processes[1].built[0].live_bytes, 60 * MIB);
	decide(model);
	assert_non_null(strstr(verdict.text, "4 child processes copied at least 150 MiB of what "));
	assert_non_null(strstr(verdict.text, "What it had built before it forked: 60.0 MiB allocated at train.py:"));
	assert_non_null(strstr(verdict.text, "load; 30.0 MiB allocated at train.py:"));
	assert_non_null(strstr(verdict.text, "writes its reference count"));
	assert_non_null(strstr(verdict.next, "NumPy array"));
}

/* Also where the parent has released all the objects by its end: no sample of them is left. */
TEST(inherited_objects_are_not_counted_with_their_arenas_too)
{
	static const struct member parent = { PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT };
	static const struct member child = { 101, PARENT, 10, 20, 0, 0, KMEM_STATE_CLEAN_EXIT };
	struct capture_builder *builder = capture_builder_new();
	struct kmem_inherited *inherited;

	identify(builder, &parent);
	capture_builder_header(builder)->python_sample_bytes = kmem_twice(KMEM_PYTHON_SAMPLE_BYTES);
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_ARENA)->name, "python/arena");
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_OBJECT)->name, "python/object");
	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_ARENA, capture_builder_stack(builder, NULL, 0, KMEM_STACK_ARENA),
	                     100 * MIB, 100, 0, 0);
	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_OBJECT, line_in(builder, "load", 0), 90 * MIB, 900, 90 * MIB, 900);
	finish(builder, &parent);

	builder = capture_builder_new();
	identify(builder, &child);
	inherited = &capture_builder_header(builder)->inherited;
	inherited->site_count = 2;
	inherited->sites[0] = (struct kmem_inherited_site){ .site = 1, .live_bytes = 100 * MIB };
	inherited->sites[1] = (struct kmem_inherited_site){ .site = 2, .live_bytes = 90 * MIB };
	inherited->sites_checksum = kmem_inherited_sites(inherited);
	inherited->figures_checksum = kmem_inherited_figures(inherited);
	finish(builder, &child);

	OWNED_BY(model) struct model *model = loaded((struct model_options){ .capture = scratch_folder });
	assert_int_equal(model->processes[1].built_count, 2);
	assert_int_equal(model->processes[1].built[0].live_bytes, 90 * MIB);
	assert_int_equal(model->processes[1].built[1].live_bytes, 10 * MIB);
}

/* A session of two: the child inherited 60 MiB, 20 MiB, and 10 MiB in which samples counted as copied may not be what was copied. */
static struct model *
load_copied_samples(uint64_t copied_mib, uint32_t most, uint32_t few, uint32_t damaged)
{
	static const struct member parent = { PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT };
	struct member child = { 101, PARENT, 10, 20, 0, copied_mib, KMEM_STATE_CLEAN_EXIT };
	struct capture_builder *builder = capture_builder_new();
	struct kmem_inherited *inherited;

	identify(builder, &parent);
	capture_builder_header(builder)->python_sample_bytes = kmem_twice(KMEM_PYTHON_SAMPLE_BYTES);
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_OBJECT)->name, "python/object");
	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_OBJECT, line_in(builder, "load", 0), 60 * MIB, 600, 0, 0);
	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_OBJECT, line_in(builder, "other", 0), 20 * MIB, 200, 0, 0);
	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_OBJECT, line_in(builder, "third", 0), 10 * MIB, 100, 0, 0);
	finish(builder, &parent);
	builder = capture_builder_new();
	identify(builder, &child);
	inherited = &capture_builder_header(builder)->inherited;
	inherited->copied_bytes = copied_mib * MIB;
	inherited->site_count = 3;
	inherited->sites[0] = (struct kmem_inherited_site){ .site = 1, .live_bytes = 60 * MIB };
	inherited->sites[1] = (struct kmem_inherited_site){ .site = 2, .live_bytes = 20 * MIB };
	inherited->sites[2] = (struct kmem_inherited_site){ .site = 3, .live_bytes = 10 * MIB };
	inherited->sites_checksum = kmem_inherited_sites(inherited);
	inherited->figures_checksum = kmem_inherited_figures(inherited);
	inherited->sites[0].copied_samples = kmem_twice_16(few); // they are counted after the checksum
	inherited->sites[1].copied_samples = kmem_twice_16(most);
	inherited->sites[2].copied_samples = damaged;
	finish(builder, &child);
	struct model *model = loaded((struct model_options){ .capture = scratch_folder });
	assert_int_equal(model->processes[1].built_count, 3);
	return model;
}

TEST(copied_samples_are_bytes_of_their_line)
{
	OWNED_BY(model) struct model *model = load_copied_samples(40, 64, 4, 0);
	const struct model_built *built = model->processes[1].built;

	assert_int_equal(model->damage_count, 0);
	assert_int_equal(built[0].copied_bytes, 1 * MIB);
	assert_int_equal(built[1].copied_bytes, 16 * MIB);
	assert_int_equal(built[1].copied_error_bytes, model_estimate_error(KMEM_PYTHON_SAMPLE_BYTES, 16 * MIB));
	assert_int_equal(built[2].copied_bytes, 0);
	assert_int_equal(built[2].copied_error_bytes, 0);
	decide(model);
	assert_non_null(
		strstr(verdict.text, " 60.0 MiB allocated at train.py:")); // less than half is known by line: in order of size
}

/* A line has no more copied than it had, and all lines no more than the process. What was copied most is named first. */
TEST(lines_have_no_more_copied_than_the_process)
{
	OWNED_BY(model) struct model *model = load_copied_samples(16, 120, 48, 0); // 30 MiB of 20, and 12 MiB
	const struct model_built *built = model->processes[1].built;

	assert_int_equal(built[0].copied_bytes, 6 * MIB);
	assert_int_equal(built[1].copied_bytes, 10 * MIB);
	assert_in_range(built[1].copied_error_bytes, MIB, model_estimate_error(KMEM_PYTHON_SAMPLE_BYTES, 20 * MIB) / 2 + 1);
	decide(model);
	assert_non_null(strstr(verdict.text, " 20.0 MiB allocated at train.py:"));
	assert_non_null(strstr(verdict.text, ", of which it copied about 10.0 MiB (± "));
}

TEST(a_damaged_count_of_copied_samples_is_left_out)
{
	OWNED_BY(model) struct model *model = load_copied_samples(40, 64, 4, 0x00050005);

	assert_int_equal(model->damage_count, 1);
	assert_non_null(strstr(model->damages[0], "what it copied of record 3: 0x00050005 is not a doubled number"));
	assert_int_equal(model->processes[1].built[1].copied_bytes, 16 * MIB);
	assert_int_equal(model->processes[1].built[2].copied_bytes, 0);
}

TEST(small_copies_are_not_told)
{
	static const struct member members[] = {
		{ PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		{ 101, PARENT, 10, 20, 0, 12, KMEM_STATE_CLEAN_EXIT },
	};
	OWNED_BY(model) struct model *model = load(members, 2);

	decide(model);
	assert_null(strstr(verdict.text, "copied"));
}

TEST(sums_say_what_was_there_at_the_same_time)
{
	/* 290 of the parent, which is there all the time; children of 100, 40 and 60: the last two meet. */
	static const struct member members[] = {
		{ PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		{ 101, PARENT, 10, 20, 100, 0, KMEM_STATE_CLEAN_EXIT },
		{ 102, PARENT, 20, 40, 40, 0, KMEM_STATE_CLEAN_EXIT },
		{ 103, PARENT, 30, 50, 60, 0, KMEM_STATE_CLEAN_EXIT },
	};
	OWNED_BY(model) struct model *model = load(members, 4);
	unsigned seen = 0;

	assert_int_equal(model->domains[0].peak_bytes, 490 * MIB);
	assert_int_equal(model->domains[0].live_bytes, 390 * MIB);
	assert_int_equal(model->domains[0].concurrent_peak_bytes, 390 * MIB);
	assert_int_equal(model->domains[0].together_live_bytes, 340 * MIB);
	for (size_t i = 0; i < model->site_count; i++) {
		if (model->sites[i].process_count == 3)
			assert_int_equal(model->sites[i].most_live_bytes, 50 * MIB); // of the 100 MiB that the three hold
		seen += model->sites[i].process_count == 3;
	}
	assert_int_equal(seen, 1);
}

/* Who was killed may have ended before the next one began: unless it was seen later, or alone could have started that one. */
TEST(sums_over_processes_of_unknown_end_say_so)
{
	static const struct {
		struct member members[3];
		size_t unknown;
	} cases[] = {
		{ { { PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		    { 101, PARENT, 10, 0, 100, 0, KMEM_STATE_RUNNING },
		    { 102, PARENT, 30, 0, 100, 0, KMEM_STATE_RUNNING } },
		  1 },
		{ { { PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		    { 101, PARENT, 10, 20, 100, 0, KMEM_STATE_CLEAN_EXIT },
		    { 102, PARENT, 30, 0, 100, 0, KMEM_STATE_RUNNING } },
		  0 },
		{ { { PARENT, 0, 0, 0, 0, 0, KMEM_STATE_RUNNING },
		    { 101, PARENT, 10, 20, 100, 0, KMEM_STATE_CLEAN_EXIT },
		    { 102, PARENT, 30, 40, 100, 0, KMEM_STATE_CLEAN_EXIT } },
		  0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		OWNED_BY(model) struct model *model = load(cases[i].members, 3);

		assert_int_equal(model->unknown_end_count, cases[i].unknown);
	}
}

/* exec by a raw system call: two images of one process, and nobody told the first one's end. */
TEST(an_image_that_was_replaced_unseen_is_not_gone)
{
	static const struct member members[] = {
		{ PARENT, 0, 0, 0, 0, 0, KMEM_STATE_RUNNING },
		{ PARENT, 0, 5, 9, 0, 0, KMEM_STATE_CLEAN_EXIT },
	};
	struct capture_builder *builder = capture_builder_new();

	write_parent(&members[0]);
	identify(builder, &members[1])->is_first = 0;
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, line_in(builder, "load", 0), 20 * MIB, 1, 0, 0);
	finish(builder, &members[1]);
	OWNED_BY(model) struct model *model = loaded((struct model_options){ .capture = scratch_folder });
	assert_int_equal(model->processes[0].state, KMEM_STATE_EXEC_REPLACED);
	assert_int_equal(model->domains[0].live_bytes, 310 * MIB);
	assert_int_equal(model->domains[0].together_live_bytes, 290 * MIB); // the first image had ended
	decide(model);
	assert_string_equal(verdict_cause_name(verdict.cause), "exited");
}

TEST(a_child_that_the_kernel_killed_is_no_good_end)
{
	static const struct {
		uint64_t kills;
		const char *cause;
		bool has_ended_well;
	} cases[] = { { KILLS_BEFORE, "exited", true },
		          { KILLS_BEFORE + 1, "child-killed", false },
		          { UINT64_MAX, "exited", true } };
	static const struct member members[] = {
		{ PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		{ 101, PARENT, 10, 0, 100, 40, KMEM_STATE_RUNNING },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct model *model = load(members, 2);
		struct kmem_launcher launcher = { .is_filled = 1 };

		launcher.after.cgroup_oom_kill = cases[i].kills;
		model->processes[0].launcher = &launcher;
		decide(model);
		assert_string_equal(verdict_cause_name(verdict.cause), cases[i].cause);
		assert_int_equal(verdict.has_ended_well, cases[i].has_ended_well);
		assert_ptr_equal(verdict.lost_child, &model->processes[1]);
		assert_non_null(strstr(verdict.text, "held 50.0 MiB and had copied at least 40.0 MiB of its parent's."));
		if (!cases[i].has_ended_well)
			assert_non_null(strstr(
				verdict.text,
				"meanwhile the kernel killed 1 process of its container for lack of memory. Its child process "));
		model_free(model);
	}
}

/* A pool waits for ever for the worker that the kernel killed, and somebody stops the program. */
TEST(a_program_that_was_stopped_tells_of_its_killed_child)
{
	static const struct {
		int signal;
		uint64_t kills;
		const char *cause;
	} cases[] = { { 0, KILLS_BEFORE + 1, "child-killed" },
		          { SIGTERM, KILLS_BEFORE + 1, "child-killed" },
		          { SIGINT, KILLS_BEFORE + 1, "child-killed" },
		          { SIGTERM, KILLS_BEFORE, "signal" },
		          { SIGTERM, UINT64_MAX, "signal" },
		          { SIGSEGV, KILLS_BEFORE + 1, "crashed" } };
	static const struct member members[] = {
		{ PARENT, 0, 0, 90, 0, 0, KMEM_STATE_RUNNING },
		{ 101, PARENT, 10, 0, 400, 0, KMEM_STATE_RUNNING },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		OWNED_BY(model) struct model *model = load(members, 2);
		struct kmem_launcher launcher = { .is_filled = 1, .wait_status = cases[i].signal };

		launcher.after.cgroup_oom_kill = cases[i].kills;
		model->processes[0].launcher = &launcher;
		decide(model);
		assert_string_equal(verdict_cause_name(verdict.cause), cases[i].cause);
		assert_false(verdict.has_ended_well);
		if (strcmp(cases[i].cause, "child-killed") == 0) {
			assert_int_equal(strstr(verdict.text, " was ended by signal ") != NULL, cases[i].signal != 0);
			assert_non_null(
				strstr(verdict.text,
			           ", but meanwhile the kernel killed 1 process of its container for lack of memory. Its child"));
			assert_non_null(strstr(verdict.next,
			                       "hold less in each child process, run fewer of them at once, or give the "
			                       "program more memory"));
		}
	}
}

static char *
totals_of(struct model *model)
{
	const struct report_options all = { .top = 5 };
	char *text = written_part(model, &rank_peak, &all, render_totals);

	for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += *line == '\n';
		assert_true(strcspn(line, "\n") <= 100);
	}
	return text;
}

/* What was copied is a lower bound; of a process that ended before anybody looked nothing is known. */
TEST(the_table_says_how_much_is_known_of_copies)
{
	static const struct member members[] = {
		{ PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		{ 101, PARENT, 10, 20, 10, 40, KMEM_STATE_CLEAN_EXIT },
		{ 102, PARENT, 10, 0, 10, 0, KMEM_STATE_RUNNING },
		{ 103, PARENT, 10, 30, 10, 0, KMEM_STATE_CLEAN_EXIT },
	};
	OWNED_BY(model) struct model *model = load(members, 4);
	OWNED char *text = totals_of(model);

	assert_non_null(strstr(text, "peak       live  inherited       copied\n"));
	assert_non_null(strstr(text, "   90.0 MiB  >= 40.0 MiB\n"));
	assert_non_null(strstr(text, "   90.0 MiB    not known\n"));
	assert_non_null(strstr(text, "   90.0 MiB    none seen\n"));
}

/* A heap of 10 MiB beside mappings of 7: the process held 17, whatever each of its domains held at most. */
TEST(a_process_peaked_no_lower_than_it_stands)
{
	static const struct member members[] = { { PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		                                     { 101, PARENT, 10, 20, 10, 0, KMEM_STATE_RUNNING } };
	OWNED_BY(model) struct model *model = load(members, 2);
	struct kmem_heartbeat beats[2] = { { .live_bytes = 400 * MIB }, { .live_bytes = 300 * MIB } };

	model->processes[0].peak_bytes = 200 * MIB;
	model->processes[0].live_bytes = 290 * MIB;
	model->processes[1].heartbeats = beats;
	model->processes[1].heartbeat_count = 2;
	OWNED char *text = totals_of(model);
	assert_non_null(strstr(text, "   290 MiB    290 MiB\n"));
	assert_non_null(strstr(text, "   400 MiB    "));
}

/* Twelve are shown: 101, whose child 102 is large, is none of them. */
TEST(a_child_stands_below_who_is_shown)
{
	struct member members[15] = { { PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		                          { 101, PARENT, 10, 80, 1, 0, KMEM_STATE_CLEAN_EXIT },
		                          { 102, 101, 11, 80, 50, 0, KMEM_STATE_CLEAN_EXIT } };

	for (unsigned i = 3; i < 15; i++)
		members[i] = (struct member){ 100 + i, PARENT, 10 + i, 80, 20, 0, KMEM_STATE_CLEAN_EXIT };
	OWNED_BY(model) struct model *model = load(members, 15);
	OWNED char *text = totals_of(model);
	assert_null(strstr(text, "  101  "));
	assert_non_null(strstr(text, "    102  "));
	for (const char *row = strstr(text, "\nProcesses") + 1; (row = strchr(row, '\n')) != NULL && row[1] == ' '; row++) {
		bool is_first = strstr(row, " 100  exited") != NULL && strstr(row, " 100  exited") < strchr(row + 1, '\n');

		if (strncmp(row + 1, "  ...", 5) != 0)
			assert_int_equal(strspn(row + 1, " "), is_first ? 2 : 4);
	}
}

/* Of a process that was killed nothing else protects them. */
TEST(damaged_figures_are_told_and_left_out)
{
	static const struct member members[] = {
		{ PARENT, 0, 0, 90, 0, 0, KMEM_STATE_CLEAN_EXIT },
		{ 101, PARENT, 10, 0, 0, 40, KMEM_STATE_RUNNING },
	};
	struct model *model = load(members, 2);

	assert_int_equal(model->damage_count, 0);
	model_free(model);
	const char *path = TEXT(128, "%s/p.101.10.kmem", scratch_folder);
	FILE *file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file,
	                       offsetof(struct kmem_header, inherited) + offsetof(struct kmem_inherited, copied_bytes) + 4,
	                       SEEK_SET),
	                 0);
	assert_int_equal(fputc(7, file), 7);
	assert_int_equal(
		fseek(file, offsetof(struct kmem_header, inherited) + offsetof(struct kmem_inherited, sites), SEEK_SET), 0);
	assert_int_equal(fputc(9, file), 9);
	assert_int_equal(fclose(file), 0);
	model = loaded((struct model_options){ .capture = scratch_folder });
	assert_int_equal(model->damage_count, 2);
	assert_non_null(strstr(model->damages[0], "what it copied: checksum wanted"));
	assert_int_equal(model->processes[1].copied_bytes, 0);
	assert_int_equal(model->processes[1].built_count, 0);
	model_free(model);
}

RUN_TESTS(scratch_make, scratch_remove)
