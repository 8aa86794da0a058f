/*
 * site_table.h - which call site is this?
 *
 * Maps (stack, domain, thread slot) to one dense record in the capture; the hash index is private memory.
 *
 * Context     inside the reentry guard.
 * Safe from   any thread and signal handler; lock-free; no allocation.
 * When full   a site that stands for all stacks with its frames at their outer end, in the last resort one for all stacks of the
 *             domain (KMEM_STACK_MERGED), and KMEM_LOST_SITES is raised; 0 when not even that can be had.
 */
#ifndef SITE_TABLE_H
#define SITE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"
#include "kmem_words.h"
#include "sites/stack_frames.h"
#include "sites/stack_store.h"

#define SITE_OWNER_OWN 256
#define SITE_OWNER_JOINED_BITS 9

/*
 * The thread that owns records, and what it remembers of the shared tables. Each thread with a slot has one of these in its slot;
 * zeroed is empty. own and joined are small caches: an entry is replaced by the next one of its place. CACHES.md says what each
 * answers.
 */
struct site_owner {
	uint16_t slot; // 1 and more
	struct {
		uint32_t other; // a record of another thread; 0 = empty
		uint32_t own;   // this thread's with the same stack and domain
	} own[SITE_OWNER_OWN];
	struct stack_store_last last;
	// by stack: its index as kmem_site.stack has it, and this thread's record; 0 = empty
	_Atomic uint64_t joined[1u << SITE_OWNER_JOINED_BITS];
};

/* Index + 1 of this thread's record; 0 = none. owner NULL: the thread has no slot. `clock` is the generation clock, for a new one. */
uint32_t site_table_find(struct site_owner *owner, const struct call_stack *stack, unsigned domain, uint8_t clock);

/* The same as site_table_own() for another thread's record, which is not read; 0 = not known here. */
static inline uint32_t
site_table_own_known(const struct site_owner *owner, uint32_t site)
{
	uint32_t place = site & (SITE_OWNER_OWN - 1);

	return owner->own[place].other == site ? owner->own[place].own : 0;
}

/* This thread's record of the same stack and domain as that one; 0 = no room for any. */
uint32_t site_table_own(struct site_owner *owner, uint32_t site, uint8_t clock);

/* Live bytes of all threads' records with the stack and domain of that one, at about this moment, and how many records these are. */
int64_t site_table_held(uint32_t site, uint32_t *records);

/* Live bytes of this record alone. */
int64_t site_table_live(const struct kmem_site *site);

/* The same as site_table_held() of the records among which this one has the smallest number; false: another one has. */
bool site_table_held_first(uint32_t site, int64_t *bytes);

struct kmem_site *site_table_at(uint32_t index_plus_one);

/* Of one that was come upon by its number: is it complete (S1)? acquire: then its domain and slot are there. Pairs with store_site(). */
static inline bool
site_table_is_complete(const struct kmem_site *site)
{
	return atomic_load_explicit(&site->stack, memory_order_acquire) != 0;
}

/* Has no other thread a record of the same stack and domain? relaxed: one may just join. */
static inline bool
site_table_is_alone(const struct kmem_site *site)
{
	return (atomic_load_explicit(&site->next_same_stack, memory_order_relaxed) & KMEM_TWIN_MASK) == 0;
}

/* What all records of each domain add up to. */
struct site_totals {
	uint64_t live_bytes;
	uint64_t live_count;
	uint64_t allocated_count;
};
void site_table_totals(struct site_totals totals[KMEM_DOMAINS_MAX]); // one pass over all records
uint64_t site_table_given(uint16_t slot); // bytes of private memory that this thread was given so far; the same pass

void site_table_clear(void); // forked child: one thread; the capture is empty

#endif
