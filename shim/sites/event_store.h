/*
 * event_store.h - what was put for this key, of as many as come?
 *
 * Behind the places of fixed number in event_cache.h: of a program that makes more events before it repeats itself than those hold. It is
 * reserved when the first key is put, and grows by a line when there are two keys for each line: no key waits for a large move.
 *
 * Context     inside the reentry guard, on the thread whose store it is.
 * Safe from   any hook; no lock. The first put makes a mapping.
 * When full   a key replaces another one of its line, also where there are EVENT_STORE_KEYS_OF_SITE for each site: what is remembered of a
 *             recursion that never comes back the same way is not worth more. Lost keys cost a walk.
 * Not chosen  a larger table of fixed size: each key touches a page of its own there, and most programs have few.
 *             Doubling it: of a million keys that is a pause of 10 ms.
 */
#ifndef EVENT_STORE_H
#define EVENT_STORE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_STORE_KEYS_OF_SITE 4u
#define EVENT_STORE_LINES_MAX (1u << 20) // two keys each: the budget of sites
#define EVENT_STORE_AHEAD 4u             // keys
#define EVENT_STORE_SEQUENCES 2u

struct event_store_line {
	uint64_t keys[4]; // 0 = free
	uint32_t values[4];
	uint32_t nexts[4]; // line of the key that came EVENT_STORE_AHEAD keys later the last time: a hint
};
static_assert(sizeof(struct event_store_line) == 64, "one cache line");

/* Keys that come one after the other. */
struct event_store_sequence {
	uint32_t count;
	uint32_t places[EVENT_STORE_AHEAD]; // of the last ones, the oldest one next: 4 * line + key
};

/* Zeroed is empty. */
struct event_store {
	struct event_store_line *lines; // NULL: nothing was put yet, or there is no room
	uint32_t count;                 // of those in use
	uint32_t room;                  // of those reserved
	uint32_t used;                  // keys
	uint32_t sites;                 // so many there are, at least
	struct event_store_sequence sequences[EVENT_STORE_SEQUENCES];
	bool has_no_mapping; // tried once
	uint64_t version;    // of what was put since it was empty; the other keys are never looked for again
};

static inline uint32_t
event_store_hash(uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* As if there were `count` lines, 2 at least. */
static inline uint32_t
event_store_place(uint32_t count, uint32_t hash)
{
	uint32_t mask = UINT32_MAX >> __builtin_clz(count - 1);
	uint32_t place = hash & mask;

	return place < count ? place : place & mask >> 1;
}

static inline struct event_store_line *
event_store_line_of(const struct event_store *store, uint64_t key)
{
	return &store->lines[event_store_place(store->count, event_store_hash(key))];
}

/* The line in which it would be. */
static inline void
event_store_prefetch(const struct event_store *store, uint64_t key)
{
	if (store->lines != NULL)
		__builtin_prefetch(event_store_line_of(store, key));
}

uint32_t event_store_find(const struct event_store *store, uint64_t key); // 0 = it is not there

/* The same for the next key of that sequence: the lines of later ones are fetched ahead. No cache of the processor holds all. */
uint32_t event_store_follow(struct event_store *store, unsigned sequence, uint64_t key);

/*
 * value    not 0
 * sites    so many there are, at least: the index + 1 of any
 * version  of all that is remembered: when it has changed, the store is emptied before it grows
 */
void event_store_put(struct event_store *store, uint64_t key, uint32_t value, uint32_t sites, uint64_t version);

void event_store_release(struct event_store *store); // gives the mapping back, if there is one: it is empty

#endif
