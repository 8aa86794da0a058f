/*
 * test_exit.c - are live figures those of the moment when the program began to exit, and does the rest stay as it was?
 */
#include "test.h"

#include "kmem_words.h"
#include "load_built.h"
#include "owned.h"

/*
 * A line of two threads: one allocated 10 blocks of 1,000 bytes by the time of the exit, the other released 8 of them afterwards, in a
 * record that did not exist yet. Another line holds 300 bytes that came afterwards.
 */
static struct capture_builder *
new_scene(struct kmem_exit **taken)
{
	struct capture_builder *builder = capture_builder_new();
	uint64_t frames[] = { 0x400100, 0x500200 };
	uint64_t late[] = { 0x400300, 0x500200 };
	uint32_t stack = capture_builder_stack(builder, frames, 2, 0);
	uint32_t site = capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 10000, 10, 0, 0);
	uint32_t other = capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 0, 0, 8000, 8);

	capture_builder_site(builder, KMEM_DOMAIN_HEAP, capture_builder_stack(builder, late, 2, 0), 300, 1, 0, 0);
	capture_builder_site_at(builder, site)->slot = 1;
	capture_builder_site_at(builder, site)->first_generation = 2;
	capture_builder_site_at(builder, other)->slot = 2;
	capture_builder_site_at(builder, other)->first_generation = 40;
	capture_builder_header(builder)->generation_clock = 40;
	struct kmem_generations *block = capture_builder_generations(builder, site, 12, 20);
	*capture_builder_born(block, 15) = 2; // what was not released
	*taken = capture_builder_exit(builder, 1, 1);
	(*taken)->clock = 21;
	(*taken)->live_bytes = 10000;
	(*taken)->sites[0] = (struct kmem_exit_site){
		.site = site + 1, .generations = 1, .live_bytes = 10000, .live_count = 10
	};
	struct kmem_generations *copy = (struct kmem_generations *)(void *)&(*taken)->sites[1];
	copy->site = site + 1;
	capture_builder_births(copy, 12, 20);
	for (unsigned tick = 12; tick <= 20; tick++)
		*capture_builder_born(copy, tick) = 1;
	capture_builder_seal(&(*taken)->record);
	return builder;
}

TEST(what_was_released_later_is_live)
{
	struct kmem_exit *taken;
	struct model *model = load_built(new_scene(&taken), KMEM_STATE_CLEAN_EXIT);
	const struct model_site *site = &model->sites[0];

	assert_int_equal(model->damage_count, 0);
	assert_true(model->processes[0].is_at_exit);
	assert_int_equal(site->live_bytes, 10000);
	assert_int_equal(site->live_count, 10);
	assert_int_equal(site->released_bytes, 8000);
	assert_int_equal(site->allocated_bytes, 10000);
	assert_int_equal(site->generations_alive, 10);   // nine, and what is older
	assert_int_equal(site->generations_total, 10);   // of the clock then: it had not stopped
	assert_int_equal(model->sites[1].live_bytes, 0); // it came later
	assert_int_equal(model->sites[1].allocated_bytes, 300);
	assert_int_equal(model->domains[0].live_bytes, 10000);
	assert_int_equal(model->processes[0].live_bytes, 10000);
	assert_int_equal(model->processes[0].after_exit_bytes, capture_builder_volume(40));
	model_free(model);
}

/* Killed, or not at its end yet: what is live is what counts. Where more is live than then, it went on working. */
TEST(it_counts_for_a_program_that_ended_by_itself)
{
	struct kmem_exit *taken;
	struct capture_builder *builder = new_scene(&taken);
	struct model *model = load_built(builder, KMEM_STATE_RUNNING);

	assert_false(model->processes[0].is_at_exit);
	assert_int_equal(model->sites[0].live_bytes, 2000);
	assert_int_equal(model->sites[0].released_bytes, 0);
	model_free(model);

	builder = new_scene(&taken);
	capture_builder_site_at(builder, 2)->allocated_bytes = 8000;
	capture_builder_site_at(builder, 2)->peak.now = 8000;
	model = load_built(builder, KMEM_STATE_CLEAN_EXIT);
	assert_false(model->processes[0].is_at_exit);
	assert_int_equal(model->sites[0].live_bytes, 2000);
	assert_int_equal(model->sites[1].live_bytes, 8000);
	model_free(model);
}

TEST(what_cannot_be_is_left_out_and_told)
{
	for (unsigned i = 0; i < 9; i++) {
		struct kmem_exit *taken;
		struct capture_builder *builder = new_scene(&taken);

		switch (i) {
		case 0:
			taken->sites[0].site = 4;
			break;
		case 1:
			taken->sites[0].site = 0;
			break;
		case 2:
			taken->sites[0].generations = 2;
			break;
		case 3:
			taken->site_count = UINT32_MAX;
			break;
		case 4:
			taken->clock = 41;
			break;
		case 5:
			taken->sites[0].live_bytes = INT64_MAX;
			break;
		case 6:
			taken->sites[0].live_bytes = INT64_MIN;
			break;
		case 7:
			taken->sites[0].live_count = INT64_MIN;
			break;
		default:
			taken->volume_bytes = UINT64_MAX;
			break;
		}
		capture_builder_seal(&taken->record);
		OWNED_BY(model) struct model *model = load_built(builder, KMEM_STATE_CLEAN_EXIT);
		assert_int_equal(model->damage_count, 1);
		assert_non_null(strstr(model->damages[0], "the figures from the start of the exit contradict"));
		assert_int_equal(model->sites[0].live_bytes, 2000);
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
