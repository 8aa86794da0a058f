/*
 * held_sites.h - what does each record of a site hold, at about this moment?
 *
 * Context     inside the reentry guard.
 * Safe from   any hook; others allocate meanwhile: each of their events is in what is written, or behind it.
 * When full   the largest records are written; how many are left out, and what they hold, is told.
 */
#ifndef HELD_SITES_H
#define HELD_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"

#define HELD_SITES_SIZES 65 // powers of two of bytes, the largest first; the last: no bytes

struct held_sites {
	uint32_t records;     // that were looked at
	uint32_t sites;       // of them hold anything
	uint32_t generations; // of them have blocks counted by generation
	int64_t live_bytes;   // of all domains that are memory
	uint32_t by_size[HELD_SITES_SIZES];
};

/* How many there are now. wants_generations: those that only have counts by generation are sites, too. */
void held_sites_measure(bool wants_generations, struct held_sites *found);

/* What all of them need: entries and copies. */
uint64_t held_sites_bytes(const struct held_sites *found);

/* What was written, and what had no room. */
struct held_written {
	uint32_t sites;
	uint32_t generations;
	int64_t live_bytes; // as above, of what was written
	uint32_t left_out;
	int64_t left_out_bytes;
};

/* Entries by record number, then the copies, into `room_bytes`. What came to hold something since it was measured has no place. */
struct held_written held_sites_write(const struct held_sites *found, struct kmem_exit_site *to, uint64_t room_bytes);

/* What all records hold, in all domains that are memory. */
int64_t held_sites_live_bytes(void);

#endif
