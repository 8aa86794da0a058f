/*
 * words.h - which words do sentences share?
 *
 * When full   texts are cut.
 */
#ifndef WORDS_H
#define WORDS_H

#include "analysis/line_steps.h"
#include "base/memory.h"
#include "base/place.h"
#include "model/model_holders.h"
#include "verdict/findings.h"

#define say(verdict, ...) TEXT_ADD((verdict)->text, __VA_ARGS__)      // to the paragraph
#define say_next(verdict, ...) TEXT_ADD((verdict)->next, __VA_ARGS__) // to the one thing to do

/* Appends the text, in which {bytes}, {whole}, {rest} (of the whole), {share} and {where} stand for the finding's. */
void say_finding(const struct finding *finding, const char *text, struct verdict *verdict);

/* "train.py (pid 7)" */
void say_process(const struct model_process *process, struct verdict *verdict);

/* Of one line that was just told: what it held in all kinds of memory, where that is more. */
void say_all_kinds(const struct finding *finding, const struct verdict_line_sum *sum, struct verdict *verdict);

/* "31 MiB.", with what it copied of its parent's. */
void say_held(const struct model_process *process, struct verdict *verdict);

/* "for 2 MiB in heap at train.py:41 epoch" */
void say_wanted(const struct model *model, const struct model_failed *refused, struct verdict *verdict);

/* "a request for 2 MiB in heap at train.py:41 epoch was refused"; facts->refused is not NULL */
void say_refusal(const struct verdict_facts *facts, struct verdict *verdict);

/* "train.py:41 epoch", of a line in a ranking. */
const char *verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES]);

/* The same of a frame. */
const char *verdict_frame_text(const struct model_frame *frame, char text[PLACE_TEXT_BYTES]);

/* "blocks from 12 of 12 generations (stretches of the run) are still alive" */
void say_generations(const struct rank_line *line, struct verdict *verdict);

/* The first part of a way to what is held, cut: "local `service` of main() (grow.py:6) -> Cache .pages ...". bytes: of it at most. */
#define VERDICT_WAY_BYTES 320
#define VERDICT_WAY_ROOM ((char[VERDICT_WAY_BYTES]){ 0 }) // as PLACE_ROOM
const char *verdict_way_text(const struct holders_way *way, size_t first, size_t count, bool is_cut,
                             char text[VERDICT_WAY_BYTES]); // as model_way_words()
/* All of it; "local `total` of fit() through 3,187 linked graph nodes". */
const char *verdict_way_short(const struct holders_way *way, char text[VERDICT_WAY_BYTES]);

/* "allocated at", before verdict_line_text(). */
#define VERDICT_WORD_BYTES 160
#define VERDICT_WORD_ROOM ((char[VERDICT_WORD_BYTES]){ 0 }) // as PLACE_ROOM
const char *verdict_where_word(const struct verdict_facts *facts, const struct rank_line *line,
                               char text[VERDICT_WORD_BYTES]);

/* "100 steps", "about 100 rounds (seen at train.py:41), 86.0 MiB an hour" */
#define VERDICT_STEPS_BYTES 320
#define VERDICT_STEPS_ROOM ((char[VERDICT_STEPS_BYTES]){ 0 }) // as PLACE_ROOM
const char *verdict_steps_text(const struct line_steps *kept, char text[VERDICT_STEPS_BYTES]);

/* ", or it is a one-time load ...", or nothing */
const char *if_built_once(const struct rank_line *line);
/* Was it allocated deep in calls of its function by itself, and may these hold it? Then it grows with their depth. */
bool verdict_is_of_recursion(const struct verdict_facts *facts, const struct rank_line *line);

/* `many` is the ending of the word: "s", "es". */
static inline const char *
plural(uint64_t count, const char *many)
{
	return count == 1 ? "" : many;
}

#endif
