/*
 * callbacks.h - what sites, moments, record and periodic ask of the folders above them.
 *
 * One constant table, so that these calls are visible arrows and cost no more than direct ones. lifecycle.c fills it in for the
 * library, tests/unit/shim/callbacks.c for programs that use the recorder's parts without hooks.
 *
 * Safe from   any hook, from the first call on: the table is there before any constructor runs. No pointer is NULL.
 */
#ifndef CALLBACKS_H
#define CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"

struct record_callbacks {
	// Starts recording in this process, if that is possible now. True: it is on.
	bool (*wake)(void);
	// What is recorded is worth a file from now on, if there is none yet: before a first heartbeat, a refused request, a
	// thread, and before rights are given up.
	void (*needs_file)(void);
	// A thread is walked that has Python frames. Inside the reentry guard.
	void (*python_arrived)(void);
	// Takes a heartbeat: live bytes of heap, mmap, shared, python/arena and library. Keeps errno.
	void (*beat)(uint64_t live_bytes);
	// guard_due.h says so: may a request of so many bytes more be made? is_growth: of a block in use. Keeps errno. Inside the reentry guard.
	bool (*guard_allows)(unsigned domain, uint64_t bytes, bool is_growth);
	// library_due.h says that it is time: samples what libraries' own allocators hold. Inside the reentry guard.
	void (*library_due)(const void *hook_frame);
	// Python begins to end: the last sample of live objects and of resident memory.
	void (*python_ends)(void);
	// Fills in kept_bytes of a snapshot, while PyTorch gives up on a tensor of the domain.
	void (*tensors_kept)(struct kmem_device_snapshot *device_snapshot, unsigned domain);
};

extern const struct record_callbacks record_callbacks;

#endif
