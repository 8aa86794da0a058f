/*
 * address_table.c - does a block travel whole from the thread that put it to the one that takes it?
 *
 * reuse_one_slot is about a slot that is free again and claimed: in the mixed run other orders hide that.
 */
#include "stress.h"

#include "tables/address_table.h"

#define ROUNDS 20000
#define MAIL 64

static struct address_table tables[ROUNDS / 100];
static _Atomic uint64_t mail[MAIL]; // addresses on their way from one thread to another; 0 = none
static _Atomic uint64_t put_count;
static _Atomic uint64_t taken_count;
// by address / 8: plain, so that the sanitizer sees by what it is ordered
static uint64_t handed_on[(ROUNDS + 1) * STRESS_THREADS];

static struct address_block
block_for(uint64_t addr)
{
	return (struct address_block){ addr * 3, (uint32_t)(addr >> 3), (uint8_t)addr };
}

static void
take_one(struct address_table *table, uint64_t addr)
{
	struct address_block block;

	CHECK(address_table_find(table, addr, &block));
	CHECK(handed_on[addr / 8] == addr);
	CHECK(address_table_take(table, addr, &block));
	CHECK(block.bytes == addr * 3 && block.site == (uint32_t)(addr >> 3) && block.generation == (uint8_t)addr);
	atomic_fetch_add_explicit(&taken_count, 1, memory_order_relaxed);
}

/* An address that is not in the table. */
static void
put(struct address_table *table, uint64_t addr, struct address_block block)
{
	struct address_block old;

	handed_on[addr / 8] = addr;
	CHECK(address_table_put(table, addr, block, &old) == ADDRESS_TABLE_STORED);
}

static bool
is_there(uint64_t addr, struct address_block block, void *context)
{
	return true;
}

/* Everybody puts, hands the address on, and takes what others handed on. Slots become free and are used again all the time. */
static void
work(unsigned thread, uint64_t *random)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t addr = (i * STRESS_THREADS + thread + 1) * 8;

		put(&tables[0], addr, block_for(addr));
		atomic_fetch_add_explicit(&put_count, 1, memory_order_relaxed);
		stress_yield(random);
		uint64_t got = atomic_exchange_explicit(&mail[random_below(random, MAIL)], addr, memory_order_relaxed);
		if (got != 0)
			take_one(&tables[0], got);
	}
}

/* Everybody at once is the first one to put into a table. */
static void
first_puts(unsigned thread, uint64_t *random)
{
	for (size_t t = 1; t < sizeof(tables) / sizeof(tables[0]) && t < 40; t++) {
		uint64_t addr = (thread + 1) * 4096;

		put(&tables[t], addr, block_for(addr));
		stress_yield(random);
		take_one(&tables[t], addr);
	}
}

/* One address, hence one slot, goes round: who puts writes where another thread has just read. */
static _Atomic unsigned turn;
static unsigned in_turn; // between put and take

static void
reuse_one_slot(unsigned thread, uint64_t *random)
{
	struct address_block block;

	for (unsigned i = 0; i < 200; i++) {
		while (atomic_load_explicit(&turn, memory_order_relaxed) % STRESS_THREADS != thread)
			sched_yield();
		CHECK(address_table_put(&tables[50], 4096, block_for(4096), &block) == ADDRESS_TABLE_STORED);
		CHECK(in_turn++ % STRESS_THREADS == thread);
		CHECK(address_table_take(&tables[50], 4096, &block));
		atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
	}
}

int
main(void)
{
	uint64_t seed = random_seed(), cursor = 0;
	struct address_block block;

	stress_run(STRESS_THREADS, reuse_one_slot, seed);
	put_count = taken_count = 0;
	stress_run(STRESS_THREADS, work, seed);
	for (unsigned i = 0; i < MAIL; i++) {
		if (mail[i] != 0)
			take_one(&tables[0], mail[i]);
	}
	CHECK(put_count == taken_count);
	CHECK(!address_table_sweep(&tables[0], &cursor, is_there, NULL, &block));
	stress_run(STRESS_THREADS, first_puts, seed);
	return 0;
}
