/*
 * advice.c - what is the one thing to do?
 *
 * Advice is a row: a name, when it applies, and how it is said. The first row that applies is taken. Some causes have a first step
 * that has nothing to do with memory ("find out who sent the signal"): a row may be said after it, joined by "then".
 */
#include "verdict/advice.h"

#include <inttypes.h>
#include <string.h>

#include "base/items.h"
#include "model/model_library.h"
#include "verdict/advice_rows.h"
#include "verdict/cell_result.h"
#include "verdict/words.h"

#define WORTH_CHILD_BYTES (UINT64_C(1) << 20)
#define WORTH_LEAKING_BYTES (UINT64_C(1) << 20) // as in a check
#define SWEPT_PART 2                            // of the peak: less is not what made it
#define COLLECTED_PERCENT 90                    // of the peak: more of it in one line is not said to need no action
#define COLLECTED_BLOCKS 8                      // fewer are no collection

void
add_advice(const char *name, struct verdict *verdict)
{
	if (verdict->advice_count < VERDICT_ADVICE_MAX)
		verdict->advice[verdict->advice_count++] = name;
}

/* ---- devices, and memory that is pinned for them ---- */

ADVICE_TEST(is_about_device, verdict->cause == VERDICT_DEVICE_MEMORY || facts->end == VERDICT_END_RUNNING)

static bool
is_pinned_much(const struct verdict_facts *facts, const struct verdict *verdict)
{
	bool is_refused = facts->refused != NULL && facts->model->domains[facts->refused->domain].id.kind == DOMAIN_PINNED;

	return verdict->end != VERDICT_END_OK && verdict->end != VERDICT_END_RUNNING && facts->top_pinned.site_count != 0 &&
	       (is_refused || facts->pinned_bytes > facts->live_bytes);
}

ADVICE_TEST(is_pinned_rounded, is_pinned_much(facts, verdict) && facts->rounded_bytes > facts->pinned_bytes / 2)

/* ---- the container ---- */

static bool
is_container_full_of(const struct verdict_facts *facts, uint64_t bytes)
{
	return facts->refused == NULL && verdict_holds_a_third(facts, bytes) && bytes > facts->top_live.live_bytes &&
	       bytes > facts->memory.freed.freed_bytes;
}

ADVICE_TEST(is_full_of_files, facts->memory.memory_files_bytes > facts->memory.others_bytes &&
                                  is_container_full_of(facts, facts->memory.memory_files_bytes))
ADVICE_TEST(is_full_of_others,
            facts->memory.others_bytes != 0 && is_container_full_of(facts, facts->memory.others_bytes))
ADVICE_TEST(is_full_of_unknown, is_container_full_of(facts, facts->memory.unknown_bytes))
ADVICE_TEST(is_full_of_stacks, facts->memory.starter != NULL && is_container_full_of(facts, facts->memory.stacks_bytes))

ADVICE_TEST(is_written_first, facts->refused == NULL && facts->memory.is_written_first)

/* ---- freed memory ---- */

ADVICE_TEST(is_freed_first, facts->refused == NULL && verdict_is_freed_first(facts))
ADVICE_TEST(is_freed_first_running,
            is_freed_first(facts, verdict) && step_of(facts, verdict) != NULL && facts->end == VERDICT_END_RUNNING)
ADVICE_TEST(is_freed_after_step,
            is_freed_first(facts, verdict) && step_of(facts, verdict) != NULL && facts->end == VERDICT_END_SIGNAL)

/* ---- the first step, and what may come before or after it ---- */

ADVICE_TEST(is_parents_knowledge, verdict->cause == VERDICT_GONE && !is_time_up(facts, verdict) &&
                                      !verdict_is_accumulating(facts) && facts->is_descendant)

ADVICE_TEST(is_growth_after_step, verdict_is_accumulating(facts) && facts->refused == NULL &&
                                      step_of(facts, verdict) != NULL &&
                                      (facts->end == VERDICT_END_SIGNAL || facts->end == VERDICT_END_FAILED ||
                                       facts->end == VERDICT_END_GONE || is_time_up(facts, verdict)) &&
                                      !verdict_is_arena(facts, &facts->top_live) && verdict_is_far_from_limits(facts))

ADVICE_TEST(is_growth_held_after_step, is_growth_after_step(facts, verdict) && is_holder_known(facts, &facts->top_live))

/* Of a program that runs; NULL: nothing is known to grow that a look can follow. */
static const struct rank_line *
growing_line(const struct verdict_facts *facts)
{
	const struct rank_line *top = &facts->top_live;
	const struct rank_line *most = &facts->most_leaking;
	bool is_top_known = !verdict_is_arena(facts, top);

	if (verdict_is_accumulating(facts))
		return is_top_known ? top : NULL;
	if (facts->leaking_bytes >= WORTH_LEAKING_BYTES && !verdict_is_arena(facts, most))
		return most;
	return is_top_known && top->leak == MODEL_LEAK_LEAK && top->leaking_bytes >= WORTH_LEAKING_BYTES ? top : NULL;
}

ADVICE_TEST(is_growing_running,
            verdict->cause == VERDICT_RUNNING && facts->refused == NULL && growing_line(facts) != NULL)

/* There is still time, and a program that runs can be looked into. */
static void
say_growth_running(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *line = growing_line(facts);

	verdict_names(facts, line, verdict);
	if (facts->live_process->is_hidden || verdict_is_mapped(facts, line) || verdict_holders_of(facts, line) != NULL) {
		say_blocks_kept(facts, line, verdict);
		return;
	}
	say_next(verdict, "look for what keeps the blocks of %s alive: `kmemshim holders %" PRIu32 "` shows it%s",
	         verdict_line_text(line, PLACE_ROOM), facts->live_process->identity->pid, if_data_set(verdict, line));
}

/* Where memory was the reason, as far as is known, it comes before who sent a signal. */
static bool
is_step_alone(const struct verdict_facts *facts, const struct verdict *verdict)
{
	bool is_memory_first = (verdict_is_accumulating(facts) || verdict_is_freed_first(facts)) &&
	                       (facts->end == VERDICT_END_SIGNAL || facts->end == VERDICT_END_GONE) &&
	                       facts->refused == NULL;

	return step_of(facts, verdict) != NULL && !is_memory_first;
}

/* ---- a request that was refused ---- */

ADVICE_TEST(is_refused, facts->refused != NULL)
ADVICE_TEST(is_perhaps_caught, verdict->cause == VERDICT_REQUEST_REFUSED && verdict_was_perhaps_caught(facts))
ADVICE_TEST(is_perhaps_caught_beyond_machine, is_perhaps_caught(facts, verdict) && verdict_is_beyond_machine(facts))
ADVICE_TEST(is_beyond_machine, facts->refused != NULL && verdict_is_beyond_machine(facts))
ADVICE_TEST(is_of_recording, facts->refused != NULL && verdict_is_of_recording(facts))
ADVICE_TEST(is_request_alone, facts->refused != NULL && verdict_is_request_alone(facts))
ADVICE_TEST(is_request_small,
            facts->refused != NULL && facts->refused->bytes < facts->peak_bytes / 8 &&
                !(verdict_is_accumulating(facts) &&
                  (verdict_is_arena(facts, &facts->top_live) || !rank_may_be_built_once(facts->top_live.telling))))

/* A look has found what holds it: to act on that is more than to hold less. */
ADVICE_TEST(is_request_held, is_request_small(facts, verdict) && is_holder_known(facts, &facts->top_live))

/* ---- what was not recorded ---- */

/* What grows on a device comes before what may be a data set of a program that ended well. */
ADVICE_TEST(is_first_line_growing,
            facts->top_live.leak == MODEL_LEAK_LEAK &&
                !(verdict->end == VERDICT_END_OK && rank_may_be_built_once(facts->top_live.telling) &&
                  facts->growing_device.site_count != 0))

ADVICE_TEST(is_damage_the_story, facts->refused == NULL && facts->model->needs_salvage &&
                                     (facts->model->unlisted_bytes > facts->live_bytes / 2 ||
                                      (facts->top_live.site_count != 0 && facts->top_live.where == NULL)))
ADVICE_TEST(is_elsewhere_the_story,
            facts->refused == NULL && rank_elsewhere_worth_bytes(facts->model) != 0 &&
                (facts->top_live.site_count == 0 || rank_is_elsewhere(facts->model, facts->top_live.largest) ||
                 (verdict->end == VERDICT_END_OK && !is_first_line_growing(facts, verdict))))
ADVICE_TEST(is_unrecorded, verdict->end == VERDICT_END_OK && model_unrecorded_bytes(facts->model) != 0)
ADVICE_TEST(is_damaged,
            verdict->end == VERDICT_END_OK && facts->model->capture_damage_count > facts->model->under_way_count)

/* ---- children ---- */

static bool
is_childs_peak(const struct verdict_facts *facts)
{
	return facts->peak_process != facts->process && facts->top_peak.site_count != 0;
}

ADVICE_TEST(is_copied, facts->refused == NULL && facts->copies.bytes > facts->top_live.live_bytes / 2)
ADVICE_TEST(is_copied_too, facts->refused == NULL && facts->copies.child_count != 0 && facts->top_live.site_count != 0)
/* What may be a load is one as often as there are processes; a leak that each of them has is the leak. */
ADVICE_TEST(is_copied_by_each,
            facts->refused == NULL && facts->top_live_copies != 0 && verdict->end != VERDICT_END_OK &&
                !verdict_is_backlog(facts) &&
                (facts->top_live.leak != MODEL_LEAK_LEAK || rank_may_be_built_once(facts->top_live.telling)))
ADVICE_TEST(is_killed_child_in_arenas, verdict->cause == VERDICT_CHILD_KILLED && is_childs_peak(facts) &&
                                           verdict_is_arena(facts, &facts->top_peak) &&
                                           !verdict_is_rest_of_arenas(&facts->top_peak))
ADVICE_TEST(is_child_killed, verdict->cause == VERDICT_CHILD_KILLED &&
                                 (verdict_is_arena(facts, &facts->top_live) || !verdict_is_accumulating(facts)))
ADVICE_TEST(is_child_lost, verdict->end == VERDICT_END_OK && verdict->lost_child != NULL)

/* ---- who held the memory ---- */

ADVICE_TEST(is_little_in_arenas,
            verdict_is_arena(facts, &facts->top_live) && !verdict_is_rest_of_arenas(&facts->top_live) &&
                facts->top_live.leak != MODEL_LEAK_LEAK && facts->top_live.live_bytes < facts->live_bytes / 2 &&
                verdict->end != VERDICT_END_OK && facts->refused == NULL)

ADVICE_TEST(is_free_in_arenas,
            verdict_is_rest_of_arenas(&facts->top_live) && facts->refused == NULL && verdict->end != VERDICT_END_OK)
ADVICE_TEST(is_in_arenas, verdict_is_arena(facts, &facts->top_live) && !verdict_is_rest_of_arenas(&facts->top_live) &&
                              (facts->refused == NULL || verdict_is_accumulating(facts)) &&
                              (is_first_line_growing(facts, verdict) || verdict->end != VERDICT_END_OK))
ADVICE_TEST(is_growing,
            is_first_line_growing(facts, verdict) && (facts->refused == NULL || verdict_is_accumulating(facts)))
ADVICE_TEST(is_device_growing, verdict->end == VERDICT_END_OK && facts->growing_device.site_count != 0)
ADVICE_TEST(is_tight,
            verdict->end == VERDICT_END_OK && verdict_fullest(facts) != NULL && facts->top_peak.site_count != 0)
ADVICE_TEST(is_well_but_freed,
            verdict->end == VERDICT_END_OK && facts->refused == NULL && facts->memory.freed.freed_bytes != 0)
ADVICE_TEST(is_well_and_empty, verdict->end == VERDICT_END_OK && facts->peak_bytes == 0)
ADVICE_TEST(is_well_but_leaking, verdict->end == VERDICT_END_OK && facts->leaking_bytes >= WORTH_LEAKING_BYTES)
ADVICE_TEST(is_well_but_swept_a_little,
            verdict->end == VERDICT_END_OK && facts->refused == NULL && facts->swept.swept_bytes >= WORTH_LEAKING_BYTES)
ADVICE_TEST(is_well_but_swept, is_well_but_swept_a_little(facts, verdict) && facts->swept.leak == MODEL_LEAK_SWEPT &&
                                   facts->swept.swept_bytes >= facts->peak_bytes / SWEPT_PART)

/* Blocks of the usual size of the line that it held at the peak. */
static uint64_t
blocks_at_peak(const struct rank_line *line)
{
	uint64_t block_bytes = line->allocated_count != 0 ? line->allocated_bytes / line->allocated_count : 0;

	return block_bytes != 0 ? line->score_bytes / block_bytes : 0;
}

/* Nobody can tell from outside whether all of it was needed at once. */
static bool
is_well_but_collected(const struct verdict_facts *facts, const struct verdict *verdict)
{
	const struct rank_line *line = &facts->top_peak;

	return verdict->end == VERDICT_END_OK && facts->refused == NULL && line->site_count != 0 && line->where != NULL &&
	       !line->is_import && !rank_is_below_import(line->largest) && facts->top_peak_processes == 0 &&
	       !verdict_is_arena(facts, line) && line->peak_bytes >= WORTH_LEAKING_BYTES &&
	       line->peak_bytes >= facts->peak_bytes / 100 * COLLECTED_PERCENT &&
	       facts->peak_bytes >= facts->peak_whole_bytes / 2 &&
	       !verdict_is_beyond_memory(facts->peak_bytes, verdict_most_resident_of(facts->peak_process)) &&
	       blocks_at_peak(line) >= COLLECTED_BLOCKS;
}

ADVICE_TEST(is_well, verdict->end == VERDICT_END_OK)
ADVICE_TEST(is_last_taker_known, verdict_was_memory_short(verdict->cause) && facts->last_taker.site_count != 0)
/* They were there all along: what was being filled when it was killed comes before them. */
ADVICE_TEST(are_imports_most, facts->import_bytes > verdict_told_live_bytes(facts) / 2 &&
                                  !verdict_tells_in_memory(facts->live_bytes, facts->live_process->filled_bytes))
ADVICE_TEST(is_line_known, facts->top_live.site_count != 0)
/* It holds most of what the process gained, and is too short to judge; or a look has found what holds it, whatever it is. */
ADVICE_TEST(is_perhaps_kept, is_line_known(facts, verdict) && !verdict_is_backlog(facts) &&
                                 ((rank_keeps_all(facts->top_live.telling) &&
                                   verdict_is_most_of_live(facts, facts->top_live.live_bytes)) ||
                                  is_holder_known(facts, &facts->top_live)))
ADVICE_TEST(is_backlog, verdict_is_backlog(facts))
ADVICE_TEST(is_unsent, is_backlog(facts, verdict) && rank_is_unsent(facts->model, facts->top_live.largest))
ADVICE_TEST(is_anything, true)

#define FREED                                                                                                                 \
	"[{!empty_worth}{!sparse_worth}call {trim} after much was freed; where that does not help, few blocks keep whole pages: " \
	"allocate those that stay apart from those that are freed]"                                                               \
	"[{?empty_worth}call {trim} after much was freed[{?sparse_worth}; and ]]"                                                 \
	"[{?sparse_worth}allocate the blocks that stay[ (most of them at {pinning_line})] before those that are freed]"
#define SHARE_READS                                                                                                             \
	"[{?python_child}put what the workers read into one NumPy array, a tensor or shared memory instead of many Python objects]" \
	"[{!python_child}write to less of it after the fork, or fork before it is built]"                                           \
	"[{?built_in_arenas}; `kmemshim run --python-objects -- {command}` names the lines that built them]"
#define PYTHON_OBJECTS \
	"record small Python objects too: `kmemshim run --python-objects -- {command}`; then the lines that hold them are named"
#define TOP offsetof(struct verdict_facts, top_live)

static const struct advice rows[] = {
	{ "device", is_about_device, .rows = device_rows },
	{ "pin-exact-sizes", is_pinned_rounded,
	  .text = "pin pieces just below a power of two at {pinned_line}, or run with PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:1 (PyTorch of 2026 and later)" },
	{ "pin-less", is_pinned_much,
	  .text = "pin less of the host's memory at {pinned_line}: fewer workers or smaller batches with pin_memory, or none" },
	{ "ask-parent", is_parents_knowledge,
	  .text = "[{?several}see what its parent (pid {parent_pid}) says: it alone knows how its child ended]"
	          "[{!several}look at the report of its parent (pid {parent_pid}), or of the whole folder of captures]" },
	{ "return-freed-memory", is_freed_first_running, .text = FREED },
	{ "return-freed-memory", is_freed_after_step, .text = FREED, .is_after_step = true },
	{ "release-blocks", is_growth_held_after_step, .kept_line = TOP, .is_after_step = true },
	{ "release-blocks", is_growth_after_step,
	  .text = "look for what keeps the blocks of {top} alive[{?if_data_set}, unless it is a data set]",
	  .is_after_step = true },
	{ "release-blocks", is_growing_running, .say = say_growth_running },
	{ NULL, is_step_alone, .say = NULL, .is_after_step = true },
	{ "return-freed-memory", is_freed_first, .text = FREED },
	{ "read-error", is_perhaps_caught_beyond_machine,
	  .text = "read the program's own error message; if it says that memory ran out, ask for less at once[ at {request_line}]" },
	{ "read-error", is_perhaps_caught,
	  .text = "read the program's own error message; if it says that memory ran out, ask for less at once[ at {request_line}], or {raise}" },
	{ "ask-for-less", is_beyond_machine,
	  .text = "ask for less at once[ at {request_line}] (smaller pieces, a smaller type)" },
	{ "start-under-limit", is_of_recording,
	  .text = "start it under that limit (`ulimit -v {under_limit}`): recording then reserves less of it" },
	{ "ask-for-less-or-raise-limit", is_request_alone, .text = "ask for less at once[ at {request_line}], or {raise}" },
	{ "record-again", is_damage_the_story,
	  .text = "record it again, or copy the capture again: the damage took the lines of what held most" },
	{ "more-room-for-stacks", is_elsewhere_the_story,
	  .text = "record it again with more room for stacks ({room_for_stacks}): then the lines that hold the rest are named" },
	{ "remove-files-in-memory", is_full_of_files,
	  .text = "remove files that are not needed any more from folders that lie in memory (/dev/shm, a /tmp in memory), or write them to a disk: "
	          "`df -h -t tmpfs` shows how much each such folder holds" },
	{ "write-elsewhere", is_written_first,
	  .text = "write to a copy, a piece at a time, or map the file shared: what is written into the private mapping of {files_line} stays in memory" },
	{ "share-what-children-read", is_copied,
	  .text = "[{?python_child}let each worker load its own part, or ]" SHARE_READS },
	{ "record-python-objects", is_killed_child_in_arenas,
	  .text = "record small Python objects too: `kmemshim run --python-objects -- {command}"
	          "` names the lines that hold them; or run fewer child processes at once, or "
	          "give the program more memory" },
	{ "hold-less-in-children", is_child_killed,
	  .text = "hold less in each child process[ (most at {child_line})], run fewer of them at once, or give the program more memory" },
	{ "release-blocks", is_request_held, .kept_line = TOP, .text = "; or {raise}" },
	{ "hold-less-before", is_request_small,
	  .text = "hold less before that (most at {before_line}), or {raise}{if_unfinished}" },
	{ "end-threads", is_full_of_stacks,
	  .text = "start fewer threads at once at {stacks_line}, or join or detach those that have ended: the stacks of {stacks_count} that it "
	          "started are kept until then" },
	{ "see-container-and-files", is_full_of_unknown,
	  .text = "see what else has memory in this container: `ps -eo pid,rss,args --sort -rss` inside it shows processes, `df -h -t tmpfs` files "
	          "that lie in memory (shared memory that nobody unlinked)" },
	{ "see-container", is_full_of_others,
	  .text = "see what else runs in this container: `ps -eo pid,rss,args --sort -rss` inside it shows what each process has in memory" },
	{ "import-less", is_little_in_arenas,
	  .text = "give the program more memory, or import less: no line of it holds much" },
	{ "reuse-arenas", is_free_in_arenas,
	  .text = "make many small objects in a child process that ends, or hold fewer of them at once: Python gives an arena "
	          "back when the last object in it is released" },
	{ "record-python-objects", is_in_arenas,
	  .text = "[look for what keeps the blocks of {beside_line} alive; or ]" PYTHON_OBJECTS
	          "{if_data_set}[; or {raise}]" },
	{ "share-among-processes", is_copied_by_each,
	  .text = "run fewer of these processes at once, or let them share it: each of {copies} makes its own at {top}; what is made before a "
	          "fork, or lies in shared memory, is there once" },
	{ "release-blocks", is_growing, .kept_line = TOP },
	{ "ask-for-less-or-raise-limit", is_refused, .text = "ask for less at once[ at {request_line}], or {raise}" },
	{ "more-room-for-recorder", is_unrecorded,
	  .text = "record it again with more room for the recorder (ulimit -v, or the disk that holds captures)" },
	{ "record-whole", is_damaged,
	  .text = "record it again where whole figures are needed: the notes of "
	          "`kmemshim report {capture}` name the damage" },
	{ "release-device-growth", is_device_growing, .kept_line = offsetof(struct verdict_facts, growing_device) },
	{ "see-child", is_child_lost,
	  .text = "`kmemshim report {child}"
	          "` shows what the child process held before it ended; if a pool ended it as "
	          "it closed, no action is needed" },
	{ "little-room", is_tight,
	  .text = "little room was left: [release earlier what {swept_line} gathers until the peak, ]hold less at once (most was {peak_how} {peak_line}), or give the program more memory" },
	{ "return-freed-memory", is_well_but_freed, .text = FREED },
	{ "nothing", is_well_and_empty, .text = "no action is needed", .is_nothing = true },
	{ "release-before-end", is_well_but_swept,
	  .text = "look at {swept_line}: what it held grew until the peak, then was released, and the program ended; release earlier what it no longer "
	          "needs; if it collects results for the end, no action is needed" },
	{ "nothing-yet", is_well_but_leaking,
	  .text = "no action is needed yet; `kmemshim leaks {capture}"
	          "` shows what looks like a leak ({leaking} in all, most at {leaking_line})",
	  .is_nothing = true },
	{ "hold-less-at-peak", is_well_but_collected,
	  .text = "if that peak is too much, look at {peak_line}: it held most of it at once", .is_nothing = true },
	{ "nothing", is_well_but_swept_a_little, // a longer run will have more of it
	  .text = "no action is needed, unless longer runs must fit: {swept_line} grew until the peak, then was released, and the program ended",
	  .is_nothing = true },
	{ "nothing", is_well, .text = "no action is needed; `kmemshim peak {capture}` shows which lines made the peak",
	  .is_nothing = true },
	{ "release-blocks-or-hold-less", is_perhaps_kept, .kept_line = TOP,
	  .text = "; if all of it is needed at once, hold less (smaller pieces, a smaller type)" },
	{ "hold-less", is_last_taker_known,
	  .text = "hold less at once at {last_taker}, which took much last, or at {top} (smaller pieces, a smaller type, release earlier), or give "
	          "the program more memory" },
	{ "import-less", are_imports_most,
	  .text = "give the program more memory, or import less: most of what was live was left by imports" },
	{ "bound-backlog", is_unsent, .kept_line = TOP },
	{ "bound-backlog", is_backlog, .kept_line = TOP,
	  .text = ", or release them faster: it takes more than is released; or give the program more memory" },
	{ "share-what-children-read", is_copied_too,
	  .text = "hold less at once at {top}, or run fewer workers; or " SHARE_READS },
	{ "hold-less", is_line_known,
	  .text = "hold less at once at {top} (smaller pieces, a smaller type, release earlier), or give the program more memory" },
	{ "see-peak", is_anything, .text = "`kmemshim peak {capture}` shows which lines held the memory" },
	{ NULL, NULL, .say = NULL },
};

/* ---- one domain alone ---- */

static bool
is_asked_arena(const struct verdict_facts *facts)
{
	const struct model_domain *largest = facts->asked.largest;

	return largest->id.kind == DOMAIN_PYTHON_ARENA && facts->model->sample_bytes == 0 && // "python" is wanted, too
	       verdict_left_by_imports(facts, largest, false) <= largest->live_bytes / 2;
}

ADVICE_TEST(is_asked_refused,
            facts->refused != NULL &&
                rank_domain_matches(facts->model->domains[facts->refused->domain].name, facts->asked.name))
ADVICE_TEST(is_asked_device_empty,
            facts->asked.largest->peak_bytes == 0 && facts->asked.largest->id.kind == DOMAIN_DEVICE)
ADVICE_TEST(is_asked_empty, facts->asked.largest->peak_bytes == 0)
ADVICE_TEST(is_asked_steady, facts->asked.growing.site_count == 0 && !is_asked_arena(facts))
ADVICE_TEST(is_asked_in_arenas, facts->asked.growing.site_count == 0 ||
                                    (verdict_is_arena(facts, &facts->asked.growing) && facts->model->sample_bytes == 0))

static const struct advice domain_rows[] = {
	{ "device", is_asked_refused, .rows = device_rows },
	{ "see-other-users", is_asked_device_empty, .text = "{asked_other_users}" },
	{ "ask-about-all", is_asked_empty, .text = "`kmemshim why {capture}` is about the whole program" },
	{ "see-peak", is_asked_steady,
	  .text = "`kmemshim peak {capture} --domain {asked}` shows which lines held most of it" },
	{ "record-python-objects", is_asked_in_arenas, .text = PYTHON_OBJECTS "{if_asked_data_set}" },
	{ "release-blocks", is_anything, .kept_line = offsetof(struct verdict_facts, asked.growing) },
	{ NULL, NULL, .say = NULL },
};

/* ---- all of it ---- */

static const struct advice *
first_of(const struct advice *table, const struct verdict_facts *facts, const struct verdict *verdict)
{
	for (; table->applies != NULL; table++) {
		const struct advice *found = table;

		if (!table->applies(facts, verdict))
			continue;
		if (table->rows != NULL)
			found = first_of(table->rows, facts, verdict);
		if (found != NULL)
			return found;
	}
	return NULL;
}

static const struct rank_line *
line_at(const struct verdict_facts *facts, size_t offset)
{
	return (const struct rank_line *)(const void *)((const char *)facts + offset);
}

void
verdict_names(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	if (line->largest != NULL && facts->top_live.site_count != 0)
		verdict->is_top_named |= rank_compare_places(line->largest, facts->top_live.largest) == 0;
}

static void
say_row(const struct advice *row, const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct told told = { facts, NULL, verdict };

	verdict->is_top_named = false;
	if (row->is_after_step) {
		const struct step *step = step_of(facts, verdict);

		add_advice(step->name, verdict);
		say_next_template(&told, step->text);
		say_next(verdict, "%s", row->name != NULL ? "; then " : "");
	}
	if (row->name == NULL)
		return;
	add_advice(row->name, verdict);
	if (row->say != NULL)
		(row->say)(facts, verdict);
	if (row->kept_line != 0) {
		verdict_names(facts, line_at(facts, row->kept_line), verdict);
		say_growth_kept(facts, line_at(facts, row->kept_line), verdict);
	}
	if (row->text != NULL)
		say_next_template(&told, row->text);
}

/* A library with an allocator of its own, or a language whose heap it is, knows better who holds what. begin: of this row's text. */
static void
advise_library(const struct verdict_facts *facts, size_t begin, size_t names_begin, struct verdict *verdict)
{
	const struct model_site *site = facts->top_live.site_count != 0 ? facts->top_live.largest : NULL;
	const struct model_library_switch *one = site != NULL && site->library != NULL ? model_library_switch(site) : NULL;
	const struct model_runtime *runtime = site != NULL ? model_runtime_of(facts->model, site) : NULL;

	if (one != NULL && !facts->has_system_allocators) {
		add_advice("system-allocators", verdict);
		say_next_template(&(struct told){ facts, NULL, verdict },
		                  "; or run it with `kmemshim run --system-allocators -- {command}`");
		say(verdict, " With --system-allocators (%s) %s.", one->setting, one->effect);
	}
	if (runtime == NULL || !verdict->is_top_named)
		return;
	// its own code: who asked for the objects is not known
	if (site->where != NULL && site->where->kind == MODEL_FRAME_NATIVE) {
		verdict->next[begin] = '\0';
		verdict->advice_count = names_begin;
		say_next(verdict, "%s", runtime->advice);
	} else {
		say_next(verdict, "; or %s", runtime->advice);
	}
	add_advice("ask-runtime", verdict);
}

/*
 * The value that the last line of a cell gave is in Out[], unless it was None: nobody looks for it there. Where a look has found another
 * holder it was None, or is a small part of what the holder has.
 */
static void
advise_out(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_live;

	if (top->site_count == 0 || !verdict->is_top_named || cell_result_of(facts->model, top->largest) == NULL ||
	    (is_holder_known(facts, top) && !cell_result_is_kept(model_holders_way(verdict_holders_of(facts, top)))))
		return;
	add_advice("see-out", verdict);
	say_next(verdict, "; IPython keeps what a cell shows in Out[] (%%kmem out lists it): end such a cell with ;");
}

/* A program that did well though a child of it did not. */
static void
point_to_child(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (verdict->lost_child == NULL ||
	    ANY(name, verdict->advice, verdict->advice_count, strcmp(*name, "see-child") == 0) ||
	    (verdict->end != VERDICT_END_OK && verdict->cause != VERDICT_CHILD_KILLED))
		return;
	if (verdict->end == VERDICT_END_OK && verdict->lost_child->live_bytes != 0 &&
	    verdict->lost_child->live_bytes < WORTH_CHILD_BYTES)
		return; // a worker that a pool ended: its report would show nothing; 0 = not known
	add_advice("see-child", verdict);
	say_next_template(&(struct told){ facts, NULL, verdict }, "; `kmemshim report {child}` is about the child");
}

void
verdict_advise(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct advice *row = first_of(rows, facts, verdict);
	const char *hidden = verdict_hidden_heap(facts->model);
	bool is_preload_wrong = hidden != NULL &&
	                        strstr(hidden, KMEM_NOTE_PRELOAD_FIRST) != NULL; // else it is part of the program

	if (is_preload_wrong) {
		add_advice("preload-first", verdict);
		say_next(verdict,
		         "put libkmemshim.so first in LD_PRELOAD and record it again: then the heap is in the figures%s",
		         row->is_nothing ? "" : "; or ");
	}
	verdict->needs_nothing = row->is_nothing && !is_preload_wrong;

	size_t begin = strlen(verdict->next);
	size_t names_begin = verdict->advice_count;

	if (!is_preload_wrong || !row->is_nothing) {
		say_row(row, facts, verdict);
		advise_library(facts, begin, names_begin, verdict);
		advise_out(facts, verdict);
	}
	point_to_child(facts, verdict);
}

void
verdict_advise_domain(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_row(first_of(domain_rows, facts, verdict), facts, verdict);
}
