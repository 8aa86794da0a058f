/*
 * config.h - what does a team allow its program? The file .kmemshim.yml.
 *
 * Budgets of all memory, of a domain, of lines that a pattern names; leaks that are known; what becomes of a run that cannot be judged.
 * config_template() is the same with comments, as `check --init` writes it. docs/ci.md has the words.
 *
 * When failing  one line with file, line and column. Nothing is passed over: a name that is not known is an error.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/text_pool.h"

#define CONFIG_FILE_DEFAULT ".kmemshim.yml"
#define CONFIG_MIN_STEPS 6
#define CONFIG_RETRIES 3

enum config_scope { CONFIG_TOTAL, CONFIG_DOMAIN, CONFIG_LINES };
enum config_figure { CONFIG_PEAK, CONFIG_LIVE, CONFIG_PER_STEP, CONFIG_FIGURES };

struct config_amount {
	bool is_given;
	bool is_growth; // beyond what the baseline has
	bool is_share;  // of what the baseline has: ppm
	uint64_t bytes;
	uint32_t ppm;
	size_t line; // in the file
};

struct config_budget {
	enum config_scope scope;
	const char *name; // of the domain, or a pattern (pattern.h); "total"
	size_t line;      // in the file
	struct config_amount amounts[CONFIG_FIGURES];
};

/* A leak that is known and accepted. */
struct config_suppression {
	const char *pattern; // of a function, file, module, or "train.py:41 epoch": of any frame (pattern.h)
	const char *reason;  // "" in a file of LeakSanitizer's
	const char *expires; // "2027-01-31", the last day; "" = never
	const char *path;    // where it stands
	size_t line;
	bool is_expired;
};

/* What becomes of a run that cannot be judged: it chooses the command's exit status. */
enum config_policy { CONFIG_FAIL, CONFIG_PASS, CONFIG_SKIP };

struct config {
	const char *path; // "" = there is no file
	size_t budget_count;
	struct config_budget *budgets;
	size_t suppression_count;
	struct config_suppression *suppressions;
	uint64_t min_steps;           // fewer say nothing of what is kept in each
	enum config_policy too_short; // a run with fewer
	enum config_policy unmatched; // a budget of lines that fits none; CONFIG_PASS: it is told
	uint64_t retries;             // of a check that runs the program itself
	bool has_absolute;            // the tolerance; else from the runs of the baseline
	bool has_relative;
	uint64_t absolute_bytes;
	uint32_t relative_ppm;
	size_t lsan_bytes; // of all files of suppressions
	struct text_pool *texts;
};

/*
 * path     NULL = CONFIG_FILE_DEFAULT, where it is there
 * today    "2026-11-23", in UTC: what is expired
 * returns  for config_free(); NULL and *fail (EXIT_USAGE) when it cannot be read
 */
struct config *config_read(const char *path, const char *today, struct fail *fail);
void config_free(struct config *config);

/* Adds the suppressions of one of LeakSanitizer's files, which is open: "leak:PATTERN" in each line, '#' begins a comment. */
bool config_add_lsan(struct config *config, const char *path, int file, struct fail *fail);

bool config_has_steps(const struct config *config); // a budget of what is kept in each step

/* The row of the first suppression that is in force and fits this text; SIZE_MAX: none. */
size_t config_suppressed_by(const struct config *config, const char *text);

/* A file to begin with, with comments. Used as it is, it allows what is allowed without a file. */
void config_template(FILE *stream);

#endif
