/*
 * unwind_libunwind.h - the same walk by libunwind: for what rules cannot express, and to check them.
 *
 * libunwind sees this process as it would see another one: through reads that are checked, tables that are
 * found without the loader's lock, and no file descriptor.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook, at the price of some microseconds a frame. One walk at a time: libunwind has locks
 *             of its own, so a second thread is turned away instead of waiting.
 * When failing  the walk ends, as the result says. Without the library installed every walk does.
 */
#ifndef UNWIND_LIBUNWIND_H
#define UNWIND_LIBUNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/native_frames.h"

/* This thread is inside the library's first use, which asks for a pipe. */
extern __thread bool unwind_libunwind_needs_no_pipe __attribute__((tls_model("initial-exec"), visibility("hidden")));

enum unwind_end {
	UNWIND_END_OUTERMOST, // nobody called the last frame
	UNWIND_END_ASKED,     // the visitor said so
	UNWIND_END_LOST,      // no way on from the last frame
};

/* Loads the library, once. Not from a hook of a request, and while this process has one thread. Until then walks by it are lost. */
void unwind_libunwind_open(void) __attribute__((noinline)); // it may be called inside the guard

/*
 * One frame. pc is a frame word; [sp, cfa) is its extent, cfa 0 = unknown (the last frame).
 * returns  false: stop, this frame is not wanted
 */
typedef bool unwind_visitor(void *context, uint64_t pc, uint64_t sp, uint64_t cfa);

/* Walks from the frame whose stack pointer is first_sp; a frame further out than the caller of this. */
enum unwind_end unwind_libunwind_walk(uint64_t first_sp, unwind_visitor *visit, void *context);

/*
 * Walks again and compares with a finished walk, as far as that went; results go to the capture's header and, for
 * the first few differences, into its notes.
 *
 * is_to_the_end  that walk reached the outermost frame, so libunwind must not find more
 */
void unwind_libunwind_verify(uint64_t first_sp, const struct native_stack *stack, bool is_to_the_end);

#endif
