/*
 * test_boot_arena.c - is what the arena gives out apart, aligned, zeroed and known as its own?
 */
#include "unit.h"

#include "base/boot_arena.h"

static int
pieces(void *unused)
{
	static const struct {
		size_t alignment;
		size_t bytes;
	} cases[] = { { 1, 0 }, { 0, 1 }, { 16, 15 }, { 16, 16 }, { 8, 17 }, { 64, 100 }, { 4096, 10 }, { 32, 1000 } };
	unsigned char *given[ARRAY_LEN(cases)];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		given[i] = boot_arena_allocate(cases[i].alignment, cases[i].bytes);
		CHECK_IN_CHILD(given[i] != NULL);
		CHECK_IN_CHILD((uintptr_t)given[i] % (cases[i].alignment > 16 ? cases[i].alignment : 16) == 0);
		CHECK_IN_CHILD(boot_arena_serves(given[i]));
		for (size_t b = 0; b < cases[i].bytes; b++)
			CHECK_IN_CHILD(given[i][b] == 0);
		memset(given[i], (int)i + 1, cases[i].bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_IN_CHILD(boot_arena_bytes(given[i]) == cases[i].bytes);
		for (size_t b = 0; b < cases[i].bytes; b++)
			CHECK_IN_CHILD(given[i][b] == i + 1);
	}
	return 0;
}

TEST(pieces_are_aligned_zeroed_and_apart)
{
	assert_int_equal(in_child(pieces, NULL), 0);
}

static int
fills(void *unused)
{
	unsigned count = 0;

	CHECK_IN_CHILD(boot_arena_allocate(16, SIZE_MAX) == NULL);
	CHECK_IN_CHILD(boot_arena_allocate(SIZE_MAX / 2 + 1, 1) == NULL);
	CHECK_IN_CHILD(boot_arena_allocate(16, 40000) != NULL);
	CHECK_IN_CHILD(boot_arena_allocate(16, 40000) == NULL);
	CHECK_IN_CHILD(boot_arena_allocate(16, 100) != NULL); // a refusal took nothing
	while (boot_arena_allocate(16, 100) != NULL)
		count++;
	CHECK_IN_CHILD(count > 100);
	CHECK_IN_CHILD(boot_arena_allocate(16, 100) == NULL);
	return 0;
}

TEST(when_full_it_refuses_and_a_refusal_costs_nothing)
{
	assert_int_equal(in_child(fills, NULL), 0);
}

TEST(other_memory_is_not_its_own)
{
	char local;
	void *heap = malloc(10);

	assert_false(boot_arena_serves(NULL));
	assert_false(boot_arena_serves(&local));
	assert_false(boot_arena_serves(heap));
	free(heap);
}

RUN_TESTS(NULL, NULL)
