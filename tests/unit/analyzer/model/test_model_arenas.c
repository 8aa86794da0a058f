/*
 * test_model_arenas.c - do sampled small objects and what is left of the arenas add up to what the arenas take?
 */
#include "test.h"

#include <math.h>

#include "kmem_words.h"
#include "load_built.h"
#include "owned.h"

#define R KMEM_PYTHON_SAMPLE_BYTES
#define MIB (UINT64_C(1) << 20)

static struct model *
load_sound(struct capture_builder *builder)
{
	struct model *model = load_built(builder, KMEM_STATE_CLEAN_EXIT);

	if (model->damage_count != 0)
		fail_msg("damaged: %s", model->damages[0]);
	return model;
}

static struct capture_builder *
begin(uint64_t sample_bytes)
{
	struct capture_builder *builder = capture_builder_new();

	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_ARENA)->name, "python/arena");
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_OBJECT)->name, "python/object");
	capture_builder_header(builder)->python_sample_bytes = sample_bytes != 0 ? kmem_twice((uint32_t)sample_bytes) : 0;
	return builder;
}

static void
add(struct capture_builder *builder, unsigned domain, uint64_t pc, uint16_t flags, uint64_t allocated_bytes,
    uint64_t freed_bytes)
{
	uint64_t frames[] = { pc, 0x500200 };
	uint32_t stack = capture_builder_stack(builder, frames, flags == KMEM_STACK_ARENA ? 0 : 2, flags);

	capture_builder_site(builder, domain, stack, allocated_bytes, allocated_bytes / 64, freed_bytes, freed_bytes / 64);
}

static const struct model_domain *
domain_of(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->domain_count; i++) {
		if (strcmp(model->domains[i].name, name) == 0)
			return &model->domains[i];
	}
	return NULL;
}

/* All sites of a domain. */
static struct model_site
sum_of(const struct model *model, const char *name)
{
	struct model_site sum = { 0 };

	for (size_t i = 0; i < model->site_count; i++) {
		if (strcmp(model->domains[model->sites[i].domain].name, name) != 0)
			continue;
		sum.live_bytes += model->sites[i].live_bytes;
		sum.peak_bytes += model->sites[i].peak_bytes;
		sum.samples += model->sites[i].samples;
		sum.process_count++;
	}
	return sum;
}

/* An import's arenas among them: which line made arenas grow says nothing of what is left of them. */
TEST(objects_and_the_rest_are_the_arenas)
{
	struct capture_builder *builder = begin(R);

	add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_ARENA, 90 * MIB, 10 * MIB);
	add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_IMPORT_CUT, 20 * MIB, 0);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400200, 0, 80 * MIB, 20 * MIB);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400300, 0, 10 * MIB, 0);
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->sample_bytes, R);
	assert_int_equal(domain_of(model, "python/object")->live_bytes, 70 * MIB);
	assert_int_equal(domain_of(model, "python/arena")->live_bytes, 30 * MIB);
	assert_true(domain_of(model, "python/arena")->peak_bytes >= 30 * MIB);
	assert_int_equal(sum_of(model, "python/object").samples, 70 * MIB / R);
	assert_int_equal(sum_of(model, "python/arena").live_bytes, 30 * MIB);
	assert_int_equal(sum_of(model, "python/arena").peak_bytes, domain_of(model, "python/arena")->peak_bytes);
	assert_int_equal(sum_of(model, "python/arena").process_count, 1);
	assert_int_equal(model->processes[0].live_bytes, 100 * MIB);
}

/* Chance: then each sample stands for less. */
TEST(objects_are_never_more_than_the_arenas)
{
	struct capture_builder *builder = begin(R);

	add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_ARENA, 40 * MIB, 0);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400200, 0, 35 * MIB, 0);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400300, 0, 15 * MIB, 0);
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->sample_bytes, R * 4 / 5);
	assert_in_range(domain_of(model, "python/object")->live_bytes, 40 * MIB - 200, 40 * MIB);
	assert_int_equal(domain_of(model, "python/object")->live_bytes + domain_of(model, "python/arena")->live_bytes,
	                 40 * MIB);
	assert_int_equal(sum_of(model, "python/object").samples, 50 * MIB / R);
	assert_int_equal(model->processes[0].live_bytes, 40 * MIB);
}

/* Chance at the peak alone says nothing of what is alive, and of what was allocated. */
TEST(a_peak_that_has_no_room_makes_nothing_else_less)
{
	struct capture_builder *builder = begin(R);
	struct kmem_domain_row *objects = capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_OBJECT);

	add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_ARENA, 40 * MIB, 0);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400200, 0, 200 * MIB, 190 * MIB);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400300, 0, 15 * MIB, 0);
	capture_builder_site_at(builder, 1)->peak = kmem_peak_pack(10 * MIB, 45 * MIB, 7);
	objects->peak = kmem_peak_pack(25 * MIB, 60 * MIB, 7); // the second site has not changed since: its share is 15
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->sample_bytes, R);
	assert_int_equal(domain_of(model, "python/object")->allocated_bytes, 215 * MIB);
	assert_int_equal(domain_of(model, "python/object")->live_bytes, 25 * MIB);
	assert_int_equal(domain_of(model, "python/arena")->live_bytes, 15 * MIB);
	assert_in_range(domain_of(model, "python/object")->peak_bytes, 40 * MIB - 300, 40 * MIB);
	assert_int_equal(sum_of(model, "python/object").peak_bytes, domain_of(model, "python/object")->peak_bytes);
	assert_int_equal(sum_of(model, "python/object").samples, 25 * MIB / R);
}

/* A forked child fills what was free in the arenas that it inherited, and then makes arenas of its own. */
TEST(objects_in_inherited_arenas_are_counted_too)
{
	static const struct {
		uint64_t inherited_mib, objects_mib, wanted_objects_mib, wanted_rest_mib;
	} cases[] = {
		{ 60, 45, 45, 0 }, // 40 of them lie in inherited arenas
		{ 60, 4, 4, 1 },
		{ 30, 45, 15, 0 }, // more than there was room for: 5 of its own, 10 inherited
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = begin(R);

		capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_ARENA)->inherited_bytes = cases[i].inherited_mib * MIB;
		capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_OBJECT)->inherited_bytes = 20 * MIB;
		add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_ARENA, 5 * MIB, 0);
		add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400200, 0, cases[i].objects_mib * MIB, 0);
		OWNED_BY(model) struct model *model = load_sound(builder);
		assert_in_range(domain_of(model, "python/object")->live_bytes, cases[i].wanted_objects_mib * MIB - 200,
		                cases[i].wanted_objects_mib * MIB);
		assert_int_equal(domain_of(model, "python/arena")->live_bytes, cases[i].wanted_rest_mib * MIB);
		assert_int_equal(domain_of(model, "python/arena")->peak_bytes, cases[i].wanted_rest_mib * MIB);
	}
}

/* Which line asked is known, though what is left of the arenas has none. */
TEST(a_refused_arena_has_the_line_that_asked)
{
	struct capture_builder *builder = begin(R);
	uint64_t frames[] = { 0x400100, 0x500200 };
	uint32_t stack = capture_builder_stack(builder, frames, 2, 0);

	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_ARENA, stack, 40 * MIB, 40, 0, 0);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400200, 0, 35 * MIB, 0);
	capture_builder_header(builder)->failed_count = 1;
	capture_builder_header(builder)->failed[0] = (struct kmem_failed){
		.sequence = 1, .site = 1, .domain = KMEM_DOMAIN_PYTHON_ARENA, .bytes = MIB
	};
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->failed_count, 1);
	assert_false(model->failed[0].site->is_rest_of_arenas);
	assert_int_equal(model->failed[0].site->frame_count, 2);
	assert_int_equal(model->failed[0].site->live_bytes, 0); // what it has is told with the rest
	assert_int_equal(sum_of(model, "python/arena").live_bytes, 5 * MIB);
}

TEST(without_a_sample_arenas_are_what_they_were)
{
	struct capture_builder *builder = begin(0);

	add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_ARENA, 90 * MIB, 10 * MIB);
	add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_IMPORT_CUT, 20 * MIB, 0);
	OWNED_BY(model) struct model *model = load_sound(builder);
	assert_int_equal(model->sample_bytes, 0);
	assert_int_equal(domain_of(model, "python/arena")->live_bytes, 100 * MIB);
	assert_int_equal(sum_of(model, "python/arena").process_count, 2);
	for (size_t i = 0; i < model->site_count; i++)
		assert_false(model->sites[i].is_rest_of_arenas);
}

/* Generations count samples: those that are older than the counters are as many as the bytes say. */
TEST(generations_are_of_samples)
{
	struct capture_builder *builder = begin(R);

	capture_builder_header(builder)->generation_clock = 40;
	add(builder, KMEM_DOMAIN_PYTHON_ARENA, 0x400100, KMEM_STACK_ARENA, 90 * MIB, 0);
	add(builder, KMEM_DOMAIN_PYTHON_OBJECT, 0x400200, 0, 90 * R, 10 * R);
	capture_builder_site_at(builder, 1)->first_generation = 20;
	struct kmem_generations *block = capture_builder_generations(builder, 1, 32, 39);
	block->births |= 3u << 24;
	for (unsigned tick = 32; tick <= 39; tick++)
		*capture_builder_born(block, tick) = 9;
	OWNED_BY(model) struct model *model = load_sound(builder);
	for (size_t i = 0; i < model->site_count; i++) {
		if (model->sites[i].samples == 0)
			continue;
		assert_int_equal(model->sites[i].generations_total, 9);
		assert_int_equal(model->sites[i].generations_alive, 9); // eight with nine each, and eight samples before them
	}
}

/* Of 10,000 draws of a Poisson number around k, at least 94 in 100 lie within the error that is told of them. */
TEST(an_error_is_told_that_holds)
{
	static const double means[] = { 3, 10, 30, 100, 400, 2000 };

	assert_int_equal(model_estimate_error(R, 0), 0);
	assert_int_equal(model_estimate_error(0, 5), 0);
	for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++) {
		enum { DRAWS = 10000 };
		uint64_t random = 88172645463325252u;
		unsigned within = 0;

		for (unsigned draw = 0; draw < DRAWS; draw++) {
			double left = means[i];
			uint64_t count = 0;

			for (;;) { // exponential distances
				random ^= random << 13, random ^= random >> 7, random ^= random << 17;
				left -= -log(((double)(random >> 11) + 0.5) * 0x1p-53);
				if (left < 0)
					break;
				count++;
			}
			double error = (double)model_estimate_error(R, count * R) / (double)R;

			within += fabs((double)count - means[i]) <= (count == 0 ? 3.7 : error);
		}
		assert_in_range(within, DRAWS * 94 / 100, DRAWS);
	}
	assert_in_range(model_estimate_error(R, 96 * MIB), 10 * MIB, 11 * MIB);
}

/* Two records of a line: what each holds may be anything, also of what was released at exit. No recorder writes this; the sanitizers look on. */
TEST(any_figures_are_read)
{
	static const uint64_t figures[] = {
		0, R, (UINT64_C(1) << 47) - 1, UINT64_C(1) << 47, UINT64_MAX - 7, INT64_MAX, UINT64_C(1) << 63
	};
	static const uint32_t samples[] = { 1, R, UINT32_MAX };
	static const unsigned domains[] = { KMEM_DOMAIN_PYTHON_OBJECT, KMEM_DOMAIN_PYTHON_OBJECT, KMEM_DOMAIN_PYTHON_ARENA,
		                                KMEM_DOMAIN_PYTHON_ARENA };

	for (size_t i = 0; i < 7 * 7 * 7 * 3; i++) {
		struct capture_builder *builder = begin(samples[i % 3]);
		uint32_t stack = capture_builder_stack(builder, (uint64_t[]){ 0x400100 }, 1, 0);

		for (unsigned k = 0; k < 4; k++) {
			struct kmem_domain_row *row = capture_builder_domain(builder, domains[k]);
			const struct kmem_peak_word peak = { figures[i / 3 / (k < 2 ? 7 : 1) % 7], figures[i / 3 % 7] };
			uint32_t site = capture_builder_site(builder, domains[k], stack, peak.now, 1, 0, 0);

			capture_builder_site_at(builder, site)->peak = row->peak = peak;
			row->inherited_bytes = figures[i / 3 / 7 / 7];
		}

		struct kmem_exit *taken = capture_builder_exit(builder, 2, 0);

		taken->clock = 1;
		taken->live_bytes = INT64_MAX;
		capture_builder_header(builder)->generation_clock = 1;
		for (uint32_t k = 0; k < 2; k++)
			taken->sites[k] = (struct kmem_exit_site){ .site = k + 1, .live_bytes = R, .live_count = 1 };
		capture_builder_seal(&taken->record);
		model_free(load_built(builder, KMEM_STATE_CLEAN_EXIT));
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
