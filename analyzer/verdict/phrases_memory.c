/*
 * phrases_memory.c - how is it said what was in memory, live or at the peak, and what figures leave out?
 *
 * "Live" is what was allocated and not freed; "in memory" is what occupies physical memory.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/amount.h"
#include "base/units.h"
#include "verdict/words.h"

#define FILLED_PART 16 // of what the last look saw untouched: less is an error of that look
#define TOLD_PART 20   // of what was in memory: smaller parts are summed up
#define OLD_PART 8     // memory differs by that much: the sample was of another time
#define OLD_NS UINT64_C(1000000000)

/* What malloc adds to each block is in memory and not live: the sample then seems to contradict what is told next. */
static bool
is_more_than_live(const struct verdict_facts *facts)
{
	uint64_t lines_bytes = facts->memory.lines_bytes;

	return facts->memory.age_ns < OLD_NS && lines_bytes / 100 * 99 > facts->live_bytes &&
	       lines_bytes <= facts->live_bytes / 16 * 17;
}

static void
say_files(const struct rank_line *line, struct verdict *verdict)
{
	say(verdict, " Most of the files were mapped at %s.", verdict_line_text(line, PLACE_ROOM));
}

/* Not the lines that are named, one function, or what accumulates. Of a program that is well nothing is to be explained. */
static bool
is_explained_by_none(const struct verdict_facts *facts)
{
	uint64_t first_bytes = amount_greater(facts->top_live.live_bytes, facts->top_live_sum.bytes);

	return facts->end != VERDICT_END_OK && facts->top_live.site_count != 0 &&
	       !verdict_holds_a_third(facts, first_bytes + facts->next_live.live_bytes + facts->import_bytes) &&
	       !verdict_holds_a_third(facts, facts->leaking_bytes);
}

PHRASE(PARTS)
{
	const struct verdict_memory *memory = &facts->memory;
	bool are_files_told = memory->files.site_count != 0 && verdict_holds_a_third(facts, memory->files_bytes);
	bool is_builder_told = memory->inherited.site_count != 0 && verdict_holds_a_third(facts, memory->inherited_bytes);
	uint64_t rest_bytes = 0;
	char bytes[UNITS_TEXT_BYTES];

	(void)units_bytes(memory->bytes, bytes);
	if (memory->is_of_container)
		say(verdict, " Of the %s that the container had in use at the last sample", bytes);
	else
		say(verdict, " Of the %s that %s in memory at the last sample", bytes,
		    facts->live_count > 1 ? "its processes had" : "it had");
	for (size_t i = 0; i < memory->part_count; i++) {
		if (i >= VERDICT_PARTS_TOLD || (i != 0 && memory->parts[i].bytes < memory->bytes / TOLD_PART)) {
			rest_bytes += memory->parts[i].bytes;
			continue;
		}
		say(verdict, "%s %s was %s%s", i == 0 ? "," : ";", units_bytes(memory->parts[i].bytes, bytes),
		    memory->parts[i].name,
		    memory->parts[i].is_lines && is_more_than_live(facts) ? " (with what malloc adds)" : "");
	}
	if (rest_bytes != 0)
		say(verdict, "; the rest was %s", units_bytes(rest_bytes, bytes));
	say(verdict, ".");
	if (are_files_told)
		say_files(&memory->files, verdict);
	if (is_builder_told)
		say(verdict, " Most of what was there before the fork was %s %s.",
		    verdict_where_word(facts, &memory->inherited, VERDICT_WORD_ROOM),
		    verdict_line_text(&memory->inherited, PLACE_ROOM));
	/* Also where the sample is of another time than what is told beside it. */
	if (memory->age_ns >= OLD_NS && memory->later_bytes >= memory->sample_bytes / OLD_PART)
		say(verdict, " That sample was taken %.1f s before the end, when %s was in memory.",
		    (double)memory->age_ns / 1e9, units_bytes(memory->process_bytes - memory->later_bytes, bytes));
	if (memory->starter != NULL && verdict_holds_a_third(facts, memory->stacks_bytes))
		say(verdict, " %s of the threads whose stacks were there were started at %s.",
		    UNITS_COUNT(memory->starter->live_count), verdict_frame_text(memory->starter->where, PLACE_ROOM));
	else if (verdict_was_mostly_released(facts))
		say(verdict, " Most of what lines held then was released afterwards.");
	else if (!are_files_told && !is_builder_told && is_explained_by_none(facts))
		say(verdict, " No line explains it: none holds a third of it.");
}

/* The line comes early: its few blocks are what to look for. */
PHRASE(FREED)
{
	const struct verdict_freed *freed = &facts->memory.freed;
	uint64_t used_bytes = freed->heap_bytes > freed->freed_bytes ? freed->heap_bytes - freed->freed_bytes : 0;

	say(verdict, " Freed memory was not given back (fragmentation): ");
	if (freed->is_later)
		say(verdict, "at the last sample ");
	else if (freed->age_ns >= OLD_NS && facts->end != VERDICT_END_RUNNING)
		say(verdict, "%.1f s before the end ", (double)freed->age_ns / 1e9);
	say(verdict, "malloc ");
	if (facts->model->process_count > 1) {
		say(verdict, "of ");
		say_process(freed->process, verdict);
		say(verdict, " ");
	}
	say(verdict, "had %s in memory, but only about %s of it (%s) was in use.", UNITS_BYTES(finding->whole_bytes),
	    UNITS_BYTES(used_bytes), UNITS_SHARE(verdict_share(used_bytes, finding->whole_bytes)));
	if (verdict_sparse_of(freed) != 0 && finding->line.site_count != 0)
		say(verdict, " A few blocks, most of them allocated at %s, keep %s in memory until they are freed.",
		    verdict_line_text(&finding->line, PLACE_ROOM), UNITS_BYTES(freed->sparse_bytes));
	else if (verdict_sparse_of(freed) != 0)
		say(verdict, " A few blocks keep %s in memory until they are freed.", UNITS_BYTES(freed->sparse_bytes));
	if (freed->empty_bytes >= freed->freed_bytes / 10 && freed->empty_bytes != 0)
		say(verdict, " malloc_trim(0) gives back %s%s: pages without any block.", freed->is_later ? "at least " : "",
		    UNITS_BYTES(freed->empty_bytes));
}

/* "At the end": the moment of what was live. */
static const char *
moment(const struct verdict_facts *facts, const struct verdict *verdict)
{
	if (facts->live_process->moment_ns != 0)
		return "At the snapshot";
	switch (verdict->cause) {
	case VERDICT_RESTARTED:
	case VERDICT_NOT_CLOSED:
		return "When recording stopped";
	case VERDICT_RUNNING:
		return "Just now";
	case VERDICT_REQUEST_REFUSED:
		return "At that moment";
	case VERDICT_EXITED:
	case VERDICT_FAILED:
		return facts->live_process->is_at_exit      ? "When it began to exit"
		       : facts->live_process->is_finalizing ? "When Python began to shut down"
		                                            : "At the end";
	default:
		return "At the end";
	}
}

/* Who ends by itself is looked at then. Others may have filled what they had asked for after the last look. */
static bool
is_end_sampled(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED || facts->end == VERDICT_END_RUNNING;
}

/* What is put together from before and after the last look is no sample. "": it is what that look saw. */
static const char *
filled_words(const struct verdict_facts *facts)
{
	const struct model_process *process = facts->live_process;

	if (process == NULL || process->filled_bytes <= (process->filled_bytes + process->untouched_bytes) / FILLED_PART)
		return "";
	return process->is_filling_known ? "about " : "at most ";
}

PHRASE(LIVE)
{
	bool is_one_domain_told = facts->refused == NULL &&
	                          (facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED) &&
	                          facts->peak_domain != NULL && facts->live_bytes > facts->peak_bytes;

	say(verdict, " %s %s was live", moment(facts, verdict), UNITS_BYTES(finding->bytes));
	if (facts->model->process_count == 1 && verdict->cause == VERDICT_RUNNING && facts->refused != NULL &&
	    verdict_is_device_request(facts))
		say(verdict, " on the host"); // what the device has was told before
	else if (facts->model->process_count == 1 && is_one_domain_told)
		say(verdict, " in all%s", verdict_has_device(facts) ? " on the host" : "");
	if (verdict_is_in_memory_told(facts))
		say(verdict, ", %s%s of it in memory%s", filled_words(facts), UNITS_BYTES(facts->live_bytes),
		    is_end_sampled(facts) || filled_words(facts)[0] != '\0' ? "" : " at the last sample");
	if (facts->live_count > 1)
		say(verdict, " in the %zu processes that were at work then, %s of it in ", facts->live_count,
		    UNITS_BYTES(facts->live_process_bytes +
		                (verdict_is_in_memory_told(facts) ? 0 : facts->live_process_untouched_bytes)));
	else if (facts->model->process_count > 1)
		say(verdict, " in ");
	if (facts->model->process_count > 1)
		say_process(facts->live_process, verdict);
	say(verdict, ".");
}

PHRASE(UNTOUCHED)
{
	const char *filled = filled_words(facts);

	say_finding(finding, " Of the {whole} that {where} asked for, ", verdict);
	say(verdict, "%s", filled[0] != '\0' ? filled : "only ");
	say_finding(finding, "{rest}", verdict);
	say(verdict, " %s in memory%s.", facts->end == VERDICT_END_RUNNING ? "is" : "was",
	    filled[0] != '\0' || is_end_sampled(facts) ? "" : " then");
}

PHRASE_TEXT(SHARED_LINE, " {bytes} of its shared memory ({share}) was allocated at {where}.")

PHRASE(OVER_LIMIT)
{
	say(verdict, " More was live than the limit because not all of it was in memory: it was not touched yet%s",
	    facts->live_count > 1 ? ", swapped out, or of a process that had just ended." : ", or swapped out.");
}

/* ---- the peak ---- */

/* What a domain is to a person, behind "up to 100 MiB of it". */
static const char *
kind_words(const struct model_domain *domain)
{
	switch (domain->id.kind) {
	case DOMAIN_HEAP:
		return "in its heap";
	case DOMAIN_MMAP:
		return "in mappings";
	case DOMAIN_SHARED:
		return "in shared memory";
	case DOMAIN_PYTHON_ARENA:
		return "in arenas of small Python objects";
	case DOMAIN_PYTHON_OBJECT:
		return "in small Python objects";
	case DOMAIN_LIBRARY:
		return "in allocators of libraries";
	default:
		return NULL;
	}
}

/* What was not in memory at the last look was not at the peak; of the rest more was not, where all of it would be more than ever was there. */
static bool
is_untouched_told(const struct verdict_facts *facts)
{
	uint64_t most_bytes = verdict_most_resident_of(facts->process);

	return facts->model->process_count == 1 && facts->peak_domain != NULL && most_bytes != 0 &&
	       facts->peak_bytes > most_bytes && verdict_is_peak_told_in_memory(facts);
}

/* All of it first, and then the kind of memory that took most, of which its lines are told next. */
static void
say_own_peak(const struct verdict_facts *facts, uint64_t bytes, struct verdict *verdict)
{
	const struct model_domain *domain = facts->peak_domain;
	uint64_t whole_bytes = facts->model->process_count == 1 ? verdict_most_resident_of(facts->process) : 0;
	bool is_touched = !verdict_is_peak_told_in_memory(facts);
	char peak[UNITS_TEXT_BYTES];
	char name[PLACE_TEXT_BYTES];

	(void)units_bytes(bytes, peak);
	const char *whole = UNITS_BYTES(whole_bytes);
	if (domain == NULL)
		(void)snprintf(name, sizeof(name), "at once");
	else if (kind_words(domain) != NULL)
		(void)snprintf(name, sizeof(name), "%s", kind_words(domain));
	else
		(void)snprintf(name, sizeof(name), "in %s", domain->name);
	if (whole_bytes >= bytes && is_touched) {
		say(verdict, " It had at most %s in memory, up to %s of it %s.", whole, peak, name);
		return;
	}
	if (whole_bytes != 0)
		say(verdict, " It had at most %s in memory.", whole);
	say(verdict, " It held at most %s %s", peak, name);
	if (is_untouched_told(facts))
		say(verdict, ", at least %s of it untouched", units_bytes(facts->peak_untouched_bytes, peak));
	else if (!is_touched && domain != NULL)
		say(verdict, ", %s of it touched", units_bytes(facts->peak_bytes, peak));
	say(verdict, ".");
}

PHRASE(PEAK_IN_IMPORT)
{
	say(verdict, " The peak came while it imported %s", facts->peak_import);
	if (finding->bytes != 0)
		say(verdict, "; at the end it had %s", UNITS_BYTES(finding->bytes));
	say(verdict, ".");
}

PHRASE_TEXT(LITTLE_AT_END, " At the end it had {bytes}.")

PHRASE(PEAK)
{
	const char *domain = facts->peak_domain != NULL ? facts->peak_domain->name : NULL;

	if (facts->peak_process == facts->process) {
		say_own_peak(facts, finding->bytes, verdict);
	} else {
		say(verdict, " Of its processes, ");
		say_process(facts->peak_process, verdict);
		say(verdict, " had the highest peak: %s", UNITS_BYTES(finding->bytes));
		if (domain != NULL && finding->bytes != facts->peak_bytes)
			say(verdict, " in all, %s of it in %s", UNITS_BYTES(facts->peak_bytes), domain);
		else if (domain != NULL)
			say(verdict, " of %s", domain);
		say(verdict, ".");
	}
}

PHRASE(PEAK_LINE)
{
	if (verdict_is_rest_of_arenas(&finding->line))
		say_finding(finding, " {bytes} of that ({share}) was left free in arenas of small Python objects.", verdict);
	else if (verdict_is_arena(facts, &finding->line))
		say(verdict, " It held small Python objects.");
	else
		say_finding(finding,
		            is_untouched_told(facts) ? " {bytes} of the rest ({share}) was allocated at {where}."
		                                     : " {bytes} of that ({share}) was allocated at {where}.",
		            verdict);
	say_all_kinds(finding, &facts->top_peak_sum, verdict);
}

PHRASE(LITTLE_ROOM)
{
	bool is_container = finding->whole_bytes < facts->peak_process->identity->machine_bytes;

	say_finding(finding,
	            is_container ? " At one sample {bytes} of the container's {whole} was in use ({share})."
	                         : " At one sample {bytes} of the machine's {whole} was in use ({share}).",
	            verdict);
}

PHRASE_TEXT(PEAK_IMPORTS, " {bytes} of the {whole} ({share}) was left by imports.")

/* ---- what the figures leave out ---- */

PHRASE_TEXT(
	LIBRARIES,
	" Of the {whole} in memory at the last sample, {bytes} ({share}) was code and data of the program and its libraries.")

PHRASE(MAPPED_FILES)
{
	say_finding(finding,
	            " Of the {whole} in memory at the last sample, {bytes} ({share}) was pages of files and shared memory.",
	            verdict);
	say_files(&finding->line, verdict);
}

PHRASE(RECORDER)
{
	bool is_after_libraries = finding != verdict->findings && finding[-1].kind == FINDING_LIBRARIES;

	say_finding(finding,
	            is_after_libraries
	                ? " {bytes} of it ({share}) was the recorder's own."
	                : " Of the {whole} in memory at the last sample, {bytes} ({share}) was the recorder's own.",
	            verdict);
}

PHRASE_TEXT(DAMAGE, " The capture is damaged: figures cover only what is intact, and may be too low.")
PHRASE_TEXT(UNLISTED, " {bytes} of what was live belongs to no line: its records are lost.")
PHRASE_TEXT(UNRECORDED,
            " There was no room to record allocations of {bytes} in all: the figures of lines may be too low.")
PHRASE_TEXT(
	ELSEWHERE,
	" There was no room for the stacks of {bytes} of what was held: it is counted at callers or at an unknown place.")
PHRASE_TEXT(HIDDEN_HEAP,
            " The heap is missing in these figures: another malloc stands before the recorder's (see the notes).")

PHRASE(FORECAST)
{
	const struct verdict_forecast *forecast = &facts->forecast;
	bool is_running = facts->end == VERDICT_END_RUNNING;

	say(verdict, " At %s rate (%s a minute) the limit of %s %s reached ", is_running ? "this" : "that",
	    UNITS_BYTES(forecast->bytes_per_minute), UNITS_BYTES(forecast->limit_bytes),
	    is_running ? "is" : "would have been");
	if (forecast->minutes < 2)
		say(verdict, "within two minutes");
	else if (forecast->minutes < 120)
		say(verdict, "in about %" PRIu64 " minutes", forecast->minutes);
	else
		say(verdict, "in about %" PRIu64 " hours", forecast->minutes / 60);
	if (forecast->steps != 0)
		say(verdict, ", after about %s more %s", UNITS_COUNT(units_rounded(forecast->steps, 2)),
		    forecast->steps_source == KMEM_STEPS_LOOP ? "rounds" : "steps");
	say(verdict, ".");
}
