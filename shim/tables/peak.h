/*
 * peak.h - who held the memory when the total was highest? In O(1) per event, without a lock.
 *
 * Safe from   any thread and signal handler: lock-free loops over one 16-byte word, and words that
 *             belong to the calling thread.
 */
#ifndef PEAK_H
#define PEAK_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"
#include "kmem_words.h"

/*
 * What one thread has not added to a domain's total yet. Small events add up here, so that threads do not fight over one
 * cache line; it is added when it is worth peak_batch_limit(), and before a release that may be the fall from a new maximum: a
 * program with one thread has exact peaks. With n threads a maximum may be off by n times the limit.
 */
struct peak_batch {
	int64_t pending_bytes;
	int64_t limit_bytes; // pending reaches neither this nor its negative; 0 = every event is added at once
	uint32_t epoch;      // of the thread's last event that was not booked by peak_gain_fast() or peak_release_fast()
};

extern bool peak_is_exact; // KMEMSHIM_EXACT_PEAK=1: every event is added at once. Set before the first event.

#define PEAK_BATCH_LEAST 4096

/* Bytes that a thread may hold back at that total: a 4096th of it, 4 KiB to 64 KiB. */
static inline int64_t
peak_batch_limit(int64_t total)
{
	int64_t limit = total >> 12;

	return limit < PEAK_BATCH_LEAST ? PEAK_BATCH_LEAST : limit > 65536 ? 65536 : limit;
}

/*
 * Change the total of a domain by one event; batch NULL: at once. Both return the event's epoch, which the site's update needs.
 * A change of 0 is a release: the first of equal maxima counts (P3).
 */
uint32_t peak_gain(struct kmem_peak_word *domain, struct peak_batch *batch, uint64_t bytes);
uint32_t peak_release(struct kmem_peak_word *domain, struct peak_batch *batch, uint64_t bytes);

/*
 * A phase: a part of the program's life that has a peak of its own (moments/phases.h).
 *
 * peak_settle() books what is pending, and what is held now if that is a maximum. Then kmem_site_high_bytes() says what each site held
 * at the peak, until a higher one is booked.
 * peak_begin_phase() begins the next phase: its `high` is what is held now. *ended is the word of the phase that ends. False: this one has
 * been higher than kept_bytes, nothing was changed.
 */
struct kmem_peak_word peak_settle(struct kmem_peak_word *domain, struct peak_batch *batch);
bool peak_begin_phase(struct kmem_peak_word *domain, uint64_t kept_bytes, struct kmem_peak_word *ended);

/* Notes in the capture how far peaks may be off with so many threads. */
void peak_note_error(uint32_t threads);

/* Change what a site's record holds, by an event of that epoch. Shared: any number of threads may do so at once. */
void peak_apply_shared(struct kmem_peak_word *site, int64_t delta, uint32_t epoch);

/*
 * Two halves that may be torn: every use is checked by the compare-and-swap that follows, or is an estimate; a reader of a live
 * capture accepts an in-flight difference.
 */
static inline struct kmem_peak_word
peak_load(const struct kmem_peak_word *at)
{
	return (struct kmem_peak_word){
		.now = __atomic_load_n(&at->now, __ATOMIC_RELAXED),
		.high = __atomic_load_n(&at->high, __ATOMIC_RELAXED),
	};
}

/* The site's word after an event. */
static inline struct kmem_peak_word
peak_word_after(struct kmem_peak_word word, int64_t delta, uint32_t epoch)
{
	uint64_t now = kmem_peak_now(word);
	uint64_t high = kmem_peak_high(word);
	uint32_t folded = kmem_peak_epoch(word);

	if (epoch > folded) {
		high = now;
		folded = epoch;
	} else if (epoch < folded) {
		high += (uint64_t)delta;
	}
	return kmem_peak_pack(now + (uint64_t)delta, high, folded);
}

/* The same for a record that only the calling thread changes: no locked instruction. */
static inline void
peak_apply_own(struct kmem_peak_word *site, int64_t delta, uint32_t epoch)
{
	struct kmem_peak_word seen = *site;
	struct kmem_peak_word wanted = peak_word_after(seen, delta, epoch);

	/*
	 * relaxed: a reader of a live capture accepts an in-flight difference. `high` first: whoever is killed in between leaves
	 * an old epoch, for which `now` counts.
	 */
	if (wanted.high != seen.high)
		__atomic_store_n(&site->high, wanted.high, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&site->now, wanted.now, __ATOMIC_RELAXED);
}

/*
 * What nearly every event is: one that a thread holds back, in the epoch in which its site's record was changed last. Both change
 * the record, which belongs to the calling thread, and what the thread holds back. False: nothing was done; peak_gain() or
 * peak_release(), and peak_apply_own(), are to do it.
 *
 * The halves of the total's epoch may be of two moments. Read in this order they are then a later low half and an earlier high one,
 * an epoch that no record has yet.
 */
static inline bool
peak_is_same_epoch(struct kmem_peak_word one, struct kmem_peak_word other)
{
	return ((one.now ^ other.now) | (one.high ^ other.high)) >> 48 == 0;
}

static inline struct kmem_peak_word
peak_load_in_order(const struct kmem_peak_word *at)
{
	struct kmem_peak_word word = { .now = __atomic_load_n(&at->now, __ATOMIC_ACQUIRE) };

	word.high = __atomic_load_n(&at->high, __ATOMIC_RELAXED);
	return word;
}

/* The same in the epoch that the record has already: nothing but `now` changes. */
static inline void
peak_add_own(struct kmem_peak_word *site, uint64_t now, uint64_t change)
{
	uint64_t turned = (now << 16 | now >> 48) + (change << 16); // bytes above the epoch: no carry reaches it

	__atomic_store_n(&site->now, turned >> 16 | turned << 48, __ATOMIC_RELAXED);
}

/* Would a release be the falling edge of a new maximum? Both in the upper bits, where no epoch is in the way. */
static inline bool
peak_is_edge(struct kmem_peak_word total, const struct peak_batch *batch)
{
	return (int64_t)((total.now + (uint64_t)batch->pending_bytes) << 16) > (int64_t)(total.high << 16);
}

static inline bool
peak_gain_fast(const struct kmem_peak_word *domain, struct peak_batch *batch, struct kmem_peak_word *site,
               uint64_t bytes)
{
	struct kmem_peak_word total = peak_load_in_order(domain);
	struct kmem_peak_word seen = *site;
	int64_t pending = batch->pending_bytes + (int64_t)bytes;

	if (__builtin_expect(!peak_is_same_epoch(total, seen) || pending >= batch->limit_bytes, 0))
		return false;
	batch->pending_bytes = pending;
	peak_add_own(site, seen.now, bytes);
	return true;
}

static inline bool
peak_release_fast(const struct kmem_peak_word *domain, struct peak_batch *batch, struct kmem_peak_word *site,
                  uint64_t bytes)
{
	struct kmem_peak_word total = peak_load_in_order(domain);
	struct kmem_peak_word seen = *site;
	int64_t missing;

	if (__builtin_expect(!peak_is_same_epoch(total, seen) || peak_is_edge(total, batch), 0))
		return false;
	missing = (int64_t)bytes - batch->pending_bytes;
	if (__builtin_expect(missing >= batch->limit_bytes, 0))
		return false;
	batch->pending_bytes = -missing;
	peak_add_own(site, seen.now, -bytes);
	return true;
}

/* Both at once: a block that became another one, which may be of the same site. The total sees the net change. */
static inline bool
peak_resize_fast(const struct kmem_peak_word *domain, struct peak_batch *batch, struct kmem_peak_word *old_site,
                 uint64_t old_bytes, struct kmem_peak_word *site, uint64_t bytes)
{
	struct kmem_peak_word total = peak_load_in_order(domain);
	int64_t change = (int64_t)(bytes - old_bytes);
	int64_t pending = batch->pending_bytes + change;

	if (__builtin_expect(!peak_is_same_epoch(total, *old_site) || !peak_is_same_epoch(total, *site) ||
	                         pending >= batch->limit_bytes || pending <= -batch->limit_bytes ||
	                         (change <= 0 && peak_is_edge(total, batch)),
	                     0))
		return false;
	batch->pending_bytes = pending;
	peak_add_own(old_site, old_site->now, -old_bytes);
	peak_add_own(site, site->now, bytes);
	return true;
}

#endif
