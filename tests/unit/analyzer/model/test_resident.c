/*
 * test_resident.c - which look at the resident set does the model take, and which one not; what of the lines is in memory then?
 */

#include "test.h"

#include "capture_builder.h"
#include "scratch.h"
#include "owned.h"

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

TEST(the_newer_whole_look_is_taken)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t bytes;
		OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
		struct kmem_header *header = (struct kmem_header *)(void *)file;

		memcpy(header->resident, cases[i].looks, sizeof(header->resident));
		capture_builder_write(scratch_file, file, bytes);
		OWNED_BY(model)
		struct model *model = loaded((struct model_options){ .capture = scratch_file, .is_salvage = true });
		const struct kmem_resident *taken = model->processes[0].resident;

		if ((taken != NULL ? taken->resident_bytes : 0) != cases[i].bytes || model->damage_count != cases[i].damages)
			fail_msg("%s: %zu damages", cases[i].why, model->damage_count);
	}
}

/* The example's line with 65,536 bytes of mapping, of which 4,096 were resident. */
enum { MAPPED = 65536, THERE = 4096 };

static struct lines_case {
	void (*change)(struct kmem_header *header, struct kmem_resident_lines lines[2]);
	uint64_t untouched_bytes;
	uint64_t heap_bytes; // 0 = nobody looked
	bool is_sealed_again;
	const char *damage;
	const char *why;
} lines_cases[16];
static size_t lines_case_count;

#define LINES_CASE(change_, ...)                                                          \
	static void change_(struct kmem_header *header, struct kmem_resident_lines lines[2]); \
	__attribute__((constructor)) static void add_##change_(void)                          \
	{                                                                                     \
		lines_cases[lines_case_count++] = (struct lines_case){ change_, __VA_ARGS__ };    \
	}                                                                                     \
	static void change_(struct kmem_header *header, struct kmem_resident_lines lines[2])

LINES_CASE(nothing, MAPPED - THERE, 20000, true, NULL, "what was not resident is untouched")
{
}

LINES_CASE(one_bit, 0, 0, false, "resident bytes (0) is wrong", "a damaged bit is seen")
{
	lines[0].lines[0].large_resident_bytes ^= 1;
}

LINES_CASE(being_written, 0, 0, false, NULL, "killed while it was written: nothing is said")
{
	lines[0].checksum = 0;
	lines[0].lines[0].large_resident_bytes = 77;
}

LINES_CASE(of_an_earlier_look, MAPPED - THERE, 20000, true, NULL,
           "killed between a look and its lines: those of the look before")
{
	header->resident[1] = header->resident[0];
	header->resident[1].sequence = 2;
}

LINES_CASE(of_no_look, 0, 0, true, NULL, "of a look that is not there")
{
	lines[0].sequence = 9;
}

LINES_CASE(no_such_site, 0, 0, true, "the resident bytes of site 9999 of 1024 are not possible",
           "a site that is not there")
{
	lines[0].lines[0].site = 9999;
}

LINES_CASE(more_there_than_asked, 0, 0, true, "the resident bytes of site 2 of 1024 are not possible",
           "more than all of it")
{
	lines[0].lines[0].large_resident_bytes = MAPPED + 1;
}

LINES_CASE(more_asked_than_held, MAPPED, 20000, true, NULL, "no more than what is still held")
{
	lines[0].lines[0].large_bytes = 5 * MAPPED;
}

LINES_CASE(twice_the_same_site, MAPPED, 20000, true, NULL, "nor when it is said twice")
{
	lines[0].lines[1] = lines[0].lines[0];
}

LINES_CASE(pages_do_not_add_up, 0, 0, true, "pages of malloc's heap", "more pages than there are")
{
	lines[0].heap_sparse_bytes = lines[0].heap_bytes;
}

/* The example's last heartbeat is its second one. */
LINES_CASE(touched_meanwhile, MAPPED - THERE - 15000, 20000, true, NULL,
           "memory grew by more than what was allocated since")
{
	struct kmem_heartbeat *beats = (struct kmem_heartbeat *)(void *)((unsigned char *)header + KMEM_HEARTBEATS_OFFSET);

	beats[0].monotonic_ns = 50; // the look was at 0
	beats[0].resident_bytes = header->resident[0].resident_bytes + 30000;
	beats[0].live_bytes = beats[1].live_bytes + 10000;
}

LINES_CASE(touched_while_it_ended, MAPPED - THERE, 20000, true, NULL,
           "what came after the interpreter began to end is in no figure")
{
	touched_meanwhile(header, lines);
	header->is_finalizing = KMEM_YES;
}

LINES_CASE(of_a_device, 150, 20000, true, NULL, "of the heap, too")
{
	lines[0].lines[0].site = 3; // of the heap: 200 live bytes
	lines[0].lines[0].large_bytes = 150;
	lines[0].lines[0].large_resident_bytes = 0;
}

TEST(what_was_never_touched_is_told_by_line)
{
	for (size_t i = 0; i < lines_case_count; i++) {
		struct model_options options = { .capture = scratch_file, .is_salvage = true };
		struct fail fail;
		size_t bytes;
		OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
		struct kmem_header *header = (struct kmem_header *)(void *)file;
		uint64_t untouched_bytes = 0;

		lines_cases[i].change(header, (struct kmem_resident_lines *)(void *)(file + KMEM_RESIDENT_LINES_OFFSET));
		if (lines_cases[i].is_sealed_again)
			capture_builder_reseal(file, bytes);
		capture_builder_write(scratch_file, file, bytes);
		struct model *model = model_load(&options, &fail);
		const struct model_process *process = &model->processes[0];

		for (size_t k = 0; k < model->site_count; k++)
			untouched_bytes += model->sites[k].untouched_bytes;
		if (untouched_bytes != lines_cases[i].untouched_bytes || process->untouched_bytes != untouched_bytes ||
		    process->heap_sample.bytes != lines_cases[i].heap_bytes)
			fail_msg("%s: %zu bytes untouched, %zu of the heap", lines_cases[i].why, (size_t)untouched_bytes,
			         (size_t)process->heap_sample.bytes);
		if (model->damage_count != (lines_cases[i].damage != NULL) ||
		    (model->damage_count != 0 && strstr(model->damages[0], lines_cases[i].damage) == NULL))
			fail_msg("%s: %zu damages, the first: %s", lines_cases[i].why, model->damage_count,
			         model->damage_count != 0 ? model->damages[0] : "");
		model_free(model);
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
