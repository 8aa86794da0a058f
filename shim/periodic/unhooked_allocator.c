/*
 * unhooked_allocator.c - see unhooked_allocator.h.
 */
#include "periodic/unhooked_allocator.h"

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/loaded_object.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "capture/capture_file.h"
#include "kmem_format.h"
#include "record/heap_samples.h"
#include "tables/pointer_map.h"

/* Another preloaded library may come before us and call ours for each request. */
static bool
front_comes_to_us(void)
{
	int64_t left = heap_samples_hold();
	void *block = real_libc_front.malloc(1);
	struct address_block seen;
	struct address_block old;
	bool is_known = false;

	heap_samples_release(left);
	if (block != NULL && reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK)) {
		is_known = pointer_map_take(block, &seen);
		if (is_known)
			(void)pointer_map_put(block, seen, &old);
		reentry_guard_leave();
	}
	if (real_libc_front.free != NULL)
		real_libc_front.free(block);
	return is_known;
}

/* "" is the program. */
static const char *
object_of(const void *function)
{
	struct loaded_object object;

	return loaded_object_find((uintptr_t)function, &object) ? object.link_map->l_name : NULL;
}

void
unhooked_allocator_tell(void)
{
	char text[KMEM_TEXT_BYTES];

	if (real_libc_front.malloc != NULL && !front_comes_to_us()) {
		const char *front = object_of((const void *)real_libc_front.malloc);
		bool is_program = front == NULL || *front == '\0';

		diag_format(text, sizeof(text), KMEM_NOTE_HIDDEN_HEAP ", only the mappings that it makes: malloc is %s%s",
		            is_program ? "part of the program itself" : front,
		            is_program ? "" : "'s, which comes before this library; " KMEM_NOTE_PRELOAD_FIRST);
		capture_file_note(text);
	}
}
