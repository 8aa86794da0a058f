/*
 * test_paragraph.c - does a text fit into the columns that there are, and is every character of it whole?
 */
#include "test.h"

#include "base/text_clean.h"
#include "base/paragraph.h"
#include "base/memory.h"

TEST(a_text_that_is_too_wide_leaves_its_middle)
{
	static const struct {
		const char *text;
		size_t columns;
		const char *fitted;
	} cases[] = {
		{ "train.py:41 epoch", 17, "train.py:41 epoch" },
		{ "train.py:41 epoch", SIZE_MAX, "train.py:41 epoch" },
		{ "train.py:41 epoch", 16, "train....1 epoch" },
		{ "train.py:41 epoch", 9, "tra...och" },
		{ "train.py:41 epoch", 0, "tr...och" }, // less says nothing
		{ "", 0, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		OWNED char *fitted = text_fitted(cases[i].text, cases[i].columns);

		assert_string_equal(fitted, cases[i].fitted);
	}
}

/* One, two, three and four bytes; each cut lies between two of them. */
TEST(no_character_is_cut)
{
	static const char
		text[] = "a\303\266\342\202\254\360\237\220\215b\303\266\342\202\254\360\237\220\215c\303\266\342\202\254";

	for (size_t columns = 8; columns < 14; columns++) {
		OWNED char *fitted = text_fitted(text, columns);

		assert_true(text_is_clean(fitted, strlen(fitted)));
		assert_int_equal(text_columns(fitted, strlen(fitted)), columns < 11 ? columns : 11);
		assert_int_equal(strstr(fitted, "...") != NULL, columns < 11);
	}
}

RUN_TESTS(NULL, NULL)
