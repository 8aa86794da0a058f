/*
 * tracker_mappings.c - what became of a mapping: it is cut, moved, laid over, released (see tracker.h)?
 *
 * Context     inside the reentry guard.
 * Safe from   any thread and signal handler; a lock (range_map.h).
 * When full   the event is counted as lost.
 */
#include <stdatomic.h>

#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "record/site_table.h"
#include "record/thread_slot.h"
#include "record/tracker.h"
#include "record/tracker_library.h"
#include "record/tracker_parts.h"
#include "tables/generations.h"
#include "tables/peak.h"
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

/* What does not fit one set of pieces is booked at once: only the first set can be put back. */
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

/* What is there was unmapped without our seeing it. */
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

/* A booked block. */
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
	struct thread_slot *slot;
	struct address_block block;

	if (tracker_is_teardown(bytes))
		return;
	evict(start, start + bytes);
	slot = thread_slot_here();
	block = tracker_born(slot, hook_frame, domain, bytes);
	if (block.site != 0)
		map_range(slot, start, block);
	tracker_look_after_total();
}

void
tracker_extended(const void *hook_frame, void *addr, size_t bytes)
{
	uint64_t start = (uint64_t)addr;
	struct thread_slot *slot;
	struct address_block block;

	if (tracker_is_teardown(bytes))
		return;
	slot = thread_slot_here();
	block = tracker_place(slot, hook_frame, KMEM_DOMAIN_MMAP, bytes);
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
	struct thread_slot *slot;
	struct address_block block;
	enum kmem_domain domain;
	uint64_t start = (uint64_t)addr;
	uint32_t owns[RANGE_PIECES_MAX];
	uint64_t old_bytes = 0;
	uint32_t epoch;

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
	slot = thread_slot_here();
	block = tracker_place(slot, hook_frame, domain, bytes);
	if (block.site == 0) {
		pieces_dead(old);
		return;
	}
	for (uint32_t i = 0; i < old->count; i++) {
		const struct range *piece = &old->piece[i];

		owns[i] = tracker_own_record(slot, piece->site, piece->generation, piece_bytes(piece), piece->is_last_piece);
		old_bytes += owns[i] != 0 ? piece_bytes(piece) : 0;
	}
	epoch = tracker_net_change(slot, domain, old_bytes, bytes);
	book_born_slow(site_table_at(block.site), bytes, true, epoch);
	for (uint32_t i = 0; i < old->count; i++) {
		if (owns[i] != 0)
			book_dead_slow(site_table_at(owns[i]), piece_bytes(&old->piece[i]), old->piece[i].is_last_piece, epoch);
	}
	map_range(slot, start, block);
	tracker_look_after_total();
}
