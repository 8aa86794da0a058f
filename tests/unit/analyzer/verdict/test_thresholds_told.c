/*
 * test_thresholds_told.c - at exactly which number does the verdict say something more?
 *
 * Of findings, sentences and advice. Facts and causes are in test_thresholds.c.
 */
#include "verdict_case.h"

#include "threshold.h"
#include "verdict/facts.h"
#include "verdict/phrases.h"

#define SECOND UINT64_C(1000000000)
#define WHOLE 1000000u // percents and parts of it have no rounding

static struct verdict_facts facts;

static void
begin(enum verdict_cause cause)
{
	hand_model_make(&hand);
	facts = (struct verdict_facts){
		.finished = { &hand.model }, .model = &hand.model, .process = &hand.process, .end = VERDICT_END_FAILED
	};
	verdict = (struct verdict){ .cause = cause, .confidence = VERDICT_CERTAIN };
	if (cause == VERDICT_CONTAINER_LIMIT)
		facts.end = VERDICT_END_SIGNAL;
}

static void
gather(void)
{
	rank_leaks_classify(&hand.model);
	verdict_facts_gather((struct finished_model){ &hand.model }, &hand_model_now, &facts);
}

/* ---- of facts that are given ---- */

static bool
has_found(enum finding_kind kind)
{
	for (size_t i = 0; i < verdict.finding_count; i++) {
		if (verdict.findings[i].kind == kind)
			return true;
	}
	return false;
}

/* Of the facts. */
static bool
finds(enum finding_kind kind)
{
	verdict_find(&facts, &verdict);
	return has_found(kind);
}

static bool
is_pinned_told(uint64_t bytes)
{
	begin(VERDICT_CONTAINER_LIMIT);
	facts.end = VERDICT_END_FAILED;
	scene_add(&hand, "name mmap cuda/pinned; mmap:41 %lu", (unsigned long)bytes);
	gather();
	facts.live_bytes = 7000;
	return finds(FINDING_PINNED);
}

/* Of a device of 8,000 bytes, which refused a request that they could not serve. */
static bool
are_pools_worth_telling(uint64_t bytes)
{
	static struct model_failed refused;

	begin(VERDICT_DEVICE_MEMORY);
	refused = (struct model_failed){ .bytes = WHOLE, .total_bytes = 8000, .pool_kept_bytes = bytes };
	facts.refused = &refused;
	return finds(FINDING_DEVICE_POOLS);
}

/* The phrase of a finding alone. */
static bool
is_said(struct finding finding, const char *words)
{
	verdict = (struct verdict){ .finding_count = 1, .findings = { finding } };
	verdict_say(&facts, &verdict);
	return strstr(verdict.said[RANK_HEADLINE], words) != NULL || strstr(verdict.said[RANK_EVIDENCE], words) != NULL;
}

/* Of 3,000 bytes in memory the lines held so many at the sample, and nothing at the end. */
static bool
is_release_explaining(uint64_t bytes)
{
	begin(VERDICT_FAILED);
	facts.live_process = &hand.process;
	facts.live_count = 1;
	facts.memory = (struct verdict_memory){ .bytes = 3000, .lines_bytes = bytes };
	return is_said((struct finding){ .kind = FINDING_PARTS }, "was released afterwards");
}

static bool
is_child_s_copy_told(uint64_t bytes)
{
	begin(VERDICT_FAILED);
	hand.process.copied_bytes = bytes;
	facts.lost_count = 1;
	facts.lost_child = &hand.process;
	return is_said((struct finding){ .kind = FINDING_LOST_CHILDREN }, "had copied");
}

/* So many blocks of a line are alive. */
static bool
is_size_of_each_told(uint64_t count)
{
	struct finding finding = { .kind = FINDING_DEVICE_ACCUMULATES, .bytes = 600 * MIB };

	begin(VERDICT_FAILED);
	finding.line.site_count = 1;
	finding.line.live_bytes = 600 * MIB;
	finding.line.live_count = finding.line.allocated_count = count;
	finding.line.telling = leaking(HEAP, 44, 600 * MIB);
	return is_said(finding, "each time it runs");
}

/* Of so much in memory at the sample. */
static bool
is_part_told(enum finding_kind kind, uint64_t bytes, uint64_t of_bytes)
{
	begin(VERDICT_CONTAINER_LIMIT);
	*(kind == FINDING_RECORDER ? &facts.memory.own_bytes : &facts.memory.program_bytes) = bytes;
	facts.memory.sample_bytes = of_bytes;
	return finds(kind);
}

static bool
is_recorder_a_part(uint64_t bytes)
{
	return is_part_told(FINDING_RECORDER, bytes, 1000 * MIB);
}

static bool
is_recorder_large(uint64_t bytes)
{
	return is_part_told(FINDING_RECORDER, bytes, 10 * MIB);
}

static bool
are_libraries_a_part(uint64_t bytes)
{
	return is_part_told(FINDING_LIBRARIES, bytes, 1000 * MIB);
}

static bool
are_libraries_large(uint64_t bytes)
{
	return is_part_told(FINDING_LIBRARIES, bytes, 100 * MIB);
}

/* It was interrupted so long before the kernel killed it. */
static bool
went_on_after_its_guard(uint64_t ns)
{
	begin(VERDICT_CONTAINER_LIMIT);
	hand.process.ended_monotonic_ns = hand.identity.start_monotonic_ns + 100 * SECOND;
	hand.process.guard = (struct kmem_guard_passing){ .action = KMEM_GUARD_INTERRUPT,
		                                              .outcome = KMEM_GUARD_DONE,
		                                              .number = 1,
		                                              .monotonic_ns = hand.process.ended_monotonic_ns - ns };
	verdict.finding_count = 1;
	verdict.findings[0] = (struct finding){ .kind = FINDING_GUARD, .process = &hand.process };
	verdict_say(&facts, &verdict);
	return strstr(verdict.said[RANK_HEADLINE], "it went on, or was in a call") != NULL;
}

/* One caller forgets; at one line so many blocks of the others were seen to be released. */
static bool
is_release_named(uint64_t watched)
{
	begin(VERDICT_CONTAINER_LIMIT);
	for (unsigned i = 0; i < 2; i++) {
		struct model_site *site = hand_model_site(&hand, HEAP, 41, i == 0 ? 200 * MIB : 0);

		hand_model_generations(site, 12, 12, 3, 3);
		site->live_count = i == 0 ? 200 : 0;
		site->allocated_count = i == 0 ? 200 : 5000;
		site->allocated_bytes = site->allocated_count * MIB;
	}
	hand.stacks[1][2] = &hand.frames[0][2];
	hand.sites[1].where = hand.sites[0].where;
	struct model_tally release = (struct model_tally){ .where = &hand.frames[1][3], .count = watched };
	hand.sites[1].watched_releases = watched;
	hand.sites[1].release_count = 1;
	hand.sites[1].releases = &release;
	gather();
	assert_ptr_equal(facts.top_kept.through, &hand.frames[0][3]);
	return facts.top_kept.released_at == &hand.frames[1][3];
}

static bool
was_in_memory(uint64_t bytes)
{
	return !verdict_is_beyond_memory(bytes, 8000);
}

TEST(thresholds)
{
	static const struct threshold rows[] = {
		{ "libraries: more than a quarter", are_libraries_a_part, 250 * MIB + 1, 250 * MIB },
		{ "libraries: 64 MiB", are_libraries_large, 64 * MIB, 64 * MIB - 1 },
		{ "the recorder: more than a tenth", is_recorder_a_part, 100 * MIB + 1, 100 * MIB },
		{ "the recorder: 8 MiB", is_recorder_large, 8 * MIB, 8 * MIB - 1 },
		{ "interrupted: 3 s before the kill", went_on_after_its_guard, 3 * SECOND + 1, 3 * SECOND },
		{ "releases: 8", is_release_named, 8, 7 },
		{ "pinned: more than an eighth", is_pinned_told, 1001, 1000 },
		{ "pools: more than an eighth", are_pools_worth_telling, 1001, 1000 },
		{ "what lines held explains: a third", is_release_explaining, 1000, 999 },
		{ "a child's copy: 1 MiB", is_child_s_copy_told, MIB, MIB - 1 },
		{ "blocks that tell a size: 6", is_size_of_each_told, 6, 5 },
		{ "beyond what was in memory: more than an eighth", was_in_memory, 9000, 9001 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

/* ---- of scenes ---- */

static void
decide(void)
{
	hand_model_decide(&hand, &verdict);
}

static bool
is_memory_error(void)
{
	return strstr(verdict.text, "ended by MemoryError (status 1)") != NULL;
}

static bool
is_release_told(void)
{
	return has_found(FINDING_RELEASED_AT_EXIT);
}

static bool
are_many_threads(void)
{
	return strstr(verdict.text, "MALLOC_ARENA_MAX") != NULL;
}

static bool
is_leak_worth_advice(void)
{
	return strstr(verdict.next, "train.py:41") != NULL || strstr(verdict.next, "kmemshim leaks") != NULL;
}

static bool
is_device_told(void)
{
	return strstr(verdict.text, "cuda:0") != NULL;
}

static bool
is_peak_of_one_line(void)
{
	return strstr(verdict.next, " is too much, look at train.py:41 epoch") != NULL;
}

/* Python alone asked, and no native frame is known of a stack that held so much of 64 MiB. */
#define ASKED(module_) "process peak_bytes=64M; heap:41 $ module=" module_ "; exit 1; refuse 1G"
/* Of a peak in one domain a line held so much; nothing is left at the end. */
#define AT_PEAK(line, blocks, whole)                                                                 \
	"heap:41 " line " allocated_count=" blocks " live_bytes=0 live_count=0; heap:43 100000000-" line \
	" live_bytes=0 live_count=0; domain heap live_bytes=0 together_live_bytes=0; process peak_bytes=" whole "; exit 0"

TEST(thresholds_of_scenes)
{
	static const struct scene_threshold rows[] = {
		{ "a 64th of the heap: Python's own request", ASKED("python3.11"), is_memory_error, MIB + 1, MIB },
		{ "released at the exit: 1 MiB", "heap:41 200M leak released_bytes=$; process live_bytes=200M; exit 0",
		  is_release_told, MIB, MIB - 1 },
		{ "many threads: more than 8",
		  "look heap=300M monotonic_ns=100s; heartbeat monotonic_ns=100s; sample bytes=300M empty_bytes=200M; "
		  "process thread_count=$; exit 0",
		  are_many_threads, 9, 8 },
		{ "a leak of a program that ended well: 1 MiB", "heap:50 400M; heap:41 $ leak; exit 0", is_leak_worth_advice,
		  MIB, MIB - 1 },
		{ "a device beside another end: 1 MiB", "heap:41 400M; cuda0:44 $; exit 0", is_device_told, MIB, MIB - 1 },
		{ "a peak of one line: nine tenths", AT_PEAK("$", "100", "100000000"), is_peak_of_one_line, 90000000,
		  89999999 },
		{ "a collection: 8 blocks", AT_PEAK("100000000", "$", "100000000"), is_peak_of_one_line, 8, 7 },
		{ "a domain that is half of the process", AT_PEAK("100000000", "100", "$"), is_peak_of_one_line, 200 * WHOLE,
		  200 * WHOLE + 2 },
	};

	scene_thresholds_check(&hand, rows, ARRAY_LEN(rows), decide);
	told(NULL, NULL, ASKED("libfast.so"));
	assert_false(is_memory_error());
}

RUN_TESTS(NULL, NULL)
