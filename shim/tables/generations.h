/*
 * generations.h - from how many different times do the surviving blocks of a site come?
 *
 * The clock counts from 1 to 255. It ticks as the program allocates, in bytes or in blocks: every 64 KiB until 512 KiB, then eight times
 * per doubling. A tick in which a site allocates is a generation of that site. A site gets counters late: when it allocates and still
 * holds GENERATIONS_MIN_BYTES from before. So sites without surviving blocks cost nothing, and most others hold too little to get any.
 *
 * Safe from   any thread and signal handler.
 * When full   blocks are not counted (generation 0); the leak test then knows less.
 */
#ifndef GENERATIONS_H
#define GENERATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "capture/capture_file.h"
#include "kmem_format.h"

#define GENERATIONS_MIN_BYTES 1024

/*
 * The clock after so many bytes and blocks more were allocated: at most one large block, and others of less than 64 KiB together. Both
 * numbers are added up in the thread. At 64 KiB or 1,024 blocks the sums move the clock.
 */
uint8_t generations_tick(uint64_t bytes, uint64_t blocks);

/*
 * A step of the program was made. The clock ticks at each of the first eight steps since they began anew, then eight times per doubling;
 * not if it has ticked as often by what is allocated. relaxed: two steps at the same moment may count as one.
 */
void generations_step(void);
void generations_steps_anew(void);

static inline uint8_t
generations_clock(void)
{
	return (uint8_t)atomic_load_explicit(&capture_file_header()->generation_clock, memory_order_relaxed);
}

/*
 * A block is born, or dies, in a record. site_index is index + 1. A block that another thread allocated dies in the record of
 * the thread that releases it, as its bytes do: only the sums over the records of a call site tell. To be called before the birth
 * is added to the record's counters. Returns what must be given back at death: 0 = not counted; else the bucket of its
 * generation, 1 to KMEM_GENERATION_BUCKETS.
 */
__attribute__((noinline)) uint8_t generations_born(struct kmem_site *site, uint32_t site_index, uint8_t clock);
/*
 * The same of a sample (python_samples.h), which are few: a generation ends when the clock has moved and it has had eight. Bits 24-31 of
 * `births` count these.
 */
uint8_t generations_born_sample(struct kmem_site *site, uint32_t site_index, uint8_t clock);
__attribute__((noinline)) void generations_died(struct kmem_site *site, uint32_t site_index, uint8_t generation);

/*
 * The same for a record that only the calling thread changes, without a call for nearly all of them: a site without surviving blocks,
 * or one whose latest generation goes on.
 */
static inline uint8_t
generations_born_own(struct kmem_site *site, uint32_t site_index)
{
	/* acquire: pairs with claim_block(), for another thread may have claimed it when the record was that one's. */
	uint32_t index = atomic_load_explicit(&site->generations, memory_order_acquire);

	if (index == 0) {
		if (__builtin_expect((int64_t)(atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed) -
		                               atomic_load_explicit(&site->freed_bytes, memory_order_relaxed)) <
		                         GENERATIONS_MIN_BYTES,
		                     1) ||
		    generations_clock() <= site->first_generation)
			return 0;
	} else {
		struct kmem_generations *block = capture_file_item(KMEM_SECTION_GENERATIONS, index);
		uint32_t births = atomic_load_explicit(&block->births, memory_order_relaxed);

		/* With none yet the clock of the latest is 0, and this one 1 at least. */
		if (__builtin_expect((uint32_t)generations_clock() << 16 <= births, 1)) {
			uint8_t generation = (uint8_t)births;

			counter_add_own32(&block->live_count[(size_t)generation - 1], 1);
			return generation;
		}
	}
	return generations_born(site, site_index, generations_clock());
}

/* Can generations_died_own() do it? */
static inline bool
generations_is_counted(const struct kmem_site *site, uint8_t generation)
{
	return generation == 0 || atomic_load_explicit(&site->generations, memory_order_acquire) != 0; // as above
}

static inline void
generations_died_own(const struct kmem_site *site, size_t generation)
{
	if (generation == 0)
		return;
	/* Of a capture that was given up meanwhile the word is 0 now. */
	uint32_t index = atomic_load_explicit(&site->generations, memory_order_relaxed);
	struct kmem_generations *block = capture_file_item(KMEM_SECTION_GENERATIONS, index);

	counter_add_own32(&block->live_count[generation - 1], UINT32_MAX);
}

/* As it is now, while others may count on: each word by itself. */
void generations_copy(struct kmem_generations *to, const struct kmem_generations *from);

#endif
