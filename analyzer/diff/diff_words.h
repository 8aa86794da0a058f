/*
 * diff_words.h - what do text and Markdown write alike?
 */
#ifndef DIFF_WORDS_H
#define DIFF_WORDS_H

#include "base/units.h"
#include "diff/diff.h"

/* "+128 MiB", "-3 KiB", "0 B" */
#define DIFF_CHANGE_BYTES (UNITS_TEXT_BYTES + 1)
#define DIFF_CHANGE_ROOM ((char[DIFF_CHANGE_BYTES]){ 0 }) // as PLACE_ROOM
const char *diff_change_text(int64_t change, char text[DIFF_CHANGE_BYTES]);

/* What leaks, what it was called, how sure it is: "was train.py:35 train; leaks 12 MiB"; "" when there is nothing to say. For free(). */
char *diff_remark(const struct diff *diff, const struct diff_row *row);

/* What is not in the rows, a line each, number from 0; false behind the last. */
#define DIFF_REST_BYTES 200
bool diff_rest_text(const struct diff *diff, const struct diff_section *section, unsigned number,
                    char text[DIFF_REST_BYTES]);

/* Over the rows of a state. */
const char *diff_heading(const struct diff *diff, enum diff_state state);

#endif
