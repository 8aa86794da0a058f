/*
 * hooks_cuda_driver.c - the driver's allocation functions: the truth about device memory.
 *
 * One row per function. Reached by programs that link to libcuda, and through hooks_lookup.c by those that
 * look the functions up: every CUDA runtime, shared or static. What is no pair of allocation and release is in
 * hooks_cuda_memory.c and hooks_cuda_context.c.
 *
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without a driver: CUDA_ERROR_NOT_INITIALIZED, as before cuInit().
 */
#include "gpu/tracker_devices.h"
#include "gpu/hooks_cuda_call.h"
#include "gpu/real_cuda.h"

#define HOOK_LAYER CUDA_LAYER_DRIVER
#define HOOK_FIND real_cuda_driver
#define HOOK_NOT_FOUND CUDA_ABI_NOT_INITIALIZED

#define DEVICE CUDA_MEMORY_DEVICE
#define POOLED(stream) cuda_call_pooled(&call, stream)
#define FROM_POOL(pool, stream) cuda_call_from_pool(&call, POOLED(stream), pool)
#define OWN_STREAM(stream) ((stream) == NULL ? CUDA_ABI_STREAM_PER_THREAD : (stream))
#define MANAGED CUDA_MEMORY_MANAGED
#define PINNED CUDA_MEMORY_PINNED
#define REGISTERED CUDA_MEMORY_REGISTERED
#define IMPORTED CUDA_MEMORY_IMPORTED
#define EXTERNAL CUDA_MEMORY_EXTERNAL
#define OPENED CUDA_MEMORY_OPENED
#define GRAPH CUDA_MEMORY_GRAPH

HOOK_ALLOCATION(cuMemAlloc_v2, DEVICE, (cuda_device_addr * addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocPitch_v2, DEVICE,
                (cuda_device_addr * addr, size_t *pitch_bytes, size_t width_bytes, size_t height,
                 unsigned element_bytes),
                (addr, pitch_bytes, width_bytes, height, element_bytes), cuda_call_times(width_bytes, height),
                cuda_call_times(pitch_bytes == NULL ? width_bytes : *pitch_bytes, height));
HOOK_ALLOCATION(cuMemAllocManaged, MANAGED, (cuda_device_addr * addr, size_t bytes, unsigned flags),
                (addr, bytes, flags), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocAsync, POOLED(stream), (cuda_device_addr * addr, size_t bytes, void *stream),
                (addr, bytes, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocAsync_ptsz, POOLED(OWN_STREAM(stream)), (cuda_device_addr * addr, size_t bytes, void *stream),
                (addr, bytes, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocFromPoolAsync, FROM_POOL(pool, stream),
                (cuda_device_addr * addr, size_t bytes, void *pool, void *stream), (addr, bytes, pool, stream), bytes,
                bytes);
HOOK_ALLOCATION(cuMemAllocFromPoolAsync_ptsz, FROM_POOL(pool, OWN_STREAM(stream)),
                (cuda_device_addr * addr, size_t bytes, void *pool, void *stream), (addr, bytes, pool, stream), bytes,
                bytes);
HOOK_ALLOCATION(cuMemAllocHost_v2, PINNED, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cuMemHostAlloc, PINNED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags), bytes,
                bytes);

HOOK_RELEASE(cuMemFree_v2, (cuda_device_addr addr), (addr));
HOOK_RELEASE(cuMemFreeAsync, (cuda_device_addr addr, void *stream), (addr, stream));
HOOK_RELEASE(cuMemFreeAsync_ptsz, (cuda_device_addr addr, void *stream), (addr, stream));
HOOK_RELEASE(cuMemFreeHost, (void *addr), (addr));

/* ---- arrays: by their handle ---- */

static uint64_t
flat_bytes(const struct cuda_array *shape)
{
	if (shape == NULL)
		return 0;

	struct cuda_array_3d solid = (struct cuda_array_3d){ shape->width,  shape->height,   0,
		                                                 shape->format, shape->channels, 0 };

	return cuda_call_array_bytes(&solid, 1);
}

HOOK_ALLOCATION(cuArrayCreate_v2, DEVICE, (void **addr, const struct cuda_array *shape), (addr, shape),
                flat_bytes(shape), flat_bytes(shape));
HOOK_ALLOCATION(cuArray3DCreate_v2, DEVICE, (void **addr, const struct cuda_array_3d *shape), (addr, shape),
                cuda_call_array_bytes(shape, 1), cuda_call_array_bytes(shape, 1));
HOOK_ALLOCATION(cuMipmappedArrayCreate, DEVICE, (void **addr, const struct cuda_array_3d *shape, unsigned levels),
                (addr, shape, levels), cuda_call_array_bytes(shape, levels), cuda_call_array_bytes(shape, levels));
HOOK_RELEASE(cuArrayDestroy, (void *addr), (addr));
HOOK_RELEASE(cuMipmappedArrayDestroy, (void *addr), (addr));

/* ---- host memory that is pinned where it lies ---- */

HOOK_ALLOCATION_AT(cuMemHostRegister, REGISTERED, (void *addr, size_t bytes, unsigned flags), (addr, bytes, flags),
                   &addr, bytes, bytes);
HOOK_ALLOCATION_AT(cuMemHostRegister_v2, REGISTERED, (void *addr, size_t bytes, unsigned flags), (addr, bytes, flags),
                   &addr, bytes, bytes);
HOOK_RELEASE(cuMemHostUnregister, (void *addr), (addr));

/* ---- memory of other processes and of graphics: mapped here, given out elsewhere ---- */

HOOK_ALLOCATION(cuMemPoolImportPointer, IMPORTED, (cuda_device_addr * addr, void *pool, void *exported),
                (addr, pool, exported), 0, cuda_call_bytes(&call, *addr));
HOOK_ALLOCATION(cuExternalMemoryGetMappedBuffer, EXTERNAL,
                (cuda_device_addr * addr, void *memory, const struct cuda_external_buffer *part), (addr, memory, part),
                0, part == NULL ? 0 : part->bytes);
HOOK_ALLOCATION(cuExternalMemoryGetMappedMipmappedArray, EXTERNAL,
                (void **addr, void *memory, const struct cuda_external_levels *part), (addr, memory, part), 0,
                part == NULL ? 0 : cuda_call_array_bytes(&part->shape, part->levels));
HOOK_ALLOCATION(cuIpcOpenMemHandle, OPENED, (cuda_device_addr * addr, struct cuda_ipc_handle handle, unsigned flags),
                (addr, handle, flags), 0, cuda_call_bytes(&call, *addr));
HOOK_ALLOCATION(cuIpcOpenMemHandle_v2, OPENED, (cuda_device_addr * addr, struct cuda_ipc_handle handle, unsigned flags),
                (addr, handle, flags), 0, cuda_call_bytes(&call, *addr));
HOOK_DROP(cuIpcCloseMemHandle, (cuda_device_addr addr), (addr), TRACKER_OPENED(addr));

/* ---- graphs: the address is given out now, memory when the graph runs ---- */

HOOK_ALLOCATION_AT(cuGraphAddMemAllocNode, GRAPH,
                   (void **node, void *graph, void *const *before, size_t before_count,
                    struct cuda_graph_memory *memory),
                   (node, graph, before, before_count, memory), memory == NULL ? NULL : &memory->addr,
                   memory == NULL ? 0 : memory->bytes, memory->bytes);
HOOK_RELEASE(cuGraphAddMemFreeNode,
             (void **node, void *graph, void *const *before, size_t before_count, cuda_device_addr addr),
             (node, graph, before, before_count, addr));

/* A node of any type: of two of them the parameters say what the functions above are told. */
#define HOOK_NODE(name, parameters, arguments)                                                           \
	int hook_##name parameters                                                                           \
	{                                                                                                    \
		HOOK_FIND_REAL(name);                                                                            \
		bool gives = node != NULL && node->type == CUDA_NODE_MEM_ALLOC;                                  \
		bool takes = node != NULL && node->type == CUDA_NODE_MEM_FREE;                                   \
                                                                                                         \
		cuda_call_begin_release(&call, HOOK_LAYER, __builtin_frame_address(0), takes ? node->freed : 0); \
		int result = HOOK_REAL(name) arguments;                                                          \
		if (gives)                                                                                       \
			cuda_call_end_allocation(&call, GRAPH, result, node->memory.addr, node->memory.bytes);       \
		else                                                                                             \
			cuda_call_end_release(&call, result);                                                        \
		return result;                                                                                   \
	}                                                                                                    \
	HOOK_EXPORT(name)

HOOK_NODE(cuGraphAddNode,
          (void **made, void *graph, void *const *before, size_t before_count, struct cuda_graph_node *node),
          (made, graph, before, before_count, node));
HOOK_NODE(cuGraphAddNode_v2,
          (void **made, void *graph, void *const *before, const void *edges, size_t before_count,
           struct cuda_graph_node *node),
          (made, graph, before, edges, before_count, node));
