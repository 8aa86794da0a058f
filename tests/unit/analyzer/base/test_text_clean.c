/*
 * test_text_clean.c - can any text end a line, steer a terminal or break JSON?
 */
#include "test.h"

#include "base/text_clean.h"
#include "base/text_pool.h"

#define TEXT(text) text, sizeof(text) - 1

static const struct {
	const char *text;
	size_t bytes;
	const char *clean;
	const char *escaped;
} cases[] = {
	{ TEXT("plain \\n text"), "plain \\n text", "plain \\n text" },
	{ TEXT("gr\xc3\xb6\xc3\x9f"
	       "er \xf0\x9f\x98\x80"),
	  "gr\xc3\xb6\xc3\x9f"
	  "er \xf0\x9f\x98\x80",
	  "gr\xc3\xb6\xc3\x9f"
	  "er \xf0\x9f\x98\x80" },
	{ TEXT("a\nb\tc\rd"), "a?b?c?d", "a\\nb\\tc\\rd" },
	{ TEXT("\x1b[31m\x07\x7f"), "?[31m??", "\\x1b[31m\\x07\\x7f" },
	{ TEXT("nul\0nul"), "nul?nul", "nul\\x00nul" },
	{ TEXT("\xc2\x85\xc2\x9b"), "????", "\\xc2\\x85\\xc2\\x9b" }, // C1: next line, CSI
	{ TEXT("\xff\xfe\x80"), "???", "\\xff\\xfe\\x80" },
	{ TEXT("cut \xe2\x82"), "cut ??", "cut \\xe2\\x82" },
	{ TEXT("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"), "?????????",
	  "\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80" }, // overlong, surrogate, too high
	{ TEXT("\xe2\x80\xa8\xe2\x80\xae\xef\xbb\xbf"), "?????????",
	  "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xef\\xbb\\xbf" }, // line separator, override, mark
	{ TEXT("\xc2\xad\xe2\x80\x8b\xe2\x81\xa0\xe1\xa0\x8e"), "???????????",
	  "\\xc2\\xad\\xe2\\x80\\x8b\\xe2\\x81\\xa0\\xe1\\xa0\\x8e" }, // two names that look alike are not the same
	{ TEXT("a ##vso[x]y ##VSO[ ##[z] # [ ## vso["), "a ?#vso[x]y ?#VSO[ ?#[z] # [ ## vso[",
	  "a \\x23#vso[x]y \\x23#VSO[ \\x23#[z] # [ ## vso[" },
	{ TEXT("cut ##vso"), "cut ##vso", "cut ##vso" },
	{ TEXT("\xe2\x80\x8d"), "\xe2\x80\x8d", "\xe2\x80\x8d" }, // of scripts that join letters
};

TEST(what_cannot_be_shown_is_replaced_or_escaped)
{
	struct text_pool *pool = text_pool_new();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[64];
		char escaped[64 * TEXT_ESCAPED_MOST];
		size_t bytes = text_escape(cases[i].text, cases[i].bytes, escaped);

		memcpy(text, cases[i].text, cases[i].bytes);
		text[text_clean(text, cases[i].bytes)] = '\0';
		assert_string_equal(text, cases[i].clean);
		assert_int_equal(bytes, strlen(cases[i].escaped));
		assert_memory_equal(escaped, cases[i].escaped, bytes);
		assert_string_equal(text_pool_add(pool, cases[i].text, cases[i].bytes), cases[i].escaped);
	}
	assert_ptr_equal(text_pool_add(pool, "a\nb", 3), text_pool_add_text(pool, "a\\nb"));
	text_pool_free(pool);
}

RUN_TESTS(NULL, NULL)
