/*
 * event_memo.c - is this an allocation that this thread made before (see event_memo.h)?
 *
 * Not chosen  keeping the words themselves: eight bytes a word instead of two, and what an event costs in a real program is the
 *             cache lines it drags in.
 */
#include "event_memo.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "capture_file.h"
#include "python_code.h"
#include "python_frames.h"
#include "unwind_rules.h"

#define TRIES 16 // events of a bucket that are looked at; few have the same key

static uint64_t keys[EVENT_MEMO_WORDS + 2];

struct digest {
	uint64_t half[2];
};

/* E3. Two words a product; the words are of a live stack: the address sanitizer must not object. */
__attribute__((no_sanitize_address)) static inline struct digest
digest_of(uint64_t sp, const uint16_t *offsets, uint32_t count)
{
	const uint64_t *stack = (const uint64_t *)(uintptr_t)sp;
	unsigned __int128 sum = count;
	uint32_t i = 0;

	for (; i + 2 <= count; i += 2)
		sum += (unsigned __int128)(stack[offsets[i]] + keys[i]) * (stack[offsets[i + 1]] + keys[i + 1]);
	if (i < count)
		sum += (unsigned __int128)(stack[offsets[i]] + keys[i]) * keys[i + 1];
	return (struct digest){ { (uint64_t)sum, (uint64_t)(sum >> 64) } };
}

static inline bool
is_same(const union event_unit *unit, const struct event_key *key)
{
	const struct event *event = &unit->event;

	if (event->key.pc != key->pc || event->key.sp != key->sp || event->key.python != key->python ||
	    (event->needs_rbp && event->key.rbp != key->rbp))
		return false;
	struct digest digest = digest_of(key->sp, unit[1].offsets, event->count);

	return digest.half[0] == event->digest[0] && digest.half[1] == event->digest[1];
}

static uint16_t *
bucket_of(struct event_memo *memo, const struct event_key *key)
{
	uint64_t hash = (key->pc ^ key->sp << 20 ^ key->python) * UINT64_C(0x9e3779b97f4a7c15);

	return &memo->bucket[hash >> 40 & (EVENT_MEMO_BUCKETS - 1)];
}

static bool
is_valid(struct event_memo *memo)
{
	uint64_t generation = atomic_load_explicit(&unwind_rules.generation, memory_order_relaxed);
	uint64_t code_deaths = python_code_deaths();

	if (__builtin_expect(memo->generation == generation && memo->code_deaths == code_deaths, 1))
		return true;
	event_memo_clear(memo); // E4
	memo->generation = generation;
	memo->code_deaths = code_deaths;
	return false;
}

/* Of brief stacks one event follows another, of whole ones too: is each predicted by the one before of its kind. */
static inline uint16_t *
last_of(struct event_memo *memo)
{
	return &memo->last[(memo->key.pc & EVENT_KEY_WHOLE) != 0];
}

static inline uint32_t
find(struct event_memo *memo)
{
	struct event_key *key = &memo->key;
	uint16_t *before = last_of(memo);
	union event_unit *last = &memo->units[*before];

	if (!is_valid(memo))
		return 0;

	uint16_t at = last->event.next;
	if (at != 0) {
		__builtin_prefetch(capture_file_at(KMEM_SECTION_SITES, memo->units[at].event.site - 1), 1);
		if (is_same(&memo->units[at], key)) {
			const union event_unit *next = &memo->units[memo->units[at].event.next];

			__builtin_prefetch(next);
			__builtin_prefetch(next + 1);
			*before = at;
			return memo->units[at].event.site;
		}
	}
	at = *bucket_of(memo, key);
	for (unsigned tries = 0; at != 0 && tries < TRIES; tries++) {
		if (is_same(&memo->units[at], key)) {
			last->event.next = at;
			*before = at;
			return memo->units[at].event.site;
		}
		at = memo->units[at].event.older;
	}
	return 0;
}

uint32_t
event_memo_find(struct event_memo *memo, const void *hook_frame, bool is_brief)
{
	const uint64_t *frame = hook_frame;
	struct event_key *key = &memo->key;

	if (!python_frames_digest(&key->python)) {
		*key = (struct event_key){ .pc = is_brief ? 0 : EVENT_KEY_WHOLE };
		*last_of(memo) = 0;
		return 0;
	}
	if (is_brief && key->python != 0) {
		key->pc = EVENT_KEY_BRIEF;
		key->sp = 0;
	} else {
		key->pc = frame[1] | EVENT_KEY_WHOLE;
		key->sp = (uint64_t)(frame + 2);
		key->rbp = frame[0];
	}
	return find(memo);
}

uint32_t
event_memo_find_whole(struct event_memo *memo, const void *hook_frame)
{
	const uint64_t *frame = hook_frame;

	if (memo->key.pc != EVENT_KEY_BRIEF) {
		memo->key.pc = EVENT_KEY_WHOLE;
		return 0;
	}
	memo->key.pc = frame[1] | EVENT_KEY_WHOLE;
	memo->key.sp = (uint64_t)(frame + 2);
	memo->key.rbp = frame[0];
	return find(memo);
}

/* Is it worth remembering? Only what comes a second time. Two places each: events that share one must not hide each other. */
static bool
came_before(struct event_memo *memo, uint32_t site)
{
	uint64_t hash = (memo->key.sp << 24 ^ site) * UINT64_C(0xff51afd7ed558ccd);
	uint16_t *first = &memo->seen[hash >> 32 & (EVENT_MEMO_SEEN - 1) & ~UINT64_C(1)];
	uint16_t tag = (uint16_t)(hash >> 48) | 1;

	if (first[0] == tag || first[1] == tag)
		return true;
	first[1] = first[0];
	first[0] = tag;
	return false;
}

void
event_memo_keep(struct event_memo *memo, const struct native_memo *native, uint32_t site)
{
	uint16_t offsets[EVENT_MEMO_WORDS];
	uint32_t count = 0;
	uint32_t units;
	bool needs_rbp = false;
	bool is_brief = memo->key.pc == EVENT_KEY_BRIEF;
	uint16_t *last = last_of(memo);
	uint16_t before = *last;

	*last = 0;
	if ((is_brief ? native != NULL : memo->key.sp == 0) || !came_before(memo, site) ||
	    (native != NULL && !native_memo_offsets(native, offsets, EVENT_MEMO_WORDS, &count, &needs_rbp)))
		return;
	units = 1 + (count + 31) / 32;
	if (memo->used + units >= EVENT_MEMO_UNITS) {
		event_memo_clear(memo);
		before = 0;
	}
	if (memo->used == 0)
		memo->used = 1;

	uint16_t at = (uint16_t)memo->used;
	union event_unit *unit = &memo->units[at];
	uint16_t *bucket = bucket_of(memo, &memo->key);

	memcpy(unit[1].offsets, offsets, count * sizeof(offsets[0]));
	struct digest digest = digest_of(memo->key.sp, offsets, count);
	unit->event = (struct event){
		.key = memo->key,
		.digest = { digest.half[0], digest.half[1] },
		.site = site,
		.older = *bucket,
		.count = (uint16_t)count,
		.needs_rbp = needs_rbp,
	};
	memo->used += units;
	*bucket = at;
	memo->units[before].event.next = at;
	*last = at;
}

void
event_memo_clear(struct event_memo *memo)
{
	memset(memo->bucket, 0, sizeof(memo->bucket));
	memset(&memo->units[0], 0, sizeof(memo->units[0]));
	memo->used = 0;
	memo->last[0] = memo->last[1] = 0;
}

void
event_memo_start(void)
{
	uint64_t state = UINT64_C(0x2545f4914f6cdd1d);

	for (uint32_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) { // splitmix64
		uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		keys[i] = (z ^ z >> 31) | 1;
	}
}
