/*
 * effort.c - what recording does beyond the fast way (see effort.h).
 */
#include "base/effort.h"

#include "base/clock.h"

static struct kmem_efforts stand_in; // until there is a capture

struct kmem_efforts *effort_kept = &stand_in;
_Atomic uint64_t effort_calls;
__thread uint32_t effort_pending[KMEM_EFFORTS_BATCHED] __attribute__((tls_model("initial-exec")));

/*
 * The processor's ticks are turned into time by what both clocks say since the start. relaxed, all three: who sees an older one measures
 * once more.
 */
static _Atomic uint64_t first_ticks;
static _Atomic uint64_t first_ns;
static _Atomic uint64_t longest_ticks;

static void
keep_calls(void)
{
	atomic_store_explicit(&effort_kept->counts[KMEM_EFFORT_SYSTEM_CALLS],
	                      atomic_load_explicit(&effort_calls, memory_order_relaxed), memory_order_relaxed);
}

void
effort_add(enum kmem_effort what, uint32_t count)
{
	/* relaxed: a statistic */
	atomic_fetch_add_explicit(&effort_kept->counts[what], count, memory_order_relaxed);
	keep_calls();
}

void
effort_thread_ends(void)
{
	for (unsigned i = 0; i < KMEM_EFFORTS_BATCHED; i++) {
		uint32_t count = effort_pending[i];

		effort_pending[i] = 0;
		if (count != 0)
			effort_add((enum kmem_effort)i, count);
	}
	keep_calls();
}

/* 0 = not known: it is the very start. */
static uint64_t
ns_of(uint64_t ticks)
{
	uint64_t passed_ns = clock_now_ns() - atomic_load_explicit(&first_ns, memory_order_relaxed);
	uint64_t passed_ticks = arch_ticks() - atomic_load_explicit(&first_ticks, memory_order_relaxed);

	return passed_ticks != 0 ? (uint64_t)((unsigned __int128)ticks * passed_ns / passed_ticks) : 0;
}

static __attribute__((noinline)) void
note_longest(uint64_t ticks, enum kmem_effort what)
{
	_Atomic uint64_t *longest = &effort_kept->longest_pause;
	uint64_t before = atomic_load_explicit(longest, memory_order_relaxed);
	uint64_t fresh = ns_of(ticks) << KMEM_PAUSE_NS_SHIFT | (uint64_t)what;

	atomic_store_explicit(&longest_ticks, ticks, memory_order_relaxed);
	while (before < fresh &&
	       !atomic_compare_exchange_weak_explicit(longest, &before, fresh, memory_order_relaxed, memory_order_relaxed))
		;
}

void
effort_end(uint64_t begun, enum kmem_effort what)
{
	uint64_t ticks = begun != 0 && raw_sys_has_clock() ? arch_ticks() - begun : 0;

	/* Another processor's clock may be behind: that is no pause. */
	if ((int64_t)ticks > (int64_t)atomic_load_explicit(&longest_ticks, memory_order_relaxed) &&
	    atomic_load_explicit(&first_ticks, memory_order_relaxed) != 0)
		note_longest(ticks, what);
}

void
effort_keep_in(struct kmem_efforts *kept)
{
	for (unsigned i = 0; i < KMEM_EFFORT_COUNT; i++)
		atomic_store_explicit(&kept->counts[i], effort_sum((enum kmem_effort)i), memory_order_relaxed);
	if (raw_sys_has_clock()) {
		atomic_store_explicit(&first_ns, clock_now_ns(), memory_order_relaxed);
		atomic_store_explicit(&first_ticks, arch_ticks(), memory_order_relaxed);
	}
	effort_kept = kept;
	keep_calls();
}

void
effort_forked(void)
{
	effort_kept = &stand_in;
	for (unsigned i = 0; i < KMEM_EFFORTS_MAX; i++)
		atomic_store_explicit(&stand_in.counts[i], 0, memory_order_relaxed);
	for (unsigned i = 0; i < KMEM_EFFORTS_BATCHED; i++)
		effort_pending[i] = 0;
	atomic_store_explicit(&effort_calls, 0, memory_order_relaxed);
	atomic_store_explicit(&longest_ticks, 0, memory_order_relaxed);
}
