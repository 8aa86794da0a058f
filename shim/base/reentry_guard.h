/*
 * reentry_guard.h - is this our own work?
 *
 * Between enter and leave, every hook on this thread passes calls through untracked: our own work, the real
 * allocator's inner calls, and signal handlers that interrupt us (those are counted as lost).
 *
 * A handler may jump out of the hook that it interrupted (siglongjmp), for good: a stack overflow in the real malloc, a timer. So the
 * word notes the frame of the hook. All that a hook calls lies further in than its frame. Whoever finds the word set, in a frame as far out
 * or further out in the thread's own stack, takes it over: that hook is gone. Signal stacks and coroutines are no part of that stack: what
 * runs there says nothing about the hook.
 *
 * A function that enters and returns inside the guard must be inlined into the hook: its own frame would be gone before the hook is.
 * A function that is called inside the guard and may enter must not be inlined there.
 *
 * Safe from   anywhere: one initial-exec thread-local word; a system call where it seems that a hook was left.
 */
#ifndef REENTRY_GUARD_H
#define REENTRY_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum reentry_guard_kind {
	REENTRY_GUARD_HOOK = 0,     // a call that comes now is the program's: a signal handler's, or the real allocator's
	REENTRY_GUARD_OWN_WORK = 1, // start and end: a call that comes now is ours, and no loss
	// the interpreter's allocator is at work: a call that comes now is part of an event already
	REENTRY_GUARD_PYTHON = 2,
	// an allocator's operator new is at work: a call of malloc that comes now is the program's (its new handler, an
	// exception) and an event of its own, after which the guard is left
	REENTRY_GUARD_NEW = 3,
	// the interpreter's allocator is asked for the block of a sample: the first call of malloc that comes now gives it, and
	// leaves the guard
	REENTRY_GUARD_SAMPLE = 4,
};
#define REENTRY_GUARD_KINDS UINT64_C(7) // bits that are 0 in every frame address

/* 0: outside. Else the frame of the hook that entered, and the kind. */
extern __thread uint64_t reentry_guard_word __attribute__((tls_model("initial-exec")));

/* Is called, inside the guard, when a hook was left and its place is taken. Set once, at the start; NULL: nobody is told. */
extern void (*reentry_guard_on_left)(void);

/* The slow path of enter, inside already. True: the hook that was inside was left, and its place is taken. */
bool reentry_guard_take_over(enum reentry_guard_kind kind, uint64_t frame) __attribute__((noinline, cold));

/* Once, at the start: how does libc write a stack pointer into a jmp_buf? */
void reentry_guard_start(void);

/* Inside, before a jump to this jmp_buf: where the target lies further out than the hook, that is left, and the guard with it. */
void reentry_guard_jumps(const void *target) __attribute__((cold));

/* Where the thread ends, and its stack is empty: a hook that is still inside was left. */
void reentry_guard_enter_last(void) __attribute__((cold));

static inline bool
reentry_guard_is_outside(void)
{
	return reentry_guard_word == 0;
}

static inline bool
reentry_guard_is(enum reentry_guard_kind kind)
{
	return reentry_guard_word != 0 && (reentry_guard_word & REENTRY_GUARD_KINDS) == kind;
}

/* A call from so far in is a part of the work of that kind, and no event, whatever else is true. */
static inline bool
reentry_guard_is_below(enum reentry_guard_kind kind, uint64_t frame)
{
	return reentry_guard_is(kind) && frame < reentry_guard_word;
}

/* Inside: what is at work from now on? */
static inline void
reentry_guard_change(enum reentry_guard_kind kind)
{
	reentry_guard_word = (reentry_guard_word & ~REENTRY_GUARD_KINDS) | kind;
}

/* For a hook with this frame (__builtin_frame_address(0)), by a function that it has called. */
static inline __attribute__((always_inline)) bool
reentry_guard_enter_at(enum reentry_guard_kind kind, uint64_t frame)
{
	if (__builtin_expect(reentry_guard_word != 0, 0))
		return reentry_guard_take_over(kind, frame);
	reentry_guard_word = frame | kind;
	atomic_signal_fence(memory_order_seq_cst); // a signal handler on this thread must see the mark first
	return true;
}

static inline __attribute__((always_inline)) bool
reentry_guard_enter_as(enum reentry_guard_kind kind)
{
	return reentry_guard_enter_at(kind, (uintptr_t)__builtin_frame_address(0));
}

/* False when this thread is inside already; then leave must not be called. */
static inline __attribute__((always_inline)) bool
reentry_guard_enter(void)
{
	return reentry_guard_enter_as(REENTRY_GUARD_HOOK);
}

static inline void
reentry_guard_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	reentry_guard_word = 0;
}

/* Where an allocator's operator new is at work: what comes now is an event of its own. */
static inline void
reentry_guard_leave_new(void)
{
	if (reentry_guard_is(REENTRY_GUARD_NEW))
		reentry_guard_leave();
}

#endif
