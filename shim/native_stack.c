/*
 * native_stack.c - see native_stack.h.
 *
 * A walk knows three registers: pc, sp and rbp. Each step asks unwind_rules.h how the caller's are
 * computed and reads at most two words of the stack. Within the thread's own stack those reads need no
 * check beyond the range, since sp only rises from a frame that is live. Elsewhere (signal stacks,
 * coroutines) the range is not known and every read goes through the kernel, which refuses what is not
 * mapped instead of faulting.
 */
#include "native_stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "capture_file.h"
#include "kmem_format.h"
#include "raw_sys.h"
#include "settings.h"
#include "unwind_libunwind.h"
#include "unwind_rules.h"

#define ALTERNATE_FRAMES_MAX 512u
#define WINDOW_BYTES         1024u // read at once from an unknown stack; a power of two that divides a page
#define MAIN_STACK_BYTES_MIN \
	(UINT64_C(128) << 20) // the kernel keeps this free below the main stack
#define MAIN_STACK_BYTES_MAX (UINT64_C(1) << 30)
#define PAGE_BYTES           UINT64_C(4096)

extern void *__libc_stack_end; // of the dynamic loader: the main thread's stack pointer at start

struct range {
	uint64_t low;
	uint64_t high;
};
static struct range main_stack;

/* This thread's own stack; low == high: not known. */
static __thread struct range thread_stack;
static __thread bool is_thread_stack_known;

struct walk {
	struct range own;      // this thread's stack
	struct range readable; // part of it that may be read without asking the kernel
	bool is_checked;       // sp is elsewhere: every read asks
	struct native_stack *out;
	uint64_t alternate_visits;
	uint64_t window_addr; // of window[], 1 = nothing in it
	uint64_t window[WINDOW_BYTES / 8];
};

/* ---- which stack ---- */

/*
 * Once per thread. pthread_getattr_np() may allocate, and for the main thread read /proc: the reentry
 * guard is held, and the main thread is told apart by its address first.
 */
static void
learn_thread_stack(uint64_t sp)
{
	int host_errno = errno;
	pthread_attr_t attributes;
	void *low = NULL;
	size_t bytes = 0;

	is_thread_stack_known = true; // also when it fails: then all reads are checked
	if (sp >= main_stack.low && sp < main_stack.high) {
		thread_stack = main_stack;
	} else if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
			thread_stack.low = (uintptr_t)low;
			thread_stack.high = (uintptr_t)low + bytes;
		}
		(void)pthread_attr_destroy(&attributes);
	}
	errno = host_errno;
}

static void
learn_main_stack(void)
{
	struct rlimit limit;
	uint64_t bytes = MAIN_STACK_BYTES_MIN;

	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur > bytes)
		bytes = limit.rlim_cur < MAIN_STACK_BYTES_MAX ? limit.rlim_cur : MAIN_STACK_BYTES_MAX;
	main_stack.high = ((uintptr_t)__libc_stack_end + PAGE_BYTES) & ~(PAGE_BYTES - 1);
	main_stack.low = main_stack.high - bytes;
}

/* ---- reading ---- */

static bool
read_checked(struct walk *walk, uint64_t addr, uint64_t *value)
{
	uint64_t start = addr & ~(uint64_t)(WINDOW_BYTES - 1);

	if (addr % 8 != 0 || addr >> KMEM_ADDRESS_BITS != 0)
		return false;
	if (walk->window_addr != start) {
		struct iovec here = { walk->window, WINDOW_BYTES };
		struct iovec there = { (void *)(uintptr_t)start, WINDOW_BYTES };
		int host_errno = errno;
		/* Long constants: an int on the stack of a variadic call has no upper half. */
		long bytes = syscall(SYS_process_vm_readv, getpid(), &here, 1L, &there, 1L, 0L);

		errno = host_errno;
		walk->window_addr = bytes == (long)WINDOW_BYTES ? start : 1;
		if (bytes != (long)WINDOW_BYTES)
			return false;
	}
	*value = walk->window[(addr - start) / 8];
	return true;
}

/* Any word of a live stack, not only those of variables: the address sanitizer must not object. */
__attribute__((no_sanitize_address)) static inline bool
read_word(struct walk *walk, uint64_t addr, uint64_t *value)
{
	if (addr - walk->readable.low < walk->readable.high - walk->readable.low - 7 && addr % 8 == 0) {
		*value = *(const uint64_t *)(uintptr_t)addr;
		return true;
	}
	/* From our own stack nothing leads below the frame where the walk came in, nor elsewhere. */
	return walk->is_checked && read_checked(walk, addr, value);
}

/* From here on sp is in that stack: the thread's own, or one that is not known. */
static void
enter_stack(struct walk *walk, uint64_t sp, bool is_own)
{
	walk->is_checked = !is_own;
	walk->readable = is_own ? (struct range){ sp - 16, walk->own.high } : (struct range){ 0, 7 };
	if (!is_own)
		walk->out->is_alternate = true;
}

static inline bool
is_in_own_stack(const struct walk *walk, uint64_t sp)
{
	return sp >= walk->own.low && sp < walk->own.high;
}

/*
 * The walk jumped: after a signal, or from a coroutine back to who resumed it. What is mapped at the new
 * sp is mapped up to the stack's end.
 */
static void
change_stack(struct walk *walk, uint64_t sp)
{
	uint64_t unused;

	enter_stack(walk, sp, is_in_own_stack(walk, sp) && read_checked(walk, sp - 16, &unused));
}

/* ---- keeping ---- */

/* The innermost frames in place, the outermost ones in a ring behind them. */
static inline void
keep(struct native_stack *stack, uint64_t frame, uint64_t pc, uint64_t sp)
{
	uint64_t at = frame;

	if (frame >= NATIVE_STACK_INNER)
		at = NATIVE_STACK_INNER + (frame - NATIVE_STACK_INNER) % NATIVE_STACK_OUTER;
	stack->pc[at] = pc;
	stack->sp[at] = sp;
}

static void
rotate(uint64_t *ring, uint64_t first)
{
	uint64_t copy[NATIVE_STACK_OUTER];

	memcpy(copy, ring, sizeof copy);
	for (uint64_t i = 0; i < NATIVE_STACK_OUTER; i++)
		ring[i] = copy[(first + i) % NATIVE_STACK_OUTER];
}

static void
keep_end(struct native_stack *stack, uint64_t frames)
{
	if (frames <= NATIVE_STACK_MAX) {
		stack->count = (uint32_t)frames;
		return;
	}
	stack->count = NATIVE_STACK_MAX;
	stack->omitted = (uint32_t)(frames - NATIVE_STACK_MAX);
	rotate(stack->pc + NATIVE_STACK_INNER, (frames - NATIVE_STACK_INNER) % NATIVE_STACK_OUTER);
	rotate(stack->sp + NATIVE_STACK_INNER, (frames - NATIVE_STACK_INNER) % NATIVE_STACK_OUTER);
}

/* ---- walking ---- */

/* The registers that a signal interrupted. */
static bool
step_signal(struct walk *walk, uint64_t *pc, uint64_t *sp, uint64_t *rbp)
{
	uint64_t registers = *sp + offsetof(ucontext_t, uc_mcontext.gregs);

	if (!read_word(walk, registers + REG_RIP * 8, pc) ||
	    !read_word(walk, registers + REG_RBP * 8, rbp) ||
	    !read_word(walk, registers + REG_RSP * 8, sp))
		return false;
	change_stack(walk, *sp);
	return *pc >> KMEM_ADDRESS_BITS == 0;
}

/* False when libunwind has to do it. */
static bool
walk_by_rules(struct walk *walk, uint64_t pc, uint64_t sp, uint64_t rbp, uint64_t stop_sp)
{
	struct native_stack *stack = walk->out;
	uint64_t generation = unwind_rules_generation();
	uint64_t frames = 0;
	bool is_expressible = true;

	enter_stack(walk, sp, is_in_own_stack(walk, sp));
	for (;;) {
		uint64_t rule = unwind_rules_get(pc, generation);
		enum unwind_kind kind = unwind_word_kind(rule);
		uint64_t base = rule & UNWIND_WORD_CFA_FROM_RBP ? rbp : sp;
		uint64_t cfa = base + (uint64_t)unwind_word_cfa_offset(rule);
		uint64_t rbp_addr = cfa;

		if (__builtin_expect(kind != UNWIND_NORMAL, 0)) {
			if (kind == UNWIND_INEXPRESSIBLE) {
				is_expressible = false;
				break;
			}
			if (kind != UNWIND_ALIGNED) {
				keep(stack, frames++, pc, sp);
				stack->is_complete = kind == UNWIND_END;
				if (kind != UNWIND_SIGNAL || !step_signal(walk, &pc, &sp, &rbp))
					break;
				pc |= KMEM_FRAME_EXACT;
				goto next;
			}
			rbp_addr = rbp;
			if (!read_word(walk, rbp + (uint64_t)unwind_word_cfa_offset(rule), &cfa)) {
				keep(stack, frames++, pc, sp);
				break;
			}
		}
		if (stop_sp - sp < cfa - sp && cfa > sp) {
			stack->is_complete = true;
			break;
		}
		keep(stack, frames++, pc, sp);
		if (cfa <= sp && !(walk->is_checked && is_in_own_stack(walk, cfa)))
			break;
		if (!read_word(walk, cfa - 8, &pc))
			break;
		if (rule & UNWIND_WORD_RBP_SAVED &&
		    !read_word(walk, rbp_addr + (uint64_t)unwind_word_rbp_offset(rule), &rbp))
			break;
		sp = cfa;
		if (walk->is_checked && is_in_own_stack(walk, sp))
			change_stack(walk, sp);
		if (pc == 0) {
			stack->is_complete = true; // the way threads without tables begin
			break;
		}
		if (pc >> KMEM_ADDRESS_BITS != 0)
			break;
	next:
		if (frames >= NATIVE_STACK_VISITS_MAX)
			break;
		if (walk->is_checked && ++walk->alternate_visits >= ALTERNATE_FRAMES_MAX)
			break;
	}
	keep_end(stack, frames);
	return is_expressible;
}

struct fallback {
	struct native_stack *stack;
	uint64_t frames;
	uint64_t stop_sp;
};

static bool
keep_fallback(void *context, uint64_t pc, uint64_t sp, uint64_t cfa)
{
	struct fallback *fallback = context;

	if (cfa > sp && fallback->stop_sp - sp < cfa - sp)
		return false;
	keep(fallback->stack, fallback->frames++, pc, sp);
	return true;
}

static void
walk_by_libunwind(uint64_t first_sp, uint64_t stop_sp, struct native_stack *stack)
{
	struct fallback fallback = { .stack = stack, .stop_sp = stop_sp };

	stack->omitted = 0;
	stack->is_complete =
		unwind_libunwind_walk(first_sp, keep_fallback, &fallback) != UNWIND_END_LOST;
	keep_end(stack, fallback.frames);
	capture_file_lost(KMEM_LOST_FALLBACK_UNWINDS, 1);
}

void
native_stack_walk(const void *hook_frame, uint64_t stop_sp, struct native_stack *stack)
{
	static _Atomic uint64_t walks; // relaxed: a count
	const uint64_t *frame = hook_frame;
	uint64_t first_sp = (uintptr_t)frame + 16;
	struct walk walk;

	stack->count = 0;
	stack->omitted = 0;
	stack->is_complete = false;
	stack->is_alternate = false;
	if (!is_thread_stack_known)
		learn_thread_stack(first_sp);
	walk.own = thread_stack;
	walk.out = stack;
	walk.alternate_visits = 0;
	walk.window_addr = 1;

	bool is_by_rules = walk_by_rules(&walk, frame[1], first_sp, frame[0], stop_sp);

	if (!is_by_rules)
		walk_by_libunwind(first_sp, stop_sp, stack);
	if (!stack->is_complete)
		capture_file_lost(KMEM_LOST_UNWINDS, 1);
	if (__builtin_expect(settings.verify_every != 0, 0) && is_by_rules && stack->is_complete &&
	    atomic_fetch_add_explicit(&walks, 1, memory_order_relaxed) % settings.verify_every == 0)
		unwind_libunwind_verify(first_sp, stack, stop_sp == 0);
}

void
native_stack_start(void)
{
	learn_main_stack();
	unwind_rules_start();
	unwind_libunwind_start();
}

void
native_stack_modules_changed(void)
{
	unwind_rules_void();
	unwind_libunwind_flush();
}
