/*
 * holder_skips.c - which blocks need not be read: large ones of lines whose blocks hold no pointers (see holder_skips.h).
 */
#include "holders/holder_skips.h"

#include <stdlib.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"

#define SKIP_BYTES_MIN (UINT64_C(16) << 10) // smaller blocks are scanned
#define SKIP_PIECES 16                      // of such a block that are looked at
#define SKIP_PIECE_WORDS 8
#define SKIP_BLOCKS_LOOKED_AT 32 // of a site

static bool
leads_somewhere(const struct process_look *look, uint64_t word)
{
	struct live_block block;

	if (word < PROCESS_MEMORY_PAGE || word >> 47 != 0)
		return false;

	const struct root_range *range = root_ranges_at(&look->ranges, word);

	return live_blocks_find(look->blocks, word, &block) ||
	       (range != NULL && (range->kind == ROOT_MAPPING || range->kind == ROOT_THREAD_LOCAL));
}

static bool
has_pointers(struct process_look *look, const struct live_block *block)
{
	uint64_t step = block->bytes / SKIP_PIECES & ~UINT64_C(7);

	for (uint64_t i = 0; i < SKIP_PIECES * SKIP_PIECE_WORDS; i++) {
		uint64_t offset = i / SKIP_PIECE_WORDS * step + i % SKIP_PIECE_WORDS * 8;

		if (leads_somewhere(look, process_memory_word(&look->memory, (block->addr & ~UINT64_C(7)) + offset)))
			return true;
	}
	return false;
}

void
holder_skips_show(struct holder_skips *skips, const struct live_block *block)
{
	if (block->bytes >= SKIP_BYTES_MIN)
		*MEMORY_NEXT(skips->large, skips->large_count) = *block;
}

/* A line may ask for data, and for the storage of the dictionary that it goes into: that has items here, half full as it may be. */
static uint64_t
page_with_items(const struct live_block *block)
{
	return (block->addr + block->bytes / 8 * 3) & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1);
}

static bool
is_container(struct process_look *look, const struct live_block *block)
{
	uint64_t words[PROCESS_MEMORY_PAGE / 8];

	(void)process_memory_read(&look->memory, page_with_items(block), words, sizeof(words));
	return ANY(word, words, COUNT_OF(words), leads_somewhere(look, *word));
}

static void
add_skip(struct holder_skips *skips, const struct live_block *block)
{
	*MEMORY_NEXT(skips->ranges, skips->count) = (struct address_range){ block->addr, block->addr + block->bytes };
	skips->bytes += block->bytes;
}

ORDER_OF(compare_ranges, struct address_range, order_numbers(a->start, b->start))

/* Does one of the first blocks of this site that are looked at have pointers? *looked_at: how many were; UINT32_MAX = one has. */
static void
look_at(struct process_look *look, const struct live_block *block, uint32_t *looked_at)
{
	if (*looked_at < SKIP_BLOCKS_LOOKED_AT)
		*looked_at = has_pointers(look, block) ? UINT32_MAX : *looked_at + 1;
}

void
holder_skips_find(struct holder_skips *skips, struct process_look *look)
{
	const struct live_block *large = skips->large;
	size_t site_count = 0;
	OWNED uint32_t *looked_at = NULL; // blocks of each site

	for (size_t i = 0; i < skips->large_count && !process_memory_is_late(&look->memory); i++)
		look_at(look, &large[i], MEMORY_AT(looked_at, site_count, large[i].site));
	for (size_t first = 0, next; first < skips->large_count && !process_memory_is_late(&look->memory); first = next) {
		uint64_t pages[PROCESS_MEMORY_AHEAD];
		size_t wanted = 0;

		for (next = first; next < skips->large_count && wanted < PROCESS_MEMORY_AHEAD; next++) {
			if (looked_at[large[next].site] != UINT32_MAX)
				pages[wanted++] = page_with_items(&large[next]);
		}
		process_memory_ahead(&look->memory, pages, wanted);
		for (size_t i = first; i < next; i++) {
			if (looked_at[large[i].site] != UINT32_MAX && !is_container(look, &large[i]))
				add_skip(skips, &large[i]);
		}
	}
	SORT(skips->ranges, skips->count, compare_ranges);
}

bool
holder_skips_has(const struct holder_skips *skips, uint64_t start, uint64_t end)
{
	size_t at = SORTED_UP_TO(skips->ranges, skips->count, end, start);

	return at < skips->count && skips->ranges[at].start <= start && end <= skips->ranges[at].end;
}

void
holder_skips_free(struct holder_skips *skips)
{
	free(skips->ranges);
	free(skips->large);
}
