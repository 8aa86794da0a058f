/*
 * holder_skips.c - which blocks need not be read: large ones of lines whose blocks hold no pointers (see holder_search.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"
#include "holders/holder_search.h"

#define SKIP_BYTES_MIN (UINT64_C(16) << 10) // smaller blocks are scanned
#define SKIP_PIECES 16                      // of such a block that are looked at
#define SKIP_PIECE_WORDS 8
#define SKIP_BLOCKS_LOOKED_AT 32 // of a site

struct skip_search {
	struct holder_search *search;
	size_t site_count;
	uint32_t *looked_at; // blocks of each site; UINT32_MAX = it has pointers
};

static bool
leads_somewhere(struct holder_search *search, uint64_t word)
{
	struct live_block block;

	if (word < PROCESS_MEMORY_PAGE || word >> 47 != 0)
		return false;

	const struct root_range *range = root_ranges_at(&search->look->ranges, word);

	return live_blocks_find(search->look->blocks, word, &block) ||
	       (range != NULL && (range->kind == ROOT_MAPPING || range->kind == ROOT_THREAD_LOCAL));
}

static bool
has_pointers(struct holder_search *search, const struct live_block *block)
{
	uint64_t step = block->bytes / SKIP_PIECES & ~UINT64_C(7);

	for (uint64_t i = 0; i < SKIP_PIECES * SKIP_PIECE_WORDS; i++) {
		uint64_t offset = i / SKIP_PIECE_WORDS * step + i % SKIP_PIECE_WORDS * 8;

		if (leads_somewhere(search, process_memory_word(&search->look->memory, (block->addr & ~UINT64_C(7)) + offset)))
			return true;
	}
	return false;
}

void
holder_search_show(struct holder_search *search, const struct live_block *block)
{
	holder_lists_show(&search->lists, block);
	if (block->bytes < SKIP_BYTES_MIN)
		return;
	*MEMORY_NEXT(search->large, search->large_count, search->large_room) = *block;
}

/* Does a block of this site, one of the first ones, have pointers? */
static void
look_at_site(struct skip_search *skips, const struct live_block *block)
{
	uint32_t *looked_at = MEMORY_AT(skips->looked_at, skips->site_count, block->site);

	if (*looked_at < SKIP_BLOCKS_LOOKED_AT)
		*looked_at = has_pointers(skips->search, block) ? UINT32_MAX : *looked_at + 1;
}

/* A line may ask for data, and for the storage of the dictionary that it goes into: that has items here, half full as it may be. */
static uint64_t
page_with_items(const struct live_block *block)
{
	return (block->addr + block->bytes / 8 * 3) & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1);
}

static bool
is_container(struct holder_search *search, const struct live_block *block)
{
	uint64_t words[PROCESS_MEMORY_PAGE / 8];

	(void)process_memory_read(&search->look->memory, page_with_items(block), words, sizeof(words));
	return ANY(word, words, COUNT_OF(words), leads_somewhere(search, *word));
}

static void
add_skip(struct holder_search *search, const struct live_block *block)
{
	*MEMORY_NEXT(search->skips, search->skip_count,
	             search->skip_room) = (struct address_range){ block->addr, block->addr + block->bytes };
	search->left_out_bytes += block->bytes;
}

ORDER_OF(compare_ranges, struct address_range, order_numbers(a->start, b->start))

static bool
has_block(struct holder_search *search, uint64_t start, uint64_t end)
{
	struct live_block block;

	return end - start > PROCESS_MEMORY_PAGE || live_blocks_last_in(search->look->blocks, start, end, &block);
}

/* Beside blocks of data is what the allocator keeps of them: reading that in each pass would cost as much as reading a page. */
static void
join_skips(struct holder_search *search)
{
	for (size_t i = 0; i < search->skip_count && !holder_search_is_late(search); i++) {
		struct address_range *skip = &search->skips[i];
		const struct root_range *range = root_ranges_at(&search->look->ranges, skip->start);

		if (range == NULL || range->kind != ROOT_HEAP)
			continue;

		uint64_t lowest = i != 0 && skip[-1].end > range->start ? skip[-1].end : range->start;
		uint64_t highest = i + 1 < search->skip_count && skip[1].start < range->end ? skip[1].start : range->end;

		if (lowest < skip->start && !has_block(search, lowest, skip->start))
			skip->start = lowest;
		if (skip->end < highest && !has_block(search, skip->end, highest))
			skip->end = highest;
	}
}

/* Of blocks whose sites have no pointers, as far as was looked. */
static void
find_data(struct holder_search *search, const uint32_t *looked_at)
{
	size_t count = search->large_count;

	for (size_t first = 0, next; first < count && !holder_search_is_late(search); first = next) {
		uint64_t pages[PROCESS_MEMORY_AHEAD];
		size_t wanted = 0;

		for (next = first; next < count && wanted < PROCESS_MEMORY_AHEAD; next++) {
			if (looked_at[search->large[next].site] != UINT32_MAX)
				pages[wanted++] = page_with_items(&search->large[next]);
		}
		process_memory_ahead(&search->look->memory, pages, wanted);
		for (size_t i = first; i < next; i++) {
			if (looked_at[search->large[i].site] != UINT32_MAX && !is_container(search, &search->large[i]))
				add_skip(search, &search->large[i]);
		}
	}
}

void
holder_search_find_skips(struct holder_search *search)
{
	struct skip_search skips = { .search = search };

	for (size_t i = 0; i < search->large_count && !holder_search_is_late(search); i++)
		look_at_site(&skips, &search->large[i]);
	find_data(search, skips.looked_at);
	SORT(search->skips, search->skip_count, compare_ranges);
	join_skips(search);
	free(skips.looked_at);
}

bool
holder_search_is_skipped(const struct holder_search *search, uint64_t start, uint64_t end)
{
	size_t at = SORTED_UP_TO(search->skips, search->skip_count, end, start);

	return at < search->skip_count && search->skips[at].start <= start && end <= search->skips[at].end;
}
