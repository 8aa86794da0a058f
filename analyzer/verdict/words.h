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

#define say(verdict, ...) \
	TEXT_ADD((verdict)->said[(verdict)->rank], __VA_ARGS__)           // of a finding, in the rank that is set
#define say_next(verdict, ...) TEXT_ADD((verdict)->next, __VA_ARGS__) // to the one thing to do

/* "train.py (pid 7)" */
const char *verdict_process_text(const struct model_process *process, char text[PLACE_TEXT_BYTES]);

/* Appends "31 MiB.", with what it copied of its parent's. */
void verdict_add_held(const struct model_process *process, char *text, size_t bytes);

/* "train.py:41 epoch", of a line in a ranking. */
const char *verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES]);

/* The same of a frame. */
const char *verdict_frame_text(const struct model_frame *frame, char text[PLACE_TEXT_BYTES]);

/* A way to what is held; of a long one the first and the last part: "local `service` of main() (grow.py:6) -> ... -> Cache .pages". */
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

/* "for 2 MiB in heap at train.py:41 epoch" */
const char *verdict_wanted_text(const struct model *model, const struct model_failed *refused,
                                char text[VERDICT_STEPS_BYTES]);

/* Was it allocated deep in calls of its function by itself, and may these hold it? Then it grows with their depth. */
bool verdict_is_of_recursion(const struct verdict_facts *facts, const struct rank_line *line);

/* `many` is the ending of the word: "s", "es". */
static inline const char *
plural(uint64_t count, const char *many)
{
	return count == 1 ? "" : many;
}

#endif
