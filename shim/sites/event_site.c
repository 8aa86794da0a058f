/*
 * event_site.c - which site does this allocation belong to (see event_site.h)?
 *
 * Not chosen  Python-only stacks by the size of the request alone: many small blocks that stay are what native frames are needed for.
 *             A fixed number of bytes: one line of a framework holds megabytes in small blocks for a moment, a hundredth of
 *             its heap, and brings 80,000 native stacks.
 */
#include "sites/event_site.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/diag.h"
#include "base/effort.h"
#include "base/settings.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "python/python_frames.h"
#include "sites/call_stack.h"
#include "sites/callbacks.h"
#include "sites/site_table.h"
#include "sites/thread_attribution.h"

#define VERIFY_NOTES_MAX 4u

/*
 * How many records of whole stacks each line brought, by the stack of its Python-only record: threads share it. relaxed: two lines may
 * share a place too, and two threads may go beyond the limit by one.
 */
#define NATIVE_PATHS_BITS 10
static _Atomic uint16_t native_paths[1u << NATIVE_PATHS_BITS];
static_assert(EVENT_SITE_NATIVE_PATHS_MAX <= UINT16_MAX / 2, "it does not wrap");

static _Atomic uint16_t *
native_paths_of_line(uint32_t python_only)
{
	uint32_t stack = atomic_load_explicit(&site_table_at(python_only)->stack, memory_order_relaxed); // S2

	return &native_paths[stack * UINT32_C(0x9e3779b1) >> (32 - NATIVE_PATHS_BITS)];
}

static bool
is_merged(uint32_t site)
{
	uint32_t stack = atomic_load_explicit(&site_table_at(site)->stack, memory_order_relaxed); // S2
	const struct kmem_stack *stored = capture_file_item(KMEM_SECTION_RECORDS, stack);

	return (stored->record.flags & KMEM_STACK_MERGED) != 0;
}

/* KMEMSHIM_VERIFY: every event is walked, and what was remembered is compared. */
static void
verify(uint32_t remembered, uint32_t walked)
{
	static _Atomic uint32_t notes; // relaxed, all: statistics
	struct kmem_header *header = capture_file_header();
	char text[120];

	atomic_fetch_add_explicit(&header->verify_checked, 1, memory_order_relaxed);
	if (remembered == walked)
		return;
	atomic_fetch_add_explicit(&header->verify_mismatched, 1, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&notes, 1, memory_order_relaxed) >= VERIFY_NOTES_MAX)
		return;
	(void)diag_format(text, sizeof(text),
	                  "a stack differs from the remembered one: site %u was remembered, and site %u walked", remembered,
	                  walked);
	capture_file_note(text);
}

static inline bool
is_python_frame(const void *hook_frame)
{
	return ((uintptr_t)hook_frame & EVENT_SITE_PYTHON) != 0;
}

/* NULL: an arena of the interpreter. */
static inline const void *
frame_of(const void *hook_frame)
{
	return (const void *)((uintptr_t)hook_frame & ~(uintptr_t)7);
}

static uint32_t
walk_to_site(struct thread_slot *slot, const void *hook_frame, unsigned domain, enum call_stack_extent extent,
             uint8_t clock)
{
	static const struct call_stack arena = { .hash = 1, .flags = KMEM_STACK_ARENA };
	struct call_stack_memory *memory = slot != NULL ? &slot->stack : NULL;
	const void *frame = frame_of(hook_frame);
	uint64_t begun = effort_begin();
	uint64_t growths = effort_sum(KMEM_EFFORT_GROWTHS);
	uint64_t new_stacks = effort_sum(KMEM_EFFORT_NEW_STACKS);
	bool is_address_space = frame == NULL && domain != KMEM_DOMAIN_PYTHON_ARENA; // of arenas whose objects are recorded
	const struct call_stack *stack = is_address_space
	                                     ? &arena
	                                     : call_stack_take(memory, frame, frame != NULL ? extent : CALL_STACK_ARENA);
	bool is_shared = slot == NULL || kmem_domain_is_sampled(domain); // see tracker.c
	uint32_t site = site_table_find(is_shared ? NULL : &slot->owner, stack, domain, clock);

	if (slot != NULL && frame != NULL) {
		thread_slot_publish(slot, site);
		if (memory->python.count != 0) {
			thread_attribution_claim(&slot->parent, &memory->python);
			record_callbacks.python_arrived();
		}
	}
	call_stack_give_back(memory, stack);
	effort_end(begun, effort_sum(KMEM_EFFORT_GROWTHS) != growths         ? KMEM_EFFORT_GROWTHS
	                  : effort_sum(KMEM_EFFORT_NEW_STACKS) != new_stacks ? KMEM_EFFORT_NEW_STACKS
	                                                                     : KMEM_EFFORT_WALKS);
	return site;
}

/* given_key: of a stack of libraries, with what it was given; 0 = such a stack has no key */
static void
keep(struct thread_slot *slot, struct event_lookup lookup, uint64_t given_key, const void *frame, uint32_t site)
{
	if (slot->stack.is_library_only) {
		if (given_key == 0 && lookup.key != 0)
			return;
		lookup.key = given_key;
		slot->parent.has_kept_library = slot->parent.has_kept_library || slot->parent.started_count == 0;
	}
	event_cache_keep(&slot->events, lookup, frame, slot->stack.walked, site);
}

/* What the cache did not find, or what is to be verified. */
static __attribute__((noinline)) uint32_t
walk_and_keep(struct thread_slot *slot, const void *hook_frame, struct event_lookup lookup, unsigned domain,
              enum call_stack_extent extent, uint8_t clock, uint64_t given_key)
{
	uint32_t site;

	if (!thread_stack_has_room())
		return lookup.site;
	site = walk_to_site(slot, hook_frame, domain, extent, clock);
	bool is_of_kind = extent == CALL_STACK_WHOLE ||
	                  slot->stack.walked == NULL; // else no Python frame was found after all

	if (lookup.site != 0)
		verify(lookup.site, site);
	else if (is_of_kind && slot->stack.is_repeatable && site != 0 && !is_merged(site))
		keep(slot, lookup, given_key, frame_of(hook_frame), site);
	// else the cache's frames are those of an earlier walk
	if (slot->stack.walked != NULL && slot->stack.native.is_remembered)
		native_cache_note_time(slot->stack.walked);
	return site;
}

/*
 * Other threads may release what this one allocates: then its own record seems to hold more and more. What all records hold is in cache
 * lines of the other threads. So it is summed up only when this thread has used its part of the room that there was the last time.
 */
bool
event_site_needs_native_slow(struct thread_slot *slot, uint32_t site, int64_t own_bytes, int64_t most)
{
	struct thread_slot_room *room = &slot->rooms[site & (THREAD_SLOT_ROOMS - 1)];
	uint32_t records;
	int64_t held;

	if (room->site == site && own_bytes < room->until_bytes && most >= room->most_bytes / 2)
		return false;
	effort_count(KMEM_EFFORT_ROOMS);
	held = site_table_held(site, &records);
	if (held >= most)
		return true;
	*room = (struct thread_slot_room){ .site = site,
		                               .until_bytes = own_bytes + (most - held) / records,
		                               .most_bytes = most };
	return false;
}

__attribute__((noinline)) uint32_t
event_site_whole(struct thread_slot *slot, const void *hook_frame, uint32_t python_only, uint64_t bytes, uint8_t clock)
{
	_Atomic uint16_t *line_native_paths = native_paths_of_line(python_only);
	struct event_lookup lookup;

	if (bytes < EVENT_SITE_PYTHON_ONLY_BYTES &&
	    atomic_load_explicit(line_native_paths, memory_order_relaxed) >= EVENT_SITE_NATIVE_PATHS_MAX) {
		thread_slot_publish(slot, python_only);
		return python_only;
	}
	lookup = event_cache_find_whole(&slot->events, hook_frame, python_only);

	if (__builtin_expect(lookup.site == 0 || settings.verify_every != 0, 0)) {
		uint32_t before = capture_file_count(KMEM_SECTION_SITES);
		int host_errno = errno;
		uint32_t site = walk_and_keep(slot, hook_frame, lookup, KMEM_DOMAIN_HEAP, CALL_STACK_WHOLE, clock, lookup.key);

		if (site > before && // just made
		    atomic_load_explicit(line_native_paths, memory_order_relaxed) < EVENT_SITE_NATIVE_PATHS_MAX &&
		    atomic_fetch_add_explicit(line_native_paths, 1, memory_order_relaxed) == EVENT_SITE_NATIVE_PATHS_MAX - 1)
			capture_file_lost(KMEM_LOST_NATIVE_PATHS, 1);
		errno = host_errno;
		return site;
	}
	thread_slot_publish(slot, lookup.site);
	return lookup.site;
}

/* Which frames an event has whose stack is walked. is_python: the interpreter's allocator asks. */
static enum call_stack_extent
extent_of(struct event_lookup lookup, bool is_python)
{
	switch (lookup.kind) {
	case EVENT_LOOKUP_PYTHON_ONLY:
		return CALL_STACK_PYTHON_ONLY;
	case EVENT_LOOKUP_NONE:
		return is_python ? CALL_STACK_PYTHON : CALL_STACK_WHOLE;
	case EVENT_LOOKUP_PYTHON:
		return CALL_STACK_PYTHON;
	case EVENT_LOOKUP_WHOLE:
	case EVENT_LOOKUP_WALKED:
		break;
	}
	return CALL_STACK_WHOLE;
}

/* The thread may run nothing but code of libraries: then its stack has a key of its own, with what it is given. */
static __attribute__((noinline)) struct event_lookup
find_given(struct thread_slot *slot, const void *hook_frame, struct event_lookup lookup, unsigned domain, uint8_t clock)
{
	enum call_stack_extent extent = extent_of(lookup, is_python_frame(hook_frame));
	uint64_t parent = thread_attribution_find_library(&slot->parent);
	uint64_t given_key = parent == 0 ? lookup.key : 0;

	if (parent != 0 && lookup.site == 0 && lookup.key != 0 &&
	    (lookup.kind == EVENT_LOOKUP_PYTHON_ONLY || lookup.kind == EVENT_LOOKUP_PYTHON)) {
		struct event_lookup given = event_cache_find_given(&slot->events, lookup, parent);

		given_key = given.key;
		if (given.site != 0)
			lookup = given;
	}
	if (lookup.site != 0 && settings.verify_every == 0) {
		thread_slot_publish(slot, lookup.site);
		return lookup;
	}
	lookup.site = walk_and_keep(slot, hook_frame, lookup, domain, extent, clock, given_key);
	if (slot->stack.is_library_only && given_key != 0)
		lookup.key = given_key;
	return lookup;
}

/* What follows when the cache has answered. */
static inline uint32_t
site_after(struct thread_slot *slot, const void *hook_frame, struct event_lookup lookup, unsigned domain,
           uint64_t bytes, uint8_t clock)
{
	if (__builtin_expect(lookup.site == 0 || settings.verify_every != 0, 0))
		lookup = find_given(slot, hook_frame, lookup, domain, clock);
	else
		thread_slot_publish(slot, lookup.site);
	if (lookup.kind != EVENT_LOOKUP_PYTHON_ONLY || lookup.site == 0 ||
	    __builtin_expect(!event_site_needs_native(slot, lookup.site, bytes), 1))
		return lookup.site;
	if (is_merged(lookup.site)) { // it stands for other frames, too: no whole stack is found by it
		uint32_t site = walk_and_keep(slot, hook_frame, (struct event_lookup){ .kind = EVENT_LOOKUP_NONE }, domain,
		                              CALL_STACK_WHOLE, clock, 0);

		return site != 0 ? site : lookup.site;
	}
	return event_site_whole(slot, hook_frame, lookup.site, bytes, clock);
}

uint32_t
event_site_slow(struct thread_slot *slot, const void *hook_frame, struct event_lookup lookup, uint64_t bytes,
                uint8_t clock)
{
	return site_after(slot, hook_frame, lookup, KMEM_DOMAIN_HEAP, bytes, clock);
}

uint32_t
event_site(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes, uint8_t clock)
{
	bool is_python = is_python_frame(hook_frame);
	struct event_lookup lookup;

	if (slot == NULL || frame_of(hook_frame) == NULL || settings.native == SETTINGS_NATIVE_ALL) {
		(void)thread_attribution_find();
		if (slot != NULL)
			(void)thread_attribution_find_library(&slot->parent);
		return thread_stack_has_room()
		           ? walk_to_site(slot, hook_frame, domain, is_python ? CALL_STACK_PYTHON : CALL_STACK_WHOLE, clock)
		           : 0;
	}
	if (domain != KMEM_DOMAIN_HEAP)
		lookup = event_cache_find_other(&slot->events, frame_of(hook_frame), domain, is_python);
	else if (is_python)
		lookup = event_cache_find_python(&slot->events, python_frames_state());
	else
		lookup = event_cache_find(&slot->events, &slot->stack.caches, hook_frame, python_frames_available());
	return site_after(slot, hook_frame, lookup, domain, bytes, clock);
}

void
event_site_clear(void)
{
	memset(native_paths, 0, sizeof(native_paths));
}
