/*
 * test_verdict_memory.c - does the verdict say where memory was, before it names a line that holds little of it?
 */
#include "verdict_case.h"

#include <signal.h>

static void
kill_it(uint64_t limit_bytes, uint64_t charged_bytes)
{
	hand.identity.before = (struct kmem_kill_counters){ 0, 0, 0, 0 };
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_CGROUP, .bytes = limit_bytes };
	hand.heartbeat.limit_bytes = limit_bytes;
	hand.heartbeat.cgroup_bytes = charged_bytes;
	hand_model_waited(&hand, SIGKILL);
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 1, 1 };
}

static void
decide_killed(uint64_t limit_bytes, uint64_t charged_bytes)
{
	kill_it(limit_bytes, charged_bytes);
	hand_model_decide(&hand, &verdict);
}

static void
untouched(struct model_site *site, uint64_t bytes)
{
	site->untouched_bytes = bytes;
	hand.domains[site->domain].untouched_bytes += bytes;
	hand.process.untouched_bytes += bytes;
}

static void
looked(uint64_t heap_bytes, uint64_t reserved_bytes, uint64_t own_bytes)
{
	hand.resident = (struct kmem_resident){ .sequence = 1,
		                                    .resident_bytes = heap_bytes + reserved_bytes + own_bytes,
		                                    .part_bytes = { [KMEM_RESIDENT_BRK] = heap_bytes,
		                                                    [KMEM_RESIDENT_RESERVED] = reserved_bytes,
		                                                    [KMEM_RESIDENT_OWN] = own_bytes } };
	hand.heartbeat.resident_bytes = hand.resident.resident_bytes;
}

/* Words of the verdict, in any order. */
static void
assert_says(const char *const *words)
{
	for (; *words != NULL; words++) {
		if (strstr(verdict.text, *words) == NULL)
			fail_msg("not there: \"%s\"\n%s\nNext: %s", *words, verdict.text, verdict.next);
	}
}

#define SAYS(...) assert_says((const char *const[]){ __VA_ARGS__, NULL })

TEST(a_block_that_was_never_touched_is_not_blamed)
{
	untouched(hand_model_site(&hand, HEAP, 2, 2 * GIB), 2 * GIB - 4 * KIB);
	leaking(HEAP, 6, 316 * MIB);
	looked(330 * MIB, 0, 40 * MIB);
	decide_killed(400 * MIB, 400 * MIB);
	assert_string_equal(
		found_text(&verdict),
		"ending; live 2.31 GiB; line 316 MiB of 316 MiB at train.py:6 epoch; accumulates 316 MiB of 316 MiB at "
		"train.py:6 epoch, likely; untouched 2.00 GiB of 2.00 GiB at train.py:2 epoch; recorder 40.0 MiB of 370 MiB");
	SAYS(" 2.31 GiB was live, 316 MiB of it in memory at the last sample. 316 MiB of that ");
	assert_advised(&verdict, "release-blocks");
	assert_true(verdict.untouched_bytes == 2 * GIB - 4 * KIB);
}

/* OpenBLAS maps 64 MiB when NumPy is imported, and touches little: that is nobody's doing, and no part of what is in memory. */
TEST(what_imports_asked_for_and_never_touched_is_not_told)
{
	struct model_site *site = hand_model_site(&hand, MMAP, 1, 64 * MIB);

	site->stack_flags = KMEM_STACK_IMPORT_CUT;
	untouched(site, 63 * MIB);
	untouched(hand_model_site(&hand, MMAP, 6, 32 * MIB), 32 * MIB); // another buffer: it explains less than half
	leaking(HEAP, 6, 28 * MIB);
	hand_model_site(&hand, HEAP, 1, 10 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
	verdict_exited(0);
	assert_found(&verdict, "line 28.0 MiB of 39.0 MiB at train.py:6 epoch; accumulates");
	assert_not_found(&verdict, "imports"); // 11 MiB of them
	assert_not_found(&verdict, "untouched");
	SAYS(" 134 MiB was live in all, 39.0 MiB of it in memory.");
}

/* Imports hold the most, and have held it all along: what was being filled when the kernel killed it is what to act on. */
TEST(imports_are_not_blamed_for_a_block_that_was_being_filled)
{
	for (unsigned is_filled = 0; is_filled < 2; is_filled++) {
		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 6, 200 * MIB);
		hand_model_site(&hand, HEAP, 1, 300 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand.process.filled_bytes = is_filled * 180 * MIB;
		looked(300 * MIB, 0, 40 * MIB);
		decide_killed(500 * MIB, 340 * MIB);
		assert_advised(&verdict, is_filled ? "hold-less" : "import-less");
	}
}

/* A limit of addresses counts what was asked for. */
TEST(a_request_that_was_refused_is_told_by_what_was_asked_for)
{
	untouched(hand_model_site(&hand, HEAP, 2, 2 * GIB), 2 * GIB - 4 * KIB);
	hand_model_site(&hand, HEAP, 6, 316 * MIB);
	hand_model_refuse(&hand, 64 * MIB);
	hand.process.failed_count = 1;
	verdict_waited(1 << 8);
	assert_cause(&verdict, "request-refused");
	assert_found(&verdict, "live 2.31 GiB; line 2.00 GiB of 2.31 GiB at train.py:2 epoch");
}

TEST(a_line_of_which_a_part_is_there_counts_with_that_part)
{
	untouched(hand_model_site(&hand, HEAP, 2, GIB), 724 * MIB);
	hand_model_site(&hand, HEAP, 6, 100 * MIB);
	looked(410 * MIB, 0, 0);
	decide_killed(420 * MIB, 420 * MIB);
	assert_found(&verdict, "live 1.10 GiB; line 300 MiB of 400 MiB at train.py:2 epoch");
}

static const struct {
	uint64_t line_bytes, heap_bytes, reserved_bytes, own_bytes, charged_bytes;
	const char *found; // NULL: the line explains it
	const char *parts; // in part
	const char *why;
} explained_cases[] = {
	{ 100 * MIB, 200 * MIB, 80 * MIB, 20 * MIB, 0, NULL, "", "a third is enough" },
	{ 99 * MIB, 110 * MIB, 170 * MIB, 20 * MIB, 0, "; parts-in-memory 170 MiB of 300 MiB; live 99.0 MiB; line",
	  "; 105 MiB live at recorded lines; 20.0 MiB the recorder's own; 4.8 MiB", "less is not" },
	{ 10 * MIB, 200 * MIB, 0, 20 * MIB, 0, "; parts-in-memory 189 MiB of 220 MiB; live 10.0 MiB; line",
	  "189 MiB malloc's, beyond what is live; ", "nobody looked at malloc's pages" },
	{ 10 * MIB, 20 * MIB, 30 * MIB, 10 * MIB, 0, NULL, "", "a small program" },
	{ 150 * MIB, 160 * MIB, 0, 0, 500 * MIB, "; parts-in-memory 340 MiB of 500 MiB; live 150 MiB; line",
	  "340 MiB other processes, and pages of files; 159 MiB live at recorded lines; ", "others filled the container" },
	{ 170 * MIB, 180 * MIB, 0, 0, 500 * MIB, NULL, "", "but a third of it is told at once" },
};

TEST(no_line_is_named_before_it_was_said_where_the_rest_is)
{
	EACH_CASE(i, explained_cases)
	{
		leaking(HEAP, 41, explained_cases[i].line_bytes);
		looked(explained_cases[i].heap_bytes, explained_cases[i].reserved_bytes, explained_cases[i].own_bytes);
		if (explained_cases[i].charged_bytes != 0)
			kill_it(explained_cases[i].charged_bytes, explained_cases[i].charged_bytes);
		else
			hand_model_waited(&hand, SIGKILL);
		hand_model_decide(&hand, &verdict);
		if (explained_cases[i].found != NULL)
			assert_found(&verdict, explained_cases[i].found);
		else
			assert_not_found(&verdict, "parts-in-memory");
		assert_parts(&verdict, explained_cases[i].parts);
	}
}

static const struct {
	struct kmem_container container;
	const char *parts;
	const char *advice;
	const char *why;
} container_cases[] = {
	{ { .anonymous_bytes = 60 * MIB, .memory_files_bytes = 230 * MIB },
	  "230 MiB files that lie in memory (/dev/shm, other tmpfs folders); 60.0 MiB the recorder's",
	  "remove-files-in-memory",
	  "nobody's pages, as long as the files are there" },
	{ { .anonymous_bytes = 280 * MIB, .memory_files_bytes = 1 * MIB },
	  "229 MiB other processes, and the kernel's for all",
	  "see-container",
	  "other processes" },
	{ { .anonymous_bytes = 60 * MIB, .memory_files_bytes = 164 * MIB },
	  "164 MiB files that lie in memory (/dev/shm, other tmpfs folders); 66.0 MiB other processes, and pages of files",
	  "remove-files-in-memory",
	  "a quarter came after the look" },
	{ { .anonymous_bytes = 61 * MIB, .memory_files_bytes = 10 * MIB },
	  "220 MiB other processes, and pages of files",
	  "see-container-and-files",
	  "and so did nearly all" },
	{ { .anonymous_bytes = 61 * MIB, .memory_files_bytes = 165 * MIB },
	  "65.0 MiB other processes, and the kernel's for all",
	  "remove-files-in-memory",
	  "less may be the kernel's" },
	{ { .anonymous_bytes = 60 * MIB, .cached_bytes = 400 * MIB },
	  "230 MiB contents of files on disk",
	  "release-blocks",
	  "the kernel drops these" },
	{ { .anonymous_bytes = 0, .memory_files_bytes = 230 * MIB },
	  "230 MiB other processes, and pages of files",
	  "release-blocks",
	  "nobody looked" },
};

TEST(what_filled_the_container_beside_the_program_is_told)
{
	EACH_CASE(i, container_cases)
	{
		leaking(HEAP, 41, 8 * MIB);
		looked(10 * MIB, 0, 60 * MIB);
		hand.process.container = container_cases[i].container;
		decide_killed(300 * MIB, 300 * MIB);
		assert_parts(&verdict, container_cases[i].parts);
		assert_advised(&verdict, container_cases[i].advice);
	}
}

/* What this process grew by since is no other's. */
TEST(what_the_program_took_after_the_look_is_its_own)
{
	leaking(HEAP, 41, 8 * MIB);
	looked(10 * MIB, 0, 60 * MIB);
	hand.process.container = (struct kmem_container){ .anonymous_bytes = 200 * MIB };
	hand.resident.monotonic_ns = hand.identity.start_monotonic_ns;
	hand.heartbeat.monotonic_ns = hand.identity.start_monotonic_ns + UINT64_C(30000000000);
	kill_it(300 * MIB, 300 * MIB);
	hand.heartbeat.resident_bytes = 170 * MIB;
	hand_model_decide(&hand, &verdict);
	assert_parts(&verdict, "130 MiB other processes, and the kernel's for all; 100 MiB newer than the last sample");
}

/* A thread's own area is allocated with its stack: where it was started is known. */
TEST(stacks_of_threads_have_a_line)
{
	hand_model_site(&hand, HEAP, 6, 8 * MIB)->live_count = 9000;
	hand_model_site(&hand, HEAP, 41, MIB)->live_count = 1145;
	hand.frames[1][0].function = "_dl_allocate_tls";
	looked(10 * MIB, 0, 0);
	hand.resident.part_bytes[KMEM_RESIDENT_STACKS] = 100 * MIB;
	decide_killed(120 * MIB, 120 * MIB);
	SAYS("1,145 of the threads whose stacks were there were started at train.py:41 epoch.");
	assert_advised(&verdict, "end-threads");
}

/* Line 9 has a large part in each of two kinds of memory, line 5 more in one: 9 is the first line, as in the rows. */
TEST(kinds_of_memory_of_one_line_are_one)
{
	static const char *const words[] = { "90.0 MiB of it (26 %) was allocated at train.py:9 epoch",
		                                 "In all kinds of memory that line held 140 MiB",
		                                 "Another 100 MiB (29 %) was allocated at train.py:5 epoch", NULL };
	const unsigned domains[] = { HEAP, HEAP, MMAP };
	const uint32_t lines[] = { 5, 9, 9 };
	const uint64_t bytes[] = { 100 * MIB, 90 * MIB, 50 * MIB };

	kill_it(410 * MIB, 405 * MIB);
	for (unsigned i = 0; i < 3; i++) {
		hand_model_generations(hand_model_site(&hand, domains[i], lines[i], bytes[i]), 12, 12, 3, 3);
		hand.process.live_bytes += bytes[i];
	}
	hand.sites[2].where = hand.stacks[2][2] = hand.sites[1].where;
	hand_model_site(&hand, HEAP, 7, 100 * MIB)->leak = MODEL_LEAK_IMPORT;
	hand.sites[3].import = "torch";
	hand.process.live_bytes += 100 * MIB;
	looked(290 * MIB + 110 * MIB, 0, 0);
	hand_model_decide(&hand, &verdict);
	assert_says(words);
}

/* A third of it is much, but not the most. */
TEST(a_line_is_not_named_alone_where_files_in_memory_held_more)
{
	leaking(HEAP, 41, 110 * MIB);
	looked(110 * MIB, 0, 10 * MIB);
	hand.process.container = (struct kmem_container){ .anonymous_bytes = 120 * MIB, .memory_files_bytes = 180 * MIB };
	decide_killed(300 * MIB, 300 * MIB);
	assert_parts(&verdict,
	             "180 MiB files that lie in memory (/dev/shm, other tmpfs folders); 110 MiB live at recorded lines");
	assert_advised(&verdict, "remove-files-in-memory");
}

TEST(what_came_after_the_look_is_a_part)
{
	hand_model_site(&hand, HEAP, 41, 50 * MIB);
	looked(62 * MIB, 0, 0);
	hand.resident.monotonic_ns = hand.identity.start_monotonic_ns;
	hand.heartbeat.monotonic_ns = hand.identity.start_monotonic_ns + UINT64_C(30000000000);
	hand.heartbeat.resident_bytes = 289 * MIB;
	verdict_waited(SIGKILL);
	assert_found(&verdict, "parts-in-memory 227 MiB of 289 MiB; live 50.0 MiB; line");
	assert_parts(&verdict, "227 MiB newer than the last sample");
}

/* Code and data of a program are in each of its processes, and in memory once: that is no growth after the look. */
TEST(what_processes_share_is_no_other_time)
{
	struct model_process processes[2];

	hand_model_site(&hand, HEAP, 41, 30 * MIB);
	looked(62 * MIB, 0, 0);
	hand.resident.part_bytes[KMEM_RESIDENT_PROGRAM] = 100 * MIB;
	hand.resident.resident_bytes += 100 * MIB;
	hand.resident.monotonic_ns = hand.identity.start_monotonic_ns;
	hand.heartbeat.monotonic_ns = hand.identity.start_monotonic_ns + UINT64_C(60000000000);
	hand.heartbeat.resident_bytes = hand.resident.resident_bytes;
	hand_model_waited(&hand, SIGKILL);
	hand.process.live_bytes = 50 * MIB;
	processes[0] = processes[1] = hand.process;
	processes[1].launcher = NULL;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand_model_decide(&hand, &verdict);
	assert_found(&verdict, "parts-in-memory 124 MiB of 224 MiB; live 100 MiB; ");
}

/* A file that is mapped and read fills memory, and no block of it is live. */
TEST(the_line_that_maps_most_files_is_named)
{
	for (unsigned i = 0; i < 3; i++) {
		hand_model_make(&hand);
		hand_model_domain(&hand.domains[RESERVED], "file");
		hand_model_site(&hand, RESERVED, 10, i == 2 ? 60 * MIB : 140 * MIB);
		hand_model_site(&hand, RESERVED, 11, 15 * MIB);
		hand_model_site(&hand, HEAP, 16, 3 * MIB);
		looked(4 * MIB, 0, 10 * MIB);
		hand.resident.part_bytes[KMEM_RESIDENT_FILE] = 150 * MIB;
		hand.resident.resident_bytes += 150 * MIB;
		if (i == 1)
			hand_model_exited(&hand, 0);
		else
			hand_model_waited(&hand, SIGKILL);
		hand_model_decide(&hand, &verdict);
		if (i != 2)
			SAYS(" Most of the files were mapped at train.py:10 epoch.");
		else
			assert_null(strstr(verdict.text, "files were mapped")); // others than those that were seen
		if (i == 1)
			assert_found(&verdict, "mapped-files 150 MiB of 164 MiB at train.py:10 epoch");
		else
			assert_parts(&verdict, "150 MiB pages of files and shared memory");
	}
}

/* Its lines are the parent's, which no longer holds it. */
TEST(the_line_of_what_was_there_before_the_fork_is_named)
{
	for (unsigned i = 0; i < 2; i++) {
		struct model_process processes[2];
		struct kmem_resident of_child;
		struct model_built built = { .live_bytes = i == 0 ? 76 * MIB : 40 * MIB };

		hand_model_make(&hand);
		built.site = hand_model_site(&hand, HEAP, 4, 0);
		hand_model_site(&hand, HEAP, 20, 3 * MIB);
		looked(4 * MIB, 0, 3 * MIB);
		hand.heartbeat.monotonic_ns = hand.identity.start_monotonic_ns + UINT64_C(60000000000);
		hand_model_waited(&hand, SIGKILL);
		hand.process.live_bytes = 3 * MIB;
		of_child = hand.resident;
		of_child.part_bytes[KMEM_RESIDENT_INHERITED] = 90 * MIB;
		of_child.resident_bytes += 90 * MIB;
		processes[0] = processes[1] = hand.process;
		processes[0].parent = -1;
		processes[1].parent = 0;
		processes[1].launcher = NULL;
		processes[1].resident = &of_child;
		processes[1].inherited_bytes = 92 * MIB;
		processes[1].built = &built;
		processes[1].built_count = 1;
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		assert_parts(&verdict, "90.0 MiB memory from before the fork");
		assert_int_equal(
			strstr(verdict.text, " Most of what was there before the fork was allocated at train.py:4 epoch.") != NULL,
			i == 0);
	}
}

/* Blocks that were released between the look and the end. */
TEST(what_lines_held_at_the_look_is_not_denied)
{
	hand_model_site(&hand, HEAP, 41, 6 * MIB);
	looked(240 * MIB, 0, 60 * MIB);
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000, .bytes = 240 * MIB };
	verdict_waited(SIGKILL);
	assert_found(&verdict, "parts-in-memory 240 MiB of 300 MiB; live 6.0 MiB; line");
	SAYS(" Most of what lines held at the last sample was released afterwards.");
}

/* A sentence without what is in memory has the figures of the tables. */
TEST(a_little_that_was_not_touched_changes_no_figure)
{
	untouched(hand_model_site(&hand, HEAP, 2, 8 * MIB), 7 * MIB);
	hand_model_site(&hand, HEAP, 6, 205 * MIB);
	looked(206 * MIB, 0, 0);
	decide_killed(260 * MIB, 260 * MIB);
	assert_string_equal(found_text(&verdict), "ending; live 213 MiB; line 205 MiB of 213 MiB at train.py:6 epoch");
	SAYS(" 213 MiB was live. ");
}

/* Of 300 MiB of malloc's pages 50 are live; few blocks of line 7 keep 150. */
static void
fragment(uint64_t empty_bytes)
{
	struct model_site *site = hand_model_site(&hand, HEAP, 7, 5 * MIB);

	site->pinned_bytes = 140 * MIB;
	hand_model_site(&hand, HEAP, 9, 45 * MIB)->pinned_bytes = 10 * MIB;
	looked(300 * MIB, 0, 0);
	hand.resident.monotonic_ns = hand.identity.start_monotonic_ns + UINT64_C(60000000000); // its end
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
		                                                   .bytes = 300 * MIB,
		                                                   .empty_bytes = empty_bytes,
		                                                   .sparse_bytes = 150 * MIB,
		                                                   .sparse_live_bytes = 5 * MIB };
}

TEST(freed_memory_that_cannot_be_given_back_is_a_cause)
{
	fragment(105 * MIB);
	hand.process.python_version = 0;
	decide_killed(310 * MIB, 310 * MIB);
	assert_string_equal(
		found_text(&verdict),
		"ending; freed-not-returned 250 MiB of 300 MiB at train.py:7 epoch, likely; parts-in-memory 250 MiB of 310 MiB; "
		"live 50.0 MiB; line 45.0 MiB of 50.0 MiB at train.py:9 epoch");
	SAYS(" keep 150 MiB in memory", " gives back 105 MiB");
	assert_advised(&verdict, "return-freed-memory");
	assert_int_equal(strncmp(verdict.next, "call malloc_trim(0) ", 20), 0);
	assert_non_null(strstr(verdict.next, "that stay (most of them at train.py:7 epoch) before those"));
	assert_true(verdict.memory.freed.freed_bytes == 250 * MIB);
}

/* A pool: what its first process held grew until the peak, then was released, and its pages were seen before that. */
TEST(what_grew_until_the_peak_beside_children_is_no_freed_memory)
{
	struct model_point points[17] = { 0 };
	struct model_point_site held[16];
	struct model_process processes[2];

	fragment(105 * MIB);
	hand_model_site(&hand, HEAP, 41, 0)->peak_bytes = 250 * MIB;
	for (unsigned i = 0; i < 16; i++) {
		held[i] = (struct model_point_site){ 2, 250 * MIB / 16 * (i + 1) };
		points[i] = (struct model_point){ .volume_bytes = (i + 1) * 64 * MIB, .site_count = 1, .sites = &held[i] };
	}
	points[16] = (struct model_point){ .volume_bytes = 16 * 64 * MIB, .is_end = true };
	hand.process.points = points;
	hand.process.point_count = ARRAY_LEN(points);
	hand_model_exited(&hand, 0);
	processes[0] = processes[1] = hand.process;
	processes[1].parent = 0;
	processes[1].heap_sample = (struct model_heap_sample){ 0 };
	processes[1].point_count = 0;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand_model_decide(&hand, &verdict);
	assert_not_found(&verdict, "freed-not-returned");
}

/* What destructors gave back elsewhere is not in malloc's pages. */
TEST(what_ending_released_of_a_device_or_a_mapping_did_not_free_malloc_s_pages)
{
	for (unsigned domain = HEAP; domain <= CUDA0; domain++) {
		hand_model_make(&hand);
		fragment(105 * MIB);
		hand_model_exited(&hand, 0);
		hand_model_site(&hand, domain, 11, 0)->released_bytes = 300 * MIB;
		hand_model_decide(&hand, &verdict);
		if (domain == HEAP)
			assert_not_found(&verdict, "freed-not-returned");
		else
			assert_non_null(strstr(found_text(&verdict), "freed-not-returned"));
	}
}

TEST(freed_memory_is_told_of_who_ended_well_too)
{
	fragment(105 * MIB);
	hand_model_exited(&hand, 0);
	hand.process.thread_count = 24;
	hand_model_decide(&hand, &verdict);
	assert_found(
		&verdict,
		"peak-line 45.0 MiB of 50.0 MiB at train.py:9 epoch; freed-not-returned 250 MiB of 300 MiB at train.py:7 epoch, "
		"likely");
	assert_advised(&verdict, "return-freed-memory");
	assert_non_null(strstr(verdict.next, "call ctypes.CDLL(None).malloc_trim(0) after much was freed; and allocate"));
	SAYS("With 24 threads MALLOC_ARENA_MAX=2");
}

/* Of a minute, all was live until so long before the end, and so much was allocated since then. */
static const struct {
	uint64_t before_ns, volume_bytes, beat_before_ns;
	bool is_told;
	const char *why;
} last_cases[] = {
	{ 50000000, 1 * MIB, 0, false, "main returns, and its variables go" },
	{ 50000000, 64 * MIB, 0, true, "it needed memory afterwards" },
	{ UINT64_C(20000000000), 1 * MIB, 0, true, "it waited for long with what it kept" },
	{ 0, 0, UINT64_C(20000000000), true, "only a heartbeat saw that it waited" },
};

TEST(what_was_freed_in_the_last_moment_is_no_fragmentation)
{
	EACH_CASE(i, last_cases)
	{
		uint64_t end_ns;
		uint64_t low_ns;
		fragment(105 * MIB);
		end_ns = hand.resident.monotonic_ns;
		low_ns = end_ns - last_cases[i].before_ns;
		struct model_point points[] = {
			{ .monotonic_ns = hand.identity.start_monotonic_ns, .live_bytes = 290 * MIB, .volume_bytes = 100 * MIB },
			{ .monotonic_ns = low_ns, .live_bytes = 50 * MIB, .volume_bytes = 120 * MIB },
			{ .monotonic_ns = end_ns,
			  .live_bytes = 50 * MIB,
			  .volume_bytes = 120 * MIB + last_cases[i].volume_bytes,
			  .is_end = true },
		};
		struct kmem_heartbeat beats[] = { hand.heartbeat, hand.heartbeat };

		beats[0].monotonic_ns = hand.identity.start_monotonic_ns;
		beats[0].live_bytes = 290 * MIB;
		beats[1].monotonic_ns = end_ns - last_cases[i].beat_before_ns;
		beats[1].live_bytes = 50 * MIB;
		hand.process.heartbeats = beats;
		hand.process.heartbeat_count = last_cases[i].beat_before_ns != 0 ? 2 : 0;
		hand.process.points = points;
		hand.process.point_count = ARRAY_LEN(points);
		verdict_exited(0);
		if ((strstr(found_text(&verdict), "freed-not-returned") != NULL) != last_cases[i].is_told)
			fail_msg("%s: %s", last_cases[i].why, verdict.text);
		assert_advised(&verdict, last_cases[i].is_told ? "return-freed-memory" : "nothing");
	}
}

TEST(of_a_program_that_runs_what_to_do_is_about_what_it_keeps)
{
	fragment(105 * MIB);
	hand.process.state = KMEM_STATE_RUNNING;
	hand.process.is_alive = true;
	hand_model_decide(&hand, &verdict);
	assert_cause(&verdict, "running");
	assert_found(&verdict,
	             "ending; freed-not-returned 250 MiB of 300 MiB at train.py:7 epoch, likely; parts-in-memory");
	assert_advised(&verdict, "return-freed-memory");
}

/* At the look 300 MiB of malloc's, of which 40 may have been live; at the end nothing is. */
static const struct {
	uint64_t live_then, live_later, resident_later;
	bool is_told;
	const char *why;
	uint64_t blocks; // that the capture says were allocated; 0 = as they were
} unsampled_cases[] = {
	{ 40 * MIB, 30 * MIB, 300 * MIB, true, "much more was resident than live, before and after", 0 },
	{ 40 * MIB, 290 * MIB, 300 * MIB, false, "it was in use soon after", 0 },
	{ 290 * MIB, 280 * MIB, 300 * MIB, false, "it was in use before and after", 0 },
	{ 40 * MIB, 30 * MIB, 60 * MIB, false, "it was given back later", 0 },
	{ 40 * MIB, 30 * MIB, 300 * MIB, false, "of so many blocks, malloc's words are more than all memory", UINT64_MAX },
};

TEST(without_a_sample_freed_memory_is_told_at_least)
{
	EACH_CASE(i, unsampled_cases)
	{
		struct kmem_heartbeat beats[2] = { hand.heartbeat, hand.heartbeat };
		hand_model_site(&hand, HEAP, 9, 30 * MIB);
		looked(300 * MIB, 0, 0);
		if (unsampled_cases[i].blocks != 0)
			hand.domains[HEAP].allocated_count = unsampled_cases[i].blocks;
		hand.resident.monotonic_ns = 10;
		beats[0] = beats[1] = hand.heartbeat;
		beats[0].monotonic_ns = 5;
		beats[0].live_bytes = unsampled_cases[i].live_then;
		beats[1].monotonic_ns = 15;
		beats[1].live_bytes = unsampled_cases[i].live_later;
		beats[1].resident_bytes = unsampled_cases[i].resident_later;
		hand.process.heartbeats = beats;
		hand.process.heartbeat_count = 2;
		verdict_exited(0);
		if ((strstr(found_text(&verdict), "freed-not-returned 257 MiB of 300 MiB, likely") != NULL) !=
		        unsampled_cases[i].is_told ||
		    (strstr(verdict.text, "65.0 s before the end") != NULL) != unsampled_cases[i].is_told ||
		    (strstr(verdict.next, "where that does not help") != NULL) != unsampled_cases[i].is_told)
			fail_msg("%s: %s\nNext: %s", unsampled_cases[i].why, verdict.text, verdict.next);
		assert_advised(&verdict, unsampled_cases[i].is_told ? "return-freed-memory" : "nothing");
	}
}

TEST(what_came_after_the_look_is_freed_memory_where_it_can_be_nothing_else)
{
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		leaking(HEAP, 9, 120 * MIB);
		looked(150 * MIB, i == 0 ? 0 : 40 * MIB, 20 * MIB); // a library's own memory may have grown as well
		hand.resident.monotonic_ns = 10;
		hand.heartbeat.monotonic_ns = 20;
		hand.heartbeat.resident_bytes = 390 * MIB;
		hand.heartbeat.live_bytes = 120 * MIB;
		decide_killed(400 * MIB, 395 * MIB);
		if (i == 0)
			assert_found(&verdict, "freed-not-returned 222 MiB of 350 MiB, likely");
		else
			assert_not_found(&verdict, "freed-not-returned");
		assert_int_equal(strstr(verdict.text, "at the last sample only about") != NULL, i == 0);
	}
}

/* A phase of frees after the look: 300 MiB of malloc's, all of it live then, 20 at the last heartbeat. */
static const struct {
	uint64_t resident_later;
	bool is_told;
	const char *why;
} fallen_cases[] = {
	{ 310 * MIB, true, "nothing was given back" },
	{ 40 * MIB, false, "it was given back" },
};

TEST(what_was_freed_after_the_look_and_not_given_back_is_told)
{
	EACH_CASE(i, fallen_cases)
	{
		struct kmem_heartbeat beats[2];
		hand_model_site(&hand, HEAP, 9, 20 * MIB);
		looked(300 * MIB, 0, 0);
		hand.resident.monotonic_ns = 10;
		hand.process.heap_sample = (struct model_heap_sample){
			.sampled_pages = 1000, .bytes = 300 * MIB, .empty_bytes = MIB // next to nothing then
		};
		beats[0] = beats[1] = hand.heartbeat;
		beats[0].monotonic_ns = 10;
		beats[0].live_bytes = 290 * MIB;
		beats[1].monotonic_ns = 15;
		beats[1].live_bytes = 20 * MIB;
		beats[1].resident_bytes = fallen_cases[i].resident_later;
		hand.process.heartbeats = beats;
		hand.process.heartbeat_count = 2;
		verdict_waited(SIGKILL);
		if ((strstr(found_text(&verdict), "freed-not-returned 289 MiB of 310 MiB, likely") != NULL) !=
		        fallen_cases[i].is_told ||
		    (verdict.memory.freed.freed_bytes > 250 * MIB) != fallen_cases[i].is_told)
			fail_msg("%s: %s\nNext: %s", fallen_cases[i].why, verdict.text, verdict.next);
		assert_advised(&verdict, fallen_cases[i].is_told ? "find-sender, return-freed-memory" : "find-sender");
		assert_int_equal(strstr(verdict.next, "; then call ctypes.CDLL(None).malloc_trim(0) after") != NULL,
		                 fallen_cases[i].is_told);
	}
}

/* A block that moves while another thread looks is in no map. Of the 310 MiB that were live 15 were not malloc's, and 5 not in memory. */
static const struct {
	uint64_t live_before, live_later;
	bool is_told;
} moving_cases[] = {
	{ 310 * MIB, 310 * MIB, false },
	{ 100 * MIB, 310 * MIB, true },
	{ 310 * MIB, 100 * MIB, true },
};

TEST(what_was_live_at_the_look_is_not_free_whatever_the_map_says)
{
	EACH_CASE(i, moving_cases)
	{
		struct kmem_heartbeat beats[2];
		untouched(hand_model_site(&hand, HEAP, 9, 295 * MIB), 5 * MIB);
		hand_model_site(&hand, MMAP, 8, 15 * MIB);
		looked(300 * MIB, 0, 0);
		hand.resident.monotonic_ns = 10;
		hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
			                                                   .bytes = 300 * MIB,
			                                                   .empty_bytes = 290 * MIB };
		beats[0] = beats[1] = hand.heartbeat;
		beats[0].monotonic_ns = 10;
		beats[0].live_bytes = moving_cases[i].live_before;
		beats[1].monotonic_ns = 15;
		beats[1].live_bytes = moving_cases[i].live_later;
		beats[1].resident_bytes = 310 * MIB;
		hand.process.heartbeats = beats;
		hand.process.heartbeat_count = 2;
		verdict_waited(SIGKILL);
		if ((strstr(found_text(&verdict), "freed-not-returned") != NULL) != moving_cases[i].is_told)
			fail_msg("case %zu: %s", i, verdict.text);
	}
}

/* Each process has figures of its own. */
TEST(of_several_processes_the_one_that_keeps_most_is_told)
{
	struct model_process processes[2];

	fragment(105 * MIB);
	hand.heartbeat.monotonic_ns = hand.resident.monotonic_ns;
	hand.heartbeat.resident_bytes = hand.resident.resident_bytes;
	hand_model_waited(&hand, SIGKILL);
	processes[0] = processes[1] = hand.process;
	processes[1].launcher = NULL;
	processes[0].heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
		                                                   .bytes = 300 * MIB,
		                                                   .empty_bytes = 80 * MIB };
	processes[1].parent = 0;
	processes[1].name = "worker";
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand_model_decide(&hand, &verdict);
	assert_ptr_equal(verdict.memory.freed.process, &processes[1]);
	assert_found(&verdict, "freed-not-returned 250 MiB of 300 MiB at train.py:7 epoch, likely");
	SAYS(" that malloc of worker (pid ");
	assert_true(verdict_freed_of(&hand.model, &processes[0]).freed_bytes == 80 * MIB);
}

TEST(a_little_that_is_free_is_not_told)
{
	hand_model_site(&hand, HEAP, 9, 250 * MIB);
	looked(300 * MIB, 0, 0);
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
		                                                   .bytes = 300 * MIB,
		                                                   .empty_bytes = 40 * MIB };
	verdict_waited(SIGKILL);
	assert_not_found(&verdict, "freed-not-returned");
	assert_true(verdict.memory.freed.freed_bytes == 0);
}

TEST(a_librarys_own_allocator_is_said_to_have_grown)
{
	struct model_site *site;

	hand_model_domain(&hand.domains[MMAP], "library");
	site = hand_model_site(&hand, MMAP, 18, 812 * MIB);
	site->library = "pyarrow";
	hand.frames[0][0].module = "libarrow.so.2100";
	looked(20 * MIB, 850 * MIB, 0);
	decide_killed(900 * MIB, 900 * MIB);
	assert_string_equal(found_text(&verdict), "ending; live 812 MiB; line 812 MiB of 812 MiB at train.py:18 epoch");
	SAYS("was in the allocator of pyarrow, which grew (estimated) at");
	assert_advised(&verdict, "hold-less, system-allocators");
	assert_non_null(strstr(verdict.next, "--system-allocators -- python train.py 'it'\\''s'`"));

	hand.launcher.flags = KMEM_LAUNCHER_SYSTEM_ALLOCATORS; // it was recorded so
	hand_model_decide(&hand, &verdict);
	assert_advised(&verdict, "hold-less");
}

/* Its objects have lines that only it knows. Where a line of Python called it, that is told first. */
TEST(a_heap_of_another_language_is_said_to_have_grown)
{
	for (unsigned i = 0; i < 2; i++) {
		struct model_frame maker = { .kind = MODEL_FRAME_NATIVE,
			                         .function = "os::pd_commit_memory",
			                         .file = "",
			                         .module = "libjvm.so",
			                         .module_path = "" };
		const struct model_frame *frames[] = { &maker, NULL };
		struct model_site *site;

		hand_model_make(&hand);
		site = hand_model_site(&hand, MMAP, 18, 400 * MIB);
		frames[1] = site->where;
		site->frames = frames;
		site->frame_count = 2;
		if (i == 0)
			site->where = &maker;
		looked(420 * MIB, 0, 0);
		decide_killed(430 * MIB, 430 * MIB);
		assert_found(&verdict, i == 0 ? "line 400 MiB of 400 MiB at libjvm.so os::pd_commit_memory"
		                              : "line 400 MiB of 400 MiB at train.py:18 epoch");
		SAYS("was in the heap of the JVM, which grew at");
		assert_advised(&verdict, i == 0 ? "ask-runtime" : "hold-less, ask-runtime");
		assert_non_null(strstr(verdict.next, "HeapDumpOnOutOfMemoryError"));
	}
}

/* Its lines are not known: another malloc came first. Where LD_PRELOAD can mend that, it is the first advice. */
TEST(a_heap_that_is_hidden_is_told)
{
	static const char *const notes[] = {
		KMEM_NOTE_HIDDEN_HEAP ", only the mappings that it makes: malloc is /lib/libtc.so's, which comes before "
							  "this library; put libkmemshim.so first in LD_PRELOAD"
	};
	static const char *const own[] = { KMEM_NOTE_HIDDEN_HEAP
		                               ", only the mappings that it makes: malloc is part of the program itself" };

	hand.process.notes = notes;
	hand.process.note_count = 1;
	verdict_waited(0);
	assert_found(&verdict, "hidden-heap");
	assert_advised(&verdict, "preload-first");
	assert_null(strstr(verdict.next, "no action is needed"));
	hand.process.notes = own;
	hand_model_decide(&hand, &verdict);
	assert_found(&verdict, "hidden-heap");
	assert_advised(&verdict, "nothing");
}

/* What was not in memory at the last look is known, what was at the peak is not: never more than was there at all. */
TEST(what_was_touched_at_the_peak_is_no_more_than_was_in_memory)
{
	struct model_site *site = hand_model_site(&hand, HEAP, 11, 100 * MIB);

	untouched(hand_model_site(&hand, HEAP, 8, 60 * MIB), 60 * MIB);
	site->allocated_count = 900;
	hand_model_exited(&hand, 0);
	hand.process.resident = NULL;
	hand.launcher.max_resident_bytes = 120 * MIB;
	hand_model_decide(&hand, &verdict);
	SAYS(" It held at most 160 MiB in its heap, 100 MiB of it touched.");
	assert_advised(&verdict, "hold-less-at-peak");
	hand.launcher.max_resident_bytes = 62 * MIB;
	hand_model_decide(&hand, &verdict);
	SAYS(" It had at most 62.0 MiB in memory. It held at most 160 MiB in its heap.");
	assert_advised(&verdict, "nothing"); // nobody knows how much of the line's was in memory
}

/* A little that was not touched is told of nothing: neither of the whole nor of a part. What is told after another figure names its own. */
TEST(parts_of_a_peak_are_of_the_whole_that_is_told)
{
	const unsigned domains[] = { HEAP, HEAP, MMAP };
	const uint32_t lines[] = { 20, 1, 20 };
	const uint64_t bytes[] = { 91, 113, 20 };

	for (unsigned i = 0; i < ARRAY_LEN(bytes); i++)
		(void)hand_model_site(&hand, domains[i], lines[i], bytes[i] * MIB);
	hand.sites[2].where = hand.stacks[2][2] = hand.sites[0].where;
	hand.sites[1].stack_flags = KMEM_STACK_IMPORT_CUT;
	hand.sites[0].released_bytes = 90 * MIB;
	untouched(&hand.sites[0], 6 * MIB);
	untouched(&hand.sites[1], 2 * MIB);
	hand_model_exited(&hand, 0);
	hand.launcher.max_resident_bytes = 749 * MIB;
	hand_model_decide(&hand, &verdict);
	SAYS(
		" up to 204 MiB of it in its heap. At the peak 91.0 MiB (45 %) was allocated at train.py:20 epoch. In all kinds of "
		"memory that line held 111 MiB. 113 MiB of the 204 MiB (55 %) was left by imports.");
}

/* Where much of it was never touched, and where the peak is the sum of what was live at a heartbeat. */
TEST(the_peak_has_the_same_bytes_in_text_and_finding)
{
	static const char *const says[] = { " It held at most 64.0 MiB in mappings, 24.0 MiB of it touched.",
		                                " had the highest peak: 300 MiB in all, 64.0 MiB of it in mmap." };
	static const uint64_t bytes[] = { 64 * MIB, 300 * MIB };

	for (unsigned i = 0; i < ARRAY_LEN(says); i++) {
		struct kmem_identity child = hand_model_child(&hand);
		struct model_process processes[2];

		hand_model_make(&hand);
		hand_model_site(&hand, MMAP, 42, 64 * MIB);
		if (i == 0)
			untouched(&hand.sites[0], 40 * MIB);
		hand_model_exited(&hand, 0);
		processes[0] = processes[1] = hand.process;
		processes[1].identity = &child;
		processes[1].parent = 0;
		processes[0].peak_bytes = processes[1].peak_bytes = 64 * MIB;
		hand.heartbeat.live_bytes = i * 300 * MIB;
		processes[0].heartbeat_count = 0;
		if (i == 1) {
			hand.model.processes = processes;
			hand.model.process_count = 2;
		}
		hand_model_decide(&hand, &verdict);
		SAYS(says[i]);
		assert_int_equal(verdict.findings[1].kind, FINDING_PEAK);
		assert_int_equal(verdict.findings[1].bytes, bytes[i]);
	}
}

/* What to do about the heap stays the first advice, and its name the first name, where a heap's owner knows more of its objects. */
TEST(names_of_advice_are_those_of_what_is_said)
{
	static const char *const notes[] = { KMEM_NOTE_HIDDEN_HEAP ", put libkmemshim.so first in LD_PRELOAD" };
	struct model_frame maker = { .kind = MODEL_FRAME_NATIVE,
		                         .function = "os::pd_commit_memory",
		                         .file = "",
		                         .module = "libjvm.so",
		                         .module_path = "" };
	const struct model_frame *frames[] = { &maker };
	struct model_site *site = hand_model_site(&hand, MMAP, 18, 400 * MIB);

	site->frames = frames;
	site->frame_count = 1;
	site->where = &maker;
	hand.process.notes = notes;
	hand.process.note_count = 1;
	looked(420 * MIB, 0, 0);
	decide_killed(430 * MIB, 430 * MIB);
	assert_ptr_equal(strstr(verdict.next, "put libkmemshim.so first in LD_PRELOAD"), verdict.next);
	assert_non_null(strstr(verdict.next, "; or let its own tools name the objects"));
	assert_advised(&verdict, "preload-first, ask-runtime");
}

RUN_TESTS(verdict_case_begin, NULL)
