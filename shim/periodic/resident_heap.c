/*
 * resident_heap.c - how full are the pages of the heap (see resident_heap.h)?
 *
 * A sample: one of `stride` resident pages is looked into. The stride is chosen by the number of pages at the look before. A block that
 * began before the page is found by going back in the map until one did: at most as far as a large block reaches, because large blocks
 * are not part of this. What the map does not cover, as when there are no more addresses (ulimit -v), is left out.
 */
#include "periodic/resident_heap.h"

#include <stdatomic.h>
#include <string.h>

#include "base/settings.h"
#include "periodic/page_look.h"
#include "tables/pointer_map.h"

#define PAGE_BYTES PAGE_LOOK_PAGE_BYTES
#define FIRST_STRIDE 16u
#define RECORDS_MAX 1024u // a power of two: those with blocks in pages that are looked into
#define PROBES_MAX 64u    // of a record that is not there: a search through a full table for each page would be a pause
#define SHARERS_MAX 16u   // of one page
#define LEAST_PAGES 12u   // so many that are in memory are not all missed, but for one case in 100,000
#define DEVIATIONS 5u
#define HOLDER_BYTES 1024u // of a block that is no small part of a page
#define NEAR_BYTES UINT64_C(256)
#define SMALL_BYTES (UINT64_C(1) << KMEM_LARGE_LOG2)

struct record {
	uint32_t site;
	uint32_t held_pages;   // that were looked into, and have blocks of HOLDER_BYTES and more
	uint64_t held_bytes;   // of these blocks, in these
	uint64_t pinned_bytes; // its share of nearly empty pages
};

/* All of it is under the flag. */
static struct {
	uint64_t stride;     // of so many pages one
	uint64_t heap_pages; // resident, without those of large blocks
	uint64_t sampled;
	uint64_t empty; // of the sampled ones, and so on
	uint64_t sparse;
	uint64_t sparse_live_bytes;
	uint64_t words; // of the map that were looked at
	struct record records[RECORDS_MAX];
	bool is_full;          // there was no room for one
	uint64_t unseen_pages; // resident, and the map has no leaf there
} look = { .stride = FIRST_STRIDE };

void
resident_heap_begin(void)
{
	uint64_t stride = look.heap_pages != 0 ? look.heap_pages / RESIDENT_HEAP_SAMPLES + 1 : FIRST_STRIDE;

	memset(&look, 0, sizeof(look));
	look.stride = stride;
}

/* NULL: more records than there is room for. */
static struct record *
record_of(uint32_t site)
{
	uint32_t home = site * UINT32_C(0x9e3779b1) >> 16; // neighbours lie apart: they would make long rows

	for (uint32_t i = 0; i < PROBES_MAX; i++) {
		struct record *record = &look.records[(home + i) & (RECORDS_MAX - 1)];

		if (record->site == site || record->site == 0) {
			record->site = site;
			return record;
		}
	}
	look.is_full = true;
	return NULL;
}

static void
pin(uint32_t site, uint64_t bytes)
{
	struct record *record = record_of(site);

	if (record != NULL)
		record->pinned_bytes += bytes;
}

/* So much of a page that is in memory is this block's. */
static void
hold(const struct address_block *block, uint64_t bytes)
{
	struct record *record = block->bytes >= HOLDER_BYTES ? record_of(block->site) : NULL;

	if (record == NULL)
		return;
	record->held_pages++;
	record->held_bytes += bytes;
}

/* What is in the page. */
struct page_view {
	uint64_t page;
	bool is_preceded; // by a block that begins before
	uint64_t live_bytes;
	uint32_t sharers[SHARERS_MAX];
	uint32_t count;
};

/* So much of a block is in the page: it may have begun before. */
static bool
see_block(void *context, uint64_t start, struct address_block block)
{
	struct page_view *view = context;
	uint64_t from = start > view->page ? start : view->page;
	uint64_t end = start + block.bytes < view->page + PAGE_BYTES ? start + block.bytes : view->page + PAGE_BYTES;
	uint32_t i = 0;

	view->is_preceded |= block.site != 0 && start < view->page;
	if (end <= from)
		return true;
	view->live_bytes += end - from;
	hold(&block, end - from);
	while (i < view->count && view->sharers[i] != block.site)
		i++;
	if (i == view->count && view->count < SHARERS_MAX)
		view->sharers[view->count++] = block.site;
	return true;
}

/* The block before the page is the last one that can reach into it. Mostly it is near. */
static void
look_into(uint64_t page)
{
	struct page_view view = { .page = page };

	for (uint64_t back = NEAR_BYTES; back <= SMALL_BYTES && !view.is_preceded; back *= 8)
		look.words += pointer_map_visit(page - back, page, false, see_block, &view);
	if (!view.is_preceded)
		look.words += pointer_map_visit(page - POINTER_MAP_LARGE_BYTES, page - SMALL_BYTES, true, see_block, &view);
	look.words += pointer_map_visit(page, page + PAGE_BYTES, false, see_block, &view);
	look.sampled++;
	if (view.count == 0) {
		look.empty++;
	} else if (view.live_bytes < PAGE_BYTES / 2) {
		look.sparse++;
		look.sparse_live_bytes += view.live_bytes;
		for (uint32_t i = 0; i < view.count; i++)
			pin(view.sharers[i], PAGE_BYTES / view.count);
	}
}

/* From one page that is due for the sample to the next one. */
static void
look_at(uint64_t start, uint64_t end, const unsigned char *pages)
{
	uint64_t count = (end - start) / PAGE_BYTES;

	if (!pointer_map_covers(start)) {
		look.unseen_pages += page_look_count(pages, count, PAGE_LOOK_PRESENT);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t left = look.stride - 1 - (look.heap_pages + look.stride - 1) % look.stride; // to the next due one
		uint64_t few = left < count - i ? left : count - i;

		if (few >= 8) { // no more than that many pages: none of them is due
			look.heap_pages += page_look_count(pages + i, few, PAGE_LOOK_PRESENT);
			i += few - 1;
			continue;
		}
		if (pages[i] != 0 && settings.sample_bytes == 0 && look.heap_pages++ % look.stride == 0)
			look_into(start + i * PAGE_BYTES);
	}
}

uint64_t
resident_heap_pages(uint64_t start, uint64_t end, const unsigned char *pages,
                    bool is_large(uint64_t addr, uint64_t *end))
{
	uint64_t before = look.words;

	for (uint64_t at = start, next; at < end; at = next) {
		bool is_left_out = is_large(at, &next);
		uint64_t leaf_end = (at | ((UINT64_C(1) << POINTER_MAP_LEAF_LOG2) - 1)) + 1;

		next = next < leaf_end ? next : leaf_end;
		next = next < end ? next : end;
		if (!is_left_out)
			look_at(at, next, pages + (at - start) / PAGE_BYTES);
	}
	return look.words - before;
}

static uint64_t
of_all(uint64_t of_sample)
{
	return (uint64_t)((unsigned __int128)of_sample * look.heap_pages / look.sampled);
}

bool
resident_heap_knows_holders(void)
{
	return look.sampled != 0 && !look.is_full;
}

uint64_t
resident_heap_held_at_most(bool is_one(uint32_t site, const void *context), const void *context)
{
	uint64_t bytes = 0;
	uint64_t pages = 0;
	uint64_t root = 0;

	for (uint32_t i = 0; i < RECORDS_MAX; i++) {
		if (look.records[i].held_pages != 0 && is_one(look.records[i].site, context)) {
			bytes += look.records[i].held_bytes;
			pages += look.records[i].held_pages;
		}
	}
	while ((root + 1) * (root + 1) <= pages)
		root++;
	return of_all(bytes + (LEAST_PAGES + DEVIATIONS * root) * PAGE_BYTES) + look.unseen_pages * PAGE_BYTES;
}

void
resident_heap_tell(struct kmem_resident_lines *lines, void (*tell)(uint32_t site, uint64_t bytes))
{
	if (look.sampled == 0)
		return;
	lines->sampled_pages = (uint32_t)look.sampled;
	lines->heap_bytes = look.heap_pages * PAGE_BYTES;
	lines->heap_empty_bytes = of_all(look.empty * PAGE_BYTES);
	lines->heap_sparse_bytes = of_all(look.sparse * PAGE_BYTES);
	lines->heap_sparse_live_bytes = of_all(look.sparse_live_bytes);
	for (uint32_t i = 0; i < RECORDS_MAX; i++) {
		if (look.records[i].pinned_bytes != 0)
			tell(look.records[i].site, of_all(look.records[i].pinned_bytes));
	}
}
