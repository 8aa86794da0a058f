/*
 * tracker_mappings.c - what became of a mapping (see tracker.h)? It is cut, moved, laid over, released; pages of it become memory or are
 * given back.
 *
 * Calls for pages that we do not know cost one lookup in the map: interpreters that compile change the protection of their code all the
 * time.
 *
 * Context     inside the reentry guard.
 * Safe from   any thread and signal handler; a lock (range_map.h).
 * When full   the event is counted as lost.
 */
#include <stdatomic.h>

#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "record/tracker.h"
#include "record/tracker_library.h"
#include "record/tracker_parts.h"
#include "sites/site_table.h"
#include "sites/thread_slot.h"
#include "tables/generations.h"
#include "tables/library_map.h"
#include "tables/range_map.h"

static uint64_t
piece_bytes(const struct range *piece)
{
	return piece->end - piece->start;
}

static void
pieces_dead(const struct range_pieces *pieces)
{
	struct thread_slot *slot = thread_slot_here();

	for (uint32_t i = 0; i < pieces->count; i++) {
		const struct range *piece = &pieces->piece[i];
		struct address_block block = { piece_bytes(piece), piece->site, piece->generation };

		tracker_gone(slot, block, piece->is_last_piece);
	}
}

/* Pieces beyond one set are booked at once: only the first set can be put back. */
static void
take_pieces(uint64_t start, uint64_t end, struct range_pieces *taken)
{
	struct range_pieces more;

	if (!thread_stack_has_room()) {
		taken->count = 0;
		lose_event(0);
		return;
	}
	bool was_had = range_map_take(start, end, taken);

	for (more.is_more = taken->is_more; was_had && more.is_more;) {
		was_had = range_map_take(start, end, &more);
		if (was_had)
			pieces_dead(&more);
	}
	if (!was_had)
		lose_event(0);
	tracker_library_cut(start, end); // before somebody else gets these addresses
}

/* What the map has there was unmapped without our seeing it. */
static void
evict(uint64_t start, uint64_t end)
{
	struct range_pieces stale;

	take_pieces(start, end, &stale);
	if (stale.count != 0) {
		capture_file_lost(KMEM_LOST_MISSED_FREES, stale.count);
		pieces_dead(&stale);
	}
}

/* block: is booked already. */
static void
map_range(struct thread_slot *slot, uint64_t start, struct address_block block)
{
	if (!range_map_put(start, start + block.bytes, block.site, block.generation)) {
		tracker_dead(slot, block);
		lose_event(block.bytes);
	}
}

void
tracker_mapped(const void *hook_frame, enum kmem_domain domain, void *addr, size_t bytes)
{
	uint64_t start = (uint64_t)addr;

	if (tracker_is_teardown(bytes))
		return;
	evict(start, start + bytes);

	struct thread_slot *slot = thread_slot_here();
	struct address_block block = tracker_born(slot, hook_frame, domain, bytes);

	if (block.site != 0)
		map_range(slot, start, block);
	tracker_look_after_total();
}

/*
 * Private memory at addresses where nothing is known. Next to a mapping of the same call site and generation it becomes a part of that.
 */
static void
extended(const void *hook_frame, void *addr, size_t bytes)
{
	uint64_t start = (uint64_t)addr;

	if (tracker_is_teardown(bytes))
		return;

	struct thread_slot *slot = thread_slot_here();
	struct address_block block = tracker_place(slot, hook_frame, KMEM_DOMAIN_MMAP, bytes);

	if (block.site == 0)
		return;
	bool is_joined = range_map_extend(start, start + bytes, block.site, block.generation);

	if (is_joined)
		generations_died(site_table_at(block.site), block.site, block.generation); // it is no block of its own
	tracker_gain(slot, block.site, KMEM_DOMAIN_MMAP, bytes, !is_joined);
	if (!is_joined)
		map_range(slot, start, block);
	tracker_look_after_total();
}

void
tracker_unmap_begin(void *addr, size_t bytes, struct range_pieces *taken)
{
	taken->count = 0;
	take_pieces((uint64_t)addr, (uint64_t)addr + bytes, taken);
}

void
tracker_unmap_end(const struct range_pieces *taken, bool was_released)
{
	bool is_back = !was_released && range_map_put_back(taken);

	if (!was_released && !is_back)
		lose_event(0);
	if (!is_back)
		pieces_dead(taken);
}

/* The old pieces live on at another place or in another size: one event with the net change, as for realloc. */
void
tracker_remapped(const void *hook_frame, const struct range_pieces *old, void *addr, size_t bytes)
{
	enum kmem_domain domain;
	uint64_t start = (uint64_t)addr;
	uint32_t owns[RANGE_PIECES_MAX];
	uint64_t old_bytes = 0;

	if (old->count == 0) // we never saw it: it stays unknown
		return;
	if (tracker_is_teardown(bytes)) {
		pieces_dead(old);
		return;
	}
	domain = (enum kmem_domain)site_table_at(old->piece[0].site)->domain;
	for (uint32_t i = 0; i < old->count; i++) {
		if (site_table_at(old->piece[i].site)->domain != domain) { // a move across kinds: no net change to speak of
			pieces_dead(old);
			tracker_mapped(hook_frame, domain, addr, bytes);
			return;
		}
	}
	evict(start, start + bytes);

	struct thread_slot *slot = thread_slot_here();
	struct address_block block = tracker_place(slot, hook_frame, domain, bytes);

	if (block.site == 0) {
		pieces_dead(old);
		return;
	}
	for (uint32_t i = 0; i < old->count; i++) {
		const struct range *piece = &old->piece[i];

		owns[i] = tracker_own_record(slot, piece->site, piece->generation, piece_bytes(piece), piece->is_last_piece);
		old_bytes += owns[i] != 0 ? piece_bytes(piece) : 0;
	}

	uint32_t epoch = tracker_net_change(slot, domain, old_bytes, bytes);

	book_born_slow(site_table_at(block.site), bytes, true, epoch);
	for (uint32_t i = 0; i < old->count; i++) {
		if (owns[i] != 0)
			book_dead_slow(site_table_at(owns[i]), piece_bytes(&old->piece[i]), old->piece[i].is_last_piece, epoch);
	}
	map_range(slot, start, block);
	tracker_look_after_total();
}

/* ---- pages of a mapping: what became memory, what was given back ---- */

/* The next known range within [*at, end); *at goes behind it. */
static bool
next_within(uint64_t *at, uint64_t end, struct range *part)
{
	if (*at >= end)
		return false;
	if (!range_map_next(*at, part)) {
		lose_event(0);
		return false;
	}
	if (part->site == 0 || part->start >= end)
		return false;
	if (part->start < *at)
		part->start = *at;
	if (part->end > end)
		part->end = end;
	*at = part->end;
	return true;
}

static unsigned
domain_of(const struct range *range)
{
	return site_table_at(range->site)->domain;
}

void
tracker_writable(const void *hook_frame, void *addr, size_t bytes)
{
	uint64_t at = (uint64_t)addr;
	uint64_t end = at + bytes;
	struct range_pieces taken;
	struct range part;

	while (next_within(&at, end, &part)) {
		if (domain_of(&part) != KMEM_DOMAIN_RESERVED || library_map_covers(part.start)) // what could be written before
			continue;
		tracker_unmap_begin((void *)part.start, part.end - part.start, &taken);
		if (taken.count == 0) // it stays what it was; begin has counted that
			continue;
		tracker_unmap_end(&taken, true);
		extended(hook_frame, (void *)part.start, part.end - part.start);
	}
}

void
tracker_returned(void *addr, size_t bytes)
{
	uint64_t at = (uint64_t)addr;
	uint64_t end = at + bytes;
	struct range part;

	while (next_within(&at, end, &part)) {
		/* relaxed: a counter of its own */
		if (domain_of(&part) != KMEM_DOMAIN_FILE)
			atomic_fetch_add_explicit(&capture_file_domain(domain_of(&part))->returned_bytes, part.end - part.start,
			                          memory_order_relaxed);
	}
}

void
tracker_detach_begin(void *addr, struct range_pieces *taken)
{
	struct range_pieces more;
	bool was_had = range_map_take_mapping((uint64_t)addr, taken);

	/* As when a range is unmapped: only the first set can be put back. */
	for (more = *taken; was_had && more.is_more;) {
		was_had = range_map_take_slow(&more);
		if (was_had)
			tracker_unmap_end(&more, true);
	}
	if (!was_had)
		lose_event(0);
}
