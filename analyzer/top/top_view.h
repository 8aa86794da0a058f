/*
 * top_view.h - a sample as rows of text: what stands where, and how.
 *
 * Context     the canvas is the caller's. Nothing is written beyond its rows and columns. Texts of the program are shown
 *             with one column for each character: those that have none, two, or steer a terminal are shown as '?'.
 */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <wchar.h>

#include "top/top_sample.h"

enum top_style { TOP_PLAIN, TOP_BOLD, TOP_SOFT, TOP_ALARM, TOP_BAR, TOP_CHOSEN, TOP_STYLES };

struct top_cell {
	wchar_t character; // 0 = blank
	unsigned char style;
};

struct top_canvas {
	unsigned rows;
	unsigned columns;
	struct top_cell *cells; // row by row
};

/* Rows and columns of at least 1; blank. */
void top_canvas_make(struct top_canvas *canvas, unsigned rows, unsigned columns);
void top_canvas_free(struct top_canvas *canvas);

/* What is chosen, and what is said about the last key. */
struct top_state {
	struct top_wish wish;
	size_t process; // of `process_names`; 0 = all
	const char *process_name;
	size_t chosen;       // row
	size_t first;        // row at the top
	bool is_open;        // the chosen row's stack and source instead of the rows
	size_t scrolled;     // rows of these
	const char *message; // NULL: it is printed once
	time_t taken;        // when the sample was; 0 = is not shown
	double every_seconds;
};

/* state->first is set so that the chosen row can be seen. */
void top_view_draw(const struct top_sample *sample, struct top_state *state, struct top_canvas *canvas);

#endif
