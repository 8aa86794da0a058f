/*
 * capture_records.c - what is at this place of the capture (see capture_reader.h)?
 *
 * Every index is checked against its section and every record against its checksum before the first use of its contents.
 *
 * Context     after capture_open().
 * When failing  NULL or false, and a line in the capture's `damages`.
 */
#include <inttypes.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "capture/capture_copy.h"
#include "capture/capture_reader.h"
#include "kmem_words.h"

size_t
capture_site_count(const struct capture *capture)
{
	return capture->sections[KMEM_SECTION_SITES].size_bytes / sizeof(struct kmem_site);
}

const struct kmem_site *
capture_site(const struct capture *capture, size_t index)
{
	return (const struct kmem_site *)(const void *)capture->sections[KMEM_SECTION_SITES].bytes + index;
}

const struct kmem_domain_row *
capture_domain(const struct capture *capture, unsigned domain)
{
	return (const struct kmem_domain_row *)(const void *)(capture->head + KMEM_DOMAINS_OFFSET) + domain;
}

const struct kmem_resident_lines *
capture_resident_lines(const struct capture *capture, uint64_t sequence)
{
	const struct kmem_resident_lines
		*both = (const struct kmem_resident_lines *)(const void *)(capture->head + KMEM_RESIDENT_LINES_OFFSET);

	return sequence != 0 ? FIRST(item, both, 2, COPY_OF(item->checksum) != 0 && item->sequence == sequence) : NULL;
}

const struct kmem_generations *
capture_generations(struct capture *capture, size_t site_index)
{
	const struct capture_section *section = &capture->sections[KMEM_SECTION_GENERATIONS];
	uint32_t index = COPY_OF(capture_site(capture, site_index)->generations);

	if (index == 0)
		return NULL;

	const struct kmem_generations *block = (const struct kmem_generations *)(const void *)section->bytes + (index - 1);

	if (index > section->size_bytes / sizeof(*block)) {
		capture_damaged(capture, "section \"generations\": site %zu refers to block %u of %" PRIu64, site_index,
		                index - 1, section->size_bytes / sizeof(*block));
		return NULL;
	}
	if (COPY_OF(block->site) != site_index + 1) {
		capture_damaged(capture, "section \"generations\": block %u belongs to site %" PRId64 ", wanted %zu", index - 1,
		                (int64_t)COPY_OF(block->site) - 1, site_index);
		return NULL;
	}
	return block;
}

#define VERSION_BORN 12 // since then the bucket is that of a tick

unsigned
capture_generation_buckets(const struct capture *capture)
{
	return capture->header->version >= VERSION_BORN ? KMEM_GENERATION_BUCKETS : KMEM_GENERATION_BUCKETS_11;
}

/* They end where the block does. */
static _Atomic uint32_t *
live_counts(const struct capture *capture, const struct kmem_generations *block)
{
	return (_Atomic uint32_t *)(uintptr_t)(block + 1) - capture_generation_buckets(capture);
}

uint32_t
capture_generation_live(const struct capture *capture, const struct kmem_generations *block, unsigned bucket)
{
	return COPY_OF(live_counts(capture, block)[bucket]);
}

void
capture_rewind_generations(struct capture *capture, uint32_t site, const struct kmem_generations *copy)
{
	/* NULL: told of already. */
	struct kmem_generations *block = (struct kmem_generations *)(uintptr_t)capture_generations(capture, site - 1);

	if (block == NULL)
		return;
	for (unsigned i = 0; i < capture_generation_buckets(capture); i++)
		SET(live_counts(capture, block)[i], copy != NULL ? COPY_OF(live_counts(capture, copy)[i]) : 0);
	if (copy == NULL)
		return;
	SET(block->births, COPY_OF(copy->births));
	if (capture->header->version >= VERSION_BORN)
		SET(block->born, COPY_OF(copy->born));
}

static const void *
record_at(struct capture *capture, uint64_t index, enum kmem_record_type type, size_t least_bytes, const char *user)
{
	const struct capture_section *section = &capture->sections[KMEM_SECTION_RECORDS];
	const struct kmem_record *record = (const struct kmem_record *)(const void *)(section->bytes + index * 8);
	uint64_t room = section->size_bytes > index * 8 ? section->size_bytes - index * 8 : 0;
	size_t skipped_at = type == KMEM_RECORD_MODULE ? offsetof(struct kmem_module, unloaded) : 0;

	if (room < sizeof(*record)) {
		capture_damaged(capture,
		                "section \"records\": %s at byte %" PRIu64 " is beyond the end of the section at %" PRIu64,
		                user, index * 8, section->size_bytes);
		return NULL;
	}
	if (record->type != type) {
		capture_damaged(capture, "section \"records\": %s at byte %" PRIu64 ": type wanted %d, found %u", user,
		                index * 8, type, record->type);
		return NULL;
	}
	if (record->bytes < least_bytes || record->bytes > room) {
		capture_damaged(capture,
		                "section \"records\": %s at byte %" PRIu64 ": length wanted %zu to %" PRIu64 ", found %u", user,
		                index * 8, least_bytes, room, record->bytes);
		return NULL;
	}

	uint32_t found = kmem_record_checksum(record, skipped_at);

	if (found != record->checksum) {
		capture_damaged(capture, "section \"records\": %s at byte %" PRIu64 ": checksum wanted 0x%08x, found 0x%08x",
		                user, index * 8, record->checksum, found);
		return NULL;
	}
	return record;
}

/* Do the parts of a record fit into it? */
static bool
has_room(struct capture *capture, const struct kmem_record *record, uint64_t needed, const char *user)
{
	if (needed <= record->bytes)
		return true;
	capture_damaged(capture, "section \"records\": %s needs %" PRIu64 " bytes, its record has %u", user, needed,
	                record->bytes);
	return false;
}

/* Two bits for each place in the section. Without the first, the second says that the record is damaged and was told. */
enum { STACK_SOUND = 1, STACK_TOLD = 2 };

static unsigned
stack_marks(const struct capture *capture, uint64_t index)
{
	if (capture->stack_marks == NULL || index >= capture->sections[KMEM_SECTION_RECORDS].size_bytes / 8)
		return 0;
	return (unsigned)capture->stack_marks[index / 4] >> index % 4 * 2 & 3;
}

static void
mark_stack(struct capture *capture, uint64_t index, unsigned mark)
{
	uint64_t places = capture->sections[KMEM_SECTION_RECORDS].size_bytes / 8;

	if (capture->stack_marks == NULL)
		capture->stack_marks = memory_zeroed(places / 4 + 1, 1);
	if (index < places)
		capture->stack_marks[index / 4] = (unsigned char)(capture->stack_marks[index / 4] | (mark << index % 4 * 2));
}

/* One record, checked on first use: many stacks lead to the same outer frames. */
static const struct kmem_stack *
stack_record(struct capture *capture, uint64_t index, const char *user)
{
	const struct kmem_stack *stack;

	if ((stack_marks(capture, index) & STACK_SOUND) != 0)
		return (const struct kmem_stack *)(const void *)(capture->sections[KMEM_SECTION_RECORDS].bytes + index * 8);
	stack = record_at(capture, index, KMEM_RECORD_STACK, sizeof(*stack), user);
	if (stack == NULL)
		return NULL;
	if (stack->frame_count > KMEM_STACK_FRAMES_MAX || stack->own_count > stack->frame_count) {
		capture_damaged(capture,
		                "section \"records\": %s at byte %" PRIu64
		                " has %u frames, %u of them its own: at most %u are possible",
		                user, index * 8, stack->frame_count, stack->own_count, KMEM_STACK_FRAMES_MAX);
		return NULL;
	}
	if (!has_room(capture, &stack->record, sizeof(*stack) + UINT64_C(8) * stack->own_count, user))
		return NULL;
	if (stack->omitted_at > stack->frame_count) {
		capture_damaged(capture, "section \"records\": %s has its gap after frame %u of %u", user, stack->omitted_at,
		                stack->frame_count);
		return NULL;
	}
	mark_stack(capture, index, STACK_SOUND);
	return stack;
}

/*
 * The record with the frames outside of this one's. Links lead to earlier records and count down, so that chains end. NULL
 * where the link is broken, which is told once: every stack that leads over it ends there.
 */
static const struct kmem_stack *
stack_outside(struct capture *capture, const struct kmem_stack *stack, const char *user)
{
	const unsigned char *section = capture->sections[KMEM_SECTION_RECORDS].bytes;
	uint64_t index = (uint64_t)((const unsigned char *)stack - section) / 8;
	uint64_t outside_index = UINT64_C(0) + stack->record.previous - 1;
	uint32_t outer_count = stack->frame_count - stack->own_count;
	const struct kmem_stack *outside = NULL;
	bool is_told = (stack_marks(capture, index) & STACK_TOLD) != 0;

	const char *text = TEXT(96, "%.48s: the record of its outer frames", user);
	if (stack->record.previous == 0 || stack->record.previous > index || stack->chain == 0 ||
	    stack->chain > KMEM_STACK_CHAIN_MAX) {
		if (!is_told)
			capture_damaged(capture,
			                "section \"records\": %s at byte %" PRIu64 " cannot be there (%u links from byte %" PRIu64
			                "): these frames are left out",
			                text, stack->record.previous != 0 ? outside_index * 8 : 0, stack->chain, index * 8);
	} else if (stack_marks(capture, outside_index) != STACK_TOLD) { // else damaged, and told by then
		outside = stack_record(capture, outside_index, text);
		if (outside == NULL)
			mark_stack(capture, outside_index, STACK_TOLD);
	}
	if (outside != NULL && (outside->chain + 1 != stack->chain || outside->frame_count < outer_count)) {
		if (!is_told)
			capture_damaged(capture,
			                "section \"records\": %s at byte %" PRIu64
			                " has %u frames and %u links, wanted %u and %u: these frames are left out",
			                text, outside_index * 8, outside->frame_count, outside->chain, outer_count,
			                stack->chain - 1);
		outside = NULL;
	}
	if (outside == NULL)
		mark_stack(capture, index, STACK_TOLD);
	return outside;
}

static void
take_frames(struct capture_stack *to, const uint64_t *frames, uint32_t count)
{
	if (count != 0)
		memcpy(to->frames + to->frame_count, frames, count * sizeof(*frames));
	to->frame_count += count;
}

bool
capture_stack(struct capture *capture, uint32_t index_plus_one, const char *user, struct capture_stack *stack)
{
	const struct kmem_stack *at = index_plus_one != 0 ? stack_record(capture, index_plus_one - 1, user) : NULL;
	uint32_t missing;

	if (at == NULL)
		return false;
	stack->record_bytes = at->record.bytes;
	stack->flags = at->record.flags;
	stack->omitted = at->omitted;
	stack->omitted_at = at->omitted_at;
	stack->module_version = at->module_version;
	stack->frame_count = 0;
	take_frames(stack, at->frames, at->own_count);

	/* The outermost `missing` frames of each record: its own last ones, as far as those outside of it do not suffice. */
	missing = at->frame_count - at->own_count;
	while (missing != 0 && (at = stack_outside(capture, at, user)) != NULL) {
		uint32_t outer_count = at->frame_count - at->own_count;

		if (missing > outer_count) {
			take_frames(stack, at->frames + at->own_count - (missing - outer_count), missing - outer_count);
			missing = outer_count;
		}
	}
	if (missing != 0)
		stack->flags |= KMEM_STACK_NO_END;
	if (stack->omitted_at > stack->frame_count) { // the gap is in the part that is left out
		stack->omitted = stack->omitted_at = 0;
		stack->flags &= (uint16_t)~KMEM_STACK_TRUNCATED;
	}
	return true;
}

bool
capture_code(struct capture *capture, uint32_t index, struct capture_code *code)
{
	static const char user[] = "text of a Python function";
	const struct kmem_code *stored = record_at(capture, index, KMEM_RECORD_CODE, sizeof(*stored), user);

	if (stored == NULL ||
	    !has_room(capture, &stored->record,
	              sizeof(*stored) + (uint64_t)stored->file_bytes + stored->function_bytes + stored->line_table_bytes,
	              user))
		return false;
	*code = (struct capture_code){
		.flags = stored->record.flags,
		.first_line = stored->first_line,
		.python_version = stored->python_version,
		.file_bytes = stored->file_bytes,
		.function_bytes = stored->function_bytes,
		.line_table_bytes = stored->line_table_bytes,
		.file = (const char *)(stored + 1),
	};
	code->function = code->file + code->file_bytes;
	code->line_table = (const uint8_t *)code->function + code->function_bytes;
	return true;
}

/* The next record of a list. Lists lead to older records only, so they end. */
static const void *
list_next(struct capture *capture, uint32_t *next, enum kmem_record_type type, size_t least_bytes, const char *user)
{
	uint32_t index_plus_one = *next;

	*next = 0;
	if (index_plus_one == 0)
		return NULL;

	const struct kmem_record *record = record_at(capture, index_plus_one - 1, type, least_bytes, user);

	if (record == NULL)
		return NULL;
	if (record->previous >= index_plus_one)
		capture_damaged(capture,
		                "section \"records\": %s at byte %" PRIu64 " points forward to byte %" PRIu64
		                ": older records are left out",
		                user, UINT64_C(8) * (index_plus_one - 1), UINT64_C(8) * (record->previous - 1));
	else
		*next = record->previous;
	return record;
}

uint32_t
capture_list(const _Atomic uint64_t *list)
{
	return (uint32_t)COPY_OF(*list);
}

bool
capture_next_module(struct capture *capture, uint32_t *next, struct capture_module *module)
{
	static const char user[] = "module";
	const struct kmem_module *stored;

	while ((stored = list_next(capture, next, KMEM_RECORD_MODULE, sizeof(*stored), user)) != NULL) {
		if (!has_room(capture, &stored->record, sizeof(*stored) + (uint64_t)stored->path_bytes, user))
			continue;
		if (stored->start_addr >= stored->end_addr || stored->build_id_bytes > sizeof(stored->build_id)) {
			capture_damaged(capture,
			                "section \"records\": module from 0x%" PRIx64 " to 0x%" PRIx64
			                " with a build-id of %u bytes is impossible",
			                stored->start_addr, stored->end_addr, stored->build_id_bytes);
			continue;
		}
		uint64_t unloaded = COPY_OF(stored->unloaded);

		if (!kmem_twice_agrees(unloaded)) {
			capture_damaged(capture,
			                "section \"records\": module from 0x%" PRIx64
			                ": the time of its unloading differs from its copy (0x%016" PRIx64
			                "): it is treated as still loaded",
			                stored->start_addr, unloaded);
			unloaded = 0;
		}
		*module = (struct capture_module){
			.start_addr = stored->start_addr,
			.end_addr = stored->end_addr,
			.load_bias = stored->load_bias,
			.loaded_version = stored->loaded_version,
			.unloaded_version = (uint32_t)unloaded,
			.file_size_bytes = stored->file_size_bytes,
			.file_mtime_ns = stored->file_mtime_ns,
			.build_id = stored->build_id,
			.build_id_bytes = stored->build_id_bytes,
			.path = (const char *)(stored + 1),
			.path_bytes = stored->path_bytes,
		};
		return true;
	}
	return false;
}

bool
capture_next_cell(struct capture *capture, uint32_t *next, struct capture_cell *cell)
{
	static const char user[] = "cell";
	const struct kmem_cell *stored;

	while ((stored = list_next(capture, next, KMEM_RECORD_CELL, sizeof(*stored), user)) != NULL) {
		if (!has_room(capture, &stored->record,
		              sizeof(*stored) + (uint64_t)stored->typed_bytes + stored->compiled_bytes, user))
			continue;
		*cell = (struct capture_cell){
			.number = stored->number,
			.typed = (const char *)(stored + 1),
			.typed_bytes = stored->typed_bytes,
			.compiled = (const char *)(stored + 1) + stored->typed_bytes,
			.compiled_bytes = stored->compiled_bytes,
			.has_lines = (stored->record.flags & KMEM_CELL_NO_LINES) == 0,
		};
		return true;
	}
	return false;
}

bool
capture_next_note(struct capture *capture, uint32_t *next, const char **text, uint32_t *text_bytes)
{
	static const char user[] = "note";
	const struct kmem_note *stored;

	while ((stored = list_next(capture, next, KMEM_RECORD_NOTE, sizeof(*stored), user)) != NULL) {
		if (!has_room(capture, &stored->record, sizeof(*stored) + (uint64_t)stored->text_bytes, user))
			continue;
		*text = (const char *)(stored + 1);
		*text_bytes = stored->text_bytes;
		return true;
	}
	return false;
}

bool
capture_type_name(struct capture *capture, uint32_t index_plus_one, const char **name, uint32_t *name_bytes)
{
	static const char user[] = "type of objects";
	const struct kmem_type *stored;

	if (index_plus_one == 0)
		return false;
	stored = record_at(capture, index_plus_one - 1, KMEM_RECORD_TYPE, sizeof(*stored), user);
	if (stored == NULL || !has_room(capture, &stored->record, sizeof(*stored) + (uint64_t)stored->name_bytes, user))
		return false;
	*name = (const char *)(stored + 1);
	*name_bytes = stored->name_bytes;
	return true;
}

/* A record that is written anew in its place, while its program runs. */
static bool
is_half_written(const struct capture *capture, uint64_t index)
{
	const struct capture_section *section = &capture->sections[KMEM_SECTION_RECORDS];
	const struct kmem_record *record = (const struct kmem_record *)(const void *)(section->bytes + index * 8);
	uint64_t room = section->size_bytes > index * 8 ? section->size_bytes - index * 8 : 0;

	return room >= sizeof(*record) && (record->bytes < sizeof(*record) || record->bytes > room ||
	                                   record->checksum != kmem_record_checksum(record, 0));
}

const void *
capture_held_record(struct capture *capture, uint32_t index_plus_one, enum kmem_record_type type, bool is_written)
{
	static const struct {
		size_t least_bytes;
		const char *user;
	} kinds[] = {
		[KMEM_RECORD_EXIT] = { sizeof(struct kmem_exit), "what was held at exit" },
		[KMEM_RECORD_GUARD] = { sizeof(struct kmem_guard), "what was held at the guard" },
		[KMEM_RECORD_SNAPSHOT] = { sizeof(struct kmem_snapshot), "what was held at a mark" },
		[KMEM_RECORD_KEPT_PEAK] = { sizeof(struct kmem_kept_peak), "what was held at the peak of earlier phases" },
		[KMEM_RECORD_DEVICE_SNAPSHOT] = { sizeof(struct kmem_device_snapshot), "what a device held" },
	};
	uint64_t index = index_plus_one - UINT64_C(1);

	if (index_plus_one == 0 || (is_written && is_half_written(capture, index)))
		return NULL;
	return record_at(capture, index, type, kinds[type].least_bytes, kinds[type].user);
}
