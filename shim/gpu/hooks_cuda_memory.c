/*
 * hooks_cuda_memory.c - physical memory of the driver, by handle, and its mappings.
 *
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without a driver: CUDA_ERROR_NOT_INITIALIZED, as before cuInit().
 */
#include "gpu/tracker_devices.h"
#include "gpu/hooks_cuda_call.h"
#include "gpu/real_cuda.h"
#include "tables/device_objects.h"

#define HOOK_LAYER CUDA_LAYER_DRIVER
#define HOOK_FIND real_cuda_driver
#define HOOK_NOT_FOUND CUDA_ABI_NOT_INITIALIZED

int
hook_cuMemCreate(cuda_memory_handle *handle, size_t bytes, const struct cuda_memory_place *place,
                 unsigned long long flags)
{
	HOOK_BEGIN(cuMemCreate);
	int result = HOOK_REAL(cuMemCreate)(handle, bytes, place, flags);
	int host_errno = errno;
	bool is_on_device = place != NULL && place->location_type == CUDA_LOCATION_DEVICE;
	struct device_memory left = { 0 };

	if (result == CUDA_ABI_OUT_OF_MEMORY && is_on_device && call.is_booked_here) {
		real_cuda_memory(place->location_id, &left.free_bytes, &left.total_bytes);
		left.pool_kept_bytes = cuda_call_pools_kept(place->location_id, NULL);
	}
	errno = host_errno;
	cuda_call_end_creation(&call, is_on_device ? tracker_device_domain(place->location_id) : KMEM_DOMAIN_CUDA_PINNED,
	                       result, result == CUDA_ABI_SUCCESS && handle != NULL ? *handle : 0, bytes, left);
	return result;
}
HOOK_EXPORT(cuMemCreate);

HOOK_DROP(cuMemRelease, (cuda_memory_handle handle), (handle), handle);
HOOK_AFTER(cuMemRetainAllocationHandle, (cuda_memory_handle * handle, void *addr), (handle, addr), handle != NULL,
           device_objects_retain_mapped(*handle, (uint64_t)addr));
HOOK_AFTER(cuMemImportFromShareableHandle, (cuda_memory_handle * handle, void *shared, int shared_as),
           (handle, shared, shared_as), handle != NULL, tracker_object_imported(*handle));
HOOK_AFTER(cuMemMap,
           (cuda_device_addr addr, size_t bytes, size_t offset, cuda_memory_handle handle, unsigned long long flags),
           (addr, bytes, offset, handle, flags), true, tracker_object_mapped(call.hook_frame, addr, bytes, handle));
/* The addresses stay the caller's until it gives them back, so that nobody maps there before we have looked. */
HOOK_AFTER(cuMemUnmap, (cuda_device_addr addr, size_t bytes), (addr, bytes), true,
           tracker_object_unmapped(addr, bytes));
