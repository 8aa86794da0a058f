/*
 * boot_arena.h - memory for calls that arrive while the real functions are being looked up.
 *
 * dlsym may call calloc before it can answer what calloc is. What is served here is never given back.
 *
 * Safe from   any thread. When full: NULL, as for any failed allocation.
 */
#ifndef BOOT_ARENA_H
#define BOOT_ARENA_H

#include <stdbool.h>
#include <stddef.h>

void *boot_arena_allocate(size_t alignment, size_t bytes); // zeroed
bool boot_arena_serves(const void *addr);
size_t boot_arena_bytes(const void *addr); // that were asked for

#endif
