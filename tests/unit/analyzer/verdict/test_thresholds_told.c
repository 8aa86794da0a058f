/*
 * test_thresholds_told.c - at exactly which number does the verdict say something more?
 *
 * Of what is told beside the cause: the recorder's share, a guard, where other callers release. Causes are in test_thresholds.c.
 */
#include "hand_model.h"

#include <signal.h>

#include "threshold.h"
#include "verdict/facts.h"
#include "verdict/phrases.h"

#define SECOND UINT64_C(1000000000)

static struct hand_model hand;
static struct verdict_facts facts;
static struct verdict verdict;

static void
begin(enum verdict_cause cause)
{
	hand_model_make(&hand);
	facts = (struct verdict_facts){
		.finished = { &hand.model }, .model = &hand.model, .process = &hand.process, .end = VERDICT_END_SIGNAL
	};
	verdict = (struct verdict){ .cause = cause, .confidence = VERDICT_CERTAIN };
}

static bool
is_recorder_told(uint64_t bytes, uint64_t of_bytes)
{
	begin(VERDICT_CONTAINER_LIMIT);
	facts.memory.own_bytes = bytes;
	facts.memory.sample_bytes = of_bytes;
	verdict_find(&facts, &verdict);
	for (size_t i = 0; i < verdict.finding_count; i++) {
		if (verdict.findings[i].kind == FINDING_RECORDER)
			return true;
	}
	return false;
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
	return strstr(verdict.text, "it went on after that") != NULL;
}

/* One caller forgets; at one line so many blocks of the others were seen to be released. */
static bool
is_release_named(uint64_t watched)
{
	static const struct verdict_now now = { .boot_id = "this-boot", .read_counters = hand_model_no_counters };
	struct model_release release;

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
	release = (struct model_release){ .where = &hand.frames[1][3], .count = watched };
	hand.sites[1].watched_releases = watched;
	hand.sites[1].release_count = 1;
	hand.sites[1].releases = &release;
	rank_leaks_classify(&hand.model);
	verdict_facts_gather((struct finished_model){ &hand.model }, &now, &facts);
	assert_ptr_equal(facts.top_kept.through, &hand.frames[0][3]);
	return facts.top_kept.released_at == &hand.frames[1][3];
}

static void
thresholds(void **state)
{
	static const struct threshold rows[] = {
		{ "the recorder: more than a tenth", is_recorder_a_part, 100 * MIB + 1, 100 * MIB },
		{ "the recorder: 8 MiB", is_recorder_large, 8 * MIB, 8 * MIB - 1 },
		{ "interrupted: 3 s before the kill", went_on_after_its_guard, 3 * SECOND + 1, 3 * SECOND },
		{ "releases: 8", is_release_named, 8, 7 },
	};

	(void)state;
	thresholds_check(rows, ARRAY_LEN(rows));
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(thresholds) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
