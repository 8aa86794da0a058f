/*
 * top.h - what does a running program hold now?
 *
 *   top.c         the loop: samples, keys, the end
 *   top_sample.c    one sample at the captures: figures and lines
 *   top_past.c    what lines held at the samples before
 *   top_view.c    a sample as rows of text
 *   top_screen.c  the terminal; it alone knows ncurses
 *
 * The program that is watched is not stopped and not asked: its captures are read, as every command does.
 *
 * When failing  false, and one line in `fail`; the terminal is as it was before.
 */
#ifndef TOP_H
#define TOP_H

#include <stdbool.h>

#include "base/fail.h"
#include "model/model_load.h"

struct top_options {
	struct model_options captures;
	const char *domain; // to begin with; NULL = the host's memory
	bool has_color;
	unsigned rows; // of the first screen as text
	unsigned columns;
};

/* The first screen as text, on standard output. */
bool top_once(const struct top_options *options, struct fail *fail);

/* Until a key ends it, or the programs have ended. */
bool top_watch(const struct top_options *options, struct fail *fail);

#endif
