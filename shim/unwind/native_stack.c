/*
 * native_stack.c - see native_stack.h.
 *
 * A walk knows three registers: pc, sp and rbp. Each step asks unwind_rules.h how the caller's are
 * computed and reads at most two words of the stack. Within the thread's own stack those reads need no
 * check beyond the range, since sp only rises from a frame that is live. Elsewhere (signal stacks,
 * coroutines) the range is not known: what leaves the page in which the hook runs (native_cache.h) is read through the
 * kernel, which refuses what is not mapped instead of faulting.
 */
#include "unwind/native_stack.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/arch.h"
#include "base/checked_memory.h"
#include "base/effort.h"
#include "base/settings.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "kmem_format.h"
#include "unwind/native_cache.h"
#include "unwind/native_start.h"
#include "unwind/unwind_libunwind.h"
#include "unwind/unwind_rules.h"

#define ALTERNATE_FRAMES_MAX 512u

struct walk {
	uint64_t readable_low; // [low, end) of the thread's own stack may be read without asking the kernel
	uint64_t readable_end;
	bool is_checked; // sp is elsewhere: every read asks
	struct native_stack *out;
	uint64_t alternate_visits;
	uint64_t
		link; // link register of a frame that a signal interrupted; 0 = there is none, or a call has overwritten it
};

/* ---- reading ---- */

/* Any word of a live stack, not only those of variables: the address sanitizer must not object. */
__attribute__((no_sanitize_address)) static inline bool
read_word(struct walk *walk, uint64_t addr, uint64_t *value)
{
	if (addr - walk->readable_low < walk->readable_end - walk->readable_low - 7 && addr % 8 == 0) {
		*value = *(const uint64_t *)(uintptr_t)addr;
		return true;
	}
	/* From our own stack nothing leads below the frame where the walk came in, nor elsewhere. */
	return walk->is_checked && checked_memory_span_word(&walk->out->span, addr, value);
}

/* From here on sp is in that stack: the thread's own, or one that is not known. */
static inline void
enter_stack(struct walk *walk, uint64_t sp, bool is_own)
{
	walk->is_checked = !is_own;
	// below the sp of a frame that was interrupted: registers that its end took back already are there
	walk->readable_low = is_own ? sp - ARCH_RED_ZONE_BYTES : 0; // our own frames, at first
	walk->readable_end = is_own ? thread_stack_end(sp) : 7;
	if (!is_own)
		walk->out->is_alternate = true;
}

/*
 * The walk jumped: after a signal, or from a coroutine back to who resumed it. What is mapped at the new
 * sp is mapped up to the stack's end.
 */
static void
change_stack(struct walk *walk, uint64_t sp)
{
	uint64_t unused;

	enter_stack(walk, sp,
	            thread_stack_contains(sp) &&
	                checked_memory_span_word(&walk->out->span, sp - ARCH_RED_ZONE_BYTES, &unused));
}

/* ---- keeping ---- */

/* What was kept so far. */
struct keeping {
	struct native_stack *stack;
	uint64_t version;
	uint64_t walked;     // frames
	uint64_t shown;      // of these, without what recursion leaves out
	uint64_t run_length; // of the latest ones, in the same function
	uint64_t pc;         // of the latest one; 0 = none
};

/* Where the frame with that number of those shown is kept: the innermost frames in place, the outermost ones in a ring behind them. */
static inline uint64_t
place_of(uint64_t shown)
{
	return shown < NATIVE_STACK_INNER ? shown : NATIVE_STACK_INNER + (shown - NATIVE_STACK_INNER) % NATIVE_STACK_OUTER;
}

static inline void
put(struct native_stack *stack, uint64_t at, uint64_t pc, uint64_t sp, uint64_t number)
{
	stack->own_pc[at] = pc;
	stack->own_sp[at] = sp;
	stack->numbers[at] = number;
}

/* As the latest one. */
static bool
is_same_function(const struct keeping *kept, uint64_t pc)
{
	uint64_t function = unwind_rules_function(pc, kept->version);

	return function != 0 && function == unwind_rules_function(kept->pc, kept->version);
}

static void
keep(struct keeping *kept, uint64_t pc, uint64_t sp)
{
	struct native_stack *stack = kept->stack;
	bool is_same = (pc & KMEM_FRAME_EXACT) == 0 && kept->pc != 0 &&
	               (pc == kept->pc || (native_stack_may_be_same_function(pc, kept->pc) && is_same_function(kept, pc)));

	kept->run_length = is_same ? kept->run_length + 1 : 1;
	kept->pc = pc;
	if (kept->run_length <= NATIVE_STACK_RUN)
		kept->shown++;
	else // in the place of the outermost one
		stack->own_pc[place_of(kept->shown - NATIVE_STACK_RUN)] |= KMEM_FRAME_REPEATED;
	put(stack, place_of(kept->shown - 1), pc, sp, kept->walked++);
}

/* Not part of its callers: they need little stack. */
static __attribute__((noinline)) void
rotate(uint64_t *ring, uint64_t first)
{
	uint64_t copy[NATIVE_STACK_OUTER];

	memcpy(copy, ring, sizeof copy);
	for (uint64_t i = 0; i < NATIVE_STACK_OUTER; i++)
		ring[i] = copy[(first + i) % NATIVE_STACK_OUTER];
}

static void
keep_end(const struct keeping *kept)
{
	struct native_stack *stack = kept->stack;
	uint64_t first = (kept->shown - NATIVE_STACK_INNER) % NATIVE_STACK_OUTER;

	stack->omitted = 0;
	if (kept->shown <= NATIVE_STACK_MAX) {
		stack->count = (uint32_t)kept->shown;
		return;
	}
	rotate(stack->own_pc + NATIVE_STACK_INNER, first);
	rotate(stack->own_sp + NATIVE_STACK_INNER, first);
	rotate(stack->numbers + NATIVE_STACK_INNER, first);
	stack->count = NATIVE_STACK_MAX;
	stack->omitted = (uint32_t)(stack->numbers[NATIVE_STACK_INNER] - stack->numbers[NATIVE_STACK_INNER - 1] - 1);
}

/* ---- walking ---- */

/* The registers that a signal interrupted. */
static bool
step_signal(struct walk *walk, uint64_t *pc, uint64_t *sp, uint64_t *rbp)
{
	uint64_t context = *sp + ARCH_SIGNAL_CONTEXT;

#if ARCH_LINK_REGISTER
	if (!read_word(walk, context + ARCH_CONTEXT_LINK, &walk->link))
		return false;
#endif
	if (!read_word(walk, context + ARCH_CONTEXT_PC, pc) || !read_word(walk, context + ARCH_CONTEXT_FP, rbp) ||
	    !read_word(walk, context + ARCH_CONTEXT_SP, sp))
		return false;
	change_stack(walk, *sp);
	return *pc >> KMEM_ADDRESS_BITS == 0;
}

/* Goes on from there, behind those that are kept. False when libunwind has to do it. */
static bool
walk_by_rules(struct walk *walk, struct native_place place, struct keeping *kept, uint64_t stop_sp)
{
	struct native_stack *stack = walk->out;
	uint64_t version = kept->version;
	uint64_t pc = place.pc;
	uint64_t sp = place.sp;
	uint64_t rbp = place.rbp;
	bool is_expressible = true;

	for (;;) {
		uint64_t rule = unwind_rules_get(pc, version);
		enum unwind_kind kind = unwind_word_kind(rule);
		uint64_t base = rule & UNWIND_WORD_CFA_FROM_RBP ? rbp : sp;
		uint64_t cfa = base + (uint64_t)unwind_word_cfa_offset(rule);
		uint64_t rbp_addr = cfa;

		if (__builtin_expect(kind != UNWIND_NORMAL, 0)) {
			if (kind == UNWIND_INEXPRESSIBLE) {
				is_expressible = false;
				break;
			}
			if (ARCH_LINK_REGISTER && kind == UNWIND_LEAF) {
				keep(kept, pc, sp);
				pc = arch_code_address(walk->link);
				if (pc == 0 || cfa < sp)
					break;
				sp = cfa;
				goto next_leaf;
			}
			if (kind != UNWIND_ALIGNED) {
				keep(kept, pc, sp);
				stack->is_complete = kind == UNWIND_END;
				if (kind != UNWIND_SIGNAL || !step_signal(walk, &pc, &sp, &rbp))
					break;
				pc |= KMEM_FRAME_EXACT;
				goto next;
			}
			rbp_addr = rbp;
			if (!read_word(walk, rbp + (uint64_t)unwind_word_cfa_offset(rule), &cfa)) {
				keep(kept, pc, sp);
				break;
			}
		}
		if (stop_sp - sp < cfa - sp && cfa > sp) {
			stack->is_complete = true;
			break;
		}
		keep(kept, pc, sp);
		if (cfa <= sp && !(walk->is_checked && thread_stack_contains(cfa)))
			break;
		if (!read_word(walk, unwind_word_return_addr(rule, cfa), &pc))
			break;
		pc = arch_code_address(pc);
		if (rule & UNWIND_WORD_RBP_SAVED && !read_word(walk, rbp_addr + (uint64_t)unwind_word_rbp_offset(rule), &rbp))
			break;
		sp = cfa;
		if (walk->is_checked && thread_stack_contains(sp))
			change_stack(walk, sp);
		if (pc == 0) {
			stack->is_complete = true; // the way threads without tables begin
			break;
		}
		if (pc >> KMEM_ADDRESS_BITS != 0)
			break;
	next_leaf:
		if (ARCH_LINK_REGISTER)
			walk->link = 0; // a call overwrites it
	next:
		if (kept->walked >= NATIVE_STACK_VISITS_MAX)
			break;
		if (walk->is_checked && ++walk->alternate_visits >= ALTERNATE_FRAMES_MAX)
			break;
	}
	keep_end(kept);
	return is_expressible;
}

struct fallback {
	struct keeping kept;
	uint64_t stop_sp;
};

static bool
keep_fallback(void *context, uint64_t pc, uint64_t sp, uint64_t cfa)
{
	struct fallback *fallback = context;

	if (cfa > sp && fallback->stop_sp - sp < cfa - sp)
		return false;
	keep(&fallback->kept, pc, sp);
	return true;
}

/* Not part of its caller: it needs much more stack. */
static __attribute__((noinline)) void
walk_by_libunwind(uint64_t first_sp, uint64_t stop_sp, struct native_stack *stack)
{
	struct fallback fallback = { .kept = { .stack = stack, .version = unwind_rules_version() }, .stop_sp = stop_sp };

	stack->is_complete = unwind_libunwind_walk(first_sp, keep_fallback, &fallback) != UNWIND_END_LOST;
	keep_end(&fallback.kept);
	capture_file_lost(KMEM_LOST_FALLBACK_UNWINDS, 1);
}

/* The walk without a cache, or from where the cache could not go on. False when libunwind did it. */
static __attribute__((noinline)) bool
walk_on(const struct native_cache *cache, struct native_place place, uint64_t first_sp, uint64_t stop_sp,
        struct native_stack *stack)
{
	struct walk walk;
	struct keeping kept = { .stack = stack, .version = unwind_rules_version() };
	uint64_t steps = cache != NULL ? cache->step_count : 0;

	walk.out = stack;
	walk.alternate_visits = 0;
	if (ARCH_LINK_REGISTER)
		walk.link = 0;
	stack->span.addr = stack->span.end = 0;
	stack->count = 0;
	stack->omitted = 0;
	stack->kept = 0;
	stack->is_complete = false;
	stack->is_alternate = false;
	stack->is_remembered = false;
	stack->pc = stack->own_pc;
	stack->sp_offsets = NULL;
	for (uint64_t i = 0; i < steps; i++)
		keep(&kept, cache->steps[i].place.pc, cache->steps[i].place.sp);
	enter_stack(&walk, first_sp, thread_stack_contains(first_sp));
	bool is_by_rules = walk_by_rules(&walk, place, &kept, stop_sp);

	if (!is_by_rules)
		walk_by_libunwind(first_sp, stop_sp, stack);
	effort_count(KMEM_EFFORT_WALKS);
	effort_count_many(KMEM_EFFORT_WALK_FRAMES, (uint32_t)kept.walked);
	return is_by_rules;
}

/* With a link register the tables of that code lead on, and libunwind follows them. */
static bool
is_coroutine_end(const struct native_stack *stack)
{
	return ARCH_LINK_REGISTER && stack->count != 0 && stack->pc[stack->count - 1] == unwind_rules.coroutine_end_pc;
}

void
native_stack_walk(struct native_cache *cache, const void *hook_frame, uint64_t stop_sp, struct native_stack *stack)
{
	static _Atomic uint64_t walks; // relaxed: a count
	struct native_place place = native_start(hook_frame);
	uint64_t first_sp = place.sp;
	bool is_by_rules = true;

	if (cache == NULL || !native_cache_walk(cache, &place, stop_sp, stack))
		is_by_rules = walk_on(cache, place, first_sp, stop_sp, stack);
	if (__builtin_expect(!stack->is_complete, 0))
		capture_file_lost(KMEM_LOST_UNWINDS, 1);
	if (__builtin_expect(settings.verify_every != 0, 0) && is_by_rules &&
	    atomic_fetch_add_explicit(&walks, 1, memory_order_relaxed) % settings.verify_every == 0)
		unwind_libunwind_verify(first_sp, stack, stack->is_complete && stop_sp == 0 && !is_coroutine_end(stack));
}

void
native_stack_start(void)
{
	thread_stack_start();
	unwind_rules_start();
}

void
native_stack_modules_changed(void)
{
	unwind_rules_void();
}
