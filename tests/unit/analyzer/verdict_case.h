/*
 * verdict_case.h - tests of verdicts: each begins with a model made by hand anew, and says what the verdict of it is to be.
 */
#ifndef VERDICT_CASE_H
#define VERDICT_CASE_H

#include "scene.h"
#include "found.h"

static struct hand_model hand;
static struct verdict verdict;

SETUP(verdict_case_begin)
{
	hand_model_make(&hand);
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

#define scene(...) ((void)verdict_case_begin(NULL), scene_add(&hand, __VA_ARGS__))

/* Is `wanted` in the text? "=": is it the text; "!": is it not there; "^": does the text begin with it. */
static inline bool
is_as_wanted(const char *text, const char *wanted)
{
	switch (wanted[0]) {
	case '=':
		return strcmp(text, wanted + 1) == 0;
	case '^':
		return strncmp(text, wanted + 1, strlen(wanted + 1)) == 0;
	case '!':
		return strstr(text, wanted + 1) == NULL;
	default:
		return strstr(text, wanted) != NULL;
	}
}

#define check_text(is, wanted)                                                                                      \
	do {                                                                                                            \
		if (!is_as_wanted(is, wanted))                                                                              \
			fail_msg("wanted: %s\nis: %s\nfound: %s\n%s\nNext: %s", wanted, is, found_text(&verdict), verdict.text, \
			         verdict.next);                                                                                 \
	} while (0)

/* What the verdict says, what to do next, what was in memory: see is_as_wanted(). */
#define said(wanted) check_text(verdict.text, wanted)
#define next(wanted) check_text(verdict.next, wanted)
#define parts(wanted) check_text(parts_text(&verdict), wanted)

/* Findings as is_as_wanted(), names of the advice; NULL: whatever they are. */
#define check_told(found, advised)                                             \
	do {                                                                       \
		const char *found_ = (found), *advised_ = (advised);                   \
                                                                               \
		if (found_ != NULL)                                                    \
			check_text(found_text(&verdict), found_);                          \
		if (advised_ != NULL && strcmp(advised_text(&verdict), advised_) != 0) \
			assert_advised(&verdict, advised_);                                \
	} while (0)

/* The verdict of the model as it is. */
#define decided(found, advised)             \
	do {                                    \
		hand_model_decide(&hand, &verdict); \
		check_told(found, advised);         \
	} while (0)

/* The same of a scene. */
#define told(found, advised, ...) \
	do {                          \
		scene(__VA_ARGS__);       \
		decided(found, advised);  \
	} while (0)

#endif
