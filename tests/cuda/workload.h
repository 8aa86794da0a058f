/*
 * workload.h - what the test programs do, whichever way they reach CUDA.
 *
 * A route_*.c fills in the functions it can reach (NULL: not this one) and calls workload_run(), which looks at
 * argv: the workload's name and how to end ("exit", "_exit" or "kill").
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stddef.h>

#include "../../shim/gpu/cuda_abi.h"

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
	int (*make_pool)(void **pool, const void *properties);
	int (*end_pool)(void *pool);
	int (*default_pool)(void **pool, int device);
	int (*pooled)(void **addr, size_t bytes, void *pool, void *stream);
	int (*pooled_twin)(void **addr, size_t bytes, void *pool, void *stream);
	int (*pitched)(void **addr, size_t *pitch, size_t width, size_t height, unsigned element_bytes);
	int (*array)(void **addr, const struct cuda_array *shape);
	int (*array_3d)(void **addr, const struct cuda_array_3d *shape);
	int (*release_array)(void *addr);
	int (*levels)(void **addr, const struct cuda_array_3d *shape, unsigned levels);
	int (*release_levels)(void *addr);
	int (*pin)(void *addr, size_t bytes, unsigned flags);
	int (*unpin)(void *addr);
	int (*reset)(int device); // the current one
	int (*open_shared)(void **addr, struct cuda_ipc_handle handle, unsigned flags);
	int (*close_shared)(void *addr);
	int (*import_pointer)(void **addr, void *pool, void *exported);
	int (*external)(void **addr, void *memory, const struct cuda_external_buffer *part);
	int (*graph_memory)(void **node, void *graph, void *const *before, size_t before_count,
	                    struct cuda_graph_memory *memory);
	int (*graph_free)(void **node, void *graph, void *const *before, size_t before_count, void *addr);
	int (*graph_node)(void **node, void *graph, void *const *before, const void *edges, size_t before_count,
	                  struct cuda_graph_node *parameters);
	/* The runtime's alone. */
	int (*solid)(struct cuda_pitched *block, struct cuda_extent extent);
	/* The driver's alone. */
	int (*create)(cuda_memory_handle *handle, size_t bytes, const struct cuda_memory_place *place,
	              unsigned long long flags);
	int (*release_handle)(cuda_memory_handle handle);
	int (*retain)(cuda_memory_handle *handle, void *addr);
	int (*map)(cuda_device_addr addr, size_t bytes, size_t offset, cuda_memory_handle handle, unsigned long long flags);
	int (*unmap)(cuda_device_addr addr, size_t bytes);
	int (*import_handle)(cuda_memory_handle *handle, void *shared, int shared_as);
	int (*external_levels)(void **addr, void *memory, const struct cuda_external_levels *part);
	int (*make_stream)(void **stream, unsigned flags);
	int (*make_context)(void **context, unsigned flags, int device);
	int (*make_context_newest)(void **context, void *parameters, unsigned flags, int device);
	int (*end_context)(void *context);
	int (*release_primary)(int device);
	int (*graph_node_old)(void **node, void *graph, void *const *before, size_t before_count,
	                      struct cuda_graph_node *parameters);
	int (*make_green)(void **green, void *resources, int device, unsigned flags);
	int (*green_as_context)(void **context, void *green);
	int (*end_green)(void *green);
	int (*set_current)(void *context);
};

/* Exit status: 0, or 2 when something that had to succeed failed. */
int workload_run(const struct cuda_api *api, int argc, char **argv);

#endif
