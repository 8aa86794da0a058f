/*
 * test_verdict_memory.c - does the verdict say where memory was, before it names a line that holds little of it?
 */
#include "verdict_case.h"

#define CONTAINER(limit, charged) "limit cgroup " limit "; heartbeat cgroup_bytes=" charged "; oom; "
#define NOT_TOUCHED "heap:2 2G untouched=2G-4K; "

TEST(a_block_that_was_never_touched_is_not_blamed)
{
	told(
		"=ending; live 2.31 GiB; line 316 MiB of 316 MiB at train.py:6 epoch; accumulates 316 MiB of 316 MiB at "
		"train.py:6 epoch, likely; untouched 2.00 GiB of 2.00 GiB at train.py:2 epoch; not-looked at train.py:6 epoch; recorder 40.0 MiB of 370 MiB",
		"release-blocks", NOT_TOUCHED "heap:6 316M leak; look brk=330M own=40M; " CONTAINER("400M", "400M"));
	said(" 2.31 GiB was live, 316 MiB of it in memory at the last sample. 316 MiB of that ");
	assert_true(verdict.untouched_bytes == 2 * GIB - 4 * KIB);
}

/* OpenBLAS maps 64 MiB when NumPy is imported, and touches little: that is nobody's doing, and no part of what is in memory. */
TEST(what_imports_asked_for_and_never_touched_is_not_told)
{
	/* Another buffer explains less than half of it. */
	told("line 28.0 MiB of 39.0 MiB at train.py:6 epoch; accumulates", NULL,
	     "mmap:1 64M import untouched=63M; mmap:6 32M untouched=32M; heap:6 28M leak; heap:1 10M import; exit 0");
	assert_not_found(&verdict, "imports"); // 11 MiB of them
	assert_not_found(&verdict, "untouched");
	said(" 134 MiB was live in all, 39.0 MiB of it in memory.");
}

/* Imports hold the most, and have held it all along: what was being filled when the kernel killed it is what to act on. */
TEST(imports_are_not_blamed_for_a_block_that_was_being_filled)
{
#define BEING_FILLED \
	"heap:6 200M; heap:1 300M import; process filled_bytes=%s; look brk=300M own=40M; " CONTAINER("500M", "340M")
	told(NULL, "import-less", BEING_FILLED, "0");
	told(NULL, "hold-less", BEING_FILLED, "180M");
}

/* A limit of addresses counts what was asked for. */
TEST(a_request_that_was_refused_is_told_by_what_was_asked_for)
{
	told("live 2.31 GiB; line 2.00 GiB of 2.31 GiB at train.py:2 epoch", NULL,
	     NOT_TOUCHED "heap:6 316M; refuse 64M; process failed_count=1; status 1");
	assert_cause(&verdict, "request-refused");
}

TEST(a_line_of_which_a_part_is_there_counts_with_that_part)
{
	told("live 1.10 GiB; line 300 MiB of 400 MiB at train.py:2 epoch", NULL,
	     "heap:2 1G untouched=724M; heap:6 100M; look brk=410M; " CONTAINER("420M", "420M"));
}

TEST(no_line_is_named_before_it_was_said_where_the_rest_is)
{
	static const struct {
		const char *scene, *found, *parts, *why;
	} cases[] = {
		{ "heap:41 100M leak; look brk=200M reserved=80M own=20M; killed", "!parts-in-memory", "",
		  "a third is enough" },
		{ "heap:41 99M leak; look brk=110M reserved=170M own=20M; killed",
		  "; parts-in-memory 170 MiB of 300 MiB; live 99.0 MiB; line",
		  "; 105 MiB live at recorded lines; 20.0 MiB the recorder's own; 4.8 MiB", "less is not" },
		{ "heap:41 10M leak; look brk=200M own=20M; killed",
		  "; parts-in-memory 189 MiB of 220 MiB; live 10.0 MiB; line", "189 MiB malloc's, beyond what is live; ",
		  "nobody looked at malloc's pages" },
		{ "heap:41 10M leak; look brk=20M reserved=30M own=10M; killed", "!parts-in-memory", "", "a small program" },
		{ "heap:41 150M leak; look brk=160M; " CONTAINER("500M", "500M"),
		  "; parts-in-memory 340 MiB of 500 MiB; live 150 MiB; line",
		  "340 MiB other processes, and pages of files; 159 MiB live at recorded lines; ",
		  "others filled the container" },
		{ "heap:41 170M leak; look brk=180M; " CONTAINER("500M", "500M"), "!parts-in-memory", "",
		  "but a third of it is told at once" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i].found, NULL, "%s", cases[i].scene);
		parts(cases[i].parts);
	}
}

TEST(what_filled_the_container_beside_the_program_is_told)
{
	static const struct {
		const char *container, *parts, *advice, *why;
	} cases[] = {
		{ "anonymous_bytes=60M memory_files_bytes=230M",
		  "230 MiB files that lie in memory (/dev/shm, other tmpfs folders); 60.0 MiB the recorder's",
		  "remove-files-in-memory", "nobody's pages, as long as the files are there" },
		{ "anonymous_bytes=280M memory_files_bytes=1M", "229 MiB other processes, and the kernel's for all",
		  "see-container", "other processes" },
		{ "anonymous_bytes=60M memory_files_bytes=164M",
		  "164 MiB files that lie in memory (/dev/shm, other tmpfs folders); 66.0 MiB other processes, and pages of files",
		  "remove-files-in-memory", "a quarter came after the look" },
		{ "anonymous_bytes=61M memory_files_bytes=10M", "220 MiB other processes, and pages of files",
		  "see-container-and-files", "and so did nearly all" },
		{ "anonymous_bytes=61M memory_files_bytes=165M", "65.0 MiB other processes, and the kernel's for all",
		  "remove-files-in-memory", "less may be the kernel's" },
		{ "anonymous_bytes=60M cached_bytes=400M", "230 MiB contents of files on disk", "release-blocks",
		  "the kernel drops these" },
		{ "memory_files_bytes=230M", "230 MiB other processes, and pages of files", "release-blocks", "nobody looked" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, cases[i].advice, "heap:41 8M leak; look brk=10M own=60M; container %s; " CONTAINER("300M", "300M"),
		     cases[i].container);
		parts(cases[i].parts);
	}
}

/* Seen half a minute before the last heartbeat. */
#define LATER "resident monotonic_ns=5s; heartbeat monotonic_ns=35s "

/* What this process grew by since is no other's. */
TEST(what_the_program_took_after_the_look_is_its_own)
{
	told(NULL, NULL,
	     "heap:41 8M leak; look brk=10M own=60M; container anonymous_bytes=200M; " CONTAINER("300M", "300M") LATER
	     "resident_bytes=170M");
	parts("130 MiB other processes, and the kernel's for all; 100 MiB newer than the last sample");
}

/* A thread's own area is allocated with its stack: where it was started is known. */
TEST(stacks_of_threads_have_a_line)
{
	told(NULL, "end-threads",
	     "heap:6 8M live_count=9000; heap:41 1M live_count=1145 function=_dl_allocate_tls; "
	     "look brk=10M stacks=100M; " CONTAINER("120M", "120M"));
	said("1,145 of the threads whose stacks were there were started at train.py:41 epoch.");
}

/* Line 9 has a large part in each of two kinds of memory, line 5 more in one: 9 is the first line, as in the rows. */
TEST(kinds_of_memory_of_one_line_are_one)
{
	scene(CONTAINER("410M", "405M") "heap:5 100M leak; heap:9 90M leak; mmap:9 50M leak; heap:7 100M import=torch; "
	                                "process live_bytes=340M; look brk=400M");
	hand.sites[2].where = hand.stacks[2][2] = hand.sites[1].where;
	hand.sites[3].leak = MODEL_LEAK_IMPORT;
	decided(NULL, NULL);
	said("140 MiB of it (41 %) was allocated at train.py:9 epoch");
	said("Another 100 MiB (29 %) was allocated at train.py:5 epoch");
}

/* A third of it is much, but not the most. */
TEST(a_line_is_not_named_alone_where_files_in_memory_held_more)
{
	told(NULL, "remove-files-in-memory",
	     "heap:41 110M leak; look brk=110M own=10M; container anonymous_bytes=120M memory_files_bytes=180M; " CONTAINER(
			 "300M", "300M"));
	parts("180 MiB files that lie in memory (/dev/shm, other tmpfs folders); 110 MiB live at recorded lines");
}

TEST(what_came_after_the_look_is_a_part)
{
	told("parts-in-memory 227 MiB of 289 MiB; live 50.0 MiB; line", NULL,
	     "heap:41 50M; look brk=62M; " LATER "resident_bytes=289M; killed");
	parts("227 MiB newer than the last sample");
}

/* Code and data of a program are in each of its processes, and in memory once: that is no growth after the look. */
TEST(what_processes_share_is_no_other_time)
{
	told("parts-in-memory 124 MiB of 224 MiB; live 100 MiB; ", NULL,
	     "heap:41 30M; look brk=62M program=100M; "
	     "resident monotonic_ns=5s; heartbeat monotonic_ns=65s; killed; process live_bytes=50M; child parent=-1");
}

/* A line mapped it, here and in a worker: it is the line's, and once there. */
TEST(shared_memory_is_of_the_line_that_mapped_it)
{
#define SHARED "; look brk=4M file=2M shared=230M; killed"
	told(NULL, NULL, "name mmap shared; mmap:13 460M process_count=2" SHARED "; child name=worker");
	parts("230 MiB shared memory that recorded lines mapped; ");
	told(NULL, NULL, "name mmap shared; mmap:13 220M" SHARED);
	parts("220 MiB shared memory that recorded lines mapped; 12.0 MiB pages of files and shared memory");
}

/* What a line has of another kind of memory is there. */
TEST(what_is_not_there_is_of_the_kind_that_was_asked_for)
{
	told(NULL, NULL, "heap:41 60M; mmap:6 128M same untouched=128M; heap:9 300M; killed");
	said("Of the 128 MiB of mmap that train.py:41 epoch asked for, only 0 B was in memory then.");
}

/* A file that is mapped and read fills memory, and no block of it is live. */
TEST(the_line_that_maps_most_files_is_named)
{
#define FILES(mapped) \
	"name reserved file; reserved:10 " mapped "; reserved:11 15M; heap:16 3M; look brk=4M own=10M file=150M; "
	told(NULL, NULL, FILES("140M") "killed");
	said(" Most of the files were mapped at train.py:10 epoch.");
	parts("150 MiB pages of files and shared memory");
	told("mapped-files 150 MiB of 164 MiB at train.py:10 epoch", NULL, FILES("140M") "exit 0");
	said(" Most of the files were mapped at train.py:10 epoch.");
	told(NULL, NULL, FILES("60M") "killed");
	said("!files were mapped"); // others than those that were seen
	parts("150 MiB pages of files and shared memory");
}

/* The container counts what is private: more than can be elsewhere is in pages of the mapping that were written. */
TEST(written_pages_of_a_private_mapping_are_the_process_own)
{
	static const struct {
		unsigned anonymous, charged;
		bool is_written;
	} cases[] = { { 154, 164, true }, { 90, 164, true }, { 89, 164, false }, { 154, 165, false } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(
			NULL, cases[i].is_written ? "write-elsewhere" : NULL,
			FILES(
				"140M") "container anonymous_bytes=%uM; limit cgroup 170M; heartbeat cgroup_bytes=%uM limit_bytes=170M; oom",
			cases[i].anonymous, cases[i].charged);
		said(cases[i].is_written
		         ? "was written pages of private mappings of files (anonymous memory), mapped at train.py:10 "
		           "epoch."
		         : "!written pages");
		said(cases[i].is_written ? "!train.py:16" : "train.py:16");
	}
}

/* Its lines are the parent's, which no longer holds it. */
TEST(the_line_of_what_was_there_before_the_fork_is_named)
{
#define WORDS " Most of what was there before the fork was allocated at train.py:4 epoch."
	for (unsigned i = 0; i < 2; i++) {
		struct model_built built = { .site = &hand.sites[0], .live_bytes = i == 0 ? 76 * MIB : 40 * MIB };

		scene("heap:4 0; heap:20 3M; look brk=4M own=3M; heartbeat monotonic_ns=65s; killed; process live_bytes=3M; "
		      "child inherited_bytes=92M inherited_heap_bytes=92M");
		struct kmem_resident of_child = hand.resident;
		of_child.part_bytes[KMEM_RESIDENT_INHERITED] = 90 * MIB;
		of_child.resident_bytes += 90 * MIB;
		hand.family[1].resident = &of_child;
		hand.family[1].built = &built;
		hand.family[1].built_count = 1;
		decided(NULL, NULL);
		parts("90.0 MiB memory from before the fork");
		said(i == 0 ? WORDS : "!" WORDS);
	}
}

/* Four workers of a parent that is there: their pages are the parent's live ones, but for those that they copied. */
TEST(what_workers_share_with_their_parent_is_counted_once)
{
	for (unsigned i = 0; i < 2; i++) {
		scene("heap:4 100M; heap:20 60M; look brk=110M reserved=170M own=20M; sample bytes=110M empty_bytes=1M; "
		      "heartbeat monotonic_ns=65s; " CONTAINER("400M", "400M"));
		struct kmem_resident of_worker = { .sequence = 1, .resident_bytes = 283 * MIB };

		of_worker.part_bytes[KMEM_RESIDENT_BRK] = 108 * MIB;
		of_worker.part_bytes[KMEM_RESIDENT_INHERITED] = 170 * MIB;
		of_worker.part_bytes[KMEM_RESIDENT_OWN] = 5 * MIB;
		for (unsigned worker = 1; worker <= 4; worker++) {
			scene_add(&hand, "child inherited_bytes=160M inherited_heap_bytes=160M live_bytes=2M copied_bytes=%uM",
			          i == 0 ? 0 : 20);
			hand.family[worker].resident = &of_worker;
			hand.family[worker].heap_sample.empty_bytes = 106 * MIB;
		}
		decided(NULL, NULL);
		parts(i == 0 ? "!before the fork" : "80.0 MiB pages that forked children copied by writing to them");
		parts("; 1.0 MiB freed memory that malloc keeps");
		parts(i == 0 ? "!copied" : "!memory from before the fork");
		parts("117 MiB live at recorded lines");
	}
}

/* The second line, and what its end released, too: of line 9 30 MiB, of which 20 were released. Line 7 has most of the largest kind alone. */
TEST(every_line_is_told_with_all_kinds_of_its_memory)
{
	scene("heap:5 60M leak; heap:9 20M leak released_bytes=10M; mmap:9 10M leak; exit 0");
	hand.sites[2].where = hand.stacks[2][2] = hand.sites[1].where;
	decided(NULL, NULL);
	said("Blocks of train.py:9 epoch (30.0 MiB) look like a leak too.");

	scene("heap:9 20M leak released_bytes=10M; mmap:9 10M released_bytes=5M; exit 0");
	hand.sites[1].where = hand.stacks[1][2] = hand.sites[0].where;
	decided(NULL, NULL);
	said(" Exit handlers or destructors released 15.0 MiB of train.py:9 epoch");

	scene("heap:7 0 peak_bytes=18M; heap:8 0 peak_bytes=12M; mmap:7 0 peak_bytes=1M; mmap:9 0 peak_bytes=20M; "
	      "domain heap peak_bytes=30M; domain mmap peak_bytes=21M; process peak_bytes=51M; exit 0");
	decided(NULL, NULL);
	said(" At the peak 20.0 MiB was allocated at train.py:9 epoch.");

	/* Kinds that were at their peaks one after the other have no sum. */
	scene("heap:7 0 peak_bytes=18M; heap:8 0 peak_bytes=12M; mmap:7 0 peak_bytes=1M; mmap:9 0 peak_bytes=20M; "
	      "domain heap peak_bytes=30M; domain mmap peak_bytes=21M; process peak_bytes=30M; exit 0");
	decided(NULL, NULL);
	said(" At the peak 18.0 MiB (60 %) was allocated at train.py:7 epoch.");
}

/* Of a line that made an array, and a buffer of a library that nobody touched. */
TEST(a_sum_over_kinds_at_the_peak_has_nothing_untouched)
{
	scene("heap:7 0 peak_bytes=8M; mmap:20 64M same untouched=64M-500K; heap:20 1M; process peak_bytes=73M; exit 0");
	decided(NULL, NULL);
	said(" At the peak 8.5 MiB was allocated at train.py:7 epoch.");
}

/* One text has two samples: a look at pages, and a heartbeat that is newer. */
TEST(an_older_look_is_told_with_its_age)
{
	static const char *const later[] = { "440M", "660M" };

	for (unsigned i = 0; i < 2; i++) {
		scene("heap:4 400M; look brk=250M program=130M own=60M monotonic_ns=64s; "
		      "heartbeat monotonic_ns=65s resident_bytes=%s; process ended_monotonic_ns=65s; killed",
		      later[i]);
		decided(NULL, NULL);
		said(i == 0 ? "Of the 440 MiB in memory at the last sample, "
		            : "Of the 440 MiB in memory 1.0 s before the end, ");
	}
}

/* Blocks that were released between the look and the end. */
TEST(what_lines_held_at_the_look_is_not_denied)
{
	told("parts-in-memory 240 MiB of 300 MiB; live 6.0 MiB; line", NULL,
	     "heap:41 6M; look brk=240M own=60M; sample bytes=240M; killed");
	said(" Most of what lines held at the last sample was released afterwards.");
}

/* A sentence without what is in memory has the figures of the tables. */
TEST(a_little_that_was_not_touched_changes_no_figure)
{
	told("=ending; live 213 MiB; line 205 MiB of 213 MiB at train.py:6 epoch", NULL,
	     "heap:2 8M untouched=7M; heap:6 205M; look brk=206M; " CONTAINER("260M", "260M"));
	said(" 213 MiB was live. ");
}

/* Of 300 MiB of malloc's pages 50 are live; few blocks of line 7 keep 150. The look is at its end. */
#define FRAGMENTED(empty)                                                                                          \
	"heap:7 5M pinned_bytes=140M; heap:9 45M pinned_bytes=10M; look brk=300M monotonic_ns=65s; sample bytes=300M " \
	"empty_bytes=" empty " sparse_bytes=150M sparse_live_bytes=5M; "
#define FREED "freed-not-returned 250 MiB of 300 MiB at train.py:7 epoch, likely"

TEST(freed_memory_that_cannot_be_given_back_is_a_cause)
{
	told("=ending; " FREED
	     "; parts-in-memory 250 MiB of 310 MiB; live 50.0 MiB; line 45.0 MiB of 50.0 MiB at train.py:9 epoch",
	     "return-freed-memory", FRAGMENTED("105M") "process python_version=0; " CONTAINER("310M", "310M"));
	said("150 MiB lies in pages that are kept by a few live blocks each");
	said(" gives back 105 MiB");
	next("^call malloc_trim(0) ");
	next("that stay (most of them at train.py:7 epoch) before those");
	assert_true(verdict.memory.freed.freed_bytes == 250 * MIB);
}

/* A pool: what its first process held grew until the peak, then was released, and its pages were seen before that. */
TEST(what_grew_until_the_peak_beside_children_is_no_freed_memory)
{
	struct model_point points[17] = { 0 };
	struct model_point_site held[16];

	scene(FRAGMENTED("105M") "heap:41 0 peak_bytes=250M; exit 0");
	for (unsigned i = 0; i < 16; i++) {
		held[i] = (struct model_point_site){ 2, 250 * MIB / 16 * (i + 1) };
		points[i] = (struct model_point){ .volume_bytes = (i + 1) * 64 * MIB, .site_count = 1, .sites = &held[i] };
	}
	points[16] = (struct model_point){ .volume_bytes = 16 * 64 * MIB, .is_end = true };
	hand.process.points = points;
	hand.process.point_count = ARRAY_LEN(points);
	scene_add(&hand, "child");
	hand.family[1].heap_sample = (struct model_heap_sample){ 0 };
	hand.family[1].point_count = 0;
	decided("!freed-not-returned", NULL);
}

/* What destructors gave back elsewhere is not in malloc's pages. */
TEST(what_ending_released_of_a_device_or_a_mapping_did_not_free_malloc_s_pages)
{
	static const char *const domains[] = { "heap", "mmap", "reserved", "cuda0" };

	for (size_t i = 0; i < ARRAY_LEN(domains); i++)
		told(i == 0 ? "!freed-not-returned" : "freed-not-returned", NULL,
		     FRAGMENTED("105M") "exit 0; %s:11 0 released_bytes=300M", domains[i]);
}

TEST(freed_memory_is_told_of_who_ended_well_too)
{
	told("peak-line 45.0 MiB of 50.0 MiB at train.py:9 epoch; " FREED, "return-freed-memory",
	     FRAGMENTED("105M") "exit 0; process thread_count=24");
	next("call ctypes.CDLL(None).malloc_trim(0) after much was freed; and allocate");
	said("With 24 threads MALLOC_ARENA_MAX=2");
}

/* Of a minute, all was live until so long before the end, and so much was allocated since then. */
TEST(what_was_freed_in_the_last_moment_is_no_fragmentation)
{
	static const struct {
		uint64_t before_ns, volume_bytes;
		const char *beats;
		bool is_told;
		const char *why;
	} cases[] = {
		{ 50000000, 1 * MIB, "", false, "main returns, and its variables go" },
		{ 50000000, 64 * MIB, "", true, "it needed memory afterwards" },
		{ UINT64_C(20000000000), 1 * MIB, "", true, "it waited for long with what it kept" },
		{ 0, 0, "beat monotonic_ns=5s live_bytes=290M; beat monotonic_ns=45s live_bytes=50M", true,
		  "only a heartbeat saw that it waited" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_point points[] = {
			{ .monotonic_ns = UINT64_C(5000000000), .live_bytes = 290 * MIB, .volume_bytes = 100 * MIB },
			{ .monotonic_ns = UINT64_C(65000000000) - cases[i].before_ns,
			  .live_bytes = 50 * MIB,
			  .volume_bytes = 120 * MIB },
			{ .monotonic_ns = UINT64_C(65000000000),
			  .live_bytes = 50 * MIB,
			  .volume_bytes = 120 * MIB + cases[i].volume_bytes,
			  .is_end = true },
		};

		scene(FRAGMENTED("105M") "process heartbeat_count=0; %s; exit 0", cases[i].beats);
		hand.process.points = points;
		hand.process.point_count = ARRAY_LEN(points);
		decided(cases[i].is_told ? "freed-not-returned" : "!freed-not-returned",
		        cases[i].is_told ? "return-freed-memory" : "nothing");
	}
}

TEST(of_a_program_that_runs_what_to_do_is_about_what_it_keeps)
{
	told("ending; " FREED "; parts-in-memory", "return-freed-memory", FRAGMENTED("105M") "alive");
	assert_cause(&verdict, "running");
}

/* At the look 300 MiB of malloc's, of which 40 may have been live; at the end nothing is. */
TEST(without_a_sample_freed_memory_is_told_at_least)
{
	static const struct {
		const char *then, *later, *resident_later;
		bool is_told;
		const char *why, *more;
	} cases[] = {
		{ "40M", "30M", "300M", true, "much more was resident than live, before and after", "" },
		{ "40M", "290M", "300M", false, "it was in use soon after", "" },
		{ "290M", "280M", "300M", false, "it was in use before and after", "" },
		{ "40M", "30M", "60M", false, "it was given back later", "" },
		{ "40M", "30M", "300M", false, "of so many blocks, malloc's words are more than all memory",
		  "domain heap allocated_count=max" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is_told = cases[i].is_told;

		told(is_told ? "freed-not-returned 257 MiB of 300 MiB, likely" : "!freed-not-returned 257 MiB",
		     is_told ? "return-freed-memory" : "nothing",
		     "heap:9 30M; look brk=300M monotonic_ns=10; beat monotonic_ns=5 live_bytes=%s; "
		     "beat monotonic_ns=15 live_bytes=%s resident_bytes=%s; %s; exit 0",
		     cases[i].then, cases[i].later, cases[i].resident_later, cases[i].more);
		said(is_told ? "65.0 s before the end" : "!65.0 s before the end");
		next(is_told ? "where that does not help" : "!where that does not help");
	}
}

TEST(what_came_after_the_look_is_freed_memory_where_it_can_be_nothing_else)
{
#define CAME_AFTER                                                                                                             \
	"; heap:9 120M leak; resident monotonic_ns=10; heartbeat monotonic_ns=20 resident_bytes=390M live_bytes=120M; " CONTAINER( \
		"400M", "395M")
	told("freed-not-returned 222 MiB of 350 MiB, likely", NULL, "look brk=150M own=20M" CAME_AFTER);
	said("at the last sample only about");
	/* A library's own memory may have grown as well. */
	told("!freed-not-returned", NULL, "look brk=150M reserved=40M own=20M" CAME_AFTER);
	said("!at the last sample only about");
}

/* A phase of frees after the look: 300 MiB of malloc's, all of it live then, 20 at the last heartbeat. Nearly none was empty. */
TEST(what_was_freed_after_the_look_and_not_given_back_is_told)
{
#define FALLEN                                                                                           \
	"heap:9 20M; look brk=300M monotonic_ns=10; sample bytes=300M empty_bytes=1M; beat monotonic_ns=10 " \
	"live_bytes=290M; beat monotonic_ns=15 live_bytes=20M resident_bytes=%s; killed"
	told("freed-not-returned 289 MiB of 310 MiB, likely", "find-sender, return-freed-memory", FALLEN, "310M");
	next("; then call ctypes.CDLL(None).malloc_trim(0) after");
	assert_true(verdict.memory.freed.freed_bytes > 250 * MIB);
	told("!freed-not-returned", "find-sender", FALLEN, "40M"); // it was given back
	next("!malloc_trim");
	assert_false(verdict.memory.freed.freed_bytes > 250 * MIB);
}

/* A block that moves while another thread looks is in no map. Of the 310 MiB that were live 15 were not malloc's, and 5 not in memory. */
TEST(what_was_live_at_the_look_is_not_free_whatever_the_map_says)
{
#define MOVING                                                                                                       \
	"heap:9 295M untouched=5M; mmap:8 15M; look brk=300M monotonic_ns=10; sample bytes=300M empty_bytes=290M; beat " \
	"monotonic_ns=10 live_bytes=%s; beat monotonic_ns=15 live_bytes=%s resident_bytes=310M; killed"
	told("!freed-not-returned", NULL, MOVING, "310M", "310M");
	told("freed-not-returned", NULL, MOVING, "100M", "310M");
	told("freed-not-returned", NULL, MOVING, "310M", "100M");
}

/* Each process has figures of its own. */
TEST(of_several_processes_the_one_that_keeps_most_is_told)
{
	scene(FRAGMENTED("105M") "heartbeat monotonic_ns=65s; killed; child name=worker");
	hand.family[0].heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
		                                                     .bytes = 300 * MIB,
		                                                     .empty_bytes = 80 * MIB };
	decided(FREED, NULL);
	assert_ptr_equal(verdict.memory.freed.process, &hand.family[1]);
	said(" that malloc of worker (pid ");
	assert_true(verdict_freed_of(&hand.model, &hand.family[0]).freed_bytes == 80 * MIB);
}

TEST(a_little_that_is_free_is_not_told)
{
	told("!freed-not-returned", NULL, "heap:9 250M; look brk=300M; sample bytes=300M empty_bytes=40M; killed");
	assert_true(verdict.memory.freed.freed_bytes == 0);
}

TEST(a_librarys_own_allocator_is_said_to_have_grown)
{
	told(
		"=ending; live 812 MiB; line 812 MiB of 812 MiB at train.py:18 epoch", "hold-less, system-allocators",
		"name mmap library; mmap:18 812M library=pyarrow module=libarrow.so.2100; look brk=20M reserved=850M; " CONTAINER(
			"900M", "900M"));
	said("was in the allocator of pyarrow, which grew (estimated) at");
	said(" At the last sample 812 MiB was live."); // what came after it nobody knows
	next("--system-allocators -- python train.py 'it'\\''s'`");
	hand.launcher.flags = KMEM_LAUNCHER_SYSTEM_ALLOCATORS; // it was recorded so
	decided(NULL, "hold-less");
}

/* The second site's frames: the maker below the line, or alone. */
static void
grow_jvm(bool is_called)
{
	static const struct model_frame maker = { .kind = MODEL_FRAME_NATIVE,
		                                      .function = "os::pd_commit_memory",
		                                      .file = "",
		                                      .module = "libjvm.so",
		                                      .module_path = "" };
	static const struct model_frame *frames[2];

	scene("mmap:18 400M; look brk=420M; " CONTAINER("430M", "430M"));
	frames[0] = &maker;
	frames[1] = hand.sites[0].where;
	hand.sites[0].frames = frames;
	hand.sites[0].frame_count = is_called ? 2 : 1;
	hand.sites[0].where = is_called ? frames[1] : &maker;
}

/* Its objects have lines that only it knows. Where a line of Python called it, that is told first. */
TEST(a_heap_of_another_language_is_said_to_have_grown)
{
	for (unsigned is_called = 0; is_called < 2; is_called++) {
		grow_jvm(is_called);
		decided(is_called ? "line 400 MiB of 400 MiB at train.py:18 epoch"
		                  : "line 400 MiB of 400 MiB at libjvm.so os::pd_commit_memory",
		        is_called ? "hold-less, ask-runtime" : "ask-runtime");
		said("was in the heap of the JVM, which grew at");
		next("HeapDumpOnOutOfMemoryError");
	}
}

static const char *const preload_first[] = {
	KMEM_NOTE_HIDDEN_HEAP ", only the mappings that it makes: malloc is /lib/libtc.so's, which comes before "
						  "this library; put libkmemshim.so first in LD_PRELOAD"
};

/* Its lines are not known: another malloc came first. Where LD_PRELOAD can mend that, it is the first advice. */
TEST(a_heap_that_is_hidden_is_told)
{
	static const char *const own[] = { KMEM_NOTE_HIDDEN_HEAP
		                               ", only the mappings that it makes: malloc is part of the program itself" };

	scene("status 0");
	hand.process.notes = preload_first;
	hand.process.note_count = 1;
	decided("hidden-heap", "preload-first");
	next("!no action is needed");
	hand.process.notes = own;
	decided("hidden-heap", "nothing");
}

/* What was not in memory at the last look is known, what was at the peak is not: never more than was there at all. */
TEST(what_was_touched_at_the_peak_is_no_more_than_was_in_memory)
{
#define AT_PEAK(most) \
	"heap:11 100M allocated_count=900; heap:8 60M untouched=60M; exit 0; process resident=0; launcher max_resident_bytes=" most
	told(NULL, "hold-less-at-peak", AT_PEAK("120M"));
	said(" It held at most 160 MiB in its heap, 100 MiB of it touched.");
	told(NULL, "nothing", AT_PEAK("62M")); // nobody knows how much of the line's was in memory
	said(" It had at most 62.0 MiB in memory. It held at most 160 MiB in its heap.");
}

/* A little that was not touched is told of nothing: neither of the whole nor of a part. What is told after another figure names its own. */
TEST(parts_of_a_peak_are_of_the_whole_that_is_told)
{
	told(NULL, NULL,
	     "heap:20 91M released_bytes=90M untouched=6M; heap:1 113M import untouched=2M; mmap:20 20M same; exit 0; "
	     "process peak_bytes=224M; launcher max_resident_bytes=749M");
	said(" up to 204 MiB of it in its heap. At the peak 111 MiB was allocated at train.py:20 epoch. "
	     "113 MiB of the 204 MiB (55 %) was left by imports.");
}

/* Where much of it was never touched, and where the peak is the sum of what was live at a heartbeat. */
TEST(the_peak_has_the_same_bytes_in_text_and_finding)
{
	told("^ending; peak 64.0 MiB", NULL, "mmap:42 64M untouched=40M; exit 0; process heartbeat_count=0");
	said(" It held at most 64.0 MiB in mappings, 24.0 MiB of it touched.");
	told("^ending; peak 300 MiB", NULL,
	     "mmap:42 64M; exit 0; process peak_bytes=64M; heartbeat live_bytes=300M; child; parent heartbeat_count=0");
	said(" had the highest peak: 300 MiB in all, 64.0 MiB of it in mmap.");
}

/* What to do about the heap stays the first advice, and its name the first name, where a heap's owner knows more of its objects. */
TEST(names_of_advice_are_those_of_what_is_said)
{
	grow_jvm(false);
	hand.process.notes = preload_first;
	hand.process.note_count = 1;
	decided(NULL, "preload-first, ask-runtime");
	next("^put libkmemshim.so first in LD_PRELOAD");
	next("; or let its own tools name the objects");
}

RUN_TESTS(verdict_case_begin, NULL)
