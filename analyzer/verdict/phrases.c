/*
 * phrases.c - how is each cause of death said in a paragraph?
 *
 * The sentences share their parts: who, how it ended, how close to which limit, who held most. Numbers carry units,
 * a conclusion carries its confidence and what it rests on, a line is where memory "was allocated".
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/text_clean.h"
#include "base/units.h"
#include "model/model_library.h"

#define WORTH_RELEASED_BYTES (UINT64_C(1) << 20)
#define EXPLAINING_PART 3 // of what was in memory: a line with less does not explain it
#define TOLD_PART 20      // of what was in memory: smaller parts are summed up
#define TOLD_MAX 5
#define OLD_PART 8 // memory differs by that much: the look was of another time
#define OLD_NS UINT64_C(1000000000)
#define WORTH_BYTES (UINT64_C(1) << 20) // less is not said of a child

static uint64_t
lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

const char *
verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES])
{
	if (line->where == NULL)
		return place_text("", 0, "", "", 0, text);
	(void)place_text(line->where->file, line->where->line, line->where->function, line->where->module,
	                 line->where->module_offset, text);
	return place_related(line->largest != NULL ? model_relation_name(line->largest->where_relation) : "", text);
}

void
verdict_say_process(const struct model_process *process, struct verdict *verdict)
{
	char name[PLACE_TEXT_BYTES];

	(void)snprintf(name, sizeof(name), "%s", process->name);
	(void)text_clean(name, strlen(name));
	say(verdict, "%s (pid %" PRIu32 ")", name, process->identity->pid);
}

static void
say_who(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->is_descendant)
		say(verdict, "A child process, ");
	verdict_say_process(facts->process, verdict);
	if (facts->is_descendant)
		say(verdict, ",");
}

const char *
verdict_where_word(const struct verdict_facts *facts, const struct rank_line *line, char text[VERDICT_WORD_BYTES])
{
	const struct model_runtime *runtime = line->largest != NULL ? model_runtime_of(facts->model, line->largest) : NULL;
	char name[64];

	if (runtime != NULL) {
		(void)snprintf(text, VERDICT_WORD_BYTES, "in the heap of %s, which grew at", runtime->name);
		return text;
	}
	if (line->largest == NULL || line->largest->library == NULL)
		return verdict_is_arena(facts, line) ? "in" : "allocated at";
	(void)snprintf(name, sizeof(name), "%s", line->largest->library);
	(void)text_clean(name, strlen(name));
	(void)snprintf(text, VERDICT_WORD_BYTES, "in the own allocator of %s, which grew (an estimate) at", name);
	return text;
}

void
verdict_tell_untouched(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *line = &facts->untouched;
	char asked[UNITS_TEXT_BYTES];
	char held[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, " Of the %s that %s asked for, only %s %s in memory.",
	    units_bytes(line->live_bytes + line->untouched_bytes, asked), verdict_line_text(line, place),
	    units_bytes(line->live_bytes, held), facts->end == VERDICT_END_RUNNING ? "is" : "was");
}

enum part {
	PART_LINES,
	PART_FREED,
	PART_MALLOC,
	PART_RESERVED,
	PART_FILES,
	PART_PROGRAM,
	PART_OWN,
	PART_INHERITED,
	PART_STACKS,
	PART_OTHER,
	PART_LATER,
	PART_OTHERS,
	PARTS
};
static_assert((int)PARTS <= VERDICT_PARTS_MAX, "");

/* Also where the look is of another time than what is told beside it. */
static void
say_age(const struct verdict_memory *memory, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	if (memory->age_ns < OLD_NS || memory->later_bytes < memory->sample_bytes / OLD_PART)
		return;
	say(verdict, " That look was %.1f s before the end, when %s was in memory.", (double)memory->age_ns / 1e9,
	    units_bytes(memory->process_bytes - memory->later_bytes, bytes));
}

static void
say_parts(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_memory *memory = &facts->memory;
	uint64_t rest_bytes = 0;
	char bytes[UNITS_TEXT_BYTES];

	(void)units_bytes(memory->bytes, bytes);
	if (memory->is_of_container)
		say(verdict, " Of the %s that the container had in use at the last look", bytes);
	else
		say(verdict, " Of the %s that %s in memory at the last %s", bytes,
		    facts->live_count > 1 ? "its processes had" : "it had", memory->later_bytes != 0 ? "heartbeat" : "look");
	for (size_t i = 0; i < memory->part_count; i++) {
		if (i >= TOLD_MAX || (i != 0 && memory->parts[i].bytes < memory->bytes / TOLD_PART)) {
			rest_bytes += memory->parts[i].bytes;
			continue;
		}
		say(verdict, "%s %s was %s", i == 0 ? "," : ";", units_bytes(memory->parts[i].bytes, bytes),
		    memory->parts[i].name);
	}
	if (rest_bytes != 0)
		say(verdict, "; %s was the rest", units_bytes(rest_bytes, bytes));
	say(verdict, ".");
	say_age(memory, verdict);
	/* Lines are told as they are at the end: of what was there at the look that may be the smaller part. */
	if (facts->live_bytes < memory->lines_bytes / 2 && memory->lines_bytes >= memory->bytes / EXPLAINING_PART)
		say(verdict, " Most of what lines held then was released afterwards.");
	else if (facts->top_live.site_count != 0)
		say(verdict, " No line holds a third of it.");
}

void
verdict_tell_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (!verdict_is_explained(facts))
		say_parts(facts, verdict);
	verdict_tell_freed(facts, verdict);
}

const char *
verdict_hidden_heap(const struct model *model)
{
	for (size_t i = 0; i < model->process_count; i++) {
		for (size_t n = 0; n < model->processes[i].note_count; n++) {
			if (strncmp(model->processes[i].notes[n], KMEM_NOTE_HIDDEN_HEAP, sizeof(KMEM_NOTE_HIDDEN_HEAP) - 1) == 0)
				return model->processes[i].notes[n];
		}
	}
	return NULL;
}

void
verdict_tell_hidden_heap(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (verdict_hidden_heap(facts->model) != NULL)
		say(verdict,
		    " The heap is missing in these figures: another malloc stands before the recorder's (see the notes).");
}

void
verdict_tell_freed(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_freed *freed = &facts->memory.freed;
	uint64_t live_bytes = freed->heap_bytes - lesser(freed->heap_bytes, freed->freed_bytes);
	char bytes[UNITS_TEXT_BYTES];
	char whole[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (freed->freed_bytes == 0)
		return;
	say(verdict, " Freed memory was not given back (fragmentation): ");
	if (freed->is_later)
		say(verdict, "at the last heartbeat ");
	else if (freed->age_ns >= OLD_NS && facts->end != VERDICT_END_RUNNING)
		say(verdict, "%.1f s before the end ", (double)freed->age_ns / 1e9);
	say(verdict, "malloc ");
	if (facts->model->process_count > 1) {
		say(verdict, "of ");
		verdict_say_process(freed->process, verdict);
		say(verdict, " ");
	}
	say(verdict, "had %s in memory, of which about %s was live (%s).", units_bytes(freed->heap_bytes, whole),
	    units_bytes(live_bytes, bytes), units_share(verdict_share(live_bytes, freed->heap_bytes), share));
	if (freed->empty_bytes >= freed->freed_bytes / 10 && freed->empty_bytes != 0)
		say(verdict, " %s%s was pages without any block: malloc_trim(0) gives these back.",
		    freed->is_later ? "At least " : "", units_bytes(freed->empty_bytes, bytes));
	if (verdict_sparse_of(freed) == 0)
		return;
	say(verdict, " %s was pages that few blocks keep (%s in all)", units_bytes(freed->sparse_bytes, bytes),
	    units_bytes(freed->sparse_live_bytes, whole));
	if (freed->pinning[0].site_count != 0)
		say(verdict, ", most of them allocated at %s", verdict_line_text(&freed->pinning[0], place));
	say(verdict, ": they stay until these blocks are freed.");
}

void
verdict_say_if_caught(const struct verdict_facts *facts, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	if (!verdict_was_perhaps_caught(facts)) {
		say(verdict, " (%s: nothing shows that it went on from there).", verdict_confidence_name(verdict->confidence));
		return;
	}
	say(verdict, ". Whether it ended of that is not known (%s: ", verdict_confidence_name(verdict->confidence));
	if (verdict_was_given_more(facts))
		say(verdict, "the same thread was given %s after it", units_bytes(facts->refused->got_bytes, bytes));
	if (verdict_is_other_status(facts))
		say(verdict, "%san error that nothing catches ends Python with status 1",
		    verdict_was_given_more(facts) ? ", and " : "");
	say(verdict, ").");
}

void
verdict_say_wanted(const struct model *model, const struct model_failed *refused, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, "for %s in %s", units_bytes(refused->bytes, bytes), model->domains[refused->domain].name);
	if (refused->site != NULL && refused->site->where != NULL) {
		struct rank_line line = { .where = refused->site->where, .largest = refused->site };

		say(verdict, " at %s", verdict_line_text(&line, place));
	}
}

void
verdict_say_refusal(const struct verdict_facts *facts, struct verdict *verdict)
{
	say(verdict, "a request ");
	verdict_say_wanted(facts->model, facts->refused, verdict);
	say(verdict, " was refused");
}

static void
say_own_space(const struct verdict_facts *facts, uint64_t limit_bytes, struct verdict *verdict)
{
	uint64_t own_bytes = facts->refused->own_space_bytes;
	char bytes[UNITS_TEXT_BYTES];

	if (own_bytes >= limit_bytes)
		say(verdict, ", when recording had reserved %s of addresses: unrecorded it might have got it",
		    units_bytes(own_bytes, bytes));
	else
		say(verdict, ", of which recording takes %s", own_bytes != 0 ? units_bytes(own_bytes, bytes) : "a part");
}

void
verdict_say_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct kmem_identity *identity = facts->process->identity;
	uint64_t then_bytes = facts->refused->space_limit_bytes;
	char bytes[UNITS_TEXT_BYTES];

	for (size_t i = 0; i < KMEM_LIMITS_MAX; i++) {
		const struct kmem_limit *limit = &identity->limits[i];
		bool is_space = limit->kind == KMEM_LIMIT_ADDRESS_SPACE;

		if ((!is_space && limit->kind != KMEM_LIMIT_DATA) || limit->bytes == UINT64_MAX ||
		    (is_space && then_bytes != 0 && then_bytes < limit->bytes / 100 * 99))
			continue;
		say(verdict, " Its %s is limited to %s (ulimit -%s)", is_space ? "address space" : "data segment",
		    units_bytes(limit->bytes, bytes), is_space ? "v" : "d");
		if (is_space)
			say_own_space(facts, limit->bytes, verdict);
		say(verdict, ".");
		return;
	}
	if (then_bytes != 0) {
		say(verdict, " It had limited its address space to %s (setrlimit, RLIMIT_AS)", units_bytes(then_bytes, bytes));
		say_own_space(facts, then_bytes, verdict);
		say(verdict, ".");
	} else if (identity->overcommit_mode == 2) {
		say(verdict, " This machine refuses what it cannot back with memory (vm.overcommit_memory is 2).");
	} else if (verdict_is_beyond_machine(facts)) {
		say(verdict, " That is more than the machine has (%s).", units_bytes(identity->machine_bytes, bytes));
	}
}

/* Ends the sentence. Of processes that may have run one after the other a line's figures are sums, of its domain's sum. */
static void
say_sum(const struct verdict_facts *facts, const struct rank_line *line, bool is_peak, uint32_t processes,
        struct verdict *verdict)
{
	const struct model_domain *domain = &facts->model->domains[line->domain];
	const char *when = is_peak                             ? "at their peaks"
	                   : facts->end == VERDICT_END_RUNNING ? "now, or at their ends"
	                                                       : "at their ends";
	char held[UNITS_TEXT_BYTES];
	char whole[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, ". Summed over all its processes, %s ",
	    units_bytes(is_peak ? line->peak_bytes : line->live_bytes, held));
	if (verdict_is_arena(facts, line))
		say(verdict, "was in arenas of small Python objects, without what imports left there, %s", when);
	else
		say(verdict, "of the %s of %s that they held %s was allocated at %s",
		    units_bytes(is_peak ? domain->peak_bytes : domain->live_bytes, whole), domain->name, when,
		    verdict_line_text(line, place));
	if (processes > 1)
		say(verdict, ", in %" PRIu32 " of them", processes);
	say(verdict, ".");
}

/* Where a request was refused, lines have all that was asked for. */
static uint64_t
line_bytes(const struct verdict_facts *facts, const struct rank_line *line, bool is_told)
{
	return line->live_bytes + (is_told || facts->refused != NULL ? 0 : line->untouched_bytes);
}

/*
 * ", another 305 MiB (40 %) at train.py:50 load." Or by imports, where they hold more and were not told of: then true.
 *
 * is_told  how much of all this is in memory: figures are of that, else as the tables have them
 */
static bool
say_next_holder(const struct verdict_facts *facts, bool are_imports_told, bool is_told, struct verdict *verdict)
{
	const struct rank_line *next = &facts->next_live;
	uint64_t live_bytes = facts->live_bytes + (is_told ? 0 : facts->untouched_bytes);
	uint64_t next_bytes = line_bytes(facts, next, is_told);
	char held[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];
	char tops[PLACE_TEXT_BYTES];
	bool is_same = next->site_count != 0 &&
	               strcmp(verdict_line_text(next, place), verdict_line_text(&facts->top_live, tops)) == 0;
	bool is_of_imports = next->site_count == 0 && !are_imports_told && facts->import_bytes > facts->top_live.live_bytes;

	if (next->site_count != 0)
		say(verdict, ", another %s (%s) %sat %s%s%s", units_bytes(next_bytes, held),
		    units_share(verdict_share(next_bytes, live_bytes), share),
		    verdict_is_arena(facts, &facts->top_live) ? "was allocated " : "", is_same ? "the same line in " : place,
		    is_same ? facts->model->domains[next->domain].name : "",
		    next->leak == MODEL_LEAK_LEAK && facts->top_live.leak != MODEL_LEAK_LEAK ? ", which accumulates" : "");
	else if (is_of_imports)
		say(verdict, ", another %s (%s) was left by imports", units_bytes(facts->import_bytes, held),
		    units_share(verdict_share(facts->import_bytes, live_bytes), share));
	say(verdict, ".");
	return is_of_imports;
}

/* " When it died 489 MiB was live; 401 MiB of it (82 %) was allocated at train.py:41 epoch." and how it grew. */
static void
say_holder(const struct verdict_facts *facts, struct verdict *verdict, const char *when)
{
	const struct rank_line *top = &facts->top_live;
	char total[UNITS_TEXT_BYTES];
	char held[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];
	bool has_next = facts->next_live.site_count != 0;
	/* Nobody's doing; of a small program they are most of it. */
	bool are_imports_first = facts->top_live_processes == 0 && top->leak != MODEL_LEAK_LEAK &&
	                         facts->import_bytes > top->live_bytes;
	bool are_imports_last = false;
	bool do_both_grow = has_next && top->leak == MODEL_LEAK_LEAK && facts->next_live.leak == MODEL_LEAK_LEAK;
	const char *who = "It";
	bool is_told = verdict_tells_in_memory(facts->live_bytes, facts->untouched_bytes) ||
	               facts->untouched.site_count != 0;
	uint64_t live_bytes = facts->live_bytes + (is_told ? 0 : facts->untouched_bytes); // what shares are of
	uint64_t top_bytes = line_bytes(facts, top, is_told);
	const char *of_what = facts->live_count > 1 ? " of all that" : is_told ? " of that" : " of it";
	char word[VERDICT_WORD_BYTES];
	bool is_part = top->leak == MODEL_LEAK_LEAK && top->leaking_bytes < top->live_bytes / 10 * 9; // that grows

	verdict_tell_memory(facts, verdict);
	say(verdict, " %s %s was live", when, units_bytes(facts->live_bytes + facts->untouched_bytes, total));
	if (is_told)
		say(verdict, ", %s of it in memory", units_bytes(facts->live_bytes, held));
	if (facts->live_count > 1)
		say(verdict, " in the %zu processes that were at work then, %s of it in ", facts->live_count,
		    units_bytes(facts->live_process_bytes, held));
	else if (facts->model->process_count > 1)
		say(verdict, " in ");
	else if (facts->refused == NULL && (facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED) &&
	         facts->peak_domain != NULL && facts->live_bytes > facts->peak_bytes)
		// the peak that was told before is one domain's
		say(verdict, " in all%s", verdict_has_device(facts) ? " on the host" : "");
	if (facts->model->process_count > 1)
		verdict_say_process(facts->live_process, verdict);
	if (top->site_count == 0 || facts->live_bytes == 0) {
		say(verdict, ".");
		return;
	}
	if (are_imports_first)
		say(verdict, "; %s%s (%s) was left by imports,", units_bytes(facts->import_bytes, held), of_what,
		    units_share(verdict_share(facts->import_bytes, live_bytes), share));
	else if (facts->top_live_processes == 0)
		say(verdict, ";");
	if (facts->top_live_processes == 0) {
		say(verdict, " %s%s (%s) was %s %s", units_bytes(top_bytes, held), are_imports_first ? "" : of_what,
		    units_share(verdict_share(top_bytes, live_bytes), share), verdict_where_word(facts, top, word),
		    verdict_line_text(top, place));
		are_imports_last = say_next_holder(facts, are_imports_first, is_told, verdict);
	} else {
		say_sum(facts, top, false, facts->top_live_processes, verdict);
	}
	if (do_both_grow)
		who = "Both";
	else if (has_next || (are_imports_last && verdict_is_arena(facts, top)))
		who = "The first";
	else if (are_imports_last)
		who = verdict_line_text(top, place);
	if (top->leak == MODEL_LEAK_LEAK)
		say(verdict, " %s accumulate%s%s: %s%s%sblocks from %" PRIu32 " of %" PRIu32 " generations are still alive.",
		    who, do_both_grow ? "" : "s", rank_may_be_built_once(top->telling) ? VERDICT_BUILT_ONCE : "",
		    do_both_grow ? "of the first, " : "", is_part ? units_bytes(top->leaking_bytes, held) : "",
		    is_part ? " in " : "", top->telling->generations_alive, top->telling->generations_total);
	else if (rank_may_accumulate(top->telling))
		say(verdict,
		    " %s may accumulate: nothing of its %" PRIu32 " generations was released, which are too few to tell.", who,
		    top->telling->generations_total);
	if (facts->untouched.site_count != 0)
		verdict_tell_untouched(facts, verdict);
	if (facts->beside_arenas.site_count != 0)
		say(verdict, " So do larger blocks of %s (%s), perhaps of the same objects.",
		    verdict_line_text(&facts->beside_arenas, place), units_bytes(facts->beside_arenas.leaking_bytes, held));
}

void
verdict_say_peak(const struct verdict_facts *facts, bool is_line_next, struct verdict *verdict)
{
	char peak[UNITS_TEXT_BYTES];
	char held[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];
	const struct rank_line *top = &facts->top_peak;
	uint64_t imports = 0;

	if (facts->peak_bytes == 0)
		return;
	if (facts->peak_process == facts->process) {
		say(verdict, " The peak of its %s was %s", facts->peak_domain != NULL ? facts->peak_domain->name : "memory",
		    units_bytes(facts->peak_domain != NULL ? facts->peak_bytes + facts->peak_untouched_bytes
		                                           : facts->peak_whole_bytes,
		                peak));
		if (facts->peak_domain != NULL && verdict_tells_in_memory(facts->peak_bytes, facts->peak_untouched_bytes))
			say(verdict, ", %s of it in memory", units_bytes(facts->peak_bytes, peak));
	} else {
		say(verdict, " Of its processes, ");
		verdict_say_process(facts->peak_process, verdict);
		say(verdict, " had the highest peak: %s", units_bytes(facts->peak_whole_bytes, peak));
		if (facts->peak_domain != NULL && facts->peak_whole_bytes != facts->peak_bytes)
			say(verdict, " in all, of %s alone %s", facts->peak_domain->name, units_bytes(facts->peak_bytes, peak));
		else if (facts->peak_domain != NULL)
			say(verdict, " of %s", facts->peak_domain->name);
	}
	if (is_line_next && top->site_count != 0 && top->peak_bytes / 2 <= facts->top_live.live_bytes &&
	    rank_compare_places(top->largest, facts->top_live.largest) == 0) {
		say(verdict, ".");
		return;
	}
	if (top->site_count != 0 && facts->top_peak_processes != 0) {
		say_sum(facts, top, true, facts->top_peak_processes, verdict);
		return;
	}
	if (verdict_is_arena(facts, top))
		say(verdict, ": small Python objects");
	else if (top->site_count != 0) // parts are exact, the total of several threads may be a little behind
		say(verdict, "; %s of %s (%s) was allocated at %s",
		    units_bytes(top->peak_bytes < facts->peak_bytes ? top->peak_bytes : facts->peak_bytes, held),
		    verdict_tells_in_memory(facts->peak_bytes, facts->peak_untouched_bytes) ? "that" : "it",
		    units_share(verdict_share(top->peak_bytes, facts->peak_bytes), share), verdict_line_text(top, place));
	if (facts->model->process_count == 1 && facts->peak_domain != NULL)
		imports = verdict_left_by_imports(facts->model, facts->peak_domain, true);
	if (imports > top->peak_bytes)
		say(verdict, "%s %s (%s) was left by imports",
		    verdict_is_arena(facts, top) ? ", of which"
		    : top->site_count != 0       ? ", another"
		                                 : ";",
		    units_bytes(imports, held), units_share(verdict_share(imports, facts->peak_bytes), share));
	say(verdict, ".");
}

/* How close to which limit, as far as the last heartbeat knows. */
static void
say_usage(const struct verdict_facts *facts, struct verdict *verdict)
{
	char used[UNITS_TEXT_BYTES];
	char limit[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	uint64_t machine = facts->process->identity->machine_bytes;

	if (facts->charged_bytes != 0 && facts->limit_bytes != UINT64_MAX)
		say(verdict, " At the last look %s of the container's %s were in use (%s).",
		    units_bytes(facts->charged_bytes, used), units_bytes(facts->limit_bytes, limit),
		    units_share(verdict_share(facts->charged_bytes, facts->limit_bytes), share));
	else if (facts->available_bytes != UINT64_MAX && machine != 0)
		say(verdict, " At the last look %s of the machine's %s were still available.",
		    units_bytes(facts->available_bytes, used), units_bytes(machine, limit));
	else if (facts->resident_bytes != 0)
		say(verdict, " At the last look it occupied %s.", units_bytes(facts->resident_bytes, used));
}

void
verdict_tell_machine_restarted(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	say(verdict, " was not closed, and this is another boot of the machine, or another machine: how it ended is "
	             "not known.");
	say_usage(facts, verdict);
	say_holder(facts, verdict, "When recording stopped");
}

void
verdict_tell_running(const struct verdict_facts *facts, struct verdict *verdict)
{
	verdict_say_ending(facts, verdict);
	say(verdict, ".");
	say_usage(facts, verdict);
	say_holder(facts, verdict, "Just now");
	verdict_tell_device_alive(facts, verdict);
}

void
verdict_tell_replaced(const struct verdict_facts *facts, struct verdict *verdict)
{
	verdict_say_ending(facts, verdict);
	say(verdict, " that left no capture.");
	verdict_say_peak(facts, false, verdict);
}

static const char *
end_words(const struct verdict_facts *facts)
{
	return facts->live_process->is_at_exit      ? "When it began to exit"
	       : facts->live_process->is_finalizing ? "When Python began to shut down"
	                                            : "At the end";
}

/* Held all along, and released by a destructor or a handler: nobody else would tell of it. */
static void
say_released(const struct verdict_facts *facts, bool was_named, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_live;
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (top->site_count == 0 || top->released_bytes < WORTH_RELEASED_BYTES)
		return;
	if (was_named)
		say(verdict, " Exit handlers or destructors released %s of it.", units_bytes(top->released_bytes, bytes));
	else
		say(verdict, " %s of %s was held until then, and released by exit handlers or destructors.",
		    units_bytes(top->released_bytes, bytes), verdict_line_text(top, place));
}

void
verdict_tell_exited(const struct verdict_facts *facts, struct verdict *verdict)
{
	bool has_holder = facts->top_live.leak == MODEL_LEAK_LEAK ||
	                  (verdict_does_next_grow(facts) && !rank_may_be_built_once(facts->next_live.telling));

	verdict_say_ending(facts, verdict);
	say(verdict, ".");
	if (facts->model->domain_count == 0 && model_unrecorded_bytes(facts->model) == 0)
		say(verdict, " No allocation of it was seen.");
	verdict_say_peak(facts, has_holder, verdict);
	verdict_tell_tight(facts, verdict);
	if (has_holder)
		say_holder(facts, verdict, end_words(facts));
	else
		verdict_tell_freed(facts, verdict);
	say_released(facts, has_holder, verdict);
	verdict_say_lost(facts, verdict);
}

static void
say_counter(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->cgroup_kills != 0)
		say(verdict, " (%s: the cgroup's oom_kill counter rose from %" PRIu64 " to %" PRIu64 "%s).",
		    verdict_confidence_name(verdict->confidence), facts->cgroup_kills_before,
		    facts->cgroup_kills_before + facts->cgroup_kills, facts->counters_are_late ? ", read after the fact" : "");
	else
		say(verdict, " (%s).", verdict_confidence_name(verdict->confidence));
}

static void
say_container_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	char limit[UNITS_TEXT_BYTES];

	say_who(facts, verdict);
	say(verdict, " was killed by the kernel because the container's ");
	if (facts->limit_bytes != UINT64_MAX)
		say(verdict, "memory limit of %s was reached", units_bytes(facts->limit_bytes, limit));
	else
		say(verdict, "memory limit was reached");
	say_counter(facts, verdict);
}

void
verdict_tell_container_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_container_limit(facts, verdict);
	if (facts->cgroup_kills == 0)
		say_usage(facts, verdict);
	say_holder(facts, verdict, "When it died");
	if (facts->limit_bytes != UINT64_MAX && facts->live_bytes > facts->limit_bytes)
		say(verdict, " More was live than the limit because not all of it was in memory: it was not touched yet%s",
		    facts->live_count > 1 ? ", swapped out, or of a process that had just ended." : ", or swapped out.");
	verdict_tell_pinned(facts, verdict);
}

static void
say_machine_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	if (facts->cgroup_kills != 0) {
		say(verdict, " was killed by the kernel because the machine ran out of memory");
		say_counter(facts, verdict);
	} else if (facts->machine_kills != 0) {
		say(verdict,
		    " was killed, and the kernel killed %" PRIu64 " process%s on this machine for lack of memory "
		    "in its time (%s: which ones is not counted).",
		    facts->machine_kills, facts->machine_kills == 1 ? "" : "es", verdict_confidence_name(verdict->confidence));
	} else {
		say(verdict, " was killed when the machine was almost out of memory (%s).",
		    verdict_confidence_name(verdict->confidence));
	}
}

void
verdict_say_death(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (verdict->cause == VERDICT_CONTAINER_LIMIT)
		return say_container_limit(facts, verdict);
	if (verdict->cause == VERDICT_MACHINE_MEMORY)
		return say_machine_memory(facts, verdict);
	verdict_say_ending(facts, verdict);
	say(verdict, ".");
}

void
verdict_tell_machine_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_machine_memory(facts, verdict);
	say_usage(facts, verdict);
	say_holder(facts, verdict, "When it died");
	verdict_tell_pinned(facts, verdict);
}

void
verdict_tell_shm_full(const struct verdict_facts *facts, struct verdict *verdict)
{
	char size[UNITS_TEXT_BYTES];

	say_who(facts, verdict);
	say(verdict,
	    " ended by SIGBUS, which is what touching shared memory gives when /dev/shm (%s) is full (%s: "
	    "shared mappings of that size were live).",
	    units_bytes(facts->process->identity->shm_bytes, size), verdict_confidence_name(verdict->confidence));
	say_holder(facts, verdict, "When it died");
}

void
verdict_say_ending(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	if (facts->end == VERDICT_END_SIGNAL)
		say(verdict, " was ended by signal %d (SIG%s)", facts->signal,
		    sigabbrev_np(facts->signal) != NULL ? sigabbrev_np(facts->signal) : "?");
	else if (facts->end == VERDICT_END_FAILED)
		say(verdict, " exited with status %d", facts->exit_code);
	else if (facts->process->state == KMEM_STATE_EXEC_REPLACED)
		say(verdict, " was replaced by another program (exec)");
	else if (facts->end == VERDICT_END_OK)
		say(verdict, facts->exit_code == 0 ? " exited normally, with status 0" : " exited by itself");
	else
		say(verdict, facts->end == VERDICT_END_RUNNING ? " is still running" : " ended without a clean exit");
}

void
verdict_tell_request_refused(const struct verdict_facts *facts, struct verdict *verdict)
{
	char live[UNITS_TEXT_BYTES];

	verdict_say_ending(facts, verdict);
	say(verdict, " after ");
	verdict_say_refusal(facts, verdict);
	verdict_say_if_caught(facts, verdict);
	verdict_say_limit(facts, verdict);
	if (verdict_was_perhaps_caught(facts))
		verdict_say_peak(facts, false, verdict);
	else if (verdict_is_request_alone(facts))
		say(verdict, " No more than %s was live then.", units_bytes(facts->live_bytes, live));
	/* An exception that unwinds releases what was held when the request was refused. */
	else if (facts->peak_bytes / 2 > facts->live_bytes)
		verdict_say_peak(facts, false, verdict);
	else
		say_holder(facts, verdict, "Then");
	verdict_tell_pinned(facts, verdict);
	verdict_say_lost(facts, verdict);
}

/* It is known that there was none. */
static bool
is_no_kill_counted(const struct verdict_facts *facts)
{
	return facts->is_kill_counted ? facts->cgroup_kills == 0 : facts->is_machine_counted && facts->machine_kills == 0;
}

/* " In its time the kernel killed ..." others, when this one ended in another way. */
static void
say_kills(const struct verdict_facts *facts, struct verdict *verdict)
{
	bool is_of_cgroup = facts->is_kill_counted;
	uint64_t kills = is_of_cgroup ? facts->cgroup_kills : facts->machine_kills;

	if (kills == 0)
		return;
	say(verdict, " In its time the kernel killed %" PRIu64 " process%s %s for lack of memory", kills,
	    kills == 1 ? "" : "es", is_of_cgroup ? "of its container" : "on this machine");
	if (is_of_cgroup)
		say(verdict, " (the cgroup's oom_kill counter rose from %" PRIu64 " to %" PRIu64 ")",
		    facts->cgroup_kills_before, facts->cgroup_kills_before + kills);
	say(verdict, ".");
}

void
verdict_tell_low_memory_daemon(const struct verdict_facts *facts, struct verdict *verdict)
{
	verdict_say_ending(facts, verdict);
	say(verdict, "; %sthe machine was almost out of memory, so a low-memory daemon may have sent it (%s).",
	    is_no_kill_counted(facts) ? "the kernel's counters do not show a kill, but " : "",
	    verdict_confidence_name(verdict->confidence));
	say_kills(facts, verdict);
	say_usage(facts, verdict);
	say_holder(facts, verdict, "When it died");
}

static void
say_memory_is_no_suspect(const struct verdict_facts *facts, struct verdict *verdict)
{
	bool is_accumulating = verdict_is_accumulating(facts);

	say_kills(facts, verdict);
	if (verdict_is_far_from_limits(facts))
		say(verdict, is_accumulating ? " Memory was far from the limits." : " Nothing here points at memory.");
	say_usage(facts, verdict);
}

void
verdict_tell_crashed(const struct verdict_facts *facts, struct verdict *verdict)
{
	verdict_say_ending(facts, verdict);
	say(verdict, ": it crashed or aborted, it was not killed for memory.");
	say_memory_is_no_suspect(facts, verdict);
	if (verdict_is_accumulating(facts))
		say_holder(facts, verdict, "When it died");
}

void
verdict_tell_signal(const struct verdict_facts *facts, struct verdict *verdict)
{
	verdict_say_ending(facts, verdict);
	if (is_no_kill_counted(facts))
		say(verdict, ", sent by a program or a person (which is not known): the kernel counted no kill for "
		             "memory here.");
	else
		say(verdict, "; who sent it is not known.");
	say_memory_is_no_suspect(facts, verdict);
	say_holder(facts, verdict, "When it died");
}

void
verdict_tell_failed(const struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t refused = facts->process->failed_count;
	bool is_accumulating = verdict_is_accumulating(facts);
	char count[UNITS_TEXT_BYTES];

	verdict_say_ending(facts, verdict);
	if (refused == 0)
		say(verdict, ": it ended by itself, and no request for memory was refused before.");
	else
		say(verdict,
		    ": it ended by itself; of its requests for memory %s %s refused before, and met later or done without.",
		    units_count(refused, count), refused == 1 ? "was" : "were");
	if (facts->exit_code > 128 && facts->exit_code < 128 + NSIG)
		say(verdict,
		    " A shell gives this status when a program that it ran was ended by signal %d; how that one "
		    "ended is not recorded here.",
		    facts->exit_code - 128);
	say_kills(facts, verdict);
	say_usage(facts, verdict);
	verdict_say_peak(facts, is_accumulating, verdict);
	if (is_accumulating)
		say_holder(facts, verdict, end_words(facts));
	else
		verdict_tell_freed(facts, verdict);
	verdict_say_lost(facts, verdict);
}

void
verdict_tell_gone(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	if (verdict_was_time_up(&facts->model->processes[0], facts->cgroup_kills))
		say(verdict, " was ended by timeout, whose own end says that the time was up (%s).",
		    verdict_confidence_name(verdict->confidence));
	else
		say(verdict,
		    " is gone without a clean-exit mark on the same boot: it was killed or crashed (%s); by which "
		    "signal is not known, because %s waited for it.",
		    verdict_confidence_name(verdict->confidence), facts->is_descendant ? "only its parent" : "nobody");
	if (facts->process->is_hidden)
		say(verdict, " It ran in another container than this command: from here it may still run unseen.");
	if (facts->is_kill_counted && facts->cgroup_kills == 0)
		say(verdict, " The kernel counted no kill for memory in its cgroup.");
	say_usage(facts, verdict);
	say_holder(facts, verdict, "When it ended");
}

void
verdict_tell_damage(const struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t unrecorded = model_unrecorded_bytes(facts->model);
	uint64_t elsewhere = rank_elsewhere_worth_bytes(facts->model);
	char bytes[UNITS_TEXT_BYTES];

	if (facts->model->capture_damage_count != 0)
		say(verdict, " The capture is damaged: figures are of what is intact, and may be too low.");
	if (facts->model->unlisted_bytes != 0)
		say(verdict, " %s of what was live is in no line, for its records are lost.",
		    units_bytes(facts->model->unlisted_bytes, bytes));
	if (unrecorded != 0)
		say(verdict, " There was no room to record allocations of %s in all: what is said of lines may be far too low.",
		    units_bytes(unrecorded, bytes));
	else if (elsewhere != 0)
		say(verdict,
		    " There was no room for the stacks of %s of what was held: it is booked at callers or at an unknown place.",
		    units_bytes(elsewhere, bytes));
}

void
verdict_tell_tight(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct kmem_heartbeat *beat = verdict_fullest(facts);
	char used[UNITS_TEXT_BYTES];
	char limit[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];

	if (beat != NULL)
		say(verdict, " At one look %s of the %s's %s were in use (%s).", units_bytes(verdict_used_bytes(beat), used),
		    beat->limit_bytes < facts->peak_process->identity->machine_bytes ? "container" : "machine",
		    units_bytes(beat->limit_bytes, limit),
		    units_share(verdict_share(verdict_used_bytes(beat), beat->limit_bytes), share));
}

/* "31 MiB", with what it copied of its parent's. */
static void
say_heft(const struct model_process *process, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];
	bool is_copied_unknown = process->copied_bytes < WORTH_BYTES && process->inherited_bytes >= WORTH_BYTES &&
	                         process->private_dirty_bytes == 0;
	bool was_higher = verdict_peak_of(process) / 2 > process->live_bytes && verdict_peak_of(process) >= WORTH_BYTES;

	say(verdict, "%s", units_bytes(process->live_bytes, bytes));
	if (was_higher)
		say(verdict, " (%s at its peak%s", units_bytes(verdict_peak_of(process), bytes),
		    is_copied_unknown ? "; " : ")");
	if (process->copied_bytes >= WORTH_BYTES)
		say(verdict, " and had copied at least %s of its parent's", units_bytes(process->copied_bytes, bytes));
	if (is_copied_unknown)
		say(verdict, "%show much it copied of its parent's %s is not known)", was_higher ? "" : " (",
		    units_bytes(process->inherited_bytes, bytes));
}

static void
say_first_lost(const struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t ended_ns = verdict_ended_ns(facts->process);
	uint64_t seen_ns = verdict_last_seen_ns(facts->first_lost);
	char bytes[UNITS_TEXT_BYTES];

	say(verdict, ". The first that was seen at work no more (who idles is not seen) was ");
	verdict_say_process(facts->first_lost, verdict);
	if (ended_ns > seen_ns)
		say(verdict, ", %.1f s before the end", (double)(ended_ns - seen_ns) / 1e9);
	say(verdict, "; it held %s", units_bytes(facts->first_lost->live_bytes, bytes));
}

void
verdict_say_lost(const struct verdict_facts *facts, struct verdict *verdict)
{
	char sum[UNITS_TEXT_BYTES];

	if (facts->lost_child == NULL || facts->lost_child == facts->process)
		return;
	if (facts->lost_count == 1)
		say(verdict, " One child process was ended by a signal or crashed: ");
	else
		say(verdict, " %zu child processes were ended by a signal or crashed, and held %s in sum; the largest, ",
		    facts->lost_count, units_bytes(facts->lost_bytes, sum));
	verdict_say_process(facts->lost_child, verdict);
	say(verdict, ", held ");
	say_heft(facts->lost_child, verdict);
	if (facts->first_lost != NULL)
		say_first_lost(facts, verdict);
	say(verdict, ". Which signal%s only %s parent knows; a pool that closes sends SIGTERM.",
	    facts->lost_count == 1 ? " it was" : "s those were", facts->lost_count == 1 ? "its" : "their");
}

void
verdict_tell_child_killed(const struct verdict_facts *facts, struct verdict *verdict)
{
	char sum[UNITS_TEXT_BYTES];

	verdict_say_ending(facts, verdict);
	say(verdict,
	    ", but in its time the kernel killed %" PRIu64
	    " process%s of its container for lack of memory (%s: the cgroup's "
	    "oom_kill counter rose from %" PRIu64 " to %" PRIu64 "%s), and ",
	    facts->cgroup_kills, facts->cgroup_kills == 1 ? "" : "es", verdict_confidence_name(verdict->confidence),
	    facts->cgroup_kills_before, facts->cgroup_kills_before + facts->cgroup_kills,
	    facts->counters_are_late ? ", read after the fact" : "");
	if (facts->lost_count == 1)
		say(verdict, "its child process ");
	else
		say(verdict, "%zu of its child processes ended without a clean exit, and held %s in sum; the largest, ",
		    facts->lost_count, units_bytes(facts->lost_bytes, sum));
	verdict_say_process(facts->lost_child, verdict);
	say(verdict, facts->lost_count == 1 ? " ended without a clean exit. It held " : ", held ");
	say_heft(facts->lost_child, verdict);
	say(verdict, ".");
	verdict_say_peak(facts, false, verdict);
}

static void
say_built(const struct verdict_facts *facts, struct verdict *verdict)
{
	for (size_t i = 0; i < facts->copies.built_count; i++) {
		const struct verdict_built *built = &facts->copies.built[i];
		const struct rank_line line = {
			.where = built->site->where, .largest = built->site, .domain = built->site->domain, .site_count = 1
		};
		char place[PLACE_TEXT_BYTES];
		char held[UNITS_TEXT_BYTES];
		char word[VERDICT_WORD_BYTES];

		say(verdict, "%s%s %s %s", i == 0 ? " (" : "; ", units_bytes(built->bytes, held),
		    verdict_where_word(facts, &line, word), verdict_line_text(&line, place));
	}
	if (facts->copies.built_count != 0)
		say(verdict, ")");
}

void
verdict_tell_copies(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_copies *copies = &facts->copies;
	char copied[UNITS_TEXT_BYTES];

	if (copies->child_count == 0)
		return;
	if (copies->child_count == 1)
		say(verdict, " One child process");
	else
		say(verdict, " %zu child processes", copies->child_count);
	say(verdict, " copied at least %s, in whole pages, of what ", units_bytes(copies->bytes, copied));
	verdict_say_process(copies->parent, verdict);
	say(verdict, " had built before it forked");
	say_built(facts, verdict);
	say(verdict, copies->child->python_version != 0
	                 ? ": reading a Python object writes its reference count, and a page that is written to is copied."
	                 : ": a page that is written to after the fork is copied.");
}
