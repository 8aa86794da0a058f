/*
 * test_resident.c - which look at the resident set does the model take, and which one not?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "capture_builder.h"
#include "model.h"
#include "scratch.h"


static const struct {
	struct kmem_resident looks[2];
	uint64_t bytes; // of what is taken; 0 = nothing
	size_t damages;
	const char *why;
} cases[] = {
	{ { { .sequence = 0 }, { .sequence = 0 } }, 0, 0, "no look" },
	{ { { .sequence = 1, .resident_bytes = 7, .part_bytes = { 3, 4 } } }, 7, 0, "the first" },
	{ { { 4, 0, 70, { 70 } }, { 3, 0, 7, { 7 } } }, 70, 0, "the newer one" },
	{ { { 4, 0, 70, { 70 } }, { 5, 0, 7, { 7 } } }, 7, 0, "the newer one, the other way round" },
	{ { { 0, 0, 70, { 1 } }, { 3, 0, 7, { 7 } } }, 7, 0, "killed while it was written" },
	{ { { 4, 0, 70, { 69 } }, { 3, 0, 7, { 7 } } }, 0, 1, "the parts are not the whole" },
	{ { { 4, 0, 1, { UINT64_MAX, 2 } } }, 0, 1, "nor when their sum is too large for a word" },
};

static void
the_newer_whole_look_is_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct model_options options = { .capture = scratch_file, .is_salvage = true };
		struct fail fail;
		size_t bytes;
		unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
		struct kmem_header *header = (struct kmem_header *)(void *)file;

		memcpy(header->resident, cases[i].looks, sizeof(header->resident));
		capture_builder_write(scratch_file, file, bytes);
		struct model *model = model_load(&options, &fail);
		assert_non_null(model);
		const struct kmem_resident *taken = model->processes[0].resident;

		if ((taken != NULL ? taken->resident_bytes : 0) != cases[i].bytes || model->damage_count != cases[i].damages)
			fail_msg("%s: %zu damages", cases[i].why, model->damage_count);
		model_free(model);
		free(file);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_newer_whole_look_is_taken) };

	return cmocka_run_group_tests_name("resident", tests, scratch_make, scratch_remove);
}
