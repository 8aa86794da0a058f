/*
 * verdict_case.h - tests of verdicts: each begins with a model made by hand anew, and says what the verdict of it is to be.
 */
#ifndef VERDICT_CASE_H
#define VERDICT_CASE_H

#include "hand_model.h"
#include "found.h"

static struct hand_model hand;
static struct verdict verdict;

static inline int
verdict_case_begin(__attribute__((unused)) void **state)
{
	hand_model_make(&hand);
	return 0;
}

/* The verdict of a program that ended so: as wait() says, or with a status of its own. */
static inline void
verdict_waited(int status)
{
	hand_model_waited(&hand, status);
	hand_model_decide(&hand, &verdict);
}

static inline void
verdict_exited(int status)
{
	hand_model_exited(&hand, status);
	hand_model_decide(&hand, &verdict);
}

/* For each row of the table, with a fresh model; the body follows. */
#define EACH_CASE(i, rows) for (size_t i = 0; i < ARRAY_LEN(rows) && verdict_case_begin(NULL) == 0; i++)

/* Live, and blocks of all twelve generations are alive. */
static inline struct model_site *
leaking(unsigned domain, uint32_t line, uint64_t bytes)
{
	struct model_site *site = hand_model_site(&hand, domain, line, bytes);

	hand_model_generations(site, 12, 12, 3, 3);
	return site;
}

#endif
