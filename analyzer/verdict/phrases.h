/*
 * phrases.h - how is a finding said?
 *
 * Safe from   one thread.
 * When full   texts are cut.
 */
#ifndef PHRASES_H
#define PHRASES_H

#include "base/place.h"
#include "verdict/findings.h"

/* Appends to the paragraph. */
__attribute__((format(printf, 2, 3))) void say(struct verdict *verdict, const char *format, ...);

/* Appends to the one thing to do. */
__attribute__((format(printf, 2, 3))) void say_next(struct verdict *verdict, const char *format, ...);

/* Appends the sentences of all findings. */
void verdict_say(const struct verdict_facts *facts, struct verdict *verdict);

/* "train.py:41 epoch", of a line in a ranking. */
const char *verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES]);

/* "allocated at", before verdict_line_text(). */
#define VERDICT_WORD_BYTES 160
const char *verdict_where_word(const struct verdict_facts *facts, const struct rank_line *line,
                               char text[VERDICT_WORD_BYTES]);

#endif
