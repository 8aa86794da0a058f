/*
 * native_start.h - where does the walk from a hook begin?
 *
 * Context     inside the reentry guard, below the hook.
 */
#ifndef NATIVE_START_H
#define NATIVE_START_H

#include <stdint.h>

#include "base/arch.h"
#include "unwind/native_walk.h"

#if ARCH_LINK_REGISTER
/* The frame of the hook does not say where it ends: see native_start_aarch64.c. */
struct native_place native_start(const void *hook_frame);
#else
static inline struct native_place
native_start(const void *hook_frame)
{
	const uint64_t *frame = hook_frame;

	return (struct native_place){ .pc = frame[1], .sp = (uintptr_t)frame + 16, .rbp = frame[0] };
}
#endif

#endif
