/*
 * hooks_cuda_driver.c - the driver's allocation functions: the truth about device memory.
 *
 * One row per function. Reached by programs that link to libcuda, and through hooks_lookup.c by those that
 * look the functions up: every CUDA runtime, shared or static.
 *
 * Called by   the program and CUDA's own libraries.
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without a driver: CUDA_ERROR_NOT_INITIALIZED, as before cuInit().
 */
#include "hooks_cuda_call.h"
#include "real_cuda.h"

#define HOOK_LAYER CUDA_LAYER_DRIVER
#define HOOK_FIND real_cuda_driver
#define HOOK_NOT_FOUND CUDA_ABI_NOT_INITIALIZED

#define DEVICE CUDA_MEMORY_DEVICE
#define MANAGED CUDA_MEMORY_MANAGED
#define PINNED CUDA_MEMORY_PINNED

HOOK_ALLOCATION(cuMemAlloc_v2, DEVICE, (cuda_device_addr *addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocPitch_v2, DEVICE,
                (cuda_device_addr *addr, size_t *pitch_bytes, size_t width_bytes, size_t height,
                 unsigned element_bytes),
                (addr, pitch_bytes, width_bytes, height, element_bytes), width_bytes * height,
                *pitch_bytes * height);
HOOK_ALLOCATION(cuMemAllocManaged, MANAGED, (cuda_device_addr *addr, size_t bytes, unsigned flags),
                (addr, bytes, flags), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocAsync, DEVICE, (cuda_device_addr *addr, size_t bytes, void *stream),
                (addr, bytes, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocAsync_ptsz, DEVICE, (cuda_device_addr *addr, size_t bytes, void *stream),
                (addr, bytes, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocHost_v2, PINNED, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cuMemHostAlloc, PINNED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags),
                bytes, bytes);

HOOK_RELEASE(cuMemFree_v2, (cuda_device_addr addr), (addr));
HOOK_RELEASE(cuMemFreeAsync, (cuda_device_addr addr, void *stream), (addr, stream));
HOOK_RELEASE(cuMemFreeAsync_ptsz, (cuda_device_addr addr, void *stream), (addr, stream));
HOOK_RELEASE(cuMemFreeHost, (void *addr), (addr));
