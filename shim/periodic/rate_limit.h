/*
 * rate_limit.h - may this thread take a look now, which takes time in proportion to the heap?
 *
 * One look at a time. A long one is taken in pieces, whose durations are summed up. After a look the next one waits for a multiple of its duration: so looks take no more than that part of the time,
 * however long one is. More urgent looks may come sooner. For two of the reasons, the time that half a quiet second, or two seconds,
 * would allow for looks may be used up at once.
 *
 * In a forked child the first look waits as if the parent's last one had been the child's: a child that lives for a moment, of a parent
 * that holds much, takes none. For a look that is due, too, which ends such a child's life.
 *
 * Time is the wall's, or the processor's time of the process: on a busy machine a look of 3 ms may take 50, but costs the program only
 * 3. Where the processor's time decides, the wall's bounds looks once more, because a process of many threads has much processor time.
 *
 * Safe from   any hook on any thread: a flag that is tried once, never waited for.
 * When failing  (the processor's time may not be asked for) the wall's time alone decides.
 */
#ifndef RATE_LIMIT_H
#define RATE_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/raw_sys.h"
#include "base/turn.h"

/* PACED_FALLEN: much was freed. PACED_PRESSING: before it is too late. PACED_DUE: at any time, but see above. */
enum rate_limit_reason { PACED_USUAL, PACED_URGENT, PACED_FALLEN, PACED_PRESSING, PACED_DUE };
#define PACED_REASONS PACED_DUE
#define RATE_LIMIT_DUE_PART 16 // of a forked child: so many times the duration of a look it must have lived

/* When the next look may begin, for each reason. relaxed, all: they guard nothing. */
struct rate_limit_account {
	_Atomic uint64_t next_ns[PACED_REASONS];
};

struct rate_limit {
	uint64_t period_ns;                  // the least from one to the next usual one
	uint64_t parts[PACED_REASONS];       // so many times the duration of one, too
	struct turn sampling;                // all that is looked at is under it
	struct rate_limit_account wall;      // the wall's time, and how long looks took by it
	struct rate_limit_account processor; // the processor's, for both
	struct rate_limit_account bound;     // the wall's, and how long looks took by the processor's
	uint64_t begin_ns;                   // under the turn, as all up to `took_ns`
	uint64_t piece_ns;                   // when this piece began, by three clocks
	uint64_t piece_processor_ns;
	uint64_t piece_thread_ns;
	uint64_t spent_ns; // for the pieces before, by the same clocks
	uint64_t spent_processor_ns;
	uint64_t spent_thread_ns;
	_Atomic uint64_t took_ns;       // the thread's time for the last look; relaxed: an estimate
	uint64_t due_from_processor_ns; // of a forked child: none before that
};

/* The time that may be saved up and then used at once. After a fall no event may follow, and at the limit none does. */
static inline uint64_t
rate_limit_saved_ns(unsigned reason)
{
	return reason == PACED_PRESSING ? UINT64_C(2000000000) : reason == PACED_FALLEN ? UINT64_C(500000000) : 0;
}

/* Of a processor's clock. 0: not known. */
static inline uint64_t
rate_limit_clock_ns(clockid_t clock)
{
	struct timespec now;

	if (!raw_sys_may_call() || !raw_sys_clock(clock, &now))
		return 0;
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of all threads. 0: not known. */
static inline uint64_t
rate_limit_processor_ns(void)
{
	return rate_limit_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Signed: what was saved may reach back to before the beginning. */
static inline bool
rate_limit_is_time(const struct rate_limit_account *account, enum rate_limit_reason reason, uint64_t now_ns)
{
	return (int64_t)(now_ns - atomic_load_explicit(&account->next_ns[reason], memory_order_relaxed)) >= 0;
}

/* In a forked child: has it lived so long that a look, as the parent's last one was, is a small part of that? */
static inline bool
rate_limit_has_lived(const struct rate_limit *look)
{
	uint64_t processor_ns = rate_limit_processor_ns();

	return processor_ns == 0 || processor_ns >= look->due_from_processor_ns;
}

static inline void
rate_limit_begin_piece(struct rate_limit *look, uint64_t now_ns, uint64_t processor_ns)
{
	look->piece_ns = now_ns;
	look->piece_processor_ns = processor_ns;
	look->piece_thread_ns = rate_limit_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* When true, rate_limit_end() is to follow, or rate_limit_pause(). */
static inline bool
rate_limit_begin(struct rate_limit *look, enum rate_limit_reason reason)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t processor_ns;
	bool is_due = reason == PACED_DUE || rate_limit_is_time(&look->wall, reason, now_ns);

	if (reason == PACED_DUE && !rate_limit_has_lived(look))
		return false;
	if (!is_due && !rate_limit_is_time(&look->bound, reason, now_ns)) // before what is a system call
		return false;
	processor_ns = rate_limit_processor_ns();
	if (!is_due && (processor_ns == 0 || !rate_limit_is_time(&look->processor, reason, processor_ns)))
		return false;
	if (!turn_take(&look->sampling))
		return false;
	look->begin_ns = now_ns;
	look->spent_ns = look->spent_processor_ns = look->spent_thread_ns = 0;
	rate_limit_begin_piece(look, now_ns, processor_ns);
	return true;
}

/* A look that was not complete goes on, on any thread. When true, as above. */
static inline bool
rate_limit_go_on(struct rate_limit *look)
{
	if (!turn_take(&look->sampling))
		return false;
	rate_limit_begin_piece(look, clock_now_ns(), rate_limit_processor_ns());
	return true;
}

static inline void
rate_limit_end_piece(struct rate_limit *look, uint64_t now_ns, uint64_t processor_ns)
{
	look->spent_ns += now_ns - look->piece_ns;
	if (processor_ns == 0 || look->piece_processor_ns == 0)
		return;
	look->spent_processor_ns += processor_ns - look->piece_processor_ns;
	look->spent_thread_ns += rate_limit_clock_ns(CLOCK_THREAD_CPUTIME_ID) - look->piece_thread_ns;
}

/* The look is not complete. What it took is accounted for when it is. */
static inline void
rate_limit_pause(struct rate_limit *look)
{
	rate_limit_end_piece(look, clock_now_ns(), rate_limit_processor_ns());
	turn_give(&look->sampling);
}

static inline void
rate_limit_charge(const struct rate_limit *look, struct rate_limit_account *account, uint64_t end_ns, uint64_t took_ns)
{
	for (unsigned reason = 0; reason < PACED_REASONS; reason++) {
		uint64_t pause_ns = look->parts[reason] * took_ns;
		uint64_t from_ns = atomic_load_explicit(&account->next_ns[reason], memory_order_relaxed);
		uint64_t least_ns = end_ns - rate_limit_saved_ns(reason);

		if (reason == PACED_USUAL && pause_ns < look->period_ns)
			pause_ns = look->period_ns;
		if (rate_limit_saved_ns(reason) == 0)
			from_ns = end_ns;                                       // whatever was looked at before
		else if (from_ns == 0 || (int64_t)(from_ns - least_ns) < 0) // 0: there was no look yet
			from_ns = least_ns;
		atomic_store_explicit(&account->next_ns[reason], from_ns + pause_ns, memory_order_relaxed);
	}
}

static inline void
rate_limit_end(struct rate_limit *look)
{
	uint64_t end_ns = clock_now_ns();
	uint64_t end_processor_ns = rate_limit_processor_ns();

	rate_limit_end_piece(look, end_ns, end_processor_ns);
	rate_limit_charge(look, &look->wall, end_ns, look->spent_ns);
	if (end_processor_ns != 0 && look->piece_processor_ns != 0) {
		atomic_store_explicit(&look->took_ns, look->spent_thread_ns, memory_order_relaxed);
		rate_limit_charge(look, &look->processor, end_processor_ns, look->spent_processor_ns);
		rate_limit_charge(look, &look->bound, end_ns, look->spent_processor_ns);
	}
	turn_give(&look->sampling);
}

/*
 * In a forked child: the thread that looked is not here, and the processor's time begins anew.
 *
 * from_ns   no look before that
 * look_ns   the processor's time that a look takes in this child; 0 = it begins with nothing to look at
 */
static inline void
rate_limit_forked(struct rate_limit *look, uint64_t from_ns, uint64_t look_ns)
{
	look->due_from_processor_ns = RATE_LIMIT_DUE_PART * look_ns;
	for (unsigned reason = 0; reason < PACED_REASONS; reason++) {
		uint64_t pause_ns = reason != PACED_PRESSING ? look->parts[reason] * look_ns : 0; // else it may be too late

		atomic_store_explicit(&look->wall.next_ns[reason], from_ns + pause_ns, memory_order_relaxed);
		atomic_store_explicit(&look->processor.next_ns[reason], pause_ns > look->period_ns ? pause_ns : look->period_ns,
		                      memory_order_relaxed);
	}
}

#endif
