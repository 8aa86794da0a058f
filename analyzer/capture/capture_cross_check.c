/*
 * capture_cross_check.c - do the counters of a capture without a seal agree with each other (see capture_cross_check.h)?
 *
 * Counters change with every event and cannot carry checksums while a program runs. Most are said twice, though:
 *
 *   a site       what it holds = requested - released (S3); stack, domain, thread and age have a check byte (S2)
 *   a domain     what it holds = the sum of its sites (P1 of shim/tables/peak.c); its peak = the sum of what its sites held then (P2)
 *   generations  a site and its block name each other
 *   the clock    follows from its measure
 *   phases       what a domain held at the peak of earlier phases = the sum of what its sites held then (N2 of shim/moments/phases.c)
 *
 * Not said twice, so that damage goes unseen: a site's count of requests, live blocks by generation as far as they are no more
 * than the site has, what a site held at a peak as far as the sum allows it, losses, and what is less than CAPTURE_CROSS_CHECK_BYTES.
 * tests/mutate/mutate.c lists them by field and fails for any other.
 */
#include "capture/capture_cross_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "capture/capture_copy.h"
#include "capture/capture_held.h"
#include "capture/capture_phase.h"
#include "kmem_words.h"

#define SLOTS_MAX (UINT16_MAX + 1)
#define MOST_BYTES (UINT64_C(1) << 60)        // of all that a program may have allocated
#define MOST_SLACK_BYTES (UINT64_C(64) << 20) // that threads hold back
#define MOST_EMPTY_COUNT (UINT64_C(1) << 28)  // requests of no byte
#define RECORDS_PER_REQUEST 2                 // realloc changes two sites

struct domain_sums {
	uint64_t now_bytes; // both modulo 2^48
	uint64_t peak_bytes;
};

struct sums {
	struct domain_sums domains[KMEM_DOMAINS_MAX];
	unsigned char *has_slot; // by thread slot
	unsigned slot_count;
	size_t torn_count; // requested - released is not what is held
	size_t torn_first;
	int64_t torn_most_bytes;
	size_t unfit_count; // the check byte is another
	size_t unfit_first;
};

static int64_t
of_48_bits(uint64_t bytes)
{
	return (int64_t)(bytes << 16) >> 16;
}

/* How far it is from 0. */
static uint64_t
size_of(int64_t bytes)
{
	return bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
}

static int64_t
torn_bytes(const struct kmem_site *site)
{
	return (int64_t)(COPY_OF(site->allocated_bytes) - COPY_OF(site->freed_bytes) -
	                 (uint64_t)kmem_peak_now_signed(site->peak));
}

static void
add_site(const struct capture *capture, size_t index, struct sums *sums)
{
	const struct kmem_site *site = capture_site(capture, index);
	uint32_t check = COPY_OF(site->next_same_stack) & ~KMEM_TWIN_MASK;
	uint32_t stack = COPY_OF(site->stack);
	int64_t torn = torn_bytes(site);

	if (stack != 0 && check != kmem_site_check(stack, site->slot, site->domain, site->first_generation) &&
	    sums->unfit_count++ == 0)
		sums->unfit_first = index;
	if (torn != 0 && sums->torn_count++ == 0)
		sums->torn_first = index;
	if (size_of(torn) > size_of(sums->torn_most_bytes)) {
		sums->torn_most_bytes = torn;
		sums->torn_first = index;
	}
	if (stack != 0 && sums->has_slot[site->slot] == 0) {
		sums->has_slot[site->slot] = 1;
		sums->slot_count++;
	}
	if (site->domain >= KMEM_DOMAINS_MAX)
		return;
	sums->domains[site->domain].now_bytes += kmem_peak_now(site->peak);
}

/* In the place of what the domain's word says is live: what its sites hold (model_domains.c). */
static struct kmem_peak_word
domain_word(const struct capture *capture, unsigned domain, uint64_t sites_bytes)
{
	struct kmem_peak_word stored = capture_domain(capture, domain)->peak;
	int64_t now_bytes = of_48_bits(sites_bytes);

	return kmem_peak_pack(now_bytes > 0 ? (uint64_t)now_bytes : 0, kmem_peak_high(stored), kmem_peak_epoch(stored));
}

static void
add_peaks(const struct capture *capture, struct sums *sums)
{
	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site(capture, i);
		struct domain_sums *sum = &sums->domains[site->domain % KMEM_DOMAINS_MAX];

		if (site->domain < KMEM_DOMAINS_MAX)
			sum->peak_bytes += kmem_site_peak_bytes(domain_word(capture, site->domain, sum->now_bytes), site->peak);
	}
}

static void
tell_sites(struct capture *capture, const struct sums *sums)
{
	if (sums->unfit_count != 0)
		capture_damaged(
			capture,
			"section \"sites\": the check of stack, domain, thread and age is wrong in %zu record%s, first in record %zu: the file is damaged",
			sums->unfit_count, UNITS_S(sums->unfit_count), sums->unfit_first);
	if (sums->torn_count > sums->slot_count * RECORDS_PER_REQUEST ||
	    size_of(sums->torn_most_bytes) >= CAPTURE_CROSS_CHECK_BYTES)
		capture_damaged(
			capture,
			"section \"sites\": held bytes are not requested minus released bytes in %zu record%s, in record %zu by %" PRId64
			" bytes: a request was in progress, or the file is damaged",
			sums->torn_count, UNITS_S(sums->torn_count), sums->torn_first, sums->torn_most_bytes);
}

static void
tell_domain(struct capture *capture, unsigned domain, const struct domain_sums *sum, uint64_t most_bytes)
{
	struct kmem_peak_word word = domain_word(capture, domain, sum->now_bytes);
	int64_t now_bytes = kmem_peak_now_signed(capture_domain(capture, domain)->peak);
	int64_t peak_bytes = (int64_t)kmem_domain_peak_bytes(word);
	int64_t sites_now_bytes = of_48_bits(sum->now_bytes);
	int64_t sites_peak_bytes = of_48_bits(sum->peak_bytes);

	if (size_of(sites_now_bytes - now_bytes) > most_bytes)
		capture_damaged(capture,
		                "section \"domains\": domain %u holds %" PRId64 " bytes, its sites %" PRId64
		                ": a request was in progress, or the file is damaged",
		                domain, now_bytes, sites_now_bytes);
	else if (size_of(peak_bytes - sites_peak_bytes) > most_bytes)
		capture_damaged(capture,
		                "section \"domains\": domain %u held %" PRId64 " bytes at its peak, its sites %" PRId64
		                ": a request was in progress, or the file is damaged",
		                domain, peak_bytes, sites_peak_bytes);
}

/* The clock is moved behind its measure: by another thread, later. */
static void
tell_clock(struct capture *capture)
{
	uint64_t measure = COPY_OF(capture->header->generation_clock_bytes);
	uint64_t clock = COPY_OF(capture->header->generation_clock);
	uint8_t wanted = kmem_clock_at(measure);

	if (clock > wanted || clock + 1 < wanted)
		capture_damaged(capture,
		                "section \"head\": the clock of generations says %" PRIu64 ", at %" PRIu64 " it says %u", clock,
		                measure, wanted);
}

static bool
has_counted(const struct capture *capture, const struct kmem_generations *block)
{
	for (unsigned i = 0; i < capture_generation_buckets(capture); i++) {
		if (capture_generation_live(capture, block, i) != 0)
			return true;
	}
	return false;
}

/* That a site names a wrong block is seen when it is read; here, that it names none any more. */
static void
tell_generations(struct capture *capture)
{
	const struct capture_section *section = &capture->sections[KMEM_SECTION_GENERATIONS];
	size_t site_count = capture_site_count(capture);
	size_t lost_count = 0;

	for (size_t i = 0; i < section->size_bytes / sizeof(struct kmem_generations); i++) {
		const struct kmem_generations *block = (const struct kmem_generations *)(const void *)section->bytes + i;
		uint32_t site = COPY_OF(block->site);
		uint32_t births = COPY_OF(block->births);

		if (!has_counted(capture, block))
			continue;
		lost_count += site == 0 || site > site_count || COPY_OF(capture_site(capture, site - 1)->generations) != i + 1;
		if ((births & 0xff) > capture_generation_buckets(capture) || (births >> 8 & 0xff) > (births >> 16 & 0xff) ||
		    (births >> 16 & 0xff) > COPY_OF(capture->header->generation_clock))
			capture_damaged(
				capture,
				"section \"generations\": block %zu has births of %u in bucket %u, the latest at %u: that is "
				"not possible",
				i, births >> 8 & 0xff, births & 0xff, births >> 16 & 0xff);
	}
	if (lost_count != 0)
		capture_damaged(capture, "section \"generations\": %zu block%s without a site", lost_count,
		                UNITS_S(lost_count));
}

/* While a new record is in force and the domain's figure is not, the domain's word says the same as the record. */
static void
tell_phases(struct capture *capture, uint64_t most_bytes)
{
	const struct kmem_kept_peak *kept = capture_kept_peak(capture,
	                                                      true); // what is wrong with it is told when it is used
	uint64_t sums[KMEM_DOMAINS_MAX] = { 0 };

	if (kept == NULL)
		return;
	for (uint32_t i = 0; i < kept->site_count; i++) {
		const struct kmem_site *site = capture_site(capture, kept->sites[i].site - 1);

		sums[site->domain % KMEM_DOMAINS_MAX] += kept->sites[i].peak_bytes;
	}
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		uint64_t kept_bytes = COPY_OF(capture_domain(capture, i)->kept_peak_bytes);
		uint64_t word_bytes = kmem_domain_peak_bytes(capture_domain(capture, i)->peak);

		if (size_of(of_48_bits(sums[i]) - (int64_t)kept_bytes) > most_bytes &&
		    size_of(of_48_bits(sums[i]) - (int64_t)word_bytes) > most_bytes)
			capture_damaged(capture,
			                "section \"domains\": domain %u held %" PRIu64
			                " bytes at the peak of earlier phases, its sites %" PRId64 ": the file is damaged",
			                i, kept_bytes, of_48_bits(sums[i]));
	}
}

void
capture_cross_check(struct capture *capture)
{
	OWNED struct sums *sums = memory_zeroed(1, sizeof(*sums));

	sums->has_slot = memory_zeroed(SLOTS_MAX, 1);
	for (size_t i = 0; i < capture_site_count(capture); i++)
		add_site(capture, i, sums);
	add_peaks(capture, sums);

	size_t told_count = capture->damage_count + (sums->unfit_count != 0);
	size_t most_count = capture->was_closed ? 0 : sums->slot_count * RECORDS_PER_REQUEST;

	tell_sites(capture, sums);
	/* Where an event was lost, the domain may have seen it and no site. */
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX && COPY_OF(capture->header->losses[KMEM_LOST_EVENTS]) == 0; i++)
		tell_domain(capture, i, &sums->domains[i], (sums->slot_count + UINT64_C(1)) * CAPTURE_CROSS_CHECK_BYTES);
	if (sums->torn_count <= most_count && capture->damage_count - told_count <= most_count)
		capture->under_way_count = capture->damage_count - told_count;
	tell_clock(capture);
	tell_generations(capture);
	if (COPY_OF(capture->header->losses[KMEM_LOST_EVENTS]) == 0)
		tell_phases(capture, (sums->slot_count + UINT64_C(1)) * CAPTURE_CROSS_CHECK_BYTES);
	free(sums->has_slot);
}

/* ---- salvage ---- */

/* The recorder counts allocated volume apart from the sites; address space is not in it. */
uint64_t
capture_most_bytes(const struct capture *capture, unsigned domain)
{
	uint64_t volume_bytes = COPY_OF(capture->header->volume_bytes);
	uint64_t clock = COPY_OF(capture->header->generation_clock);
	bool is_counted = domain != KMEM_DOMAIN_RESERVED && domain != KMEM_DOMAIN_FILE;
	bool is_known = clock != 0 && clock <= KMEM_CLOCK_MAX && volume_bytes < MOST_BYTES / 2 &&
	                volume_bytes >= kmem_rough_bytes(COPY_OF(capture->header->volume_at[clock]));

	return is_counted && is_known ? volume_bytes * 2 + MOST_SLACK_BYTES : MOST_BYTES;
}

/* What a request under way explains is no contradiction. */
static bool
is_impossible(const struct capture *capture, const struct kmem_site *site, bool are_many_torn)
{
	uint64_t most_bytes = capture_most_bytes(capture, site->domain);
	uint64_t torn = size_of(torn_bytes(site));
	uint32_t stack = COPY_OF(site->stack);
	uint32_t check = COPY_OF(site->next_same_stack) & ~KMEM_TWIN_MASK;

	return (stack != 0 && check != kmem_site_check(stack, site->slot, site->domain, site->first_generation)) ||
	       (torn >= CAPTURE_CROSS_CHECK_BYTES && (are_many_torn || torn > most_bytes)) ||
	       COPY_OF(site->allocated_bytes) > most_bytes || COPY_OF(site->freed_bytes) > most_bytes ||
	       COPY_OF(site->allocated_count) > most_bytes + MOST_EMPTY_COUNT ||
	       COPY_OF(site->freed_count) > most_bytes + MOST_EMPTY_COUNT;
}

void
capture_drop_bad(struct capture *capture)
{
	size_t torn_count = 0;
	size_t slots = 0;
	unsigned char *has_slot = memory_zeroed(SLOTS_MAX, 1);

	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site(capture, i);

		slots += COPY_OF(site->stack) != 0 && has_slot[site->slot] == 0;
		has_slot[site->slot] = 1;
		torn_count += size_of(torn_bytes(site)) >= CAPTURE_CROSS_CHECK_BYTES;
	}
	free(has_slot);
	for (size_t i = 0; i < capture_site_count(capture); i++) {
		struct kmem_site *site = capture_site_copy(capture, i);

		if (!is_impossible(capture, site, torn_count > slots * RECORDS_PER_REQUEST))
			continue;
		memset(site, 0, sizeof(*site));
		capture->sites_left_out++;
	}
	if (capture->sites_left_out != 0)
		capture_damaged(capture, "section \"sites\": %zu record%s or the totals: left out", capture->sites_left_out,
		                capture->sites_left_out == 1 ? " contradicts itself" : "s contradict themselves");
}
