/*
 * hooks_python_sample.c - small objects of Python, one of many: an unbiased sample by bytes.
 *
 * The interpreter serves requests of up to 512 bytes from its arenas. Each thread counts the bytes that it asks for down from a random number. At
 * 0 one object is drawn, and the next number. The numbers are exponentially distributed: so each byte is drawn with the same
 * probability, whatever came before, and no loop can be in step with it.
 *
 * The object that is drawn is not served from an arena but by malloc: the wrapper asks the interpreter's own allocator for 513 bytes,
 * which it passes on. So its release comes through our hooks of free and realloc like any other, by the interpreter's own free, which is
 * not wrapped: a release costs nothing. That block is booked as a sample (tracker_sampled()) and not as heap.
 *
 * Cost: four instructions for each request that is not drawn (count down, test, jump), and what the interpreter's compiler has lost by
 * not inlining its own allocator any more. Nothing of ours is on the stack meanwhile. Each function exists once for each domain: so the
 * allocator's own context stays in the table, and no pointer has to be loaded to find out where to go on.
 *
 * A realloc asks for new bytes, and is drawn like a malloc: a table belongs to the line that made it grow last, as with --python-objects.
 * What was drawn before and grows without being drawn again becomes a block of the heap, of as many bytes as it has: the estimate
 * is too large by these, less than 0.2 %.
 *
 * Not chosen  looking up each release in a small bitmap: 7 to 10 instructions, and the interpreter's compiler has inlined
 *             the release of its own allocator, which wrapping it would undo. Counting in the process and not in the thread: one
 *             instruction less, but sub-interpreters with locks of their own would share it.
 *
 * Invariants, tested in tests/python/test_object_samples.py:
 *   P1  an object is booked once: as a sample, or by the hooks of malloc; never both.
 *   P2  an object of n bytes is drawn with 1 - exp(-n / PYTHON_SAMPLES_BYTES), whatever the thread, its size before, and what came before.
 *   P3  a sample lies in malloc's heap from its birth to its release.
 *   P4  of each table three of four functions are replaced, and nothing else. If somebody takes the wrappers out, or puts others on top,
 *       live samples are still released rightly. The wrappers are put in once more only if the functions below them are on top of the
 *       table: so nothing ever calls in a circle.
 *   P5  where nothing is sampled, the stack holds the program's frames alone; so it does where an object is drawn and is too large.
 */
#include "hooks/hooks_python_sample.h"

#include <errno.h>
#include <stdint.h>

#include "base/chance.h"
#include "base/reentry_guard.h"
#include "base/tail_call.h"
#include "capture/capture_file.h"
#include "periodic/cached_names.h"
#include "record/heap_samples.h"
#include "record/python_samples.h"
#include "record/tracker.h"

#define HERE __builtin_frame_address(0)
#define RARE __attribute__((noinline, cold))
#define OBJECT_BYTES_MAX PYTHON_SAMPLES_OBJECT_BYTES_MAX
#define SAMPLE_BYTES (OBJECT_BYTES_MAX + 1) // what is asked for instead: malloc serves it
#define HEAD_BYTES_MAX 64u                  // debug hooks below put so much in front of an object, at most

enum { MEM, OBJ, DOMAINS };

static struct python_allocator inner[DOMAINS]; // constant once the wrappers are installed

static __thread struct {
	int64_t countdown; // bytes until the next draw
	uint64_t random;   // state of the generator; 0 = this thread has not drawn yet
	void *served;      // by malloc for the sample that is being made
	bool is_trying;    // it is none: is_served_by_malloc()
	bool is_holding;   // the sample of the heap: heap_samples_hold()
	int64_t heap_left;
} own __attribute__((tls_model("initial-exec")));

/* The countdown has fallen below 0, by `bytes`. In a thread that has not drawn yet this is no draw: its countdown begins now. */
static bool
is_drawn(void)
{
	if (own.random == 0) {
		int host_errno = errno;

		own.random = chance_seed(&own);
		errno = host_errno;
		own.countdown += chance_draw(&own.random, PYTHON_SAMPLES_BYTES);
		if (own.countdown >= 0)
			return false;
	}
	own.countdown = chance_draw(
		&own.random, PYTHON_SAMPLES_BYTES); // without memory: what is left of this request needs no second draw
	return true;
}

/* ---- samples ---- */

/* The block of a sample is no part of the sample of the heap. Only the first request is that block. */
static void
hold(void)
{
	own.heap_left = heap_samples_hold();
	own.is_holding = true;
}

static void
let_go(void)
{
	if (own.is_holding)
		heap_samples_release(own.heap_left);
	own.is_holding = false;
}

void *
hooks_python_sample_served(void *addr, size_t bytes)
{
	if (!own.is_trying && bytes < SAMPLE_BYTES) {
		capture_file_lost(KMEM_LOST_REENTRANT, 1);
		return addr;
	}
	own.served = addr;
	let_go();
	if (own.is_trying)
		reentry_guard_change(REENTRY_GUARD_OWN_WORK);
	else
		reentry_guard_leave();
	return addr;
}

/* To be called before a request of SAMPLE_BYTES. False: nothing can be recorded now. */
static inline __attribute__((always_inline)) bool
begin(void)
{
	int host_errno = errno;
	bool is_begun = tracker_is_on() && reentry_guard_enter_as(REENTRY_GUARD_SAMPLE);

	own.served = NULL;
	if (is_begun)
		hold();
	errno = host_errno;
	return is_begun;
}

/* To be called after it. Returns addr. An object that malloc did not serve after all is no sample, only a little too large. */
static void *
end(const void *hook_frame, unsigned domain, void *addr, size_t bytes)
{
	int host_errno = errno;
	uintptr_t head = (uintptr_t)addr - (uintptr_t)own.served;

	let_go();
	if (reentry_guard_is(REENTRY_GUARD_SAMPLE)) {
		reentry_guard_leave(); // nobody asked malloc
	} else if (own.served != NULL && head > HEAD_BYTES_MAX) {
		capture_file_lost(KMEM_LOST_REENTRANT, 1); // it took the place of the sample, which is a block of the heap now
	} else if (addr != NULL && reentry_guard_enter()) {
		if (domain == OBJ)
			python_samples_note(own.served, addr);
		tracker_sampled(hook_frame, own.served, bytes);
		if (domain == OBJ)
			cached_names_sampled();
		reentry_guard_leave();
	}
	errno = host_errno;
	return addr;
}

/* Is an object of so many bytes a sample? Asked when the countdown has fallen below 0. */
static RARE bool
is_sample(size_t bytes)
{
	return is_drawn() && bytes != 0 && bytes <= OBJECT_BYTES_MAX;
}

static RARE bool
is_sample_of(size_t count, size_t bytes)
{
	size_t total;

	return is_sample(__builtin_mul_overflow(count, bytes, &total) ? SIZE_MAX : total);
}

/* NULL: the caller asks for the object as it is, because nothing can be recorded now, or there is no memory. */
static RARE void *
sample_malloc(const void *hook_frame, unsigned domain, void *context, size_t bytes)
{
	return begin() ? end(hook_frame, domain, inner[domain].malloc(context, SAMPLE_BYTES), bytes) : NULL;
}

static RARE void *
sample_calloc(const void *hook_frame, unsigned domain, void *context, size_t bytes)
{
	return begin() ? end(hook_frame, domain, inner[domain].calloc(context, 1, SAMPLE_BYTES), bytes) : NULL;
}

static RARE void *
sample_realloc(const void *hook_frame, unsigned domain, void *context, void *old, size_t bytes)
{
	return begin() ? end(hook_frame, domain, inner[domain].realloc(context, old, SAMPLE_BYTES), bytes) : NULL;
}

/* The wrappers of one domain. They go on by jumps (P5). A product that wraps around is refused below, or is one more draw. */
#define WRAPPERS(domain)                                                                                      \
	static RARE TAIL_CALLER void *drawn_malloc_##domain(void *context, size_t bytes)                          \
	{                                                                                                         \
		void *addr = is_sample(bytes) ? sample_malloc(HERE, domain, context, bytes) : NULL;                   \
                                                                                                              \
		if (addr != NULL)                                                                                     \
			return addr;                                                                                      \
		TAIL_RETURN inner[domain].malloc(context, bytes);                                                     \
	}                                                                                                         \
	static RARE TAIL_CALLER void *drawn_calloc_##domain(void *context, size_t count, size_t bytes)            \
	{                                                                                                         \
		void *addr = is_sample_of(count, bytes) ? sample_calloc(HERE, domain, context, count * bytes) : NULL; \
                                                                                                              \
		if (addr != NULL)                                                                                     \
			return addr;                                                                                      \
		TAIL_RETURN inner[domain].calloc(context, count, bytes);                                              \
	}                                                                                                         \
	static RARE TAIL_CALLER void *drawn_realloc_##domain(void *context, void *old, size_t bytes)              \
	{                                                                                                         \
		void *addr = is_sample(bytes) ? sample_realloc(HERE, domain, context, old, bytes) : NULL;             \
                                                                                                              \
		if (addr != NULL)                                                                                     \
			return addr;                                                                                      \
		TAIL_RETURN inner[domain].realloc(context, old, bytes);                                               \
	}                                                                                                         \
	static TAIL_CALLER void *malloc_##domain(void *context, size_t bytes)                                     \
	{                                                                                                         \
		if (__builtin_expect((own.countdown -= (int64_t)bytes) >= 0, 1))                                      \
			TAIL_RETURN inner[domain].malloc(context, bytes);                                                 \
		TAIL_RETURN drawn_malloc_##domain(context, bytes);                                                    \
	}                                                                                                         \
	static TAIL_CALLER void *calloc_##domain(void *context, size_t count, size_t bytes)                       \
	{                                                                                                         \
		if (__builtin_expect((own.countdown -= (int64_t)(count * bytes)) >= 0, 1))                            \
			TAIL_RETURN inner[domain].calloc(context, count, bytes);                                          \
		TAIL_RETURN drawn_calloc_##domain(context, count, bytes);                                             \
	}                                                                                                         \
	static TAIL_CALLER void *realloc_##domain(void *context, void *old, size_t bytes)                         \
	{                                                                                                         \
		if (__builtin_expect((own.countdown -= (int64_t)bytes) >= 0, 1))                                      \
			TAIL_RETURN inner[domain].realloc(context, old, bytes);                                           \
		TAIL_RETURN drawn_realloc_##domain(context, old, bytes);                                              \
	}

WRAPPERS(MEM)
WRAPPERS(OBJ)

/* ---- installation ---- */

/* Does malloc serve a request of so many bytes? To be called inside the guard, whose kind is changed meanwhile. */
static bool
is_served_by_malloc(const struct python_allocator *allocator, size_t bytes)
{
	uint64_t guard = reentry_guard_word;

	own.served = NULL;
	own.is_trying = true;
	reentry_guard_change(REENTRY_GUARD_SAMPLE);

	hold();
	void *addr = allocator->malloc(allocator->context, bytes);

	let_go();
	own.is_trying = false;

	bool is_served = addr != NULL && (uintptr_t)addr - (uintptr_t)own.served <= HEAD_BYTES_MAX;

	reentry_guard_change(REENTRY_GUARD_OWN_WORK);
	allocator->free(allocator->context, addr);
	reentry_guard_word = guard;
	return is_served;
}

static int
number_of(unsigned domain)
{
	return domain == MEM ? PYTHON_ALLOCATOR_MEM : PYTHON_ALLOCATOR_OBJ;
}

static void
put_in(const struct python_allocators *allocators, unsigned domain)
{
	const struct python_allocator *below = &inner[domain];
	struct python_allocator ours[DOMAINS] = {
		[MEM] = { below->context, malloc_MEM, calloc_MEM, realloc_MEM, below->free },
		[OBJ] = { below->context, malloc_OBJ, calloc_OBJ, realloc_OBJ, below->free },
	};

	allocators->set(number_of(domain), &ours[domain]);
}

bool
hooks_python_sample_start(const struct python_allocators *allocators)
{
	int host_errno = errno;
	/* Where arenas are not marked their memory would be counted twice. */
	bool is_fit = allocators->get != NULL && allocators->set != NULL && allocators->get_arena != NULL &&
	              allocators->set_arena != NULL;

	for (unsigned i = 0; is_fit && i < DOMAINS; i++) {
		allocators->get(number_of(i), &inner[i]);
		is_fit = !is_served_by_malloc(&inner[i], 1) && is_served_by_malloc(&inner[i], SAMPLE_BYTES);
	}
	errno = host_errno;
	if (!is_fit)
		return false;
	put_in(allocators, MEM);
	put_in(allocators, OBJ);
	return true;
}

/* With the same allocator below, no call can go in a circle, and a thread that reads the tables meanwhile may see any mixture. */
static void
put_in_again(const struct python_allocators *allocators, unsigned domain)
{
	struct python_allocator top;

	allocators->get(number_of(domain), &top);
	if (python_allocator_is(&top, &inner[domain]))
		put_in(allocators, domain);
}

/* Are the wrappers on top, or called by what is on top? Then the thread's countdown moves. */
bool
hooks_python_sample_stays(const struct python_allocators *allocators)
{
	static __thread int64_t last __attribute__((tls_model("initial-exec")));
	static bool is_said;
	struct python_allocator top;
	bool has_moved = own.countdown != last;

	last = own.countdown;
	put_in_again(allocators, MEM);
	put_in_again(allocators, OBJ);
	allocators->get(PYTHON_ALLOCATOR_OBJ, &top);
	if (top.malloc == malloc_OBJ || has_moved || is_said)
		return true;
	is_said = true;
	return false;
}

void
hooks_python_sample_forked(void)
{
	own.countdown = 0; // else all children of this process would draw the same
	own.random = 0;
	python_samples_clear();
}
