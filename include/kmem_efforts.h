/*
 * kmem_efforts.h - what did recording do beyond the fast way of an event? A part of kmem_format.h.
 *
 * Constant, name (in the JSON), what it counts. Each counter stands where a slower way begins, so the fast way has none. The first ones may
 * be in the way of many events: a thread adds these up by itself, and so up to KMEM_EFFORT_BATCH - 1 of each (of frames: and one walk) are
 * missing for each thread that runs or was killed. Calls of the system are those that were made until something else was counted. All others
 * are exact. A child that is forked begins at 0.
 */
#ifndef KMEM_EFFORTS_H
#define KMEM_EFFORTS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define KMEM_EFFORTS(ROW)                                                                                     \
	ROW(SLOW_ALLOCATIONS, "slow_allocations", "allocations booked the slow way: large, or at a new maximum")  \
	ROW(SLOW_RELEASES, "slow_releases", "releases booked the slow way: large, watched, or of others' blocks") \
	ROW(OTHERS_BLOCKS, "others_blocks", "of these and of resizes: of blocks that another thread allocated")   \
	ROW(NO_SLOT, "no_slot", "events of threads without memory of their own")                                  \
	ROW(CROWDED, "crowded_blocks", "blocks whose size or neighbours leave no place in the map of addresses")  \
	ROW(SUCCESSORS, "successors", "events that were not the one that followed the last time")                 \
	ROW(BUCKETS, "buckets", "events that were not remembered by their caller either")                         \
	ROW(FIRST_TIMES, "first_times", "events that will be remembered when they come again")                    \
	ROW(PYTHON_CHAINS, "python_chains", "chains of Python frames that were followed anew")                    \
	ROW(DIGESTS, "digests", "stacks that were not remembered by the digest of their frames")                  \
	ROW(PYTHON_WALKS, "python_walks", "walks of Python frames")                                               \
	ROW(PYTHON_FRAMES, "python_frames", "Python frames that were walked")                                     \
	ROW(WALKS, "walks", "walks of native frames")                                                             \
	ROW(WALK_FRAMES, "walk_frames", "native frames that were walked, those that were as before left out")     \
	ROW(ROOMS, "rooms", "sums of what all threads hold at a line of Python")                                  \
	ROW(NEW_STACKS, "new_stacks", "stacks that were stored")                                                  \
	ROW(RINGS, "rings", "searches for this thread's record of a stack that others have, too")                 \
	ROW(FORGOTTEN, "forgotten", "times that a thread forgot its events: code was unloaded, or no room")       \
	ROW(RULES, "rules", "addresses of code for which the way to its caller was computed")                     \
	ROW(NEW_PAGES, "new_pages", "pages of code whose first call of operator new was looked up")               \
	ROW(NEW_SEARCHES, "new_searches", "searches of all that is loaded for an operator new")                   \
	ROW(MODULES, "modules", "files of code that were described")                                              \
	ROW(LIBRARY_LOOKS, "library_looks", "looks at the memory of libraries' own allocators")                   \
	ROW(HEARTBEATS, "heartbeats", "looks at limits and at memory in use")                                     \
	ROW(GROWTHS, "growths", "times that the capture grew")                                                    \
	ROW(SYSTEM_CALLS, "system_calls", "calls of the system that recording made")
#define KMEM_EFFORT_CONSTANT(constant, name, words) KMEM_EFFORT_##constant,
enum kmem_effort { KMEM_EFFORTS(KMEM_EFFORT_CONSTANT) KMEM_EFFORT_COUNT };
#undef KMEM_EFFORT_CONSTANT
#define KMEM_EFFORT_BATCH 64u
#define KMEM_EFFORTS_BATCHED (KMEM_EFFORT_ROOMS + 1u) // so many, the first ones
#define KMEM_EFFORTS_MAX 32u

/*
 * Mutable; relaxed. Before version 13 all 0. The longest pause is the time from the begin to the end of what its kind does: WALKS of a
 * stack with all that follows until its site is known, NEW_STACKS and GROWTHS the same when a stack was stored or the capture grew meanwhile,
 * NEW_SEARCHES, LIBRARY_LOOKS, HEARTBEATS. It holds what the system did meanwhile, also for other programs. What is not a kind of these is
 * not timed, and nothing is where the processor's clock may not be looked at.
 */
#define KMEM_PAUSE_NS_SHIFT 8
struct kmem_efforts {
	_Atomic uint64_t counts[KMEM_EFFORTS_MAX]; // by enum kmem_effort
	_Atomic uint64_t longest_pause;            // bits 0-7 enum kmem_effort, 8-63 nanoseconds; 0 = none
};
static_assert((unsigned)KMEM_EFFORT_COUNT <= KMEM_EFFORTS_MAX, "there is room for them");

#endif
