/*
 * hooks_new.c - C++'s operator new and delete: handed on to the definition that the caller would have without us.
 *
 * The C++ library's own definition calls malloc: there the caller goes straight on by a jump, our frame is on no stack, and nothing is
 * recorded here. An allocator's definition (jemalloc, tcmalloc, mimalloc) does not: it is called inside the guard and recorded
 * (hooks_malloc.c).
 *
 *   everybody     one pair of words for each function: where to go, and the real function to record with
 *   table         where libraries have definitions of their own: the page of the caller's code leads to its library's row of such
 *                 pairs. Code that is in no object, such as a compiler's at run time, shares the row of the page 0
 *
 * Invariants, tested by tests/preload/test_operator_new.py:
 *   N1  `real` is stored before `go`: a thread that sees `go` jumps with the real one
 *   N2  a row belongs to one library until that is unloaded. So a caller from a page that leads to a row is never led to another
 *       library's.
 *   N3  a library is looked up once for all functions, whatever the answer is, also "nobody": a later call finds its row by the page of
 *       its first byte, and waits for nobody.
 *
 * Safe from   wherever operator new is; a forked child, whatever another thread was doing.
 * When failing  a caller without a row is looked up each time; where nobody defines the function it is malloc and free.
 */
#include "hooks/hooks_new.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/effort.h"
#include "base/loaded_object.h"
#include "base/raw_sys.h"
#include "base/real_new.h"
#include "base/reentry_guard.h"
#include "base/wait_lock.h"
#include "hooks/hooks_new_entries.h"

struct route {
	_Atomic(void *) go; // NULL: not looked up yet
	_Atomic(void *) real;
};

_Static_assert(sizeof(struct route) == ROUTE_BYTES, "the assembly counts them");

struct row {
	const struct link_map *caller;   // NULL and caller_end 0: free
	const struct link_map *provider; // a stranger: it may be unloaded while the caller stays
	uint64_t caller_addr;
	uint64_t caller_end;
	uint64_t provider_addr;
};

struct table {
	struct route routes[ROWS_MAX][REAL_NEW_COUNT];
	_Atomic(_Atomic uint16_t *) regions[REGIONS_MAX]; // NULL: no page of it is known
	struct row rows[ROWS_MAX];
};
_Static_assert(offsetof(struct table, regions) == (size_t)ROWS_MAX * REAL_NEW_COUNT * ROUTE_BYTES,
               "the assembly counts them");

#define FIRST(index, name, record) extern void hooks_new_first_##name(void) __attribute__((visibility("hidden")));
REAL_NEW_FUNCTIONS(FIRST)
#undef FIRST

#define EVERYBODY(index, name, record) [index] = { .go = (void *)hooks_new_first_##name },
struct route hooks_new_everybody[REAL_NEW_COUNT] ASSEMBLY_CALLS = { REAL_NEW_FUNCTIONS(EVERYBODY) };
#undef EVERYBODY

_Atomic(struct table *) hooks_new_table ASSEMBLY_CALLS; // NULL: nobody needs it yet

static unsigned row_end = 1;
static struct wait_lock lock; // of rows: one that is half filled leads nowhere yet

#define RECORD(index, name, record) [index] = (void *)record,
static void *const recorders[] = { REAL_NEW_FUNCTIONS(RECORD) };
#undef RECORD
#define NOBODY(index, name, record) [index] = (void *)record##_nobody,
static void *const nobodys[] = { REAL_NEW_FUNCTIONS(NOBODY) };
#undef NOBODY

struct pair {
	void *go;
	void *real;
};

struct pair hooks_new_find(unsigned function, const void *caller) ASSEMBLY_CALLS;

static void
store(struct route *route, struct pair pair)
{
	atomic_store_explicit(&route->real, pair.real, memory_order_relaxed);
	// N1. Pairs with the loads of the assembly, which keep their order
	atomic_store_explicit(&route->go, pair.go, memory_order_release);
}

/* The number of the row of that page. NULL: its region is not known, or there is no memory for it. */
static _Atomic uint16_t *
page_entry(struct table *table, uint64_t addr, bool may_make)
{
	uint64_t region = addr >> REGION_SHIFT;
	_Atomic uint16_t *pages;
	_Atomic uint16_t *fresh;

	if (region >= REGIONS_MAX)
		return NULL;
	// acquire: the zeros of a new one. Pairs with the exchange below
	pages = atomic_load_explicit(&table->regions[region], memory_order_acquire);
	if (pages == NULL && may_make) {
		fresh = raw_reserve(KMEM_OWN_OTHER, REGION_PAGES * sizeof *pages, PROT_READ | PROT_WRITE);
		/* release: its zeros. Pairs with the load above and the assembly; who came first stays */
		if (fresh != NULL && !atomic_compare_exchange_strong_explicit(&table->regions[region], &pages, fresh,
		                                                              memory_order_acq_rel, memory_order_acquire))
			raw_unreserve(fresh, REGION_PAGES * sizeof *pages);
		else
			pages = fresh;
	}
	return pages != NULL ? &pages[addr >> PAGE_SHIFT & (REGION_PAGES - 1)] : NULL;
}

static unsigned
row_at(struct table *table, uint64_t addr)
{
	_Atomic uint16_t *entry = page_entry(table, addr, false);

	return entry != NULL ? atomic_load_explicit(entry, memory_order_acquire) : 0; // the row with it
}

static void
lead(struct table *table, uint64_t addr, unsigned row)
{
	_Atomic uint16_t *entry = page_entry(table, addr, true);

	if (entry != NULL)
		atomic_store_explicit(entry, (uint16_t)row,
		                      memory_order_release); // the row first. Pairs with the assembly and row_at()
}

static struct table *
table_made(void)
{
	struct table *table = atomic_load_explicit(&hooks_new_table, memory_order_relaxed);

	if (table == NULL) {
		table = raw_reserve(KMEM_OWN_OTHER, sizeof *table, PROT_READ | PROT_WRITE);
		atomic_store_explicit(&hooks_new_table, table, memory_order_release); // pairs with the assembly
	}
	return table;
}

/* 0 = all are taken. */
static unsigned
free_row(const struct table *table)
{
	for (unsigned i = 1; i < row_end; i++) {
		if (table->rows[i].caller == NULL && table->rows[i].caller_end == 0)
			return i;
	}
	return row_end < ROWS_MAX ? row_end++ : 0;
}

static struct pair
pair_of(unsigned function, const struct real_new *found)
{
	if (found->addr == NULL)
		return (struct pair){ nobodys[function], NULL };
	return (struct pair){ found->has_own_malloc ? recorders[function] : found->addr, found->addr };
}

/* With the lock. A stranger that a later library brings is not the answer for code that is in no object: so "nobody" is none, there. */
static void
fill_row(struct table *table, unsigned row, const struct loaded_object *caller,
         const struct real_new found[REAL_NEW_COUNT])
{
	struct row *fresh = &table->rows[row];

	*fresh = (struct row){ .caller = caller->link_map,
		                   .caller_addr = caller->start_addr,
		                   .caller_end = caller->end_addr };
	for (unsigned i = 0; i < REAL_NEW_COUNT; i++) {
		struct loaded_object provider;

		if (found[i].addr != NULL || caller->link_map != NULL)
			store(&table->routes[row][i], pair_of(i, &found[i]));
		if (found[i].addr != NULL && found[i].relation == REAL_NEW_STRANGERS &&
		    loaded_object_find((uintptr_t)found[i].addr, &provider)) {
			fresh->provider = provider.link_map;
			fresh->provider_addr = provider.start_addr;
		}
	}
}

static void
remember(const struct loaded_object *caller, const void *page, const struct real_new found[REAL_NEW_COUNT])
{
	struct table *table;
	_Atomic uint16_t *first;
	unsigned row = 0;

	if (!wait_lock_take(&lock))
		return;
	table = table_made();
	first = table != NULL ? page_entry(table, caller->start_addr, true) : NULL;
	if (first != NULL)
		row = atomic_load_explicit(first, memory_order_relaxed); // written with the lock alone
	if (first != NULL && row == 0)
		row = free_row(table);
	if (row != 0) {
		fill_row(table, row, caller, found);
		lead(table, caller->start_addr, row);
		if (caller->link_map != NULL)
			lead(table, (uintptr_t)page, row);
	}
	wait_lock_give(&lock);
}

/* False: the library has no row yet. */
static bool
find_row(unsigned function, const struct loaded_object *caller, const void *page, struct pair *pair)
{
	struct table *table = atomic_load_explicit(&hooks_new_table, memory_order_acquire); // pairs with table_made()
	unsigned row = table != NULL ? row_at(table, caller->start_addr) : 0;

	// of what was unloaded behind our back the row is another library's
	if (row == 0 || table->rows[row].caller != caller->link_map || table->rows[row].caller_addr != caller->start_addr)
		return false;
	pair->go = atomic_load_explicit(&table->routes[row][function].go, memory_order_acquire); // N1: pairs with store()
	pair->real = atomic_load_explicit(&table->routes[row][function].real, memory_order_relaxed);
	if (caller->link_map != NULL)
		lead(table, (uintptr_t)page, row);
	return pair->go != NULL;
}

struct pair
hooks_new_find(unsigned function, const void *caller)
{
	int host_errno = errno;
	struct real_new found[REAL_NEW_COUNT];
	struct loaded_object object;
	struct pair pair;

	effort_count(KMEM_EFFORT_NEW_PAGES);
	if (!loaded_object_find((uintptr_t)caller, &object))
		object = (struct loaded_object){ .end_addr = 1 };
	if (!find_row(function, &object, caller, &pair)) {
		uint64_t begun = effort_begin();
		bool is_known = real_new_find(caller, found);

		effort_count(KMEM_EFFORT_NEW_SEARCHES);
		effort_end(begun, KMEM_EFFORT_NEW_SEARCHES);

		for (unsigned i = 0; is_known && i < REAL_NEW_COUNT; i++) {
			if (found[i].addr != NULL && found[i].relation == REAL_NEW_EVERYBODYS)
				store(&hooks_new_everybody[i], pair_of(i, &found[i]));
		}
		pair = pair_of(function, &found[function]);
		if (is_known && (found[function].addr == NULL || found[function].relation != REAL_NEW_EVERYBODYS)) {
			bool was_outside = reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK); // a handler waits for no lock of ours

			remember(&object, caller, found);
			if (was_outside)
				reentry_guard_leave();
		}
	}
	errno = host_errno;
	return pair;
}

/* With the lock. */
static void
forget(struct table *table, unsigned row)
{
	struct row *gone = &table->rows[row];

	for (uint64_t at = gone->caller_addr; at < gone->caller_end; at += 1u << PAGE_SHIFT) {
		_Atomic uint16_t *entry = page_entry(table, at, false);

		if (entry != NULL)
			atomic_store_explicit(entry, 0, memory_order_relaxed);
		else
			at |= REGION_PAGES * (1u << PAGE_SHIFT) - (1u << PAGE_SHIFT); // none of its region is known
	}
	for (unsigned i = 0; i < REAL_NEW_COUNT; i++)
		atomic_store_explicit(&table->routes[row][i].go, NULL,
		                      memory_order_relaxed); // a reader of before still has `real`
	*gone = (struct row){ 0 };
}

void
hooks_new_unloaded(void)
{
	struct table *table = atomic_load_explicit(&hooks_new_table, memory_order_relaxed);

	if (table == NULL || !wait_lock_take(&lock))
		return;
	for (unsigned i = 1; i < row_end; i++) {
		const struct row *row = &table->rows[i];

		if ((row->caller != NULL && !loaded_object_is_there(row->caller, row->caller_addr)) ||
		    (row->provider != NULL && !loaded_object_is_there(row->provider, row->provider_addr)))
			forget(table, i);
	}
	wait_lock_give(&lock);
}
