/*
 * test_kmem_words.c - do recorder and reader compute the checksum that the format says, on whatever processor, however it is cut up?
 */
#include "unit.h"

#include "random.h"

/* As the standard says it, a bit at a time. */
static uint32_t
plain(const unsigned char *bytes, size_t count)
{
	uint32_t state = UINT32_MAX;

	for (size_t i = 0; i < count * 8; i++) {
		uint32_t bit = (state ^ (uint32_t)bytes[i / 8] >> i % 8) & 1;

		state = state >> 1 ^ (bit != 0 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~state;
}

TEST(the_checksum_of_known_text_is_crc_32c)
{
	static const char zeros[32];

	assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, "", 0), 0);
	assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, "123456789", 9), 0xe3069283);
	assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, zeros, sizeof(zeros)), 0x8a9136aa); // RFC 3720, B.4
}

/* By the processor and by the table, at every alignment, in one call and in several. */
TEST(all_ways_to_a_checksum_agree)
{
	enum { BYTES = 4096 };
	static unsigned char bytes[BYTES];
	uint64_t random = random_seed();

	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)random_next(&random);
	for (unsigned round = 0; round < 1000; round++) {
		size_t from = random_below(&random, 64);
		size_t count = random_below(&random, round % 2 != 0 ? 100 : BYTES - from);
		size_t cut = random_below(&random, count + 1);
		uint32_t wanted = plain(bytes + from, count);

		assert_int_equal(kmem_checksum(KMEM_CHECKSUM_START, bytes + from, count), wanted);
		assert_int_equal(kmem_checksum_by_table(KMEM_CHECKSUM_START, bytes + from, count), wanted);
		assert_int_equal(
			kmem_checksum(kmem_checksum(KMEM_CHECKSUM_START, bytes + from, cut), bytes + from + cut, count - cut),
			wanted);
	}
}

/* F6: no change of one byte of a word that is stored twice gives another word that agrees with itself. */
TEST(F6_a_damaged_word_does_not_agree_with_its_copy)
{
	static const uint32_t numbers[] = { 0, 1, 255, 256, 0x030b07f0, 0x00ffff00, UINT32_MAX };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t twice = kmem_twice(numbers[i]);

		assert_int_equal((uint32_t)twice, numbers[i]);
		assert_true(kmem_twice_agrees(twice));
		for (unsigned byte = 0; byte < 8; byte++) {
			for (uint64_t change = 1; change < 256; change++)
				assert_false(kmem_twice_agrees(twice ^ change << byte * 8));
		}
	}
}

TEST(a_rough_number_is_right_to_a_thousandth)
{
	assert_int_equal(kmem_rough_bytes(kmem_rough(0)), 0);
	assert_int_equal(kmem_rough_bytes(kmem_rough(1023)), 0);
	for (uint64_t bytes = 1024; bytes < UINT64_MAX / 3; bytes += bytes / 7 + 1) {
		uint64_t rough = kmem_rough_bytes(kmem_rough(bytes));

		assert_true(rough <= bytes && bytes - rough <= bytes / 1024);
	}
	assert_int_equal(kmem_rough_bytes(kmem_rough(UINT64_MAX)), UINT64_C(2047) << 53);
	for (unsigned damaged = 0; damaged < 65536; damaged++)
		(void)kmem_rough_bytes((uint16_t)damaged); // no shift of its own width or more
}

TEST(only_what_says_so_turns_a_protection_off)
{
	static const char *const off[] = { "", "0", "no", "off", "false", "No", "OFF", "False" };
	static const char *const on[] = { "1", "true", "TRUE", "yes", "on", "2", "y", "0 ", " ", "nope" };

	assert_false(kmem_is_wanted(NULL));
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		assert_false(kmem_is_wanted(off[i]));
	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++)
		assert_true(kmem_is_wanted(on[i]));
}

RUN_TESTS(NULL, NULL)
