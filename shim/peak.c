/*
 * peak.c - who held the memory when the total was highest (see peak.h)?
 *
 * The domain's word holds {now, mark, epoch}. A release that finds now above mark is the falling edge of a new maximum:
 * it stores mark = now and begins the next epoch. The event's epoch is the one its update of the domain's word was made in:
 * that compare-and-swap puts all events of the domain in one order. A site's word holds {now, mark, epoch} too, where
 * mark is what the site held when its epoch began:
 *
 *   event epoch > site epoch   mark = now, epoch = event epoch, now += delta
 *   event epoch = site epoch   now += delta
 *   event epoch < site epoch   now += delta and mark += delta: it arrived late, but belongs before the edge
 *
 * Invariants, tested by number in tests/unit/test_peak.c:
 *   P1  with nothing in flight, the sites' `now` add up to the domain's.
 *   P2  with nothing in flight, kmem_site_peak_bytes() of all sites add up to the domain's peak, whatever the order in
 *       which the updates of the sites arrived.
 *   P3  of several equal maxima the first is kept.
 *
 * The idea of falling-edge epochs is memray's (HighWaterMarkAggregator); the rule for late arrivals is what makes it work
 * without a lock.
 */
#include "peak.h"

#include <stdbool.h>
#include <string.h>

#include "kmem_words.h"

/*
 * Two halves that may be torn: every use is checked by the compare-and-swap that follows, and a reader of a live capture
 * accepts an in-flight difference.
 */
static struct kmem_peak_word
load(const struct kmem_peak_word *at)
{
	return (struct kmem_peak_word){
		.now = __atomic_load_n(&at->now, __ATOMIC_RELAXED),
		.mark = __atomic_load_n(&at->mark, __ATOMIC_RELAXED),
	};
}

/*
 * cmpxchg16b, emitted in place: libatomic would be one more dependency in the program, and may lock. The builtin is a full
 * barrier; relaxed would do: the word guards no other memory.
 */
static bool
replace(struct kmem_peak_word *at, struct kmem_peak_word *seen, struct kmem_peak_word wanted)
{
	unsigned __int128 before;
	unsigned __int128 after;
	unsigned __int128 found;

	memcpy(&before, seen, sizeof(before));
	memcpy(&after, &wanted, sizeof(after));
	found = __sync_val_compare_and_swap((unsigned __int128 *)(void *)at, before, after);
	memcpy(seen, &found, sizeof(found));
	return found == before;
}

uint32_t
peak_add(struct kmem_peak_word *domain, uint64_t bytes, uint64_t *total)
{
	struct kmem_peak_word seen = load(domain);
	struct kmem_peak_word wanted;

	do {
		*total = kmem_peak_now(seen) + bytes;
		wanted = kmem_peak_pack(*total, kmem_peak_mark(seen), kmem_peak_epoch(seen));
	} while (!replace(domain, &seen, wanted));
	return kmem_peak_epoch(seen);
}

uint32_t
peak_sub(struct kmem_peak_word *domain, uint64_t bytes)
{
	struct kmem_peak_word seen = load(domain);
	struct kmem_peak_word wanted;
	uint32_t epoch;

	do {
		uint64_t now = kmem_peak_now(seen);
		uint64_t mark = kmem_peak_mark(seen);

		epoch = kmem_peak_epoch(seen);
		if (now > mark) {
			mark = now;
			epoch++;
		}
		wanted = kmem_peak_pack(now - bytes, mark, epoch);
	} while (!replace(domain, &seen, wanted));
	return epoch;
}

void
peak_apply(struct kmem_peak_word *site, int64_t delta, uint32_t epoch)
{
	struct kmem_peak_word seen = load(site);
	struct kmem_peak_word wanted;

	do {
		uint64_t now = kmem_peak_now(seen);
		uint64_t mark = kmem_peak_mark(seen);
		uint32_t folded = kmem_peak_epoch(seen);

		if (epoch > folded) {
			mark = now;
			folded = epoch;
		} else if (epoch < folded) {
			mark += (uint64_t)delta;
		}
		wanted = kmem_peak_pack(now + (uint64_t)delta, mark, folded);
	} while (!replace(site, &seen, wanted));
}
