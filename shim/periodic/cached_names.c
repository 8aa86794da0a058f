/*
 * cached_names.c - a pass over the interpreter's state (see cached_names.h).
 *
 * The cache is an array in the state of the interpreter: {version of a type (4 bytes, padded to 8), name, value}. Where in this state it
 * is, changes with each version. So it is not looked up: the whole state is passed, 160 to 460 KiB. A word of it counts as such a name if
 * it is the address of a living sample that is a str with one reference, and the word in front of it may be a version. The one who
 * holds that reference is then found: it is this word. What else a word could be that looks so (one that is left over) says of one sample that it
 * is gone.
 *
 * Why what is read stays: the thread holds the lock of the only interpreter. The state is in `_PyRuntime`, or (3.10) a block of the map.
 *
 * The next pass comes after 256 times as long as it took, and after some samples more: so a killed program has
 * few that were not seen.
 */
#include "periodic/cached_names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "python/python_frames.h"
#include "python/python_memory.h"
#include "python/python_runtime.h"
#include "record/python_samples.h"
#include "record/tracker.h"
#include "tables/pointer_map.h"

#define STATE_BYTES_MAX ((uint64_t)2 << 20)
#define PERIOD_NS UINT64_C(5000000)
#define PERIOD_PART 256
#define SAMPLES_STEP 4

static _Atomic uint32_t sampled; // relaxed: guards nothing
static _Atomic uint64_t next_ns; // when the next look may begin; relaxed, as well

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

static void
pass(uint64_t start, uint64_t end)
{
	uint64_t before = 0; // no version: the first word is no name

	for (uint64_t at = start; at + 8 <= end; at += 8) {
		uint64_t word = python_memory_u64(at);
		uint64_t block;

		if (before != 0 && before <= UINT32_MAX && python_memory_is_object(word) && python_samples_find(word, &block) &&
		    is_held_once(word))
			tracker_disowned((void *)block);
		before = word;
	}
}

void
cached_names_look(bool is_last)
{
	int host_errno = errno;
	uint64_t begin_ns = clock_now_ns();
	uint64_t start;
	uint64_t end;
	uint64_t pause_ns;

	if ((!is_last && begin_ns < atomic_load_explicit(&next_ns, memory_order_relaxed)) || !python_frames_is_attached() ||
	    python_runtime.interpreter.layout.is_free_threaded || python_runtime_is_finalizing())
		return;
	if (find_state(&start, &end))
		pass(start, end);
	pause_ns = (clock_now_ns() - begin_ns) * PERIOD_PART;
	atomic_store_explicit(&next_ns, begin_ns + (pause_ns > PERIOD_NS ? pause_ns : PERIOD_NS), memory_order_relaxed);
	errno = host_errno;
}

void
cached_names_sampled(void)
{
	if (atomic_fetch_add_explicit(&sampled, 1, memory_order_relaxed) % SAMPLES_STEP == 0)
		cached_names_look(false);
}
