/*
 * test_phrases.c - have each kind of finding and each cause their words, and are the figures in them known?
 */
#include "test.h"

#include "verdict/phrases.h"
#include "verdict/template.h"

static void
check(const char *name, const char *text)
{
	if (text == NULL)
		fail_msg("%s has no words", name);
	for (const char *at = text; (at = strchr(at, '{')) != NULL;) {
		at += at[1] == '?' || at[1] == '!' ? 2 : 1;
		if (!figure_is_known(at, strcspn(at, "}")))
			fail_msg("%s: no figure {%.*s}", name, (int)strcspn(at, "}"), at);
	}
}

TEST(each_finding_and_each_cause_has_words_of_known_figures)
{
	for (unsigned kind = 0; kind < FINDINGS; kind++)
		check(finding_name(kind), phrase_template(kind));
	for (unsigned cause = 0; cause < VERDICT_NO_PROCESS; cause++)
		check(verdict_cause_name(cause), ending_template(cause));
}

RUN_TESTS(NULL, NULL)
