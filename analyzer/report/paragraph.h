/*
 * paragraph.h - how is a text of several sentences laid out in lines?
 */
#ifndef PARAGRAPH_H
#define PARAGRAPH_H

#include <stddef.h>
#include <stdio.h>

#define PAGE_COLUMNS 100 // of what is no terminal's

/*
 * A paragraph of lines of `columns`, every line behind `indent` spaces but the first, which starts at `column`. Broken between words, but
 * not between a number and its unit, nor inside a command in backquotes, which somebody may copy. Control characters are replaced.
 *
 * stream   NULL: nothing is written
 * returns  how many lines it takes
 */
size_t paragraph_put(FILE *stream, size_t columns, const char *text, size_t indent, size_t column);

/*
 * The text in so many columns; what does not fit leaves its middle, between two characters: "a_long_f...ction_name". For free().
 *
 * columns  SIZE_MAX: nothing is cut; never less than 8
 */
char *text_fitted(const char *text, size_t columns);

/* Columns that a text takes; of UTF-8, one for each character. */
size_t text_columns(const char *text, size_t bytes);

#endif
