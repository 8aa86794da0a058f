/*
 * native_cache.c - see native_cache.h.
 *
 * Not chosen  entries that hold return address, saved rbp and their slots together: 48 bytes a frame, most of them not
 *             looked at. Apart, the comparison reads 12 bytes a frame, and the caller reads 8 of them anyway.
 */
#include "unwind/native_cache.h"

#include <stdatomic.h>
#include <string.h>

#include "base/call_clock.h"
#include "base/checked_memory.h"
#include "base/effort.h"
#include "base/thread_stack.h"
#include "kmem_format.h"
#include "unwind/native_cache_room.h"
#include "unwind/unwind_rules.h"

#define SPAN (UINT64_C(1) << 32) // offsets of 32 bits reach so far
#define NEEDS_BP NATIVE_CACHE_NEEDS_BP
#define ALTERNATE_DIGEST UINT64_C(0x9e3779b97f4a7c15) // the same frames on another stack are another one

/* ---- comparing ---- */

static inline bool
needs_bp(const struct native_cache *cache, uint64_t frame)
{
	return (cache->word_firsts[frame] & NEEDS_BP) != 0;
}

static inline uint64_t
word_first(const struct native_cache *cache, uint64_t frame)
{
	return frame < cache->room ? cache->word_firsts[frame] & ~NEEDS_BP : cache->room;
}

/* A live stack is read as it is, variables or not: the address sanitizer must not object. */
__attribute__((no_sanitize_address)) static inline uint64_t
difference(uint64_t base, uint32_t offset, uint64_t value)
{
	return *(const uint64_t *)(uintptr_t)(base + offset) ^ value;
}

/* Do all those slots hold those values? */
__attribute__((no_sanitize_address)) static inline bool
are_equal(uint64_t base, const uint32_t *offsets, const uint64_t *values, uint64_t count)
{
	uint64_t different = 0;

	for (; count >= 8; count -= 8, offsets += 8, values += 8) {
		different = difference(base, offsets[0], values[0]);
		different |= difference(base, offsets[1], values[1]);
		different |= difference(base, offsets[2], values[2]);
		different |= difference(base, offsets[3], values[3]);
		different |= difference(base, offsets[4], values[4]);
		different |= difference(base, offsets[5], values[5]);
		different |= difference(base, offsets[6], values[6]);
		different |= difference(base, offsets[7], values[7]);
		if (different != 0)
			return false;
	}
	for (uint64_t i = 0; i < count; i++)
		different |= difference(base, offsets[i], values[i]);
	return different == 0;
}

/*
 * The walk is in that frame. Do the words of the frames [from, end) hold what is remembered, and the return addresses that lead to
 * them? That of the frame itself was read on the way, or is the hook's own.
 */
static inline bool
is_unchanged(const struct native_cache *cache, uint64_t frame, uint64_t from, uint64_t end, uint64_t base)
{
	uint64_t word = word_first(cache, from);

	from += from == frame;
	return are_equal(base - 8, cache->sp_offsets + from, cache->pcs + from, end - from) &&
	       are_equal(base, cache->word_offsets + word, cache->words + word, word_first(cache, end) - word);
}

/* Place behind the last of those slots that holds another value; there is none before `first`. */
static inline uint64_t
behind_differences(uint64_t base, const uint32_t *offsets, const uint64_t *values, uint64_t first, uint64_t end)
{
	while (end > first && difference(base, offsets[end - 1], values[end - 1]) == 0)
		end--;
	return end;
}

/*
 * The walk is in that frame, and something changed between there and `end`. The innermost frame from which all is unchanged up to
 * there; `end` when there is none.
 */
static __attribute__((noinline)) uint64_t
first_unchanged(const struct native_cache *cache, uint64_t frame, uint64_t end, uint64_t base)
{
	/* Where the return address changed, the frame is another one: who comes to it has read that. */
	uint64_t first = behind_differences(base - 8, cache->sp_offsets, cache->pcs, frame + 1, end);
	uint64_t word = behind_differences(base, cache->word_offsets, cache->words, word_first(cache, frame),
	                                   word_first(cache, end));

	while (first < end && word_first(cache, first) < word)
		first++;
	return first;
}

/* ---- remembering ---- */

static inline uint64_t
digest_with(uint64_t digest, uint64_t pc)
{
	digest = (digest ^ pc) * UINT64_C(0xff51afd7ed558ccd);
	return digest ^ digest >> 32;
}

static inline uint64_t
function_of(struct native_cache *cache, uint64_t pc)
{
	struct native_function *known = &cache->functions[(pc ^ pc >> 7) & (NATIVE_CACHE_FUNCTIONS - 1)];

	if (known->pc != pc)
		*known = (struct native_function){ pc, unwind_rules_function(pc, cache->version & UNWIND_VERSION_MASK) };
	return known->begin;
}

static inline bool
is_same_function(struct native_cache *cache, uint64_t one, uint64_t other)
{
	if (one == other || !native_stack_may_be_same_function(one, other))
		return one == other;

	uint64_t function = function_of(cache, one);

	return function != 0 && function == function_of(cache, other);
}

/* False: no room. */
static inline bool
add_word(struct native_cache *cache, uint64_t *first, uint64_t addr, uint64_t value)
{
	if (*first == 0)
		return false;
	--*first;
	cache->word_offsets[*first] = (uint32_t)(addr - (cache->stack_end - SPAN));
	cache->words[*first] = value;
	return true;
}

/*
 * The steps of this walk, innermost first, go before frame `top`, where it came to what is remembered; `room` if it did not:
 * then last_cfa is the CFA of the last one. False: they are in their places, but there was no room for their words.
 */
static inline bool
remember(struct native_cache *cache, uint64_t step_count, uint64_t top, uint64_t last_cfa)
{
	uint64_t base = cache->stack_end - SPAN;
	uint64_t room = cache->room;
	uint64_t word = room;
	struct native_run run = { .length = 0 };
	uint64_t pc = 0; // of the caller; 0: it is none, or not given out
	bool is_whole = true;
	bool is_bp_needed = false; // by the caller; then by the frame
	uint64_t cfa = last_cfa;
	uint64_t rbp = 0; // in the caller, if it needs it

	if (top < room) {
		run = cache->runs[top];
		pc = top + 1 < room || !cache->is_last_hidden ? cache->pcs[top] : 0;
		word = word_first(cache, top);
		is_bp_needed = needs_bp(cache, top);
		cfa = base + cache->sp_offsets[top];
		rbp = cache->rbps[top];
	}
	for (uint64_t i = step_count, frame = top; i-- > 0;) {
		const struct native_place *place = &cache->steps[i].place;
		uint64_t rule = cache->steps[i].rule;
		bool is_bp_used = (rule & UNWIND_WORD_CFA_FROM_RBP) != 0;
		uint64_t rbp_addr = cfa;

		if (__builtin_expect(unwind_word_kind(rule) == UNWIND_ALIGNED, 0)) {
			is_whole &= add_word(cache, &word, place->rbp + (uint64_t)unwind_word_cfa_offset(rule), cfa);
			is_bp_used = true;
			rbp_addr = place->rbp;
		}
		if (is_bp_needed && (rule & UNWIND_WORD_RBP_SAVED)) {
			is_whole &= add_word(cache, &word, rbp_addr + (uint64_t)unwind_word_rbp_offset(rule), rbp);
			is_bp_needed = false;
		}
		is_bp_needed |= is_bp_used;
		frame--;
		cache->pcs[frame] = place->pc;
		cache->sp_offsets[frame] = (uint32_t)(place->sp - base);
		cache->word_firsts[frame] = (uint32_t)word | (is_bp_needed ? NEEDS_BP : 0);
		if (is_bp_needed)
			cache->rbps[frame] = place->rbp;
		if (frame + 1 < room || !cache->is_last_hidden) {
			bool is_same = pc != 0 && is_same_function(cache, place->pc, pc);

			run.length = is_same ? run.length + 1 : 1;
			run.shown += run.length <= NATIVE_STACK_RUN;
			pc = place->pc;
			run.given = digest_with(is_same ? run.last : run.given,
			                        pc | (run.length > NATIVE_STACK_RUN ? KMEM_FRAME_REPEATED : 0));
			if (!is_same)
				run.last = run.given;
		}
		run.callers_digest = digest_with(run.callers_digest, place->pc);
		cache->runs[frame] = run;
		cfa = place->sp;
		rbp = place->rbp;
	}
	return is_whole;
}

/* ---- giving out ---- */

static inline void
give(const struct native_cache *cache, uint64_t first, uint64_t top, struct native_stack *stack)
{
	uint64_t end = cache->room - cache->is_last_hidden;
	uint64_t count = end > first ? end - first : 0;

	stack->kept = top < end ? (uint32_t)(end - top) : 0;
	stack->is_complete = cache->is_complete;
	stack->is_alternate = cache->is_alternate;
	stack->is_remembered = true;
	if (__builtin_expect(count > NATIVE_STACK_MAX || (count != 0 && cache->runs[first].shown != count), 0)) {
		native_cache_give_parts(cache, first, end, stack);
		return;
	}
	stack->count = (uint32_t)count;
	stack->omitted = 0;
	stack->pc = cache->pcs + first;
	stack->sp_offsets = cache->sp_offsets + first;
	stack->sp_base = cache->stack_end - SPAN;
}

/* ---- walking ---- */

/* Empty, for that walk. */
static __attribute__((noinline)) void
begin(struct native_cache *cache, uint64_t version, uint64_t stop_sp, uint64_t stack_end, bool is_alternate)
{
	if (cache->version != version)
		memset(cache->functions, 0, sizeof(cache->functions));
	cache->version = version;
	cache->stop_sp = stop_sp;
	cache->stack_end = stack_end;
	cache->is_alternate = is_alternate;
	cache->frame_count = 0;
	if (cache->room == 0)
		native_cache_first_room(cache);
	cache->sp_offsets[cache->room] = UINT32_MAX; // N3: no frame is there
}

/* The word at an address that is not below sp, a live one. */
__attribute__((no_sanitize_address)) static inline bool
read_above(uint64_t sp, uint64_t stack_end, uint64_t addr, uint64_t *value)
{
	if (addr - sp >= stack_end - 7 - sp || addr % 8 != 0)
		return false;
	*value = *(const uint64_t *)(uintptr_t)addr;
	return true;
}

__attribute__((no_sanitize_address)) static inline uint64_t
read_return(uint64_t cfa)
{
	return *(const uint64_t *)(uintptr_t)(cfa - 8);
}

/* How a walk by rule came to its end. */
enum ending {
	ENDING_NONE,      // not yet
	ENDING_ELSEWHERE, // not here: this file cannot go on
	ENDING_LAST,      // at a frame that nothing calls
	ENDING_LOST,      // at code without tables
	ENDING_STOP,      // in the frame where stop_sp lies
	ENDING_NOBODY,    // the caller has pc 0
};

/* One step by rule. ENDING_ELSEWHERE: *place is as it was; else that is where the step led to. */
static inline enum ending
step_by_rule(struct native_place *place, uint64_t rule, uint64_t stop_sp, uint64_t stack_end, uint64_t readable_end,
             uint64_t *cfa)
{
	enum unwind_kind kind = unwind_word_kind(rule);
	uint64_t rbp_addr;
	uint64_t rbp = place->rbp;

	*cfa = rbp_addr = (rule & UNWIND_WORD_CFA_FROM_RBP ? place->rbp : place->sp) +
	                  (uint64_t)unwind_word_cfa_offset(rule);
	if (__builtin_expect(kind != UNWIND_NORMAL, 0)) {
		if (kind == UNWIND_END || kind == UNWIND_NONE)
			return kind == UNWIND_END ? ENDING_LAST : ENDING_LOST;
		if (kind != UNWIND_ALIGNED)
			return ENDING_ELSEWHERE;
		rbp_addr = place->rbp;
		if (place->sp >= readable_end ||
		    !read_above(place->sp, readable_end, place->rbp + (uint64_t)unwind_word_cfa_offset(rule), cfa))
			return ENDING_ELSEWHERE;
	}
	if (*cfa <= place->sp)
		return ENDING_ELSEWHERE;
	if (stop_sp - place->sp < *cfa - place->sp)
		return ENDING_STOP;
	if (*cfa >= stack_end - 7 || *cfa % 8 != 0)
		return ENDING_ELSEWHERE;

	uint64_t pc = read_return(*cfa); // not below sp, less the alignment that this may lack

	if (pc >> KMEM_ADDRESS_BITS != 0)
		return ENDING_ELSEWHERE;
	if (rule & UNWIND_WORD_RBP_SAVED &&
	    !read_above(place->sp, readable_end, rbp_addr + (uint64_t)unwind_word_rbp_offset(rule), &rbp))
		return ENDING_ELSEWHERE;
	*place = (struct native_place){ .pc = pc, .sp = *cfa, .rbp = rbp };
	return pc != 0 ? ENDING_NONE : ENDING_NOBODY;
}

/*
 * The walk took so many steps by rule, and stands in frame `top`. `calls` were made since the walk before, at most: where must the
 * comparison go to?
 */
static inline uint64_t
compared_end(const struct native_cache *cache, uint64_t top, uint64_t steps, uint64_t calls)
{
	uint64_t most = calls > NATIVE_CACHE_SURE ? calls : NATIVE_CACHE_SURE;
	uint64_t to = most > steps ? most - steps : 0;

	return to < cache->room - top ? top + to : cache->room;
}

void
native_cache_note_time(struct native_cache *cache)
{
	if (__builtin_expect(cache->frame_count > NATIVE_CACHE_SURE, 0)) { // of others nothing is left out
		cache->time = call_clock_now();
		call_clock_fence();
	}
}

/* False: as native_cache_walk(). *kept: the first frame that was not walked by rule. */
static inline bool
walk_to_end(struct native_cache *cache, struct native_place *place, uint64_t stop_sp, uint64_t *kept)
{
	/* relaxed: see unwind_rules_version() */
	uint64_t whole_version = atomic_load_explicit(&unwind_rules.version, memory_order_relaxed);
	uint64_t version = whole_version & UNWIND_VERSION_MASK;
	uint64_t steps = 0;

	bool is_alternate = false;
	uint64_t stack_end;
	uint64_t readable_end;

	cache->step_count = 0;
	if (__builtin_expect(thread_stack_contains(place->sp), 1)) {
		stack_end = readable_end = thread_stack_end(place->sp);
	} else {
		is_alternate = true;
		readable_end = checked_memory_page_end(place->sp - 8); // the return address of the hook lies there
		stack_end = readable_end + 8;                          // a frame whose return address is the last word is in it
	}
	uint64_t base = stack_end - SPAN;
	struct native_place at = *place;
	enum ending ending = ENDING_NONE;
	uint64_t cfa = 0;

	if (__builtin_expect(cache->version != whole_version || cache->stop_sp != stop_sp || cache->stack_end != stack_end,
	                     0))
		begin(cache, whole_version, stop_sp, stack_end, is_alternate);

	uint64_t top = cache->room - cache->frame_count;
	uint64_t compared = 0; // the words and return addresses of frames before that are unchanged, from `top` on
	uint64_t calls = UINT64_MAX;

	if (__builtin_expect(cache->frame_count > NATIVE_CACHE_SURE, 0) && !is_alternate) // N5
		calls = call_clock_calls_since(cache->time);
	for (;;) {
		uint32_t offset = (uint32_t)(at.sp - base);

		while (cache->sp_offsets[top] < offset)
			top++;
		if (cache->sp_offsets[top] == offset && cache->pcs[top] == at.pc &&
		    (!needs_bp(cache, top) || cache->rbps[top] == at.rbp)) {
			uint64_t from = compared > top ? compared : top;
			uint64_t end = compared_end(cache, top, steps, calls);

			if (end <= from || is_unchanged(cache, top, from, end, base))
				break;
			top = first_unchanged(cache, top, end, base);
			compared = end;
		}
		if (__builtin_expect(steps + 2 > cache->room, 0)) {
			uint64_t room = cache->room;

			if (!native_cache_more_room(cache, steps)) {
				ending = ENDING_ELSEWHERE;
				break;
			}
			top += cache->room - room;
			compared += cache->room - room;
		}

		struct native_step *step = &cache->steps[steps];

		step->place = at;
		step->rule = unwind_rules_get(at.pc, version);
		ending = step_by_rule(&at, step->rule, stop_sp, stack_end, readable_end, &cfa);
		if (ending != ENDING_NONE)
			break;
		steps++;
	}

	effort_count(KMEM_EFFORT_WALKS);
	effort_count_many(KMEM_EFFORT_WALK_FRAMES, (uint32_t)steps);
	if (ending == ENDING_NONE) {
		uint64_t room = cache->room;

		if (steps > top && !native_cache_more_room(cache, steps)) // more frames than there is room for
			ending = ENDING_ELSEWHERE;
		top += cache->room - room;
	} else if (ending != ENDING_ELSEWHERE) {
		top = cache->room;
		if (ending == ENDING_LAST || ending == ENDING_LOST)
			cache->steps[steps].rule = 0; // nothing of it matters
		steps++;
		if (ending == ENDING_NOBODY)
			cache->steps[steps++] = (struct native_step){ .place = at };
		cache->is_complete = ending != ENDING_LOST;
		cache->is_last_hidden = ending == ENDING_STOP || ending == ENDING_NOBODY;
	}
	if (__builtin_expect(ending == ENDING_ELSEWHERE, 0)) {
		*place = at;
		cache->step_count = (uint32_t)steps;
		return false;
	}

	cache->frame_count = (uint32_t)(cache->room - (top - steps));
	if (steps != 0 && __builtin_expect(!remember(cache, steps, top, cfa), 0)) {
		uint64_t room = cache->room;

		cache->frame_count = (uint32_t)(room - top); // those that were remembered are still whole
		if (native_cache_more_room(cache, steps)) {
			top += cache->room - room;
			cache->frame_count = (uint32_t)(cache->room - (top - steps));
			(void)remember(cache, steps, top, cfa);
		}
		/* Two words a frame, all along: the next walk finds none of them. */
		if (word_first(cache, top - steps) == 0)
			cache->frame_count = 0;
	}
	cache->first = (uint32_t)(top - steps);
	*kept = top;
	return true;
}

bool
native_cache_walk(struct native_cache *cache, struct native_place *place, uint64_t stop_sp, struct native_stack *stack)
{
	uint64_t kept;

	if (!walk_to_end(cache, place, stop_sp, &kept))
		return false;
	give(cache, cache->first, kept, stack);
	return true;
}

uint64_t
native_cache_digest(struct native_cache *cache, const void *hook_frame)
{
	const uint64_t *frame = hook_frame;
	struct native_place place = { .pc = frame[1], .sp = (uintptr_t)frame + 16, .rbp = frame[0] };
	uint64_t kept;

	if (!walk_to_end(cache, &place, 0, &kept) || !cache->is_complete)
		return 0;
	return cache->runs[cache->first].given ^ (cache->is_alternate ? ALTERNATE_DIGEST : 0);
}

uint64_t
native_cache_path(const struct native_cache *cache)
{
	uint64_t first = cache->room - cache->frame_count;
	uint64_t given = cache->frame_count - cache->is_last_hidden;

	return cache->frame_count == 0 || cache->runs[first].shown == given ? 0 : cache->runs[first].callers_digest;
}

bool
native_cache_offsets(const struct native_cache *cache, uint16_t *offsets, uint32_t room, uint32_t *count,
                     bool *needs_rbp)
{
	uint64_t first = cache->room - cache->frame_count;
	uint32_t sp = cache->sp_offsets[first];
	uint32_t total = 0;

	if (cache->frame_count == 0 || cache->frame_count + (cache->room - word_first(cache, first)) > room)
		return false;
	for (uint64_t frame = first + 1; frame < cache->room; frame++) {
		uint32_t words = (cache->sp_offsets[frame] - 8 - sp) / 8;

		if (words > UINT16_MAX)
			return false;
		offsets[total++] = (uint16_t)words;
	}
	for (uint64_t word = word_first(cache, first); word < cache->room; word++) {
		uint32_t words = (cache->word_offsets[word] - sp) / 8;

		if (words > UINT16_MAX)
			return false;
		offsets[total++] = (uint16_t)words;
	}
	*count = total;
	*needs_rbp = needs_bp(cache, first);
	return true;
}

void
native_cache_release(struct native_caches *caches)
{
	native_cache_release_room(&caches->own);
	native_cache_release_room(&caches->alternate);
}
