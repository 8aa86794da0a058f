/*
 * event_memo.c - is this an allocation that this thread made before (see event_memo.h)?
 *
 * Not chosen  keeping the words themselves: eight bytes a word instead of two, and what an event costs in a real program is the
 *             cache lines it drags in.
 */
#include "record/event_memo.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/digest.h"
#include "capture/capture_file.h"
#include "python/python_code.h"
#include "python/python_frames.h"
#include "record/thread_parent.h"
#include "unwind/unwind_rules.h"

#define SALT_BRIEF 0 // so many code objects never die
#define SALT_PYTHON (UINT64_C(1) << 40)
#define SALT_PARENT (UINT64_C(1) << 41)
#define SALT_WALKED (UINT64_C(1) << 42)
#define SALT_DOMAIN (UINT64_C(1) << 48)
#define TRIES 16 // events of a bucket that are looked at; few have the same key

static uint64_t keys[EVENT_MEMO_WORDS];

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
digest_now(const struct event_memo *memo, const struct event *event)
{
	return digest_of(event->key.sp, memo->units[event->offsets].offsets, event->count);
}

static uint16_t *
bucket_of(struct event_memo *memo, const struct event_key *key)
{
	uint64_t hash = (key->pc ^ key->sp << 20 ^ key->python) * UINT64_C(0x9e3779b97f4a7c15);

	return &memo->bucket[hash >> 40 & (EVENT_MEMO_BUCKETS - 1)];
}

/* Both only grow: their sum is the same when both are. */
static inline uint64_t
age_now(void)
{
	return atomic_load_explicit(&unwind_rules.generation, memory_order_relaxed) + python_code_deaths();
}

static inline bool
is_current(const struct event_memo *memo)
{
	return memo->age == age_now();
}

static bool
is_valid(struct event_memo *memo)
{
	uint64_t age = age_now();

	if (memo->age == age)
		return true;
	event_memo_clear(memo); // E4
	memo->age = age;
	return false;
}

/* Where those that use the offsets in that unit, and have this digest, begin. */
static uint16_t *
way_of(struct event_memo *memo, uint16_t offsets, struct digest digest)
{
	return &memo->ways[(digest.high ^ offsets) & (EVENT_MEMO_BUCKETS - 1)];
}

/* The event with this digest among those that use the offsets in that unit; 0 = there is none. */
static uint16_t
find_way(struct event_memo *memo, uint16_t offsets, struct digest digest)
{
	uint16_t at = offsets - 1; // whose they are

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &memo->units[at].event;

		if (event->offsets == offsets && is_equal(event->digest, digest))
			return at;
		at = tries == 0 ? *way_of(memo, offsets, digest) : event->older;
	}
	return 0;
}

static uint32_t
found(struct event_memo *memo, uint16_t at)
{
	memo->units[memo->last].event.next = at;
	memo->last = at;
	return memo->units[at].event.site;
}

static inline void
look_for(struct event_memo *memo, const uint64_t *frame, uint64_t python)
{
	memo->key = (struct event_key){ .pc = frame[1], .sp = (uint64_t)(frame + 2), .rbp = frame[0], .python = python };
}

/* Not the one that followed the last time: perhaps one of those with the same key. The key is kept for event_memo_keep(). */
static __attribute__((noinline)) uint32_t
find_in_bucket(struct event_memo *memo, const uint64_t *frame, uint64_t python)
{
	const struct event_key *key = &memo->key;

	look_for(memo, frame, python);
	if (!is_valid(memo))
		return 0;
	uint16_t at = *bucket_of(memo, key);

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &memo->units[at].event;

		if (has_key(event, key->pc, key->sp, key->rbp, key->python)) {
			uint16_t way = find_way(memo, event->offsets, digest_now(memo, event));

			if (way != 0)
				return found(memo, way);
		}
		at = event->older;
	}
	return 0;
}

static uint32_t find_by_walk(struct event_memo *memo, struct native_memos *memos, const uint64_t *frame,
                             bool was_looked_for);

/* native: NULL, or as in event_memo_find() */
static __attribute__((noinline)) uint32_t
find_otherwise(struct event_memo *memo, const uint64_t *frame, uint64_t python, struct native_memos *native)
{
	uint32_t site;

	/* In the bucket there may be many like it: where the event before was not remembered either, walking is the better try. */
	if (native != NULL && memo->last == 0)
		return find_by_walk(memo, native, frame, false);
	site = find_in_bucket(memo, frame, python);
	return site != 0 || native == NULL ? site : find_by_walk(memo, native, frame, true);
}

/* The one that followed the last time has this place, and other words. */
static __attribute__((noinline)) uint32_t
find_beside(struct event_memo *memo, const uint64_t *frame, uint64_t python, const struct event *event,
            struct digest digest, struct native_memos *native)
{
	uint16_t way = find_way(memo, event->offsets, digest);

	return way != 0 ? found(memo, way) : find_otherwise(memo, frame, python, native);
}

static __attribute__((noinline, cold)) uint32_t
find_none(struct event_memo *memo)
{
	memo->key.pc = 0; // not to be kept
	memo->python_key = 0;
	memo->last = 0;
	return 0;
}

static inline uint32_t
find_whole(struct event_memo *memo, const uint64_t *frame, uint64_t python, struct native_memos *native)
{
	uint64_t at = memo->units[memo->last].event.next;
	const struct event *event = &memo->units[at].event;

	__asm__("" : "+r"(event)); // one address, or the compiler works out one for each use
	if (__builtin_expect(at != 0, 1))
		__builtin_prefetch(capture_file_at(KMEM_SECTION_SITES, event->site - 1), 1);
	/* The first unit is no event: no call returns to its pc, which is 0. */
	if (__builtin_expect(!is_current(memo) || !has_key(event, frame[1], (uint64_t)(frame + 2), frame[0], python), 0))
		return find_otherwise(memo, frame, python, native);

	struct digest digest = digest_now(memo, event);

	if (__builtin_expect(!is_equal(digest, event->digest), 0))
		return find_beside(memo, frame, python, event, digest, native);

	const union event_unit *next = &memo->units[event->next];

	__builtin_prefetch(next);
	__builtin_prefetch(next + 1);
	memo->last = (uint16_t)at;
	return event->site;
}

static inline uint32_t
python_place(uint64_t key)
{
	return key >> 40 & (EVENT_MEMO_PYTHON - 1);
}

/* Not in its own place: another one came there later. */
static __attribute__((noinline)) uint32_t
find_python_near(struct event_memo *memo, uint64_t key)
{
	const struct python_event *line = &memo->python[python_place(key) & ~(EVENT_MEMO_PYTHON_LINE - 1)];

	memo->python_key = key;
	for (unsigned i = 0; i < EVENT_MEMO_PYTHON_LINE; i++) {
		if (line[i].key == key)
			return line[i].site;
	}
	return 0;
}

static inline uint32_t
find_python_key(struct event_memo *memo, uint64_t key)
{
	const struct python_event *event = &memo->python[python_place(key)];

	return __builtin_expect(event->key == key, 1) ? event->site : find_python_near(memo, key);
}

/* By the digest alone (E3), of which deaths are a part (E4). `salt` tells kinds of stacks apart. */
static inline uint32_t
find_python(struct event_memo *memo, uint64_t digest, uint64_t salt)
{
	/* A parent's key is no digest: the product spreads it. */
	return find_python_key(memo, digest * UINT64_C(0xff51afd7ed558ccd) +
	                                 (salt + python_code_deaths()) * UINT64_C(0x9e3779b97f4a7c15));
}

uint32_t
event_memo_find(struct event_memo *memo, struct native_memos *native, const void *hook_frame, bool has_interpreter,
                bool *is_brief)
{
	uint64_t python;

	*is_brief = false;
	if (!has_interpreter) // nor has any thread a parent
		return find_whole(memo, hook_frame, 0, native);
	if (!python_frames_digest(&memo->trail, &python))
		return find_none(memo);
	uint64_t salt = SALT_BRIEF;

	if (python == 0) {
		python = thread_parent_look();
		salt = SALT_PARENT;
	}
	if (python != 0 && memo->is_brief) {
		*is_brief = true;
		memo->key.python = python;
		return find_python(memo, python, salt);
	}
	return find_whole(memo, hook_frame, python, NULL);
}

uint32_t
event_memo_find_whole(struct event_memo *memo, const void *hook_frame)
{
	return find_whole(memo, hook_frame, memo->key.python, NULL);
}

static __attribute__((noinline, cold)) uint32_t
find_python_detached(struct event_memo *memo)
{
	uint64_t python;

	if (!python_frames_digest(&memo->trail, &python))
		return find_none(memo);
	if (python == 0) {
		(void)thread_parent_look(); // the walk that follows gives the stack what was found
		return find_none(memo);
	}
	return find_python(memo, python, SALT_PYTHON);
}

uint32_t
event_memo_find_other(struct event_memo *memo, const void *hook_frame, unsigned domain, bool *is_python)
{
	uint64_t salt = SALT_PYTHON + domain * SALT_DOMAIN;
	uint64_t python = 0;

	if (python_frames_available() && !python_frames_digest(&memo->trail, &python))
		return find_none(memo);
	if (python != 0 && *is_python)
		return find_python(memo, python, salt);
	*is_python = false;
	if (python == 0)
		python = thread_parent_look();
	return find_whole(memo, hook_frame, (python ^ salt) * UINT64_C(0xff51afd7ed558ccd), NULL);
}

uint32_t
event_memo_find_python(struct event_memo *memo, uint64_t state)
{
	uint64_t python;

	/* The digest is another one than that of other kinds of stacks: it needs no salt. */
	return __builtin_expect(python_frames_digest_attached(&memo->trail, state, &python), 1)
	           ? find_python_key(memo, python + python_code_deaths())
	           : find_python_detached(memo);
}

void
event_memo_keep_python(struct event_memo *memo, uint32_t site)
{
	uint32_t place = python_place(memo->python_key);
	struct python_event *event = &memo->python[place];

	if (memo->python_key == 0)
		return;
	if (event->key != 0) // into the next place of the same line
		memo->python[(place & ~(EVENT_MEMO_PYTHON_LINE - 1)) | ((place + 1) & (EVENT_MEMO_PYTHON_LINE - 1))] = *event;
	*event = (struct python_event){ memo->python_key, site };
}

/*
 * Is it worth remembering? Only what comes a second time. Four places each: events that share one must not hide each other.
 * way: what the site does not tell of the stack
 */
static bool
came_before(struct event_memo *memo, uint32_t site, uint64_t way)
{
	uint64_t hash = (memo->key.sp << 24 ^ site ^ way) * UINT64_C(0xff51afd7ed558ccd);
	uint64_t *set = &memo->seen[hash >> 32 & (EVENT_MEMO_SEEN / 4 - 1)];
	uint64_t tag = hash >> 48 | 1;

	for (unsigned shift = 0; shift < 64; shift += 16) {
		if ((uint16_t)(*set >> shift) == tag)
			return true;
	}
	*set = *set << 16 | tag;
	return false;
}

/* The unit with these offsets, of an event with the key of memo->key; 0 = there is none. */
static uint16_t
find_offsets(struct event_memo *memo, const uint16_t *offsets, uint32_t count, bool needs_rbp)
{
	const struct event_key *key = &memo->key;
	uint16_t at = *bucket_of(memo, key);

	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		const struct event *event = &memo->units[at].event;

		if (has_key(event, key->pc, key->sp, key->rbp, key->python) && event->count == count &&
		    event->needs_rbp == needs_rbp &&
		    memcmp(memo->units[event->offsets].offsets, offsets, count * sizeof(offsets[0])) == 0)
			return event->offsets;
		at = event->older;
	}
	return 0;
}

/* It came before, and is not there. */
static void
keep_whole(struct event_memo *memo, const struct native_memo *native, uint32_t site)
{
	uint16_t offsets[EVENT_MEMO_WORDS];
	uint32_t count = 0;
	uint32_t units;
	bool needs_rbp = false;
	uint16_t before = memo->last;

	memo->last = 0;
	if (native != NULL && !native_memo_offsets(native, offsets, EVENT_MEMO_WORDS, &count, &needs_rbp))
		return;
	for (; count % 4 != 0; count++) // digest_of(): the last word once more, or twice
		offsets[count] = offsets[count - 1];
	units = 1 + (count + 31) / 32;
	if (memo->used + units >= EVENT_MEMO_UNITS) {
		event_memo_clear(memo);
		before = 0;
	}
	if (memo->used == 0)
		memo->used = 1;

	uint16_t at = (uint16_t)memo->used;
	struct event *event = &memo->units[at].event;
	struct digest digest = digest_of(memo->key.sp, offsets, count);
	uint16_t shared = find_offsets(memo, offsets, count, needs_rbp);
	uint16_t *place = shared != 0 ? way_of(memo, shared, digest) : bucket_of(memo, &memo->key);

	if (shared == 0) {
		memcpy(memo->units[at + 1].offsets, offsets, count * sizeof(offsets[0]));
		memo->used += units;
	} else {
		memo->used++;
	}
	*event = (struct event){
		.key = memo->key,
		.digest = digest,
		.site = site,
		.older = *place,
		.count = (uint16_t)count,
		.offsets = shared != 0 ? shared : (uint16_t)(at + 1),
		.needs_rbp = needs_rbp,
	};
	*place = at;
	memo->units[before].event.next = at;
	memo->last = at;
}

void
event_memo_keep(struct event_memo *memo, const struct native_memo *native, uint32_t site)
{
	if (memo->key.pc != 0 && came_before(memo, site, native != NULL ? native_memo_way(native) : 0))
		keep_whole(memo, native, site);
	else
		memo->last = 0;
}

static __attribute__((noinline)) uint32_t
find_by_walk(struct event_memo *memo, struct native_memos *memos, const uint64_t *frame, bool was_looked_for)
{
	int host_errno = errno;
	struct native_memo *native = native_memo_choose(memos, frame);
	uint64_t digest = native_memo_digest(native, frame);
	uint32_t site = 0;

	errno = host_errno;
	memo->python_key = 0;
	look_for(memo, frame, 0);
	if (digest != 0 && is_valid(memo))
		site = find_python_key(memo, (digest ^ SALT_WALKED) + age_now() * UINT64_C(0x9e3779b97f4a7c15));
	if (site == 0)
		return was_looked_for ? 0 : find_in_bucket(memo, frame, 0);
	native_memo_note_time(native);
	if (!came_before(memo, site, native_memo_way(native)))
		memo->last = 0;
	else if (was_looked_for || find_in_bucket(memo, frame, 0) == 0)
		keep_whole(memo, native, site);
	return site;
}

void
event_memo_clear(struct event_memo *memo)
{
	memo->last = 0;
	if (memo->used == 0) // nothing was kept: the pages of a new thread are not touched
		return;
	memset(memo->bucket, 0, sizeof(memo->bucket));
	memset(memo->ways, 0, sizeof(memo->ways));
	memset(&memo->units[0], 0, sizeof(memo->units[0]));
	memo->used = 0;
}

void
event_memo_start(void)
{
	digest_keys_fill(keys, sizeof(keys) / sizeof(keys[0]), UINT64_C(0x2545f4914f6cdd1d));
}
