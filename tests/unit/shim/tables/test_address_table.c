/*
 * test_address_table.c - does the table give back exactly what was put, and refuse what it cannot hold?
 */
#include "unit.h"

#include <sys/resource.h>

#include "random.h"
#include "tables/address_table.h"
#include "unwind/each_instruction.h"

#define KEYS 4096
#define OPERATIONS 300000

static struct address_table table;

/* An address that is not in the table. */
static bool
put(struct address_table *where, uint64_t addr, struct address_block block)
{
	struct address_block old;
	enum address_table_put result = address_table_put(where, addr, block, &old);

	assert_int_not_equal(result, ADDRESS_TABLE_REPLACED);
	return result == ADDRESS_TABLE_STORED;
}

static bool
count_it(uint64_t addr, struct address_block block, void *count)
{
	++*(uint64_t *)count;
	return false;
}

static uint64_t
count_all(void)
{
	struct address_block block;
	uint64_t cursor = 0, count = 0;

	assert_false(address_table_sweep(&table, &cursor, count_it, &count, &block));
	return count;
}

SETUP(start_empty)
{
	address_table_clear(&table);
}

static struct address_block
block_for(uint64_t number)
{
	return (struct address_block){ number * 3, (uint32_t)number + 1, (uint8_t)number };
}

static void
assert_is_block_for(struct address_block block, uint64_t number)
{
	assert_int_equal(block.bytes, number * 3);
	assert_int_equal(block.site, (uint32_t)number + 1);
	assert_int_equal(block.generation, (uint8_t)number);
}

TEST(A2_a_block_comes_back_once_and_whole)
{
	static const uint64_t addrs[] = { 2, 3, 8, 16, 0x7fffffffffff, UINT64_C(1) << 47, UINT64_C(0xffffffffffffffff) };
	struct address_block block;

	for (size_t i = 0; i < ARRAY_LEN(addrs); i++)
		assert_true(put(&table, addrs[i], block_for(i)));
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		assert_true(address_table_take(&table, addrs[i], &block));
		assert_is_block_for(block, i);
		assert_false(address_table_take(&table, addrs[i], &block));
	}
	assert_int_equal(count_all(), 0);
}

TEST(A1_the_numbers_that_mark_slots_are_no_addresses)
{
	struct address_block block;

	for (uint64_t addr = 0; addr <= 1; addr++) {
		assert_false(put(&table, addr, block_for(addr)));
		assert_false(address_table_take(&table, addr, &block));
	}
	assert_int_equal(count_all(), 0);
}

TEST(A1_random_work_agrees_with_an_array)
{
	static uint64_t model[KEYS]; // 0 = not there, else number
	uint64_t random = random_seed();
	struct address_block block;
	uint64_t live = 0;

	memset(model, 0, sizeof(model));
	for (uint64_t i = 1; i <= OPERATIONS; i++) {
		uint64_t key = random_below(&random, KEYS);
		uint64_t addr = 0x10000 + key * 8;

		if (random_below(&random, 2) == 0) {
			block = block_for(77);
			assert_int_equal(address_table_take(&table, addr, &block), model[key] != 0);
			assert_is_block_for(block, model[key] != 0 ? model[key] : 77); // untouched when not found
			live -= model[key] != 0;
			model[key] = 0;
		} else {
			assert_int_equal(address_table_put(&table, addr, block_for(i), &block),
			                 model[key] != 0 ? ADDRESS_TABLE_REPLACED : ADDRESS_TABLE_STORED);
			if (model[key] != 0)
				assert_is_block_for(block, model[key]);
			live += model[key] == 0;
			model[key] = i;
		}
	}
	assert_int_equal(count_all(), live);
	for (uint64_t key = 0; key < KEYS; key++)
		assert_int_equal(address_table_take(&table, 0x10000 + key * 8, &block), model[key] != 0);
}

TEST(when_full_it_refuses_and_loses_nothing)
{
	struct address_block block;
	uint64_t stored = 0;

	while (put(&table, 0x1000 + stored * 16, block_for(stored)))
		stored++;
	assert_true(stored > 400000);
	for (uint64_t i = 0; i < stored; i++) {
		assert_true(address_table_take(&table, 0x1000 + i * 16, &block));
		assert_is_block_for(block, i);
	}
	assert_true(put(&table, 0x1000, block_for(1))); // free slots are used again
	assert_true(address_table_take(&table, 0x1000, &block));
}

TEST(clear_forgets_everything)
{
	struct address_block block;

	for (uint64_t i = 0; i < 1000; i++)
		assert_true(put(&table, 0x1000 + i * 16, block_for(i)));
	address_table_clear(&table);
	for (uint64_t i = 0; i < 1000; i++)
		assert_false(address_table_take(&table, 0x1000 + i * 16, &block));
	assert_true(put(&table, 0x1000, block_for(5)));
	assert_true(address_table_take(&table, 0x1000, &block));
	assert_is_block_for(block, 5);
}

static uint64_t instructions;
static bool is_counting;

static bool
count_instruction(void)
{
	instructions++;
	return is_counting;
}

/* The most that one of some fresh addresses takes, to come and to go. */
static uint64_t
instructions_of_a_pair(uint64_t first_addr)
{
	uint64_t most = 0;

	for (uint64_t i = 0; i < 16; i++) {
		struct address_block block;

		instructions = 0;
		is_counting = true;
		each_instruction(count_instruction);
		(void)address_table_put(&table, first_addr + i * 512, block_for(i), &block);
		(void)address_table_take(&table, first_addr + i * 512, &block);
		is_counting = false;
		if (instructions > most)
			most = instructions;
	}
	return most;
}

/* Tensors of a long run: few at a time, each at an address of its own. */
TEST(A1_it_does_not_wear_out)
{
	uint64_t addr = 0x10000, fresh = instructions_of_a_pair(addr), worn;
	struct address_block block;

	for (uint64_t i = 0; i < 1500000; i++, addr += 512) {
		assert_true(put(&table, addr, block_for(i)));
		if (i >= 1000) {
			assert_true(address_table_take(&table, addr - UINT64_C(1000) * 512, &block));
			assert_is_block_for(block, i - 1000);
		}
	}
	worn = instructions_of_a_pair(addr);
	print_message("a pair takes at most %lu instructions, %lu after all those\n", (unsigned long)fresh,
	              (unsigned long)worn);
	assert_true(worn <= 5 * fresh);
	assert_int_equal(count_all(), 1000);
}

static int
limited(void *context)
{
	const uint64_t room = *(uint64_t *)context;
	static struct address_table fresh;
	uint64_t before = address_space_bytes();
	struct rlimit limit = { before + room, before + room };
	struct address_block block;
	uint64_t stored = 0;

	CHECK_IN_CHILD(setrlimit(RLIMIT_AS, &limit) == 0);
	while (stored < 200000 && put(&fresh, 0x1000 + stored * 16, block_for(stored)))
		stored++;
	CHECK_IN_CHILD(room < 65536 ? stored == 0 : stored > 3000); // fewer places, but places
	for (uint64_t i = 0; i < stored; i++)
		CHECK_IN_CHILD(address_table_take(&fresh, 0x1000 + i * 16, &block) && block.bytes == i * 3);
	/* What we took is a small part of what the program may have. */
	CHECK_IN_CHILD(room < 65536 || address_space_bytes() - before <= limit.rlim_cur / 32 + 131072);
	CHECK_IN_CHILD(!put(&fresh, 0, block_for(0)));
	return 0;
}

TEST(a_limited_address_space_makes_it_smaller_not_absent)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("the sanitizer reserves terabytes: address space cannot be limited under it\n");
	(void)limited;
	skip();
#else
	static uint64_t rooms[] = { 0, 1 << 20, 16 << 20, 256 << 20 };

	for (size_t i = 0; i < ARRAY_LEN(rooms); i++)
		assert_int_equal(in_child(limited, &rooms[i]), 0);
#endif
}

RUN_TESTS(start_empty, NULL)
