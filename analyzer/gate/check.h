/*
 * check.h - did this change make it worse?
 *
 * Compares the runs under test with a baseline, rule by rule:
 *
 *   peak DOMAIN  the median of the runs' peaks against the baseline's highest
 *   live DOMAIN  the least of what the runs held at the end against the baseline's most
 *   leak LINE    the same for one site family; one that the baseline does not know (check_match.h) counts only when it leaks, may do so
 *                and is too young to tell, or grew over much of the run and kept what it allocated ("grown"): a new pool is no
 *                regression of its own, the domain's figures judge it
 *   step NAME    what lines that grow kept in each step, against a budget alone
 *
 * What has a budget in the configuration is judged by that alone (check_budget.h); without a baseline, budgets are all that is judged.
 * A line that the configuration suppresses fails nothing, and what it holds more is allowed to its domain as well.
 *
 * Worse is more than the baseline's figure plus the tolerance, which is the larger of an absolute one and a share of the figure. For lack of
 * room for stacks a run may book blocks elsewhere than at their line. So a line is also allowed what the baseline's runs booked elsewhere in
 * its domain, and a line at which a run booked blocks of others is judged by the domain's figures alone. So is what imports leave behind.
 * Noise only adds memory, so leaks take the least of several runs. Address space (reserved, file) is listed and not judged.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/baseline.h"
#include "gate/check_match.h"
#include "gate/config.h"

enum check_kind { CHECK_PEAK, CHECK_LIVE, CHECK_STEP, CHECK_LEAK };

struct check_rule {
	enum check_kind kind;
	bool has_failed;
	bool is_judged; // false: address space, listed only
	bool is_new;    // the baseline does not know it
	bool is_leak;   // of CHECK_LEAK: its class; a line that merely holds more is none
	bool is_grown;  // rank_has_accumulated(): no leak now, but it kept what it allocated over much of the run
	bool has_before;
	const struct config_amount *budget; // that it is judged by; NULL = the baseline
	const char *domain;                 // or what has the budget: "total", a pattern of lines
	enum domain_kind domain_kind;
	const char *where;           // the line: of a leak itself; of a domain's rule that failed, the line that grew most
	enum domain_kind where_kind; // the domain of that line
	const char *file;            // of `where`; "" = unknown
	uint32_t line;               // 0 = unknown
	uint64_t family;             // of a leak; 0
	uint64_t before_bytes;
	uint64_t after_bytes;
	uint64_t limit_bytes;      // with the next two
	uint64_t estimated_bytes;  // of a budget's: on top of it, the error of what is estimated
	uint64_t suppressed_bytes; // the same, what suppressed lines hold more
};

struct check_renamed {
	const struct baseline_site *then;
	const struct baseline_site *now;
};

struct check_suppressed {
	size_t line_count; // that would have failed, or leak
	uint64_t bytes;
};

struct check {
	const struct baseline *before; // without runs: there is none
	const struct baseline *after;
	const struct config *config;
	struct check_suppressed *suppressed; // one for each row of the configuration
	size_t unmatched_count;              // budgets that fit nothing
	const char *unmatched;               // the note on the first of them
	size_t rule_count;
	struct check_rule *rules; // failures first, by excess; then domains
	size_t failed_count;
	size_t compared_sites;
	struct check_tolerance tolerance;
	const struct baseline_site **then; // of each of after's sites: check_match(); NULL = it is new
	// lines that would have failed as new ones, and are those of the baseline under another name
	size_t renamed_count;
	struct check_renamed *renamed;
	size_t small_leak_count;                // new leaks within the tolerance
	const struct baseline_site *small_leak; // the largest of them; NULL
	const char *ended_badly;                // verdict of a run that was killed or failed; NULL = all ended well
	const char *ended_path;                 // its capture
	const char *lost_child;                 // a line about a process that is gone though its run ended well; NULL
	const char *repeat;                     // the command that does the same on another machine; "" = not known
	size_t note_count;
	char **notes; // a line each: what the result does not show
};

void check_free(struct check *check);

/* Adds a line, as printf() writes it. */
void check_note(struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "leak", "grown", "line" (it is neither, as far as is known), "live", "peak", "step" */
const char *check_rule_name(const struct check_rule *rule);

/* Before rule->where: "allocated at ", "in " of Python's arenas, nothing where that is left free in them. */
const char *check_where_word(const struct check_rule *rule);

#endif
