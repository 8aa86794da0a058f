/*
 * test_thresholds_told.c - at exactly which number does the verdict say something more?
 *
 * Of findings, sentences and advice. Facts and causes are in test_thresholds.c.
 */
#include "hand_model.h"

#include <signal.h>

#include "threshold.h"
#include "verdict/facts.h"
#include "verdict/phrases.h"

#define SECOND UINT64_C(1000000000)
#define WHOLE 1000000u // percents and parts of it have no rounding

static struct hand_model hand;
static struct verdict_facts facts;
static struct verdict verdict;
static const struct verdict_now now = { .boot_id = "this-boot", .read_counters = hand_model_no_counters };

static void
begin(void)
{
	hand_model_make(&hand);
	facts = (struct verdict_facts){
		.finished = { &hand.model }, .model = &hand.model, .process = &hand.process, .end = VERDICT_END_FAILED
	};
	memset(&verdict, 0, sizeof(verdict));
}

static void
begin_killed(void)
{
	begin();
	facts.end = VERDICT_END_SIGNAL;
	verdict = (struct verdict){ .cause = VERDICT_CONTAINER_LIMIT, .confidence = VERDICT_CERTAIN };
}

static void
gather(void)
{
	rank_leaks_classify(&hand.model);
	verdict_facts_gather((struct finished_model){ &hand.model }, &now, &facts);
}

static struct model_site *
leak(unsigned domain, uint32_t line, uint64_t bytes)
{
	struct model_site *site = hand_model_site(&hand, domain, line, bytes);

	hand_model_generations(site, 12, 12, 3, 3);
	return site;
}

/* ---- the end ---- */

/* Python alone asked, and no native frame is known of a stack that held so much of 64 MiB. */
static bool
is_asked_by_python(const char *module, uint64_t held_bytes)
{
	hand_model_make(&hand);
	hand.process.peak_bytes = 64 * MIB;
	hand_model_site(&hand, HEAP, 41, held_bytes);
	hand.frames[0][0].module = module;
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, GIB);
	hand_model_decide(&hand, &verdict);
	return strstr(verdict.text, "ended by MemoryError (status 1)") != NULL;
}

static bool
is_memory_error(uint64_t held_bytes)
{
	return is_asked_by_python("python3.11", held_bytes) && !is_asked_by_python("libfast.so", held_bytes);
}

/* ---- findings ---- */

static bool
has_found(enum finding_kind kind)
{
	for (size_t i = 0; i < verdict.finding_count; i++) {
		if (verdict.findings[i].kind == kind)
			return true;
	}
	return false;
}

static bool
is_pinned_told(uint64_t bytes)
{
	begin();
	hand_model_domain(&hand.domains[MMAP], "cuda/pinned");
	hand_model_site(&hand, MMAP, 41, bytes);
	gather();
	facts.live_bytes = 7000;
	verdict = (struct verdict){ .cause = VERDICT_CONTAINER_LIMIT };
	verdict_find(&facts, &verdict);
	return has_found(FINDING_PINNED);
}

/* Line 41 accumulates, and exit handlers gave so much of it back. */
static bool
is_release_worth_telling(uint64_t bytes)
{
	begin();
	leak(HEAP, 41, 200 * MIB)->released_bytes = bytes;
	hand.process.live_bytes = hand.domains[HEAP].live_bytes;
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, &verdict);
	return has_found(FINDING_RELEASED_AT_EXIT);
}

/* Of a device of 8,000 bytes, which refused a request that they could not serve. */
static bool
are_pools_worth_telling(uint64_t bytes)
{
	static struct model_failed refused;

	begin();
	refused = (struct model_failed){ .bytes = WHOLE, .total_bytes = 8000, .pool_kept_bytes = bytes };
	facts.refused = &refused;
	verdict = (struct verdict){ .cause = VERDICT_DEVICE_MEMORY };
	verdict_find(&facts, &verdict);
	return has_found(FINDING_DEVICE_POOLS);
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
	begin();
	facts.live_process = &hand.process;
	facts.live_count = 1;
	facts.memory = (struct verdict_memory){ .bytes = 3000, .lines_bytes = bytes };
	return is_said((struct finding){ .kind = FINDING_PARTS }, "was released afterwards");
}

static bool
is_child_s_copy_told(uint64_t bytes)
{
	begin();
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

	begin();
	finding.line.site_count = 1;
	finding.line.live_bytes = 600 * MIB;
	finding.line.live_count = finding.line.allocated_count = count;
	finding.line.telling = leak(HEAP, 44, 600 * MIB);
	return is_said(finding, "each time it runs");
}

static bool
is_recorder_told(uint64_t bytes, uint64_t of_bytes)
{
	begin_killed();
	facts.memory.own_bytes = bytes;
	facts.memory.sample_bytes = of_bytes;
	verdict_find(&facts, &verdict);
	return has_found(FINDING_RECORDER);
}

static bool
is_recorder_a_part(uint64_t bytes)
{
	return is_recorder_told(bytes, 1000 * MIB);
}

static bool
is_recorder_large(uint64_t bytes)
{
	return is_recorder_told(bytes, 10 * MIB);
}

static bool
are_libraries_told(uint64_t bytes, uint64_t of_bytes)
{
	begin_killed();
	facts.memory.program_bytes = bytes;
	facts.memory.sample_bytes = of_bytes;
	verdict_find(&facts, &verdict);
	return has_found(FINDING_LIBRARIES);
}

static bool
are_libraries_a_part(uint64_t bytes)
{
	return are_libraries_told(bytes, 1000 * MIB);
}

static bool
are_libraries_large(uint64_t bytes)
{
	return are_libraries_told(bytes, 100 * MIB);
}

/* It was interrupted so long before the kernel killed it. */
static bool
went_on_after_its_guard(uint64_t ns)
{
	begin_killed();
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
	struct model_tally release;

	begin_killed();
	for (unsigned i = 0; i < 2; i++) {
		struct model_site *site = hand_model_site(&hand, HEAP, 41, i == 0 ? 200 * MIB : 0);

		hand_model_generations(site, 12, 12, 3, 3);
		site->live_count = i == 0 ? 200 : 0;
		site->allocated_count = i == 0 ? 200 : 5000;
		site->allocated_bytes = site->allocated_count * MIB;
	}
	hand.stacks[1][2] = &hand.frames[0][2];
	hand.sites[1].where = hand.sites[0].where;
	release = (struct model_tally){ .where = &hand.frames[1][3], .count = watched };
	hand.sites[1].watched_releases = watched;
	hand.sites[1].release_count = 1;
	hand.sites[1].releases = &release;
	gather();
	assert_ptr_equal(facts.top_kept.through, &hand.frames[0][3]);
	return facts.top_kept.released_at == &hand.frames[1][3];
}

/* ---- advice: only whether a name is in it ---- */

static bool
are_many_threads(uint64_t count)
{
	begin();
	hand.resident = (struct kmem_resident){ .sequence = 1,
		                                    .monotonic_ns = 100 * SECOND,
		                                    .resident_bytes = 300 * MIB,
		                                    .part_bytes = { [KMEM_RESIDENT_HEAP] = 300 * MIB } };
	hand.heartbeat.resident_bytes = 300 * MIB;
	hand.heartbeat.monotonic_ns = 100 * SECOND;
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
		                                                   .bytes = 300 * MIB,
		                                                   .empty_bytes = 200 * MIB };
	hand.process.thread_count = (unsigned)count;
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, &verdict);
	return strstr(verdict.text, "MALLOC_ARENA_MAX") != NULL;
}

static bool
is_leak_worth_advice(uint64_t bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 50, 400 * MIB);
	leak(HEAP, 41, bytes);
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, &verdict);
	return strstr(verdict.next, "train.py:41") != NULL || strstr(verdict.next, "kmemshim leaks") != NULL;
}

static bool
is_device_told(uint64_t bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 400 * MIB);
	hand_model_site(&hand, CUDA0, 44, bytes);
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, &verdict);
	return strstr(verdict.text, "cuda:0") != NULL;
}

/* Of a peak in one domain a line held so many parts of a million; nothing is left at the end. */
static bool
is_peak_of_one_line(uint64_t millionths, uint64_t blocks, uint64_t whole_bytes, uint64_t peak_bytes)
{
	struct model_site *line;

	begin();
	line = hand_model_site(&hand, HEAP, 41, peak_bytes / WHOLE * millionths);
	line->allocated_count = blocks;
	(void)hand_model_site(&hand, HEAP, 43, peak_bytes - line->peak_bytes);
	hand.process.peak_bytes = whole_bytes;
	for (size_t i = 0; i < hand.model.site_count; i++)
		hand.sites[i].live_bytes = hand.sites[i].live_count = 0;
	hand.domains[HEAP].live_bytes = hand.domains[HEAP].together_live_bytes = 0;
	hand_model_exited(&hand, 0);
	hand_model_decide(&hand, &verdict);
	return strstr(verdict.next, " is too much, look at train.py:41 epoch") != NULL;
}

static bool
is_peak_of_a_line(uint64_t millionths)
{
	return is_peak_of_one_line(millionths, 100, 100 * WHOLE, 100 * WHOLE);
}

static bool
is_collection(uint64_t blocks)
{
	return is_peak_of_one_line(WHOLE, blocks, 100 * WHOLE, 100 * WHOLE);
}

static bool
is_most_of_the_process(uint64_t whole_bytes)
{
	return is_peak_of_one_line(WHOLE, 100, whole_bytes, 100 * WHOLE);
}

static bool
was_in_memory(uint64_t bytes)
{
	return !verdict_is_beyond_memory(bytes, 8000);
}

TEST(thresholds)
{
	static const struct threshold rows[] = {
		{ "a 64th of the heap: Python's own request", is_memory_error, MIB + 1, MIB },
		{ "libraries: more than a quarter", are_libraries_a_part, 250 * MIB + 1, 250 * MIB },
		{ "libraries: 64 MiB", are_libraries_large, 64 * MIB, 64 * MIB - 1 },
		{ "the recorder: more than a tenth", is_recorder_a_part, 100 * MIB + 1, 100 * MIB },
		{ "the recorder: 8 MiB", is_recorder_large, 8 * MIB, 8 * MIB - 1 },
		{ "interrupted: 3 s before the kill", went_on_after_its_guard, 3 * SECOND + 1, 3 * SECOND },
		{ "releases: 8", is_release_named, 8, 7 },
		{ "pinned: more than an eighth", is_pinned_told, 1001, 1000 },
		{ "released at the exit: 1 MiB", is_release_worth_telling, MIB, MIB - 1 },
		{ "pools: more than an eighth", are_pools_worth_telling, 1001, 1000 },
		{ "what lines held explains: a third", is_release_explaining, 1000, 999 },
		{ "a child's copy: 1 MiB", is_child_s_copy_told, MIB, MIB - 1 },
		{ "blocks that tell a size: 6", is_size_of_each_told, 6, 5 },
		{ "many threads: more than 8", are_many_threads, 9, 8 },
		{ "a leak of a program that ended well: 1 MiB", is_leak_worth_advice, MIB, MIB - 1 },
		{ "a device beside another end: 1 MiB", is_device_told, MIB, MIB - 1 },
		{ "a peak of one line: nine tenths", is_peak_of_a_line, WHOLE / 10 * 9, WHOLE / 10 * 9 - 1 },
		{ "beyond what was in memory: more than an eighth", was_in_memory, 9000, 9001 },
		{ "a collection: 8 blocks", is_collection, 8, 7 },
		{ "a domain that is half of the process", is_most_of_the_process, 200 * WHOLE, 200 * WHOLE + 2 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

RUN_TESTS(NULL, NULL)
