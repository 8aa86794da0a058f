/*
 * event_cache.c - is this an allocation that this thread made before (see event_cache.h)?
 *
 * Not chosen  keeping the words themselves: eight bytes a word instead of two, and what an event costs in a real program is the
 *             cache lines it drags in.
 */
#include "sites/event_cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/digest.h"
#include "base/effort.h"
#include "capture/capture_file.h"
#include "python/python_code.h"
#include "python/python_frames.h"
#include "sites/thread_attribution.h"
#include "unwind/unwind_rules.h"

#define SALT_PYTHON_ONLY 0 // so many code objects never die
#define SALT_PYTHON (UINT64_C(1) << 40)
#define SALT_PARENT (UINT64_C(1) << 41)
#define SALT_WALKED (UINT64_C(1) << 42)
#define SALT_DOMAIN (UINT64_C(1) << 48)
#define SHAPES_OF_KEY 3
#define PUTS_OF_HIT 2u // that one paid for: a put costs about as much as it saves where few frames are walked
#define CREDIT_MAX 65536u
#define CANDIDATES 16u // of so many one is put without any
#define TRIES 16       // events of a bucket that are looked at; few have the same key

static uint64_t keys[EVENT_CACHE_WORDS];

/*
 * E3. Two words a product, and two products at a time: `count` is a multiple of four. The words are of a live stack: the address
 * sanitizer must not object.
 */
__attribute__((no_sanitize_address)) static inline struct digest
digest_of(uint64_t sp, const uint16_t *offsets, uint32_t count)
{
	const uint64_t *stack = (const uint64_t *)(uintptr_t)sp;
	const uint64_t *end = keys + count;
	struct digest sum = { .low = count };

	for (const uint64_t *key = keys; key != end; key += 4, offsets += 4) {
		digest_add(&sum, stack[offsets[0]] + key[0], stack[offsets[1]] + key[1]);
		digest_add(&sum, stack[offsets[2]] + key[2], stack[offsets[3]] + key[3]);
	}
	return sum;
}

static inline bool
has_key(const struct event *event, uint64_t pc, uint64_t sp, uint64_t rbp, uint64_t python)
{
	return event->key.pc == pc && event->key.sp == sp && event->key.python == python &&
	       (!event->needs_rbp || event->key.rbp == rbp);
}

static inline bool
is_equal(struct digest one, struct digest other)
{
	return one.low == other.low && one.high == other.high;
}

/* Of the words that the event's walk read, as they are now. */
static inline struct digest
digest_now(const struct event_cache *cache, const struct event *event)
{
	return digest_of(event->key.sp, cache->units[event->offsets].offsets, event->count);
}

static uint16_t *
bucket_of(struct event_cache *cache, const struct event_key *key)
{
	uint64_t hash = (key->pc ^ key->sp << 20 ^ key->python) * UINT64_C(0x9e3779b97f4a7c15);

	return &cache->bucket[hash >> 40 & (EVENT_CACHE_BUCKETS - 1)];
}

/* Both only grow: their sum is the same when both are. */
static inline uint64_t
version_now(void)
{
	return atomic_load_explicit(&unwind_rules.version, memory_order_relaxed) + python_code_deaths();
}

static inline bool
is_current(const struct event_cache *cache)
{
	return cache->version == version_now();
}

static bool
is_valid(struct event_cache *cache)
{
	uint64_t version = version_now();

	if (cache->version == version)
		return true;
	event_cache_clear(cache); // E4
	cache->version = version;
	return false;
}

/* Where those that use the offsets in that unit, and have this digest, begin. */
static uint16_t *
path_of(struct event_cache *cache, uint16_t offsets, struct digest digest)
{
	return &cache->paths[(digest.high ^ offsets) & (EVENT_CACHE_BUCKETS - 1)];
}

/* The event with this digest among those that use the offsets in that unit; 0 = there is none. */
static uint16_t
find_path(struct event_cache *cache, uint16_t offsets, struct digest digest)
{
	uint16_t at = offsets - 1; // whose they are

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &cache->units[at].event;

		if (event->offsets == offsets && is_equal(event->digest, digest))
			return at;
		at = tries == 0 ? *path_of(cache, offsets, digest) : event->older;
	}
	return 0;
}

static uint32_t
found(struct event_cache *cache, uint16_t at)
{
	cache->units[cache->last].event.next = at;
	cache->last = at;
	return cache->units[at].event.site;
}

static inline struct event_key
key_of(const uint64_t *frame, uint64_t python)
{
	return (struct event_key){ .pc = frame[1], .sp = (uint64_t)(frame + 2), .rbp = frame[0], .python = python };
}

static inline const uint64_t *
frame_of(const struct event_key *key)
{
	return (const uint64_t *)(uintptr_t)key->sp - 2;
}

/* Not the one that followed the last time: perhaps one of those with the same key. */
static __attribute__((noinline)) uint32_t
find_in_bucket(struct event_cache *cache, const uint64_t *frame, uint64_t python)
{
	struct event_key key = key_of(frame, python);

	if (!is_valid(cache))
		return 0;
	uint16_t at = *bucket_of(cache, &key);

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &cache->units[at].event;

		if (has_key(event, key.pc, key.sp, key.rbp, key.python)) {
			uint16_t path = find_path(cache, event->offsets, digest_now(cache, event));

			if (path != 0)
				return found(cache, path);
		}
		at = event->older;
	}
	effort_count(KMEM_EFFORT_BUCKETS);
	return 0;
}

/* ---- shapes ---- */

/* Sequences of keys in the store. */
enum { SITES, SHAPES };

#define SHAPE_UNIT_MASK (EVENT_CACHE_UNITS - 1)
#define SHAPE_COUNT_SHIFT 16
#define SHAPE_NEEDS_RBP (1u << 31)
static_assert(EVENT_CACHE_UNITS <= 1 << SHAPE_COUNT_SHIFT, "a shape is not 0, and says all of it");

static inline uint64_t
store_version(const struct event_cache *cache)
{
	return version_now() + cache->epoch;
}

/* Also of all that is forgotten with the units: what was put before is not found any more. */
static inline uint64_t
digest_of_key(const struct event_cache *cache, const struct event_key *key)
{
	uint64_t digest = (key->pc * UINT64_C(0x9e3779b97f4a7c15) ^ key->sp) * UINT64_C(0xff51afd7ed558ccd);

	return ((digest ^ digest >> 32) + key->python) * UINT64_C(0xc4ceb9fe1a85ec53) + cache->epoch * SALT_DOMAIN;
}

/* Walks from one place that went through frames of other sizes read other words: their shapes are tried in turn. */
static inline uint64_t
shape_key(uint64_t key_digest, unsigned number)
{
	return key_digest ^ number;
}

static inline uint64_t
shaped_key(uint64_t key_digest, const struct event_key *key, uint32_t shape, struct digest digest)
{
	uint64_t rest = (shape & SHAPE_NEEDS_RBP) != 0 ? key->rbp : 0;

	return (digest.low ^ key_digest) * UINT64_C(0xff51afd7ed558ccd) + digest.high * UINT64_C(0xc4ceb9fe1a85ec53) +
	       (rest ^ (uint64_t)shape << 32) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t found_shaped(struct event_cache *cache, const struct event_key *key, uint32_t shape,
                             struct digest digest, uint32_t site, bool was_looked_for);

/* By the words that walks from its pc and sp read before. There is a store. */
static __attribute__((noinline)) uint32_t
find_shaped(struct event_cache *cache, const uint64_t *frame, uint64_t python, bool was_looked_for)
{
	struct event_key key = key_of(frame, python);

	if (!is_valid(cache))
		return 0;
	uint64_t key_digest = digest_of_key(cache, &key);

	for (unsigned i = 0; i < SHAPES_OF_KEY; i++) {
		uint32_t shape = event_store_follow(&cache->store, SHAPES, shape_key(key_digest, i));

		if (shape == 0)
			return 0;
		struct digest digest = digest_of(key.sp, cache->units[shape & SHAPE_UNIT_MASK].offsets,
		                                 (shape & ~SHAPE_NEEDS_RBP) >> SHAPE_COUNT_SHIFT);
		uint32_t site = event_store_follow(&cache->store, SITES, shaped_key(key_digest, &key, shape, digest));

		if (site != 0)
			return found_shaped(cache, &key, shape, digest, site, was_looked_for);
	}
	return 0;
}

static inline struct event_lookup
whole(uint64_t python, uint32_t site)
{
	return (struct event_lookup){ python, site, EVENT_LOOKUP_WHOLE };
}

static struct event_lookup find_by_walk(struct event_cache *cache, struct native_caches *caches, const uint64_t *frame,
                                        bool was_looked_for);

/* native: NULL, or as in event_cache_find() */
static __attribute__((noinline)) struct event_lookup
find_otherwise(struct event_cache *cache, const uint64_t *frame, uint64_t python, struct native_caches *native)
{
	bool has_store = cache->store.lines != NULL;
	uint32_t site;

	effort_count(KMEM_EFFORT_SUCCESSORS);
	/* In the bucket there may be many like it: where the event before was not remembered either, walking is the better try. */
	if (native != NULL && cache->last == 0) {
		site = has_store ? find_shaped(cache, frame, python, false) : 0;
		return site != 0 ? whole(python, site) : find_by_walk(cache, native, frame, false);
	}
	site = find_in_bucket(cache, frame, python);
	if (site == 0 && has_store)
		site = find_shaped(cache, frame, python, true);
	return site != 0 || native == NULL ? whole(python, site) : find_by_walk(cache, native, frame, true);
}

/* The one that followed the last time has this place, and other words. */
static __attribute__((noinline)) struct event_lookup
find_beside(struct event_cache *cache, const uint64_t *frame, uint64_t python, const struct event *event,
            struct digest digest, struct native_caches *native)
{
	uint16_t path = find_path(cache, event->offsets, digest);

	if (path == 0)
		return find_otherwise(cache, frame, python, native);
	effort_count(KMEM_EFFORT_SUCCESSORS);
	return whole(python, found(cache, path));
}

static __attribute__((noinline, cold)) struct event_lookup
find_none(struct event_cache *cache)
{
	cache->last = 0;
	return (struct event_lookup){ .kind = EVENT_LOOKUP_NONE };
}

static inline struct event_lookup
find_whole(struct event_cache *cache, const uint64_t *frame, uint64_t python, struct native_caches *native)
{
	uint64_t at = cache->units[cache->last].event.next;
	const struct event *event = &cache->units[at].event;

	__asm__("" : "+r"(event)); // one address, or the compiler works out one for each use
	if (__builtin_expect(at != 0, 1))
		__builtin_prefetch(capture_file_item(KMEM_SECTION_SITES, event->site), 1);
	/* The first unit is no event: no call returns to its pc, which is 0. */
	if (__builtin_expect(!is_current(cache) || !has_key(event, frame[1], (uint64_t)(frame + 2), frame[0], python), 0))
		return find_otherwise(cache, frame, python, native);

	struct digest digest = digest_now(cache, event);

	if (__builtin_expect(!is_equal(digest, event->digest), 0))
		return find_beside(cache, frame, python, event, digest, native);

	const union event_unit *next = &cache->units[event->next];

	__builtin_prefetch(next);
	__builtin_prefetch(next + 1);
	cache->last = (uint16_t)at;
	return whole(python, event->site);
}

static inline uint32_t
python_place(uint64_t key)
{
	return key >> 40 & (EVENT_CACHE_PYTHON - 1);
}

/* Not in its own place: another one came there later. */
static __attribute__((noinline)) uint32_t
find_python_near(struct event_cache *cache, uint64_t key)
{
	const struct python_event *line = &cache->python[python_place(key) & ~(EVENT_CACHE_PYTHON_LINE - 1)];

	event_store_prefetch(&cache->store, key);
	for (unsigned i = 0; i < EVENT_CACHE_PYTHON_LINE; i++) {
		if (line[i].key == key)
			return line[i].site;
	}
	uint32_t site = event_store_follow(&cache->store, SITES, key);

	if (site == 0)
		effort_count(KMEM_EFFORT_DIGESTS);
	return site;
}

static inline uint32_t
find_python_key(struct event_cache *cache, uint64_t key)
{
	const struct python_event *event = &cache->python[python_place(key)];

	return __builtin_expect(event->key == key, 1) ? event->site : find_python_near(cache, key);
}

/*
 * By the digest alone (E3), of which deaths are a part (E4). `salt` tells kinds of stacks apart. A parent's key is no digest: the product
 * spreads it.
 */
static inline struct event_lookup
find_python(struct event_cache *cache, uint64_t digest, uint64_t salt, enum event_lookup_kind kind)
{
	uint64_t key = digest * UINT64_C(0xff51afd7ed558ccd) + (salt + python_code_deaths()) * UINT64_C(0x9e3779b97f4a7c15);

	return (struct event_lookup){ key, find_python_key(cache, key), kind };
}

struct event_lookup
event_cache_find(struct event_cache *cache, struct native_caches *native, const void *hook_frame, bool has_interpreter)
{
	uint64_t python;

	if (!has_interpreter) // nor has any thread a parent
		return find_whole(cache, hook_frame, 0, native);
	if (!python_frames_digest(&cache->chain, &python))
		return find_none(cache);
	uint64_t salt = SALT_PYTHON_ONLY;

	if (python == 0) {
		python = thread_attribution_find();
		salt = SALT_PARENT;
	}
	if (python != 0 && cache->is_python_only)
		return find_python(cache, python, salt, EVENT_LOOKUP_PYTHON_ONLY);
	return find_whole(cache, hook_frame, python, NULL);
}

/*
 * The record of the Python-only stack says all that is shown of the frames. So one event stands for all levels of a recursion, and for all
 * frames of a generator. The product is no digest of frames.
 */
struct event_lookup
event_cache_find_whole(struct event_cache *cache, const void *hook_frame, uint32_t python_only)
{
	return find_whole(cache, hook_frame, python_only * UINT64_C(0x9e3779b97f4a7c15), NULL);
}

static __attribute__((noinline, cold)) struct event_lookup
find_python_detached(struct event_cache *cache)
{
	uint64_t python;

	if (!python_frames_digest(&cache->chain, &python))
		return find_none(cache);
	if (python == 0) {
		(void)thread_attribution_find(); // the walk that follows gives the stack what was found
		return find_none(cache);
	}
	return find_python(cache, python, SALT_PYTHON, EVENT_LOOKUP_PYTHON);
}

struct event_lookup
event_cache_find_other(struct event_cache *cache, const void *hook_frame, unsigned domain, bool is_python)
{
	uint64_t salt = SALT_PYTHON + domain * SALT_DOMAIN;
	uint64_t python = 0;

	if (python_frames_available() && !python_frames_digest(&cache->chain, &python))
		return find_none(cache);
	if (python != 0 && is_python)
		return find_python(cache, python, salt, EVENT_LOOKUP_PYTHON);
	if (python == 0)
		python = thread_attribution_find();
	return find_whole(cache, hook_frame, (python ^ salt) * UINT64_C(0xff51afd7ed558ccd), NULL);
}

struct event_lookup
event_cache_find_python(struct event_cache *cache, uint64_t state)
{
	uint64_t python;

	if (__builtin_expect(!python_frames_digest_attached(&cache->chain, state, &python), 0))
		return find_python_detached(cache);

	/* The digest is another one than that of other kinds of stacks: it needs no salt. */
	uint64_t key = python + python_code_deaths();

	return (struct event_lookup){ key, find_python_key(cache, key), EVENT_LOOKUP_PYTHON };
}

struct event_lookup
event_cache_find_given(struct event_cache *cache, struct event_lookup python, uint64_t parent)
{
	python.key = (python.key ^ parent * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
	python.site = find_python_key(cache, python.key);
	return python;
}

/*
 * The one that was there goes into a free place of the same line, or into the store: then more come than the line holds. One line of code
 * has as many keys as a recursion has levels: they count as so many sites as there are places.
 */
static void
keep_python(struct event_cache *cache, uint64_t key, uint32_t site)
{
	uint32_t place = python_place(key);
	uint32_t line = place & ~(EVENT_CACHE_PYTHON_LINE - 1);
	struct python_event *event = &cache->python[place];

	if (event->key != 0) {
		struct python_event *other = event;

		for (uint32_t i = 1; i < EVENT_CACHE_PYTHON_LINE && other->key != 0; i++)
			other = &cache->python[line | ((place - i) & (EVENT_CACHE_PYTHON_LINE - 1))];
		if (other->key != 0)
			event_store_put(&cache->store, key, site, site + EVENT_CACHE_PYTHON, store_version(cache));
		*other = *event;
	}
	*event = (struct python_event){ key, site };
}

/*
 * Is it worth remembering? Only what comes a second time. Four places each: events that share one must not hide each other.
 *
 * path        what the site does not tell of the native stack
 * is_crowded  out: another one was forgotten for it. There may be too many for any to come before
 */
static bool
came_before(struct event_cache *cache, uint64_t sp, uint32_t site, uint64_t path, bool *is_crowded)
{
	uint64_t hash = (sp << 24 ^ site ^ path) * UINT64_C(0xff51afd7ed558ccd);
	uint64_t *set = &cache->seen[hash >> 32 & (EVENT_CACHE_SEEN / 4 - 1)];
	uint64_t tag = hash >> 48 | 1;

	for (unsigned shift = 0; shift < 64; shift += 16) {
		if ((uint16_t)(*set >> shift) == tag)
			return true;
	}
	*is_crowded = *set >> 48 != 0;
	*set = *set << 16 | tag;
	effort_count(KMEM_EFFORT_FIRST_TIMES);
	return false;
}

/* The unit with these offsets, of an event with that key; 0 = there is none. */
static uint16_t
find_offsets(struct event_cache *cache, const struct event_key *key, const uint16_t *offsets, uint32_t count,
             bool needs_rbp)
{
	uint16_t at = *bucket_of(cache, key);

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &cache->units[at].event;

		if (has_key(event, key->pc, key->sp, key->rbp, key->python) && event->count == count &&
		    event->needs_rbp == needs_rbp &&
		    memcmp(cache->units[event->offsets].offsets, offsets, count * sizeof(offsets[0])) == 0)
			return event->offsets;
		at = event->older;
	}
	return 0;
}

/* Where a walk read. */
struct event_words {
	const uint16_t *offsets;
	uint32_t count; // a multiple of four: the last one is repeated
	bool needs_rbp;
};

/* Of the last walk, into `room` for EVENT_CACHE_WORDS. False: there are too many. */
static bool
read_words(const struct native_cache *native, uint16_t *room, struct event_words *words)
{
	uint32_t count = 0;

	words->offsets = room;
	words->needs_rbp = false;
	if (native != NULL && !native_cache_offsets(native, room, EVENT_CACHE_WORDS, &count, &words->needs_rbp))
		return false;
	for (; count % 4 != 0; count++) // digest_of()
		room[count] = room[count - 1];
	words->count = count;
	return true;
}

static inline uint32_t
units_of(uint32_t count)
{
	return (count + 31) / 32;
}

/* It came before, and is not there. The words may stand in units that are overwritten. */
static void
keep_whole(struct event_cache *cache, const struct event_key *key, const struct event_words *words, uint32_t site)
{
	uint32_t units = 1 + units_of(words->count);
	uint16_t before = cache->last;

	cache->last = 0;
	if (cache->used + units >= EVENT_CACHE_UNITS) {
		event_cache_clear(cache);
		before = 0;
	}
	if (cache->used == 0)
		cache->used = 1;

	uint16_t at = (uint16_t)cache->used;
	struct event *event = &cache->units[at].event;
	struct digest digest = digest_of(key->sp, words->offsets, words->count);
	uint16_t shared = find_offsets(cache, key, words->offsets, words->count, words->needs_rbp);
	uint16_t *place = shared != 0 ? path_of(cache, shared, digest) : bucket_of(cache, key);

	if (shared == 0) {
		memmove(cache->units[at + 1].offsets, words->offsets, words->count * sizeof(words->offsets[0]));
		cache->used += units;
	} else {
		cache->used++;
	}
	*event = (struct event){
		.key = *key,
		.digest = digest,
		.site = site,
		.older = *place,
		.count = (uint16_t)words->count,
		.offsets = shared != 0 ? shared : (uint16_t)(at + 1),
		.needs_rbp = words->needs_rbp,
	};
	*place = at;
	cache->units[before].event.next = at;
	cache->last = at;
}

/* The unit in which these offsets stand for shapes; 0 = there is no room. */
static uint16_t
shape_unit(struct event_cache *cache, const struct event_words *words, uint32_t site)
{
	uint64_t hash = words->count + (uint64_t)cache->epoch * SALT_DOMAIN;
	uint32_t at;

	if (words->count == 0)
		return 1; // any
	for (uint32_t i = 0; i < words->count; i++)
		hash = (hash ^ words->offsets[i]) * UINT64_C(0xff51afd7ed558ccd) ^ hash >> 32;
	at = event_store_find(&cache->store, hash);
	if (at != 0 && memcmp(cache->units[at].offsets, words->offsets, words->count * sizeof(words->offsets[0])) == 0)
		return (uint16_t)at;
	if (cache->used == 0)
		cache->used = 1;
	at = cache->used;
	if (at + units_of(words->count) >= EVENT_CACHE_UNITS)
		return 0;
	memcpy(cache->units[at].offsets, words->offsets, words->count * sizeof(words->offsets[0]));
	cache->used += units_of(words->count);
	event_store_put(&cache->store, hash, at, site, store_version(cache));
	return (uint16_t)at;
}

/* Into the store: it is found by the words, without a walk. */
static void
keep_shaped(struct event_cache *cache, const struct event_key *key, const struct native_cache *native, uint32_t site)
{
	uint16_t offsets[EVENT_CACHE_WORDS];
	struct event_words words;
	uint64_t key_digest = digest_of_key(cache, key);
	uint16_t unit;

	if (!read_words(native, offsets, &words) || (unit = shape_unit(cache, &words, site)) == 0)
		return;
	uint32_t shape = unit | words.count << SHAPE_COUNT_SHIFT | (words.needs_rbp ? SHAPE_NEEDS_RBP : 0);

	for (unsigned i = 0; i < SHAPES_OF_KEY; i++) {
		uint32_t there = event_store_find(&cache->store, shape_key(key_digest, i));

		if (there != 0 && there != shape && i + 1 < SHAPES_OF_KEY)
			continue;
		event_store_put(&cache->store, shape_key(key_digest, i), shape, site, store_version(cache));
		break;
	}
	event_store_put(&cache->store, shaped_key(key_digest, key, shape, digest_of(key->sp, words.offsets, words.count)),
	                site, site, store_version(cache));
}

/* Is it worth the store? Where nothing comes again, a few are tried. */
static bool
has_credit(struct event_cache *cache)
{
	if (cache->credit == 0)
		return ++cache->candidates % CANDIDATES == 0;
	cache->credit--;
	return true;
}

/* Of a stack that was walked. was_looked_for: it is in no bucket */
static void
keep_walked(struct event_cache *cache, const struct event_key *key, const struct native_cache *native, uint32_t site,
            bool was_looked_for)
{
	uint16_t offsets[EVENT_CACHE_WORDS];
	struct event_words words;
	bool is_crowded;

	if (!came_before(cache, key->sp, site, native != NULL ? native_cache_path(native) : 0, &is_crowded)) {
		cache->last = 0;
		if (is_crowded && !cache->store.has_no_mapping && has_credit(cache))
			keep_shaped(cache, key, native, site);
	} else if (was_looked_for || find_in_bucket(cache, frame_of(key), key->python) == 0) {
		if (read_words(native, offsets, &words))
			keep_whole(cache, key, &words, site);
		else
			cache->last = 0;
	}
}

/* It gets a unit when it comes so often that `seen` tells. */
static uint32_t
found_shaped(struct event_cache *cache, const struct event_key *key, uint32_t shape, struct digest digest,
             uint32_t site, bool was_looked_for)
{
	const struct event_words words = { .offsets = cache->units[shape & SHAPE_UNIT_MASK].offsets,
		                               .count = (shape & ~SHAPE_NEEDS_RBP) >> SHAPE_COUNT_SHIFT,
		                               .needs_rbp = (shape & SHAPE_NEEDS_RBP) != 0 };
	bool is_crowded;

	if (cache->credit < CREDIT_MAX)
		cache->credit += PUTS_OF_HIT;
	if (!came_before(cache, key->sp, site, digest.low, &is_crowded))
		cache->last = 0;
	else if (was_looked_for || find_in_bucket(cache, frame_of(key), key->python) == 0)
		keep_whole(cache, key, &words, site);
	return site;
}

void
event_cache_keep(struct event_cache *cache, struct event_lookup lookup, const void *hook_frame,
                 const struct native_cache *native, uint32_t site)
{
	if (lookup.kind == EVENT_LOOKUP_WHOLE || lookup.kind == EVENT_LOOKUP_WALKED) {
		struct event_key key = key_of(hook_frame, lookup.kind == EVENT_LOOKUP_WHOLE ? lookup.key : 0);

		keep_walked(cache, &key, native, site, true);
	}
	if (lookup.kind != EVENT_LOOKUP_WHOLE && lookup.key != 0)
		keep_python(cache, lookup.key, site);
}

static __attribute__((noinline)) struct event_lookup
find_by_walk(struct event_cache *cache, struct native_caches *caches, const uint64_t *frame, bool was_looked_for)
{
	int host_errno = errno;
	struct native_cache *native = native_cache_choose(caches, frame);
	uint64_t digest = native_cache_digest(native, frame);
	struct event_key key = key_of(frame, 0);
	struct event_lookup lookup = whole(0, 0);

	errno = host_errno;
	if (digest != 0) {
		lookup.kind = EVENT_LOOKUP_WALKED;
		lookup.key = (digest ^ SALT_WALKED) + version_now() * UINT64_C(0x9e3779b97f4a7c15);
		if (is_valid(cache))
			lookup.site = find_python_key(cache, lookup.key);
	}
	if (lookup.site == 0) {
		if (!was_looked_for)
			lookup.site = find_in_bucket(cache, frame, 0);
		return lookup;
	}
	native_cache_note_time(native);
	keep_walked(cache, &key, native, lookup.site, was_looked_for);
	return lookup;
}

void
event_cache_clear(struct event_cache *cache)
{
	cache->last = 0;
	cache->epoch++;
	if (cache->used == 0) // nothing was kept: the pages of a new thread are not touched
		return;
	effort_count(KMEM_EFFORT_FORGOTTEN);
	memset(cache->bucket, 0, sizeof(cache->bucket));
	memset(cache->paths, 0, sizeof(cache->paths));
	memset(&cache->units[0], 0, sizeof(cache->units[0]));
	cache->used = 0;
}

void
event_cache_release(struct event_cache *cache)
{
	event_store_release(&cache->store);
}

void
event_cache_start(void)
{
	digest_keys_fill(keys, sizeof(keys) / sizeof(keys[0]), UINT64_C(0x2545f4914f6cdd1d));
}
