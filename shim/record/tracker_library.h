/*
 * tracker_library.h - memory inside reservations of libraries' own allocators: whose line made it grow?
 *
 * There is no event when such an allocator takes a page. So now and then, at other events, it is asked whether resident memory grew by
 * more than was allocated elsewhere, and which line runs. When enough has come together the pages are sampled. New pages are booked at
 * those lines, in proportion: an estimate (KMEM_STACK_ESTIMATED). The first frame is the code that made the reservation. Pages that are
 * gone are taken from the lines at which they were booked, one by one. So what is booked is what was found in memory.
 *
 * Events are: requests and releases of addresses, allocations from the heap, and the interpreter's lock that is given or taken
 * (hooks_thread.c): a line that calls into the library gives it before and takes it after. For threads without Python it is the line at
 * which a Python thread was seen last.
 *
 * Samples take about a 128th of the time of the process, questions another one; time in which other processes had the processor does not
 * count. A process without such reservations asks nothing.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook; no allocation. One thread at a time, the others go on.
 * When full   see library_map.h; growth goes to the lines that there is room for.
 */
#ifndef TRACKER_LIBRARY_H
#define TRACKER_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Asks, and samples the pages when enough has grown. To be called after library_due_is() or library_due_is_switch() returned true.
 * hook_frame: as in tracker.h; NULL = not at hand
 */
void tracker_library_sample(const void *hook_frame);

/* Samples now, whatever there is to find: before resident memory is reported. */
void tracker_library_sample_now(void);

/* Addresses were reserved that can be written; they are no reservation any more; their pages were given back. */
void tracker_library_reserved(const void *hook_frame, const void *addr, size_t bytes);
void tracker_library_cut(uint64_t start, uint64_t end);
void tracker_library_returned(uint64_t start, uint64_t end);

void tracker_library_clear(void); // forked child: one thread

#endif
