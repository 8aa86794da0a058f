/*
 * real_libc.c - the functions that our hooks stand in front of (see real_libc.h).
 */
#include "base/real_libc.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/loaded_object.h"
#include "base/loader_list.h"

struct real_libc real_libc;
struct real_libc_front real_libc_front;

enum { NOT_LOOKED, LOOKING, FOUND };

static _Atomic int state;

static const struct {
	const char *name;
	void *slot;
	bool is_optional;
} table[] = {
#define ROW(result, member, parameters, symbol, may_be_missing) { symbol, &real_libc.member, may_be_missing },
	REAL_LIBC_FUNCTIONS(ROW)
#undef ROW
};

/*
 * Who defines this function first, for the program? NULL: nobody. Not dlsym(RTLD_DEFAULT), for which it is a place in a program that takes
 * a function's address and is not position-independent, whoever defines the function. While the library is loaded.
 */
static void *
find_first(const char *name)
{
	struct loaded_object ours;
	const struct link_map *at;

	if (!loaded_object_find((uintptr_t)find_first, &ours))
		return NULL;
	for (at = ours.link_map; at->l_prev != NULL; at = at->l_prev)
		;
	return loader_list_symbol(at, name);
}

static void *
find_front(const char *name)
{
	void *first = find_first(name);
	struct loaded_object ours;
	struct loaded_object theirs;

	if (!loaded_object_find((uintptr_t)find_front, &ours) || !loaded_object_find((uintptr_t)first, &theirs))
		return NULL;
	return ours.link_map != theirs.link_map ? first : NULL;
}

/*
 * What may not exist is not asked of the loader: it would keep a message, which another preload's free() may trip over. Nor what has two
 * versions: an older glibc gives the older one, whose pthread_cond_signal() wakes nobody who waits in the other.
 */
static void *
find_next(const char *name, bool is_optional)
{
	struct loaded_object ours;

	if (!is_optional)
		return dlsym(RTLD_NEXT, name);
	return loaded_object_find((uintptr_t)find_next, &ours) ? loader_list_symbol(ours.link_map->l_next, name) : NULL;
}

bool
real_libc_find(void)
{
	int seen = atomic_load_explicit(&state, memory_order_acquire); // pairs with the release below

	if (seen == FOUND)
		return true;
	if (seen == LOOKING ||
	    !atomic_compare_exchange_strong_explicit(&state, &seen, LOOKING, memory_order_relaxed, memory_order_relaxed))
		return false;
	loader_list_start();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		*(void **)table[i].slot = find_next(table[i].name, table[i].is_optional);
	*(void **)&real_libc_front.malloc = find_front("malloc");
	*(void **)&real_libc_front.realloc = find_front("realloc");
	*(void **)&real_libc_front.free = find_front("free");
	atomic_store_explicit(&state, FOUND, memory_order_release); // the pointers first
	return true;
}

bool
real_libc_is_found(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == FOUND; // pairs with real_libc_find()
}

bool
real_libc_heap_is_glibc(void)
{
	const uintptr_t functions[] = {
		(uintptr_t)real_libc.malloc,         (uintptr_t)real_libc.calloc,        (uintptr_t)real_libc.realloc,
		(uintptr_t)real_libc.free,           (uintptr_t)real_libc.memalign,      (uintptr_t)real_libc.valloc,
		(uintptr_t)real_libc.posix_memalign, (uintptr_t)real_libc.aligned_alloc, (uintptr_t)real_libc.pvalloc,
	};
	struct loaded_object libc;

	if (!loaded_object_find((uintptr_t)gnu_get_libc_version, &libc))
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (functions[i] < libc.start_addr || functions[i] >= libc.end_addr)
			return false;
	}
	return true;
}
