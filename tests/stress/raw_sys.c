/*
 * raw_sys.c - who finds the start of a range of ours, does he see its end?
 */
#include "stress.h"

#include "base/raw_sys.h"

#define ROUNDS 300
#define PAGE 4096

static _Atomic uint64_t newest; // relaxed: it carries the address only

static void
work(unsigned thread, uint64_t *random)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t bytes = (1 + random_below(random, 4)) * PAGE;
		uint64_t theirs = atomic_load_explicit(&newest, memory_order_relaxed);
		uint64_t end;
		enum kmem_own_part what;

		if (theirs != 0 && raw_is_reserved(theirs, &end, &what))
			CHECK(end > theirs && end <= theirs + 4 * PAGE && what == KMEM_OWN_THREADS);
		char *at = raw_reserve(KMEM_OWN_THREADS, bytes, PROT_READ | PROT_WRITE);
		CHECK(at != NULL);
		atomic_store_explicit(&newest, (uint64_t)at, memory_order_relaxed);
		stress_yield(random);
		CHECK(raw_is_reserved((uint64_t)at, &end, &what) && end == (uint64_t)at + bytes);
		CHECK(raw_is_reserved((uint64_t)at + bytes - 1, &end, &what));
		if (thread % 2 == 0) {
			raw_unreserve(at, bytes);
			at = NULL;
		}
	}
}

int
main(void)
{
	uint64_t end;
	enum kmem_own_part what;

	CHECK(STRESS_THREADS * ROUNDS < 4096);
	CHECK(!raw_is_reserved(1 << 20, &end, &what) && end == UINT64_MAX);
	stress_run(STRESS_THREADS, work, random_seed());
	CHECK(!raw_is_reserved(1 << 20, &end, &what) && end != UINT64_MAX);
	return 0;
}
