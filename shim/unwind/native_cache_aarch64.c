/*
 * native_cache_aarch64.c - see native_cache.h: here nothing is remembered.
 *
 * What makes the rest of a walk the remembered one (native_walk.h) is said of return addresses that lie at the end of each frame, and of a
 * counter that bounds the calls; neither is there. So each walk is made whole, and the event cache remembers stacks of Python alone.
 */
#include "unwind/native_cache.h"

bool
native_cache_walk(struct native_cache *cache, struct native_place *place, uint64_t stop_sp, struct native_stack *stack)
{
	(void)place;
	(void)stop_sp;
	(void)stack;
	cache->step_count = 0;
	return false;
}

uint64_t
native_cache_digest(struct native_cache *cache, const void *hook_frame)
{
	(void)cache;
	(void)hook_frame;
	return 0;
}

void
native_cache_note_time(struct native_cache *cache)
{
	(void)cache;
}

uint64_t
native_cache_path(const struct native_cache *cache)
{
	(void)cache;
	return 0;
}

void
native_cache_release(struct native_caches *caches)
{
	(void)caches;
}

bool
native_cache_offsets(const struct native_cache *cache, uint16_t *offsets, uint32_t room, uint32_t *count,
                     bool *needs_rbp)
{
	(void)cache;
	(void)offsets;
	(void)room;
	*count = 0;
	*needs_rbp = false;
	return false;
}
