/*
 * test_capture_cut.c - what is read of a capture that was cut, because a copy was interrupted or the disk was full, or of which the
 * program was killed in the middle of a part?
 */
#include "test.h"

#include <inttypes.h>

#include "capture_builder.h"
#include "kmem_words.h"
#include "scratch.h"
#include "owned.h"

/* Cut anywhere: refused, or read without a crash. */
TEST(a_file_cut_anywhere_is_no_crash)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);

	for (size_t cut = 0; cut < bytes; cut += 4099) {
		struct model_options options = { .capture = scratch_file, .is_salvage = (cut & 1) != 0 };
		struct fail fail = { .text = "" };

		capture_builder_write(scratch_file, file, cut);
		OWNED_BY(model) struct model *model = model_load(&options, &fail);
		assert_true(model != NULL || fail.code == EXIT_CAPTURE);
		assert_true(model == NULL || options.is_salvage);
	}
}

/* A copy that was interrupted: the head still knows what was live, and what was refused is not known to be the end. */
TEST(a_cut_capture_says_what_its_head_knows)
{
	static const size_t cuts[] = { 0, 2 * sizeof(struct kmem_site), KMEM_CHUNK_BYTES };
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
	struct model_options options = { .capture = scratch_file, .is_salvage = true };
	struct fail fail = { .text = "" };

	capture_builder_write(scratch_file, file, bytes);
	OWNED_BY(model) struct model *whole = model_load(&options, &fail);
	assert_non_null(whole);
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		capture_builder_write(scratch_file, file, KMEM_HEAD_BYTES + cuts[i]);
		OWNED_BY(model) struct model *model = model_load(&options, &fail);
		assert_non_null(model);
		assert_true(is_told(model, "capture is truncated"));
		assert_int_equal(model->domain_count, whole->domain_count);
		for (size_t k = 0; k < model->domain_count; k++) {
			assert_int_equal(model->domains[k].live_bytes, whole->domains[k].live_bytes);
			assert_int_equal(model->domains[k].peak_bytes, whole->domains[k].peak_bytes);
		}
		assert_int_equal(model->processes[0].live_bytes, whole->processes[0].live_bytes);
		if (cuts[i] < KMEM_CHUNK_BYTES)                                               // what stands before the cut
			assert_true(model->site_count <= cuts[i] / sizeof(struct kmem_site) + 1); // and that of the refused request
		assert_true(model->failed_count == 1 && (model->failed[0].had_success_after || cuts[i] == KMEM_CHUNK_BYTES));
	}
}

/* Its directory says 512 MiB. */
TEST(what_is_behind_a_cut_takes_no_memory)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
	struct kmem_chunk *directory = (struct kmem_chunk *)(void *)(file + KMEM_DIRECTORY_OFFSET);
	struct fail fail = { .text = "" };
	struct capture *capture;
	size_t held = 0;

	for (unsigned i = 0; i < KMEM_CHUNKS_MAX; i++) {
		if (directory[i].section == KMEM_SECTION_NONE)
			directory[i] = (struct kmem_chunk){ .section = KMEM_SECTION_RECORDS,
				                                .inverted = (uint8_t)~KMEM_SECTION_RECORDS };
	}
	capture_builder_write(scratch_file, file, bytes);
	assert_true(capture_open(scratch_file, true, &capture, &fail));
	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++)
		held += capture->sections[i].size_bytes;
	assert_true(held <= bytes);
	assert_true(capture->sections[KMEM_SECTION_RECORDS].is_cut);
	capture_close(capture);
}

/* Of a program that was killed while it wrote it; another byte of it that changes is damage. */
TEST(what_was_being_written_is_left_out_without_a_word)
{
	static const struct {
		uint64_t sequence;
		uint32_t checksum; // 0: as the recorder leaves it
		bool is_damage;
	} cases[] = { { 2, 0, false }, { 130, 0, false }, { 0, 1, true }, { 2, 1, true } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t bytes;
		OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
		struct kmem_header *header = (struct kmem_header *)(void *)file;

		((struct kmem_heartbeat *)(void *)(file + KMEM_HEARTBEATS_OFFSET))->sequence = cases[i].sequence;
		header->heartbeat_checksums[0] = cases[i].checksum;
		header->failed[0].sequence = cases[i].sequence;
		header->failed[0].checksum = cases[i].checksum;
		capture_builder_write(scratch_file, file, bytes);
		OWNED_BY(model) struct model *model = loaded((struct model_options){ .capture = scratch_file });
		assert_int_equal(model->damage_count, cases[i].is_damage ? 2 : 0);
		assert_int_equal(model->failed_count, 0);
		assert_int_equal(model->processes[0].heartbeat_count, 1);
		assert_int_equal(model->processes[0].heartbeats[0].sequence, 1);
	}
}

/* The total and the sum of the sites may differ by what threads hold back: here two may have been, one without a record. */
TEST(a_total_that_differs_from_its_sites_is_damage)
{
	static const struct {
		int64_t ahead_bytes; // of the total
		size_t damage_count;
	} cases[] = { { 0, 0 },      { -131072, 0 },  { 131072, 0 },      { -140000, 1 },
		          { 140000, 1 }, { 64 << 20, 1 }, { -(120 << 20), 1 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		static const uint64_t frames[] = { 0x900000, 0x900100, 0x900200, 0x900300, 0x900400, 0x900500 };
		struct capture_builder *builder = capture_builder_new();
		size_t bytes;

		for (unsigned k = 0; k < ARRAY_LEN(frames); k++)
			capture_builder_site(builder, KMEM_DOMAIN_HEAP, capture_builder_stack(builder, &frames[k], 1, 0), 60 << 20,
			                     1215, 30 << 20, 15);
		capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->peak.now += (uint64_t)cases[i].ahead_bytes;
		capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->peak.now &= KMEM_PEAK_BYTES_MASK;
		unsigned char *file = capture_builder_finish(builder, KMEM_STATE_RUNNING, &bytes);
		capture_builder_write(scratch_file, file, bytes);
		OWNED_BY(model) struct model *model = loaded((struct model_options){ .capture = scratch_file });
		if (model->damage_count != cases[i].damage_count)
			fail_msg("case %zu: %zu damages: %s", i, model->damage_count,
			         model->damage_count != 0 ? model->damages[0] : "");
		assert_int_equal(model->domains[0].live_bytes, 180 << 20);
		capture_builder_free(builder);
		free(file);
	}
}

/* What is left out of a damaged record is in the totals, for the head knows them, and said to be in no line. */
TEST(a_record_that_contradicts_itself_is_left_out)
{
	static const uint64_t frames[] = { 0x900000, 0x900100, 0x900200, 0x900300, 0x900400, 0x900500 };
	static const struct {
		size_t offset;
		uint64_t flip;
		bool is_left_out;
	} cases[] = {
		{ offsetof(struct kmem_site, allocated_bytes), UINT64_C(1) << 62, true },
		{ offsetof(struct kmem_site, freed_bytes), UINT64_C(1) << 50, true },
		{ offsetof(struct kmem_site, peak), UINT64_C(1) << 46, true },
		{ offsetof(struct kmem_site, allocated_count), UINT64_C(1) << 44, true },
		{ offsetof(struct kmem_site, freed_count), UINT64_C(1) << 63, true },
		// what it held at the peak: only that is not known
		{ offsetof(struct kmem_site, peak) + 8, UINT64_C(1) << 40, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct capture_builder *builder = capture_builder_new();
		uint64_t listed_bytes = 0;
		uint64_t word;
		size_t bytes;

		capture_builder_header(builder)->generation_clock = kmem_clock_at(UINT64_C(360) << 20);
		for (unsigned k = 0; k < ARRAY_LEN(frames); k++)
			capture_builder_site(builder, KMEM_DOMAIN_HEAP, capture_builder_stack(builder, &frames[k], 1, 0), 60 << 20,
			                     1215, 30 << 20, 15);
		unsigned char *at = (unsigned char *)capture_builder_site_at(builder, 2) + cases[i].offset;

		memcpy(&word, at, sizeof(word));
		word ^= cases[i].flip;
		memcpy(at, &word, sizeof(word));
		unsigned char *file = capture_builder_finish(builder, KMEM_STATE_RUNNING, &bytes);
		capture_builder_write(scratch_file, file, bytes);
		OWNED_BY(model)
		struct model *model = loaded((struct model_options){ .capture = scratch_file, .is_salvage = true });
		for (size_t k = 0; k < model->site_count; k++) {
			listed_bytes += model->sites[k].live_bytes;
			assert_true(model->sites[k].peak_bytes <= model->domains[0].peak_bytes);
			assert_true(model->sites[k].allocated_count == 1215);
		}
		if (model->domains[0].live_bytes != 180 << 20 || (model->unlisted_bytes != 0) != cases[i].is_left_out)
			fail_msg("case %zu: %" PRIu64 " live, %" PRIu64 " of no line", i, model->domains[0].live_bytes,
			         model->unlisted_bytes);
		assert_int_equal(listed_bytes, (cases[i].is_left_out ? 150 : 180) << 20);
		assert_true(model->damaged_places == model->capture_damage_count);
		capture_builder_free(builder);
		free(file);
	}
}

/* The program gave up the right to close it (seccomp), or had no address space left: that of a killed one is as good. */
TEST(a_capture_that_could_not_be_sealed_is_not_damaged)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_CLEAN_EXIT, &bytes);
	struct kmem_chunk *directory = (struct kmem_chunk *)(void *)(file + KMEM_DIRECTORY_OFFSET);

	((struct kmem_header *)(void *)file)->head_checksum = 0;
	for (uint32_t i = 0; i < KMEM_CHUNKS_MAX; i++) {
		directory[i].is_sealed = 0;
		directory[i].checksum = 0;
	}
	capture_builder_write(scratch_file, file, bytes);
	OWNED_BY(model) struct model *model = loaded((struct model_options){ .capture = scratch_file });
	assert_int_equal(model->damage_count, 0);
}

RUN_TESTS_IN(scratch_make, scratch_remove)
