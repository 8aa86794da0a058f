/*
 * cached_names.c - a pass over the interpreter's cache of attributes (see cached_names.h).
 *
 * The cache is an array of 4,096 entries in the state of the interpreter: {version of a type (4 bytes, padded to 8), name, value}. Where in
 * this state it is, changes with each version. But the version and the address of the name say at which place of the array an
 * entry stands, and so where the array begins. It is the cache if most of its used entries agree. (Not all: from 3.13 on one that was
 * made when its type had no version yet stands where version 0 would.)
 *
 * A used entry owns a reference to its name (not to its value). So a name with one reference is held by the cache alone.
 *
 * Why what is read stays: the thread holds the lock of the only interpreter. The state is in `_PyRuntime`, or (3.10) a block of the map.
 *
 * The next pass comes after 1,024 times as long as it took (by the processor's time on a busy machine, see rate_limit.h), and after some
 * samples more: so a killed program has few that were not seen.
 */
#include "periodic/cached_names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "periodic/rate_limit.h"
#include "python/python_frames.h"
#include "python/python_memory.h"
#include "python/python_runtime.h"
#include "record/python_samples.h"
#include "record/tracker.h"
#include "tables/pointer_map.h"

#define STATE_BYTES_MAX ((uint64_t)2 << 20)
#define ENTRIES UINT64_C(4096)
#define ENTRY_BYTES UINT64_C(24)
#define ENTRIES_USED_MIN 64u // so many do not agree by chance
#define PERIOD_NS UINT64_C(5000000)
#define PERIOD_PART 1024
#define SAMPLES_STEP 4

static _Atomic uint32_t sampled; // relaxed: guards nothing
static _Atomic uint64_t last;    // where the cache was; relaxed: it is checked anew
static struct rate_limit paced = { .period_ns = PERIOD_NS, .parts = { [PACED_USUAL] = PERIOD_PART } };

/* The state of the only interpreter. False: there are more, or it is not known where it ends. */
static bool
find_state(uint64_t *start, uint64_t *end)
{
	uint64_t interpreters = python_runtime.addr + python_runtime.interpreter.layout.runtime_interpreters;
	uint64_t state = python_memory_u64(interpreters + 8); // of the main one
	struct address_block block;

	if (!python_memory_is_object(state) || python_memory_u64(interpreters) != state)
		return false;
	*start = state;
	if (state >= python_runtime.addr && state < python_runtime.end)
		*end = python_runtime.end;
	else if (pointer_map_find(state, &block))
		*end = state + block.bytes;
	else if (pointer_map_find(state - PYTHON_SAMPLES_HEAD_BYTES, &block))
		*end = state - PYTHON_SAMPLES_HEAD_BYTES + block.bytes;
	else
		return false;
	return *end - *start <= STATE_BYTES_MAX;
}

/* Is it a str to which there is one reference? They are 32 bits; before 3.12 more, but then the rest is 0. */
static bool
is_held_once(uint64_t object)
{
	const struct python_interpreter *python = &python_runtime.interpreter;

	return python_memory_u64(object + python->layout.object_type) == python->types.string &&
	       python_memory_u32(object) == 1;
}

static bool
is_used(uint64_t entry)
{
	return python_memory_u64(entry) != 0;
}

/* Where the cache begins if this is a used entry of it. */
static uint64_t
cache_of(uint64_t entry)
{
	uint64_t version = python_memory_u64(entry);
	uint64_t name = python_memory_u64(entry + 8);

	return entry - ((version ^ name >> 3) & (ENTRIES - 1)) * ENTRY_BYTES;
}

static bool
is_cache(uint64_t cache, uint64_t start, uint64_t end)
{
	unsigned used = 0;
	unsigned agree = 0;

	if (cache < start || cache > end || end - cache < ENTRIES * ENTRY_BYTES)
		return false;
	for (uint64_t entry = cache; entry < cache + ENTRIES * ENTRY_BYTES; entry += ENTRY_BYTES) {
		if (!is_used(entry))
			continue;
		used++;
		agree += cache_of(entry) == cache;
		if (used >= ENTRIES_USED_MIN && agree < used / 2)
			return false;
	}
	return used >= ENTRIES_USED_MIN;
}

/* 0: there is none. */
static uint64_t
find_cache(uint64_t start, uint64_t end)
{
	uint64_t cache = atomic_load_explicit(&last, memory_order_relaxed);

	if (is_cache(cache, start, end))
		return cache;
	for (uint64_t at = start; at + 16 <= end; at += 8) {
		if (is_used(at) && python_memory_u64(at) <= UINT32_MAX && python_memory_is_object(python_memory_u64(at + 8)) &&
		    is_cache(cache_of(at), start, end)) {
			atomic_store_explicit(&last, cache_of(at), memory_order_relaxed);
			return cache_of(at);
		}
	}
	return 0;
}

static void
pass(uint64_t cache)
{
	for (uint64_t entry = cache; entry < cache + ENTRIES * ENTRY_BYTES; entry += ENTRY_BYTES) {
		uint64_t name = python_memory_u64(entry + 8);
		uint64_t block;

		if (is_used(entry) && python_memory_is_object(name) && python_samples_find(name, &block) && is_held_once(name))
			tracker_disowned((void *)block);
	}
}

void
cached_names_look(bool is_last)
{
	int host_errno = errno;
	uint64_t start;
	uint64_t end;
	uint64_t cache;

	if (python_frames_is_attached() && !python_runtime.interpreter.layout.is_free_threaded &&
	    !python_runtime_is_finalizing() && rate_limit_begin(&paced, is_last ? PACED_DUE : PACED_USUAL)) {
		if (find_state(&start, &end) && (cache = find_cache(start, end)) != 0)
			pass(cache);
		rate_limit_end(&paced);
	}
	errno = host_errno;
}

void
cached_names_sampled(void)
{
	if (atomic_fetch_add_explicit(&sampled, 1, memory_order_relaxed) % SAMPLES_STEP == 0)
		cached_names_look(false);
}

void
cached_names_forked(void)
{
	rate_limit_forked(&paced, 0, atomic_load_explicit(&paced.took_ns, memory_order_relaxed));
}
