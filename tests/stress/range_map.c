/*
 * range_map.c - does the lock carry the map from thread to thread?
 */
#include "stress.h"

#include "tables/range_map.h"

#define ROUNDS 4000
#define PAGES 16
#define PAGE UINT64_C(4096)

static _Atomic uint64_t whole_count; // mappings whose last byte is gone

/* Each thread has its own pages, beside those of the others. */
static void
work(unsigned thread, uint64_t *random)
{
	uint64_t base = 0x7f0000000000 + thread * 2 * PAGES * PAGE;
	struct range_pieces taken;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t hole = 1 + random_below(random, PAGES - 2);
		uint64_t bytes = 0;

		CHECK(range_map_put(base, base + PAGES * PAGE, thread + 1, (uint8_t)i));
		stress_yield(random);
		CHECK(range_map_take(base + hole * PAGE, base + (hole + 1) * PAGE, &taken));
		CHECK(taken.count == 1 && !taken.piece[0].is_last_piece);
		if (i % 3 == 0)
			CHECK(range_map_put_back(&taken));
		CHECK(range_map_take(base, base + 2 * PAGES * PAGE, &taken));
		CHECK(taken.count == (i % 3 == 0 ? 1 : 2));
		for (uint32_t p = 0; p < taken.count; p++) {
			CHECK(taken.piece[p].site == thread + 1 && taken.piece[p].generation == (uint8_t)i);
			CHECK(taken.piece[p].is_last_piece == (p + 1 == taken.count));
			bytes += taken.piece[p].end - taken.piece[p].start;
		}
		CHECK(bytes == (i % 3 == 0 ? PAGES : PAGES - 1) * PAGE);
		atomic_fetch_add_explicit(&whole_count, 1, memory_order_relaxed);
	}
}

int
main(void)
{
	struct range_pieces taken;

	stress_run(STRESS_THREADS, work, random_seed());
	CHECK(whole_count == STRESS_THREADS * ROUNDS);
	CHECK(range_map_take(0, UINT64_MAX, &taken) && taken.count == 0);
	return 0;
}
