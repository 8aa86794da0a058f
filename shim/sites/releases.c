/*
 * releases.c - who releases what a line allocates (see releases.h)?
 */
#include "sites/releases.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/settings.h"
#include "base/thread_stack.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "python/python_runtime.h"
#include "sites/event_site.h"
#include "sites/site_table.h"
#include "tables/generations.h"
#include "tables/peak.h"
#include "tables/pointer_map.h"

static struct turn noting;

bool
releases_watch(struct thread_slot *slot)
{
	uint32_t look = slot->looks++;

	/* By the golden ratio: evenly, and in step with no loop of the program. */
	if (look >= RELEASES_EACH &&
	    look * UINT32_C(0x9e3779b9) >= UINT32_MAX / (look < RELEASES_FOURTH ? 4 : RELEASES_SELDOM))
		return false;
	slot->map_bits = POINTER_MAP_PRESENT | POINTER_MAP_WATCHED;
	return true;
}

void
releases_watch_no_more(struct thread_slot *slot)
{
	slot->map_bits = slot->own_bits;
}

/* Its record, without a block that goes, and of the heap the same part. */
static bool
holds_much(uint32_t site, uint64_t gone_bytes)
{
	int64_t live_bytes = site_table_live(site_table_at(site)) - (int64_t)gone_bytes;
	int64_t heap = kmem_peak_now_signed(peak_load(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak));

	return live_bytes >= RELEASES_MIN_BYTES && live_bytes >= heap >> RELEASES_MIN_SHARE;
}

/* relaxed, all but the last: only one thread writes at a time, and a reader checks the checksum. */
static void
write_entry(struct kmem_release *entry, uint32_t site, uint32_t releaser, uint32_t count)
{
	struct kmem_release fresh = { .site = site, .releaser = releaser, .count = count };

	atomic_store_explicit(&entry->checksum, 0, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); // whoever kills us in between finds no checksum
	entry->site = site;
	entry->releaser = releaser;
	entry->count = count;
	/* release: the entry before the word that says it is whole (L2). Pairs with the reader. */
	atomic_store_explicit(&entry->checksum, kmem_release_checksum(&fresh), memory_order_release);
}

static void
count_pair(uint32_t site, uint32_t releaser, bool site_holds_much)
{
	struct kmem_release *entries = capture_file_timeline()->releases;
	uint32_t first = (uint32_t)(((uint64_t)site << 32 | releaser) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
	struct kmem_release *least = NULL;

	for (uint32_t i = 0; i < RELEASES_PLACES; i++) {
		struct kmem_release *entry = &entries[(first + i) % KMEM_RELEASES_MAX];

		if (entry->site == site && entry->releaser == releaser) {
			write_entry(entry, site, releaser, entry->count + 1);
			return;
		}
		if ((least == NULL || entry->count < least->count) &&
		    (site_holds_much || entry->site == 0 || !holds_much(entry->site, 0)))
			least = entry;
	}
	if (least != NULL)
		write_entry(least, site, releaser, 1);
}

/* Both counts in one word: whoever takes the place of another site begins with none of either. */
static void
count_temporary(uint32_t site, bool is_temporary)
{
	_Atomic uint64_t *words = capture_file_timeline()->temporary;
	uint32_t first = site * UINT32_C(0x9e3779b9) >> 16;
	_Atomic uint64_t *place = NULL;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < RELEASES_PLACES && least != 0; i++) {
		_Atomic uint64_t *word = &words[(first + i) % KMEM_TEMPORARY_MAX];
		uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
		uint64_t watched = (uint32_t)seen == site ? 0 : (seen >> 32 & UINT16_MAX) + 1;

		if (watched < least) {
			place = word;
			least = watched;
		}
	}
	uint64_t seen = least == 0 ? atomic_load_explicit(place, memory_order_relaxed) : site;
	uint64_t watched = seen >> 32 & UINT16_MAX;
	uint64_t temporary = seen >> 48;
	unsigned halved = watched == UINT16_MAX;

	watched = (watched >> halved) + 1;
	temporary = (temporary >> halved) + is_temporary;
	atomic_store_explicit(place, temporary << 48 | watched << 32 | site, memory_order_relaxed);
}

void
releases_count(uint32_t site, uint32_t releaser, uint64_t bytes, enum releases_when when)
{
	if (!turn_take(&noting))
		return;
	count_pair(site, releaser, holds_much(site, bytes));
	if (when != RELEASES_UNKNOWN)
		count_temporary(site, when == RELEASES_TEMPORARY);
	turn_give(&noting);
}

/* Blocks of no tally, or of another thread's: what their thread allocated after them is not known. */
static enum releases_when
when_released(const struct thread_slot *slot, uint64_t addr, uint32_t site)
{
	const struct kmem_site *record = site_table_at(site);

	if (settings.walks_all || record->domain != KMEM_DOMAIN_HEAP || record->slot != slot->owner.slot)
		return RELEASES_UNKNOWN;
	return slot->tally_address == addr && slot->tally_events == slot->tally_begun ? RELEASES_TEMPORARY : RELEASES_LATE;
}

void
releases_note(struct thread_slot *slot, const void *hook_frame, uint64_t addr, uint32_t site, uint64_t bytes)
{
	enum releases_when when = when_released(slot, addr, site); // before event_site(), which may allocate
	int host_errno = errno;

	/* What is swept away at the end says nothing about who forgets. */
	if (atomic_load_explicit(&capture_file_header()->at_exit, memory_order_relaxed) != 0 || capture_file_is_large(0) ||
	    !thread_stack_has_room())
		return;

	uint32_t releaser = event_site(slot, hook_frame, KMEM_DOMAIN_HEAP, 0, generations_clock());

	if (releaser != 0)
		releases_count(site, releaser, bytes, when);
	errno = host_errno;
}
