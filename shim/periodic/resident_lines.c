/*
 * resident_lines.c - of the large blocks of each record, how much is in memory (see resident_lines.h)?
 *
 * The blocks are gathered in order of address, and compared with the pages as these are looked at. So a block that is given back during
 * the look counts as it was at the beginning.
 */
#include "periodic/resident_lines.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "capture/capture_file.h"
#include "kmem_words.h"
#include "periodic/page_look.h"
#include "periodic/resident_heap.h"
#include "sites/site_table.h"
#include "tables/pointer_map.h"
#include "tables/range_map.h"

#define PAGE_BYTES PAGE_LOOK_PAGE_BYTES
#define RECORDS_MAX 1024u                   // a power of two
#define RANGE_BYTES (UINT64_C(64) << 10)    // smaller mappings count as resident
#define MIDDLING_BYTES 8192u                // on average: of smaller blocks most pages hold several
#define UNTOUCHED_BYTES (UINT64_C(1) << 20) // of a record: less is not worth a look
#define SITES_MAX 65536u                    // records that are asked for middling blocks
#define PROBES_MAX 64u // of a record that is not there: a search through a full table for each block would be a pause

struct large_block {
	uint64_t start;
	uint64_t bytes; // requested
	uint32_t site;
};

struct held {
	struct large_block block;
	uint64_t counted_bytes;
	uint64_t doubtful_bytes; // there, and perhaps not counted
};

/* All of it is under the flag. Untouched parts cost nothing. */
static struct {
	struct held held[RESIDENT_LINES_BLOCKS_MAX];
	struct large_block found[RESIDENT_LINES_BLOCKS_MAX];
	uint32_t count;
	uint32_t next;                                  // blocks before it end before the pages that come now
	uint64_t page_end;                              // pages before it were given to blocks
	struct kmem_resident_line records[RECORDS_MAX]; // by site
	struct kmem_resident_lines lines;
} look;

static uint64_t
end_of(const struct large_block *block)
{
	return block->start + block->bytes;
}

/* ---- which blocks ---- */

static void
sink(struct large_block *heap, uint32_t at, uint32_t count)
{
	struct large_block moved = heap[at];

	for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && heap[child + 1].start > heap[child].start)
			child++;
		if (heap[child].start <= moved.start)
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

/* In place, and never slower than n log n, because the program waits. */
static void
sort(struct large_block *blocks, uint32_t count)
{
	for (uint32_t i = count / 2; i-- > 0;)
		sink(blocks, i, count);
	for (uint32_t left = count; left > 1;) {
		struct large_block last = blocks[--left];

		blocks[left] = blocks[0];
		blocks[0] = last;
		sink(blocks, 0, left);
	}
}

static bool
gather_block(void *context, uint64_t addr, struct address_block block)
{
	uint32_t *count = context;

	if (*count == RESIDENT_LINES_BLOCKS_MAX)
		return false;
	if (block.bytes >= POINTER_MAP_LARGE_BYTES)
		look.found[(*count)++] = (struct large_block){ .start = addr, .bytes = block.bytes, .site = block.site };
	return true;
}

/* Of `least` bytes and more, and less than `end`. Pages in memory that are of a file are the file's. */
static uint32_t
gather_ranges(struct large_block *found, uint32_t most, uint64_t least, uint64_t end)
{
	uint32_t count = 0;
	struct range range;

	for (uint64_t addr = 0; count < most && range_map_next(addr, &range) && range.site != 0; addr = range.end) {
		uint64_t bytes = range.end - range.start;

		if (bytes >= least && bytes < end && site_table_at(range.site)->domain != KMEM_DOMAIN_FILE)
			found[count++] = (struct large_block){ .start = range.start, .bytes = bytes, .site = range.site };
	}
	return count;
}

void
resident_lines_begin(void)
{
	uint32_t count = 0;

	pointer_map_visit_large(gather_block, &count);
	count += gather_ranges(look.found + count, RESIDENT_LINES_BLOCKS_MAX - count, POINTER_MAP_LARGE_BYTES, UINT64_MAX);
	count += gather_ranges(look.found + count, RESIDENT_LINES_BLOCKS_MAX - count, RANGE_BYTES, POINTER_MAP_LARGE_BYTES);
	sort(look.found, count);
	look.count = look.next = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (i == 0 || look.found[i].start != look.found[i - 1].start)
			look.held[look.count++] = (struct held){ .block = look.found[i] };
	}
	look.page_end = 0;
}

/* ---- how much of them ---- */

void
resident_lines_pages(uint64_t start, uint64_t end, const unsigned char *pages)
{
	while (look.next < look.count && end_of(&look.held[look.next].block) <= start)
		look.next++;
	for (uint32_t i = look.next; i < look.count && look.held[i].block.start < end; i++) {
		struct held *held = &look.held[i];
		uint64_t from = held->block.start & ~(PAGE_BYTES - 1);
		uint64_t to = (end_of(&held->block) + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

		from = from > start ? from : start;
		if (from < look.page_end) // a page that two blocks share is the first one's
			from = look.page_end;
		to = to < end ? to : end;
		if (from >= to)
			continue;
		uint64_t present = page_look_count(pages + (from - start) / PAGE_BYTES, (to - from) / PAGE_BYTES,
		                                   PAGE_LOOK_PRESENT);
		uint64_t counted = page_look_count(pages + (from - start) / PAGE_BYTES, (to - from) / PAGE_BYTES,
		                                   PAGE_LOOK_COUNTED);

		held->counted_bytes += counted * PAGE_BYTES;
		held->doubtful_bytes += (present - counted) * PAGE_BYTES;
		look.page_end = to;
	}
}

bool
resident_lines_are_large(uint64_t addr, uint64_t *end)
{
	uint32_t low = 0;
	uint32_t high = look.count;

	while (low < high) { // the first that ends behind addr
		uint32_t middle = (low + high) / 2;

		if (end_of(&look.held[middle].block) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	*end = UINT64_MAX;
	if (low == look.count)
		return false;
	*end = look.held[low].block.start & ~(PAGE_BYTES - 1);
	if (*end > addr)
		return false;
	*end = (end_of(&look.held[low].block) + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	return true;
}

/* ---- whose they are ---- */

/* NULL: more records than there is room for. */
static struct kmem_resident_line *
record_of(uint32_t site)
{
	uint32_t home = site * UINT32_C(0x9e3779b1) >> 16; // neighbours lie apart: they would make long rows

	for (uint32_t i = 0; i < PROBES_MAX; i++) {
		struct kmem_resident_line *record = &look.records[(home + i) & (RECORDS_MAX - 1)];

		if (record->site == site || record->site == 0) {
			record->site = site;
			return record;
		}
	}
	return NULL;
}

static void
add_up(uint64_t scaled(uint64_t bytes))
{
	memset(look.records, 0, sizeof(look.records));
	for (uint32_t i = 0; i < look.count; i++) {
		struct held *held = &look.held[i];
		uint64_t bytes = held->block.bytes;
		uint64_t resident_bytes = held->counted_bytes + scaled(held->doubtful_bytes);
		struct kmem_resident_line *record = record_of(held->block.site);

		if (resident_bytes > bytes) // of its last page, the rest
			resident_bytes = bytes;
		if (record == NULL) {
			look.lines.left_out_bytes += bytes;
			look.lines.left_out_resident_bytes += resident_bytes;
			continue;
		}
		record->large_count++;
		record->large_bytes += bytes;
		record->large_resident_bytes += resident_bytes;
	}
}

static bool
is_twin(uint32_t site, const void *context)
{
	const struct kmem_site *one = site_table_at(site);
	const struct kmem_site *other = context;

	return one->domain == other->domain && atomic_load_explicit(&one->stack, memory_order_relaxed) ==
	                                           atomic_load_explicit(&other->stack, memory_order_relaxed);
}

/* Are the blocks that this record is asked for larger than a page or two, and yet not large? */
static bool
has_middling_blocks(const struct kmem_site *site)
{
	uint64_t count = atomic_load_explicit(&site->allocated_count, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed);

	return site->domain == KMEM_DOMAIN_HEAP && bytes >= UNTOUCHED_BYTES && bytes / MIDDLING_BYTES >= count;
}

/*
 * Many blocks that are not large may be untouched, too. Of how much of them is in memory there is a sample. Where it is clear that less
 * than half is, they count with the large blocks, and what is in memory at most of them as resident.
 */
static void
add_middling(uint64_t elsewhere_bytes)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);

	if (!resident_heap_knows_holders())
		return;
	for (uint32_t i = 1; i <= count && i <= SITES_MAX; i++) {
		const struct kmem_site *site = site_table_at(i);
		uint64_t large_bytes = 0;
		int64_t held_bytes;

		if (!site_table_is_complete(site) || !has_middling_blocks(site) || !site_table_held_first(i, &held_bytes))
			continue;
		for (uint32_t k = 0; k < RECORDS_MAX; k++)
			large_bytes += look.records[k].site != 0 && is_twin(look.records[k].site, site)
			                   ? look.records[k].large_bytes
			                   : 0;
		held_bytes -= (int64_t)large_bytes;
		if (held_bytes < (int64_t)UNTOUCHED_BYTES)
			continue;

		uint64_t resident_bytes = resident_heap_held_at_most(is_twin, site) + elsewhere_bytes;
		struct kmem_resident_line *record = resident_bytes < (uint64_t)held_bytes / 2 ? record_of(i) : NULL;

		if (record == NULL)
			continue;
		record->large_count++;
		record->large_bytes += (uint64_t)held_bytes;
		record->large_resident_bytes += resident_bytes;
	}
}

static void
pin(uint32_t site, uint64_t bytes)
{
	struct kmem_resident_line *record = record_of(site);

	if (record != NULL)
		record->pinned_bytes += bytes;
}

static uint64_t
weight(const struct kmem_resident_line *line)
{
	return line->large_bytes + line->pinned_bytes;
}

/* The records with most bytes, as many as there is room for. */
static void
choose(void)
{
	struct kmem_resident_line *lines = look.lines.lines;
	uint32_t count = 0;

	for (uint32_t i = 0; i < RECORDS_MAX; i++) {
		const struct kmem_resident_line *record = &look.records[i];
		uint32_t least = 0;

		if (record->site == 0)
			continue;
		if (count < KMEM_RESIDENT_LINES_MAX) {
			lines[count++] = *record;
			continue;
		}
		for (uint32_t k = 1; k < KMEM_RESIDENT_LINES_MAX; k++)
			least = weight(&lines[k]) < weight(&lines[least]) ? k : least;

		struct kmem_resident_line out = *record;

		if (weight(&lines[least]) < weight(record)) {
			out = lines[least];
			lines[least] = *record;
		}
		look.lines.left_out_bytes += out.large_bytes;
		look.lines.left_out_resident_bytes += out.large_resident_bytes;
	}
}

void
resident_lines_store(struct kmem_resident_lines *to, uint64_t sequence, uint64_t elsewhere_bytes,
                     uint64_t scaled(uint64_t bytes))
{
	const size_t behind = sizeof(look.lines.checksum);

	memset(&look.lines, 0, sizeof(look.lines));
	look.lines.sequence = sequence;
	add_up(scaled);
	add_middling(elsewhere_bytes);
	resident_heap_tell(&look.lines, pin);
	choose();
	/* Between two fences: a reader takes it when its checksum is right (F7). */
	atomic_store_explicit(&to->checksum, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy((char *)to + behind, (char *)&look.lines + behind, sizeof(*to) - behind);
	atomic_store_explicit(&to->checksum, kmem_resident_lines_checksum(&look.lines), memory_order_release);
}
