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
#define POOLED CUDA_MEMORY_POOLED
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
HOOK_ALLOCATION(cuMemAllocAsync, POOLED, (cuda_device_addr *addr, size_t bytes, void *stream),
                (addr, bytes, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocAsync_ptsz, POOLED, (cuda_device_addr *addr, size_t bytes, void *stream),
                (addr, bytes, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocFromPoolAsync, POOLED, (cuda_device_addr *addr, size_t bytes, void *pool, void *stream),
                (addr, bytes, pool, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocFromPoolAsync_ptsz, POOLED, (cuda_device_addr *addr, size_t bytes, void *pool, void *stream),
                (addr, bytes, pool, stream), bytes, bytes);
HOOK_ALLOCATION(cuMemAllocHost_v2, PINNED, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cuMemHostAlloc, PINNED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags),
                bytes, bytes);

HOOK_RELEASE(cuMemFree_v2, (cuda_device_addr addr), (addr));
HOOK_RELEASE(cuMemFreeAsync, (cuda_device_addr addr, void *stream), (addr, stream));
HOOK_RELEASE(cuMemFreeAsync_ptsz, (cuda_device_addr addr, void *stream), (addr, stream));
HOOK_RELEASE(cuMemFreeHost, (void *addr), (addr));

/* ---- arrays: by their handle ---- */

static size_t
channel_bytes(int format)
{
	/* CU_AD_FORMAT_SIGNED_INT32 and its kind, FLOAT; INT16, HALF; all others count as bytes. */
	if (format == 0x03 || format == 0x0a || format == 0x20)
		return 4;
	return format == 0x02 || format == 0x09 || format == 0x10 ? 2 : 1;
}

static size_t
at_least_one(size_t extent)
{
	return extent == 0 ? 1 : extent;
}

static size_t
flat_bytes(const struct cuda_array *shape)
{
	return shape == NULL ? 0 : shape->width * at_least_one(shape->height) * shape->channels * channel_bytes(shape->format);
}

/* Each level is half as large as the one before, in each direction. */
static size_t
solid_bytes(const struct cuda_array_3d *shape, unsigned levels)
{
	size_t bytes = 0;

	for (unsigned level = 0; shape != NULL && level < levels && level < 64; level++)
		bytes += at_least_one(shape->width >> level) * at_least_one(shape->height >> level) *
		         at_least_one(shape->depth >> level) * shape->channels * channel_bytes(shape->format);
	return bytes;
}

HOOK_ALLOCATION(cuArrayCreate_v2, DEVICE, (void **addr, const struct cuda_array *shape), (addr, shape), flat_bytes(shape),
                flat_bytes(shape));
HOOK_ALLOCATION(cuArray3DCreate_v2, DEVICE, (void **addr, const struct cuda_array_3d *shape), (addr, shape),
                solid_bytes(shape, 1), solid_bytes(shape, 1));
HOOK_ALLOCATION(cuMipmappedArrayCreate, DEVICE, (void **addr, const struct cuda_array_3d *shape, unsigned levels),
                (addr, shape, levels), solid_bytes(shape, levels), solid_bytes(shape, levels));
HOOK_RELEASE(cuArrayDestroy, (void *addr), (addr));
HOOK_RELEASE(cuMipmappedArrayDestroy, (void *addr), (addr));
