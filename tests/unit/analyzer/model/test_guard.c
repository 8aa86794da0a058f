/*
 * test_guard.c - is it known that the guard was passed, and can a capture be read as of that moment?
 */
#include "test.h"

#include "load_built.h"
#include "owned.h"

#define MIB ((uint64_t)1 << 20)

/*
 * A line of two threads held 10 blocks of 1,000 bytes when the guard was passed; 8 were released afterwards, in a record that was not
 * there then. Another line came afterwards.
 */
static struct capture_builder *
new_scene(struct kmem_guard **taken)
{
	struct capture_builder *builder = capture_builder_new();
	uint64_t frames[] = { 0x400100, 0x500200 };
	uint64_t late[] = { 0x400300, 0x500200 };
	uint32_t stack = capture_builder_stack(builder, frames, 2, 0);
	uint32_t site = capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 10000, 10, 0, 0);

	capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 0, 0, 8000, 8);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, capture_builder_stack(builder, late, 2, 0), 300, 1, 0, 0);
	*taken = capture_builder_guard(builder, 1);
	(*taken)->passing = (struct kmem_guard_passing){ .monotonic_ns = 5,
		                                             .used_bytes = 95 * MIB,
		                                             .guard_bytes = 90 * MIB,
		                                             .limit_bytes = 100 * MIB,
		                                             .limit_kind = KMEM_LIMIT_CGROUP,
		                                             .action = KMEM_GUARD_INTERRUPT,
		                                             .number = 2,
		                                             .site_count = 1 };
	(*taken)->sites[0] = (struct kmem_exit_site){ .site = site + 1, .live_bytes = 10000, .live_count = 10 };
	capture_builder_seal(&(*taken)->record);
	return builder;
}

/* As it was then. */
static struct model *
load_then(struct capture_builder *builder, enum kmem_state state)
{
	struct model *model = load_built(builder, state);

	model_free(model);
	model = loaded((struct model_options){ .capture = scratch_file, .is_at_guard = true });
	return model;
}

TEST(that_it_was_passed_is_known)
{
	struct kmem_guard *taken;
	OWNED_BY(model) struct model *model = load_built(new_scene(&taken), KMEM_STATE_RUNNING);

	assert_int_equal(model->damage_count, 0);
	assert_int_equal(model->processes[0].guard.number, 2);
	assert_int_equal(model->processes[0].guard.used_bytes, 95 * MIB);
	assert_int_equal(model->sites[0].live_bytes, 2000); // of the end
	assert_int_equal(model->sites[1].live_bytes, 300);
}

TEST(a_capture_is_read_as_of_then)
{
	static const enum kmem_state ends[] = { KMEM_STATE_RUNNING, KMEM_STATE_CLEAN_EXIT };

	for (size_t i = 0; i < 2; i++) {
		struct kmem_guard *taken;
		OWNED_BY(model) struct model *model = load_then(new_scene(&taken), ends[i]);

		assert_int_equal(model->damage_count, 0);
		assert_int_equal(model->sites[0].live_bytes, 10000);
		assert_int_equal(model->sites[0].live_count, 10);
		assert_int_equal(model->sites[1].live_bytes, 0); // it came later
		assert_int_equal(model->domains[0].live_bytes, 10000);
	}
}

TEST(what_cannot_be_is_left_out_and_told)
{
	for (unsigned which = 0; which < 6; which++) {
		struct kmem_guard *taken;
		struct capture_builder *builder = new_scene(&taken);

		if (which == 0)
			taken->passing.site_count = 2; // more than the record has
		else if (which == 1)
			taken->sites[0].site = 9;
		else if (which == 2)
			taken->sites[0].live_bytes = INT64_C(1) << 50;
		else if (which == 3)
			taken->passing.action = 4;
		else if (which == 4)
			taken->passing.guard_bytes = 101 * MIB;
		else
			taken->passing.number = 0;
		capture_builder_seal(&taken->record);
		OWNED_BY(model) struct model *model = load_built(builder, KMEM_STATE_CLEAN_EXIT);
		assert_int_equal(model->processes[0].guard.number, 0);
		assert_true(is_told(model, "what was held at the guard contradicts itself"));
	}
}

RUN_TESTS(scratch_make, scratch_remove)
