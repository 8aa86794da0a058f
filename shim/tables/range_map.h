/*
 * range_map.h - which call site made this mapping, and what is left of it?
 *
 * Mappings are cut: a part is unmapped, another mapping is laid over it, it is moved. A mapping counts as one block until
 * its last byte is gone.
 *
 * Safe from   any thread; not needed in signal handlers that interrupted the shim (the reentry guard
 *             keeps them out). mmap and munmap serialise in the kernel, so this is behind one spin
 *             lock, held for a few hundred nanoseconds and never across a system call; a thread that
 *             cannot get it within a second gives up, and the caller counts the loss. Whoever comes
 *             then does not wait for that hold again: its thread may have left it by longjmp out of a
 *             signal handler. A thread that was killed takes the process with it.
 * When full   put fails; the caller counts the loss. So it does for what lies over something that is there: a range that could not be
 *             cut when it was released.
 */
#ifndef RANGE_MAP_H
#define RANGE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t start;
	uint64_t end;
	uint32_t site;    // index + 1
	uint32_t mapping; // number of the mapping that this is a piece of
	uint8_t generation;
	bool is_last_piece; // taken: nothing is left of its mapping
};

#define RANGE_PIECES_MAX 32

/* What a release takes away, in order of address. */
struct range_pieces {
	uint32_t count;
	bool is_more; // there were more: call again with the same bounds after these are booked
	struct range piece[RANGE_PIECES_MAX];
};

/* A new mapping. False: something of it is in the map, there is no room, or the lock could not be had; nothing was changed. */
bool range_map_put(uint64_t start, uint64_t end, uint32_t site, uint8_t generation);

/*
 * More of a mapping that is there: joins a neighbour with the same site and generation, and is one block with it. False: there is none,
 * or as for put; nothing was changed.
 */
bool range_map_extend(uint64_t start, uint64_t end, uint32_t site, uint8_t generation);

/* Cuts [start, end) out of the map. False: there is no room for a cut, or the lock could not be had; nothing was taken. */
bool range_map_take(uint64_t start, uint64_t end, struct range_pieces *taken);

/* Takes all pieces of the mapping that begins at this very address. False: the lock could not be had. */
bool range_map_take_mapping(uint64_t start, struct range_pieces *taken);

/* Where is_more: the next pieces of that mapping, in place of these, which may be none. False: the lock could not be had. */
bool range_map_take_slow(struct range_pieces *taken);

/* The first range that ends after `addr`; its site is 0 when there is none. False: the lock could not be had. */
bool range_map_next(uint64_t addr, struct range *found);

/* The real release failed: the pieces live on. False: as for put, of one of them; nothing was changed. */
bool range_map_put_back(const struct range_pieces *taken);

void range_map_clear(void); // forked child: one thread
void range_map_lock(void);  // around fork
void range_map_unlock(void);

#endif
