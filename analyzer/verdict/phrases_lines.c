/*
 * phrases_lines.c - how is it said which line held memory, and whether it accumulates?
 *
 * A line is where memory was allocated, not where the mistake is.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/grows_with.h"
#include "analysis/line_steps.h"
#include "base/items.h"
#include "base/text_start.h"
#include "base/units.h"
#include "verdict/words.h"

/* "401 MiB of it (82 %) was " */
static void
say_part(const struct verdict_facts *facts, const struct finding *finding, struct verdict *verdict)
{
	say_finding(finding,
	            facts->live_count > 1              ? " {bytes} of all that ({share}) was "
	            : verdict_is_in_memory_told(facts) ? " {bytes} of that ({share}) was "
	                                               : " {bytes} of it ({share}) was ",
	            verdict);
}

PHRASE(IMPORTS)
{
	if (finding->is_after_line)
		say_finding(finding, " Another {bytes} ({share}) was ", verdict);
	else
		say_part(facts, finding, verdict);
	say(verdict, "left by imports.");
}

PHRASE(LINE)
{
	say_part(facts, finding, verdict);
	say(verdict, "%s", verdict_where_word(facts, &finding->line, VERDICT_WORD_ROOM));
	say_finding(finding, " {where}.", verdict);
	if (facts->next_live.where != finding->line.where) // else the other kind is told next
		say_all_kinds(finding, &facts->top_live_sum, verdict);
}

/* Of processes that may have run one after the other a line's figures are sums, of its domain's sum. */
PHRASE(LINE_OF_ALL)
{
	bool is_peak = finding->kind == FINDING_PEAK_LINE_OF_ALL;
	uint32_t processes = is_peak ? facts->top_peak_processes : facts->top_live_processes;
	const char *when = is_peak                             ? "at their peaks"
	                   : facts->end == VERDICT_END_RUNNING ? "now, or at their ends"
	                                                       : "at their ends";

	say(verdict, " Summed over all its processes, %s ", UNITS_BYTES(finding->bytes));
	if (verdict_is_rest_of_arenas(&finding->line))
		say(verdict, "was left free in arenas of small Python objects, %s", when);
	else if (verdict_is_arena(facts, &finding->line))
		say(verdict, "was in arenas of small Python objects, without what imports left there, %s", when);
	else
		say(verdict, "of the %s of %s that they held %s was allocated at %s", UNITS_BYTES(finding->whole_bytes),
		    facts->model->domains[finding->line.domain].name, when, verdict_line_text(&finding->line, PLACE_ROOM));
	if (!is_peak && facts->top_live_process != NULL) {
		say(verdict, ", nearly all of it in ");
		say_process(facts->top_live_process, verdict);
	} else if (processes > 1) {
		say(verdict, ", in %" PRIu32 " of them", processes);
	}
	say(verdict, ".");
}

PHRASE(PEAK_LINE_OF_ALL)
{
	say_LINE_OF_ALL(facts, finding, verdict);
}

static void
say_steps(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	struct line_steps kept = line_steps_of(facts->model, line);

	if (kept.count != 0)
		say(verdict, " %s%s was kept in each of %s.", kept.is_one_block ? "One block of " : "", UNITS_BYTES(kept.bytes),
		    verdict_steps_text(&kept, VERDICT_STEPS_ROOM));
}

PHRASE(ACCUMULATES)
{
	const struct rank_line *line = &finding->line;
	bool is_part = line->leaking_bytes < line->live_bytes / 10 * 9; // that grows

	if (verdict_is_of_recursion(facts, line))
		say(verdict, " It grows with the depth of %s, which calls itself: ", line->where->function);
	else if (line->telling->is_of_call)
		say(verdict, " It grows in a call that has not returned, as a load does: ");
	else
		say(verdict, " It looks like a leak%s: ", if_built_once(line));
	if (is_part)
		say(verdict, "%s in ", UNITS_BYTES(line->leaking_bytes));
	say_generations(line, verdict);
	say(verdict, ".");
	say_steps(facts, line, verdict);
}

PHRASE(MAY_ACCUMULATE)
{
	bool is_told = finding->is_told || finding->kind == FINDING_MAY_ACCUMULATE;

	say_finding(finding, is_told ? " It" : " What is allocated at {where}", verdict);
	say(verdict,
	    " may be a leak: none of its %" PRIu32
	    " generations (stretches of the run) was released, but they are too few to tell.",
	    finding->line.telling->generations_total);
}

PHRASE(FILLING)
{
	say(verdict, " It keeps its blocks, but adds fewer and fewer, as a cache that fills: it seems to end at about %s.",
	    UNITS_BYTES(finding->whole_bytes));
}

PHRASE_TEXT(
	BACKLOG,
	" Its blocks are released late, or fewer than it takes: a backlog, such as a queue that is drained too slowly.")

PHRASE(DOMAIN_MAY_ACCUMULATE)
{
	say_MAY_ACCUMULATE(facts, finding, verdict);
}

#define SAMPLES_BYTES 128

/* Which of the samples the first way is of, as a subject: "they", "20 of 32 samples of them", "all 10 samples (of 32) that could be followed in time". */
static const char *
samples_text(const struct holders_line *held, char text[SAMPLES_BYTES])
{
	const struct holders_way *way = &held->ways[0];
	uint64_t unfinished = SUM_OF(other, held->ways, held->way_count,
	                             other->kind == HOLDERS_UNFINISHED ? other->samples : 0);
	uint64_t followed = held->samples - (unfinished < held->samples ? unfinished : 0);

	if (way->samples == held->samples)
		return "they";
	if (unfinished == 0 || way->kind == HOLDERS_UNFINISHED)
		(void)snprintf(text, SAMPLES_BYTES, "%" PRIu64 " of %" PRIu64 " samples of them", way->samples, held->samples);
	else if (way->samples == followed)
		(void)snprintf(text, SAMPLES_BYTES, "all %" PRIu64 " samples (of %" PRIu64 ") that could be followed in time",
		               followed, held->samples);
	else
		(void)snprintf(text, SAMPLES_BYTES,
		               "%" PRIu64 " of the %" PRIu64 " samples (of %" PRIu64 ") that could be followed in time",
		               way->samples, followed, held->samples);
	return text;
}

PHRASE(HOLDER)
{
	const struct holders_line *held = verdict_holders_of(facts, &finding->line);
	const struct holders_way *way = &held->ways[0];
	char text[VERDICT_WAY_BYTES];
	char samples[SAMPLES_BYTES];
	const char *most = samples_text(held, samples);
	const char *to_most = strcmp(most, "they") == 0 ? "them" : text_starts(most, "all ") ? most + strlen("all ") : most;

	(void)verdict_way_short(way, text);
	say(verdict, model_holders_look(facts->model, held)->leak_bytes != 0 ? " When the launcher looked, "
	                                                                     : " When the guard was passed, ");
	if (way->kind == HOLDERS_UNFINISHED)
		say(verdict, "there was no time to find what holds %s.", to_most);
	else if (model_holders_are_circles(way))
		say(verdict, "%s were in circles of objects, which the garbage collector (gc) frees.", most);
	else if (way->kind == HOLDERS_LOST && way->text[0] != '\0')
		say(verdict, "only lost blocks led to %s any more: %s.", to_most, text);
	else if (way->kind == HOLDERS_LOST)
		say(verdict, "no pointer led to %s any more.", to_most);
	else if (way->kind == HOLDERS_UNSEEN)
		say(verdict, "%s were held by something that was not found: %s.", most, text);
	else if (way->kind == HOLDERS_UNREAD)
		say(verdict, "nothing that was read led to %s.", to_most);
	else
		say(verdict, "%s were held%s by %s.", most, way->kind == HOLDERS_PERHAPS ? ", perhaps," : "", text);
}

PHRASE(NEXT_LINE)
{
	bool does_grow = finding->line.leak == MODEL_LEAK_LEAK;

	if (strcmp(verdict_line_text(&finding->line, PLACE_ROOM), verdict_line_text(&facts->top_live, PLACE_ROOM)) == 0) {
		say_finding(finding, " Another {bytes} ({share}) was allocated at the same line in ", verdict);
		say(verdict, "%s", facts->model->domains[finding->line.domain].name);
	} else {
		say_finding(finding, " Another {bytes} ({share}) was allocated at {where}", verdict);
	}
	say(verdict, "%s.",
	    !does_grow                                              ? ""
	    : lines_grow_together(&facts->top_live, &finding->line) ? ", block for block with it: one thing may keep both"
	    : facts->top_live.leak == MODEL_LEAK_LEAK               ? ", which looks like a leak too"
	                                                            : ", which looks like a leak");
}

PHRASE(LAST_TAKER)
{
	uint64_t before_bytes = finding->whole_bytes > finding->bytes ? finding->whole_bytes - finding->bytes : 0;

	say_finding(finding, finding->is_told ? " It" : " {where} ({bytes})", verdict);
	say(verdict, " was the last to take much: before it, %s was live.", UNITS_BYTES(before_bytes));
}

PHRASE_TEXT(BESIDE_ARENAS, " Larger blocks of {where} ({bytes}) look like a leak too, perhaps of the same objects.")

PHRASE(BESIDE)
{
	bool is_of_one = facts->model->process_count == 1;

	if (!is_of_one)
		say(verdict, " In ");
	if (!is_of_one && finding->process != NULL)
		say_process(finding->process, verdict);
	else if (!is_of_one)
		say(verdict, "several processes");
	say_finding(finding, is_of_one ? " Blocks of {where} ({bytes})" : ", blocks of {where} ({bytes})", verdict);
	say(verdict, " %s%s.", rank_may_be_built_once(finding->line.telling) ? "may be a leak" : "look like a leak",
	    facts->top_live.leak == MODEL_LEAK_LEAK ? " too" : "");
}

PHRASE(RELEASED_AT_EXIT)
{
	say_finding(finding,
	            finding->is_told
	                ? " Exit handlers or destructors released {bytes} of it."
	                : " {bytes} of {where} was held until the end, and released by exit handlers or destructors.",
	            verdict);
}
