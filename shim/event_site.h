/*
 * event_site.h - which site does this allocation belong to?
 *
 * Most stacks of a Python program differ only in native frames, and most of them hold little at any time. So while a site holds
 * little, it stands for all native ways that lead from its Python frames to malloc (KMEM_STACK_BRIEF). A request with
 * which it would hold more than a share of the heap goes to the site of its whole stack. Stacks without Python frames are
 * always whole.
 *
 * Invariant, tested in tests/preload/test_brief.py:
 *   B1  a brief record holds less than EVENT_SITE_BRIEF_BYTES, or less than 1 / 2^EVENT_SITE_BRIEF_SHARE of the heap as it was
 *       when the record's last block came.
 *
 * Called by   tracker.c, inside the reentry guard.
 * Safe from   any hook; no allocation, no lock.
 */
#ifndef EVENT_SITE_H
#define EVENT_SITE_H

#include <stdint.h>

#include "thread_slot.h"

#define EVENT_SITE_BRIEF_BYTES 65536
#define EVENT_SITE_BRIEF_SHARE 6

/*
 * slot        of this thread; NULL: it has none, its stacks are whole
 * hook_frame  __builtin_frame_address(0) of the hook
 * bytes       that are asked for
 * returns     index + 1; 0 = there is no room for it
 */
uint32_t event_site(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes, uint8_t clock);

#endif
