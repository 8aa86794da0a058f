/*
 * site_table.c - which call site is this (see site_table.h)?
 *
 * The index is open addressing over 8-byte entries: the upper half of the hash and the site's index + 1. A claimed entry never
 * changes, so a site's index means the same for the life of the process and in the file. A match of the hash is verified
 * against the stored frames.
 *
 * The index leads to one record of a stack and domain; those of other threads hang on it in a ring (kmem_site.next_same_stack, 0 = alone).
 *
 * The stacks themselves are in stack_store.h. What stands for a stack that has no room, site_room.h says.
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_site_table.c, T2 in tests/stress/site_table.c (S1 to S5 are at struct
 * kmem_site):
 *   T1  an entry leads to a complete site: it is stored with release after stack and site are written.
 *   T2  two threads that bring the same new stack at once may store it twice; one entry wins, the other record joins its ring.
 *       Two without a slot may leave one without counters for good.
 *   T3  a ring only grows, and a record joins it complete; from every record of a ring all that were in it before are reached.
 */
#include "sites/site_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/effort.h"
#include "base/raw_sys.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "sites/site_room.h"
#include "sites/stack_store.h"
#include "tables/peak.h"
#include "tables/pointer_map.h"

#define PROBES 8 // in a level before the next one is tried
#define PROBES_LAST 512
#define OTHERS_MAX 64 // stacks of the same words in libraries that had the same addresses: what comes then folds

static_assert(POINTER_MAP_SITES_MAX >= (1u << 21) - 1, "every site fits the pointer map's words");
static_assert(KMEM_TWIN_MASK >= 1u << 21, "every site fits the ring's words");

/*
 * The index, in levels, so that a process with few sites touches few pages. An entry stands in the first level in which one of
 * the PROBES places from its home was free. Places never become free again: a free one means that no later level has it either.
 */
static const uint8_t level_bits[] = { 12, 15, 18, 22 };
#define LEVELS (sizeof(level_bits) / sizeof(level_bits[0]))
static_assert(1u << 22 >= 2 * (1u << 21), "the largest budget of sites fills half of the last level");

static _Atomic uint64_t *levels[LEVELS];
static _Atomic bool has_no_room; // tried once: no event pays for a second try
// as in struct site_owner, of all threads without a slot
static _Atomic uint64_t joined_without_slot[1u << SITE_OWNER_JOINED_BITS];

static size_t
level_bytes(unsigned level)
{
	return sizeof(uint64_t) << level_bits[level];
}

/* How many levels: fewer where the address space is limited. The limit of the start counts. */
static unsigned
level_count(void)
{
	static _Atomic unsigned known; // relaxed: every thread computes the same
	unsigned count = atomic_load_explicit(&known, memory_order_relaxed);
	unsigned none = 0;

	if (count != 0)
		return count;
	for (count = LEVELS; count > 1 && level_bytes(count - 1) > raw_reserve_max(); count--)
		;
	return atomic_compare_exchange_strong_explicit(&known, &none, count, memory_order_relaxed, memory_order_relaxed)
	           ? count
	           : none;
}

static _Atomic uint64_t *
entries_of(unsigned level)
{
	/* acquire: pairs with the installation below. */
	_Atomic uint64_t *found = __atomic_load_n(&levels[level], __ATOMIC_ACQUIRE);

	if (found != NULL || atomic_load_explicit(&has_no_room, memory_order_relaxed))
		return found;
	_Atomic uint64_t *fresh = raw_reserve(KMEM_OWN_SITES, level_bytes(level), PROT_READ | PROT_WRITE);

	if (fresh == NULL) {
		atomic_store_explicit(&has_no_room, true, memory_order_relaxed);
		return NULL;
	}
	if (__atomic_compare_exchange_n(&levels[level], &found, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	raw_unreserve((void *)fresh, level_bytes(level));
	return found;
}

struct kmem_site *
site_table_at(uint32_t index_plus_one)
{
	return capture_file_item(KMEM_SECTION_SITES, index_plus_one);
}

/* ---- records ---- */

/* Constant behind the entry that led to the site (S2). */
static uint32_t
stack_of(uint32_t site_index)
{
	return atomic_load_explicit(&site_table_at(site_index)->stack, memory_order_relaxed);
}

static bool
has_words(uint32_t site_index, const struct stack_words *stack, unsigned domain)
{
	return site_table_at(site_index)->domain == domain && stack_store_has(stack_of(site_index), stack);
}

static bool
is_over(uint32_t site_index, const struct stack_words *stack)
{
	return stack_store_is_over(stack_of(site_index), stack);
}

#define RING_MAX 65536u // a record for each slot, and some that lost a race

static uint16_t
slot_of(const struct site_owner *owner)
{
	return owner != NULL ? owner->slot : 0;
}

static uint32_t
store_site(uint32_t stack_index, unsigned domain, uint16_t slot, uint8_t clock, enum site_purpose purpose)
{
	uint32_t index;
	struct kmem_site *site = capture_file_append_sparing(KMEM_SECTION_SITES, sizeof(*site),
	                                                     site_room_spare_bytes(purpose), &index);

	if (site == NULL)
		return 0;
	__atomic_store_n(&site->domain, (uint8_t)domain, __ATOMIC_RELAXED); // a snapshot may look, before anything is held
	site->slot = slot;
	site->first_generation = clock;
	atomic_store_explicit(&site->next_same_stack, kmem_site_check(stack_index, slot, (uint8_t)domain, clock),
	                      memory_order_relaxed);
	/* release: domain and frames before the index that leads to them (S1, F1). Pairs with the reader's acquire. */
	atomic_store_explicit(&site->stack, stack_index, memory_order_release);
	return index + 1;
}

/* Its neighbour in the ring, index + 1; 0 = it is alone. */
static uint32_t
next_same_stack_of(const struct kmem_site *site)
{
	/* acquire: pairs with join_ring() (T3). */
	return atomic_load_explicit(&site->next_same_stack, memory_order_acquire) & KMEM_TWIN_MASK;
}

/* The slot's record in the ring that leads through this one; 0 = it has none there. */
static uint32_t
find_in_ring(uint32_t start, uint16_t slot)
{
	uint32_t at = start;
	uint32_t links = 0;

	do {
		const struct kmem_site *site = site_table_at(at);

		if (site->slot == slot)
			return at;
		at = next_same_stack_of(site);
	} while (at != 0 && at != start && ++links < RING_MAX); // in a cut file it may lead anywhere
	return 0;
}

static void
join_ring(uint32_t at, uint32_t fresh)
{
	struct kmem_site *site = site_table_at(at);
	_Atomic uint32_t *its_next = &site_table_at(fresh)->next_same_stack; // nobody else knows it yet
	uint32_t its_check = atomic_load_explicit(its_next, memory_order_relaxed) & ~KMEM_TWIN_MASK;
	uint32_t seen = atomic_load_explicit(&site->next_same_stack, memory_order_relaxed);

	do {
		uint32_t next = seen & KMEM_TWIN_MASK;

		atomic_store_explicit(its_next, its_check | (next != 0 ? next : at), memory_order_relaxed);
		/* release: T3; acquire: `next` may have joined a moment ago, and who learns `fresh` from this thread goes on to it. */
	} while (!atomic_compare_exchange_weak_explicit(&site->next_same_stack, &seen, (seen & ~KMEM_TWIN_MASK) | fresh,
	                                                memory_order_acq_rel, memory_order_relaxed));
}

/* A ring is as long as there are threads: the owner's record of the stack is looked for once. */
static uint32_t
find_or_join(struct site_owner *owner, uint32_t start, uint8_t clock, enum site_purpose purpose)
{
	const struct kmem_site *site = site_table_at(start);
	uint32_t stack = stack_of(start);
	uint32_t place = stack * UINT32_C(0x9e3779b1) >> (32 - SITE_OWNER_JOINED_BITS);
	_Atomic uint64_t *joined = owner != NULL ? &owner->joined[place] : &joined_without_slot[place];
	/* acquire: of slot 0 it may be another thread's record, which goes on to a third one from here. Pairs with the store below. */
	uint64_t seen = atomic_load_explicit(joined, memory_order_acquire);
	bool is_known = seen != 0 && seen >> 32 == stack && site_table_is_complete(site_table_at((uint32_t)seen));
	uint32_t found = (uint32_t)seen;

	if (!is_known) {
		effort_count(KMEM_EFFORT_RINGS);
		found = find_in_ring(start, slot_of(owner));
	}
	if (found == 0 && site_room_has_budget(purpose)) {
		found = store_site(stack, site->domain, slot_of(owner), clock, purpose);
		if (found != 0)
			join_ring(start, found);
	}
	if (found != 0)
		atomic_store_explicit(joined, (uint64_t)stack << 32 | found, memory_order_release);
	return found;
}

static uint64_t
hash_of(const struct stack_words *stack, unsigned domain)
{
	return (stack->hash ^ domain) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Stores the stack and this thread's record of it; 0 = no room. */
static uint32_t
store(struct site_owner *owner, const struct stack_words *stack, unsigned domain, uint8_t clock,
      enum site_purpose purpose)
{
	uint32_t stack_index;

	/* Nothing is taken by this: without room for the record, the stack would be stored at every event. */
	if (capture_file_append_sparing(KMEM_SECTION_SITES, 0, sizeof(struct kmem_site) + site_room_spare_bytes(purpose),
	                                &stack_index) == NULL)
		return 0;
	stack_index = stack_store_add(owner != NULL ? &owner->last : NULL, stack, site_room_spare_bytes(purpose));
	effort_count(KMEM_EFFORT_NEW_STACKS);
	return stack_index != 0 ? store_site(stack_index, domain, slot_of(owner), clock, purpose) : 0;
}

static uint32_t
find(struct site_owner *owner, const struct stack_words *stack, unsigned domain, uint8_t clock,
     enum site_purpose purpose)
{
	uint64_t hash = hash_of(stack, domain);
	uint64_t tag = hash & UINT64_C(0xffffffff00000000);
	unsigned count = level_count();
	unsigned others = 0; // the same words in libraries that are gone
	uint32_t fresh = 0;

	for (unsigned level = 0; level < count; level++) {
		_Atomic uint64_t *entries = entries_of(level);
		uint64_t mask = (UINT64_C(1) << level_bits[level]) - 1;
		uint64_t probes = level + 1 < count ? PROBES : PROBES_LAST;

		for (uint64_t probe = 0; entries != NULL && probe < probes; probe++) {
			_Atomic uint64_t *entry = &entries[((hash >> 20) + probe) & mask];
			/* acquire: pairs with the claim below (T1). */
			uint64_t seen = atomic_load_explicit(entry, memory_order_acquire);

			if (seen == 0) {
				if (fresh == 0 && site_room_has_budget(purpose))
					fresh = store(owner, stack, domain, clock, purpose);
				if (fresh == 0)
					return 0;
				/* release: T1; acquire: the winner's site, when the race is lost. */
				if (atomic_compare_exchange_strong_explicit(entry, &seen, tag | fresh, memory_order_acq_rel,
				                                            memory_order_acquire))
					return fresh;
			}
			if ((seen & UINT64_C(0xffffffff00000000)) != tag || !has_words((uint32_t)seen, stack, domain))
				continue;
			if (is_over((uint32_t)seen, stack)) {
				if (++others == OTHERS_MAX)
					return 0;
				continue;
			}
			if (fresh == 0 || site_table_at((uint32_t)seen)->slot == slot_of(owner))
				return find_or_join(owner, (uint32_t)seen, clock, purpose);
			join_ring((uint32_t)seen, fresh); // T2
			return fresh;
		}
	}
	return 0;
}

static uint32_t
find_merged(struct site_owner *owner, unsigned domain, uint8_t clock)
{
	static const uint64_t no_frame;
	static const struct stack_words folded = { .hash = 1, .flags = KMEM_STACK_MERGED, .frames = &no_frame };
	uint32_t found = find(owner, &folded, domain, clock, SITE_FOR_MERGED);

	if (found != 0) // else the caller counts a lost event
		capture_file_lost(KMEM_LOST_SITES, 1);
	return found;
}

/* The stack without its inner frames, as few of them as there is room for; 0 = not even the outermost one has a place. */
static uint32_t
find_parent(struct site_owner *owner, const struct call_stack *stack, unsigned domain, uint8_t clock)
{
	enum site_purpose purpose = SITE_FOR_PARENT;
	uint32_t count = stack->frame_count;
	struct stack_words outer;

	while (site_room_next_parent(stack, &count, &purpose, &outer)) {
		uint32_t found = find(owner, &outer, domain, clock, purpose);

		if (found != 0) {
			capture_file_lost(KMEM_LOST_SITES, 1);
			return found;
		}
	}
	return 0;
}

uint32_t
site_table_find(struct site_owner *owner, const struct call_stack *call_stack, unsigned domain, uint8_t clock)
{
	const struct stack_words stack = stack_words_of(call_stack);
	uint32_t found = find(owner, &stack, domain, clock, SITE_FOR_STACK);

	if (found == 0)
		found = find_parent(owner, call_stack, domain, clock);
	return found != 0 ? found : find_merged(owner, domain, clock);
}

uint32_t
site_table_own(struct site_owner *owner, uint32_t site, uint8_t clock)
{
	uint64_t place = site & (SITE_OWNER_OWN - 1);
	uint32_t found;

	found = owner != NULL ? site_table_own_known(owner, site) : 0;
	if (found != 0)
		return found;
	if (site_table_at(site)->slot == slot_of(owner))
		return site;
	if (!thread_stack_has_room())
		return 0;
	found = find_or_join(owner, site, clock, SITE_FOR_RELEASE);
	if (found == 0)
		return find_merged(owner, site_table_at(site)->domain, clock);
	if (owner != NULL) {
		owner->own[place].other = site;
		owner->own[place].own = found;
	}
	return found;
}

int64_t
site_table_held(uint32_t site, uint32_t *records)
{
	uint32_t at = site;
	uint32_t links = 0;
	int64_t held = 0;

	do {
		const struct kmem_site *record = site_table_at(at);

		held += kmem_peak_now_signed(peak_load(&record->peak));
		at = next_same_stack_of(record);
		++links;
	} while (at != 0 && at != site && links < RING_MAX); // as in find_in_ring()
	*records = links;
	return held;
}

int64_t
site_table_live(const struct kmem_site *site)
{
	return kmem_peak_now_signed(peak_load(&site->peak));
}

/* A ring leads from its first record to the youngest, and on to older ones: from all but the first the next step is to a smaller number. */
bool
site_table_held_first(uint32_t site, int64_t *bytes)
{
	uint32_t links = 0;
	uint32_t at = site;

	*bytes = 0;
	do {
		const struct kmem_site *record = site_table_at(at);

		if (at < site)
			return false;
		*bytes += site_table_live(record);
		at = next_same_stack_of(record);
	} while (at != 0 && at != site && ++links < RING_MAX); // as in find_in_ring()
	return true;
}

void
site_table_totals(struct site_totals totals[KMEM_DOMAINS_MAX])
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);

	memset(totals, 0, KMEM_DOMAINS_MAX * sizeof(totals[0]));
	/* relaxed: counters, which go on meanwhile. */
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);

		if (!site_table_is_complete(site))
			continue;
		struct site_totals *total = &totals[site->domain % KMEM_DOMAINS_MAX];
		uint64_t allocated_count = atomic_load_explicit(&site->allocated_count, memory_order_relaxed);

		total->allocated_count += allocated_count;
		total->live_count += allocated_count - atomic_load_explicit(&site->freed_count, memory_order_relaxed);
		total->live_bytes += atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed) -
		                     atomic_load_explicit(&site->freed_bytes, memory_order_relaxed);
	}
}

uint64_t
site_table_given(uint16_t slot)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);
	uint64_t given_bytes = 0;

	/* relaxed: counters, of the caller's own thread. */
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);

		if (site_table_is_complete(site) && site->slot == slot && kmem_domain_is_private(site->domain))
			given_bytes += atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed);
	}
	return given_bytes;
}

void
site_table_clear(void)
{
	for (unsigned level = 0; level < LEVELS; level++) {
		if (levels[level] != NULL)
			raw_madvise((void *)levels[level], level_bytes(level), MADV_DONTNEED);
	}
	memset(joined_without_slot, 0, sizeof(joined_without_slot));
}
