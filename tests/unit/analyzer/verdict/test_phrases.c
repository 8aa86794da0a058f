/*
 * test_phrases.c - has each kind of finding its words, and are the figures in them known?
 */
#include "test.h"

#include <string.h>

#include "verdict/phrases.h"
#include "verdict/template.h"

TEST(each_finding_has_words_of_known_figures)
{
	for (unsigned kind = 0; kind < FINDINGS; kind++) {
		const char *text = phrase_template(kind);

		if (text == NULL)
			fail_msg("%s has no words", finding_name(kind));
		for (const char *at = text; (at = strchr(at, '{')) != NULL;) {
			at += at[1] == '?' || at[1] == '!' ? 2 : 1;
			if (!figure_is_known(at, strcspn(at, "}")))
				fail_msg("%s: no figure {%.*s}", finding_name(kind), (int)strcspn(at, "}"), at);
		}
	}
}

RUN_TESTS(NULL, NULL)
