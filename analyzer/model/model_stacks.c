/*
 * model_stacks.c - what is the readable stack of this site?
 *
 * When failing  a stack without frames; the reader's damages say why. Records of a sound capture do not overlap, so all together are no
 *               longer than their section. A hostile capture gets nothing resolved beyond that, nor more frames than fill the largest
 *               capture: stacks of a few shared records could have far more.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/memory.h"
#include "model/model_build.h"

/* The index of all stacks. The key is the stack from `omitted` to its last frame. */
struct stack_entry {
	UT_hash_handle hh;
	struct build_stack stack;
};

#define FRAMES_MAX ((uint64_t)KMEM_CHUNKS_MAX * KMEM_CHUNK_BYTES / sizeof(uint64_t))
#define KEY_OFFSET offsetof(struct build_stack, omitted)

static_assert(offsetof(struct build_stack, frames) == KEY_OFFSET + 3 * sizeof(uint32_t),
              "the key has no bytes that nobody sets");

struct record {
	uint32_t index_plus_one;
	const struct build_stack *stack;
	UT_hash_handle hh;
};

struct process_stacks {
	struct build *build;
	struct capture *capture;
	struct process_frames *frames;
	struct record *records; // uthash
	uint64_t budget_bytes;  // of records that may still be resolved
	uint64_t budget_frames; // of whole stacks
	bool are_cells_settled;
	struct capture_stack stored; // the latest
	struct build_stack *scratch;
	size_t scratch_room; // frames
};

struct process_stacks *
process_stacks_new(struct build *build, struct capture *capture)
{
	struct process_stacks *stacks = memory_zeroed(1, sizeof(*stacks));

	stacks->build = build;
	stacks->capture = capture;
	stacks->frames = process_frames_new(build, capture);
	stacks->budget_bytes = capture->sections[KMEM_SECTION_RECORDS].size_bytes;
	stacks->budget_frames = FRAMES_MAX;
	return stacks;
}

void
process_stacks_free(struct process_stacks *stacks)
{
	HASH_FREE(stacks->records, free);
	process_frames_free(stacks->frames);
	free(stacks->scratch);
	free(stacks);
}

void
model_stacks_free(struct build *build)
{
	HASH_CLEAR(hh, build->stacks);
}

static void
scratch_reserve(struct process_stacks *stacks, size_t frames)
{
	if (stacks->scratch != NULL && frames <= stacks->scratch_room)
		return;
	free(stacks->scratch);
	stacks->scratch_room = frames + frames / 2 + 64;
	stacks->scratch = memory_zeroed(1, sizeof(struct build_stack) + stacks->scratch_room * sizeof(void *));
}

/* A forked child runs what its parent was given: the person's, where that is the first process. */
static bool
is_started_by_program(const struct process_stacks *stacks)
{
	const struct kmem_identity *first = stacks->build->processes[0].identity;
	const struct kmem_identity *own = stacks->capture->identity;

	return own->is_first == 0 &&
	       (own->is_forked == 0 || memcmp(own->command, first->command, sizeof(own->command)) != 0);
}

/* The one copy of the stack in `scratch`. */
static const struct build_stack *
keep_stack(struct process_stacks *stacks)
{
	struct build *build = stacks->build;
	const struct build_stack *scratch = stacks->scratch;
	size_t stack_bytes = offsetof(struct build_stack, frames) + scratch->frame_count * sizeof(scratch->frames[0]);
	size_t key_bytes = stack_bytes - KEY_OFFSET;
	const char *key = (const char *)scratch + KEY_OFFSET;
	char module[FRAME_RULES_NAME_BYTES];
	struct stack_entry *found;

	HASH_FIND(hh, build->stacks, key, key_bytes, found);
	if (found != NULL)
		return &found->stack;
	found = text_pool_room(build->pool, offsetof(struct stack_entry, stack) + stack_bytes);
	memcpy(&found->stack, scratch, stack_bytes);
	/* The frame that made the reservation names the allocator; the line is that of the frame that made it grow. */
	uint32_t maker = (scratch->flags & KMEM_STACK_ESTIMATED) != 0 && scratch->frame_count > 1;

	found->stack.where = frame_rules_where(scratch->frames + maker, scratch->frame_count - maker,
	                                       is_started_by_program(stacks));
	found->stack.import = "";
	if (frame_rules_import(scratch->frames, scratch->frame_count, module))
		found->stack.import = text_pool_add_text(build->pool, module);
	key = (const char *)&found->stack + KEY_OFFSET;
	HASH_ADD_KEYPTR(hh, build->stacks, key, key_bytes, found);
	return &found->stack;
}

static void
read_frames(struct process_stacks *stacks, const struct capture_stack *stored)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < stored->frame_count; i++) {
		const struct model_frame *const *found;
		size_t found_count = process_frames_resolve(stacks->frames, stored->frames[i], stored->module_version, &found);

		if (stored->omitted != 0 && i == stored->omitted_at)
			stacks->scratch->frames_before_gap = count;
		if (count + found_count > stacks->scratch_room) { // inlined functions: more frames than words
			stacks->scratch_room = (count + found_count) * 2;
			struct build_stack *larger = memory_zeroed(1, sizeof(*larger) + stacks->scratch_room * sizeof(void *));

			memcpy(larger, stacks->scratch, offsetof(struct build_stack, frames) + count * sizeof(void *));
			free(stacks->scratch);
			stacks->scratch = larger;
		}
		memcpy(&stacks->scratch->frames[count], found, found_count * sizeof(found[0]));
		count += (uint32_t)found_count;
	}
	if (stored->omitted != 0 && stored->omitted_at == stored->frame_count)
		stacks->scratch->frames_before_gap = count;
	stacks->scratch->frame_count = count;
}

/* No line is at fault: a text stands in its place that says what it is. */
static void
name_arena(struct process_stacks *stacks)
{
	static const struct model_frame arenas[] = { {
													 .kind = MODEL_FRAME_PYTHON,
													 .function = "arenas of small Python objects",
													 .file = "",
													 .module = "",
													 .module_path = "",
												 },
		                                         {
													 .kind = MODEL_FRAME_PYTHON,
													 .function = "free in arenas of small Python objects",
													 .file = "",
													 .module = "",
													 .module_path = "",
												 } };

	scratch_reserve(stacks, 1);
	stacks->scratch->frames[0] = &arenas[capture_arenas_sample_bytes(stacks->capture) != 0];
	stacks->scratch->frame_count = 1;
}

static const struct build_stack *
read_stack(struct process_stacks *stacks, uint32_t index_plus_one, size_t site_index)
{
	struct capture_stack *stored = &stacks->stored;

	const char *user = TEXT(48, "stack of site %zu", site_index);
	bool is_read = index_plus_one != 0 && capture_stack(stacks->capture, index_plus_one, user, stored);

	if (is_read && stored->record_bytes > stacks->budget_bytes) {
		capture_damaged(stacks->capture, "section \"records\": %s overlaps another one", user);
		is_read = false;
	} else if (is_read && stored->frame_count > stacks->budget_frames) {
		capture_damaged(stacks->capture,
		                "section \"records\": %s and those before it have more than %" PRIu64 " frames", user,
		                FRAMES_MAX);
		is_read = false;
	}
	scratch_reserve(stacks, is_read ? stored->frame_count : 0);
	memset(stacks->scratch, 0, offsetof(struct build_stack, frames));
	if (is_read) {
		stacks->budget_bytes -= stored->record_bytes;
		stacks->budget_frames -= stored->frame_count;
		stacks->scratch->flags = stored->flags;
		stacks->scratch->omitted = stored->omitted;
		if ((stored->flags & KMEM_STACK_ARENA) != 0)
			name_arena(stacks);
		else
			read_frames(stacks, stored);
	}
	return keep_stack(stacks);
}

const struct build_stack *
process_stacks_rest_of_arenas(struct process_stacks *stacks)
{
	scratch_reserve(stacks, 1);
	memset(stacks->scratch, 0, offsetof(struct build_stack, frames));
	stacks->scratch->flags = KMEM_STACK_ARENA;
	name_arena(stacks);
	return keep_stack(stacks);
}

static const struct build_stack *
newest_stack(struct process_stacks *stacks, const struct build_stack *stack)
{
	uint32_t changed = 0;

	scratch_reserve(stacks, stack->frame_count);
	memcpy(stacks->scratch, stack, offsetof(struct build_stack, frames));
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		stacks->scratch->frames[i] = model_frames_newest(stacks->build, stack->frames[i]);
		changed += stacks->scratch->frames[i] != stack->frames[i];
	}
	return changed != 0 ? keep_stack(stacks) : stack;
}

void
process_stacks_settle_cells(struct process_stacks *stacks)
{
	stacks->are_cells_settled = stacks->build->cells != NULL;
	if (!stacks->are_cells_settled)
		return;
	model_cells_add(stacks->build, stacks->capture);
	model_cells_link(stacks->build);
	for (struct record *record = stacks->records; record != NULL; record = record->hh.next)
		record->stack = newest_stack(stacks, record->stack);
}

const struct build_stack *
process_stacks_find(struct process_stacks *stacks, const struct kmem_site *site, size_t site_index)
{
	uint32_t index_plus_one = atomic_load_explicit(&site->stack, memory_order_relaxed); // a private copy
	struct record *record;

	if (HASH_MADE(stacks->records, index_plus_one, index_plus_one, record)) {
		record->stack = read_stack(stacks, index_plus_one, site_index);
		if (stacks->are_cells_settled)
			record->stack = newest_stack(stacks, record->stack);
	}
	return record->stack;
}
