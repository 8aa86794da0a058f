/*
 * test_model_types.c - are kinds of objects shown at their sites, and is a damaged table of them told?
 */
#include "test.h"

#include "capture_builder.h"
#include "kmem_words.h"
#include "scratch.h"
#include "owned.h"

static struct kmem_header *
header_of(unsigned char *file)
{
	return (struct kmem_header *)(void *)file;
}

/* In the example chunk 2 holds records; both kinds are of site 1. */
static struct kmem_type *
type_of(unsigned char *file, unsigned entry)
{
	uint32_t index = header_of(file)->object_census[entry].type - 1;

	return (struct kmem_type *)(void *)(file + KMEM_HEAD_BYTES + 2 * KMEM_CHUNK_BYTES + 8 * (size_t)index);
}

static struct model *
load(const unsigned char *file, size_t bytes)
{
	capture_builder_write(scratch_file, file, bytes);
	struct model *model = loaded((struct model_options){ .capture = scratch_file });
	return model;
}

static const struct model_site *
site_with_types(const struct model *model)
{
	for (size_t i = 0; i < model->site_count; i++) {
		if (model->sites[i].type_count != 0)
			return &model->sites[i];
	}
	return NULL;
}

TEST(kinds_are_shown_at_their_site)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_CLEAN_EXIT, &bytes);
	OWNED_BY(model) struct model *model = load(file, bytes);
	const struct model_site *site = site_with_types(model);

	assert_non_null(site);
	assert_int_equal(site->live_bytes, 4000);
	assert_int_equal(site->type_count, 2);
	assert_string_equal(site->types[0].name, "project.Batch");
	assert_int_equal(site->types[0].count, 30);
	assert_string_equal(site->types[1].name, "dict");
	assert_int_equal(site->types[1].count, 10);
	assert_int_equal(model->damage_count, 0);
}

static void
more_than_possible(unsigned char *file)
{
	header_of(file)->object_count_total = kmem_twice(KMEM_OBJECT_CENSUS_MAX + 1);
}

static void
site_changed(unsigned char *file)
{
	header_of(file)->object_census[0].site ^= 1;
}

static void
of_no_site(unsigned char *file)
{
	header_of(file)->object_census[0].site = 2000;
	capture_builder_seal_object_census(header_of(file));
}

static void
type_beyond_its_section(unsigned char *file)
{
	header_of(file)->object_census[0].type = 0x10000000;
	capture_builder_seal_object_census(header_of(file));
}

static void
type_is_a_note(unsigned char *file)
{
	header_of(file)->object_census[0].type = (uint32_t)header_of(file)->notes;
	capture_builder_seal_object_census(header_of(file));
}

static void
name_longer_than_its_record(unsigned char *file)
{
	struct kmem_type *type = type_of(file, 0);

	type->name_bytes = UINT32_MAX;
	capture_builder_seal(&type->record);
}

static void
name_changed(unsigned char *file)
{
	*(char *)(type_of(file, 0) + 1) ^= 1;
}

/* The program was killed there. */
TEST(kinds_that_were_being_written_are_no_damage)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);

	header_of(file)->object_count_total = 0;
	OWNED_BY(model) struct model *model = load(file, bytes);
	assert_null(site_with_types(model));
	assert_int_equal(model->damage_count, 0);
}

static const struct {
	const char *name;
	void (*damage)(unsigned char *file);
	unsigned left; // kinds that are shown all the same
	const char *says;
} damages[] = {
	{ "more than possible", more_than_possible, 0, "the checksum of the object counts is wrong" },
	{ "site changed", site_changed, 0, "the checksum of the object counts is wrong" },
	{ "of no site", of_no_site, 1, "objects of site 2000, but there are only 1024 sites" },
	{ "type beyond its section", type_beyond_its_section, 1, "type of objects" },
	{ "type is a note", type_is_a_note, 1, "type wanted 5, found 4" },
	{ "name longer than its record", name_longer_than_its_record, 1, "type of objects needs 4294967" },
	{ "name changed", name_changed, 1, "type of objects" },
};

TEST(what_is_damaged_is_left_out_and_told)
{
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		size_t bytes;
		OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);

		damages[i].damage(file);
		capture_builder_reseal(file, bytes);

		OWNED_BY(model) struct model *model = load(file, bytes);
		const struct model_site *site = site_with_types(model);

		if (!is_told(model, damages[i].says))
			fail_msg("%s: was not told; first of %zu: %s", damages[i].name, model->damage_count,
			         model->damage_count != 0 ? model->damages[0] : "none");
		if ((site != NULL ? site->type_count : 0) != damages[i].left)
			fail_msg("%s: shows %u kinds", damages[i].name, site != NULL ? site->type_count : 0);
	}
}

TEST(the_most_frequent_kinds_are_kept)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	struct model_tally types[MODEL_TYPES_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		model_tally_add(types, &count, MODEL_TYPES_MAX, names[i], 10 * (i + 1));
	model_tally_add(types, &count, MODEL_TYPES_MAX, names[7], 5);
	model_tally_add(types, &count, MODEL_TYPES_MAX, names[0], 1); // too few: it was left out, and stays so
	assert_int_equal(count, MODEL_TYPES_MAX);
	for (unsigned i = 0; i < count; i++) {
		assert_ptr_equal(types[i].name, names[7 - i]);
		assert_int_equal(types[i].count, 10 * (8 - i) + (i == 0 ? 5 : 0));
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
