/*
 * python_memory.h - loads from objects whose C types we do not have.
 *
 * Safe from   any hook, for addresses that are inside live objects of this process. What is read belongs to
 *             the calling thread or is immutable; python_frames.c says why.
 */
#ifndef PYTHON_MEMORY_H
#define PYTHON_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kmem_format.h"

#define PYTHON_MEMORY_LOWEST 65536u // vm.mmap_min_addr of every distribution

/* Can an object of the interpreter live here? Refuses NULL, odd values and the debug allocator's fill. */
static inline bool
python_memory_is_object(uint64_t addr)
{
	uint64_t above = addr - PYTHON_MEMORY_LOWEST;

	/* One comparison: bits that must be 0 become the highest ones. */
	return (above >> 3 | above << 61) < (UINT64_C(1) << KMEM_ADDRESS_BITS) / 8 - PYTHON_MEMORY_LOWEST / 8;
}

/* python_memory_u64(addr) and so on: the number that lies there, at any alignment. */
#define PYTHON_MEMORY_LOAD(type, suffix)                     \
	static inline type python_memory_##suffix(uint64_t addr) \
	{                                                        \
		type value;                                          \
                                                             \
		memcpy(&value, (const void *)addr, sizeof(value));   \
		return value;                                        \
	}

PYTHON_MEMORY_LOAD(uint64_t, u64)
PYTHON_MEMORY_LOAD(int32_t, i32)
PYTHON_MEMORY_LOAD(uint32_t, u32)
PYTHON_MEMORY_LOAD(uint16_t, u16)
PYTHON_MEMORY_LOAD(uint8_t, u8)

#endif
