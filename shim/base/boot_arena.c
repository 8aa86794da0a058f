/*
 * boot_arena.c - memory for calls during symbol lookup (see boot_arena.h).
 */
#include "base/boot_arena.h"

#include <stdatomic.h>
#include <stdint.h>

#define ARENA_BYTES 65536
#define HEADER_BYTES 16

static _Alignas(64) char arena[ARENA_BYTES];
static _Atomic size_t used;

void *
boot_arena_allocate(size_t alignment, size_t bytes)
{
	if (alignment < HEADER_BYTES)
		alignment = HEADER_BYTES;
	if (bytes > ARENA_BYTES || alignment > ARENA_BYTES)
		return NULL;

	/* relaxed: the counter hands out room; each piece belongs to one caller. What does not fit leaves it as it is. */
	size_t room = HEADER_BYTES + bytes + alignment;
	size_t at = atomic_load_explicit(&used, memory_order_relaxed);
	do {
		if (room > ARENA_BYTES - at)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&used, &at, at + room, memory_order_relaxed, memory_order_relaxed));

	uintptr_t addr = ((uintptr_t)arena + at + HEADER_BYTES + alignment - 1) & ~(alignment - 1);
	*(size_t *)(addr - HEADER_BYTES) = bytes;
	return (void *)addr;
}

bool
boot_arena_serves(const void *addr)
{
	return (uintptr_t)addr - (uintptr_t)arena < ARENA_BYTES;
}

size_t
boot_arena_bytes(const void *addr)
{
	return *(const size_t *)((uintptr_t)addr - HEADER_BYTES);
}
