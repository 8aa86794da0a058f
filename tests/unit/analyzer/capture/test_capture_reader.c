/*
 * test_capture_reader.c - is every damage of a capture refused or told, and nothing else lost?
 */
#include "test.h"

#include <time.h>

#include "capture_builder.h"
#include "kmem_words.h"
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

/* What is done to an example, and what reading it says: in the message when it is refused, else in a damage line. */
static struct damage {
	const char *name;
	void (*damage)(unsigned char *file, size_t *bytes);
	enum kmem_state state;
	enum {
		READ,
		REFUSED,
		REFUSED_ALWAYS
	} reading; // REFUSED: not in salvage, where the whole site may be left out instead
	const char *says;
} damages[128];
static size_t damage_count;

#define DAMAGE(name_, state_, reading_, says_)                                                            \
	static void name_(unsigned char *file, size_t *bytes);                                                \
	__attribute__((constructor)) static void add_##name_(void)                                            \
	{                                                                                                     \
		damages[damage_count++] = (struct damage){ #name_, name_, KMEM_STATE_##state_, reading_, says_ }; \
	}                                                                                                     \
	static void name_(unsigned char *file, size_t *bytes)

DAMAGE(cut_to_nothing, RUNNING, REFUSED_ALWAYS, "is empty")
{
	*bytes = 0;
}

DAMAGE(cut_in_magic, RUNNING, REFUSED_ALWAYS, "is not a kmemshim capture")
{
	*bytes = 5;
}

DAMAGE(cut_in_head, RUNNING, REFUSED_ALWAYS, "section \"head\" needs 135168 bytes, the file ends at 135167")
{
	*bytes = KMEM_HEAD_BYTES - 1;
}

DAMAGE(cut_after_first_words, RUNNING, REFUSED_ALWAYS, "truncated")
{
	*bytes = 16;
}

DAMAGE(cut_last_chunk, RUNNING, REFUSED,
       "section \"records\": chunk 2 at byte 266240 needs 65536 bytes, the file ends at 331775")
{
	*bytes -= 1;
}

DAMAGE(foreign, RUNNING, REFUSED_ALWAYS, "is not a kmemshim capture")
{
	memcpy(file, "\177ELF\2\1\1", 8);
}

DAMAGE(never_begun, RUNNING, REFUSED_ALWAYS, "has no head yet")
{
	memset(file, 0, *bytes);
}

DAMAGE(newer, RUNNING, REFUSED_ALWAYS,
       "a newer kmemshim (format 14, this one reads 9 to 13): read it with a newer kmemshim")
{
	header_of(file)->version = KMEM_VERSION + 1;
}

DAMAGE(older, RUNNING, REFUSED_ALWAYS,
       "an older kmemshim (format 1, this one reads 9 to 13): read it with the kmemshim that recorded it")
{
	header_of(file)->version = 1;
}

DAMAGE(other_endian, RUNNING, REFUSED_ALWAYS, "other byte order")
{
	header_of(file)->endian = __builtin_bswap32(KMEM_ENDIAN);
}

DAMAGE(no_endian, RUNNING, REFUSED_ALWAYS, "byte order mark wanted 0x01020304, found 0x0000004d")
{
	header_of(file)->endian = 77;
}

DAMAGE(other_head_size, RUNNING, REFUSED_ALWAYS, "sizes wanted")
{
	header_of(file)->head_bytes = 4096;
}

/* F4 */
DAMAGE(identity_changed, RUNNING, REFUSED, "section \"identity\": checksum wanted")
{
	header_of(file)->identity.pid++;
}

DAMAGE(identity_missing, RUNNING, REFUSED_ALWAYS, "nothing was recorded")
{
	header_of(file)->identity_checksum = 0;
}

/* F5 */
DAMAGE(head_changed, CLEAN_EXIT, REFUSED, "section \"head\": checksum wanted")
{
	header_of(file)->losses[0]++;
}

/* F5 */
DAMAGE(head_checksum_missing, CLEAN_EXIT, READ, "while it closed the capture")
{
	header_of(file)->head_checksum = 0;
}

/* A disk gave back a sector of zeros. */
/* F5 */
DAMAGE(sealing_sector_zeroed, CLEAN_EXIT, REFUSED, "section \"head\": state 0x00000000")
{
	const size_t sector = offsetof(struct kmem_header, state) / 512 * 512;

	assert_true(offsetof(struct kmem_header, head_checksum) < sector + 512);
	memset(file + offsetof(struct kmem_header, state), 0, sector + 512 - offsetof(struct kmem_header, state));
}

/* F5 */
DAMAGE(closed_says_running, CLEAN_EXIT, REFUSED, "section \"head\": state 0x01010101")
{
	header_of(file)->state = KMEM_STATE_RUNNING;
}

DAMAGE(too_many_chunks, RUNNING, REFUSED, "wanted 4294967295 chunks")
{
	header_of(file)->chunk_count = UINT32_MAX;
	capture_builder_reseal(file, 0);
}

DAMAGE(unknown_section, RUNNING, REFUSED, "chunk 1 names section 99")
{
	chunk_of(file, 1)->section = 99;
	capture_builder_reseal(file, *bytes);
}

/* F5 */
DAMAGE(site_changed, CLEAN_EXIT, REFUSED, "section \"sites\": chunk 0 at byte 135168: checksum")
{
	site_of(file, 1)->allocated_bytes ^= 1;
}

/* F5 */
DAMAGE(record_padding_changed, CLEAN_EXIT, READ, "section \"records\": chunk 2")
{
	chunk_bytes(file, 2)[KMEM_CHUNK_BYTES - 1] ^= 1; // in no record at all
}

/* F3 */
DAMAGE(stack_changed, RUNNING, READ, "stack of site 2 at byte")
{
	stack_of(file, 2)->frames[0] ^= 1;
	capture_builder_reseal(file, *bytes);
}

DAMAGE(stack_beyond_section, CLEAN_EXIT, READ, "beyond the end of the section")
{
	site_of(file, 2)->stack = UINT32_MAX;
	capture_builder_reseal(file, *bytes);
}

DAMAGE(stack_of_other_type, RUNNING, READ, "type wanted 1, found 4")
{
	site_of(file, 2)->stack = (uint32_t)header_of(file)->notes;
	capture_builder_reseal(file, *bytes);
}

DAMAGE(stack_longer_than_section, RUNNING, READ, "stack of site 2 at byte")
{
	record_of(file, site_of(file, 2)->stack)->bytes = KMEM_CHUNK_BYTES;
	capture_builder_reseal(file, *bytes);
}

DAMAGE(more_frames_than_record, RUNNING, READ, "stack of site 2 needs 3112 bytes, its record has 56")
{
	struct kmem_stack *stack = stack_of(file, 2);

	stack->frame_count = stack->own_count = KMEM_STACK_FRAMES_MAX;
	capture_builder_seal(&stack->record);
	capture_builder_reseal(file, *bytes);
}

DAMAGE(more_frames_than_possible, RUNNING, READ, "has 385 frames, 2 of them its own: at most 384 are possible")
{
	struct kmem_stack *stack = stack_of(file, 2);

	stack->frame_count = KMEM_STACK_FRAMES_MAX + 1;
	capture_builder_seal(&stack->record);
	capture_builder_reseal(file, *bytes);
}

DAMAGE(gap_behind_frames, RUNNING, READ, "has its gap after frame 3 of 2")
{
	struct kmem_stack *stack = stack_of(file, 2);

	stack->omitted = 1;
	stack->omitted_at = 3;
	capture_builder_seal(&stack->record);
	capture_builder_reseal(file, *bytes);
}

DAMAGE(notes_in_a_circle, RUNNING, READ, "note at byte")
{
	struct kmem_record *newest = record_of(file, header_of(file)->notes);
	struct kmem_record *oldest = record_of(file, newest->previous);

	oldest->previous = (uint32_t)header_of(file)->notes;
	capture_builder_seal(oldest);
	capture_builder_reseal(file, *bytes);
}

DAMAGE(modules_lead_to_themselves, RUNNING, READ, "points forward")
{
	struct kmem_record *newest = record_of(file, header_of(file)->modules);

	newest->previous = (uint32_t)header_of(file)->modules;
	capture_builder_seal(newest);
	capture_builder_reseal(file, *bytes);
}

DAMAGE(module_without_extent, RUNNING, READ, "is impossible")
{
	struct kmem_module *module = (struct kmem_module *)(void *)record_of(file, header_of(file)->modules);

	module->end_addr = module->start_addr;
	capture_builder_seal(&module->record);
	capture_builder_reseal(file, *bytes);
}

DAMAGE(code_text_too_long, RUNNING, READ, "text of a Python function needs")
{
	struct kmem_code *code = (struct kmem_code *)(void *)record_of(file, 1);

	code->line_table_bytes = UINT32_MAX;
	capture_builder_seal(&code->record);
	capture_builder_reseal(file, *bytes);
}

/* S3 */
DAMAGE(more_freed_than_given, RUNNING, READ, "1 counter released more than was allocated:")
{
	site_of(file, 2)->freed_bytes = 1000000;
	capture_builder_reseal(file, *bytes);
}

DAMAGE(site_without_domain, RUNNING, READ, "1 site without a known domain")
{
	site_of(file, 2)->domain = 200;
	capture_builder_reseal(file, *bytes);
}

/* S5 */
DAMAGE(generations_of_another, RUNNING, READ, "belongs to site 0, wanted 2")
{
	site_of(file, 2)->generations = 1;
	capture_builder_reseal(file, *bytes);
}

DAMAGE(generations_beyond_section, RUNNING, READ, "refers to block 69999 of")
{
	site_of(file, 2)->generations = 70000;
	capture_builder_reseal(file, *bytes);
}

DAMAGE(domain_without_name, RUNNING, READ, "domain 1 has no name")
{
	memset(((struct kmem_domain_row *)(void *)(file + KMEM_DOMAINS_OFFSET))[KMEM_DOMAIN_MMAP].name, 'x', 32);
	capture_builder_reseal(file, *bytes);
}

DAMAGE(launcher_changed, CLEAN_EXIT, READ, "section \"launcher\"")
{
	header_of(file)->launcher.is_filled = 1;
	header_of(file)->launcher.wait_status = 9;
}

DAMAGE(failed_without_domain, RUNNING, READ, "belongs to domain 63")
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

/* F7 */
DAMAGE(mark_changed, RUNNING, READ, "the checksum of mark 3 is wrong")
{
	whole_mark(file, 0)->step++;
}

DAMAGE(mark_without_kind, RUNNING, READ, "mark 3 contradicts itself")
{
	struct kmem_mark *mark = whole_mark(file, 0);

	mark->kind = 77;
	mark->checksum = kmem_mark_checksum(mark);
}

DAMAGE(mark_without_end, RUNNING, READ, "mark 3 contradicts itself")
{
	struct kmem_mark *mark = whole_mark(file, 0);

	memset(mark->name, 'x', sizeof(mark->name));
	mark->checksum = kmem_mark_checksum(mark);
}

DAMAGE(snapshot_beyond_section, RUNNING, READ, "what was held at a mark at byte 799992 is beyond the end")
{
	whole_mark(file, 100000);
}

DAMAGE(snapshot_is_a_stack, RUNNING, READ, "type wanted 10, found")
{
	whole_mark(file, 1);
}

/* F6 */
DAMAGE(steps_of_no_source, RUNNING, READ, "what the steps are (0x00000005)")
{
	timeline_of(file)->steps.source = 5;
}

/* F6 */
DAMAGE(steps_place_changed, RUNNING, READ, "where the steps begin")
{
	timeline_of(file)->steps.place = kmem_twice(1) ^ 2;
}

/* F7 */
DAMAGE(release_changed, RUNNING, READ, "who released blocks of site 1 cannot be read")
{
	timeline_of(file)->releases[3] = (struct kmem_release){ .checksum = 1, .site = 1, .releaser = 1, .count = 1 };
}

DAMAGE(release_of_no_site, RUNNING, READ, "who released blocks of site 1 cannot be read")
{
	struct kmem_release *release = &timeline_of(file)->releases[3];

	*release = (struct kmem_release){ .site = 1, .releaser = 100000, .count = 1 };
	release->checksum = kmem_release_checksum(release);
}

/* F6 */
DAMAGE(kept_peak_changed, RUNNING, READ, "the peak of earlier phases differs")
{
	timeline_of(file)->kept_peak = kmem_twice(1) ^ 2;
}

DAMAGE(kept_peak_beyond_section, RUNNING, READ,
       "what was held at the peak of earlier phases at byte 799992 is beyond the end")
{
	timeline_of(file)->kept_peak = kmem_twice(100000);
}

DAMAGE(kept_peak_without_record, RUNNING, READ, "domain 0 names a peak of earlier phases, and there is none")
{
	((struct kmem_domain_row *)(void *)(file + KMEM_DOMAINS_OFFSET))->kept_peak_bytes = UINT64_C(1) << 40;
}

DAMAGE(request_changed, RUNNING, READ, "of a command's request is wrong")
{
	timeline_of(file)->request.wants = 1;
}

static struct kmem_history *
history_of(unsigned char *file)
{
	return (struct kmem_history *)(void *)record_of(file, (uint32_t)header_of(file)->history[0]);
}

/* F6 */
DAMAGE(history_word_changed, RUNNING, READ, "where part 0 of the history is differs")
{
	header_of(file)->history[0] ^= 8;
}

DAMAGE(history_beyond_section, RUNNING, READ, "part 1 of the history is beyond the end")
{
	header_of(file)->history[1] = kmem_twice(UINT32_MAX);
}

DAMAGE(history_is_a_stack, RUNNING, READ, "part 1 of the history is not one")
{
	header_of(file)->history[1] = kmem_twice(site_of(file, 0)->stack);
}

/* F7 */
DAMAGE(point_changed, RUNNING, READ, "the checksum of a point of the history is wrong")
{
	history_of(file)->points[1].resident_bytes++;
}

DAMAGE(point_of_no_site, RUNNING, READ, "point 1 of the history contradicts itself")
{
	struct kmem_history_point *point = &history_of(file)->points[1];

	point->sites[1] = 70000;
	point->checksum = kmem_history_checksum(point);
}

DAMAGE(point_of_no_domain, RUNNING, READ, "point 1 of the history contradicts itself")
{
	struct kmem_history_point *point = &history_of(file)->points[1];

	point->domains[0] = KMEM_DOMAINS_MAX;
	point->checksum = kmem_history_checksum(point);
}

DAMAGE(point_with_too_many, RUNNING, READ, "point 1 of the history contradicts itself")
{
	struct kmem_history_point *point = &history_of(file)->points[1];

	point->site_count = KMEM_HISTORY_SITES + 1;
	point->checksum = kmem_history_checksum(point);
}

/* F6 */
DAMAGE(outcome_changed, RUNNING, READ, "the outcome of refused request 0")
{
	header_of(file)->failed[0].outcome = KMEM_FAILED_GOT_ENOUGH ^ 0x40;
}

/* F7 */
DAMAGE(device_snapshot_changed, RUNNING, READ, "what a device held at byte")
{
	((struct kmem_device_snapshot *)(void *)record_of(file, header_of(file)->failed[0].device_snapshot))
		->sites[0]
		.live_bytes++;
}

DAMAGE(device_snapshot_beyond_section, RUNNING, READ, "is beyond the end of the section")
{
	header_of(file)->failed[0].device_snapshot = UINT32_MAX;
	capture_builder_reseal(file, *bytes);
}

static void
check_case(size_t i, bool is_salvage)
{
	struct model_options options = { .capture = scratch_file, .is_salvage = is_salvage };
	struct fail fail = { .text = "" };
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(damages[i].state, &bytes);
	bool is_refused = damages[i].reading >= (is_salvage ? REFUSED_ALWAYS : REFUSED);

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
	if (!is_salvage && is_refused && damages[i].reading != REFUSED_ALWAYS && strstr(fail.text, "--salvage") == NULL)
		fail_msg("%s: does not say what to do next: %s", damages[i].name, fail.text);
}

TEST(every_damage_is_refused_or_told)
{
	for (size_t i = 0; i < damage_count; i++) {
		check_case(i, false);
		check_case(i, true);
	}
	assert_true(damage_count < ARRAY_LEN(damages));
}

TEST(a_sound_capture_has_no_damages)
{
	static const enum kmem_state states[] = { KMEM_STATE_RUNNING, KMEM_STATE_CLEAN_EXIT, KMEM_STATE_STARTING };

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		size_t bytes;
		OWNED unsigned char *file = capture_builder_example(states[i], &bytes);

		capture_builder_write(scratch_file, file, bytes);
		struct model *model = loaded((struct model_options){ .capture = scratch_file });
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

RUN_TESTS_IN(scratch_make, scratch_remove)
