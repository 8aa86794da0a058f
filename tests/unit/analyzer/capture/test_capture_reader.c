/*
 * test_capture_reader.c - is every damage of a capture refused or told, and nothing else lost?
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/capture_reader.h"
#include "capture_builder.h"
#include "kmem_words.h"
#include "model/model_load.h"
#include "scratch.h"
#include "owned.h"

static struct kmem_header *
header_of(unsigned char *file)
{
	return (struct kmem_header *)(void *)file;
}

static struct kmem_chunk *
chunk_of(unsigned char *file, unsigned chunk)
{
	return (struct kmem_chunk *)(void *)(file + KMEM_DIRECTORY_OFFSET) + chunk;
}

/* In the example chunk 0 holds sites, chunk 1 generations, chunk 2 records. */
static unsigned char *
chunk_bytes(unsigned char *file, unsigned chunk)
{
	return file + KMEM_HEAD_BYTES + chunk * KMEM_CHUNK_BYTES;
}

static struct kmem_site *
site_of(unsigned char *file, unsigned site)
{
	return (struct kmem_site *)(void *)chunk_bytes(file, 0) + site;
}

static struct kmem_record *
record_of(unsigned char *file, uint32_t index_plus_one)
{
	return (struct kmem_record *)(void *)(chunk_bytes(file, 2) + 8 * (index_plus_one - 1));
}

static struct kmem_stack *
stack_of(unsigned char *file, unsigned site)
{
	return (struct kmem_stack *)(void *)record_of(file, site_of(file, site)->stack);
}

static void
cut_to_nothing(unsigned char *file, size_t *bytes)
{
	(void)file;
	*bytes = 0;
}

static void
cut_in_magic(unsigned char *file, size_t *bytes)
{
	(void)file;
	*bytes = 5;
}

static void
cut_in_head(unsigned char *file, size_t *bytes)
{
	(void)file;
	*bytes = KMEM_HEAD_BYTES - 1;
}

static void
cut_after_first_words(unsigned char *file, size_t *bytes)
{
	(void)file;
	*bytes = 16;
}

static void
cut_last_chunk(unsigned char *file, size_t *bytes)
{
	(void)file;
	*bytes -= 1;
}

static void
foreign(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	memcpy(file, "\177ELF\2\1\1", 8);
}

static void
never_begun(unsigned char *file, size_t *bytes)
{
	memset(file, 0, *bytes);
}

static void
newer(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->version = KMEM_VERSION + 1;
}

static void
older(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->version = 1;
}

static void
other_endian(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->endian = __builtin_bswap32(KMEM_ENDIAN);
}

static void
no_endian(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->endian = 77;
}

static void
other_head_size(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->head_bytes = 4096;
}

static void
identity_changed(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->identity.pid++;
}

static void
identity_missing(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->identity_checksum = 0;
}

static void
head_changed(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->losses[0]++;
}

static void
head_checksum_missing(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->head_checksum = 0;
}

/* A disk gave back a sector of zeros. */
static void
sealing_sector_zeroed(unsigned char *file, size_t *bytes)
{
	const size_t sector = offsetof(struct kmem_header, state) / 512 * 512;

	(void)bytes;
	assert_true(offsetof(struct kmem_header, head_checksum) < sector + 512);
	memset(file + offsetof(struct kmem_header, state), 0, sector + 512 - offsetof(struct kmem_header, state));
}

static void
closed_says_running(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->state = KMEM_STATE_RUNNING;
}

static void
too_many_chunks(unsigned char *file, size_t *bytes)
{
	header_of(file)->chunk_count = UINT32_MAX;
	capture_builder_reseal(file, 0);
	(void)bytes;
}

static void
unknown_section(unsigned char *file, size_t *bytes)
{
	chunk_of(file, 1)->section = 99;
	capture_builder_reseal(file, *bytes);
}

static void
site_changed(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	site_of(file, 1)->allocated_bytes ^= 1;
}

static void
record_padding_changed(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	chunk_bytes(file, 2)[KMEM_CHUNK_BYTES - 1] ^= 1; // in no record at all
}

static void
stack_changed(unsigned char *file, size_t *bytes)
{
	stack_of(file, 2)->frames[0] ^= 1;
	capture_builder_reseal(file, *bytes);
}

static void
stack_beyond_section(unsigned char *file, size_t *bytes)
{
	site_of(file, 2)->stack = UINT32_MAX;
	capture_builder_reseal(file, *bytes);
}

static void
stack_of_other_type(unsigned char *file, size_t *bytes)
{
	site_of(file, 2)->stack = (uint32_t)header_of(file)->notes;
	capture_builder_reseal(file, *bytes);
}

static void
stack_longer_than_section(unsigned char *file, size_t *bytes)
{
	record_of(file, site_of(file, 2)->stack)->bytes = KMEM_CHUNK_BYTES;
	capture_builder_reseal(file, *bytes);
}

static void
more_frames_than_record(unsigned char *file, size_t *bytes)
{
	struct kmem_stack *stack = stack_of(file, 2);

	stack->frame_count = stack->own_count = KMEM_STACK_FRAMES_MAX;
	capture_builder_seal(&stack->record);
	capture_builder_reseal(file, *bytes);
}

static void
more_frames_than_possible(unsigned char *file, size_t *bytes)
{
	struct kmem_stack *stack = stack_of(file, 2);

	stack->frame_count = KMEM_STACK_FRAMES_MAX + 1;
	capture_builder_seal(&stack->record);
	capture_builder_reseal(file, *bytes);
}

static void
gap_behind_frames(unsigned char *file, size_t *bytes)
{
	struct kmem_stack *stack = stack_of(file, 2);

	stack->omitted = 1;
	stack->omitted_at = 3;
	capture_builder_seal(&stack->record);
	capture_builder_reseal(file, *bytes);
}

static void
notes_in_a_circle(unsigned char *file, size_t *bytes)
{
	struct kmem_record *newest = record_of(file, header_of(file)->notes);
	struct kmem_record *oldest = record_of(file, newest->previous);

	oldest->previous = (uint32_t)header_of(file)->notes;
	capture_builder_seal(oldest);
	capture_builder_reseal(file, *bytes);
}

static void
modules_lead_to_themselves(unsigned char *file, size_t *bytes)
{
	struct kmem_record *newest = record_of(file, header_of(file)->modules);

	newest->previous = (uint32_t)header_of(file)->modules;
	capture_builder_seal(newest);
	capture_builder_reseal(file, *bytes);
}

static void
module_without_extent(unsigned char *file, size_t *bytes)
{
	struct kmem_module *module = (struct kmem_module *)(void *)record_of(file, header_of(file)->modules);

	module->end_addr = module->start_addr;
	capture_builder_seal(&module->record);
	capture_builder_reseal(file, *bytes);
}

static void
code_text_too_long(unsigned char *file, size_t *bytes)
{
	struct kmem_code *code = (struct kmem_code *)(void *)record_of(file, 1);

	code->line_table_bytes = UINT32_MAX;
	capture_builder_seal(&code->record);
	capture_builder_reseal(file, *bytes);
}

static void
more_freed_than_given(unsigned char *file, size_t *bytes)
{
	site_of(file, 2)->freed_bytes = 1000000;
	capture_builder_reseal(file, *bytes);
}

static void
site_without_domain(unsigned char *file, size_t *bytes)
{
	site_of(file, 2)->domain = 200;
	capture_builder_reseal(file, *bytes);
}

static void
generations_of_another(unsigned char *file, size_t *bytes)
{
	site_of(file, 2)->generations = 1;
	capture_builder_reseal(file, *bytes);
}

static void
generations_beyond_section(unsigned char *file, size_t *bytes)
{
	site_of(file, 2)->generations = 70000;
	capture_builder_reseal(file, *bytes);
}

static void
domain_without_name(unsigned char *file, size_t *bytes)
{
	memset(((struct kmem_domain_row *)(void *)(file + KMEM_DOMAINS_OFFSET))[KMEM_DOMAIN_MMAP].name, 'x', 32);
	capture_builder_reseal(file, *bytes);
}

static void
launcher_changed(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->launcher.is_filled = 1;
	header_of(file)->launcher.wait_status = 9;
}

static void
failed_without_domain(unsigned char *file, size_t *bytes)
{
	header_of(file)->failed[0].domain = 63;
	capture_builder_reseal(file, *bytes);
}

static struct kmem_timeline *
timeline_of(unsigned char *file)
{
	return (struct kmem_timeline *)(void *)(file + KMEM_TIMELINE_OFFSET);
}

static struct kmem_mark *
whole_mark(unsigned char *file, uint32_t record)
{
	struct kmem_mark *mark = &timeline_of(file)->marks[3];

	*mark = (struct kmem_mark){ .kind = KMEM_MARK_PROGRAM, .sequence = 1, .clock = 1, .record = record, .name = "a" };
	mark->checksum = kmem_mark_checksum(mark);
	return mark;
}

static void
mark_changed(unsigned char *file, size_t *bytes)
{
	whole_mark(file, 0)->step++;
}

static void
mark_without_kind(unsigned char *file, size_t *bytes)
{
	struct kmem_mark *mark = whole_mark(file, 0);

	mark->kind = 77;
	mark->checksum = kmem_mark_checksum(mark);
}

static void
mark_without_end(unsigned char *file, size_t *bytes)
{
	struct kmem_mark *mark = whole_mark(file, 0);

	memset(mark->name, 'x', sizeof(mark->name));
	mark->checksum = kmem_mark_checksum(mark);
}

static void
snapshot_beyond_section(unsigned char *file, size_t *bytes)
{
	whole_mark(file, 100000);
}

static void
snapshot_is_a_stack(unsigned char *file, size_t *bytes)
{
	whole_mark(file, 1);
}

static void
steps_of_no_source(unsigned char *file, size_t *bytes)
{
	timeline_of(file)->steps.source = 5;
}

static void
steps_place_changed(unsigned char *file, size_t *bytes)
{
	timeline_of(file)->steps.place = kmem_twice(1) ^ 2;
}

static void
release_changed(unsigned char *file, size_t *bytes)
{
	timeline_of(file)->releases[3] = (struct kmem_release){ .checksum = 1, .site = 1, .releaser = 1, .count = 1 };
}

static void
release_of_no_site(unsigned char *file, size_t *bytes)
{
	struct kmem_release *release = &timeline_of(file)->releases[3];

	*release = (struct kmem_release){ .site = 1, .releaser = 100000, .count = 1 };
	release->checksum = kmem_release_checksum(release);
}

static void
kept_peak_changed(unsigned char *file, size_t *bytes)
{
	timeline_of(file)->kept_peak = kmem_twice(1) ^ 2;
}

static void
kept_peak_beyond_section(unsigned char *file, size_t *bytes)
{
	timeline_of(file)->kept_peak = kmem_twice(100000);
}

static void
kept_peak_without_record(unsigned char *file, size_t *bytes)
{
	((struct kmem_domain_row *)(void *)(file + KMEM_DOMAINS_OFFSET))->kept_peak_bytes = UINT64_C(1) << 40;
}

static void
request_changed(unsigned char *file, size_t *bytes)
{
	timeline_of(file)->request.wants = 1;
}

static struct kmem_history *
history_of(unsigned char *file)
{
	return (struct kmem_history *)(void *)record_of(file, (uint32_t)header_of(file)->history[0]);
}

static void
history_word_changed(unsigned char *file, size_t *bytes)
{
	header_of(file)->history[0] ^= 8;
}

static void
history_beyond_section(unsigned char *file, size_t *bytes)
{
	header_of(file)->history[1] = kmem_twice(UINT32_MAX);
}

static void
history_is_a_stack(unsigned char *file, size_t *bytes)
{
	header_of(file)->history[1] = kmem_twice(site_of(file, 0)->stack);
}

static void
point_changed(unsigned char *file, size_t *bytes)
{
	history_of(file)->points[1].resident_bytes++;
}

static void
point_of_no_site(unsigned char *file, size_t *bytes)
{
	struct kmem_history_point *point = &history_of(file)->points[1];

	point->sites[1] = 70000;
	point->checksum = kmem_history_checksum(point);
}

static void
point_of_no_domain(unsigned char *file, size_t *bytes)
{
	struct kmem_history_point *point = &history_of(file)->points[1];

	point->domains[0] = KMEM_DOMAINS_MAX;
	point->checksum = kmem_history_checksum(point);
}

static void
point_with_too_many(unsigned char *file, size_t *bytes)
{
	struct kmem_history_point *point = &history_of(file)->points[1];

	point->site_count = KMEM_HISTORY_SITES + 1;
	point->checksum = kmem_history_checksum(point);
}

static void
outcome_changed(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	header_of(file)->failed[0].outcome = KMEM_FAILED_GOT_ENOUGH ^ 0x40;
}

static void
device_snapshot_changed(unsigned char *file, size_t *bytes)
{
	(void)bytes;
	((struct kmem_device_snapshot *)(void *)record_of(file, header_of(file)->failed[0].device_snapshot))
		->sites[0]
		.live_bytes++;
}

static void
device_snapshot_beyond_section(unsigned char *file, size_t *bytes)
{
	header_of(file)->failed[0].device_snapshot = UINT32_MAX;
	capture_builder_reseal(file, *bytes);
}

/* `says`: in the message when refused, in a damage line when it is read; in salvage the whole site may be left out instead. */
static const struct {
	const char *name;
	void (*damage)(unsigned char *file, size_t *bytes);
	enum kmem_state state;
	bool is_refused;
	bool is_refused_in_salvage;
	const char *says;
} damages[] = {
	{ "empty", cut_to_nothing, KMEM_STATE_RUNNING, true, true, "is empty" },
	{ "cut in its first bytes", cut_in_magic, KMEM_STATE_RUNNING, true, true, "is not a kmemshim capture" },
	{ "cut after 16 bytes", cut_after_first_words, KMEM_STATE_RUNNING, true, true, "truncated" },
	{ "cut in its head", cut_in_head, KMEM_STATE_RUNNING, true, true,
	  "section \"head\" needs 135168 bytes, the file ends at 135167" },
	{ "cut in its last chunk", cut_last_chunk, KMEM_STATE_RUNNING, true, false,
	  "section \"records\": chunk 2 at byte 266240 needs 65536 bytes, the file ends at 331775" },
	{ "foreign", foreign, KMEM_STATE_RUNNING, true, true, "is not a kmemshim capture" },
	{ "all zeros", never_begun, KMEM_STATE_RUNNING, true, true, "has no head yet" },
	{ "newer", newer, KMEM_STATE_RUNNING, true, true,
	  "a newer kmemshim (format 14, this one reads 9 to 13): read it with a newer kmemshim" },
	{ "older", older, KMEM_STATE_RUNNING, true, true,
	  "an older kmemshim (format 1, this one reads 9 to 13): read it with the kmemshim that recorded it" },
	{ "other byte order", other_endian, KMEM_STATE_RUNNING, true, true, "other byte order" },
	{ "no byte order", no_endian, KMEM_STATE_RUNNING, true, true,
	  "byte order mark wanted 0x01020304, found 0x0000004d" },
	{ "other sizes", other_head_size, KMEM_STATE_RUNNING, true, true, "sizes wanted" },
	{ "identity changed (F4)", identity_changed, KMEM_STATE_RUNNING, true, false,
	  "section \"identity\": checksum wanted" },
	{ "no identity", identity_missing, KMEM_STATE_RUNNING, true, true, "nothing was recorded" },
	{ "head changed (F5)", head_changed, KMEM_STATE_CLEAN_EXIT, true, false, "section \"head\": checksum wanted" },
	{ "killed while closing (F5)", head_checksum_missing, KMEM_STATE_CLEAN_EXIT, false, false,
	  "while it closed the capture" },
	{ "sector of state and seal is gone (F5)", sealing_sector_zeroed, KMEM_STATE_CLEAN_EXIT, true, false,
	  "section \"head\": state 0x00000000" },
	{ "state of a closed capture changed (F5)", closed_says_running, KMEM_STATE_CLEAN_EXIT, true, false,
	  "section \"head\": state 0x01010101" },
	{ "more chunks than possible", too_many_chunks, KMEM_STATE_RUNNING, true, false, "wanted 4294967295 chunks" },
	{ "chunk of no section", unknown_section, KMEM_STATE_RUNNING, true, false, "chunk 1 names section 99" },
	{ "counter changed (F5)", site_changed, KMEM_STATE_CLEAN_EXIT, true, false,
	  "section \"sites\": chunk 0 at byte 135168: checksum" },
	{ "unused room changed (F5)", record_padding_changed, KMEM_STATE_CLEAN_EXIT, false, false,
	  "section \"records\": chunk 2" },
	{ "stack changed (F3)", stack_changed, KMEM_STATE_RUNNING, false, false, "stack of site 2 at byte" },
	{ "stack beyond its section", stack_beyond_section, KMEM_STATE_CLEAN_EXIT, false, false,
	  "beyond the end of the section" },
	{ "stack is a note", stack_of_other_type, KMEM_STATE_RUNNING, false, false, "type wanted 1, found 4" },
	{ "stack too long", stack_longer_than_section, KMEM_STATE_RUNNING, false, false, "stack of site 2 at byte" },
	{ "more frames than room", more_frames_than_record, KMEM_STATE_RUNNING, false, false,
	  "stack of site 2 needs 3112 bytes, its record has 56" },
	{ "more frames than possible", more_frames_than_possible, KMEM_STATE_RUNNING, false, false,
	  "has 385 frames, 2 of them its own: at most 384 are possible" },
	{ "gap behind the frames", gap_behind_frames, KMEM_STATE_RUNNING, false, false, "has its gap after frame 3 of 2" },
	{ "notes in a circle", notes_in_a_circle, KMEM_STATE_RUNNING, false, false, "note at byte" },
	{ "module leads to itself", modules_lead_to_themselves, KMEM_STATE_RUNNING, false, false, "points forward" },
	{ "module without extent", module_without_extent, KMEM_STATE_RUNNING, false, false, "is impossible" },
	{ "text longer than its record", code_text_too_long, KMEM_STATE_RUNNING, false, false,
	  "text of a Python function needs" },
	{ "more released than given out (S3)", more_freed_than_given, KMEM_STATE_RUNNING, false, false,
	  "1 counter released more than was allocated:" },
	{ "site of no domain", site_without_domain, KMEM_STATE_RUNNING, false, false, "1 site without a known domain" },
	{ "another site's generations (S5)", generations_of_another, KMEM_STATE_RUNNING, false, false,
	  "belongs to site 0, wanted 2" },
	{ "generations beyond their section", generations_beyond_section, KMEM_STATE_RUNNING, false, false,
	  "refers to block 69999 of" },
	{ "domain without a name", domain_without_name, KMEM_STATE_RUNNING, false, false, "domain 1 has no name" },
	{ "launcher's part changed", launcher_changed, KMEM_STATE_CLEAN_EXIT, false, false, "section \"launcher\"" },
	{ "mark changed (F7)", mark_changed, KMEM_STATE_RUNNING, false, false, "the checksum of mark 3 is wrong" },
	{ "mark of no kind", mark_without_kind, KMEM_STATE_RUNNING, false, false, "mark 3 contradicts itself" },
	{ "mark without an end", mark_without_end, KMEM_STATE_RUNNING, false, false, "mark 3 contradicts itself" },
	{ "snapshot beyond its section", snapshot_beyond_section, KMEM_STATE_RUNNING, false, false,
	  "what was held at a mark at byte 799992 is beyond the end" },
	{ "snapshot that is a stack", snapshot_is_a_stack, KMEM_STATE_RUNNING, false, false, "type wanted 10, found" },
	{ "steps of no source (F6)", steps_of_no_source, KMEM_STATE_RUNNING, false, false,
	  "what the steps are (0x00000005)" },
	{ "where steps begin changed (F6)", steps_place_changed, KMEM_STATE_RUNNING, false, false,
	  "where the steps begin" },
	{ "where the kept peak is changed (F6)", kept_peak_changed, KMEM_STATE_RUNNING, false, false,
	  "the peak of earlier phases differs" },
	{ "kept peak beyond its section", kept_peak_beyond_section, KMEM_STATE_RUNNING, false, false,
	  "what was held at the peak of earlier phases at byte 799992 is beyond the end" },
	{ "kept peak of a domain without its record", kept_peak_without_record, KMEM_STATE_RUNNING, false, false,
	  "domain 0 names a peak of earlier phases, and there is none" },
	{ "who released changed (F7)", release_changed, KMEM_STATE_RUNNING, false, false,
	  "who released blocks of site 1 cannot be read" },
	{ "released by no site", release_of_no_site, KMEM_STATE_RUNNING, false, false,
	  "who released blocks of site 1 cannot be read" },
	{ "request of a command changed", request_changed, KMEM_STATE_RUNNING, false, false,
	  "of a command's request is wrong" },
	{ "history's word changed (F6)", history_word_changed, KMEM_STATE_RUNNING, false, false,
	  "where part 0 of the history is differs" },
	{ "history beyond its section", history_beyond_section, KMEM_STATE_RUNNING, false, false,
	  "part 1 of the history is beyond the end" },
	{ "history that is a stack", history_is_a_stack, KMEM_STATE_RUNNING, false, false,
	  "part 1 of the history is not one" },
	{ "point changed (F7)", point_changed, KMEM_STATE_RUNNING, false, false,
	  "the checksum of a point of the history is wrong" },
	{ "point of no site", point_of_no_site, KMEM_STATE_RUNNING, false, false,
	  "point 1 of the history contradicts itself" },
	{ "point of no domain", point_of_no_domain, KMEM_STATE_RUNNING, false, false,
	  "point 1 of the history contradicts itself" },
	{ "point with too many sites", point_with_too_many, KMEM_STATE_RUNNING, false, false,
	  "point 1 of the history contradicts itself" },
	{ "outcome that is none (F6)", outcome_changed, KMEM_STATE_RUNNING, false, false,
	  "the outcome of refused request 0" },
	{ "what was held changed (F7)", device_snapshot_changed, KMEM_STATE_RUNNING, false, false,
	  "what a device held at byte" },
	{ "what was held beyond its section", device_snapshot_beyond_section, KMEM_STATE_RUNNING, false, false,
	  "is beyond the end of the section" },
	{ "refused request of no domain", failed_without_domain, KMEM_STATE_RUNNING, false, false, "belongs to domain 63" },
};

static void
check_case(size_t i, bool is_salvage)
{
	struct model_options options = { .capture = scratch_file, .is_salvage = is_salvage };
	struct fail fail = { .text = "" };
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(damages[i].state, &bytes);
	bool is_refused = is_salvage ? damages[i].is_refused_in_salvage : damages[i].is_refused;

	damages[i].damage(file, &bytes);
	capture_builder_write(scratch_file, file, bytes);
	OWNED_BY(model) struct model *model = model_load(&options, &fail);
	if ((model == NULL) != is_refused)
		fail_msg("%s%s: %s (%s)", damages[i].name, is_salvage ? " in salvage" : "",
		         is_refused ? "was read" : "was refused", fail.text);
	if (is_refused && (strstr(fail.text, damages[i].says) == NULL || fail.code != EXIT_CAPTURE ||
	                   strstr(fail.text, scratch_file) == NULL))
		fail_msg("%s: said (%d) %s", damages[i].name, fail.code, fail.text);
	if (!is_refused && !is_told(model, damages[i].says) &&
	    !(is_salvage && is_told(model, "contradicts itself or the totals")))
		fail_msg("%s%s: was not told; %zu others, first: %s", damages[i].name, is_salvage ? " in salvage" : "",
		         model->damage_count, model->damage_count != 0 ? model->damages[0] : "none");
	if (!is_salvage && is_refused && !damages[i].is_refused_in_salvage && strstr(fail.text, "--salvage") == NULL)
		fail_msg("%s: does not say what to do next: %s", damages[i].name, fail.text);
}

TEST(every_damage_is_refused_or_told)
{
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		check_case(i, false);
		check_case(i, true);
	}
}

TEST(a_sound_capture_has_no_damages)
{
	static const enum kmem_state states[] = { KMEM_STATE_RUNNING, KMEM_STATE_CLEAN_EXIT, KMEM_STATE_STARTING };

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		struct model_options options = { .capture = scratch_file };
		struct fail fail;
		size_t bytes;
		OWNED unsigned char *file = capture_builder_example(states[i], &bytes);

		capture_builder_write(scratch_file, file, bytes);
		struct model *model = model_load(&options, &fail);
		assert_non_null(model);
		assert_int_equal(model->damage_count, 0);
		assert_int_equal(model->site_count, 6);
		assert_int_equal(model->domain_count, 4);
		assert_int_equal(model->domains[0].live_bytes, 4200);
		assert_int_equal(model->domains[0].peak_bytes, 4200);
		assert_int_equal(model->domains[1].live_count, 3);
		assert_string_equal(model->processes[0].name, "train.py");
		assert_int_equal(model->processes[0].note_count, 2);
		assert_string_equal(model->processes[0].notes[0], "the first note");
		assert_int_equal(model->processes[0].heartbeat_count, 2);
		assert_int_equal(model->processes[0].heartbeats[1].resident_bytes, 2000);
		assert_int_equal(model->failed_count, 1);
		assert_ptr_equal(model->failed[0].site, &model->sites[2]);
		assert_false(model->failed[0].had_success_after);
		assert_true(model->failed[0].has_held);
		assert_int_equal(model->failed[0].held_count, 2);
		assert_false(model->processes[0].is_alive);

		/* Two points in the order of their numbers; of what was killed, what was live at its end. */
		const struct model_point *points = model->processes[0].points;

		assert_int_equal(model->processes[0].point_count, states[i] == KMEM_STATE_CLEAN_EXIT ? 2 : 3);
		assert_int_equal(points[0].live_bytes, 5000);
		assert_int_equal(points[1].live_bytes, 10000);
		assert_int_equal(points[1].domain_bytes[0], 10000);
		assert_int_equal(points[1].site_count, 2);
		assert_int_equal(points[1].sites[0].bytes, 3000);
		assert_ptr_equal(&model->sites[points[1].sites[1].site], model->failed[0].site);
		if (states[i] != KMEM_STATE_CLEAN_EXIT) {
			assert_true(points[2].is_end);
			assert_int_equal(points[2].domain_bytes[0], 4200);
		}

		/* Ten generations and one place for what is older; five and the older one are alive. */
		assert_int_equal(model->sites[0].generations_total, 11);
		assert_int_equal(model->sites[0].generations_alive, 6);
		assert_int_equal(model->sites[0].recent_total, 3);
		assert_int_equal(model->sites[0].recent_alive, 1);
		assert_int_equal(model->sites[0].bytes_per_generation, 4000 / 6);
		assert_int_equal(model->sites[0].where->line, 15);
		assert_string_equal(model->sites[0].where->function, "fit");
		assert_int_equal(model->sites[0].frames[1]->line, 102);
		assert_false(model->sites[0].frames[1]->is_user);
		assert_ptr_equal(model->sites[0].frames, model->sites[1].frames);
		assert_int_equal(model->sites[2].frame_count, 2);

		/* Other inner frames before the rest of the first stack. */
		assert_int_equal(model->sites[3].frame_count, 5);
		assert_int_equal(model->sites[3].frames[0]->module_offset, 0x200);
		assert_string_equal(model->sites[3].frames[1]->file, "cell In[2]");
		for (unsigned k = 1; k < 4; k++)
			assert_ptr_equal(model->sites[3].frames[k + 1], model->sites[0].frames[k]);
		model_free(model);
	}
}

/*
 * Of libc's, for the reader: it waits for a capture that is being closed. Nobody closes these, and thousands of waits would be all that
 * these tests do.
 */
int
nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)wanted;
	(void)left;
	return 0;
}

#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 4 }; // tests/fuzz reads damaged captures under the sanitizers too
#else
enum { STRIDE = 1 };
#endif

/* Everything of a closed capture is sealed, apart from what the launcher adds: no flipped bit goes unseen. */
TEST(no_flipped_byte_of_a_closed_capture_goes_unseen)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_CLEAN_EXIT, &bytes);
	const size_t launcher = offsetof(struct kmem_header, launcher);
	struct model_options options = { .capture = scratch_file };
	unsigned checked = 0;

	for (size_t at = 0; at < bytes; at += STRIDE * (at < 20000 ? 7 : 61)) {
		unsigned char before = file[at];
		struct fail fail = { .text = "" };

		if (at >= launcher && at < launcher + sizeof(struct kmem_launcher))
			continue;
		file[at] ^= (unsigned char)(1u << at % 8);
		capture_builder_write(scratch_file, file, bytes);
		struct model *model = model_load(&options, &fail);
		if (model != NULL && model->damage_count == 0)
			fail_msg("byte %zu was flipped and nobody said so", at);
		if (model == NULL && (fail.code != EXIT_CAPTURE || fail.text[0] == '\0'))
			fail_msg("byte %zu: refused without a reason", at);
		model_free(model);
		file[at] = before;
		checked++;
	}
	assert_true(checked > 6000 / STRIDE);
}

int
main(void)
{
	return test_run(scratch_make, scratch_remove, NULL, NULL);
}
