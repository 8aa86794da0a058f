/*
 * real_libc.c - the functions that our hooks stand in front of (see real_libc.h).
 */
#include "real_libc.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdatomic.h>
#include <stdint.h>

#include "loaded_object.h"

struct real_libc real_libc;

enum { NOT_LOOKED, LOOKING, FOUND };

static _Atomic int state;

static const struct {
	const char *name;
	void *slot;
} table[] = {
	{ "malloc", &real_libc.malloc },
	{ "calloc", &real_libc.calloc },
	{ "realloc", &real_libc.realloc },
	{ "free", &real_libc.free },
	{ "posix_memalign", &real_libc.posix_memalign },
	{ "aligned_alloc", &real_libc.aligned_alloc },
	{ "memalign", &real_libc.memalign },
	{ "valloc", &real_libc.valloc },
	{ "pvalloc", &real_libc.pvalloc },
	{ "malloc_trim", &real_libc.malloc_trim },
	{ "free_sized", &real_libc.free_sized },
	{ "free_aligned_sized", &real_libc.free_aligned_sized },
	{ "mmap", &real_libc.mmap },
	{ "munmap", &real_libc.munmap },
	{ "mremap", &real_libc.mremap },
	{ "sigaction", &real_libc.sigaction },
	{ "signal", &real_libc.signal },
	{ "prctl", &real_libc.prctl },
	{ "pthread_create", &real_libc.pthread_create },
	{ "_exit", &real_libc._exit },
	{ "execve", &real_libc.execve },
	{ "execvpe", &real_libc.execvpe },
	{ "fexecve", &real_libc.fexecve },
};

bool
real_libc_find(void)
{
	int seen = atomic_load_explicit(&state, memory_order_acquire); // pairs with the release below

	if (seen == FOUND)
		return true;
	if (seen == LOOKING || !atomic_compare_exchange_strong_explicit(&state, &seen, LOOKING, memory_order_relaxed,
	                                                                memory_order_relaxed))
		return false;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		*(void **)table[i].slot = dlsym(RTLD_NEXT, table[i].name);
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
