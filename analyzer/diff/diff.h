/*
 * diff.h - what changed between two runs, or two processes of one, and at which line?
 *
 * Each report is reduced to a side (diff_side_new()): one model in memory at a time. diff_compare() pairs the lines of both: by the
 * stable key of their function (site_key.h), inside a function by their order and what else is known of them (diff_match.c); a
 * function that is gone and one that is new are one where they are alike (analysis/likeness.h). What has no pair is new or gone.
 *
 * Sums over rows are those over lines: each line of a side is in one row. Bytes are requested bytes. `peak` of a line is what it
 * held when its domain was at its peak. Strings are valid UTF-8 without control characters, never NULL unless the comment says so.
 */
#ifndef DIFF_H
#define DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "diff/diff_side.h"

#define DIFF_SCHEMA 1

enum diff_by { DIFF_BY_LINE, DIFF_BY_FUNCTION };
enum diff_state { DIFF_CHANGED, DIFF_NEW, DIFF_GONE, DIFF_SAME, DIFF_STATES };

/* "changed", "new", "gone", "same"; NULL = no such state. */
const char *diff_state_name(unsigned state);

struct diff_row {
	enum diff_state state;
	const struct diff_line *before; // NULL of a new one; of a function its largest line
	const struct diff_line *after;  // NULL of one that is gone
	/* What it is called: by its newer name, without the line where it is a function. */
	const char *where;
	const char *was; // in the older one, where that is something else; NULL
	const char *domain;
	const char *file;
	uint32_t line;
	uint64_t key;
	struct diff_figures then;
	struct diff_figures now;
	int64_t live_change;
	int64_t peak_change;
	int64_t leaking_change;
	uint64_t live_error_bytes; // of live_change
	uint64_t peak_error_bytes;
	bool is_within_error; // a change no larger than the errors of its figures: perhaps there is none
	bool is_address_space;
	uint64_t line_count; // of a function; else 1
};

struct diff {
	enum diff_by by;
	const struct diff_side *before;
	const struct diff_side *after;
	char *headline; // one sentence: what changed most, and where the rest is
	size_t note_count;
	char **notes; // lines that a reader must know
	size_t row_total;
	size_t row_count;
	struct diff_row *rows; // by state; memory before address space, then by what changed most; doubtful changes last
	size_t counts[DIFF_STATES];
	size_t name_columns; // of a name in words: what is longer leaves its middle; SIZE_MAX: nothing is cut
};

/* Both sides must outlive the result. */
struct diff *diff_compare(const struct diff_side *before, const struct diff_side *after, enum diff_by by,
                          size_t name_columns);
void diff_free(struct diff *diff);

/* A name in words, not wider than name_columns. For free(). */
char *diff_name(const struct diff *diff, const char *name);

/* The rows of one state as a text shows them: the first ones, and what the others changed together. */
struct diff_section {
	const struct diff_row *rows;
	size_t shown;
	size_t rest_count;
	int64_t rest_live_change;
	int64_t rest_peak_change;
	size_t doubtful_count; // within the error of their estimates; no more than sums are known of them
	int64_t doubtful_change;
	uint64_t doubtful_error_bytes;
	size_t space_count; // of address space
	int64_t space_change;
};
struct diff_section diff_section(const struct diff *diff, enum diff_state state, uint64_t top);

/* top: rows at most. */
struct document;
void render_diff(const struct diff *diff, uint64_t top, struct document *document);
void render_diff_json(const struct diff *diff, uint64_t top, FILE *stream);
extern const struct json_object diff_object;

#endif
