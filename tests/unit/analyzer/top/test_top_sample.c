/*
 * test_top_sample.c - what does a sample have of the lines of a capture?
 */
#include "test.h"

#include "capture_builder.h"
#include "scratch.h"
#include "top/top_sample.h"

#define MIB (UINT64_C(1) << 20)
#define LONG "a_part_of_a_name_that_goes_on_and_on_until_it_is_cut_in_its_middle"

static void
add_line(struct capture_builder *builder, const char *function, uint64_t bytes)
{
	static const uint8_t table[] = { 0x80 | 13 << 3 | 3, 4 };
	uint64_t frame = capture_builder_python_frame(
		capture_builder_code(builder, "/srv/project/train.py", function, 39, 0, table, sizeof(table)), 0);

	capture_builder_site(builder, KMEM_DOMAIN_HEAP, capture_builder_stack(builder, &frame, 1, 0), bytes, 1, 0, 0);
}

/* Two instances of a template stand in one line of the source, and only the middle of their names differs, which is not shown. */
TEST_WITH(lines_that_look_the_same_are_compared_with_themselves, scratch_make, scratch_remove)
{
	const struct model_options captures = { .capture = scratch_file };
	const struct top_wish wish = { .capture = NULL };
	struct capture_builder *builder = capture_builder_new();
	struct fail fail = { .text = "" };
	struct top_sample *samples[2];
	size_t bytes;

	add_line(builder, LONG "_of_int_" LONG, 2 * MIB);
	add_line(builder, LONG "_of_string_" LONG, MIB);
	unsigned char *file = capture_builder_finish(builder, KMEM_STATE_CLEAN_EXIT, &bytes);
	capture_builder_write(scratch_file, file, bytes);
	free(file);
	capture_builder_free(builder);
	for (unsigned i = 0; i < 2; i++) {
		samples[i] = top_sample_take(&captures, &wish, &fail);
		assert_non_null(samples[i]);
		assert_int_equal(samples[i]->row_count, 2);
	}
	assert_string_equal(samples[0]->rows[0].place, samples[0]->rows[1].place);
	assert_true(samples[0]->rows[0].key != samples[0]->rows[1].key);
	for (unsigned i = 0; i < 2; i++)
		assert_true(samples[0]->rows[i].key == samples[1]->rows[i].key);
	top_sample_free(samples[0]);
	top_sample_free(samples[1]);
}

RUN_TESTS(NULL, NULL)
