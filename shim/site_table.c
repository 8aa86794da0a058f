/*
 * site_table.c - which call site is this (see site_table.h)?
 *
 * The index is open addressing over 8-byte entries: the upper half of the hash and the site's index + 1. A claimed entry never
 * changes, so a site's index means the same for the life of the process and in the file. A match of the hash is verified
 * against the stored frames.
 *
 * Invariants, tested by number in tests/unit/test_site_table.c (S1 to S5 are at struct kmem_site):
 *   T1  an entry leads to a complete site: it is stored with release after stack and site are written.
 *   T2  two threads that bring the same new stack at once may store it twice; one entry wins, the other site stays without
 *       counters for good.
 */
#include "site_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "capture_file.h"
#include "module_map.h"
#include "pointer_map.h"
#include "raw_sys.h"
#include "settings.h"

#define ENTRIES_MAX ((uint64_t)1 << 22)
#define ENTRIES_MIN ((uint64_t)1 << 12)
#define PROBES_MAX 512

static_assert(ENTRIES_MAX / 2 >= 1u << 21, "the largest budget of sites fills half of the index");
static_assert(POINTER_MAP_SITES_MAX >= 1u << 21, "every site fits the pointer map's words");

static _Atomic uint64_t *entries;
static _Atomic bool has_no_room; // tried once: no event pays for a second try

/* How many entries: fewer where the address space is limited. The limit of the start counts. */
static uint64_t
entry_count(void)
{
	static _Atomic uint64_t known; // relaxed: every thread computes the same
	uint64_t count = atomic_load_explicit(&known, memory_order_relaxed);

	if (count != 0)
		return count;
	for (count = ENTRIES_MAX; count > ENTRIES_MIN && count * sizeof(*entries) > raw_reserve_max(); count /= 2)
		;
	uint64_t none = 0;
	return atomic_compare_exchange_strong_explicit(&known, &none, count, memory_order_relaxed, memory_order_relaxed)
	           ? count : none;
}

static _Atomic uint64_t *
entries_of_index(void)
{
	/* acquire: pairs with the installation below. */
	_Atomic uint64_t *found = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);

	if (found != NULL || atomic_load_explicit(&has_no_room, memory_order_relaxed))
		return found;
	_Atomic uint64_t *fresh = raw_reserve(entry_count() * sizeof(*fresh), PROT_READ | PROT_WRITE);

	if (fresh == NULL) {
		atomic_store_explicit(&has_no_room, true, memory_order_relaxed);
		return NULL;
	}
	if (__atomic_compare_exchange_n(&entries, &found, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	raw_munmap((void *)fresh, entry_count() * sizeof(*fresh));
	return found;
}

struct kmem_site *
site_table_at(uint32_t index_plus_one)
{
	return capture_file_at(KMEM_SECTION_SITES, index_plus_one - 1);
}

static bool
is_same(uint32_t site_index, const struct call_stack *stack, unsigned domain)
{
	const struct kmem_site *site = site_table_at(site_index);
	uint32_t stack_index = atomic_load_explicit(&site->stack, memory_order_relaxed); // S2: constant behind the entry
	const struct kmem_stack *stored = capture_file_at(KMEM_SECTION_RECORDS, stack_index - 1);

	return site->domain == domain && stored->record.flags == stack->flags &&
	       stored->frame_count == stack->frame_count && stored->omitted == stack->omitted &&
	       memcmp(stored->frames, stack->frames, stack->frame_count * sizeof(stack->frames[0])) == 0;
}

/* Writes the stack's record; index + 1, or 0 without room. */
static uint32_t
store_stack(const struct call_stack *stack)
{
	size_t frame_bytes = stack->frame_count * sizeof(stack->frames[0]);
	uint32_t index;
	struct kmem_stack *stored = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*stored) + frame_bytes, &index);

	if (stored == NULL)
		return 0;
	/* First the modules: a new one may raise the generation that this stack belongs to. */
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		if ((stack->frames[i] & KMEM_FRAME_PYTHON) == 0)
			module_map_note_pc(stack->frames[i] & KMEM_FRAME_PC_MASK);
	}
	stored->record.type = KMEM_RECORD_STACK;
	stored->record.flags = stack->flags;
	stored->record.bytes = (uint32_t)(sizeof(*stored) + frame_bytes);
	stored->frame_count = stack->frame_count;
	stored->omitted = stack->omitted;
	stored->omitted_at = stack->omitted_at;
	stored->module_generation = atomic_load_explicit(&capture_file_header()->module_generation,
	                                                 memory_order_relaxed);
	memcpy(stored->frames, stack->frames, frame_bytes);
	capture_file_seal_record(&stored->record);
	return index + 1;
}

static uint32_t
store_site(const struct call_stack *stack, unsigned domain, uint8_t clock)
{
	uint32_t stack_index = store_stack(stack);
	uint32_t index;
	struct kmem_site *site;

	if (stack_index == 0 ||
	    (site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &index)) == NULL)
		return 0;
	site->domain = (uint16_t)domain;
	site->first_epoch = clock;
	/* release: domain and frames before the index that leads to them (S1, F1). Pairs with the reader's acquire. */
	atomic_store_explicit(&site->stack, stack_index, memory_order_release);
	return index + 1;
}

static bool
has_budget(void)
{
	const _Atomic uint64_t *used = &capture_file_header()->used_bytes[KMEM_SECTION_SITES];

	return atomic_load_explicit(used, memory_order_relaxed) < settings.sites_max * sizeof(struct kmem_site);
}

static uint32_t
find(const struct call_stack *stack, unsigned domain, uint8_t clock, bool is_in_budget)
{
	uint64_t hash = (stack->hash ^ domain) * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t tag = hash & UINT64_C(0xffffffff00000000);
	_Atomic uint64_t *index = entries_of_index();
	uint32_t fresh = 0;

	for (uint64_t probe = 0; index != NULL && probe < PROBES_MAX; probe++) {
		_Atomic uint64_t *entry = &index[((hash >> 20) + probe) & (entry_count() - 1)];
		/* acquire: pairs with the claim below (T1). */
		uint64_t seen = atomic_load_explicit(entry, memory_order_acquire);

		if (seen == 0) {
			if (fresh == 0 && (!is_in_budget || (fresh = store_site(stack, domain, clock)) == 0))
				return 0;
			/* release: T1; acquire: the winner's site, when the race is lost. */
			if (atomic_compare_exchange_strong_explicit(entry, &seen, tag | fresh, memory_order_acq_rel,
			                                            memory_order_acquire))
				return fresh;
		}
		if ((seen & UINT64_C(0xffffffff00000000)) == tag && is_same((uint32_t)seen, stack, domain))
			return (uint32_t)seen;
	}
	return 0;
}

uint32_t
site_table_find(const struct call_stack *stack, unsigned domain, uint8_t clock)
{
	static const struct call_stack folded = { .hash = 1, .flags = KMEM_STACK_FOLDED };
	uint32_t found = find(stack, domain, clock, has_budget());

	if (found != 0)
		return found;
	found = find(&folded, domain, clock, true);
	if (found != 0) // else the caller counts a lost event
		capture_file_lost(KMEM_LOST_SITES, 1);
	return found;
}

void
site_table_clear(void)
{
	if (entries != NULL)
		madvise((void *)entries, entry_count() * sizeof(*entries), MADV_DONTNEED);
}
