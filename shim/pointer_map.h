/*
 * pointer_map.h - which call site gave out this address, and how many bytes were asked for?
 *
 * Private memory, never in the capture. Covers the heap; mappings are in range_map.h, device addresses in a table of
 * their own.
 *
 * Called by   tracker.c. Safe from any thread and signal handler; frees may come from any thread.
 * When full   put fails; the caller counts the loss.
 */
#ifndef POINTER_MAP_H
#define POINTER_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "address_table.h"

#define POINTER_MAP_SITES_MAX ((1u << 22) - 1)

enum pointer_map_put {
	POINTER_MAP_STORED,
	POINTER_MAP_REPLACED, // a block that was given back without our seeing it stood there: *old is that one
	POINTER_MAP_FULL,
};

enum pointer_map_put pointer_map_put(const void *addr, struct address_block block, struct address_block *old);
bool pointer_map_take(const void *addr, struct address_block *block);
void pointer_map_clear(void); // forked child: one thread

#endif
