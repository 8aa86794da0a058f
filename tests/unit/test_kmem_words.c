/*
 * test_kmem_words.c - do recorder and reader compute the checksum that the format says, however it is cut up?
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "kmem_words.h"

/* As the format says it. */
static uint32_t
plain(uint32_t state, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		state = (state ^ bytes[i]) * UINT32_C(16777619);
	return state;
}

static void
the_checksum_of_known_text_is_fnv_1a(void **state)
{
	(void)state;
	assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, "", 0), 0x811c9dc5);
	assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, "a", 1), 0xe40c292c);
	assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, "foobar", 6), 0xbf9cf968);
}

/* Runs of zeros of every length, at every alignment, in one call and in several. */
static void
runs_of_zeros_make_no_difference(void **state)
{
	enum { BYTES = 4096 };
	static unsigned char bytes[BYTES];
	uint64_t random = random_seed();

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		memset(bytes, 0, sizeof(bytes));
		for (size_t at = 0; at < BYTES;) {
			size_t run = random_below(&random, 200);

			for (; run > 0 && at < BYTES; run--)
				bytes[at++] = (unsigned char)random_next(&random);
			at += random_below(&random, 500);
		}
		size_t from = random_below(&random, 64);
		size_t count = random_below(&random, BYTES - from);
		size_t cut = random_below(&random, count + 1);
		uint32_t wanted = plain(KMEM_CHECKSUM_START, bytes + from, count);

		assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, bytes + from, count), wanted);
		assert_int_equal(kmem_checksum(kmem_checksum(KMEM_CHECKSUM_START, bytes + from, cut), bytes + from + cut,
		                               count - cut),
		                 wanted);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_of_known_text_is_fnv_1a),
		cmocka_unit_test(runs_of_zeros_make_no_difference),
	};

	return cmocka_run_group_tests_name("kmem_words", tests, NULL, NULL);
}
