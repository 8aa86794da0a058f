/*
 * hooks_new.c - C++'s operator new and delete: handed on to the definition that the caller would have without us.
 *
 * The C++ library's own definition calls malloc: there the caller goes straight on by a jump, our frame is on no stack, and nothing is
 * recorded here. An allocator's definition (jemalloc, tcmalloc, mimalloc) does not: it is called inside the guard and recorded
 * (hooks_malloc.c).
 *
 *   everybody     one pair of words for each function: where to go, and the real function to record with
 *   page_routes   where libraries have definitions of their own: the page of the caller's code leads to its library's row of such pairs
 *
 * Invariants, tested by tests/preload/test_operator_new.py:
 *   N1  `real` is stored before `go`: a thread that sees `go` jumps with the real one
 *   N2  a row belongs to one library until that is unloaded. So a caller from a page that leads to a row is never led to another
 *       library's.
 *
 * Safe from   wherever operator new is.
 * When failing  a caller without a row is looked up each time; where nobody defines the function it is malloc and free.
 */
#include "hooks/hooks_new.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/loaded_object.h"
#include "base/real_new.h"
#include "base/wait_lock.h"
#include "hooks/hooks_new_entries.h"

struct route {
	_Atomic(void *) go; // NULL: not looked up yet
	_Atomic(void *) real;
};

_Static_assert(sizeof(struct route) == ROUTE_BYTES, "the assembly counts them");

struct row {
	const struct link_map *caller;   // NULL: free
	const struct link_map *provider; // of no relation to the caller: it may be unloaded while the caller stays
	uint64_t caller_addr;
	uint64_t provider_addr;
};

#define FIRST(index, name, record) extern void hooks_new_first_##name(void) __attribute__((visibility("hidden")));
REAL_NEW_FUNCTIONS(FIRST)
#undef FIRST

#define EVERYBODY(index, name, record) [index] = { .go = (void *)hooks_new_first_##name },
struct route hooks_new_everybody[REAL_NEW_COUNT] ASSEMBLY_CALLS = { REAL_NEW_FUNCTIONS(EVERYBODY) };
#undef EVERYBODY

/* Page of code << ROW_BITS | row. */
_Atomic uint64_t hooks_new_page_routes[1u << PAGES_BITS] ASSEMBLY_CALLS;
struct route hooks_new_rows[ROWS_MAX][REAL_NEW_COUNT] ASSEMBLY_CALLS;

static struct row rows[ROWS_MAX];
static unsigned row_end = 1;
static struct wait_lock lock = WAIT_LOCK_FREE;

#define NAME(index, name, record) [index] = #name,
static const char *const names[] = { REAL_NEW_FUNCTIONS(NAME) };
#undef NAME
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

static bool
is_loaded(const struct link_map *map, uint64_t addr)
{
	struct loaded_object object;

	return loaded_object_find(addr, &object) && object.link_map == map && object.start_addr == addr;
}

/* Code that is in no object, such as a compiler's at run time, has a row of its own: that of the address 0. 0 = there is no room. */
static unsigned
row_of(const struct loaded_object *caller)
{
	unsigned free_row = 0;

	for (unsigned i = 1; i < row_end; i++) {
		if (rows[i].caller == caller->link_map && rows[i].caller_addr == caller->start_addr)
			return i;
		if (rows[i].caller == NULL && rows[i].caller_addr == 0 && free_row == 0)
			free_row = i;
	}
	return free_row != 0 ? free_row : row_end < ROWS_MAX ? row_end++ : 0;
}

static void
remember(unsigned function, const void *caller, struct real_new found, struct pair pair)
{
	struct loaded_object object = { 0 };
	struct loaded_object provider = { 0 };
	uint64_t page = (uintptr_t)caller >> PAGE_SHIFT;
	unsigned row;

	if (!loaded_object_find((uintptr_t)caller, &object) || !loaded_object_find((uintptr_t)found.addr, &provider) ||
	    !wait_lock_take(&lock))
		return;
	row = row_of(&object);
	if (row != 0) {
		rows[row].caller = object.link_map;
		rows[row].caller_addr = object.start_addr;
		if (found.is_of_no_relation) {
			rows[row].provider = provider.link_map;
			rows[row].provider_addr = provider.start_addr;
		}
		store(&hooks_new_rows[row][function], pair);
		/* release: the row first. Pairs with the loads of the assembly. */
		atomic_store_explicit(&hooks_new_page_routes[page & ((1u << PAGES_BITS) - 1)], page << ROW_BITS | row,
		                      memory_order_release);
	}
	wait_lock_give(&lock);
}

struct pair
hooks_new_find(unsigned function, const void *caller)
{
	int host_errno = errno;
	struct real_new found = real_new_find(names[function], caller);
	struct pair pair = { found.has_own_malloc ? recorders[function] : found.addr, found.addr };

	if (found.addr == NULL)
		pair.go = nobodys[function]; // a library may still bring it
	else if (found.is_everybodys)
		store(&hooks_new_everybody[function], pair);
	else
		remember(function, caller, found, pair);
	errno = host_errno;
	return pair;
}

static void
forget(unsigned row)
{
	for (unsigned i = 0; i < 1u << PAGES_BITS; i++) {
		if ((atomic_load_explicit(&hooks_new_page_routes[i], memory_order_relaxed) & (ROWS_MAX - 1)) == row)
			atomic_store_explicit(&hooks_new_page_routes[i], 0, memory_order_relaxed);
	}
	for (unsigned i = 0; i < REAL_NEW_COUNT; i++)
		store(&hooks_new_rows[row][i], (struct pair){ NULL, NULL });
	rows[row] = (struct row){ 0 };
}

void
hooks_new_unloaded(void)
{
	if (row_end == 1 || !wait_lock_take(&lock))
		return;
	for (unsigned i = 1; i < row_end; i++) {
		if (rows[i].caller != NULL &&
		    (!is_loaded(rows[i].caller, rows[i].caller_addr) ||
		     (rows[i].provider != NULL && !is_loaded(rows[i].provider, rows[i].provider_addr))))
			forget(i);
	}
	wait_lock_give(&lock);
}
