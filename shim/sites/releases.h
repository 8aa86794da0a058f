/*
 * releases.h - who releases what a line allocates?
 *
 * Where a line leaks, the cure is often where one path forgets what the others do: so the report names the lines that do release its
 * blocks. From a sample. A thread watches one block now and then: its word in the pointer map says so, and has no owner, so that the
 * fast path of a release leaves it to tracker_freed(). That takes the stack of the release, and counts the pair: the call site of the
 * block, and that stack. Of the call site it also counts how many were temporary: released before their thread allocated again. There is little
 * room. A pair whose call site holds much is worth more than others, but a line may hold much by
 * one call site and release what it got by others: so these have the places that are left.
 *
 * A watched block costs its allocation one more call of a slow path, and its release another. Of 64 KiB that a thread allocates, or 1024
 * blocks, it is one at most; after the first RELEASES_EACH of a thread, one of RELEASES_FOURTH in four, then of RELEASES_SELDOM.
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_releases.c:
 *   L1  one that is new takes the place of the least counted of the few places where it may stand; if its call site does not hold much,
 *       only of such a one, or none.
 *   L2  an entry is whole, or it has no checksum, at every instruction.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook; no allocation; nobody waits: while another thread notes one, this one is not counted.
 */
#ifndef RELEASES_H
#define RELEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "sites/thread_slot.h"

#define RELEASES_EACH 64u
#define RELEASES_FOURTH 1024u
#define RELEASES_SELDOM 64u
#define RELEASES_MIN_BYTES INT64_C(65536) // what the record of the call site holds; and this part of the heap:
#define RELEASES_MIN_SHARE 10             // 1 / 2^10
#define RELEASES_PLACES 8u                // of one pair

/* To be asked at each look of the thread: is the block that it allocates now to be watched? Then its word gets other bits. */
bool releases_watch(struct thread_slot *slot);
void releases_watch_no_more(struct thread_slot *slot);

/*
 * A watched block of so many bytes is being released. A watched block is the first of its thread's tally (tracker_fast.c): when no event
 * of the tally followed, it is temporary.
 *
 * hook_frame  __builtin_frame_address(0) of the hook
 * site        index + 1, of the record that allocated it
 */
void releases_note(struct thread_slot *slot, const void *hook_frame, uint64_t addr, uint32_t site, uint64_t bytes);

/* The same, once the stack that releases it is known. */
enum releases_when { RELEASES_UNKNOWN, RELEASES_LATE, RELEASES_TEMPORARY };
void releases_count(uint32_t site, uint32_t releaser, uint64_t bytes, enum releases_when when);

#endif
