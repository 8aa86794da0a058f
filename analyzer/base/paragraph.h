/*
 * paragraph.h - how is a text of several sentences laid out in lines?
 */
#ifndef PARAGRAPH_H
#define PARAGRAPH_H

#include <stddef.h>
#include <stdio.h>

#define PAGE_COLUMNS 100 // of a page that is not for a terminal

/*
 * A paragraph in lines of `columns`. Its first line starts at `column`, the others at `indent`. Lines are broken between words, but not
 * between a number and its unit, nor inside a command in backquotes, which somebody may copy. Control characters are replaced.
 *
 * stream   NULL: nothing is written
 * returns  how many lines it takes
 */
size_t paragraph_put(FILE *stream, size_t columns, const char *text, size_t indent, size_t column);

/*
 * The text in at most so many columns: a longer one loses its middle, "a_long_f...ction_name". For free().
 *
 * columns  SIZE_MAX: nothing is cut; never less than 8
 */
char *text_fitted(const char *text, size_t columns);

/* Columns that a text takes; of UTF-8, one for each character. */
size_t text_columns(const char *text, size_t bytes);

#endif
