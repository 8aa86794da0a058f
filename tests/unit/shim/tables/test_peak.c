/*
 * test_peak.c - is the composition of the peak the one that a ledger of the whole history finds?
 */
#include "unit.h"

#include "random.h"
#include "tables/peak.h"

#define SITES 8
#define EVENTS_MAX 160
#define TRACES 20000

struct update {
	unsigned site;
	int64_t delta;
	uint32_t epoch;
};

/* The history in its true order, and what it says about the peak. */
struct ledger {
	uint64_t live[SITES];
	uint64_t at_peak[SITES];
	uint64_t total;
	uint64_t peak;
};

static void
ledger_note(struct ledger *ledger)
{
	if (ledger->total <= ledger->peak) // P3: the first of equal maxima
		return;
	ledger->peak = ledger->total;
	memcpy(ledger->at_peak, ledger->live, sizeof(ledger->live));
}

static uint64_t
site_peak(struct kmem_peak_word domain, struct kmem_peak_word site)
{
	return kmem_site_peak_bytes(domain, site);
}

/* One random history; the updates of the sites arrive shuffled, within windows of the size given. */
static void
run_trace(uint64_t *random, size_t window)
{
	struct kmem_peak_word domain = { 0 };
	struct kmem_peak_word sites[SITES] = { 0 };
	struct update updates[2 * EVENTS_MAX];
	struct ledger ledger = { 0 };
	size_t count = 0;
	size_t events = 1 + random_below(random, EVENTS_MAX);
	uint64_t scale = random_below(random, 4) == 0 ? UINT64_C(1) << 38 : 4; // few sizes: many equal maxima

	for (size_t i = 0; i < events; i++) {
		unsigned site = (unsigned)random_below(random, SITES);
		unsigned other = (unsigned)random_below(random, SITES);
		uint64_t bytes = random_below(random, scale);
		unsigned kind = (unsigned)random_below(random, 5);
		uint32_t epoch;

		if (kind < 2) {
			epoch = peak_gain(&domain, NULL, bytes);
			updates[count++] = (struct update){ site, (int64_t)bytes, epoch };
			ledger.live[site] += bytes;
			ledger.total += bytes;
		} else if (kind < 4) {
			bytes = bytes < ledger.live[site] ? bytes : ledger.live[site];
			epoch = peak_release(&domain, NULL, bytes);
			updates[count++] = (struct update){ site, -(int64_t)bytes, epoch };
			ledger.live[site] -= bytes;
			ledger.total -= bytes;
		} else { // realloc: one event of the total, two sites
			uint64_t old = ledger.live[other] < scale ? ledger.live[other] : scale;

			if (bytes > old)
				epoch = peak_gain(&domain, NULL, bytes - old);
			else
				epoch = peak_release(&domain, NULL, old - bytes);
			updates[count++] = (struct update){ site, (int64_t)bytes, epoch };
			updates[count++] = (struct update){ other, -(int64_t)old, epoch };
			ledger.live[site] += bytes;
			ledger.live[other] -= old;
			ledger.total += bytes - old;
		}
		ledger_note(&ledger);
	}
	for (size_t i = 0; i + 1 < count; i++) {
		size_t left = count - i;
		size_t with = i + random_below(random, left < window ? left : window);
		struct update swapped = updates[i];

		updates[i] = updates[with];
		updates[with] = swapped;
	}
	for (size_t i = 0; i < count; i++)
		peak_apply_shared(&sites[updates[i].site], updates[i].delta, updates[i].epoch);

	uint64_t sum = 0;
	assert_int_equal(kmem_peak_now(domain), ledger.total);
	assert_int_equal(kmem_domain_peak_bytes(domain), ledger.peak);
	for (unsigned i = 0; i < SITES; i++) {
		assert_int_equal(kmem_peak_now(sites[i]), ledger.live[i]);
		assert_int_equal(site_peak(domain, sites[i]), ledger.at_peak[i]);
		sum += site_peak(domain, sites[i]);
	}
	assert_int_equal(sum, ledger.peak);
}

TEST(P1_P2_P3_hold_for_random_histories_in_any_order_of_arrival)
{
	uint64_t random = random_seed();

	for (unsigned i = 0; i < TRACES; i++)
		run_trace(&random, i % 3 == 0 ? 1 : i % 3 == 1 ? 7 : EVENTS_MAX * 2);
}

TEST(P3_the_first_of_equal_maxima_is_kept)
{
	struct kmem_peak_word domain = { 0 };
	struct kmem_peak_word first = { 0 };
	struct kmem_peak_word second = { 0 };

	peak_apply_shared(&first, 100, peak_gain(&domain, NULL, 100));
	peak_apply_shared(&first, -100, peak_release(&domain, NULL, 100));
	peak_apply_shared(&second, 100, peak_gain(&domain, NULL, 100));
	assert_int_equal(kmem_domain_peak_bytes(domain), 100);
	assert_int_equal(kmem_site_peak_bytes(domain, first), 100);
	assert_int_equal(kmem_site_peak_bytes(domain, second), 0);
	peak_apply_shared(&second, 1, peak_gain(&domain, NULL, 1)); // one byte more: a new maximum
	assert_int_equal(kmem_site_peak_bytes(domain, first), 0);
	assert_int_equal(kmem_site_peak_bytes(domain, second), 101);
}

TEST(a_late_arrival_counts_on_its_own_side_of_the_edge)
{
	struct kmem_peak_word domain = { 0 };
	struct kmem_peak_word site = { 0 };
	uint32_t born = peak_gain(&domain, NULL, 10);
	uint32_t died = peak_release(&domain, NULL, 10);

	assert_int_equal(died, born + 1);
	peak_apply_shared(&site, -10, died); // the release is booked first
	peak_apply_shared(&site, 10, born);
	assert_int_equal(kmem_peak_now(site), 0);
	assert_int_equal(kmem_site_peak_bytes(domain, site), 10);
}

/* As tracker_fast.c does it, or as tracker.c does. */
static void
book(struct kmem_peak_word *domain, struct peak_batch *batch, struct kmem_peak_word *record, int64_t change,
     bool tries_again)
{
	bool is_gain = change > 0;
	uint64_t bytes = (uint64_t)(is_gain ? change : -change);

	if (tries_again &&
	    (is_gain ? peak_gain_fast(domain, batch, record, bytes) : peak_release_fast(domain, batch, record, bytes)))
		return;
	peak_apply_own(record, change, is_gain ? peak_gain(domain, batch, bytes) : peak_release(domain, batch, bytes));
}

/* A block of one site that becomes one of the other, or of the same: one event for the total. */
static void
book_resize(struct kmem_peak_word *domain, struct peak_batch *batch, struct kmem_peak_word *old_record,
            uint64_t old_bytes, struct kmem_peak_word *record, uint64_t bytes, bool tries_again)
{
	if (tries_again && peak_resize_fast(domain, batch, old_record, old_bytes, record, bytes))
		return;
	uint32_t epoch = bytes > old_bytes ? peak_gain(domain, batch, bytes - old_bytes)
	                                   : peak_release(domain, batch, old_bytes - bytes);
	peak_apply_own(record, (int64_t)bytes, epoch);
	peak_apply_own(old_record, -(int64_t)old_bytes, epoch);
}

/*
 * Threads that hold small events back, in one order: what is live is exact; the peak is exact with one thread, and may be off by
 * what the others held back with several.
 */
static void
run_batched(uint64_t *random, unsigned threads)
{
	enum { THREADS_MAX = 4 };
	struct kmem_peak_word domain = { 0 };
	struct kmem_peak_word records[THREADS_MAX][SITES] = { 0 };
	struct peak_batch batch[THREADS_MAX] = { 0 };
	struct ledger ledger = { 0 };
	size_t events = 1 + random_below(random, 2000);
	uint64_t bound = 0;

	for (size_t i = 0; i < events; i++) {
		unsigned thread = (unsigned)random_below(random, threads);
		unsigned site = (unsigned)random_below(random, SITES);
		uint64_t bytes = random_below(random, random_below(random, 50) == 0 ? 1 << 26 : 3000);
		bool is_gain = random_below(random, 100) < 30 + i * 40 / events;

		if (!is_gain)
			bytes = bytes < ledger.live[site] ? bytes : ledger.live[site];
		if (!is_gain && random_below(random, 2) == 0) {
			unsigned other = (unsigned)random_below(random, SITES);
			uint64_t fresh_bytes = random_below(random, 3000);

			book_resize(&domain, &batch[thread], &records[thread][site], bytes, &records[thread][other], fresh_bytes,
			            random_below(random, 4) != 0);
			ledger.live[other] += fresh_bytes;
			ledger.total += fresh_bytes;
		} else {
			book(&domain, &batch[thread], &records[thread][site], is_gain ? (int64_t)bytes : -(int64_t)bytes,
			     random_below(random, 4) != 0);
		}
		ledger.live[site] += is_gain ? bytes : -bytes;
		ledger.total += is_gain ? bytes : -bytes;
		ledger_note(&ledger);
		if (threads > 1)
			bound = (uint64_t)peak_batch_limit((int64_t)ledger.peak) * threads;
	}

	uint64_t live = 0;
	uint64_t at_peak = 0;
	int64_t pending = 0;
	for (unsigned thread = 0; thread < threads; thread++) {
		pending += batch[thread].pending_bytes;
		for (unsigned i = 0; i < SITES; i++)
			live += kmem_peak_now(records[thread][i]);
	}
	live &= KMEM_PEAK_BYTES_MASK;
	assert_int_equal(live, ledger.total);
	assert_int_equal(kmem_peak_now_signed(domain) + pending, (int64_t)ledger.total); // P1
	domain = kmem_peak_pack(live, kmem_peak_high(domain), kmem_peak_epoch(domain));  // as a reader does
	for (unsigned i = 0; i < SITES; i++) {
		uint64_t sum = 0;

		for (unsigned thread = 0; thread < threads; thread++)
			sum += kmem_site_peak_bytes(domain, records[thread][i]);
		at_peak += sum & KMEM_PEAK_BYTES_MASK;
		if (threads == 1)
			assert_int_equal(sum & KMEM_PEAK_BYTES_MASK, ledger.at_peak[i]);
	}
	assert_in_range(kmem_domain_peak_bytes(domain), ledger.peak - (bound < ledger.peak ? bound : ledger.peak),
	                ledger.peak + bound);
	at_peak &= KMEM_PEAK_BYTES_MASK;
	assert_in_range(at_peak, ledger.peak - (2 * bound < ledger.peak ? 2 * bound : ledger.peak),
	                ledger.peak + 2 * bound);
}

TEST(P1_P2_batches_are_exact_with_one_thread_and_bounded_with_several)
{
	uint64_t random = random_seed();

	for (unsigned i = 0; i < 3000; i++)
		run_batched(&random, 1 + i % 4);
}

TEST(P2_exact_adds_every_event_of_every_thread_at_once)
{
	struct kmem_peak_word domain = { 0 };
	struct kmem_peak_word record = { 0 };
	struct peak_batch batch[2] = { 0 };

	peak_is_exact = true;
	peak_gain(&domain, &batch[0], 1 << 20);
	peak_gain(&domain, &batch[1], 10);
	assert_int_equal(kmem_peak_now(domain), (1 << 20) + 10);
	peak_release(&domain, &batch[0], 5);
	peak_gain(&domain, &batch[0], 6);
	assert_int_equal(kmem_domain_peak_bytes(domain), (1 << 20) + 11);
	assert_false(peak_gain_fast(&domain, &batch[0], &record, 0));
	assert_false(peak_release_fast(&domain, &batch[0], &record, 0));
	peak_is_exact = false;
	peak_gain(&domain, &batch[0], 1);   // added: how much may be held back is known from the last time
	peak_gain(&domain, &batch[0], 100); // held back
	assert_int_equal(kmem_domain_peak_bytes(domain), (1 << 20) + 12);
	assert_int_equal(batch[0].pending_bytes, 100);
}

TEST(words_keep_48_bits_of_bytes_and_32_of_epoch)
{
	static const struct {
		uint64_t now;
		uint64_t high;
		uint32_t epoch;
	} cases[] = {
		{ 0, 0, 0 },
		{ 1, 2, 3 },
		{ KMEM_PEAK_BYTES_MASK, 0, 0xffff },
		{ 0, KMEM_PEAK_BYTES_MASK, 0xffff0000 },
		{ KMEM_PEAK_BYTES_MASK, KMEM_PEAK_BYTES_MASK, UINT32_MAX },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct kmem_peak_word word = kmem_peak_pack(cases[i].now, cases[i].high, cases[i].epoch);

		assert_int_equal(kmem_peak_now(word), cases[i].now);
		assert_int_equal(kmem_peak_high(word), cases[i].high);
		assert_int_equal(kmem_peak_epoch(word), cases[i].epoch);
	}
}

RUN_TESTS(NULL, NULL)
