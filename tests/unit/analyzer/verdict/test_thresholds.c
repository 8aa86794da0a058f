/*
 * test_thresholds.c - at exactly which number does the verdict draw another conclusion?
 *
 * Of facts and of what became of requests, not of words. `make test-thresholds` changes the constants one by one.
 */
#include "hand_model.h"

#include <signal.h>

#include "threshold.h"
#include "analysis/endings.h"
#include "verdict/facts.h"
#include "analysis/refused_requests.h"
#include "verdict/phrases.h"

#define SECOND UINT64_C(1000000000)
#define WHOLE 1000000u // percents and parts of it have no rounding

static struct hand_model hand;
static struct verdict_facts facts;
static struct verdict verdict;
static const struct verdict_now now = { .boot_id = "this-boot", .read_counters = hand_model_no_counters };

static void
gather(void)
{
	rank_leaks_classify(&hand.model);
	verdict_facts_gather((struct finished_model){ &hand.model }, &now, &facts);
}

static void
begin(void)
{
	hand_model_make(&hand);
	facts = (struct verdict_facts){
		.finished = { &hand.model }, .model = &hand.model, .process = &hand.process, .end = VERDICT_END_FAILED
	};
	memset(&verdict, 0, sizeof(verdict));
}

/* ---- limits ---- */

static bool
is_near(uint64_t charged)
{
	begin();
	facts.limit_bytes = WHOLE;
	facts.charged_bytes = charged;
	return verdict_is_near_limit(&facts);
}

static bool
is_not_far(uint64_t charged)
{
	begin();
	facts.limit_bytes = WHOLE;
	facts.charged_bytes = charged;
	facts.available_bytes = UINT64_MAX;
	return !verdict_is_far_from_limits(&facts);
}

static bool
is_machine_low(uint64_t available)
{
	begin();
	hand.identity.machine_bytes = WHOLE;
	facts.available_bytes = available;
	return verdict_is_machine_low(&facts);
}

static bool
is_tight(uint64_t used)
{
	begin();
	hand.heartbeat = (struct kmem_heartbeat){ .limit_bytes = WHOLE, .live_bytes = used, .resident_bytes = used };
	facts.peak_process = &hand.process;
	return verdict_fullest(&facts) != NULL;
}

/* ---- lines ---- */

static struct model_site *
leak(unsigned domain, uint32_t line, uint64_t bytes)
{
	struct model_site *site = hand_model_site(&hand, domain, line, bytes);

	hand_model_generations(site, 12, 12, 3, 3);
	return site;
}

static bool
is_accumulating(uint64_t bytes)
{
	begin();
	leak(HEAP, 41, bytes);
	gather();
	return verdict_is_accumulating(&facts);
}

static bool
is_next_told(uint64_t bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, WHOLE);
	hand_model_site(&hand, HEAP, 50, bytes);
	gather();
	return facts.next_live.site_count != 0;
}

/* Beside many that are smaller. */
static bool
is_next_part_of_all(uint64_t bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 1000);
	hand_model_site(&hand, HEAP, 50, bytes);
	for (uint32_t i = 0; i < 12; i++)
		hand_model_site(&hand, HEAP, 60 + i, 500);
	hand.domains[HEAP].live_bytes = 8000;
	gather();
	return facts.next_live.site_count != 0;
}

static bool
is_last_told(uint64_t bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 8000 - bytes);
	hand_model_generations(hand_model_site(&hand, HEAP, 50, bytes), 1, 1, 1, 1);
	gather();
	return facts.last_taker.site_count != 0;
}

static bool
is_beside_told(uint64_t live_bytes, uint64_t leaking_bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, live_bytes - leaking_bytes);
	leak(HEAP, 50, leaking_bytes);
	gather();
	return facts.beside.site_count != 0;
}

static bool
is_beside_of_small_told(uint64_t bytes)
{
	return is_beside_told(4 * MIB, bytes);
}

static bool
is_beside_of_large_told(uint64_t bytes)
{
	return is_beside_told(GIB, bytes);
}

static bool
is_beside_a_part(uint64_t bytes)
{
	return is_beside_told(100 * MIB, bytes);
}

static bool
is_beside_of_one_process(uint64_t most_bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 200 * MIB);
	leak(HEAP, 50, WHOLE * 20)->most_live_bytes = most_bytes;
	gather();
	return facts.beside_process != NULL;
}

/* Of line 41 so much accumulates, below another stack. */
static bool
is_growth_no_trifle(uint64_t leaking)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 800 * MIB - leaking);
	leak(HEAP, 41, leaking);
	gather();
	return facts.top_live.leak == MODEL_LEAK_LEAK;
}

static bool
is_told_beside_arenas(uint64_t bytes)
{
	begin();
	hand_model_domain(&hand.domains[MMAP], "python/arena");
	leak(MMAP, 60, 1000 * MIB);
	leak(HEAP, 41, bytes);
	gather();
	return facts.beside_arenas.site_count != 0;
}

static bool
is_told_for_arenas(uint64_t bytes)
{
	begin();
	hand_model_domain(&hand.domains[MMAP], "python/arena");
	hand_model_site(&hand, MMAP, 60, 100 * MIB);
	hand_model_site(&hand, HEAP, 41, bytes);
	hand_model_site(&hand, HEAP, 1, 900 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
	gather();
	return facts.top_live.where->line == 41;
}

/* ---- refused requests ---- */

static void
refuse(uint64_t bytes)
{
	hand.failed = (struct model_failed){ .bytes = bytes, .domain = HEAP, .error = 12, .site = &hand.sites[0] };
	hand.model.failed_count = 1;
	facts.refused = &hand.failed;
}

static bool
is_request_alone(uint64_t bytes)
{
	begin();
	refuse(bytes);
	facts.live_bytes = 1000 * MIB;
	return verdict_is_request_alone(&facts);
}

static bool
was_given_more(uint64_t bytes)
{
	begin();
	refuse(GIB);
	hand.failed.got_bytes = bytes;
	return verdict_was_given_more(&facts);
}

/* It asked for so much, and its thread got so much since. */
static bool
has_recovered(uint64_t asked, uint64_t got)
{
	begin();
	refuse(asked);
	hand.failed.got_bytes = got;
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 1;
	return refusal_state(&hand.model, &now, &hand.failed) == REFUSAL_RECOVERED;
}

static bool
is_little_enough(uint64_t got)
{
	return has_recovered(MIB, got);
}

static bool
is_much_enough(uint64_t got)
{
	return has_recovered(64 * GIB, got);
}

static bool
is_end_of_it(uint64_t ns)
{
	begin();
	refuse(GIB);
	hand.failed.monotonic_ns = 100 * SECOND;
	hand.failed.had_success_after = true;
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 1;
	hand.process.ended_monotonic_ns = 100 * SECOND + ns;
	return refusal_state(&hand.model, &now, &hand.failed) == REFUSAL_FATAL;
}

/* A larger one so long before the last: it is what the program asked for. */
static bool
are_one(uint64_t ns)
{
	struct model_failed failed[2];

	begin();
	refuse(GIB);
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 1;
	failed[0] = failed[1] = hand.failed;
	failed[0].monotonic_ns = 100 * SECOND;
	failed[1].monotonic_ns = 100 * SECOND + ns;
	failed[1].bytes = 100;
	hand.model.failed = failed;
	hand.model.failed_count = 2;
	return refusal_of_end(&hand.model, &now, 0) == &failed[0];
}

/* ---- devices ---- */

/* PyTorch took `taken` bytes of the device; line 44 has tensors of so much, in so many blocks. */
static struct model_site *
device(uint64_t taken, uint64_t tensors, uint64_t count)
{
	struct model_site *site;

	begin();
	hand.model.domain_count = HAND_DOMAINS + 1;
	site = hand_model_site(&hand, CUDA0, 44, taken);
	hand.frames[site - hand.sites][0].module = "libc10_cuda.so";
	site = hand_model_site(&hand, TENSORS0, 44, tensors);
	site->live_count = count;
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 1;
	hand.failed = (struct model_failed){ .bytes = 1, .domain = TENSORS0, .error = 2, .thread = 1, .site = site };
	hand.model.failed_count = 1;
	return site;
}

static bool
is_fragmented(uint64_t idle)
{
	(void)device(8000, 8000 - idle, 100);
	gather();
	return verdict_is_device_fragmented(&facts);
}

static bool
is_preallocated(uint64_t count)
{
	(void)device(8000, 8000, count);
	gather();
	return verdict_is_preallocated(&facts);
}

static bool
is_pace_known(uint64_t count)
{
	hand_model_generations(device(8 * MIB, 8 * MIB, count), 12, 12, 3, 3);
	gather();
	return facts.growing_rounds == count;
}

/* 10 blocks are alive; so many were allocated at the line, and so much is kept of an earlier refusal. */
static bool
is_kept(uint64_t allocated, uint64_t kept)
{
	static uint64_t bytes[HAND_DOMAINS + 1];
	struct model_held held = { .live_bytes = 8000, .live_count = 10, .kept_bytes = kept };
	struct model_site *site = device(8000, 8000, 10);

	site->allocated_count = allocated;
	held.site = site;
	bytes[TENSORS0] = 8000;
	hand.failed.has_held = true;
	hand.failed.held = &held;
	hand.failed.held_count = 1;
	hand.failed.domain_bytes = bytes;
	hand.failed.domain_count = HAND_DOMAINS + 1;
	gather();
	return facts.kept_bytes != 0;
}

static bool
is_of_steps(uint64_t allocated)
{
	return is_kept(allocated, 8000);
}

static bool
is_kept_worth_telling(uint64_t kept)
{
	return is_kept(1000, kept);
}

static bool
is_rounded(uint64_t block)
{
	begin();
	hand_model_domain(&hand.domains[MMAP], "cuda/pinned");
	hand_model_site(&hand, MMAP, 41, block);
	hand.frames[0][0].module = "libtorch_cuda.so";
	gather();
	return facts.rounded_bytes != 0;
}

/* ---- what is in memory ---- */

static void
looked(uint64_t heap, uint64_t reserved, uint64_t ago)
{
	hand.resident = (struct kmem_resident){ .sequence = 1,
		                                    .monotonic_ns = 100 * SECOND,
		                                    .resident_bytes = heap + reserved,
		                                    .part_bytes = {
												[KMEM_RESIDENT_HEAP] = heap, [KMEM_RESIDENT_RESERVED] = reserved } };
	hand.heartbeat.resident_bytes = heap + reserved;
	hand.heartbeat.monotonic_ns = 100 * SECOND + ago;
}

static bool
is_line_enough(uint64_t bytes)
{
	begin();
	facts.memory.bytes = 5 * GIB;
	facts.memory.program_bytes = 2 * GIB; // code of libraries is not asked about
	facts.top_live.live_bytes = bytes;
	return verdict_is_explained(&facts);
}

static bool
is_much_in_memory(uint64_t bytes)
{
	begin();
	facts.memory.bytes = bytes;
	return !verdict_is_explained(&facts);
}

static bool
is_told_as_untouched(uint64_t bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 100 * MIB)->untouched_bytes = bytes;
	gather();
	return facts.untouched.site_count != 0;
}

static bool
is_part_of_what_was_asked(uint64_t bytes)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 800 * MIB)->untouched_bytes = bytes;
	gather();
	return facts.untouched.site_count != 0;
}

static bool
changes_a_figure(uint64_t untouched)
{
	return verdict_tells_in_memory(8000, untouched);
}

/* Of so much in memory, all of it malloc's. */
static uint64_t
freed_of(uint64_t resident, uint64_t empty)
{
	begin();
	looked(resident, 0, 0);
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
		                                                   .bytes = resident,
		                                                   .empty_bytes = empty };
	return verdict_freed_of(&hand.model, &hand.process).freed_bytes;
}

static bool
is_freed_worth_telling(uint64_t empty)
{
	return freed_of(64 * MIB, empty) != 0;
}

static bool
is_freed_a_part(uint64_t empty)
{
	return freed_of(400 * MIB, empty) != 0;
}

/* Memory of libraries, of so much nobody knows who filled it later. */
static bool
is_growth_malloc_s(uint64_t reserved)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 16 * MIB);
	looked(1600 * MIB - reserved, reserved, SECOND);
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000, .bytes = 1000 * MIB };
	hand.heartbeat.live_bytes = 16 * MIB;
	hand.heartbeat.resident_bytes = 4000 * MIB;
	return verdict_freed_of(&hand.model, &hand.process).is_later;
}

/* Resident grew so far since the look, and nothing more was live. */
static bool
has_grown(uint64_t resident)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 16 * MIB);
	looked(800 * MIB, 0, SECOND);
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000, .bytes = 800 * MIB };
	hand.heartbeat.live_bytes = 16 * MIB;
	hand.heartbeat.resident_bytes = resident;
	return verdict_freed_of(&hand.model, &hand.process).is_later;
}

/* Of 400 MiB so much was live at the last heartbeat, when nothing had been given back. */
static bool
has_fallen(uint64_t live)
{
	struct kmem_heartbeat beats[2];

	begin();
	hand_model_site(&hand, HEAP, 41, 16 * MIB);
	looked(800 * MIB, 0, SECOND);
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000, .bytes = 800 * MIB };
	beats[0] = beats[1] = hand.heartbeat;
	beats[0].monotonic_ns = 99 * SECOND;
	beats[0].live_bytes = 400 * MIB;
	beats[1].live_bytes = live;
	hand.process.heartbeats = beats;
	hand.process.heartbeat_count = 2;
	return verdict_freed_of(&hand.model, &hand.process).has_fallen;
}

/* It ended so long after the look, without a sample: what was live then is what is live now. */
static bool
is_look_at_the_end(uint64_t ns)
{
	struct kmem_heartbeat beats[2];

	begin();
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand_model_site(&hand, HEAP, 41, 16 * MIB);
	hand.process.live_bytes = 16 * MIB;
	looked(800 * MIB, 0, 0);
	beats[0] = beats[1] = hand.heartbeat;
	beats[0].monotonic_ns = 99 * SECOND;
	beats[0].live_bytes = 790 * MIB;
	beats[1].live_bytes = 790 * MIB;
	hand.process.heartbeats = beats;
	hand.process.heartbeat_count = 1;
	hand.process.ended_monotonic_ns = 100 * SECOND + ns;
	return verdict_freed_of(&hand.model, &hand.process).freed_bytes != 0;
}

/* The same of a mapping: what of it is not in memory. */
static bool
is_mapping_looked_at_the_end(uint64_t ns)
{
	begin();
	hand_model_site(&hand, MMAP, 41, 800 * MIB);
	looked(0, 0, 0);
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.ended_monotonic_ns = 100 * SECOND + ns;
	return verdict_untouched_bytes(&hand.process, &hand.domains[MMAP]) != 0;
}

/* Of a run of 1,600 s, which ended well: 256 MiB were freed so long before the end, and so much was allocated since. */
static bool
was_freed_last(uint64_t ns, uint64_t volume)
{
	uint64_t freed = freed_of(400 * MIB, 256 * MIB);
	uint64_t end_ns = hand.identity.start_monotonic_ns + 1600 * SECOND;
	struct model_point points[] = {
		{ .monotonic_ns = hand.identity.start_monotonic_ns, .live_bytes = 400 * MIB },
		{ .monotonic_ns = end_ns - ns },
		{ .monotonic_ns = end_ns, .volume_bytes = volume, .is_end = true },
	};

	hand.process.heartbeat_count = 0;
	hand.process.points = points;
	hand.process.point_count = ARRAY_LEN(points);
	hand_model_exited(&hand, 0);
	gather();
	return freed != 0 && facts.memory.freed.freed_bytes == 0;
}

static bool
was_freed_in_the_last_moments(uint64_t ns)
{
	return was_freed_last(ns, 0);
}

static bool
needed_next_to_nothing_since(uint64_t volume)
{
	return was_freed_last(SECOND, volume);
}

/* Of 1,000 blocks that fill nearly all, malloc's words are so much: `freed` is what is left. */
static bool
are_words_counted(uint64_t bytes)
{
	struct model_site *site;

	begin();
	site = hand_model_site(&hand, HEAP, 41, 160 * MIB);
	site->live_count = site->allocated_count = MIB;
	hand.domains[HEAP].live_count = hand.domains[HEAP].allocated_count = MIB;
	hand.process.live_bytes = 160 * MIB;
	hand.process.is_finalizing = true;
	looked(bytes, 0, 0);
	return verdict_freed_of(&hand.model, &hand.process).freed_bytes != 0;
}

/* ---- processes ---- */

#define FAMILY 3
static struct model_process family[FAMILY];
static struct kmem_identity identities[FAMILY];
static struct kmem_heartbeat beats_of[FAMILY];

/* A parent and two children, last seen at work 100 seconds after the start of time. */
static void
make_family(void)
{
	begin();
	hand_model_site(&hand, HEAP, 41, 300 * MIB)->process_count = FAMILY;
	for (unsigned i = 0; i < FAMILY; i++) {
		family[i] = hand.process;
		identities[i] = hand.identity;
		identities[i].pid += i;
		identities[i].is_first = i == 0;
		beats_of[i] = hand.heartbeat;
		beats_of[i].monotonic_ns = 100 * SECOND;
		family[i].identity = &identities[i];
		family[i].heartbeats = &beats_of[i];
		family[i].live_bytes = 100 * MIB;
		family[i].parent = i == 0 ? -1 : 0;
	}
	hand.model.processes = family;
	hand.model.process_count = FAMILY;
}

static bool
is_copy_worth_telling(uint64_t bytes)
{
	struct verdict_copies copies;

	make_family();
	family[1].copied_bytes = bytes;
	verdict_copies_gather(&hand.model, &copies);
	return copies.child_count != 0;
}

/* Both are gone, one so long before the other. */
static bool
is_first_lost(uint64_t ns)
{
	make_family();
	beats_of[2].monotonic_ns = 100 * SECOND + ns;
	family[0].state = KMEM_STATE_CLEAN_EXIT;
	gather();
	return facts.first_lost == &family[1];
}

/* The parent was killed so long after a child was seen at work. */
static bool
ran_at_the_end(uint64_t ns)
{
	make_family();
	family[1].state = KMEM_STATE_CLEAN_EXIT;
	family[0].ended_monotonic_ns = 100 * SECOND + ns;
	hand_model_waited(&hand, SIGKILL);
	family[0].launcher = &hand.launcher;
	gather();
	return facts.live_count == 2;
}

/* timeout -s KILL 60, which ran so long. */
static bool
was_time_up(uint64_t ns)
{
	static const char command[] = "timeout\0"
								  "-sKILL\0"
								  "60\0"
								  "python";

	begin();
	hand.process.name = "timeout";
	memcpy(hand.identity.command, command, sizeof(command));
	hand.identity.command_bytes = sizeof(command);
	hand_model_waited(&hand, SIGKILL);
	hand.launcher.ended_realtime_ns = hand.identity.start_realtime_ns + ns;
	return verdict_was_time_up(&hand.process, 0);
}

TEST(conclusions_change_where_they_are_said_to)
{
	static const struct threshold rows[] = {
		{ "near the limit: 97 %", is_near, 970000, 969999 },
		{ "far from it: below 80 %", is_not_far, 800000, 799999 },
		{ "the machine is low: 5 %", is_machine_low, 50000, 50001 },
		{ "tight: 80 %", is_tight, 800000, 799999 },
		{ "accumulates: 16 MiB", is_accumulating, 16 * MIB, 16 * MIB - 1 },
		{ "the next line: half of the first", is_next_told, WHOLE / 2, WHOLE / 2 - 1 },
		{ "and an eighth of all", is_next_part_of_all, 1000, 999 },
		{ "took much last: an eighth of all", is_last_told, 1000, 999 },
		{ "growth: an eighth of a line", is_growth_no_trifle, 100 * MIB, 100 * MIB - 1 },
		{ "beside arenas: a hundredth", is_told_beside_arenas, 10 * MIB, 10 * MIB - 1 },
		{ "beside a larger line: 1 MiB", is_beside_of_small_told, MIB, MIB - 1 },
		{ "beside it: a twentieth of all", is_beside_a_part, 5 * MIB, 5 * MIB - 1 },
		{ "beside it: 16 MiB", is_beside_of_large_told, 16 * MIB, 16 * MIB - 1 },
		{ "beside it: nine tenths are of one process", is_beside_of_one_process, WHOLE * 18, WHOLE * 18 - 1 },
		{ "for arenas: a quarter", is_told_for_arenas, 25 * MIB, 25 * MIB - 1 },
		{ "a request alone: 64 times what was live", is_request_alone, 64000 * MIB + 64, 64000 * MIB },
		{ "more than an error takes: 4 MiB", was_given_more, 4 * MIB, 4 * MIB - 1 },
		{ "went on: 16 MiB at least", is_little_enough, 16 * MIB, 16 * MIB - 1 },
		{ "went on: 64 MiB are enough", is_much_enough, 64 * MIB, 64 * MIB - 1 },
		{ "the end of it: 5 s", is_end_of_it, 5 * SECOND - 1, 5 * SECOND },
		{ "one request: 1 s", are_one, SECOND, SECOND + 1 },
		{ "in pieces: an eighth lies idle", is_fragmented, 1000, 999 },
		{ "taken in advance: 3 blocks", is_preallocated, 3, 4 },
		{ "rounds: 6", is_pace_known, 6, 5 },
		{ "of steps: 4 for each that is alive", is_of_steps, 40, 39 },
		{ "kept: an eighth", is_kept_worth_telling, 1000, 999 },
		{ "rounded up: 1 MiB", is_rounded, MIB, MIB / 2 },
		{ "a line explains: a third", is_line_enough, GIB, GIB - 1 },
		{ "much in memory: 64 MiB", is_much_in_memory, 64 * MIB, 64 * MIB - 1 },
		{ "untouched: 16 MiB", is_told_as_untouched, 16 * MIB, 16 * MIB - 1 },
		{ "untouched: an eighth", is_part_of_what_was_asked, 100 * MIB, 100 * MIB - 1 },
		{ "untouched: an eighth of what is in memory", changes_a_figure, 1001, 1000 },
		{ "freed: 32 MiB", is_freed_worth_telling, 32 * MIB, 32 * MIB - 1 },
		{ "freed: a quarter", is_freed_a_part, 100 * MIB, 100 * MIB - 1 },
		{ "unclear: a sixteenth", is_growth_malloc_s, 100 * MIB, 100 * MIB + 1 },
		{ "grown: an eighth", has_grown, 900 * MIB, 900 * MIB - 1 },
		{ "freed last: a sixteenth of the run", was_freed_in_the_last_moments, 100 * SECOND, 100 * SECOND + 1 },
		{ "freed last: an eighth of it allocated since", needed_next_to_nothing_since, 32 * MIB, 32 * MIB + 1 },
		{ "fallen: a quarter", has_fallen, 300 * MIB - 1, 300 * MIB },
		{ "a look at the end: 100 ms", is_look_at_the_end, SECOND / 10, SECOND / 10 + 1 },
		{ "of mappings, too", is_mapping_looked_at_the_end, SECOND / 10, SECOND / 10 + 1 },
		{ "malloc's words: 24 bytes", are_words_counted, (170 + 24 + 65) * MIB, (170 + 24 + 64) * MIB },
		{ "copied: 16 MiB", is_copy_worth_telling, 16 * MIB, 16 * MIB - 1 },
		{ "lost first: 1 s", is_first_lost, SECOND, SECOND - 1 },
		{ "at work at the end: 2 s", ran_at_the_end, 2 * SECOND, 2 * SECOND + 1 },
		{ "the time was up: 1 s early", was_time_up, 59 * SECOND, 59 * SECOND - 1000 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

RUN_TESTS(NULL, NULL)
