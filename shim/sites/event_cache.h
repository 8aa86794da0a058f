/*
 * event_cache.h - is this an allocation that this thread made before, on the very same stack?
 *
 * Programs repeat themselves: a training loop makes the same sequence of allocations in every step. So each event is remembered: where
 * its walk read words of the stack, a digest of these words, and its site. If the words are the same the next time, a walk would read
 * the same and find the same; so none is made. First the event is tried that followed the last one the time before.
 *
 * Where more come in a loop than `seen` can tell that they came before, the store has them: for pc and sp the offsets of the words
 * (a shape), and for shape and digest the site.
 *
 * Some stacks consist of Python frames alone (event_site.h). Of these a digest of the frames is remembered, and no words.
 *
 * event_cache_find() returns all that event_cache_keep() needs, as struct event_lookup. Nothing of it stays in the cache.
 *
 * Context     inside the reentry guard, on the thread whose cache it is.
 * Safe from   any hook; no allocation, no lock. Reads only the stack above the caller (E2), and live Python frames.
 * When full   everything is forgotten and remembered anew.
 */
#ifndef EVENT_CACHE_H
#define EVENT_CACHE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "python/python_chain.h"
#include "sites/event_store.h"
#include "unwind/native_cache.h"

#define EVENT_CACHE_UNITS 32768u // of 64 bytes; only those in use are touched
#define EVENT_CACHE_BUCKETS 8192u
// events. If a program makes more before it repeats itself, they have no unit: the store has them
#define EVENT_CACHE_SEEN 4096u
#define EVENT_CACHE_WORDS 256u    // of one event; a multiple of four
#define EVENT_CACHE_PYTHON 16384u // events of which the Python frames are the whole stack
// of these, in a cache line: which one is an event's own place, the others' its neighbours
#define EVENT_CACHE_PYTHON_LINE 4u

/* What a walk depends on besides the words of the stack. */
struct event_key {
	uint64_t pc;  // return address of the hook
	uint64_t sp;  // behind it
	uint64_t rbp; // of the hook's caller; only where the walk needs it
	// the record of the Python frames, or their digest; without any, thread_attribution_find(); 0 = neither. Of other
	// domains than the heap: and this
	uint64_t python;
};

/*
 * One event. `offsets` is the unit in which `count` offsets of the words that its walk read begin, from sp, in words. The last one
 * stands there up to four times, so that their number is a multiple of four.
 *
 * Many native paths may lead to one place, through frames of the same sizes. They all have the same key, and their words lie at the same
 * offsets. The first one stands in the bucket of the key, with the offsets behind it. The others are found by their digests. So the words
 * are read once, however many paths there are.
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_event_cache.c:
 *   E1  a walk is a function of pc, sp, (rbp,) the version of the modules, what a stack shows of the Python frames (their record; their
 *       digest says more), and the words of the stack it reads; it reads no others when those are the same: it ends at the innermost
 *       evaluator, which they lead to. So an event with the same key whose words are the same has the same site. A stack of
 *       Python frames alone is a function of these; one of libraries that was given more has a key with that
 *       (event_cache_find_given()). What there was no room for in the first walk is missing in all that are the same.
 *   E2  the words lie between sp and the end of the stack of the thread that remembers them; of another stack, in the page of the
 *       return address, which is there as long as the hook runs. Which of the two a sp is in does not change while a thread lives.
 *   E3  Whether they are the same is decided by a 128-bit sum of products with fixed keys. A change goes unseen with a
 *       probability of 2^-64.
 *   E4  nothing is remembered over an unloaded module, a dead code object, a fork, or the end of the thread. A stack of Python
 *       frames alone leads into no module, and says the same in the next thread of the slot: over these two it is.
 */
struct event {
	struct event_key key;
	struct digest digest;
	uint32_t site;  // index + 1
	uint16_t next;  // unit of the event that followed the last time; 0 = unknown
	uint16_t older; // unit of the next one in the bucket, or in the place of its digest
	uint16_t count;
	uint16_t offsets; // unit
	bool needs_rbp;
};
static_assert(sizeof(struct event) == 64, "one cache line and the offsets");

union event_unit {
	struct event event;
	uint16_t offsets[32];
};

/* An event of which the Python frames are the whole stack. */
struct python_event {
	uint64_t key;
	uint32_t site; // index + 1
};

/* Zeroed is empty. */
struct event_cache {
	struct python_chain chain;
	uint64_t version;    // version of the unwind rules and deaths of code objects, added
	bool is_python_only; // KMEMSHIM_NATIVE=auto
	uint32_t epoch;      // raised when the units are forgotten
	uint32_t credit;     // events that may be put into the store at once: it has paid
	uint32_t candidates; // that came without any
	struct event_store store;
	_Alignas(64) struct python_event python[EVENT_CACHE_PYTHON];
	uint32_t used; // units
	uint16_t last; // unit of the event before this one; 0 = it is not remembered
	uint16_t bucket[EVENT_CACHE_BUCKETS];
	uint16_t paths[EVENT_CACHE_BUCKETS]; // of those that use another one's offsets, by their digest
	uint64_t seen[EVENT_CACHE_SEEN / 4]; // tags of events that came once, four in a word, the latest one lowest
	_Alignas(64) union event_unit units[EVENT_CACHE_UNITS]; // the first stands for "none"
};

/* Which kind of stack was looked for. */
enum event_lookup_kind {
	EVENT_LOOKUP_NONE,        // the Python frames cannot be read now: the event is not kept
	EVENT_LOOKUP_WHOLE,       // the native stack counts
	EVENT_LOOKUP_WALKED,      // the same, and it was walked: no interpreter, found by the digest of its frames
	EVENT_LOOKUP_PYTHON_ONLY, // the Python frames stand for all native paths; the whole stack may be asked for next
	EVENT_LOOKUP_PYTHON,      // the Python frames are the stack
};

/* Two words: it stays in registers. Good until the next event of the thread. */
struct event_lookup {
	uint64_t key;  // WHOLE: python of struct event_key; NONE: 0; else the key of struct python_event
	uint32_t site; // index + 1; 0 = not remembered: the stack is walked, and may be kept
	enum event_lookup_kind kind;
};
static_assert(sizeof(struct event_lookup) == 16, "two registers");

/*
 * Looks for an event of the heap.
 *
 * native           caches of the thread. Without an interpreter an event that is not remembered is walked, and may be found by the
 *                  digest of its frames (native_cache_digest()), where many native paths lead to one place. NULL: it is not walked.
 * has_interpreter  python_frames_available(), which the caller knows already
 */
struct event_lookup event_cache_find(struct event_cache *cache, struct native_caches *native, const void *hook_frame,
                                     bool has_interpreter);

/* The same for the whole stack of an event, after a lookup of kind PYTHON_ONLY. */
struct event_lookup event_cache_find_whole(struct event_cache *cache, const void *hook_frame, uint32_t python_only);

/* The same for an event of the interpreter's allocator. state: python_frames_state() */
struct event_lookup event_cache_find_python(struct event_cache *cache, uint64_t state);

/* The same for an event of another domain than the heap. is_python: the Python frames are the stack, where there are any. */
struct event_lookup event_cache_find_other(struct event_cache *cache, const void *hook_frame, unsigned domain,
                                           bool is_python);

/* The same for a Python stack that is given frames of other threads: `parent` tells them apart (thread_attribution_find_library()). */
struct event_lookup event_cache_find_given(struct event_cache *cache, struct event_lookup python, uint64_t parent);

/*
 * Keeps an event that was not found, under its kind. Both kinds of a WALKED one are kept: a program has mostly one of them, so they share
 * their places.
 *
 * hook_frame  the one of the find; not used where the Python frames are the stack
 * native      of a whole stack: it holds the walk; NULL: the native stack was not walked
 */
void event_cache_keep(struct event_cache *cache, struct event_lookup lookup, const void *hook_frame,
                      const struct native_cache *native, uint32_t site);

void event_cache_clear(struct event_cache *cache);
void event_cache_release(struct event_cache *cache); // in a forked child, before its memory is given back
void event_cache_start(void);                        // once, outside any hook

#endif
