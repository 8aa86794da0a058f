/*
 * workload.h - what the test programs do, whichever way they reach CUDA.
 *
 * A route_*.c fills in the functions it can reach (NULL: not this one) and calls workload_run(), which looks at
 * argv: the workload's name and how to end ("exit" or "kill").
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stddef.h>

struct cuda_api {
	int (*use_device)(int device);
	int (*device)(void **addr, size_t bytes);
	int (*device_async)(void **addr, size_t bytes, void *stream);
	int (*device_async_twin)(void **addr, size_t bytes, void *stream); // _ptsz
	int (*managed)(void **addr, size_t bytes, unsigned flags);
	int (*pinned)(void **addr, size_t bytes);
	int (*pinned_flags)(void **addr, size_t bytes, unsigned flags);
	int (*release)(void *addr);
	int (*release_async)(void *addr, void *stream);
	int (*release_async_twin)(void *addr, void *stream);
	int (*release_pinned)(void *addr);
};

/* Exit status: 0, or 2 when something that had to succeed failed. */
int workload_run(const struct cuda_api *api, int argc, char **argv);

#endif
