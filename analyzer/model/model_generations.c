/*
 * model_generations.c - how many of a call site's generations still have live blocks?
 *
 * When failing  counts that cannot be are counted in `unlikely`.
 */
#include "base/items.h"
#include "capture/capture_copy.h"
#include "kmem_words.h"
#include "model/model_build.h"

#define MERGED_MIN 16         // generations that are not merged: about twice as many as a leak needs
#define VOLUME_PARTS 64       // of a smaller part of all that was allocated nobody can say what was when
#define RECORDS_MIN 6         // threads that allocated there
#define REQUESTS_UNDER_WAY 64 // a birth is counted by generation first; one for each thread

struct generation {
	uint32_t tick; // at which it began
	int64_t alive; // below 0: a release that was seen before its birth, while the program runs
};

/* The tick of a bucket among the latest ones; 0 = the clock had not come to it. */
static uint32_t
tick_of_bucket(uint32_t latest, uint32_t bucket)
{
	uint32_t age = (latest + KMEM_GENERATION_BUCKETS - bucket % KMEM_GENERATION_BUCKETS) % KMEM_GENERATION_BUCKETS;

	return latest > age ? latest - age : 0;
}

void
model_generations_add(const struct capture *capture, const struct kmem_generations *block, struct generation_sums *sums)
{
	unsigned buckets = capture_generation_buckets(capture);
	uint32_t births = block != NULL ? COPY_OF(block->births) : 0;
	uint32_t first = births & 0xff;
	uint32_t begin = births >> 8 & 0xff;

	if (block == NULL || first > buckets)
		return;
	if (buckets != KMEM_GENERATION_BUCKETS) {
		sums->numbered = first > sums->numbered ? first : sums->numbered;
	} else if (first != 0) {
		sums->begin_clock = begin > sums->begin_clock ? begin : sums->begin_clock;
		sums->has_births[begin] = true; // whoever was killed may have had no time for the bit
		for (uint32_t bucket = 1; bucket <= buckets; bucket++)
			sums->has_births[tick_of_bucket(begin, bucket)] |= (COPY_OF(block->born) >> (bucket - 1) & 1) != 0;
	}
	if ((births >> 16 & 0xff) > sums->birth_clock)
		sums->birth_clock = births >> 16 & 0xff;
	for (uint32_t i = 0; i < buckets; i++) // a thread may only have released what others made
		sums->alive_in_bucket[i] += (int32_t)capture_generation_live(capture, block, i);
}

/*
 * The generations that have a bucket, the oldest first. Of those that are numbered (before version 12) the ticks are taken to follow each
 * other.
 */
static uint32_t
list_generations(const struct generation_sums *sums, struct generation generations[KMEM_GENERATION_BUCKETS_11])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < sums->numbered; i++) {
		uint32_t back = sums->numbered - i;
		uint32_t tick = sums->birth_clock + 1 > back ? sums->birth_clock + 1 - back : 0;

		generations[count++] = (struct generation){ tick > sums->first_generation ? tick : sums->first_generation,
			                                        sums->alive_in_bucket[i] };
	}
	for (uint32_t back = KMEM_GENERATION_BUCKETS; back > 0 && sums->numbered == 0; back--) {
		uint32_t tick = sums->begin_clock + 1 > back ? sums->begin_clock + 1 - back : 0;

		if (tick != 0 && sums->has_births[tick])
			generations[count++] = (struct generation){
				tick, sums->alive_in_bucket[kmem_generation_bucket((uint8_t)tick) - 1]
			};
	}
	return count;
}

/* Ticks of the clock's measure at which the clock shows this: the inverse of kmem_clock_at(). A damaged clock may show anything. */
static uint64_t
ticks_at(uint64_t clock)
{
	clock = clock < 255 ? clock : 255;
	return clock < 9 ? clock - (clock != 0) : ((clock - 9) % 8 + 8) << (clock - 9) / 8;
}

/* The same of records that nobody counted by generation: each is as old as the tick in which it was made. */
static uint32_t
list_records(const struct generation_sums *sums, struct generation generations[KMEM_CLOCK_MAX + 1])
{
	uint32_t count = 0;

	for (uint32_t tick = 0; tick <= KMEM_CLOCK_MAX; tick++) {
		if (sums->has_record[tick])
			generations[count++] = (struct generation){ tick, sums->alive_by_record[tick] };
	}
	return count;
}

static uint64_t
counted_of(const struct generation *generations, uint32_t count)
{
	return SUM_OF(one, generations, count, one->alive > 0 ? (uint64_t)one->alive : 0);
}

/*
 * Does it still allocate? A loop that leaks in every round has allocated within the latest round. A line that has loaded a data set has
 * not, while the program goes on. It counts as over when the program has allocated a quarter as much since then as in all the time in which
 * the line was active. Ticks of the clock would tell much later: there are eight per doubling.
 */
static bool
is_active(uint64_t clock, uint64_t first_tick, uint64_t last_tick)
{
	uint64_t first = ticks_at(first_tick);
	uint64_t last = ticks_at(last_tick + 1);
	uint64_t now = ticks_at(clock);

	return now <= last || now - last <= (last - first) / 4 + 1;
}

/*
 * Of large blocks each may have a generation of its own: a line that releases every other one would have as many dead as alive, however
 * it grows. So as many are taken together as make some blocks of each, while enough are left to judge by.
 */
static uint32_t
merged(uint64_t allocated_count, uint32_t count)
{
	uint32_t step = 1;

	while (count / step >= MERGED_MIN && allocated_count < count / step * UINT64_C(4))
		step *= 2;
	return step;
}

/* What was allocated in all when the clock came to this; it may have come there only now. */
static uint64_t
volume_at(const struct kmem_header *header, uint64_t clock)
{
	return kmem_rough_bytes(COPY_OF(header->volume_at[clock < KMEM_CLOCK_MAX ? clock : KMEM_CLOCK_MAX]));
}

/* From one tick to the end of the other, which may go on. */
static uint64_t
volume_between(const struct kmem_header *header, uint64_t first, uint64_t last)
{
	uint64_t start_bytes = first > 1 ? volume_at(header, first) : 0;
	uint64_t end_bytes = last < COPY_OF(header->generation_clock) ? volume_at(header, last + 1)
	                                                              : COPY_OF(header->volume_bytes);

	return end_bytes > start_bytes ? end_bytes - start_bytes : 0;
}

/*
 * How many live blocks are from each quarter of what was allocated since the site appeared? A leak has about as many in each, a cache that
 * fills fewer and fewer. A tick that lies in two quarters is divided between them.
 */
static void
count_quarters(const struct generation_sums *sums, const struct generation *generations, uint32_t count,
               const struct kmem_header *header, uint64_t clock, uint64_t older, struct generation_counts *counts)
{
	double begin = (double)volume_at(header, sums->first_generation > 1 ? sums->first_generation : 0);
	double all = (double)COPY_OF(header->volume_bytes) - begin;
	double quarters[SURVIVAL_QUARTERS] = { (double)older };

	/* It is known to a thousandth. */
	if (all <= 0 || all * VOLUME_PARTS < begin)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t tick = generations[i].tick;
		bool is_last = i + 1 == count;
		double from = ((double)volume_at(header, tick) - begin) / all * SURVIVAL_QUARTERS;
		double to = ((double)volume_between(header, 1, is_last ? sums->birth_clock : tick) - begin) / all *
		            SURVIVAL_QUARTERS;
		double live = generations[i].alive > 0 ? (double)generations[i].alive : 0;

		from = from < 0 || tick <= 1 ? 0 : from;
		to = to > SURVIVAL_QUARTERS || tick >= clock ? SURVIVAL_QUARTERS : to;
		for (unsigned k = 0; k < SURVIVAL_QUARTERS; k++) {
			double low = from > k ? from : k;
			double high = to < k + 1 ? to : k + 1;

			if (to > from)
				quarters[k] += high > low ? live * (high - low) / (to - from) : 0;
			else if (from >= k && (from < k + 1 || k + 1 == SURVIVAL_QUARTERS))
				quarters[k] += live;
		}
	}
	for (unsigned k = 0; k < SURVIVAL_QUARTERS; k++)
		counts->quarters[k] = (uint64_t)(quarters[k] + 0.5);
}

/* Of so many generations, `live` blocks of each, the picture. Those beyond are without. */
static void
draw_survivors(const uint64_t *live, uint32_t count, uint32_t total, struct model_survivors *survivors)
{
	uint64_t sums[SURVIVOR_CELLS] = { 0 };
	uint32_t cells = total < SURVIVOR_CELLS ? total : SURVIVOR_CELLS;
	uint64_t most = 1;

	for (uint32_t i = 0; i < count && i < total; i++) {
		uint32_t cell = (uint32_t)((uint64_t)i * cells / total);

		sums[cell] += live[i] < UINT32_MAX ? live[i] : UINT32_MAX; // a damaged count may be anything
		most = sums[cell] > most ? sums[cell] : most;
	}
	survivors->count = (uint8_t)cells;
	for (uint32_t i = 0; i < cells; i++) // each that has some is seen
		survivors->cells[i] = (uint8_t)((sums[i] * SURVIVOR_MOST + most - 1) / most);
}

/* What is of no generation is as old as the first record. */
static struct model_ticks
ticks_of(const struct generation_sums *sums, const struct generation *generations, uint32_t count, uint64_t live_count,
         uint64_t clock)
{
	struct model_ticks ticks = { .now = (uint8_t)(clock < KMEM_CLOCK_MAX ? clock : KMEM_CLOCK_MAX) };
	const struct generation all[] = { { sums->first_generation, live_count > counted_of(generations, count) } };

	for (uint32_t i = 0; i <= count; i++) {
		const struct generation *one = i < count ? &generations[i] : all;
		unsigned word = one->tick / 64 % MODEL_TICK_WORDS;

		ticks.born[word] |= UINT64_C(1) << one->tick % 64;
		ticks.alive[word] |= (uint64_t)(one->alive > 0) << one->tick % 64;
	}
	return ticks;
}

bool
model_has_tick(const uint64_t ticks[MODEL_TICK_WORDS], uint64_t tick)
{
	return (ticks[tick / 64] >> tick % 64 & 1) != 0;
}

/*
 * Of a line that allocates once in each of many threads, or for each of many callers, no record ever holds an older block, so that none has
 * counters. Their ages are those of the records: a tick in which there is one is a generation.
 */
static void
count_by_ticks(const struct model_ticks *ticks, uint64_t allocated_count, struct generation_counts *counts)
{
	uint64_t live[KMEM_CLOCK_MAX + 1] = { 0 };
	uint32_t first = 0;
	uint32_t last = 0;
	uint32_t born = 0;
	uint32_t seen = 0;

	for (uint32_t tick = KMEM_CLOCK_MAX + 1; tick-- > 0;) {
		if (!model_has_tick(ticks->born, tick))
			continue;
		first = tick;
		last = born++ == 0 ? tick : last;
	}
	uint32_t step = merged(allocated_count, born);
	bool is_recent = is_active(ticks->now, first, last);

	for (uint32_t tick = first; tick <= last && born != 0; tick++) {
		live[seen / step] += model_has_tick(ticks->born, tick) && model_has_tick(ticks->alive, tick);
		seen += model_has_tick(ticks->born, tick);
	}
	seen = (seen + step - 1) / step;
	counts->total = seen;
	if (!is_recent && ticks->now > last)
		counts->total += (ticks->now - last) / step;
	counts->recent_total = (counts->total + 3) / 4;
	for (uint32_t i = 0; i < seen; i++) {
		counts->alive += live[i] != 0;
		counts->recent_alive += is_recent && live[i] != 0 && i + 1 > counts->total - counts->recent_total;
	}
	counts->has_paused = ticks->now > last + UINT64_C(1);
	draw_survivors(live, seen, counts->total, &counts->survivors);
}

/*
 * The generations of a site, and those of them that still have live blocks. Blocks that are older than these make one more, in front. Of a
 * site that does not allocate any more none is recent, and all ticks since its first one are its generations: else it would look like one
 * that accumulates.
 */
struct generation_counts
model_generations_count(const struct generation_sums *sums, const struct kmem_header *header, uint64_t clock,
                        uint64_t live_count)
{
	uint64_t age = clock >= sums->first_generation ? clock - sums->first_generation : 0;
	struct generation_counts counts = { 0 };
	struct generation generations[KMEM_GENERATION_BUCKETS_11 + KMEM_CLOCK_MAX + 1];
	uint32_t listed = list_generations(sums, generations);
	uint32_t recorded = list_records(sums, &generations[listed]);
	uint64_t counted = counted_of(generations, listed);
	uint64_t older = amount_less(live_count, counted);

	model_steps_since(header, sums->first_generation, &counts);
	counts.volume_bytes = age != 0 ? volume_between(header, sums->first_generation, clock) : 0;
	counts.ticks = ticks_of(sums, generations, listed + recorded, live_count, clock);
	if (sums->record_count >= RECORDS_MIN && listed < RECORDS_MIN) {
		const struct model_ticks of_records = ticks_of(sums, &generations[listed], recorded, 0, clock);

		count_by_ticks(&of_records, UINT64_MAX, &counts);
		return counts;
	}
	if (listed == 0) { // blocks of one generation only, or nobody could count them
		count_quarters(sums, generations, recorded, header, clock, 0, &counts);
		counts.total = (uint32_t)(age < KMEM_GENERATION_BUCKETS ? age : KMEM_GENERATION_BUCKETS - 1) + 1;
		counts.alive = live_count != 0;
		counts.recent_total = (counts.total + 3) / 4;
		counts.recent_alive = counts.total <= counts.recent_total ? counts.alive : 0;
		return counts;
	}

	uint64_t by_generation[KMEM_GENERATION_BUCKETS_11 + 1]; // in front those that are older
	bool is_recent = is_active(clock, sums->first_generation, sums->birth_clock);
	uint32_t step = merged(sums->allocated_count, listed);
	uint32_t births = (listed + step - 1) / step;

	counts.born = births + 1;
	counts.span_bytes = volume_between(header, sums->first_generation, sums->birth_clock);

	counts.has_paused = clock > sums->birth_clock + UINT64_C(1);
	counts.total = births + 1;
	if (!is_recent && age / step + 1 > counts.total)
		counts.total = (uint32_t)(age < 255 ? age : 255) / step + 1;
	counts.recent_total = (counts.total + 3) / 4;
	for (uint32_t i = 0; i < births; i++) {
		uint64_t live = 0;

		for (uint32_t k = i * step; k < (i + 1) * step && k < listed; k++) {
			counts.unlikely += generations[k].alive < 0;
			live += generations[k].alive > 0 ? (uint64_t)generations[k].alive : 0;
		}
		by_generation[i + 1] = live;
		counts.alive += live != 0;
		counts.recent_alive += is_recent && live != 0 && i + 1 >= counts.total - counts.recent_total;
	}
	by_generation[0] = older;
	counts.alive += older != 0;
	draw_survivors(by_generation, births + 1, counts.total, &counts.survivors);
	count_quarters(sums, generations, listed, header, clock, older, &counts);
	counts.unlikely += counted > live_count + REQUESTS_UNDER_WAY;
	return counts;
}

void
model_generations_join(const struct model_site *const *sites, size_t count, struct model_site *sum)
{
	struct generation_counts counts = { 0 };
	struct model_ticks ticks = { .now = 0 };

	for (size_t i = 0; i < count; i++) {
		for (unsigned k = 0; k < MODEL_TICK_WORDS; k++) {
			ticks.born[k] |= sites[i]->ticks.born[k];
			ticks.alive[k] |= sites[i]->ticks.alive[k];
		}
		ticks.now = sites[i]->ticks.now > ticks.now ? sites[i]->ticks.now : ticks.now;
	}
	count_by_ticks(&ticks, sum->allocated_count, &counts);
	sum->ticks = ticks;
	sum->generations_alive = counts.alive;
	sum->generations_total = counts.total;
	sum->recent_alive = counts.recent_alive;
	sum->recent_total = counts.recent_total;
	sum->survivors = counts.survivors;
	sum->has_paused = counts.has_paused;
	sum->bytes_per_generation = counts.alive != 0 ? sum->live_bytes / counts.alive : 0;
}
