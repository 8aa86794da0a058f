/*
 * address_table.h - a lock-free hash from address to block, for the addresses the shadow cannot hold.
 *
 * Safe from   any thread and signal handler. One thread at a time owns an address: the allocator guarantees it.
 * When full   put fails; the caller counts the loss. So it does for the addresses 0 and 1 (a device's allocation of no
 *             bytes). Where the address space is limited the table is smaller.
 */
#ifndef ADDRESS_TABLE_H
#define ADDRESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct address_block {
	uint64_t bytes;
	uint32_t site; // index + 1
	uint8_t generation;
};

/*
 * Invariants, tested by number in tests/unit/shim/tables/test_address_table.c:
 *   A1  a key is 0 (free), 1 (being written) or an address above 1; an address is never further from the slot where it belongs than the
 *       reach that is noted there, so a probe may stop at that: however many addresses came and went.
 *   A2  the block is written before the key is stored (release) and read after the key was seen (acquire).
 */
struct address_table {
	struct address_slots *slots; // reserved on first use
	unsigned slots_log2_max;     // 0 = as many as there may be; set before the first use
	_Atomic bool is_stuck;       // no address space for it: everything is refused, without asking again
};

void address_table_reserve(struct address_table *table); // now, instead of at the first put

enum address_table_put {
	ADDRESS_TABLE_FULL, // nothing is changed
	ADDRESS_TABLE_STORED,
	ADDRESS_TABLE_REPLACED, // the address was in the table, with *old
};
enum address_table_put address_table_put(struct address_table *table, uint64_t addr, struct address_block block,
                                         struct address_block *old);
/* It stays in the table. */
bool address_table_find(struct address_table *table, uint64_t addr, struct address_block *block);
bool address_table_take(struct address_table *table, uint64_t addr, struct address_block *block);
/* If it is of that site; 0 = of any. */
bool address_table_take_of(struct address_table *table, uint64_t addr, uint32_t site, struct address_block *block);
/*
 * Takes one after the other that `is_meant` says; *cursor begins at 0. What others put or take meanwhile may be missed. False:
 * there are no more.
 */
bool address_table_sweep(struct address_table *table, uint64_t *cursor,
                         bool (*is_meant)(uint64_t addr, struct address_block, void *), void *context,
                         struct address_block *block);
void address_table_clear(struct address_table *table); // forked child: one thread

#endif
