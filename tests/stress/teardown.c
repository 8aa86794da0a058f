/*
 * teardown.c - when threads release during a teardown that one of them ends, is every release booked once, and whole?
 */
#include "stress.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/capture_file.h"
#include "python/python_runtime.h"
#include "record/teardown.h"
#include "sites/thread_slot.h"

#define ROUNDS 400
#define KEPT 50 // by each thread in each round

static _Atomic uint64_t runtime[4];
static _Atomic uint64_t booked_sum;
static _Atomic uint32_t arrived;

/* As the tracker does it. */
static void
event(uint64_t bytes)
{
	struct teardown_release release;

	if (teardown_ask(bytes) != TEARDOWN_OVER)
		return;
	for (uint32_t i = 0; teardown_released(i, &release); i++) {
		CHECK(release.block.site != 0); // all were written before the end could begin
		CHECK(release.block.bytes == release.block.site * UINT64_C(3) &&
		      release.block.generation == release.block.site % 64);
		atomic_fetch_add_explicit(&booked_sum, release.block.site, memory_order_relaxed);
	}
	teardown_done();
}

/* Relaxed, and asleep by a call that the thread sanitizer does not see: it must not order what the threads do. */
static void
wait_for_all(uint32_t *turn)
{
	uint32_t seen;

	*turn += STRESS_THREADS;
	if (atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed) + 1 == *turn)
		(void)syscall(SYS_futex, &arrived, FUTEX_WAKE_PRIVATE, STRESS_THREADS, NULL, NULL, 0);
	while ((seen = atomic_load_explicit(&arrived, memory_order_relaxed)) < *turn)
		(void)syscall(SYS_futex, &arrived, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void
work(unsigned thread, uint64_t *random)
{
	uint32_t turn = 0;

	(void)thread_slot_here();
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t from = thread * UINT64_C(1000);

		if (thread == 0) {
			atomic_store_explicit(&runtime[0], 1, memory_order_relaxed);
			atomic_store_explicit(&runtime[1], 1, memory_order_relaxed);
		}
		stress_yield(random);
		for (uint32_t site = (uint32_t)from + 1; site <= from + KEPT; site++)
			teardown_keep(
				(struct address_block){ .bytes = site * UINT64_C(3), .site = site, .generation = (uint8_t)(site % 64) },
				true);
		event(0);
		wait_for_all(&turn);
		if (thread == 0)
			atomic_store_explicit(&runtime[0], 0, memory_order_relaxed);
		for (unsigned i = 0; i < 4; i++)
			event(10);
		wait_for_all(&turn);
	}
}

int
main(void)
{
	uint64_t seed = random_seed();
	uint64_t expected = 0;

	thread_slot_start();
	python_runtime.addr = (uint64_t)runtime;
	python_runtime.interpreter.layout.runtime_interpreters = 8;
	atomic_store(&python_runtime.finalizing_word, (const _Atomic uint64_t *)runtime);
	stress_run(STRESS_THREADS, work, seed);
	for (uint64_t thread = 0; thread < STRESS_THREADS; thread++)
		for (uint64_t i = 1; i <= KEPT; i++)
			expected += (thread * 1000 + i) * ROUNDS;
	CHECK(booked_sum == expected);
	return 0;
}
