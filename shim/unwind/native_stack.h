/*
 * native_stack.h - the native frames of this thread, from unwind tables, without frame pointers.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook on any thread. Per-PC rules (unwind_rules.h) carry the walk, and what did not change since the
 *             walk before is taken from native_cache.h; libunwind (unwind_libunwind.h) is the fallback for what the
 *             rules cannot express, and the oracle of KMEMSHIM_VERIFY.
 * When failing  the frames found so far, and `is_complete` false.
 */
#ifndef NATIVE_STACK_H
#define NATIVE_STACK_H

#include <stdint.h>

#include "unwind/native_frames.h"

struct native_cache;

/*
 * cache        of this thread, see native_cache.h; NULL = none
 * hook_frame  __builtin_frame_address(0) of the hook; the first frame given is its caller
 * stop_sp     end before the first frame whose extent [sp, CFA) contains this stack address (that frame is left
 *             out); 0 = go to the end
 */
void native_stack_walk(struct native_cache *cache, const void *hook_frame, uint64_t stop_sp,
                       struct native_stack *stack);

/* Once, before the first walk, outside any hook: reads settings. */
void native_stack_start(void);

/* After something was unloaded: what is remembered of code addresses is void. A fork needs no call. */
void native_stack_modules_changed(void);

#endif
