/*
 * terminal.h - is a stream somebody's terminal, and what can be shown there?
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TERMINAL_COLORS "auto, always or never"
enum terminal_color { TERMINAL_COLOR_AUTO, TERMINAL_COLOR_ALWAYS, TERMINAL_COLOR_NEVER };

/* "auto", "always", "never"; false: none of them. */
bool terminal_color_of(const char *word, enum terminal_color *color);

/* With auto: on a terminal that is not TERM=dumb, unless NO_COLOR is set and not empty (no-color.org). */
bool terminal_has_color(FILE *stream, enum terminal_color wanted);

/* Of the terminal; 80 when it is none, or does not say it. */
size_t terminal_columns(FILE *stream);

#endif
