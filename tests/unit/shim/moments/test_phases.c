/*
 * test_phases.c - does each phase have its own peak, and is the peak of the process never lost, whoever is killed when?
 */
#include "unit.h"

#include "base/capture_life.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "random.h"
#include "moments/phases.h"
#include "tables/peak.h"
#include "unwind/each_instruction.h"

#define SITES 12
#define OTHER 11 // the one of another domain

static struct kmem_site *sites[SITES];
static struct phases_row rows[KMEM_DOMAINS_MAX];

SETUP(start_empty)
{
	uint32_t index;

	capture_file_forked();
	settings.capture_max = 0;
	for (unsigned i = 0; i < SITES; i++) {
		sites[i] = capture_file_append(KMEM_SECTION_SITES, sizeof(*sites[i]), &index);
		assert_non_null(sites[i]);
		sites[i]->domain = i == OTHER ? KMEM_DOMAIN_MMAP : KMEM_DOMAIN_HEAP;
		sites[i]->slot = 1;
		sites[i]->stack = 1;
	}
}

static struct kmem_domain_row *
row_of(unsigned site)
{
	return capture_file_domain(sites[site]->domain);
}

static void
change(unsigned site, int64_t bytes)
{
	struct kmem_peak_word *word = &row_of(site)->peak;
	uint32_t epoch = bytes > 0 ? peak_gain(word, NULL, (uint64_t)bytes) : peak_release(word, NULL, (uint64_t)-bytes);

	peak_apply_own(&sites[site]->peak, bytes, epoch);
}

static const struct phases_row *
next_phase(unsigned domain)
{
	assert_true(phases_next(NULL, rows));
	return &rows[domain];
}

/* As a reader finds it: what is kept where that is the higher one, else the words. */
static const struct kmem_kept_peak *
record_in_force(void)
{
	uint64_t word = capture_file_timeline()->kept_peak;

	return word != 0 ? capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)word) : NULL;
}

static bool
is_kept(const struct kmem_domain_row *row)
{
	return row->kept_peak_bytes != 0 && row->kept_peak_bytes >= kmem_domain_peak_bytes(row->peak);
}

static uint64_t
share(unsigned site)
{
	const struct kmem_kept_peak *record = record_in_force();

	if (!is_kept(row_of(site)))
		return kmem_site_peak_bytes(row_of(site)->peak, sites[site]->peak);
	for (uint32_t i = 0; i < record->site_count; i++) {
		if (record->sites[i].site == site + 1)
			return record->sites[i].peak_bytes;
	}
	return 0;
}

static uint64_t
phase_share(unsigned site)
{
	return kmem_site_peak_bytes(row_of(site)->peak, sites[site]->peak);
}

static bool
record_is_whole(void)
{
	const struct kmem_kept_peak *record = record_in_force();

	return record == NULL || (record->record.type == KMEM_RECORD_KEPT_PEAK &&
	                          record->record.checksum == kmem_record_checksum(&record->record, 0));
}

TEST(a_phase_has_its_own_peak_and_its_own_ranking)
{
	change(0, 1000);
	change(1, 500);
	change(0, -1000);
	assert_int_equal(next_phase(KMEM_DOMAIN_HEAP)->peak_bytes, 1500);
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].live_bytes, 500);
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].is_begun, 1);
	change(2, 300);
	change(2, -300);
	change(3, 200);
	assert_int_equal(phase_share(1), 500); // held before, and at its peak
	assert_int_equal(phase_share(2), 300);
	assert_int_equal(phase_share(3), 0);
	assert_int_equal(next_phase(KMEM_DOMAIN_HEAP)->peak_bytes, 800);
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].live_bytes, 700);
	change(3, -200); // a phase that only goes down
	assert_int_equal(phase_share(3), 200);
	assert_int_equal(next_phase(KMEM_DOMAIN_HEAP)->peak_bytes, 700);
	assert_int_equal(next_phase(KMEM_DOMAIN_HEAP)->peak_bytes, 500); // nothing happened
}

TEST(N1_N2_the_peak_of_the_process_and_its_ranking_stay)
{
	change(0, 1000);
	change(OTHER, 70);
	change(0, -900);
	for (unsigned i = 0; i < 3; i++) {
		(void)next_phase(KMEM_DOMAIN_HEAP);
		change(1, 600);
		change(1, -600);
		assert_int_equal(row_of(0)->kept_peak_bytes, 1000);
		assert_int_equal(share(0), 1000);
		assert_int_equal(share(1), 0);
		assert_int_equal(share(OTHER), 70);
	}
	change(2, 2000); // now this is the highest: the words say so
	assert_int_equal(share(2), 2000);
	assert_int_equal(share(0), 100);
	change(2, -2000);
	(void)next_phase(KMEM_DOMAIN_HEAP);
	assert_int_equal(row_of(0)->kept_peak_bytes, 2100);
	assert_int_equal(share(2), 2000);
	assert_int_equal(share(0), 100);
	assert_int_equal(share(OTHER), 70); // its domain was not raised: written on
}

/* The whole history, with and without phases. */
TEST(N1_N2_hold_for_random_histories)
{
	uint64_t random = random_seed();

	for (unsigned trace = 0; trace < 300; trace++) {
		uint64_t live[SITES] = { 0 };
		uint64_t at_peak[SITES] = { 0 };
		uint64_t at_phase_peak[SITES] = { 0 };
		uint64_t total = 0, peak = 0, phase_peak = 0;

		start_empty(NULL);
		for (unsigned event = 0; event < 300; event++) {
			unsigned site = (unsigned)random_below(&random, OTHER);
			uint64_t bytes = 1 + random_below(&random, 50);

			if (random_below(&random, 25) == 0) {
				assert_int_equal(next_phase(KMEM_DOMAIN_HEAP)->peak_bytes, phase_peak);
				assert_int_equal(rows[KMEM_DOMAIN_HEAP].live_bytes, total);
				phase_peak = total;
				memcpy(at_phase_peak, live, sizeof(live));
			} else if (random_below(&random, 2) == 0 || live[site] == 0) {
				change(site, (int64_t)bytes);
				live[site] += bytes;
				total += bytes;
			} else {
				bytes = bytes < live[site] ? bytes : live[site];
				change(site, -(int64_t)bytes);
				live[site] -= bytes;
				total -= bytes;
			}
			if (total > peak) {
				peak = total;
				memcpy(at_peak, live, sizeof(live));
			}
			if (total > phase_peak) {
				phase_peak = total;
				memcpy(at_phase_peak, live, sizeof(live));
			}
			assert_int_equal(phases_peak_bytes(row_of(0)), peak);
			for (unsigned i = 0; i < OTHER; i++) {
				assert_int_equal(share(i), at_peak[i]);
				assert_int_equal(phase_share(i), at_phase_peak[i]);
			}
		}
	}
}

static struct {
	unsigned looks;
	unsigned wrong;
	unsigned kept;
	volatile bool is_over;
} seen;

static bool
look(void)
{
	seen.looks++;
	seen.wrong += !record_is_whole() || phases_peak_bytes(row_of(0)) != 3000 || share(0) != 2000 || share(1) != 1000 ||
	              share(2) != 0 || share(OTHER) != 70;
	seen.kept += is_kept(row_of(0));
	return !seen.is_over;
}

TEST(N2_killed_at_any_instruction_the_peak_of_the_process_is_there)
{
	change(OTHER, 70);
	for (unsigned i = 0; i < 3; i++) { // both records have been used
		change(2, 900 + i);
		change(2, -900 - (int64_t)i);
		(void)next_phase(KMEM_DOMAIN_HEAP);
	}
	change(0, 2000);
	change(1, 1000);
	memset(&seen, 0, sizeof(seen));
	each_instruction(look);
	assert_true(phases_next(NULL, rows));
	seen.is_over = true;
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].peak_bytes, 3000);
	assert_int_equal(seen.wrong, 0);
	assert_true(seen.kept > 10 && seen.looks > seen.kept + 1000); // it was looked at before and after
}

TEST(N3_the_capture_does_not_grow_with_the_number_of_phases)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < 5000; i++) {
		change(i % OTHER, 1000); // each is the highest so far
		(void)next_phase(KMEM_DOMAIN_HEAP);
		if (i == 2)
			used = capture_file_header()->used_bytes[KMEM_SECTION_RECORDS];
	}
	assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_RECORDS], used);
	assert_int_equal(row_of(0)->kept_peak_bytes, 5000000);
}

TEST(N4_without_room_no_phase_begins_and_no_peak_is_lost)
{
	settings.capture_max = 1 << 10;
	change(0, 1000);
	change(0, -1000);
	change(1, 10);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(next_phase(KMEM_DOMAIN_HEAP)->is_begun, 0);
		assert_int_equal(rows[KMEM_DOMAIN_HEAP].peak_bytes, 1000);
		assert_int_equal(rows[KMEM_DOMAIN_HEAP].live_bytes, 10);
		assert_int_equal(rows[KMEM_DOMAIN_MMAP].is_begun, 1); // nothing was ever there
	}
	assert_int_equal(share(0), 1000);
	assert_int_equal(share(1), 0);
}

/* Of a thread that adds small events up first. */
TEST(what_the_calling_thread_holds_back_is_in_its_phase)
{
	struct peak_batch batch = { .limit_bytes = PEAK_BATCH_LEAST };

	peak_apply_own(&sites[0]->peak, 100, peak_gain(&row_of(0)->peak, &batch, 100));
	assert_int_equal(batch.pending_bytes, 100);
	phases_look(&batch, rows);
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].live_bytes, 100);
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].peak_bytes, 100);
	assert_int_equal(batch.pending_bytes, 100); // nothing was changed
	assert_true(phases_next(&batch, rows));
	assert_int_equal(batch.pending_bytes, 0);
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].live_bytes, 100);
	assert_int_equal(rows[KMEM_DOMAIN_HEAP].peak_bytes, 100);
	assert_int_equal(share(0), 100);
}

RUN_TESTS(start_empty, NULL)
