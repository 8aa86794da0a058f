/*
 * test_json_write.c - can every reader of JSON take what we write?
 */
#include "test.h"

#include "base/json_write.h"

static const struct {
	uint64_t number;
	const char *text;
} numbers[] = {
	{ 0, "[0]\n" },
	{ INT64_MAX, "[9223372036854775807]\n" },
	{ (uint64_t)INT64_MAX + 1, "[9223372036854775807]\n" },
	{ UINT64_MAX, "[9223372036854775807]\n" },
};

TEST(no_number_is_larger_than_readers_take)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		char *text = NULL;
		size_t bytes = 0;
		struct json_write json = { .stream = open_memstream(&text, &bytes) };

		json_write_open(&json, NULL, '[');
		json_write_number(&json, NULL, numbers[i].number);
		json_write_close(&json, ']');
		assert_int_equal(fclose(json.stream), 0);
		assert_string_equal(text, numbers[i].text);
		free(text);
	}
}

RUN_TESTS(NULL, NULL)
