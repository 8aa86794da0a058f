/*
 * generations.c - from how many different times do the surviving blocks come (see generations.h)?
 *
 * The clock's measure grows as what was allocated does, in proportion: by bytes or by blocks, whichever grew by the larger part. Where
 * the mean of blocks stays the same, both do, and it is the volume. Of one event no more counts than the width of a tick: a pool that
 * is taken once, or the buffers of an earlier phase, do not stop the clock for what comes in smaller blocks.
 *
 * Buckets go round: the one of a tick is that of 60 ticks before, too, when there was allocated less than the 180th part of what was until
 * now. What is left of that is counted with what came now. It is too little to look like a leak, and no release has to know of it.
 *
 * Not chosen  merging buckets in pairs when they run out: a release that runs at the same time would need a second protocol.
 *             A bucket for each generation of a site, the last one for all later: in a long run it has nearly everything.
 */
#include "tables/generations.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "capture/capture_file.h"
#include "kmem_words.h"

#define BATCH_BYTES ((uint64_t)1 << KMEM_TICK_BYTES_LOG2)
#define CLOCK_BYTES_MAX ((uint64_t)1 << 62) // far behind the last tick

/*
 * Samples of one generation. Of a line that keeps half of what it allocates, one generation in 256 then holds nothing by chance. With one
 * sample each, every second one would.
 */
#define SAMPLES_MIN 8u

static __thread uint64_t unbooked_bytes __attribute__((tls_model("initial-exec")));
static __thread uint64_t unbooked_blocks __attribute__((tls_model("initial-exec")));

/*
 * Adds to a sum, but no more than the width of its tick; returns by how much that moves the clock's measure: by the same part of a
 * tick there. relaxed, here and for the clock: a bucket, not a message; a block that is tagged one tick early is no harm.
 */
static uint64_t
share_of_tick(_Atomic uint64_t *sum, uint64_t bytes, uint64_t measure)
{
	uint64_t seen = atomic_load_explicit(sum, memory_order_relaxed);
	unsigned octave = kmem_clock_octave(seen);
	unsigned wide = kmem_clock_octave(measure);
	uint64_t most = BATCH_BYTES << octave;

	if (bytes > most)
		bytes = most;
	atomic_fetch_add_explicit(sum, bytes, memory_order_relaxed);
	return wide > octave ? bytes << (wide - octave) : bytes;
}

/* Milliseconds since the start. */
static uint64_t
age_ms(const struct kmem_header *header)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t start_ns = header->identity.start_monotonic_ns;

	return now_ns > start_ns ? (now_ns - start_ns) / 1000000 : 0;
}

/* Moves the clock on, and writes down how much had been allocated then, how many steps that were, and when it was. */
static uint8_t
advance(struct kmem_header *header, uint64_t now, uint64_t volume_bytes)
{
	uint64_t seen = atomic_load_explicit(&header->generation_clock, memory_order_relaxed);
	uint16_t rough = kmem_rough(volume_bytes);
	struct kmem_steps *steps = &capture_file_timeline()->steps;

	while (seen < now) {
		uint64_t last = seen;

		if (!atomic_compare_exchange_weak_explicit(&header->generation_clock, &seen, now, memory_order_relaxed,
		                                           memory_order_relaxed))
			continue;
		uint16_t count = kmem_rough_count(atomic_load_explicit(&steps->count, memory_order_relaxed));
		uint64_t ms = age_ms(header);

		while (last < now) { // two ticks, when two threads had one each
			atomic_store_explicit(&header->volume_at[++last], rough, memory_order_relaxed);
			atomic_store_explicit(&steps->count_at[last], count, memory_order_relaxed);
			atomic_store_explicit(&steps->ms_at[last], kmem_rough_count(ms), memory_order_relaxed);
		}
		seen = now;
	}
	return (uint8_t)seen;
}

uint8_t
generations_tick(uint64_t bytes, uint64_t blocks)
{
	struct kmem_header *header = capture_file_header();

	unbooked_bytes += bytes;
	unbooked_blocks += blocks;
	if (unbooked_bytes < BATCH_BYTES && unbooked_blocks < BATCH_BYTES / KMEM_TICK_BLOCK_BYTES)
		return generations_clock();

	uint64_t volume_bytes = atomic_fetch_add_explicit(&header->volume_bytes, unbooked_bytes, memory_order_relaxed) +
	                        unbooked_bytes;
	uint64_t measure = atomic_load_explicit(&header->generation_clock_bytes, memory_order_relaxed);
	uint64_t by_bytes = share_of_tick(&header->tick_bytes, unbooked_bytes, measure);
	uint64_t by_blocks = share_of_tick(&header->tick_blocks, unbooked_blocks * KMEM_TICK_BLOCK_BYTES, measure);
	uint64_t step = by_bytes > by_blocks ? by_bytes : by_blocks;

	unbooked_bytes = 0;
	unbooked_blocks = 0;
	if (measure >= CLOCK_BYTES_MAX)
		return generations_clock();
	measure = atomic_fetch_add_explicit(&header->generation_clock_bytes, step, memory_order_relaxed) + step;
	return advance(header, kmem_clock_at(measure), volume_bytes);
}

/*
 * By what the measure has to have grown since the step before: the same part of a tick as the step is of theirs. What was allocated meanwhile
 * counts towards it, so that a loop that does both alike ticks no faster.
 */
void
generations_step(void)
{
	struct kmem_header *header = capture_file_header();
	struct kmem_steps *steps = &capture_file_timeline()->steps;
	uint64_t volume_bytes = atomic_load_explicit(&header->volume_bytes, memory_order_relaxed);
	uint64_t measure = atomic_load_explicit(&header->generation_clock_bytes, memory_order_relaxed);
	uint64_t wanted = atomic_load_explicit(&steps->measure, memory_order_relaxed);

	if (measure >= CLOCK_BYTES_MAX)
		return;
	wanted += share_of_tick(&steps->tick_steps, KMEM_TICK_STEP_BYTES, measure);
	if (wanted > measure) {
		uint64_t more = wanted - measure;

		measure = atomic_fetch_add_explicit(&header->generation_clock_bytes, more, memory_order_relaxed) + more;
		advance(header, kmem_clock_at(measure), volume_bytes);
	}
	atomic_store_explicit(&steps->measure, measure, memory_order_relaxed);
}

void
generations_steps_anew(void)
{
	struct kmem_steps *steps = &capture_file_timeline()->steps;

	atomic_store_explicit(&steps->tick_steps, 0, memory_order_relaxed);
	atomic_store_explicit(&steps->measure,
	                      atomic_load_explicit(&capture_file_header()->generation_clock_bytes, memory_order_relaxed),
	                      memory_order_relaxed);
}

/* Bits 0-23 of `births` when a generation begins. */
static uint32_t
first_birth(uint8_t clock)
{
	return (uint32_t)clock << 16 | (uint32_t)clock << 8 | kmem_generation_bucket(clock);
}

/*
 * A generation has begun at this clock, the one before it at `last` (0 = none): in between the site has none, so the buckets of these ticks
 * are of nobody. relaxed: who reads takes the latest generation from `births`.
 */
static void
mark_born(struct kmem_generations *block, uint8_t last, uint8_t clock)
{
	uint64_t gone = 0;

	for (unsigned tick = clock; tick > last && tick + KMEM_GENERATION_BUCKETS > clock; tick--)
		gone |= UINT64_C(1) << (kmem_generation_bucket((uint8_t)tick) - 1);
	atomic_fetch_and_explicit(&block->born, ~gone, memory_order_relaxed);
	atomic_fetch_or_explicit(&block->born, UINT64_C(1) << (kmem_generation_bucket(clock) - 1), memory_order_relaxed);
}

/* The site's generation for a birth at this clock: the latest one, or a new one when the clock has moved since. 1 to KMEM_GENERATION_BUCKETS. */
static uint8_t
generation_at(struct kmem_generations *block, uint8_t clock)
{
	uint32_t seen = atomic_load_explicit(&block->births, memory_order_relaxed);

	do {
		if (clock <= seen >> 16)
			return (uint8_t)seen;
	} while (!atomic_compare_exchange_weak_explicit(&block->births, &seen, first_birth(clock), memory_order_relaxed,
	                                                memory_order_relaxed));
	mark_born(block, (uint8_t)(seen >> 8), clock);
	return kmem_generation_bucket(clock);
}

/* The same of samples: the next one not before the latest has SAMPLES_MIN. */
static uint8_t
generation_of_sample(struct kmem_generations *block, uint8_t clock)
{
	uint32_t seen = atomic_load_explicit(&block->births, memory_order_relaxed);
	uint32_t wanted;
	bool is_next;

	do {
		uint8_t last = (uint8_t)(seen >> 16);
		uint32_t samples = seen >> 24;

		is_next = seen == 0 || (clock > last && samples >= SAMPLES_MIN);
		if (is_next)
			wanted = UINT32_C(1) << 24 | first_birth(clock);
		else
			wanted = (samples < UINT8_MAX ? samples + 1 : samples) << 24 |
			         (uint32_t)(clock > last ? clock : last) << 16 | (seen & 0xffff);
	} while (!atomic_compare_exchange_weak_explicit(&block->births, &seen, wanted, memory_order_relaxed,
	                                                memory_order_relaxed));
	if (is_next)
		mark_born(block, (uint8_t)(seen >> 8), clock);
	return (uint8_t)wanted;
}

static uint32_t
claim_block(struct kmem_site *site, uint32_t site_index, uint8_t clock)
{
	uint32_t index;
	struct kmem_generations *block = capture_file_append_sparing(KMEM_SECTION_GENERATIONS, sizeof(*block), 0, &index);
	uint32_t none = 0;

	if (block == NULL)
		return 0;
	atomic_store_explicit(&block->site, site_index, memory_order_relaxed);
	if (clock != 0) {
		atomic_store_explicit(&block->births, first_birth(clock), memory_order_relaxed);
		mark_born(block, 0, clock);
	}
	/* release: the block before the index (F1); acquire: another thread's block, whose births we read next. */
	if (atomic_compare_exchange_strong_explicit(&site->generations, &none, index + 1, memory_order_acq_rel,
	                                            memory_order_acquire))
		return index + 1;
	atomic_store_explicit(&block->site, 0, memory_order_relaxed); // lost the race: the block stays unused
	return none;
}

/* A record is changed by its own thread alone, slot 0's by all without one (S4). relaxed: counts. */
static inline void
count(const struct kmem_site *site, uint32_t block_index, uint8_t generation, uint32_t change)
{
	struct kmem_generations *block = capture_file_item(KMEM_SECTION_GENERATIONS, block_index);
	_Atomic uint32_t *live_count = &block->live_count[generation - 1];

	if (__builtin_expect(site->slot != 0, 1))
		atomic_store_explicit(live_count, atomic_load_explicit(live_count, memory_order_relaxed) + change,
		                      memory_order_relaxed);
	else
		atomic_fetch_add_explicit(live_count, change, memory_order_relaxed);
}

static inline uint8_t
born(struct kmem_site *site, uint32_t site_index, uint8_t clock, bool is_sample)
{
	/* acquire: pairs with claim_block(). */
	uint32_t index = atomic_load_explicit(&site->generations, memory_order_acquire);

	if (index == 0) {
		bool is_first_tick = clock <= site->first_generation;
		uint64_t allocated_bytes = atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed);
		uint64_t freed_bytes = atomic_load_explicit(&site->freed_bytes, memory_order_relaxed);

		if (is_first_tick || (int64_t)(allocated_bytes - freed_bytes) < GENERATIONS_MIN_BYTES)
			return 0;
		index = claim_block(site, site_index, clock);
		if (index == 0)
			return 0;
	}
	struct kmem_generations *block = capture_file_item(KMEM_SECTION_GENERATIONS, index);
	uint8_t generation = is_sample ? generation_of_sample(block, clock) : generation_at(block, clock);

	count(site, index, generation, 1);
	return generation;
}

uint8_t
generations_born(struct kmem_site *site, uint32_t site_index, uint8_t clock)
{
	return born(site, site_index, clock, false);
}

uint8_t
generations_born_sample(struct kmem_site *site, uint32_t site_index, uint8_t clock)
{
	return born(site, site_index, clock, true);
}

void
generations_died(struct kmem_site *site, uint32_t site_index, uint8_t generation)
{
	if (generation == 0)
		return;

	uint32_t index = atomic_load_explicit(&site->generations, memory_order_acquire); // pairs with claim_block()

	if (index == 0)
		index = claim_block(site, site_index, 0); // another thread's block: this record counts below 0
	if (index != 0)
		count(site, index, generation, UINT32_MAX);
}

void
generations_copy(struct kmem_generations *to, const struct kmem_generations *from)
{
	to->site = atomic_load_explicit(&from->site, memory_order_relaxed);
	to->births = atomic_load_explicit(&from->births, memory_order_relaxed);
	to->born = atomic_load_explicit(&from->born, memory_order_relaxed);
	for (unsigned i = 0; i < KMEM_GENERATION_BUCKETS; i++)
		to->live_count[i] = atomic_load_explicit(&from->live_count[i], memory_order_relaxed);
}
