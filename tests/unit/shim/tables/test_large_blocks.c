/*
 * test_large_blocks.c - are blocks of 1 MiB and more found again, and only while they are alive?
 */
#include "unit.h"

#include "tables/large_blocks.h"
#include "tables/pointer_map.h"

#define MIB ((uint64_t)1 << 20)
#define BASE UINT64_C(0x7f0000000000)

static struct large_block found[4096];

SETUP(start_empty)
{
	pointer_map_clear();
	large_blocks_clear();
}

static void
put(uint64_t addr, uint64_t bytes)
{
	struct address_block old;

	large_blocks_note(addr);
	assert_int_not_equal(pointer_map_put((void *)addr, (struct address_block){ bytes, 7, 1 }, &old), POINTER_MAP_FULL);
}

static void
take(uint64_t addr)
{
	struct address_block block;

	assert_true(pointer_map_take((void *)addr, &block));
}

TEST(blocks_are_found_with_their_size_while_they_are_alive)
{
	put(BASE + 16, 3 * MIB);
	put(BASE + 4 * MIB + 16, 100 * MIB); // a size for which the pointer map's word has no room
	put(BASE + 200 * MIB, MIB - 1);
	assert_int_equal(large_blocks_gather(found, 10), 2);
	assert_int_equal(found[0].start, BASE + 16);
	assert_int_equal(found[0].bytes, 3 * MIB);
	assert_int_equal(found[0].site, 7);
	assert_int_equal(found[1].bytes, 100 * MIB);
	take(BASE + 16);
	assert_int_equal(large_blocks_gather(found, 10), 1);
	put(BASE + 4 * MIB + 16, 2 * MIB); // changed its size where it is
	assert_int_equal(large_blocks_gather(found, 10), 1);
	assert_int_equal(found[0].bytes, 2 * MIB);
	assert_int_equal(large_blocks_gather(found, 0), 0);
}

TEST(Z1_addresses_without_a_block_give_their_places_to_others)
{
	for (uint64_t i = 0; i < 1000; i++) { // all want the same place: 64 GiB apart
		put(BASE + 16 + (i % 256 << 36), MIB);
		take(BASE + 16 + (i % 256 << 36));
	}
	put(BASE + 16, MIB);
	assert_int_equal(large_blocks_gather(found, 10), 1);
}

TEST(blocks_of_one_mib_side_by_side_are_all_found)
{
	const uint32_t count = 4096;

	for (uint32_t i = 0; i < count; i++)
		put(BASE + 16 + i * (MIB + 4096), MIB);
	assert_int_equal(large_blocks_gather(found, count), count);
}

TEST(more_than_there_is_room_for_are_left_out)
{
	for (uint64_t i = 0; i < 9; i++)
		put(BASE + 16 + (i << 36), MIB);
	assert_int_equal(large_blocks_gather(found, 20), 8);
}

int
main(void)
{
	pointer_map_start(true);
	return test_run(NULL, NULL, start_empty, NULL);
}
