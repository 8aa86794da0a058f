/*
 * test_memory.c - does a text that is cut end with a whole character?
 */
#include "test.h"

#include <string.h>

#include "base/memory.h"
#include "base/text_clean.h"

TEST(a_cut_text_ends_with_a_whole_character)
{
	static const char whole[] = "a\303\251\342\202\254\360\237\230\200b"; // of one, two, three, four bytes
	static const size_t fits[] = { 0, 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11 };

	for (size_t bytes = 1; bytes < sizeof(fits) / sizeof(fits[0]); bytes++) {
		char text[16] = "";
		char added[16] = "x";

		memory_text_in(text, bytes, "%s", whole);
		memory_text_add(added, bytes + 1, "%s", whole);
		assert_int_equal(strlen(text), fits[bytes]);
		assert_int_equal(strlen(added), 1 + fits[bytes]);
		assert_int_equal(strncmp(text, whole, fits[bytes]), 0);
	}
}

RUN_TESTS(NULL, NULL)
