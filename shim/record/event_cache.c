/*
 * event_cache.c - is this an allocation that this thread made before (see event_cache.h)?
 *
 * Not chosen  keeping the words themselves: eight bytes a word instead of two, and what an event costs in a real program is the
 *             cache lines it drags in.
 */
#include "record/event_cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/digest.h"
#include "capture/capture_file.h"
#include "python/python_code.h"
#include "python/python_frames.h"
#include "record/thread_attribution.h"
#include "unwind/unwind_rules.h"

#define SALT_PYTHON_ONLY 0 // so many code objects never die
#define SALT_PYTHON (UINT64_C(1) << 40)
#define SALT_PARENT (UINT64_C(1) << 41)
#define SALT_WALKED (UINT64_C(1) << 42)
#define SALT_DOMAIN (UINT64_C(1) << 48)
#define TRIES 16 // events of a bucket that are looked at; few have the same key

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
age_now(void)
{
	return atomic_load_explicit(&unwind_rules.version, memory_order_relaxed) + python_code_deaths();
}

static inline bool
is_current(const struct event_cache *cache)
{
	return cache->age == age_now();
}

static bool
is_valid(struct event_cache *cache)
{
	uint64_t age = age_now();

	if (cache->age == age)
		return true;
	event_cache_clear(cache); // E4
	cache->age = age;
	return false;
}

/* Where those that use the offsets in that unit, and have this digest, begin. */
static uint16_t *
way_of(struct event_cache *cache, uint16_t offsets, struct digest digest)
{
	return &cache->ways[(digest.high ^ offsets) & (EVENT_CACHE_BUCKETS - 1)];
}

/* The event with this digest among those that use the offsets in that unit; 0 = there is none. */
static uint16_t
find_way(struct event_cache *cache, uint16_t offsets, struct digest digest)
{
	uint16_t at = offsets - 1; // whose they are

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &cache->units[at].event;

		if (event->offsets == offsets && is_equal(event->digest, digest))
			return at;
		at = tries == 0 ? *way_of(cache, offsets, digest) : event->older;
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

static inline void
look_for(struct event_cache *cache, const uint64_t *frame, uint64_t python)
{
	cache->key = (struct event_key){ .pc = frame[1], .sp = (uint64_t)(frame + 2), .rbp = frame[0], .python = python };
}

/* Not the one that followed the last time: perhaps one of those with the same key. The key is kept for event_cache_keep(). */
static __attribute__((noinline)) uint32_t
find_in_bucket(struct event_cache *cache, const uint64_t *frame, uint64_t python)
{
	const struct event_key *key = &cache->key;

	look_for(cache, frame, python);
	if (!is_valid(cache))
		return 0;
	uint16_t at = *bucket_of(cache, key);

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &cache->units[at].event;

		if (has_key(event, key->pc, key->sp, key->rbp, key->python)) {
			uint16_t way = find_way(cache, event->offsets, digest_now(cache, event));

			if (way != 0)
				return found(cache, way);
		}
		at = event->older;
	}
	return 0;
}

static uint32_t find_by_walk(struct event_cache *cache, struct native_caches *caches, const uint64_t *frame,
                             bool was_looked_for);

/* native: NULL, or as in event_cache_find() */
static __attribute__((noinline)) uint32_t
find_otherwise(struct event_cache *cache, const uint64_t *frame, uint64_t python, struct native_caches *native)
{
	uint32_t site;

	/* In the bucket there may be many like it: where the event before was not remembered either, walking is the better try. */
	if (native != NULL && cache->last == 0)
		return find_by_walk(cache, native, frame, false);
	site = find_in_bucket(cache, frame, python);
	return site != 0 || native == NULL ? site : find_by_walk(cache, native, frame, true);
}

/* The one that followed the last time has this place, and other words. */
static __attribute__((noinline)) uint32_t
find_beside(struct event_cache *cache, const uint64_t *frame, uint64_t python, const struct event *event,
            struct digest digest, struct native_caches *native)
{
	uint16_t way = find_way(cache, event->offsets, digest);

	return way != 0 ? found(cache, way) : find_otherwise(cache, frame, python, native);
}

static __attribute__((noinline, cold)) uint32_t
find_none(struct event_cache *cache)
{
	cache->key.pc = 0; // not to be kept
	cache->python_key = 0;
	cache->last = 0;
	return 0;
}

static inline uint32_t
find_whole(struct event_cache *cache, const uint64_t *frame, uint64_t python, struct native_caches *native)
{
	uint64_t at = cache->units[cache->last].event.next;
	const struct event *event = &cache->units[at].event;

	__asm__("" : "+r"(event)); // one address, or the compiler works out one for each use
	if (__builtin_expect(at != 0, 1))
		__builtin_prefetch(capture_file_at(KMEM_SECTION_SITES, event->site - 1), 1);
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
	return event->site;
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

	cache->python_key = key;
	for (unsigned i = 0; i < EVENT_CACHE_PYTHON_LINE; i++) {
		if (line[i].key == key)
			return line[i].site;
	}
	return 0;
}

static inline uint32_t
find_python_key(struct event_cache *cache, uint64_t key)
{
	const struct python_event *event = &cache->python[python_place(key)];

	return __builtin_expect(event->key == key, 1) ? event->site : find_python_near(cache, key);
}

/* By the digest alone (E3), of which deaths are a part (E4). `salt` tells kinds of stacks apart. */
static inline uint32_t
find_python(struct event_cache *cache, uint64_t digest, uint64_t salt)
{
	/* A parent's key is no digest: the product spreads it. */
	return find_python_key(cache, digest * UINT64_C(0xff51afd7ed558ccd) +
	                                  (salt + python_code_deaths()) * UINT64_C(0x9e3779b97f4a7c15));
}

uint32_t
event_cache_find(struct event_cache *cache, struct native_caches *native, const void *hook_frame, bool has_interpreter,
                 bool *is_python_only)
{
	uint64_t python;

	*is_python_only = false;
	if (!has_interpreter) // nor has any thread a parent
		return find_whole(cache, hook_frame, 0, native);
	if (!python_frames_digest(&cache->trail, &python))
		return find_none(cache);
	uint64_t salt = SALT_PYTHON_ONLY;

	if (python == 0) {
		python = thread_attribution_find();
		salt = SALT_PARENT;
	}
	if (python != 0 && cache->is_python_only) {
		*is_python_only = true;
		cache->key.python = python;
		return find_python(cache, python, salt);
	}
	return find_whole(cache, hook_frame, python, NULL);
}

uint32_t
event_cache_find_whole(struct event_cache *cache, const void *hook_frame)
{
	return find_whole(cache, hook_frame, cache->key.python, NULL);
}

static __attribute__((noinline, cold)) uint32_t
find_python_detached(struct event_cache *cache)
{
	uint64_t python;

	if (!python_frames_digest(&cache->trail, &python))
		return find_none(cache);
	if (python == 0) {
		(void)thread_attribution_find(); // the walk that follows gives the stack what was found
		return find_none(cache);
	}
	return find_python(cache, python, SALT_PYTHON);
}

uint32_t
event_cache_find_other(struct event_cache *cache, const void *hook_frame, unsigned domain, bool *is_python)
{
	uint64_t salt = SALT_PYTHON + domain * SALT_DOMAIN;
	uint64_t python = 0;

	if (python_frames_available() && !python_frames_digest(&cache->trail, &python))
		return find_none(cache);
	if (python != 0 && *is_python)
		return find_python(cache, python, salt);
	*is_python = false;
	if (python == 0)
		python = thread_attribution_find();
	return find_whole(cache, hook_frame, (python ^ salt) * UINT64_C(0xff51afd7ed558ccd), NULL);
}

uint32_t
event_cache_find_python(struct event_cache *cache, uint64_t state)
{
	uint64_t python;

	/* The digest is another one than that of other kinds of stacks: it needs no salt. */
	return __builtin_expect(python_frames_digest_attached(&cache->trail, state, &python), 1)
	           ? find_python_key(cache, python + python_code_deaths())
	           : find_python_detached(cache);
}

void
event_cache_keep_python(struct event_cache *cache, uint32_t site)
{
	uint32_t place = python_place(cache->python_key);
	struct python_event *event = &cache->python[place];

	if (cache->python_key == 0)
		return;
	if (event->key != 0) // into the next place of the same line
		cache
			->python[(place & ~(EVENT_CACHE_PYTHON_LINE - 1)) | ((place + 1) & (EVENT_CACHE_PYTHON_LINE - 1))] = *event;
	*event = (struct python_event){ cache->python_key, site };
}

/*
 * Is it worth remembering? Only what comes a second time. Four places each: events that share one must not hide each other.
 * way: what the site does not tell of the stack
 */
static bool
came_before(struct event_cache *cache, uint32_t site, uint64_t way)
{
	uint64_t hash = (cache->key.sp << 24 ^ site ^ way) * UINT64_C(0xff51afd7ed558ccd);
	uint64_t *set = &cache->seen[hash >> 32 & (EVENT_CACHE_SEEN / 4 - 1)];
	uint64_t tag = hash >> 48 | 1;

	for (unsigned shift = 0; shift < 64; shift += 16) {
		if ((uint16_t)(*set >> shift) == tag)
			return true;
	}
	*set = *set << 16 | tag;
	return false;
}

/* The unit with these offsets, of an event with the key of cache->key; 0 = there is none. */
static uint16_t
find_offsets(struct event_cache *cache, const uint16_t *offsets, uint32_t count, bool needs_rbp)
{
	const struct event_key *key = &cache->key;
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

/* It came before, and is not there. */
static void
keep_whole(struct event_cache *cache, const struct native_cache *native, uint32_t site)
{
	uint16_t offsets[EVENT_CACHE_WORDS];
	uint32_t count = 0;
	uint32_t units;
	bool needs_rbp = false;
	uint16_t before = cache->last;

	cache->last = 0;
	if (native != NULL && !native_cache_offsets(native, offsets, EVENT_CACHE_WORDS, &count, &needs_rbp))
		return;
	for (; count % 4 != 0; count++) // digest_of(): the last word once more, or twice
		offsets[count] = offsets[count - 1];
	units = 1 + (count + 31) / 32;
	if (cache->used + units >= EVENT_CACHE_UNITS) {
		event_cache_clear(cache);
		before = 0;
	}
	if (cache->used == 0)
		cache->used = 1;

	uint16_t at = (uint16_t)cache->used;
	struct event *event = &cache->units[at].event;
	struct digest digest = digest_of(cache->key.sp, offsets, count);
	uint16_t shared = find_offsets(cache, offsets, count, needs_rbp);
	uint16_t *place = shared != 0 ? way_of(cache, shared, digest) : bucket_of(cache, &cache->key);

	if (shared == 0) {
		memcpy(cache->units[at + 1].offsets, offsets, count * sizeof(offsets[0]));
		cache->used += units;
	} else {
		cache->used++;
	}
	*event = (struct event){
		.key = cache->key,
		.digest = digest,
		.site = site,
		.older = *place,
		.count = (uint16_t)count,
		.offsets = shared != 0 ? shared : (uint16_t)(at + 1),
		.needs_rbp = needs_rbp,
	};
	*place = at;
	cache->units[before].event.next = at;
	cache->last = at;
}

void
event_cache_keep(struct event_cache *cache, const struct native_cache *native, uint32_t site)
{
	if (cache->key.pc != 0 && came_before(cache, site, native != NULL ? native_cache_path(native) : 0))
		keep_whole(cache, native, site);
	else
		cache->last = 0;
}

static __attribute__((noinline)) uint32_t
find_by_walk(struct event_cache *cache, struct native_caches *caches, const uint64_t *frame, bool was_looked_for)
{
	int host_errno = errno;
	struct native_cache *native = native_cache_choose(caches, frame);
	uint64_t digest = native_cache_digest(native, frame);
	uint32_t site = 0;

	errno = host_errno;
	cache->python_key = 0;
	look_for(cache, frame, 0);
	if (digest != 0 && is_valid(cache))
		site = find_python_key(cache, (digest ^ SALT_WALKED) + age_now() * UINT64_C(0x9e3779b97f4a7c15));
	if (site == 0)
		return was_looked_for ? 0 : find_in_bucket(cache, frame, 0);
	native_cache_note_time(native);
	if (!came_before(cache, site, native_cache_path(native)))
		cache->last = 0;
	else if (was_looked_for || find_in_bucket(cache, frame, 0) == 0)
		keep_whole(cache, native, site);
	return site;
}

void
event_cache_clear(struct event_cache *cache)
{
	cache->last = 0;
	if (cache->used == 0) // nothing was kept: the pages of a new thread are not touched
		return;
	memset(cache->bucket, 0, sizeof(cache->bucket));
	memset(cache->ways, 0, sizeof(cache->ways));
	memset(&cache->units[0], 0, sizeof(cache->units[0]));
	cache->used = 0;
}

void
event_cache_start(void)
{
	digest_keys_fill(keys, sizeof(keys) / sizeof(keys[0]), UINT64_C(0x2545f4914f6cdd1d));
}
