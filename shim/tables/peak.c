/*
 * peak.c - who held the memory when the total was highest (see peak.h)?
 *
 * The domain's word holds {now, high, epoch}: live bytes, the highest maximum so far, and how often a new maximum was found. A release
 * that finds now above high has found one: it stores high = now and begins the next epoch.
 *
 * Each event has an epoch. An event that updates the domain's word has the epoch that it stored or found there: the compare-and-swap
 * puts all these events in one order. An event that waits in its thread's batch has the epoch that the thread saw. A site's word holds
 * {now, high, epoch} too; its high is what the site held when its epoch began:
 *
 *   event epoch > site epoch   high = now, epoch = event epoch, now += delta
 *   event epoch = site epoch   now += delta
 *   event epoch < site epoch   now += delta and high += delta: it arrived late, but belongs before the edge
 *
 * Invariants, tested by number in tests/unit/shim/tables/test_peak.c, P4 in tests/stress/phases.c:
 *   P1  with nothing in flight, the sites' `now` add up to the domain's and what threads have pending.
 *   P2  with nothing in flight, kmem_site_peak_bytes() of all sites add up to the domain's peak, whatever the order in
 *       which the updates of the sites arrived; with one thread, or exact, always; else but for what was pending in other
 *       threads when the maximum was seen.
 *   P3  of several equal maxima the first is kept.
 *   P4  peak_begin_phase() makes no event part of two phases or of none: afterwards P2 is about the highest total since then.
 *
 * The idea of falling-edge epochs is memray's (HighWaterMarkAggregator); the rule for late arrivals is what makes it work
 * without a lock.
 */
#include "tables/peak.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/arch.h"
#include "capture/capture_file.h"

bool peak_is_exact;

static _Atomic int64_t most_limit = PEAK_BATCH_LEAST; // of any batch so far; relaxed: it only grows

/* It is a full barrier; relaxed would do: the word guards no other memory. */
static bool
replace(struct kmem_peak_word *at, struct kmem_peak_word *seen, struct kmem_peak_word wanted)
{
	unsigned __int128 before;
	unsigned __int128 after;
	unsigned __int128 found;

	memcpy(&before, seen, sizeof(before));
	memcpy(&after, &wanted, sizeof(after));
	found = arch_swap_pair(at, before, after);
	memcpy(seen, &found, sizeof(found));
	return found == before;
}

/* The limit stays until the thread's next sum is added, even if the total changes meanwhile. The largest limit bounds the error. */
static void
set_limit(struct peak_batch *batch, int64_t total)
{
	int64_t limit = peak_is_exact ? 0 : peak_batch_limit(total);
	int64_t most = atomic_load_explicit(&most_limit, memory_order_relaxed);

	batch->limit_bytes = limit;
	while (most < limit && !atomic_compare_exchange_weak_explicit(&most_limit, &most, limit, memory_order_relaxed,
	                                                              memory_order_relaxed))
		;
}

/*
 * Adds what is pending to the domain's word, sees whether that was a new maximum from which the total now falls, and adds
 * delta: in one step, which puts all events of the domain in one order.
 */
static uint32_t
add(struct kmem_peak_word *domain, struct peak_batch *batch, int64_t delta)
{
	int64_t pending = batch != NULL ? batch->pending_bytes : 0;
	struct kmem_peak_word seen = peak_load(domain);
	struct kmem_peak_word wanted;
	uint32_t epoch;

	do {
		int64_t now = kmem_peak_now_signed(seen) + pending;
		int64_t high = (int64_t)kmem_peak_high(seen);

		epoch = kmem_peak_epoch(seen);
		if (delta <= 0 && now > high) {
			high = now;
			epoch++;
		}
		wanted = kmem_peak_pack((uint64_t)(now + delta), (uint64_t)high, epoch);
	} while (!replace(domain, &seen, wanted));
	if (batch != NULL) {
		batch->pending_bytes = 0;
		batch->epoch = epoch;
		set_limit(batch, kmem_peak_now_signed(wanted));
	}
	return epoch;
}

/*
 * The halves of an epoch may belong to two moments; that matters only where the low one began again, and shows as a step back or a
 * leap.
 */
static bool
may_be_torn(const struct peak_batch *batch, uint32_t epoch)
{
	return epoch - batch->epoch > 0x8000;
}

uint32_t
peak_gain(struct kmem_peak_word *domain, struct peak_batch *batch, uint64_t bytes)
{
	if (batch == NULL || peak_is_exact)
		return add(domain, batch, (int64_t)bytes);

	struct kmem_peak_word seen = peak_load(domain);
	int64_t pending = batch->pending_bytes + (int64_t)bytes;
	uint32_t epoch = kmem_peak_epoch(seen);

	if (pending >= batch->limit_bytes || may_be_torn(batch, epoch))
		return add(domain, batch, (int64_t)bytes);
	batch->pending_bytes = pending;
	batch->epoch = epoch;
	return epoch;
}

uint32_t
peak_release(struct kmem_peak_word *domain, struct peak_batch *batch, uint64_t bytes)
{
	if (batch == NULL || peak_is_exact)
		return add(domain, batch, -(int64_t)bytes);

	struct kmem_peak_word seen = peak_load(domain);
	int64_t now = kmem_peak_now_signed(seen);
	int64_t pending = batch->pending_bytes - (int64_t)bytes;
	uint32_t epoch = kmem_peak_epoch(seen);

	if (now + batch->pending_bytes > (int64_t)kmem_peak_high(seen) || pending <= -batch->limit_bytes ||
	    may_be_torn(batch, epoch))
		return add(domain, batch, -(int64_t)bytes);
	batch->pending_bytes = pending;
	batch->epoch = epoch;
	return epoch;
}

struct kmem_peak_word
peak_settle(struct kmem_peak_word *domain, struct peak_batch *batch)
{
	int64_t pending = batch != NULL ? batch->pending_bytes : 0;
	struct kmem_peak_word seen = peak_load(domain);
	struct kmem_peak_word wanted;

	do {
		int64_t now = kmem_peak_now_signed(seen) + pending;
		int64_t high = (int64_t)kmem_peak_high(seen);

		wanted = now > high ? kmem_peak_pack((uint64_t)now, (uint64_t)now, kmem_peak_epoch(seen) + 1)
		                    : kmem_peak_pack((uint64_t)now, (uint64_t)high, kmem_peak_epoch(seen));
	} while (!replace(domain, &seen, wanted));
	if (batch != NULL)
		batch->pending_bytes = 0;
	return wanted;
}

/* One exchange: each event comes before it or after it, for the total as for the record that is updated with its epoch. */
bool
peak_begin_phase(struct kmem_peak_word *domain, uint64_t kept_bytes, struct kmem_peak_word *ended)
{
	struct kmem_peak_word seen = peak_load(domain);
	struct kmem_peak_word wanted;

	do {
		int64_t now = kmem_peak_now_signed(seen);

		if (kmem_domain_peak_bytes(seen) > kept_bytes)
			return false;
		wanted = kmem_peak_pack((uint64_t)now, now > 0 ? (uint64_t)now : 0, kmem_peak_epoch(seen) + 1);
	} while (!replace(domain, &seen, wanted));
	*ended = seen;
	return true;
}

void
peak_note_error(uint32_t threads)
{
	_Atomic uint32_t *error = &capture_file_header()->peak_error_bytes;
	uint32_t bytes = threads * (uint32_t)atomic_load_explicit(&most_limit, memory_order_relaxed);
	uint32_t seen = atomic_load_explicit(error, memory_order_relaxed);

	/* relaxed: a bound that only grows */
	while (threads > 1 && !peak_is_exact && seen < bytes &&
	       !atomic_compare_exchange_weak_explicit(error, &seen, bytes, memory_order_relaxed, memory_order_relaxed))
		;
}

void
peak_apply_shared(struct kmem_peak_word *site, int64_t delta, uint32_t epoch)
{
	struct kmem_peak_word seen = peak_load(site);
	struct kmem_peak_word wanted;

	do
		wanted = peak_word_after(seen, delta, epoch);
	while (!replace(site, &seen, wanted));
}
