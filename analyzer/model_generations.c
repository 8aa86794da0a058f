/*
 * model_generations.c - how many of a call site's generations still have live blocks?
 *
 * Called by   model_sites.c, for the end; model_failed.c, for the moment of a refusal.
 * Safe from   one thread.
 * When failing  counts that cannot be are counted in `unlikely`.
 */
#include "model_build.h"

/* relaxed: a private copy that nobody changes */
#define COPY_OF(field) atomic_load_explicit(&(field), memory_order_relaxed)

#define REQUESTS_UNDER_WAY 64 // a birth is counted by generation first; one for each thread

void
model_generations_add(struct generation_sums *sums, const struct kmem_generations *block)
{
	uint32_t births = block != NULL ? COPY_OF(block->births) : 0;
	uint32_t count = births & 0xffff;

	if (block == NULL || count > KMEM_GENERATION_BUCKETS)
		return;
	if (count > sums->birth_generations)
		sums->birth_generations = count;
	if (births >> 16 > sums->birth_clock)
		sums->birth_clock = births >> 16;
	for (uint32_t i = 0; i < KMEM_GENERATION_BUCKETS; i++) // a thread may only have released what others made
		sums->born_alive[i] += (int32_t)COPY_OF(block->live_count[i]);
}

/* Ticks of volume at which the clock shows this: the inverse of kmem_clock_at(). A damaged clock may show anything. */
static uint64_t
ticks_at(uint64_t clock)
{
	clock = clock < 255 ? clock : 255;
	return clock < 9 ? clock - (clock != 0) : ((clock - 9) % 8 + 8) << (clock - 9) / 8;
}

/*
 * Does it still allocate? A loop that leaks in every round has done so within the latest round. Since a data set was loaded, the
 * program may have allocated as much again, and nothing there: a quarter of the volume of all its active life is enough to tell.
 * Volume, not the clock: that one runs eight times per doubling, and would wait for several times the volume.
 */
static bool
is_active(uint64_t clock, const struct generation_sums *sums)
{
	uint64_t first = ticks_at(sums->first_epoch);
	uint64_t last = ticks_at(sums->birth_clock + 1);
	uint64_t now = ticks_at(clock);

	return now <= last || now - last <= (last - first) / 4 + 1;
}

/*
 * The generations of a site, and those of them that still have live blocks. Blocks that are older than the counters make one
 * more, in front. Of a site that does not allocate any more none is recent, and all ticks since its first one are its generations:
 * else it would look like one that accumulates.
 */
struct generation_counts
model_generations_count(const struct generation_sums *sums, uint64_t clock, uint64_t live_count)
{
	uint64_t age = clock >= sums->first_epoch ? clock - sums->first_epoch : 0;
	struct generation_counts counts = { 0 };
	uint64_t counted = 0;

	counts.volume_bytes = age != 0 ? (ticks_at(clock + 1) - ticks_at(sums->first_epoch)) << KMEM_TICK_BYTES_LOG2 : 0;
	if (sums->birth_generations == 0) { // blocks of one generation only, or nobody could count them
		counts.total = (uint32_t)(age < KMEM_GENERATION_BUCKETS ? age : KMEM_GENERATION_BUCKETS - 1) + 1;
		counts.alive = live_count != 0;
		counts.recent_total = (counts.total + 3) / 4;
		counts.recent_alive = counts.total <= counts.recent_total ? counts.alive : 0;
		return counts;
	}

	bool is_recent = is_active(clock, sums);

	counts.has_paused = clock > sums->birth_clock + UINT64_C(1);
	counts.total = sums->birth_generations + 1;
	if (!is_recent && age + 1 > counts.total)
		counts.total = (uint32_t)(age < 255 ? age : 255) + 1;
	counts.recent_total = (counts.total + 3) / 4;
	for (uint32_t i = 0; i < sums->birth_generations; i++) {
		uint64_t live = 0;

		counts.unlikely += sums->born_alive[i] < 0;
		if (sums->born_alive[i] > 0) // less: a release that was seen before its birth, while the program runs
			live = (uint64_t)sums->born_alive[i];
		counted += live;
		counts.alive += live != 0;
		counts.recent_alive += is_recent && live != 0 && i + 1 >= counts.total - counts.recent_total;
	}
	counts.alive += live_count > counted;
	counts.unlikely += counted > live_count + REQUESTS_UNDER_WAY;
	return counts;
}
