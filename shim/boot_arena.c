/*
 * boot_arena.c - memory for calls during symbol lookup (see boot_arena.h).
 */
#include "boot_arena.h"

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

	/* relaxed: the counter hands out room; each piece belongs to one caller. */
	size_t room = HEADER_BYTES + bytes + alignment;
	size_t at = atomic_fetch_add_explicit(&used, room, memory_order_relaxed);
	if (at + room > ARENA_BYTES)
		return NULL;

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
