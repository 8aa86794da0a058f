/*
 * diff_side.h - one of the two that are compared: its lines of code, and what they held.
 *
 * A report is reduced to it, so that one model is in memory at a time. Strings are valid UTF-8 without control characters, never NULL.
 */
#ifndef DIFF_SIDE_H
#define DIFF_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/domain.h"
#include "model/site_key.h"
#include "verdict/causes.h"

struct report;
struct text_pool;

struct diff_figures {
	uint64_t live_bytes;
	uint64_t peak_bytes;
	uint64_t leaking_bytes;    // of live_bytes, of class leak
	uint64_t untouched_bytes;  // of live_bytes, not in memory
	uint64_t live_error_bytes; // estimates: right to within that in 95 of 100 cases; 0 = exact, or not known
	uint64_t peak_error_bytes;
};

/* Of the sum or the difference of two independent estimates. */
uint64_t diff_error_together(uint64_t left, uint64_t right);
void diff_figures_add(struct diff_figures *to, const struct diff_figures *from);

/* One line of code in one domain. */
struct diff_line {
	const char *where;    // "train.py:41 epoch", "import numpy"
	const char *function; // the same without the line
	const char *file;     // as it was recorded; "" = unknown
	uint32_t line;        // 0 = unknown
	const char *domain;
	enum domain_kind domain_kind;
	// as in struct model_site, of its function; different where two lines must never be paired
	uint64_t place_key;
	uint64_t qualified_key;                 // the same
	uint64_t position;                      // orders lines of a function: the line, or the address where there is none
	uint32_t line_in_function;              // from 1; 0 = unknown
	uint64_t block_bytes;                   // average of all blocks that it asked for
	const char *source;                     // text of the line; "" = unknown, or it holds little
	uint64_t likeness[SITE_KEY_LIKENESSES]; // of its largest site
	struct diff_figures held;
};

struct diff_domain {
	const char *name;
	enum domain_kind kind;
	struct diff_figures held; // live_bytes, peak_bytes, untouched_bytes
};

struct diff_side {
	const char *path;
	const char *session; // of two of one, no line has moved
	const char *program;
	uint32_t pid; // of its first process
	size_t process_count;
	const char *python_version; // "" = no interpreter
	enum verdict_cause cause;
	bool is_snapshot; // live figures are those of one; diff_side_new() leaves it to the caller
	size_t line_count;
	struct diff_line *lines;
	size_t domain_count;
	struct diff_domain *domains;
	struct text_pool *texts;
};

/*
 * Copies what it needs: report and model may go. The report is ranked by rank_sites and holds all lines.
 * path    of the capture, as the person gave it
 * domain  as rank_domain_matches() takes it; NULL = all
 */
struct diff_side *diff_side_new(const struct report *report, const char *path, const char *domain);
void diff_side_free(struct diff_side *side);

#endif
