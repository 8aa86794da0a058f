/*
 * event_site.h - which site does this allocation belong to?
 *
 * Most stacks of a Python program differ only in native frames, and most of them hold little at any time. So the stacks with the same
 * Python frames share one Python-only site (KMEM_STACK_PYTHON_ONLY) as long as it holds little. If a request would make it hold more
 * than a share of the heap, the request goes to the site of its whole stack, native frames included. A thread without Python may have
 * been given Python frames (thread_attribution.h): these count as its own. A stack without Python frames is always whole.
 *
 * Invariant, tested in tests/preload/test_python_only.py:
 *   B1  a Python-only record holds less than EVENT_SITE_PYTHON_ONLY_BYTES, or less than 1 / 2^EVENT_SITE_PYTHON_ONLY_SHARE of the heap as it was
 *       when the record's last block came; or its line has brought EVENT_SITE_NATIVE_PATHS_MAX records of whole stacks.
 *       Where several threads have records of it, they may hold twice that together.
 *   B2  a request of EVENT_SITE_PYTHON_ONLY_BYTES and that share goes to its whole stack, however many there are.
 *
 * Why NATIVE_PATHS_MAX: a compiler that runs under one Python line, such as XLA's, brings a new whole stack with every third block.
 * Without the limit the capture and the tables took 120 MiB for a program of 250 MiB.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook; no allocation, no lock.
 */
#ifndef EVENT_SITE_H
#define EVENT_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture_file.h"
#include "kmem_words.h"
#include "sites/site_table.h"
#include "sites/thread_slot.h"
#include "tables/peak.h"

#define EVENT_SITE_PYTHON_ONLY_BYTES 65536
#define EVENT_SITE_PYTHON_ONLY_SHARE 6
#define EVENT_SITE_NATIVE_PATHS_MAX 4096

/*
 * A bit of hook_frame that is 0 in an address: the interpreter's allocator asks. If the thread has a Python stack, no native frame is
 * walked.
 */
#define EVENT_SITE_PYTHON ((uintptr_t)1)

/*
 * slot        of this thread; NULL: it has none, its stacks are whole
 * hook_frame  __builtin_frame_address(0) of the hook; NULL: an arena of the interpreter
 * bytes       that are asked for
 * returns     index + 1; 0 = there is no room for it
 */
uint32_t event_site(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes, uint8_t clock);

// of event_site_needs_native()
bool event_site_needs_native_slow(struct thread_slot *slot, uint32_t site, int64_t own_bytes, int64_t most);

/*
 * Would the Python-only site, this thread's own, hold more than its share? It holds what its threads allocated, less what they
 * released.
 */
static inline bool
event_site_needs_native(struct thread_slot *slot, uint32_t site, uint64_t bytes)
{
	int64_t heap = kmem_peak_now_signed(peak_load(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak));
	int64_t share = heap >> EVENT_SITE_PYTHON_ONLY_SHARE;
	int64_t most = share > EVENT_SITE_PYTHON_ONLY_BYTES ? share : EVENT_SITE_PYTHON_ONLY_BYTES;

	if (__builtin_expect(bytes >= (uint64_t)most, 0))
		return true;
	most -= (int64_t)bytes;

	const struct kmem_site *own = site_table_at(site);
	int64_t own_bytes = kmem_peak_now_signed(own->peak);

	return __builtin_expect(own_bytes >= most, 0) &&
	       (site_table_is_alone(own) || event_site_needs_native_slow(slot, site, own_bytes, most));
}

/*
 * The site of the whole stack, when event_cache_find() has just found a Python-only one that would hold too much; that one when its
 * line has too many native paths (B1). Keeps errno.
 */
uint32_t event_site_whole(struct thread_slot *slot, const void *hook_frame, uint32_t python_only, uint64_t bytes,
                          uint8_t clock);

/* As event_site(), for an event of the heap for which the thread's cache was asked already, and did not know it. */
uint32_t event_site_slow(struct thread_slot *slot, const void *hook_frame, struct event_lookup lookup, uint64_t bytes,
                         uint8_t clock);

void event_site_clear(void); // forked child: one thread; the capture is empty

#endif
