/*
 * work_items.h - which line gave this item of work to another thread?
 *
 * A line puts an item into a queue, a thread of a pool takes it out and runs it. If that is code of libraries alone, what it allocates is
 * shown at the line that put the item in: `started by` of thread_attribution.h. If the item was put in by a thread that runs code of libraries
 * for an item of its own, its line goes on to the next (the threads of multiprocessing.pool.ThreadPool).
 *
 * Context     inside the reentry guard; the thread has Python frames.
 * Safe from   any thread; no allocation, no lock.
 * When full   (16,384 items wait) an older one is forgotten: its memory is shown where it would be shown without this file.
 */
#ifndef WORK_ITEMS_H
#define WORK_ITEMS_H

void work_items_put(const void *item); // before another thread can take it
void work_items_got(const void *item); // from now on the calling thread works on it

void work_items_forked(void); // forked child: one thread; the capture is empty

#endif
