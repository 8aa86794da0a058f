/*
 * test_shared_stacks.c - is a stack whole again whose outer frames stand in other records, and is a broken chain told?
 */
#include "test.h"

#include "capture_builder.h"
#include "random.h"
#include "scratch.h"
#include "owned.h"

static void
write_capture(struct capture_builder *builder)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_finish(builder, KMEM_STATE_CLEAN_EXIT, &bytes);

	capture_builder_write(scratch_file, file, bytes);
	capture_builder_free(builder);
}

static struct capture *
open_capture(struct capture_builder *builder)
{
	struct capture *capture;
	struct fail fail = { .text = "" };

	write_capture(builder);
	if (!capture_open(scratch_file, false, &capture, &fail))
		fail_msg("refused: %s", fail.text);
	return capture;
}

static void
check_frames(const struct capture_stack *stack, const uint64_t *frames, uint32_t count)
{
	assert_int_equal(stack->frame_count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(stack->frames[i], frames[i]);
}

/* Random stacks, each on a random part of an earlier one: some on parts that stand three records further out. */
TEST(every_stack_is_whole_again)
{
	enum { STACKS = 2000 };
	struct whole {
		uint64_t frames[KMEM_STACK_FRAMES_MAX];
		uint32_t count, chain, index;
	} *wholes = calloc(STACKS, sizeof(*wholes));
	struct capture_builder *builder = capture_builder_new();
	OWNED struct capture_stack *stack = calloc(1, sizeof(*stack));
	uint32_t chain_max = 0;
	uint64_t seed = 4;

	for (uint32_t i = 0; i < STACKS; i++) {
		struct whole *whole = &wholes[i];
		const struct whole *outside = i != 0 ? &wholes[i - 1 - random_below(&seed, i < 3 ? i : 3)] : NULL;
		uint32_t outer = 0;

		if (outside != NULL && outside->chain < KMEM_STACK_CHAIN_MAX && outside->count != 0 &&
		    random_below(&seed, 100) != 0)
			outer = 1 + (uint32_t)random_below(&seed, outside->count);
		uint32_t own = (uint32_t)random_below(&seed, KMEM_STACK_FRAMES_MAX + 1 - outer);
		own %= random_below(&seed, 16) == 0 ? KMEM_STACK_FRAMES_MAX + 1 : 12;
		for (uint32_t k = 0; k < own; k++)
			whole->frames[k] = random_next(&seed) & KMEM_FRAME_PC_MASK;
		if (outer != 0)
			memcpy(whole->frames + own, outside->frames + outside->count - outer, outer * sizeof(uint64_t));
		whole->count = own + outer;
		whole->chain = outer != 0 ? outside->chain + 1 : 0;
		chain_max = whole->chain > chain_max ? whole->chain : chain_max;
		whole->index = capture_builder_stack_on(builder, outer != 0 ? outside->index : 0, outer, whole->frames, own, 0);
	}
	assert_int_equal(chain_max, KMEM_STACK_CHAIN_MAX);
	OWNED_BY(capture) struct capture *capture = open_capture(builder);
	for (uint32_t i = STACKS; i-- > 0;) {
		assert_true(capture_stack(capture, wholes[i].index, "stack", stack));
		check_frames(stack, wholes[i].frames, wholes[i].count);
		assert_int_equal(stack->flags, 0);
	}
	assert_int_equal(capture->damage_count, 0);
	free(wholes);
}

/*
 * Three records: frames 7 8 9; 4 5 6 on the outer 8 9; 1 2 3 on the outer 6 8 9. One of them is damaged, and two more lead
 * over the broken place.
 */
struct chain {
	struct capture_builder *builder;
	uint32_t outermost, middle, inner;
	uint32_t others[2];
};

static void
change_link(struct chain *chain, uint32_t *field, uint32_t value)
{
	*field = value;
	capture_builder_seal(&capture_builder_stack_at(chain->builder, chain->middle)->record);
}

static void
flip_outermost(struct chain *chain)
{
	capture_builder_stack_at(chain->builder, chain->outermost)->frames[1] ^= 1;
}

static void
outermost_of_other_type(struct chain *chain)
{
	struct kmem_record *record = &capture_builder_stack_at(chain->builder, chain->outermost)->record;

	record->type = KMEM_RECORD_NOTE;
	capture_builder_seal(record);
}

static void
link_to_nothing(struct chain *chain)
{
	change_link(chain, &capture_builder_stack_at(chain->builder, chain->middle)->record.previous, 0);
}

static void
link_to_itself(struct chain *chain)
{
	change_link(chain, &capture_builder_stack_at(chain->builder, chain->middle)->record.previous, chain->middle);
}

static void
link_forward(struct chain *chain)
{
	change_link(chain, &capture_builder_stack_at(chain->builder, chain->middle)->record.previous, chain->inner);
}

static void
link_beyond_section(struct chain *chain)
{
	change_link(chain, &capture_builder_stack_at(chain->builder, chain->middle)->record.previous, UINT32_MAX);
}

static void
count_links_wrong(struct chain *chain)
{
	struct kmem_stack *outermost = capture_builder_stack_at(chain->builder, chain->outermost);

	outermost->chain = 7;
	capture_builder_seal(&outermost->record);
}

static void
too_few_frames(struct chain *chain)
{
	struct kmem_stack *outermost = capture_builder_stack_at(chain->builder, chain->outermost);

	outermost->frame_count = outermost->own_count = 1;
	capture_builder_seal(&outermost->record);
}

TEST(broken_chains_keep_the_inner_frames)
{
	static const struct {
		void (*damage)(struct chain *chain);
		const char *says;
	} cases[] = {
		{ flip_outermost, "stack of site 0: the record of its outer frames at byte 0: checksum wanted" },
		{ outermost_of_other_type, "its outer frames at byte 0: type wanted 1, found 4" },
		{ link_to_nothing, "its outer frames at byte 0 cannot be there (1 links from byte 64)" },
		{ link_to_itself, "its outer frames at byte 64 cannot be there" },
		{ link_forward, "its outer frames at byte 128 cannot be there" },
		{ link_beyond_section, "its outer frames at byte 34359738352 cannot be there" },
		{ count_links_wrong, "at byte 0 has 3 frames and 7 links, wanted 2 and 0: these frames are left out" },
		{ too_few_frames, "at byte 0 has 1 frames and 0 links, wanted 2 and 0" },
	};
	static const uint64_t frames[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	static const uint64_t kept[] = { 1, 2, 3, 6 };
	static const uint64_t others[] = { 100, 101 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = capture_builder_new();
		struct chain chain = { .builder = builder };
		struct capture_stack stack;

		chain.outermost = capture_builder_stack(builder, frames + 6, 3, 0);
		chain.middle = capture_builder_stack_on(builder, chain.outermost, 2, frames + 3, 3, 0);
		chain.inner = capture_builder_stack_on(builder, chain.middle, 3, frames, 3, KMEM_STACK_ALTERNATE);
		chain.others[0] = capture_builder_stack_on(builder, chain.inner, 2, others, 1, 0);
		chain.others[1] = capture_builder_stack_on(builder, chain.middle, 1, others + 1, 1, 0);
		cases[i].damage(&chain);
		OWNED_BY(capture) struct capture *capture = open_capture(builder);
		assert_true(capture_stack(capture, chain.inner, "stack of site 0", &stack));
		check_frames(&stack, kept, 4);
		assert_int_equal(stack.flags, KMEM_STACK_ALTERNATE | KMEM_STACK_NO_END);
		assert_true(capture_stack(capture, chain.others[0], "stack of site 1", &stack));
		check_frames(&stack, others, 1);
		assert_int_equal(stack.flags, KMEM_STACK_NO_END);
		assert_true(capture_stack(capture, chain.others[1], "stack of site 2", &stack));
		check_frames(&stack, others + 1, 1);
		assert_int_equal(capture->damage_count, 1);
		if (strstr(capture->damages[0], cases[i].says) == NULL)
			fail_msg("said: %s", capture->damages[0]);
	}
}

TEST(more_own_frames_than_all_are_refused)
{
	static const uint64_t frames[] = { 1, 2, 3 };
	struct capture_builder *builder = capture_builder_new();
	uint32_t index = capture_builder_stack(builder, frames, 3, 0);
	struct kmem_stack *stored = capture_builder_stack_at(builder, index);
	struct capture_stack stack;

	stored->frame_count = 2;
	capture_builder_seal(&stored->record);
	OWNED_BY(capture) struct capture *capture = open_capture(builder);
	assert_false(capture_stack(capture, index, "stack of site 0", &stack));
	assert_int_equal(capture->damage_count, 1);
	assert_non_null(strstr(capture->damages[0], "stack of site 0 at byte 0 has 2 frames, 3 of them its own"));
}

/* The chain is longer than possible although every link of it is sound. */
TEST(chains_end)
{
	struct capture_builder *builder = capture_builder_new();
	uint64_t frames[KMEM_STACK_CHAIN_MAX + 2];
	uint32_t stacks[KMEM_STACK_CHAIN_MAX + 2];
	struct capture_stack stack;

	for (uint32_t i = 0; i < KMEM_STACK_CHAIN_MAX + 2; i++) {
		frames[KMEM_STACK_CHAIN_MAX + 1 - i] = i;
		stacks[i] = capture_builder_stack_on(builder, i != 0 ? stacks[i - 1] : 0, i,
		                                     &frames[KMEM_STACK_CHAIN_MAX + 1 - i], 1, 0);
	}
	OWNED_BY(capture) struct capture *capture = open_capture(builder);
	assert_true(capture_stack(capture, stacks[KMEM_STACK_CHAIN_MAX], "stack", &stack));
	check_frames(&stack, frames + 1, KMEM_STACK_CHAIN_MAX + 1);
	assert_int_equal(capture->damage_count, 0);
	assert_true(capture_stack(capture, stacks[KMEM_STACK_CHAIN_MAX + 1], "stack", &stack));
	check_frames(&stack, frames, 1);
	assert_int_equal(capture->damage_count, 1);
	assert_non_null(strstr(capture->damages[0], "(33 links from byte "));
}

TEST(a_gap_in_the_part_that_is_left_out_is_gone)
{
	static const uint64_t frames[] = { 1, 2, 3, 4 };

	for (uint32_t gap = 1; gap <= 4; gap++) {
		struct capture_builder *builder = capture_builder_new();
		uint32_t outer = capture_builder_stack(builder, frames + 2, 2, 0);
		uint32_t inner = capture_builder_stack_on(builder, outer, 2, frames, 2, KMEM_STACK_TRUNCATED);
		struct kmem_stack *stored = capture_builder_stack_at(builder, inner);
		struct capture_stack stack;

		stored->omitted = 5;
		stored->omitted_at = gap;
		capture_builder_seal(&stored->record);
		capture_builder_stack_at(builder, outer)->frames[0] = 77;
		OWNED_BY(capture) struct capture *capture = open_capture(builder);
		assert_true(capture_stack(capture, inner, "stack", &stack));
		check_frames(&stack, frames, 2);
		assert_int_equal(stack.omitted, gap <= 2 ? 5 : 0);
		assert_int_equal(stack.omitted_at, gap <= 2 ? gap : 0);
		assert_int_equal(stack.flags, gap <= 2 ? KMEM_STACK_NO_END | KMEM_STACK_TRUNCATED : KMEM_STACK_NO_END);
	}
}

/* The model: the gap stands where the whole stack has it, and equal stacks of other records are one. */
TEST(the_model_shows_whole_stacks)
{
	static const uint64_t frames[] = { 0x400100, 0x400200, 0x400300, 0x400400 };
	struct capture_builder *builder = capture_builder_new();
	uint32_t whole = capture_builder_stack(builder, frames, 4, 0);
	uint32_t part = capture_builder_stack_on(builder, whole, 2, frames, 2, 0);
	uint32_t gap = capture_builder_stack_on(builder, whole, 3, frames + 3, 1, KMEM_STACK_TRUNCATED);
	struct kmem_stack *stored = capture_builder_stack_at(builder, gap);

	stored->omitted = 9;
	stored->omitted_at = 3;
	capture_builder_seal(&stored->record);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, whole, 1000, 1, 0, 0);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, part, 2000, 1, 0, 0);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, gap, 4000, 1, 0, 0);
	write_capture(builder);
	OWNED_BY(model) struct model *model = loaded((struct model_options){ .capture = scratch_file });
	assert_int_equal(model->damage_count, 0);
	assert_int_equal(model->site_count, 2);
	assert_int_equal(model->sites[0].live_bytes, 3000);
	assert_int_equal(model->sites[0].frame_count, 4);
	assert_int_equal(model->sites[1].frame_count, 4);
	assert_int_equal(model->sites[1].omitted, 9);
	assert_int_equal(model->sites[1].frames_before_gap, 3);
	for (unsigned i = 1; i < 4; i++)
		assert_ptr_equal(model->sites[1].frames[i], model->sites[0].frames[i]);
}

RUN_TESTS_IN(scratch_make, scratch_remove)
