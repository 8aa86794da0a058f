/*
 * native_memo_room.h - where do the frames of native_memo.h lie, and which of them are given out?
 *
 * Context     inside the reentry guard, on the thread whose memo it is.
 * Safe from   any hook, any signal handler: a mapping is made once in a thread's life, no other call.
 * When failing  false: the memo keeps the room that it has.
 */
#ifndef NATIVE_MEMO_ROOM_H
#define NATIVE_MEMO_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/native_memo.h"

#define NATIVE_MEMO_NEEDS_BP UINT32_C(0x80000000)

/* For a memo that never had room: the thread's own memory. */
void native_memo_first_room(struct native_memo *memo);

/*
 * The walk needs more room: the frames, and the steps so far, move to a mapping, each as far from the end as it is. False: there is none.
 */
bool native_memo_more_room(struct native_memo *memo, uint64_t step_count);

/* Gives out a walk that is too long to be shown as a whole, or in which functions called themselves: frames [first, end). */
void native_memo_give_parts(const struct native_memo *memo, uint64_t first, uint64_t end, struct native_stack *stack);

#endif
