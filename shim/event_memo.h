/*
 * event_memo.h - is this an allocation that this thread made before, on the very same stack?
 *
 * Programs repeat themselves: a training loop makes the same sequence of allocations in every step. An event is remembered
 * with where the words of the stack lie that its walk read, a digest of what they held, and its site. The event that
 * followed the last one the time before is tried first. When the words hold the same again the walk would read the same and
 * find the same, so it is not made.
 *
 * Called by   tracker.c, inside the reentry guard, on the thread whose memo it is.
 * Safe from   any hook; no allocation, no lock. Reads only the thread's own stack above the caller, and live Python frames.
 * When full   everything is forgotten and remembered anew.
 */
#ifndef EVENT_MEMO_H
#define EVENT_MEMO_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "native_memo.h"

#define EVENT_MEMO_UNITS 32768u // of 64 bytes; only those in use are touched
#define EVENT_MEMO_BUCKETS 8192u
#define EVENT_MEMO_SEEN 16384u
#define EVENT_MEMO_WORDS 254u    // of one event

#define EVENT_KEY_WHOLE (UINT64_C(1) << 63)
#define EVENT_KEY_BRIEF 1 // of the stack the Python frames alone matter: see event_site.h

/* What a walk depends on besides the words of the stack. */
struct event_key {
	uint64_t pc;     // return address of the hook, and EVENT_KEY_WHOLE; or EVENT_KEY_BRIEF
	uint64_t sp;     // behind it; 0 = brief, or cannot be remembered
	uint64_t rbp;    // of the hook's caller; only where the walk needs it
	uint64_t python; // digest of the Python frames, 0 = none
};

/*
 * One event; behind it `count` offsets of the words that its walk read, from sp, in words.
 *
 * Invariants, tested by number in tests/unit/test_event_memo.c:
 *   E1  a walk is a function of pc, sp, (rbp,) the module generation, the Python frames, and the words of the stack it reads; it
 *       reads no others when those are the same. So an event with the same key whose words are the same has the same site. A brief
 *       stack is a function of the Python frames alone.
 *   E2  the words lie between sp and the end of the stack of the thread that remembers them.
 *   E3  Whether they are the same is decided by a 128-bit sum of products with fixed keys. A change goes unseen with a
 *       probability of 2^-64.
 *   E4  nothing is remembered over an unloaded module, a dead code object, a fork, or the end of the thread.
 */
struct event {
	struct event_key key;
	uint64_t digest[2];
	uint32_t site;     // index + 1
	uint16_t next;     // unit of the event that followed the last time; 0 = unknown
	uint16_t older;    // unit of the next one in the bucket
	uint16_t count;
	bool needs_rbp;
};
static_assert(sizeof(struct event) == 64, "one cache line and the offsets");

union event_unit {
	struct event event;
	uint16_t offsets[32];
};

/* Zeroed is empty. */
struct event_memo {
	uint64_t generation;   // of the unwind rules
	uint64_t code_deaths;  // of python_code.h
	struct event_key key;  // of the event that is being looked at
	uint32_t used;         // units
	uint16_t last[2];      // unit of the event before this one, of brief and of whole ones; 0 = it is not remembered
	uint16_t bucket[EVENT_MEMO_BUCKETS];
	uint16_t seen[EVENT_MEMO_SEEN]; // tags of events that came once
	_Alignas(64) union event_unit units[EVENT_MEMO_UNITS]; // the first stands for "none"
};

/* The site of the event, index + 1; 0 = not remembered: then it is walked, and event_memo_keep() may follow. */
uint32_t event_memo_find(struct event_memo *memo, const void *hook_frame, bool is_brief);

/* Was it looked for as a brief stack? */
static inline bool
event_memo_is_brief(const struct event_memo *memo)
{
	return (memo->key.pc & EVENT_KEY_WHOLE) == 0;
}

/* The same for the whole stack of an event whose brief one was just looked for. */
uint32_t event_memo_find_whole(struct event_memo *memo, const void *hook_frame);

/* Keeps the event of the last event_memo_find(), whose walk `native` holds; NULL: the native stack was not walked. */
void event_memo_keep(struct event_memo *memo, const struct native_memo *native, uint32_t site);

void event_memo_clear(struct event_memo *memo);
void event_memo_start(void); // once, outside any hook

#endif
