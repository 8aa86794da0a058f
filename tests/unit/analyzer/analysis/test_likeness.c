/*
 * test_likeness.c - which of the items that are alike is taken?
 */
#include "test.h"

#include "analysis/likeness.h"

#define MANY 256 // so many that are alike are looked at

static uint64_t
as_far_as_its_number(const void *context, size_t item)
{
	return item == 3 ? LIKENESS_TOO_FAR : item;
}

TEST(the_nearest_is_taken_once)
{
	static const uint64_t alike[SITE_KEY_LIKENESSES] = { 0, 7, 8 };
	static const uint64_t one_way[SITE_KEY_LIKENESSES] = { 9, 0, 8 };
	static const uint64_t other[SITE_KEY_LIKENESSES] = { 1, 2, 0 };
	struct likeness_index *index = likeness_index_new();

	likeness_index_add(index, alike, 5);
	likeness_index_add(index, one_way, 4);
	likeness_index_add(index, alike, 3);
	assert_int_equal(likeness_index_take(index, other, as_far_as_its_number, NULL), LIKENESS_NONE);
	assert_int_equal(likeness_index_take(index, alike, as_far_as_its_number, NULL), 4);
	assert_int_equal(likeness_index_take(index, alike, as_far_as_its_number, NULL), 5);
	assert_int_equal(likeness_index_take(index, alike, as_far_as_its_number, NULL), LIKENESS_NONE);
	likeness_index_free(index);
}

static uint64_t
nearer_with_its_number(const void *context, size_t item)
{
	return MANY + 1 - item;
}

/* The work for one is bounded: of thousands that are alike the first are looked at. */
TEST(of_many_the_first_are_tried)
{
	static const uint64_t alike[SITE_KEY_LIKENESSES] = { 7, 0, 0 };
	struct likeness_index *index = likeness_index_new();

	for (size_t item = 0; item <= MANY; item++)
		likeness_index_add(index, alike, item);
	assert_int_equal(likeness_index_take(index, alike, nearer_with_its_number, NULL), MANY - 1);
	likeness_index_free(index);
}

RUN_TESTS(NULL, NULL)
