/*
 * event_store.c - what was put for this key (see event_store.h)?
 *
 * Linear hashing: of n lines, those below n - 2^k and those from 2^k on take one bit more of the hash than the others do, where 2^k is the
 * highest power of two in n - 1.
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_event_store.c:
 *   O1  what is found for a key is what was put for it last.
 *   O2  lines behind those in use are zero, or hold keys with their own values: a put that was left in the middle does no harm.
 */
#include "sites/event_store.h"

#include <stdatomic.h>
#include <string.h>

#include "base/raw_sys.h"
#include "kmem_format.h"

#define FIRST_LINES 64u // a page
#define KEYS 4u         // of a line

/* Where the key is; KEYS: nowhere. */
static inline unsigned
entry_with(const struct event_store_line *line, uint64_t key)
{
	unsigned i = 0;

	while (i < KEYS && line->keys[i] != key)
		i++;
	return i;
}

uint32_t
event_store_find(const struct event_store *store, uint64_t key)
{
	if (store->lines == NULL)
		return 0;
	const struct event_store_line *line = event_store_line_of(store, key);
	unsigned at = entry_with(line, key);

	return at < KEYS ? line->values[at] : 0;
}

uint32_t
event_store_follow(struct event_store *store, unsigned sequence, uint64_t key)
{
	if (store->lines == NULL)
		return 0;
	struct event_store_line *line = event_store_line_of(store, key);
	uint32_t number = (uint32_t)(line - store->lines);
	unsigned at = entry_with(line, key);

	if (at == KEYS)
		return 0;
	struct event_store_sequence *keys = &store->sequences[sequence];
	uint32_t *place = &keys->places[keys->count++ % EVENT_STORE_AHEAD];
	uint32_t *next = &store->lines[*place / KEYS].nexts[*place % KEYS];

	__builtin_prefetch(&store->lines[line->nexts[at]]);
	if (*next != number)
		*next = number;
	*place = number * KEYS + at;
	return line->values[at];
}

static void
write_entry(struct event_store_line *line, unsigned i, uint64_t key, uint32_t value)
{
	line->keys[i] = 0;
	atomic_signal_fence(memory_order_release); // O2
	line->values[i] = value;
	atomic_signal_fence(memory_order_release);
	line->keys[i] = key;
}

/* Where the key is, or a free place; KEYS: neither. */
static unsigned
entry_of(const struct event_store_line *line, uint64_t key)
{
	unsigned found = KEYS;

	for (unsigned i = KEYS; i-- > 0;) {
		if (line->keys[i] == key)
			return i;
		if (line->keys[i] == 0)
			found = i;
	}
	return found;
}

/* One line more. Those of its keys that stand in another one until now go there. */
static void
grow(struct event_store *store)
{
	uint32_t fresh = store->count;
	uint32_t half = UINT32_C(1) << (31 - __builtin_clz(fresh));
	struct event_store_line *from = &store->lines[fresh - half];
	struct event_store_line *to = &store->lines[fresh];

	for (unsigned i = 0; i < KEYS; i++) {
		uint64_t key = from->keys[i];

		if (key == 0 || (event_store_hash(key) & (2 * half - 1)) != fresh)
			continue;
		write_entry(to, i, key, from->values[i]);
		from->keys[i] = 0;
	}
	store->count = fresh + 1;
}

static void
empty(struct event_store *store)
{
	size_t bytes = store->count * sizeof(store->lines[0]);

	if (store->count == FIRST_LINES || raw_madvise(store->lines, bytes, MADV_DONTNEED) != 0)
		memset(store->lines, 0, bytes);
	store->count = FIRST_LINES;
	store->used = 0;
}

static __attribute__((noinline, cold)) void
reserve(struct event_store *store)
{
	size_t most = raw_reserve_max();
	uint32_t room = EVENT_STORE_LINES_MAX;

	while (room > FIRST_LINES && room * sizeof(store->lines[0]) > most)
		room /= 2;
	struct event_store_line *lines = raw_reserve(KMEM_OWN_THREADS, room * sizeof(store->lines[0]),
	                                             PROT_READ | PROT_WRITE);

	store->has_no_mapping = lines == NULL;
	store->room = room;
	store->count = FIRST_LINES;
	store->used = 0;
	atomic_signal_fence(memory_order_release); // a child that is forked here gives back what is there
	store->lines = lines;
}

static inline bool
may_grow(const struct event_store *store)
{
	return store->used >= store->count && store->count < store->room &&
	       store->used / EVENT_STORE_KEYS_OF_SITE < store->sites;
}

void
event_store_put(struct event_store *store, uint64_t key, uint32_t value, uint32_t sites, uint64_t version)
{
	if (key == 0) // means "free"
		return;
	if (store->lines == NULL && !store->has_no_mapping) {
		reserve(store);
		store->version = version;
	}
	if (store->lines == NULL)
		return;
	if (store->sites < sites)
		store->sites = sites;
	struct event_store_line *line = event_store_line_of(store, key);
	unsigned at = entry_of(line, key);

	if (at < KEYS && line->keys[at] == key) {
		line->values[at] = value;
		return;
	}
	if (at == KEYS || store->used >= 2 * store->count) {
		if (store->version != version) {
			empty(store);
			store->version = version;
		} else if (may_grow(store)) {
			grow(store);
		}
		line = event_store_line_of(store, key);
		at = entry_of(line, key);
	}
	if (at == KEYS)
		at = event_store_hash(key ^ value) % KEYS;
	else
		store->used++;
	write_entry(line, at, key, value);
}

void
event_store_release(struct event_store *store)
{
	struct event_store_line *lines = store->lines;

	store->lines = NULL;
	if (lines != NULL)
		raw_unreserve(lines, store->room * sizeof(lines[0]));
	*store = (struct event_store){ 0 };
}
