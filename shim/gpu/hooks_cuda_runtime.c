/*
 * hooks_cuda_runtime.c - the CUDA runtime's allocation functions, for programs that link to a shared libcudart.
 *
 * The driver's hooks book what happens inside; these give them the stack of the call that the program made,
 * and book by themselves only where the driver cannot be seen (RTLD_DEEPBIND). Lookups by dlsym are not
 * answered with them: two runtimes may live in one process, and a wrapper could not tell whose it is.
 *
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without a runtime: cudaErrorNoDevice, for programs that test a weak reference.
 */
#include "gpu/tracker_devices.h"
#include "gpu/hooks_cuda_call.h"
#include "gpu/real_cuda.h"

#define HOOK_LAYER CUDA_LAYER_RUNTIME
#define HOOK_FIND real_cuda_runtime
#define HOOK_NOT_FOUND CUDA_ABI_NO_DEVICE

#define DEVICE CUDA_MEMORY_DEVICE
#define MANAGED CUDA_MEMORY_MANAGED
#define PINNED CUDA_MEMORY_PINNED
#define POOLED CUDA_MEMORY_POOLED
#define FROM_POOL(pool) cuda_call_from_pool(&call, POOLED, pool)
#define REGISTERED CUDA_MEMORY_REGISTERED
#define IMPORTED CUDA_MEMORY_IMPORTED
#define EXTERNAL CUDA_MEMORY_EXTERNAL
#define OPENED CUDA_MEMORY_OPENED
#define GRAPH CUDA_MEMORY_GRAPH

HOOK_ALLOCATION(cudaMalloc, DEVICE, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cudaMallocManaged, MANAGED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags), bytes,
                bytes);
HOOK_ALLOCATION(cudaMallocAsync, POOLED, (void **addr, size_t bytes, void *stream), (addr, bytes, stream), bytes,
                bytes);
HOOK_ALLOCATION(cudaMallocAsync_ptsz, POOLED, (void **addr, size_t bytes, void *stream), (addr, bytes, stream), bytes,
                bytes);
HOOK_ALLOCATION(cudaMallocHost, PINNED, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cudaHostAlloc, PINNED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags), bytes, bytes);

HOOK_ALLOCATION(cudaMallocPitch, DEVICE, (void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height),
                (addr, pitch_bytes, width_bytes, height), cuda_call_times(width_bytes, height),
                cuda_call_times(pitch_bytes == NULL ? width_bytes : *pitch_bytes, height));
HOOK_ALLOCATION_AT(cudaMalloc3D, DEVICE, (struct cuda_pitched * block, struct cuda_extent extent), (block, extent),
                   block == NULL ? NULL : &block->addr,
                   cuda_call_times(cuda_call_times(extent.width, extent.height), extent.depth),
                   cuda_call_times(cuda_call_times(block->pitch_bytes, extent.height), extent.depth));
HOOK_ALLOCATION(cudaMallocFromPoolAsync, FROM_POOL(pool), (void **addr, size_t bytes, void *pool, void *stream),
                (addr, bytes, pool, stream), bytes, bytes);
HOOK_ALLOCATION(cudaMallocFromPoolAsync_ptsz, FROM_POOL(pool), (void **addr, size_t bytes, void *pool, void *stream),
                (addr, bytes, pool, stream), bytes, bytes);

HOOK_START(cudaGetDeviceCount, (int *count), (count));

HOOK_RELEASE(cudaFree, (void *addr), (addr));
HOOK_RELEASE(cudaFreeAsync, (void *addr, void *stream), (addr, stream));
HOOK_RELEASE(cudaFreeAsync_ptsz, (void *addr, void *stream), (addr, stream));
HOOK_RELEASE(cudaFreeHost, (void *addr), (addr));

/* ---- arrays: by their handle ---- */

#define FLAT(width, height) ((struct cuda_extent){ width, height, 0 })

HOOK_ALLOCATION(cudaMallocArray, DEVICE,
                (void **addr, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags),
                (addr, channels, width, height, flags),
                cuda_call_channel_bytes(channels, FLAT(width, height), 1, flags),
                cuda_call_channel_bytes(channels, FLAT(width, height), 1, flags));
HOOK_ALLOCATION(cudaMalloc3DArray, DEVICE,
                (void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags),
                (addr, channels, extent, flags), cuda_call_channel_bytes(channels, extent, 1, flags),
                cuda_call_channel_bytes(channels, extent, 1, flags));
HOOK_ALLOCATION(cudaMallocMipmappedArray, DEVICE,
                (void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned levels,
                 unsigned flags),
                (addr, channels, extent, levels, flags), cuda_call_channel_bytes(channels, extent, levels, flags),
                cuda_call_channel_bytes(channels, extent, levels, flags));
HOOK_RELEASE(cudaFreeArray, (void *addr), (addr));
HOOK_RELEASE(cudaFreeMipmappedArray, (void *addr), (addr));

/* ---- as in hooks_cuda_driver.c ---- */

HOOK_ALLOCATION_AT(cudaHostRegister, REGISTERED, (void *addr, size_t bytes, unsigned flags), (addr, bytes, flags),
                   &addr, bytes, bytes);
HOOK_RELEASE(cudaHostUnregister, (void *addr), (addr));

HOOK_ALLOCATION(cudaMemPoolImportPointer, IMPORTED, (void **addr, void *pool, void *exported), (addr, pool, exported),
                0, cuda_call_bytes(&call, (uint64_t)*addr));
HOOK_ALLOCATION(cudaExternalMemoryGetMappedBuffer, EXTERNAL,
                (void **addr, void *memory, const struct cuda_external_buffer *part), (addr, memory, part), 0,
                part == NULL ? 0 : part->bytes);
HOOK_ALLOCATION(cudaIpcOpenMemHandle, OPENED, (void **addr, struct cuda_ipc_handle handle, unsigned flags),
                (addr, handle, flags), 0, cuda_call_bytes(&call, (uint64_t)*addr));
HOOK_DROP(cudaIpcCloseMemHandle, (void *addr), (addr), TRACKER_OPENED((uint64_t)addr));

HOOK_ALLOCATION_AT(cudaGraphAddMemAllocNode, GRAPH,
                   (void **node, void *graph, void *const *before, size_t before_count,
                    struct cuda_graph_memory *memory),
                   (node, graph, before, before_count, memory), memory == NULL ? NULL : &memory->addr,
                   memory == NULL ? 0 : memory->bytes, memory->bytes);
HOOK_RELEASE(cudaGraphAddMemFreeNode, (void **node, void *graph, void *const *before, size_t before_count, void *addr),
             (node, graph, before, before_count, addr));
