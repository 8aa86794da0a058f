/*
 * peak.c - do P1 and P2 hold at the end, whatever order eight threads' events arrive in?
 *
 * There is no acquire and no release in shim/tables/peak.c: the word is the whole message. What is tested is the compare-and-swap.
 * Proven by replacing it with two plain stores: reported in three of three runs.
 */
#include "stress.h"

#include "kmem_words.h"
#include "tables/peak.h"

#define SITES 16
#define EVENTS 40000
#define HELD_MAX 64

static struct kmem_peak_word domain;
static struct kmem_peak_word sites[SITES];

static void
work(unsigned thread, uint64_t *random)
{
	struct {
		unsigned site;
		uint64_t bytes;
	} held[HELD_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < EVENTS; i++) {
		if (count == 0 || (count < HELD_MAX && random_below(random, 2) == 0)) {
			uint64_t bytes = random_below(random, 1 << 20);
			unsigned site = (unsigned)random_below(random, SITES);
			uint32_t epoch = peak_gain(&domain, NULL, bytes);

			stress_yield(random); // late arrivals
			peak_apply_shared(&sites[site], (int64_t)bytes, epoch);
			held[count].site = site;
			held[count++].bytes = bytes;
		} else {
			unsigned which = (unsigned)random_below(random, count);
			uint32_t epoch = peak_release(&domain, NULL, held[which].bytes);

			stress_yield(random);
			peak_apply_shared(&sites[held[which].site], -(int64_t)held[which].bytes, epoch);
			held[which] = held[--count];
		}
	}
}

int
main(void)
{
	uint64_t now = 0;
	uint64_t peak = 0;

	stress_run(STRESS_THREADS, work, random_seed());
	for (unsigned i = 0; i < SITES; i++) {
		now += kmem_peak_now(sites[i]);
		peak += kmem_site_peak_bytes(domain, sites[i]);
	}
	CHECK(now == kmem_peak_now(domain));           // P1
	CHECK(peak == kmem_domain_peak_bytes(domain)); // P2
	CHECK(kmem_peak_epoch(domain) > 0);
	return 0;
}
