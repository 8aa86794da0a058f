/*
 * advice_rows.h - what is a row of advice, and where are rows and their words?
 *
 * advice.c         all rows, and how a row is said
 * advice_steps.c   the first step of a cause that memory is no part of: find out who sent the signal
 * advice_devices.c rows of a device that refused a request
 * advice_kept.c    what keeps the blocks of a line alive, and what to do about that
 *
 * When full   texts are cut.
 */
#ifndef ADVICE_ROWS_H
#define ADVICE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "verdict/facts.h"
#include "verdict/findings.h"
#include "verdict/template.h"

#define MANY_THREADS 8 // as many arenas as threads, up to eight for each processor

struct advice {
	const char *name; // NULL: the first step alone
	bool (*applies)(const struct verdict_facts *facts, const struct verdict *verdict);
	void (*say)(const struct verdict_facts *facts, struct verdict *verdict);
	size_t kept_line;          // what keeps the blocks of this rank_line of the facts alive? 0 = not so
	const char *text;          // a template, behind these
	const struct advice *rows; // instead: a table, in which the first row that applies is taken; may have none
	bool is_after_step;        // the first step, then this
	bool is_nothing;           // there is nothing to do, or nobody can tell: not worth a row of a glance
};

/* When a row applies. */
#define ADVICE_TEST(name, condition)                                                   \
	static bool name(const struct verdict_facts *facts, const struct verdict *verdict) \
	{                                                                                  \
		(void)facts;                                                                   \
		(void)verdict;                                                                 \
		return condition;                                                              \
	}

/* Adds the name to verdict->advice. */
void add_advice(const char *name, struct verdict *verdict);

/* What is to be done next names the line. */
void verdict_names(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict);

/* ---- advice_steps.c ---- */

struct step {
	enum verdict_cause cause;
	const char *name;
	bool (*applies)(const struct verdict_facts *facts, const struct verdict *verdict); // NULL: always
	const char *text;
};

/* NULL: the cause has none, what held the memory is the first thing to look at. */
const struct step *step_of(const struct verdict_facts *facts, const struct verdict *verdict);
bool is_time_up(const struct verdict_facts *facts, const struct verdict *verdict);

/* ---- advice_devices.c ---- */

extern const struct advice device_rows[];

/* The device that refused: "cuda:0". facts->refused is not NULL. */
const char *refusing_device(const struct verdict_facts *facts);

/* ---- advice_kept.c ---- */

/*
 * For a line that accumulates: perhaps it loads a data set. A program that ended well had room for it, and may have kept very little of
 * what reading it took. "" = hardly a data set.
 */
const char *if_data_set(const struct verdict *verdict, const struct rank_line *line);

/* The look had too little time to find what keeps the blocks alive. "" = it had enough, or there was none. */
const char *if_unfinished(const struct verdict_facts *facts, const struct rank_line *line);

/* A look has found what keeps the blocks alive, perhaps, or that nothing leads to them. */
bool is_holder_known(const struct verdict_facts *facts, const struct rank_line *line);

/* What is to be done about it. False: no look has found it. */
bool say_holder(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict);
void say_blocks_kept(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict);
void say_tensors_kept(const struct rank_line *line, const char *otherwise, struct verdict *verdict);

/* The same of blocks or tensors, as the line's domain says, and what lets a run finish that was killed for memory. */
void say_growth_kept(const struct verdict_facts *facts, const struct rank_line *growing, struct verdict *verdict);

#endif
