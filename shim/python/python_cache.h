/*
 * python_cache.h - which frames of the last walk are still as they were?
 *
 * Between two allocations of a thread most of its outer frames stay. The cache holds what the last walk read and found, frame by
 * frame; the next walk goes outwards from the innermost frame until it comes to a frame that it knows, then only compares.
 *
 * Context     inside the reentry guard. The memory is the caller's: zeroed means empty. It serves one
 *             thread at a time; it may go on to another thread when what the one has written is ordered
 *             before what the other reads.
 * Safe from   any hook; no allocation, no lock.
 * When full   (PYTHON_CACHE_FRAMES visited) nothing is remembered: the next walk visits each frame.
 */
#ifndef PYTHON_CACHE_H
#define PYTHON_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_layout.h"
#include "python/python_visit.h"

#define PYTHON_CACHE_FRAMES 1024 // as deep as the interpreter recurses by default
#define PYTHON_CACHE_PLACES 512

struct python_frame {
	uint32_t code;        // index of its struct kmem_code in RECORDS (units of 8 bytes)
	uint32_t offset;      // of the first instruction of the line that is executed, in bytes
	uint16_t code_flags;  // enum kmem_code_flags
	uint64_t anchor_addr; // an address inside the native frame of the evaluator that runs it; 0 = unknown
};

/*
 * The last complete walk: visits[0, count), outermost first, and their results frames[0, kept[count - 1]).
 *
 * Why a comparison can take the place of a visit. Invariants, tested by number in tests/unit/shim/python/test_python_cache.c:
 *   P1  Each of visits[0, known) holds all words that a visit reads and that can change while its frame is linked (code,
 *       instruction, owner, is_entry), and what the visit made of them. What it reads besides is in the code object and never
 *       changes while that lives, or follows from the words (which copy of the bytecode an instruction is in); a frame that
 *       runs no code object is asked again what it runs.
 *   P2  No code object of a visit has died since: `deaths` is the count from before the first of them, and equal. So the
 *       object behind an equal code word is the same object, and its record the same record. A forked child's count is another.
 *       The death that would matter is ordered before this walk by whatever gave this thread the next object at the address.
 *   P3  visits[i - 1] is the frame that visits[i] led to, for i < count; visits[0] led to none. So equal words and an equal link,
 *       from one frame outwards up to the end of the chain, are the same chain with the same results.
 *   P4  Only frames that the chain leads to now are read: a remembered address is compared with a link that was just read before
 *       anything is read through it.
 *   P5  Anchors depend on where the C stack is and, before 3.12, on a second chain. The stack's end is the same; each run's
 *       anchor is on the stack exactly if it was; that chain's links are compared like frames.
 *   P6  The count is 0 while the cache is changed, after a walk that broke off, found a frame that it could not judge, lacked room,
 *       or began at another thread state, and while the interpreter finalises.
 *
 * Visits [count, known) are of earlier walks. They hold by P1 and P2 alone: one by one, not as a chain.
 * During a walk its fresh visits and frames are gathered at the upper ends of the arrays, innermost last.
 *
 * Not chosen  comparing the innermost frames only: a frame that returned and was called again lies at the same address, and so do
 *             its callees.
 */
struct python_cache {
	uint32_t count;
	uint32_t known;
	uint32_t scanned; // frames[scanned - 1] got its anchor from a scan of the stack (3.8, 3.9); 0 = none did
	bool is_cut;      // the last walk had more frames than it showed
	uint32_t deep;    // walks in a row that broke off at the bound
	uint64_t deaths;
	uint64_t state_addr;
	uint64_t stack_end;
	struct python_visit visits[PYTHON_CACHE_FRAMES];
	struct python_frame frames[PYTHON_CACHE_FRAMES];
	uint16_t kept[PYTHON_CACHE_FRAMES];   // how many of visits[0, i] are FRAME
	uint16_t places[PYTHON_CACHE_PLACES]; // by frame address, where its visit may be
};
static_assert(PYTHON_CACHE_FRAMES <= UINT16_MAX + 1, "a place is two bytes");
static_assert(sizeof(struct python_cache) <= 78 * 1024, "78 KiB a thread");

/* Where a walk stands: the next frame to look at, and the evaluator that runs it (before 3.12). */
struct python_position {
	uint64_t frame;
	uint64_t cframe;
};

/* The part of the C stack in which anchors lie: (sp, end). */
struct python_extent {
	uint64_t sp;
	uint64_t end;
};

static inline bool
python_extent_contains(const struct python_extent *extent, uint64_t addr)
{
	return addr > extent->sp && addr < extent->end;
}

static inline unsigned
python_cache_place(uint64_t frame)
{
	return (uint32_t)(frame >> 3) * UINT32_C(0x9e3779b1) >> 23;
}

/* The visit of this frame among visits[0, known), or PYTHON_CACHE_FRAMES. `guess` is looked at first. */
static inline uint32_t
python_cache_find(const struct python_cache *cache, uint64_t frame, uint32_t guess, uint32_t known)
{
	if (guess < known && cache->visits[guess].frame_addr == frame)
		return guess;
	guess = cache->places[python_cache_place(frame)];
	return guess < known && cache->visits[guess].frame_addr == frame ? guess : PYTHON_CACHE_FRAMES;
}

/*
 * How many of visits[at], visits[at - 1], ... visits[last] hold, one leading to the next (P1, P3, P4, P5).
 *
 * position  in: at the frame of visits[at]. out: behind the visits that hold
 */
uint32_t python_cache_verify(const struct python_interpreter *python, const struct python_cache *cache, uint32_t at,
                             uint32_t last, const struct python_extent *extent, struct python_position *position);

/* Does the chain go on outwards from the frame of visits[at], at `position`, as it did, up to its end? Its own words may differ. */
bool python_cache_continues(const struct python_interpreter *python, const struct python_cache *cache, uint32_t at,
                            const struct python_extent *extent, struct python_position position);

/*
 * Puts the fresh visits and frames behind the outermost `joined` remembered visits. Returns the number of frames of both; `count`
 * and `known` are left to the caller.
 */
uint32_t python_cache_join(struct python_cache *cache, uint32_t joined, uint32_t fresh_visits, uint32_t fresh_frames);

#endif
