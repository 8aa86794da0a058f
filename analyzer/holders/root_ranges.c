/*
 * root_ranges.c - sorts the mappings of a process (see root_ranges.h).
 *
 * A mapping without a name is the first of these that fits: a thread's stack, the recorder's, the program's own (the recorder saw it
 * being made), the allocator's (blocks are in it), the stack of a thread that is gone (a forbidden page lies below), a root. Large
 * blocks of glibc have a mapping each, but the kernel joins neighbours: the memory between such blocks is a root.
 */
#include "holders/root_ranges.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"

#define CONTROL_BLOCK_BYTES 4096u // of a thread, and its thread-local variables: above and below its address
#define OWN_MAPPING_OFFSET 16u    // of a block in the mapping that glibc made for it alone
#define BLOCKS_LOOKED_AT 64       // of a mapping, to tell an arena from mappings of single blocks
#define PAGE_UP(addr) (((addr) + PROCESS_MEMORY_PAGE - 1) & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1))
#define PAGE_DOWN(addr) ((addr) & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1))

struct search {
	struct process_memory *memory;
	const struct stopped_process *process;
	struct live_blocks *blocks;
	struct root_ranges *ranges;
	size_t own_count;
	const struct address_range *own;
	size_t mapped_count;
	const struct address_range *mapped;
	uint64_t recorder_start; // of the library of the recorder, 0 before it was seen
	uint64_t recorder_end;   // of its zeroed data: the kernel may have joined what follows to it
	bool was_forbidden;      // the mapping before was a guard page
	uint64_t last_end;
};

static void
add(struct search *search, uint64_t start, uint64_t end, enum root_kind kind, uint32_t thread)
{
	struct root_ranges *ranges = search->ranges;

	if (start >= end)
		return;
	*MEMORY_NEXT(ranges->at, ranges->count) = (struct root_range){ start, end, kind, thread };
}

/* Is there a block without a mapping of its own? Looks from the top down. *any: there is a block. */
static bool
is_arena(struct search *search, uint64_t start, uint64_t end, bool *any)
{
	struct live_block block;

	*any = false;
	for (int i = 0; i < BLOCKS_LOOKED_AT && live_blocks_last_in(search->blocks, start, end, &block); i++) {
		*any = true;
		if (block.addr % PROCESS_MEMORY_PAGE != OWN_MAPPING_OFFSET)
			return true;
		end = block.addr;
	}
	return false;
}

/* The memory between blocks that have mappings of their own. */
static void
add_between(struct search *search, uint64_t start, uint64_t end)
{
	struct live_block block;

	while (live_blocks_last_in(search->blocks, start, end, &block)) {
		add(search, PAGE_UP(block.addr + block.bytes), end, ROOT_MAPPING, 0);
		end = PAGE_DOWN(block.addr);
		add(search, end, PAGE_UP(block.addr + block.bytes), ROOT_HEAP, 0);
	}
	add(search, start, end, ROOT_MAPPING, 0);
}

/* A part of a mapping without a name that is neither the recorder's nor the program's own. */
static void
add_unnamed(struct search *search, uint64_t start, uint64_t end, bool is_behind_guard)
{
	bool has_blocks;

	if (start >= end)
		return;
	if (is_arena(search, start, end, &has_blocks))
		add(search, start, end, ROOT_HEAP, 0);
	else if (has_blocks)
		add_between(search, start, end);
	else if (!is_behind_guard)
		add(search, start, end, ROOT_MAPPING, 0);
}

/* The thread whose stack pointer, or whose own memory, lies in [start, end); -1 = none. */
#define THREAD_OF(search, start_, end_, member)                                                               \
	({                                                                                                        \
		const struct stopped_thread *found = FIRST(one, (search)->process->threads, (search)->process->count, \
		                                           one->member - (start_) < (end_) - (start_));               \
                                                                                                              \
		found != NULL ? (int)(found - (search)->process->threads) : -1;                                       \
	})

static void
add_stack(struct search *search, uint64_t start, uint64_t end, int thread)
{
	const struct stopped_thread *of = &search->process->threads[thread];
	uint64_t from = of->stack_addr - start > MACHINE_RED_ZONE_BYTES ? of->stack_addr - MACHINE_RED_ZONE_BYTES : start;
	uint64_t local = end;

	if (of->thread_addr - start < end - start && of->thread_addr - from > CONTROL_BLOCK_BYTES)
		local = of->thread_addr - CONTROL_BLOCK_BYTES;
	add(search, from & ~UINT64_C(7), local, ROOT_STACK, (uint32_t)thread);
	add(search, local, end, ROOT_THREAD_LOCAL, (uint32_t)thread);
}

static bool
is_stack_of_main(const struct memory_region *region)
{
	return strcmp(region->path, "[stack]") == 0;
}

/* A thread's stack, or its other memory; false: it is neither. A coroutine's stack in a block of the heap stays a block. */
static bool
add_of_thread(struct search *search, const struct memory_region *region, uint64_t start, uint64_t end)
{
	int thread = THREAD_OF(search, start, end, stack_addr);
	struct live_block block;
	bool has_block = live_blocks_last_in(search->blocks, start, end, &block);

	if (thread >= 0 && !has_block) {
		add_stack(search, start, end, thread);
		return true;
	}
	if (is_stack_of_main(region)) { // its thread runs on another stack: all of it may be in use
		add(search, start, end, ROOT_STACK, 0);
		return true;
	}
	thread = THREAD_OF(search, start, end, thread_addr);
	if (thread < 0 || has_block)
		return false;
	add(search, start, end, ROOT_THREAD_LOCAL, (uint32_t)thread);
	return true;
}

/* Memory that is neither the recorder's nor mapped by the program. */
static void
add_other(struct search *search, const struct memory_region *region, uint64_t start, uint64_t end, bool may_be_stack,
          bool is_behind_guard)
{
	if (start < end && !(may_be_stack && add_of_thread(search, region, start, end)))
		add_unnamed(search, start, end, is_behind_guard);
}

/*
 * A part of a mapping that is not the recorder's. What the program mapped is cut out, because the kernel joins neighbouring mappings. Of
 * a stack only the part from the stack pointer on is in use.
 */
static void
add_part(struct search *search, const struct memory_region *region, uint64_t start, uint64_t end, bool is_behind_guard)
{
	bool may_be_stack = strcmp(region->path, "[heap]") != 0;

	for (size_t i = SORTED_UP_TO(search->mapped, search->mapped_count, end, start);
	     i < search->mapped_count && search->mapped[i].start < end; i++) {
		uint64_t from = search->mapped[i].start > start ? search->mapped[i].start : start;
		uint64_t to = search->mapped[i].end < end ? search->mapped[i].end : end;

		add_other(search, region, start, from, may_be_stack, is_behind_guard);
		if (from < to && !(may_be_stack && add_of_thread(search, region, from, to)))
			add(search, from, to, ROOT_MAPPING, 0);
		start = to > start ? to : start;
	}
	add_other(search, region, start, end, may_be_stack, is_behind_guard);
}

static void
add_without_own(struct search *search, const struct memory_region *region, uint64_t start, bool is_behind_guard)
{
	for (size_t i = SORTED_UP_TO(search->own, search->own_count, end, start);
	     i < search->own_count && search->own[i].start < region->end; i++) {
		add_part(search, region, start, search->own[i].start, is_behind_guard);
		start = search->own[i].end;
		is_behind_guard = false;
	}
	add_part(search, region, start, region->end, is_behind_guard);
}

/* Where the library's headers say that it ends. */
static void
see_recorder(struct search *search, uint64_t base)
{
	Elf64_Phdr part;

	search->recorder_start = base;
	for (unsigned i = 0; process_memory_header(search->memory, base, i, &part); i++) {
		if (part.p_type == PT_LOAD)
			search->recorder_end = PAGE_UP(base + part.p_vaddr + part.p_memsz);
	}
}

static bool
is_capture(const char *path)
{
	return strstr(path, ".kmem") != NULL;
}

static void
add_region(struct search *search, const struct memory_region *region)
{
	bool is_named = region->path[0] == '/';
	bool is_behind_guard = search->was_forbidden && region->start == search->last_end && !search->process->is_ending;
	uint64_t start = region->start;

	if (is_named && search->recorder_start == 0 && region->offset == 0 &&
	    strstr(region->path, "/libkmemshim.so") != NULL)
		see_recorder(search, region->start);
	if (start - search->recorder_start < search->recorder_end - search->recorder_start)
		start = search->recorder_end < region->end ? search->recorder_end : region->end;
	if (region->is_readable && region->is_writable && !region->is_shared) {
		if (is_named)
			add(search, start, region->end, ROOT_STATIC, 0);
		else
			add_without_own(search, region, start, is_behind_guard && start == region->start);
	}
	if (region->is_readable && region->is_writable && region->is_shared && !is_capture(region->path))
		search->ranges->shared_bytes += region->end - region->start;
	search->was_forbidden = !region->is_readable && !region->is_writable && !is_named;
	search->last_end = region->end;
}

ORDER_OF(compare, struct root_range, order_numbers(a->start, b->start))

void
root_ranges_find(struct process_memory *memory, const struct stopped_process *process, struct live_blocks *blocks,
                 struct root_ranges *ranges)
{
	struct search search = { .memory = memory, .process = process, .blocks = blocks, .ranges = ranges };

	*ranges = (struct root_ranges){ 0 };
	search.own_count = live_blocks_own(blocks, &search.own);
	search.mapped_count = live_blocks_mapped(blocks, &search.mapped);
	for (size_t i = 0; i < memory->region_count; i++)
		add_region(&search, &memory->regions[i]);
	SORT(ranges->at, ranges->count, compare);
}

void
root_ranges_free(struct root_ranges *ranges)
{
	free(ranges->at);
	*ranges = (struct root_ranges){ 0 };
}

const struct root_range *
root_ranges_at(const struct root_ranges *ranges, uint64_t addr)
{
	size_t at = SORTED_UP_TO(ranges->at, ranges->count, end, addr);

	return at < ranges->count && ranges->at[at].start <= addr ? &ranges->at[at] : NULL;
}
