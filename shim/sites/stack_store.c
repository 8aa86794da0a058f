/*
 * stack_store.c - the stacks of a capture (see stack_store.h).
 */
#include "sites/stack_store.h"

#include <stdatomic.h>
#include <string.h>

#include "capture/capture_file.h"
#include "sites/module_map.h"

/* Are these the stored stack's words? It may share its outer ones with others. */
static bool
is_stored_stack(uint32_t stack_index, const uint64_t *frames, uint32_t count)
{
	for (unsigned links = 0; links <= KMEM_STACK_CHAIN_MAX; links++) {
		const struct kmem_stack *stored = capture_file_item(KMEM_SECTION_RECORDS, stack_index);
		uint32_t shared = stored->frame_count - stored->own_count; // words of the stack it leads to
		// of ours that stand in this record, at its outer end
		uint32_t here = count > shared ? count - shared : 0;

		if (here > stored->own_count) // zeros: somebody has cut the file meanwhile
			return false;
		if (memcmp(stored->frames + (stored->own_count - here), frames, here * sizeof(frames[0])) != 0)
			return false;
		frames += here;
		count -= here;
		if (count == 0)
			return true;
		stack_index = stored->record.previous;
	}
	return false; // nor is there such a chain in a whole file
}

static uint32_t
module_version(void)
{
	return atomic_load_explicit(&capture_file_header()->module_version, memory_order_relaxed);
}

bool
stack_store_has(uint32_t stack_index, const struct stack_words *stack)
{
	const struct kmem_stack *stored = capture_file_item(KMEM_SECTION_RECORDS, stack_index);

	return stored->record.flags == stack->flags && stored->frame_count == stack->frame_count &&
	       stored->omitted == stack->omitted && is_stored_stack(stack_index, stack->frames, stack->frame_count);
}

bool
stack_store_is_over(uint32_t stack_index, const struct stack_words *stack)
{
	const struct kmem_stack *stored = capture_file_item(KMEM_SECTION_RECORDS, stack_index);

	return stored->module_version != module_version() &&
	       module_map_is_over(stored->module_version, stack->frames, stack->frame_count);
}

/* How many outer words the stack shares with the one that this thread stored last. */
static uint32_t
shared_frames(const struct stack_store_last *last, const struct stack_words *stack)
{
	uint32_t shared = 0;

	if (last == NULL || last->stack == 0 || last->module_version != module_version())
		return 0;
	const struct kmem_stack *stored = capture_file_item(KMEM_SECTION_RECORDS, last->stack);

	if (stored->chain == KMEM_STACK_CHAIN_MAX)
		return 0;

	uint32_t most = last->count < stack->frame_count ? last->count : stack->frame_count;

	while (shared < most && last->frames[last->count - 1 - shared] == stack->frames[stack->frame_count - 1 - shared])
		shared++;
	return shared;
}

static void
remember_stack(struct stack_store_last *last, const struct stack_words *stack, uint32_t index)
{
	last->stack = index + 1;
	last->module_version = module_version();
	last->count = stack->frame_count;
	memcpy(last->frames, stack->frames, stack->frame_count * sizeof(stack->frames[0]));
}

uint32_t
stack_store_add(struct stack_store_last *last, const struct stack_words *stack, size_t spare_bytes)
{
	uint32_t shared = shared_frames(last, stack);
	uint32_t own_count = stack->frame_count - shared;
	size_t own_bytes = own_count * sizeof(stack->frames[0]);
	uint32_t index;
	struct kmem_stack *stored = capture_file_append_sparing(KMEM_SECTION_RECORDS, sizeof(*stored) + own_bytes,
	                                                        spare_bytes, &index);

	if (stored == NULL)
		return 0;
	/* First the modules: a new one may raise the generation that this stack belongs to. Those of shared frames are noted. */
	for (uint32_t i = 0; i < own_count; i++) {
		if ((stack->frames[i] & KMEM_FRAME_PYTHON) == 0)
			module_map_note_pc(stack->frames[i] & KMEM_FRAME_PC_MASK);
	}
	stored->record.type = KMEM_RECORD_STACK;
	stored->record.flags = stack->flags;
	stored->record.bytes = (uint32_t)(sizeof(*stored) + own_bytes);
	stored->frame_count = stack->frame_count;
	stored->own_count = own_count;
	if (shared != 0) {
		const struct kmem_stack *outer = capture_file_item(KMEM_SECTION_RECORDS, last->stack);

		stored->record.previous = last->stack;
		stored->chain = outer->chain + 1;
	}
	stored->omitted = stack->omitted;
	stored->omitted_at = stack->omitted_at;
	stored->module_version = module_version();
	memcpy(stored->frames, stack->frames, own_bytes);
	capture_file_seal_record(&stored->record);
	if (last != NULL)
		remember_stack(last, stack, index);
	return index + 1;
}
