/*
 * capture_builder.c - a capture made by hand (see capture_builder.h).
 */
#include "capture_builder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmem_words.h"

struct buffer {
	unsigned char *bytes;
	size_t used;
	size_t room;
};

struct capture_builder {
	unsigned char *head;
	struct buffer sections[KMEM_SECTION_COUNT];
};

static void *
must(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

static void *
append(struct buffer *buffer, size_t bytes, size_t *offset)
{
	if (buffer->used + bytes > buffer->room) {
		size_t room = (buffer->room + bytes) * 2 + KMEM_CHUNK_BYTES;
		unsigned char *larger = must(aligned_alloc(64, (room + 63) / 64 * 64));

		if (buffer->used != 0)
			memcpy(larger, buffer->bytes, buffer->used);
		free(buffer->bytes);
		buffer->bytes = larger;
		buffer->room = room;
	}
	*offset = buffer->used;
	buffer->used += bytes;
	return memset(buffer->bytes + *offset, 0, bytes);
}

struct kmem_header *
capture_builder_header(struct capture_builder *builder)
{
	return (struct kmem_header *)(void *)builder->head;
}

struct kmem_domain_row *
capture_builder_domain(struct capture_builder *builder, unsigned domain)
{
	return (struct kmem_domain_row *)(void *)(builder->head + KMEM_DOMAINS_OFFSET) + domain;
}

struct kmem_heartbeat *
capture_builder_heartbeats(struct capture_builder *builder)
{
	return (struct kmem_heartbeat *)(void *)(builder->head + KMEM_HEARTBEATS_OFFSET);
}

struct kmem_resident_lines *
capture_builder_resident_lines(struct capture_builder *builder)
{
	return (struct kmem_resident_lines *)(void *)(builder->head + KMEM_RESIDENT_LINES_OFFSET);
}

struct capture_builder *
capture_builder_new(void)
{
	struct capture_builder *builder = must(calloc(1, sizeof(*builder)));

	builder->head = must(aligned_alloc(_Alignof(struct kmem_timeline), KMEM_HEAD_BYTES));
	memset(builder->head, 0, KMEM_HEAD_BYTES);
	struct kmem_header *header = capture_builder_header(builder);
	memcpy(header->magic, KMEM_MAGIC, sizeof(header->magic));
	header->version = KMEM_VERSION;
	header->endian = KMEM_ENDIAN;
	header->head_bytes = KMEM_HEAD_BYTES;
	header->chunk_bytes = KMEM_CHUNK_BYTES;
	header->identity_bytes = sizeof(struct kmem_identity);
	header->generation_clock = 1;
	header->identity.pid = 4711;
	header->identity.parent_pid = 1;
	header->identity.start_realtime_ns = 1000;
	header->identity.is_first = 1;
	strcpy(header->identity.session, "session-a");
	strcpy(header->identity.boot_id, "not-this-boot");
	strcpy(header->identity.executable, "/usr/bin/python3.11");
	strcpy(header->identity.directory, "/data/user/project");
	memcpy(header->identity.command, "python\0train.py\0", 17);
	header->identity.command_bytes = 16;
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_HEAP)->name, "heap");
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_MMAP)->name, "mmap");
	return builder;
}

void
capture_builder_free(struct capture_builder *builder)
{
	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++)
		free(builder->sections[i].bytes);
	free(builder->head);
	free(builder);
}

void
capture_builder_holders(struct capture_builder *builder, unsigned place, uint64_t sequence, const char *text)
{
	struct buffer *section = &builder->sections[KMEM_SECTION_HOLDERS];
	struct kmem_holders *look;
	size_t offset;

	while (section->used < 2 * sizeof(*look))
		(void)append(section, sizeof(*look), &offset);
	look = (struct kmem_holders *)(void *)section->bytes + place;
	look->sequence = sequence;
	look->text_bytes = (uint32_t)strlen(text);
	memcpy(look->text, text, strlen(text));
	look->checksum = kmem_checksum(KMEM_CHECKSUM_START, (const char *)look + sizeof(look->checksum),
	                               sizeof(*look) - sizeof(look->checksum));
}

static void *
new_record(struct capture_builder *builder, enum kmem_record_type type, size_t bytes, uint32_t *index)
{
	size_t offset;
	struct kmem_record *record = append(&builder->sections[KMEM_SECTION_RECORDS], (bytes + 7) / 8 * 8, &offset);

	record->type = (uint16_t)type;
	record->bytes = (uint32_t)bytes;
	*index = (uint32_t)(offset / 8);
	return record;
}

static void
seal(struct kmem_record *record)
{
	record->checksum = kmem_record_checksum(
		record, record->type == KMEM_RECORD_MODULE ? offsetof(struct kmem_module, unloaded) : 0);
}

uint32_t
capture_builder_code(struct capture_builder *builder, const char *file, const char *function, uint32_t first_line,
                     uint16_t flags, const uint8_t *table, uint32_t table_bytes)
{
	size_t file_bytes = strlen(file);
	size_t function_bytes = strlen(function);
	uint32_t index;
	struct kmem_code *code = new_record(builder, KMEM_RECORD_CODE,
	                                    sizeof(*code) + file_bytes + function_bytes + table_bytes, &index);
	char *at = (char *)(code + 1);

	code->record.flags = flags;
	code->first_line = first_line;
	code->python_version = 0x030b;
	code->file_bytes = (uint32_t)file_bytes;
	code->function_bytes = (uint32_t)function_bytes;
	code->line_table_bytes = table_bytes;
	memcpy(at, file, file_bytes);
	memcpy(at + file_bytes, function, function_bytes);
	if (table_bytes != 0)
		memcpy(at + file_bytes + function_bytes, table, table_bytes);
	seal(&code->record);
	return index;
}

uint64_t
capture_builder_python_frame(uint32_t code, uint32_t offset)
{
	return KMEM_FRAME_PYTHON | (uint64_t)offset << KMEM_FRAME_OFFSET_SHIFT | code;
}

struct kmem_stack *
capture_builder_stack_at(struct capture_builder *builder, uint32_t stack)
{
	return (struct kmem_stack *)(void *)(builder->sections[KMEM_SECTION_RECORDS].bytes + (stack - 1) * 8ul);
}

uint32_t
capture_builder_stack_on(struct capture_builder *builder, uint32_t outside, uint32_t outer_count,
                         const uint64_t *frames, uint32_t count, uint16_t flags)
{
	uint32_t index;
	struct kmem_stack *stack = new_record(builder, KMEM_RECORD_STACK, sizeof(*stack) + count * sizeof(*frames), &index);

	stack->record.flags = flags;
	stack->record.previous = outside;
	stack->frame_count = count + outer_count;
	stack->own_count = count;
	stack->chain = outside != 0 ? capture_builder_stack_at(builder, outside)->chain + 1 : 0;
	stack->module_version = 1;
	if (count != 0)
		memcpy(stack->frames, frames, count * sizeof(*frames));
	seal(&stack->record);
	return index + 1;
}

uint32_t
capture_builder_stack(struct capture_builder *builder, const uint64_t *frames, uint32_t count, uint16_t flags)
{
	return capture_builder_stack_on(builder, 0, 0, frames, count, flags);
}

void
capture_builder_module(struct capture_builder *builder, const char *path, uint64_t start, uint64_t end, uint32_t loaded,
                       uint32_t unloaded)
{
	struct kmem_header *header = capture_builder_header(builder);
	uint32_t index;
	struct kmem_module *module = new_record(builder, KMEM_RECORD_MODULE, sizeof(*module) + strlen(path), &index);

	module->record.previous = header->modules;
	module->start_addr = start;
	module->end_addr = end;
	module->load_bias = start;
	module->loaded_version = loaded;
	module->path_bytes = (uint32_t)strlen(path);
	memcpy(module + 1, path, strlen(path));
	seal(&module->record);
	module->unloaded = kmem_twice(unloaded); // mutable: not in the checksum
	header->modules = kmem_twice(index + 1);
}

void
capture_builder_note(struct capture_builder *builder, const char *text)
{
	struct kmem_header *header = capture_builder_header(builder);
	uint32_t index;
	struct kmem_note *note = new_record(builder, KMEM_RECORD_NOTE, sizeof(*note) + strlen(text), &index);

	note->record.previous = header->notes;
	note->text_bytes = (uint32_t)strlen(text);
	memcpy(note + 1, text, strlen(text));
	seal(&note->record);
	header->notes = kmem_twice(index + 1);
}

void
capture_builder_object_count(struct capture_builder *builder, uint32_t site, const char *type, uint64_t count)
{
	struct kmem_header *header = capture_builder_header(builder);
	uint32_t index, number;
	struct kmem_type *stored = new_record(builder, KMEM_RECORD_TYPE, sizeof(*stored) + strlen(type), &index);

	stored->name_bytes = (uint32_t)strlen(type);
	memcpy(stored + 1, type, strlen(type));
	seal(&stored->record);
	number = (uint32_t)header->object_count_total;
	header->object_census[number] = (struct kmem_object_count){ site + 1, index + 1, count };
	header->object_count_total = kmem_twice(number + 1);
	capture_builder_seal_object_census(header);
}

struct kmem_device_snapshot *
capture_builder_device_snapshot(struct capture_builder *builder, unsigned failed)
{
	struct kmem_failed *request = &capture_builder_header(builder)->failed[failed];
	struct kmem_device_snapshot *stored;
	uint32_t index;

	stored = new_record(builder, KMEM_RECORD_DEVICE_SNAPSHOT, sizeof(*stored), &index);
	stored->sequence = request->sequence;
	request->device_snapshot = index + 1;
	seal(&stored->record);
	return stored;
}

struct kmem_history *
capture_builder_history(struct capture_builder *builder, unsigned part)
{
	uint32_t index;
	struct kmem_history *stored = new_record(builder, KMEM_RECORD_HISTORY, sizeof(*stored), &index);

	stored->record.checksum = kmem_history_head_checksum(&stored->record);
	capture_builder_header(builder)->history[part] = kmem_twice(index + 1);
	return stored;
}

struct kmem_exit *
capture_builder_exit(struct capture_builder *builder, uint32_t site_count, uint32_t generation_count)
{
	struct kmem_exit *stored;
	uint32_t index;

	stored = new_record(builder, KMEM_RECORD_EXIT,
	                    sizeof(*stored) + site_count * sizeof(stored->sites[0]) +
	                        generation_count * sizeof(struct kmem_generations),
	                    &index);
	stored->site_count = site_count;
	stored->generation_count = generation_count;
	capture_builder_header(builder)->at_exit = kmem_twice(index + 1);
	return stored;
}

struct kmem_guard *
capture_builder_guard(struct capture_builder *builder, uint32_t site_count)
{
	struct kmem_guard *stored;
	uint32_t index;

	stored = new_record(builder, KMEM_RECORD_GUARD, sizeof(*stored) + site_count * sizeof(stored->sites[0]), &index);
	stored->passing.site_count = site_count;
	capture_builder_header(builder)->guard = kmem_twice(index + 1);
	return stored;
}

uint64_t
capture_builder_volume(uint64_t clock)
{
	return (clock < 9 ? clock - 1 : (8 + (clock - 9) % 8) << (clock - 9) / 8) << KMEM_TICK_BYTES_LOG2;
}

void
capture_builder_seal_object_census(struct kmem_header *header)
{
	header->object_count_checksum = kmem_checksum(KMEM_CHECKSUM_START, header->object_census,
	                                              (uint32_t)header->object_count_total *
	                                                  sizeof(header->object_census[0]));
}

void
capture_builder_cell(struct capture_builder *builder, uint32_t number, const char *typed, const char *compiled,
                     uint16_t flags)
{
	struct kmem_header *header = capture_builder_header(builder);
	uint32_t index;
	struct kmem_cell *cell = new_record(builder, KMEM_RECORD_CELL, sizeof(*cell) + strlen(typed) + strlen(compiled),
	                                    &index);

	cell->record.previous = header->cells;
	cell->record.flags = flags;
	cell->number = number;
	cell->typed_bytes = (uint32_t)strlen(typed);
	cell->compiled_bytes = (uint32_t)strlen(compiled);
	memcpy(cell + 1, typed, strlen(typed));
	memcpy((char *)(cell + 1) + strlen(typed), compiled, strlen(compiled));
	seal(&cell->record);
	header->cells = kmem_twice(index + 1);
}

struct kmem_site *
capture_builder_site_at(struct capture_builder *builder, uint32_t index)
{
	return (struct kmem_site *)(void *)builder->sections[KMEM_SECTION_SITES].bytes + index;
}

uint32_t
capture_builder_site(struct capture_builder *builder, unsigned domain, uint32_t stack, uint64_t allocated_bytes,
                     uint64_t allocated_count, uint64_t freed_bytes, uint64_t freed_count)
{
	struct kmem_domain_row *row = capture_builder_domain(builder, domain);
	uint64_t live_bytes = kmem_peak_now(row->peak) + allocated_bytes - freed_bytes;
	size_t offset;
	struct kmem_site *site = append(&builder->sections[KMEM_SECTION_SITES], sizeof(*site), &offset);

	site->peak = kmem_peak_pack(allocated_bytes - freed_bytes, 0, 0);
	site->allocated_bytes = allocated_bytes;
	site->freed_bytes = freed_bytes;
	site->allocated_count = allocated_count;
	site->freed_count = freed_count;
	site->stack = stack;
	site->domain = (uint8_t)domain;
	site->first_generation = 1;
	row->is_used = KMEM_YES;
	row->peak = kmem_peak_pack(live_bytes, 0, 0);
	return (uint32_t)(offset / sizeof(*site));
}

void
capture_builder_births(struct kmem_generations *block, unsigned first, unsigned latest)
{
	block->births = latest != 0 ? latest << 16 | latest << 8 | kmem_generation_bucket((uint8_t)latest) : 0;
	for (unsigned tick = first; tick <= latest; tick++)
		block->born |= UINT64_C(1) << (kmem_generation_bucket((uint8_t)tick) - 1);
}

_Atomic uint32_t *
capture_builder_born(struct kmem_generations *block, unsigned tick)
{
	return &block->live_count[kmem_generation_bucket((uint8_t)tick) - 1];
}

struct kmem_generations *
capture_builder_generations(struct capture_builder *builder, uint32_t site, unsigned first, unsigned latest)
{
	size_t offset;
	struct kmem_generations *block = append(&builder->sections[KMEM_SECTION_GENERATIONS], sizeof(*block), &offset);

	block->site = site + 1;
	if (latest != 0)
		capture_builder_births(block, first, latest);
	capture_builder_site_at(builder, site)->generations = (uint32_t)(offset / sizeof(*block)) + 1;
	return block;
}

void
capture_builder_seal(struct kmem_record *record)
{
	seal(record);
}

void
capture_builder_reseal(unsigned char *file, size_t bytes)
{
	struct kmem_header *header = (struct kmem_header *)(void *)file;
	struct kmem_chunk *directory = (struct kmem_chunk *)(void *)(file + KMEM_DIRECTORY_OFFSET);

	for (unsigned i = 0; i < KMEM_HEARTBEATS_MAX; i++) {
		const struct kmem_heartbeat *beat = (struct kmem_heartbeat *)(void *)(file + KMEM_HEARTBEATS_OFFSET) + i;

		header->heartbeat_checksums[i] = beat->sequence != 0 ? kmem_heartbeat_checksum(beat, beat->sequence) : 0;
	}
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		struct kmem_failed *failed = &header->failed[i];

		failed->checksum = failed->sequence != 0 ? kmem_failed_checksum(failed, failed->sequence) : 0;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct kmem_resident_lines *lines = (struct kmem_resident_lines *)(void *)(file + KMEM_RESIDENT_LINES_OFFSET) +
		                                    i;

		lines->checksum = lines->sequence != 0 ? kmem_resident_lines_checksum(lines) : 0;
	}
	header->identity_checksum = kmem_identity_checksum(header);
	if (header->state != KMEM_STATE_CLEAN_EXIT)
		return;
	for (uint32_t i = 0; i < header->chunk_count && KMEM_HEAD_BYTES + (i + 1ul) * KMEM_CHUNK_BYTES <= bytes; i++) {
		directory[i].is_sealed = 1;
		directory[i].checksum = kmem_checksum(KMEM_CHECKSUM_START,
		                                      file + KMEM_HEAD_BYTES + (size_t)i * KMEM_CHUNK_BYTES, KMEM_CHUNK_BYTES);
	}
	header->head_checksum = kmem_head_checksum(file);
}

unsigned char *
capture_builder_finish(struct capture_builder *builder, enum kmem_state state, size_t *bytes)
{
	struct kmem_header *header = capture_builder_header(builder);
	struct kmem_chunk *directory = (struct kmem_chunk *)(void *)(builder->head + KMEM_DIRECTORY_OFFSET);
	size_t copied[KMEM_SECTION_COUNT] = { 0 };
	uint32_t count = 0;
	bool has_more = true;

	for (size_t i = 0; i < builder->sections[KMEM_SECTION_SITES].used / sizeof(struct kmem_site); i++) {
		struct kmem_site *site = capture_builder_site_at(builder, (uint32_t)i);

		site->next_same_stack = kmem_site_check(site->stack, site->slot, site->domain, site->first_generation);
	}

	/* A volume at which the clock says this. */
	uint64_t clock = header->generation_clock;

	header->generation_clock_bytes = header->volume_bytes = capture_builder_volume(clock);
	for (uint64_t at = 2; at <= clock && at <= KMEM_CLOCK_MAX; at++)
		header->volume_at[at] = kmem_rough(capture_builder_volume(at));

	/* One chunk of each section in turn: the order that a growing capture has. */
	while (has_more) {
		has_more = false;
		for (uint8_t section = 1; section < KMEM_SECTION_COUNT; section++) {
			if (copied[section] >= builder->sections[section].used)
				continue;
			copied[section] += KMEM_CHUNK_BYTES;
			directory[count++] = (struct kmem_chunk){ .section = section, .inverted = (uint8_t)~section };
			has_more = true;
		}
	}
	*bytes = KMEM_HEAD_BYTES + (size_t)count * KMEM_CHUNK_BYTES;
	unsigned char *file = must(aligned_alloc(4096, (*bytes + 4095) / 4096 * 4096));
	memset(file, 0, *bytes);
	header->chunk_count = count;
	header->state = state;
	for (unsigned section = 1; section < KMEM_SECTION_COUNT; section++) {
		header->used_bytes[section] = builder->sections[section].used;
		copied[section] = 0;
	}
	memcpy(file, builder->head, KMEM_HEAD_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		const struct buffer *from = &builder->sections[directory[i].section];
		size_t *at = &copied[directory[i].section];
		size_t part = from->used - *at < KMEM_CHUNK_BYTES ? from->used - *at : KMEM_CHUNK_BYTES;

		memcpy(file + KMEM_HEAD_BYTES + (size_t)i * KMEM_CHUNK_BYTES, from->bytes + *at, part);
		*at += part;
	}
	capture_builder_reseal(file, *bytes);
	return file;
}

void
capture_builder_write(const char *path, const void *file, size_t bytes)
{
	FILE *out = must(fopen(path, "wb"));

	if (fwrite(file, 1, bytes, out) != bytes || fclose(out) != 0)
		abort();
}

unsigned char *
capture_builder_example(enum kmem_state state, size_t *bytes)
{
	static const uint8_t table[] = { 0x80 | 13 << 3 | 3, 4, 0x80 | 13 << 3 | 3, 6 }; // lines +2, then +3
	struct capture_builder *builder = capture_builder_new();
	uint32_t train = capture_builder_code(builder, "/data/user/project/train.py", "fit", 10, 0, table, sizeof(table));
	uint32_t numpy = capture_builder_code(builder, "/usr/lib/python3/dist-packages/numpy/core.py", "zeros", 100,
	                                      KMEM_CODE_LIBRARY, table, sizeof(table));
	uint64_t frames[] = { 0x400100, capture_builder_python_frame(numpy, 0), capture_builder_python_frame(train, 8),
		                  0x500200 };
	uint64_t other[] = { 0x500300 | KMEM_FRAME_EXACT, 0x900000 };
	uint32_t cell = capture_builder_code(builder, "/tmp/ipykernel_7/1846177606.py", "<module>", 1, KMEM_CODE_CELL,
	                                     table, 2);
	uint64_t inner[] = { 0x400200, capture_builder_python_frame(cell, 0) };
	struct kmem_heartbeat *heartbeats = capture_builder_heartbeats(builder);
	struct kmem_resident_lines *lines = capture_builder_resident_lines(builder);

	capture_builder_module(builder, "/nowhere/libfirst.so.1", 0x400000, 0x410000, 1, 0);
	capture_builder_module(builder, "/nowhere/libsecond.so", 0x500000, 0x510000, 1, 0);
	capture_builder_note(builder, "the first note");
	capture_builder_note(builder, "the second note");
	capture_builder_cell(
		builder, 2, "keep=[]\ndef f(n):\n    keep.append(bytearray(n))\nprint(f.__code__.co_filename, len(In))", "", 0);
	capture_builder_cell(builder, 3, "%time x", "get_ipython().run_line_magic('time', 'x')", KMEM_CELL_NO_LINES);
	uint32_t stack = capture_builder_stack(builder, frames, 4, 0);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 5000, 50, 1000, 10);
	uint32_t first = stack;
	capture_builder_site(builder, KMEM_DOMAIN_MMAP, stack, 65536, 1, 0, 0);
	stack = capture_builder_stack(builder, other, 2, KMEM_STACK_NO_END);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack, 300, 3, 100, 1);
	capture_builder_header(builder)->generation_clock = 12;
	struct kmem_generations *block = capture_builder_generations(builder, 0, 3, 12); // ten generations, the latest now
	for (unsigned tick = 3; tick <= 12; tick += 2)
		*capture_builder_born(block, tick) = 4;
	capture_builder_site(builder, KMEM_DOMAIN_MMAP, capture_builder_stack_on(builder, first, 3, inner, 2, 0), 8192, 2,
	                     0, 0);
	/* Samples of small objects, which stand for more than the arenas have room for: each stands for less. */
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_ARENA)->name, "python/arena");
	strcpy(capture_builder_domain(builder, KMEM_DOMAIN_PYTHON_OBJECT)->name, "python/object");
	capture_builder_header(builder)->python_sample_bytes = kmem_twice((uint32_t)KMEM_PYTHON_SAMPLE_BYTES);
	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_ARENA, capture_builder_stack(builder, NULL, 0, KMEM_STACK_ARENA),
	                     5 * KMEM_PYTHON_SAMPLE_BYTES, 5, KMEM_PYTHON_SAMPLE_BYTES, 1);
	capture_builder_site(builder, KMEM_DOMAIN_PYTHON_OBJECT, first, 12 * KMEM_PYTHON_SAMPLE_BYTES, 50000,
	                     7 * KMEM_PYTHON_SAMPLE_BYTES, 30000);
	heartbeats[1] = (struct kmem_heartbeat){ .sequence = 1, .resident_bytes = 1000, .limit_bytes = UINT64_MAX };
	heartbeats[0] = (struct kmem_heartbeat){ .sequence = 2, .resident_bytes = 2000, .limit_bytes = UINT64_MAX };
	capture_builder_header(builder)->failed_count = 1;
	capture_builder_header(builder)->failed[0] = (struct kmem_failed){
		.sequence = 1, .bytes = 1u << 30, .site = 3, .error = 12, .events_before = 53
	};
	capture_builder_object_count(builder, 0, "project.Batch", 30);
	capture_builder_object_count(builder, 0, "dict", 10);
	struct kmem_device_snapshot *device_snapshot = capture_builder_device_snapshot(builder, 0);
	device_snapshot->clock = 9;
	device_snapshot->live_bytes[KMEM_DOMAIN_HEAP] = 4500;
	device_snapshot->sites[0] = (struct kmem_snapshot_site){ .site = 1, .live_count = 40, .live_bytes = 4400 };
	device_snapshot->sites[2] = (struct kmem_snapshot_site){ .site = 3, .live_count = 1, .live_bytes = 100 };
	device_snapshot->generations[0].site = 1;
	capture_builder_births(&device_snapshot->generations[0], 5, 9);
	*capture_builder_born(&device_snapshot->generations[0], 5) = 40;
	capture_builder_seal(&device_snapshot->record);
	struct kmem_history *history = capture_builder_history(builder, 0);
	for (unsigned i = 0; i < 2; i++) { // the later one stands first
		struct kmem_history_point *point = &history->points[1 - i];

		point->number = i + 1;
		point->monotonic_ns = 1000 * (i + 1);
		point->domain_count = 1;
		point->domain_bytes[0] = 5000 * (i + 1);
		point->site_count = 2;
		point->sites[0] = 1;
		point->site_bytes[0] = 3000;
		point->sites[1] = 3;
		point->site_bytes[1] = 100;
		point->checksum = kmem_history_checksum(point);
	}
	capture_builder_header(builder)->resident[0] = (struct kmem_resident){ .sequence = 1,
		                                                                   .resident_bytes = 70000,
		                                                                   .part_bytes = {
																			   [KMEM_RESIDENT_BRK] = 20000,
																			   [KMEM_RESIDENT_MMAP] = 50000,
																		   } };
	lines->sequence = 1;
	lines->sampled_pages = 5;
	lines->heap_bytes = 20000;
	lines->heap_empty_bytes = 8000;
	lines->heap_sparse_bytes = 4000;
	lines->heap_sparse_live_bytes = 400;
	lines->lines[0] = (struct kmem_resident_line){
		.site = 2, .large_count = 1, .large_bytes = 65536, .large_resident_bytes = 4096
	};
	lines->lines[1] = (struct kmem_resident_line){ .site = 1, .pinned_bytes = 3000 };
	unsigned char *file = capture_builder_finish(builder, state, bytes);
	capture_builder_free(builder);
	return file;
}
