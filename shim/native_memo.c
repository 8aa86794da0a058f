/*
 * native_memo.c - see native_memo.h.
 *
 * Not chosen  entries that hold return address, saved rbp and their slots together: 48 bytes a frame, most of them not
 *             looked at. Apart, the comparison reads 12 bytes a frame, and the caller reads 8 of them anyway.
 */
#include "native_memo.h"

#include <assert.h>
#include <string.h>

#include "kmem_format.h"
#include "thread_stack.h"
#include "unwind_rules.h"

#define SPAN     (UINT64_C(1) << 32) // offsets of 32 bits reach so far
#define NEEDS_BP UINT16_C(0x8000)
#define FRAMES   NATIVE_MEMO_FRAMES
#define WORDS    NATIVE_MEMO_WORDS

static_assert(WORDS < NEEDS_BP, "word_firsts has room for one flag");
static_assert(sizeof(struct native_memo) <= 133 << 10, "one for each thread");

/* ---- comparing ---- */

static inline bool
needs_bp(const struct native_memo *memo, uint64_t frame)
{
	return (memo->word_firsts[frame] & NEEDS_BP) != 0;
}

static inline uint64_t
word_first(const struct native_memo *memo, uint64_t frame)
{
	return memo->word_firsts[frame] & ~(uint64_t)NEEDS_BP;
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
 * The walk is in that frame. Is the rest as remembered? The return address of the frame itself was read on the way, or is the
 * hook's own.
 */
static inline bool
is_unchanged(const struct native_memo *memo, uint64_t frame, uint64_t base)
{
	uint64_t first = word_first(memo, frame);

	return are_equal(base - 8, memo->sp_offsets + frame + 1, memo->pcs + frame + 1, FRAMES - frame - 1) &&
	       are_equal(base, memo->word_offsets + first, memo->words + first, WORDS - first);
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
 * The walk is in that frame, and something further out changed. The innermost frame from which all is unchanged; FRAMES when
 * there is none.
 */
static __attribute__((noinline)) uint64_t
first_unchanged(const struct native_memo *memo, uint64_t frame, uint64_t base)
{
	/* Where the return address changed, the frame is another one: who comes to it has read that. */
	uint64_t first = behind_differences(base - 8, memo->sp_offsets, memo->pcs, frame + 1, FRAMES);
	uint64_t word = behind_differences(base, memo->word_offsets, memo->words, word_first(memo, frame), WORDS);

	while (first < FRAMES && word_first(memo, first) < word)
		first++;
	return first;
}

/* ---- remembering ---- */

/* False: no room. */
static inline bool
add_word(struct native_memo *memo, uint64_t *first, uint64_t addr, uint64_t value)
{
	if (*first == 0)
		return false;
	--*first;
	memo->word_offsets[*first] = (uint32_t)(addr - (memo->stack_end - SPAN));
	memo->words[*first] = value;
	return true;
}

/*
 * The steps of this walk, innermost first, go before frame `top`, where it came to what is remembered; FRAMES if it did not:
 * then last_cfa is the CFA of the last one. False: they are in their places, but there was no room for their words.
 */
static inline bool
remember(struct native_memo *memo, uint64_t step_count, uint64_t top, uint64_t last_cfa)
{
	uint64_t base = memo->stack_end - SPAN;
	uint64_t word = WORDS;
	bool is_whole = true;
	bool is_bp_needed = false; // by the caller; then by the frame
	uint64_t cfa = last_cfa;
	uint64_t rbp = 0; // in the caller, if it needs it

	if (top < FRAMES) {
		word = word_first(memo, top);
		is_bp_needed = needs_bp(memo, top);
		cfa = base + memo->sp_offsets[top];
		rbp = memo->rbps[top];
	}
	for (uint64_t i = step_count, frame = top; i-- > 0;) {
		const struct native_place *place = &memo->steps[i].place;
		uint64_t rule = memo->steps[i].rule;
		bool is_bp_used = (rule & UNWIND_WORD_CFA_FROM_RBP) != 0;
		uint64_t rbp_addr = cfa;

		if (__builtin_expect(unwind_word_kind(rule) == UNWIND_ALIGNED, 0)) {
			is_whole &= add_word(memo, &word,
			                     place->rbp + (uint64_t)unwind_word_cfa_offset(rule), cfa);
			is_bp_used = true;
			rbp_addr = place->rbp;
		}
		if (is_bp_needed && (rule & UNWIND_WORD_RBP_SAVED)) {
			is_whole &= add_word(memo, &word,
			                     rbp_addr + (uint64_t)unwind_word_rbp_offset(rule), rbp);
			is_bp_needed = false;
		}
		is_bp_needed |= is_bp_used;
		frame--;
		memo->pcs[frame] = place->pc;
		memo->sp_offsets[frame] = (uint32_t)(place->sp - base);
		memo->word_firsts[frame] = (uint16_t)(word | (is_bp_needed ? NEEDS_BP : 0));
		if (is_bp_needed)
			memo->rbps[frame] = place->rbp;
		cfa = place->sp;
		rbp = place->rbp;
	}
	return is_whole;
}

/* ---- giving out ---- */

static __attribute__((noinline)) void
give_ends(const struct native_memo *memo, uint64_t first, uint64_t count, struct native_stack *stack)
{
	for (uint64_t i = 0; i < NATIVE_STACK_MAX; i++) {
		uint64_t frame = first + i;

		if (i >= NATIVE_STACK_INNER)
			frame += count - NATIVE_STACK_MAX;
		stack->own_pc[i] = memo->pcs[frame];
		stack->own_sp[i] = memo->stack_end - SPAN + memo->sp_offsets[frame];
	}
	stack->count = NATIVE_STACK_MAX;
	stack->omitted = (uint32_t)(count - NATIVE_STACK_MAX);
	stack->pc = stack->own_pc;
	stack->sp_offsets = NULL;
}

static inline void
give(const struct native_memo *memo, uint64_t first, uint64_t top, struct native_stack *stack)
{
	uint64_t end = FRAMES - memo->is_last_hidden;

	stack->kept = top < end ? (uint32_t)(end - top) : 0;
	stack->is_complete = memo->is_complete;
	stack->is_alternate = false;
	stack->is_remembered = true;
	if (__builtin_expect(end - first > NATIVE_STACK_MAX, 0)) {
		give_ends(memo, first, end - first, stack);
		return;
	}
	stack->count = (uint32_t)(end - first);
	stack->omitted = 0;
	stack->pc = memo->pcs + first;
	stack->sp_offsets = memo->sp_offsets + first;
	stack->sp_base = memo->stack_end - SPAN;
}

/* ---- walking ---- */

/* Empty, for that walk. */
static __attribute__((noinline)) void
begin(struct native_memo *memo, uint64_t generation, uint64_t stop_sp, uint64_t stack_end)
{
	memo->generation = generation;
	memo->stop_sp = stop_sp;
	memo->stack_end = stack_end;
	memo->frame_count = 0;
	memo->sp_offsets[FRAMES] = UINT32_MAX; // N3: no frame is there
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
step_by_rule(struct native_place *place, uint64_t rule, uint64_t stop_sp, uint64_t stack_end, uint64_t *cfa)
{
	enum unwind_kind kind = unwind_word_kind(rule);
	uint64_t rbp_addr;
	uint64_t pc;
	uint64_t rbp = place->rbp;

	*cfa = rbp_addr = (rule & UNWIND_WORD_CFA_FROM_RBP ? place->rbp : place->sp) +
	                  (uint64_t)unwind_word_cfa_offset(rule);
	if (__builtin_expect(kind != UNWIND_NORMAL, 0)) {
		if (kind == UNWIND_END || kind == UNWIND_NONE)
			return kind == UNWIND_END ? ENDING_LAST : ENDING_LOST;
		if (kind != UNWIND_ALIGNED)
			return ENDING_ELSEWHERE;
		rbp_addr = place->rbp;
		if (!read_above(place->sp, stack_end, place->rbp + (uint64_t)unwind_word_cfa_offset(rule), cfa))
			return ENDING_ELSEWHERE;
	}
	if (*cfa <= place->sp)
		return ENDING_ELSEWHERE;
	if (stop_sp - place->sp < *cfa - place->sp)
		return ENDING_STOP;
	if (*cfa >= stack_end - 7 || *cfa % 8 != 0)
		return ENDING_ELSEWHERE;
	pc = read_return(*cfa); // not below sp, less the alignment that this may lack
	if (pc >> KMEM_ADDRESS_BITS != 0)
		return ENDING_ELSEWHERE;
	if (rule & UNWIND_WORD_RBP_SAVED &&
	    !read_above(place->sp, stack_end, rbp_addr + (uint64_t)unwind_word_rbp_offset(rule), &rbp))
		return ENDING_ELSEWHERE;
	*place = (struct native_place){ .pc = pc, .sp = *cfa, .rbp = rbp };
	return pc != 0 ? ENDING_NONE : ENDING_NOBODY;
}

bool
native_memo_walk(struct native_memo *memo, struct native_place *place, uint64_t stop_sp,
                 struct native_stack *stack)
{
	/* relaxed: see unwind_rules_generation() */
	uint64_t all_generations = atomic_load_explicit(&unwind_rules.generation, memory_order_relaxed);
	uint64_t generation = all_generations & UNWIND_GENERATION_MASK;
	uint64_t steps = 0;

	memo->step_count = 0;
	if (__builtin_expect(!thread_stack_contains(place->sp), 0))
		return false;

	uint64_t stack_end = thread_stack_end(place->sp);
	uint64_t base = stack_end - SPAN;
	struct native_place at = *place;
	enum ending ending = ENDING_NONE;
	bool is_compared = false; // from `top` on all is unchanged
	uint64_t cfa = 0;

	if (__builtin_expect(memo->generation != all_generations || memo->stop_sp != stop_sp ||
	                     memo->stack_end != stack_end, 0))
		begin(memo, all_generations, stop_sp, stack_end);

	uint64_t top = FRAMES - memo->frame_count;

	for (;;) {
		uint32_t offset = (uint32_t)(at.sp - base);

		while (memo->sp_offsets[top] < offset)
			top++;
		if (memo->sp_offsets[top] == offset && memo->pcs[top] == at.pc &&
		    (!needs_bp(memo, top) || memo->rbps[top] == at.rbp)) {
			if (is_compared || is_unchanged(memo, top, base))
				break;
			top = first_unchanged(memo, top, base);
			is_compared = true;
		}
		if (__builtin_expect(steps + 2 > FRAMES, 0)) {
			ending = ENDING_ELSEWHERE;
			break;
		}

		struct native_step *step = &memo->steps[steps];

		step->place = at;
		step->rule = unwind_rules_get(at.pc, generation);
		ending = step_by_rule(&at, step->rule, stop_sp, stack_end, &cfa);
		if (ending != ENDING_NONE)
			break;
		steps++;
	}

	if (ending == ENDING_NONE) {
		if (steps > top) // more frames than there is room for
			ending = ENDING_ELSEWHERE;
	} else if (ending != ENDING_ELSEWHERE) {
		top = FRAMES;
		if (ending == ENDING_LAST || ending == ENDING_LOST)
			memo->steps[steps].rule = 0; // nothing of it matters
		steps++;
		if (ending == ENDING_NOBODY)
			memo->steps[steps++] = (struct native_step){ .place = at };
		memo->is_complete = ending != ENDING_LOST;
		memo->is_last_hidden = ending == ENDING_STOP || ending == ENDING_NOBODY;
	}
	if (__builtin_expect(ending == ENDING_ELSEWHERE, 0)) {
		*place = at;
		memo->step_count = (uint32_t)steps;
		return false;
	}

	if (steps != 0) {
		bool is_whole = remember(memo, steps, top, cfa);

		memo->frame_count = is_whole ? (uint32_t)(FRAMES - (top - steps)) : 0;
	} else {
		memo->frame_count = (uint32_t)(FRAMES - top);
	}
	give(memo, top - steps, top, stack);
	return true;
}

bool
native_memo_offsets(const struct native_memo *memo, uint16_t *offsets, uint32_t room, uint32_t *count,
                    bool *needs_rbp)
{
	uint64_t first = FRAMES - memo->frame_count;
	uint32_t sp = memo->sp_offsets[first];
	uint32_t total = 0;

	if (memo->frame_count == 0 || memo->frame_count + (WORDS - word_first(memo, first)) > room)
		return false;
	for (uint64_t frame = first + 1; frame < FRAMES; frame++) {
		uint32_t words = (memo->sp_offsets[frame] - 8 - sp) / 8;

		if (words > UINT16_MAX)
			return false;
		offsets[total++] = (uint16_t)words;
	}
	for (uint64_t word = word_first(memo, first); word < WORDS; word++) {
		uint32_t words = (memo->word_offsets[word] - sp) / 8;

		if (words > UINT16_MAX)
			return false;
		offsets[total++] = (uint16_t)words;
	}
	*count = total;
	*needs_rbp = needs_bp(memo, first);
	return true;
}
