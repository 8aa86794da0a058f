/*
 * hooks_cuda_memory.c - the driver's calls that are no pair of allocation and release: physical memory and its mappings, host
 * memory that is pinned where it lies, and the reset of a device.
 *
 * Called by   the program and CUDA's own libraries, as hooks_cuda_driver.c.
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without a driver: CUDA_ERROR_NOT_INITIALIZED, as before cuInit().
 */
#include <errno.h>

#include "device_objects.h"
#include "hooks_cuda_call.h"
#include "real_cuda.h"
#include "reentry_guard.h"

/* `call` of a hook that asks the driver by itself. */
#define BEGIN(name)                                                                                   \
	void *real = real_cuda_driver(REAL_CUDA_##name, __builtin_return_address(0));                 \
	struct cuda_call call;                                                                        \
                                                                                                      \
	if (real == NULL)                                                                             \
		return CUDA_ABI_NOT_INITIALIZED;                                                      \
	cuda_call_begin(&call, CUDA_LAYER_DRIVER, __builtin_frame_address(0))

#define REAL(name) ((__typeof__(name) *)real)

/* ---- physical memory ---- */

int
hook_cuMemCreate(cuda_memory_handle *handle, size_t bytes, const struct cuda_memory_place *place, unsigned long long flags)
{
	BEGIN(cuMemCreate);
	int result = REAL(cuMemCreate)(handle, bytes, place, flags);
	int host_errno = errno;
	bool is_given = result == CUDA_ABI_SUCCESS && handle != NULL;
	bool is_on_device = place != NULL && place->location_type == CUDA_LOCATION_DEVICE;
	struct device_memory left = { 0 };

	if (result == CUDA_ABI_OUT_OF_MEMORY && is_on_device && call.is_booked_here)
		real_cuda_memory(place->location_id, &left.free_bytes, &left.total_bytes);
	if (place != NULL && (is_given || result == CUDA_ABI_OUT_OF_MEMORY) && cuda_call_book_begin(&call)) {
		unsigned domain = is_on_device ? tracker_device_domain(place->location_id) : KMEM_DOMAIN_CUDA_PINNED;

		if (is_given)
			tracker_object_created(call.hook_frame, domain, *handle, bytes);
		else
			tracker_device_refused(call.hook_frame, domain, bytes, result, left);
		reentry_guard_leave();
	}
	cuda_call_end(&call);
	errno = host_errno;
	return result;
}
HOOK_EXPORT(cuMemCreate);

int
hook_cuMemRelease(cuda_memory_handle handle)
{
	BEGIN(cuMemRelease);
	struct device_drop dropped = { 0 };
	bool is_booked = cuda_call_book_begin(&call);

	if (is_booked) {
		dropped = device_objects_release(handle);
		reentry_guard_leave();
	}
	int result = REAL(cuMemRelease)(handle);
	int host_errno = errno;

	if (is_booked && cuda_call_book_begin(&call)) {
		if (result == CUDA_ABI_SUCCESS || result == CUDA_ABI_UNLOADING)
			tracker_object_released(dropped);
		else
			device_objects_not_released(dropped, handle);
		reentry_guard_leave();
	}
	cuda_call_end(&call);
	errno = host_errno;
	return result;
}
HOOK_EXPORT(cuMemRelease);

int
hook_cuMemRetainAllocationHandle(cuda_memory_handle *handle, void *addr)
{
	BEGIN(cuMemRetainAllocationHandle);
	int result = REAL(cuMemRetainAllocationHandle)(handle, addr);

	if (result == CUDA_ABI_SUCCESS && handle != NULL && cuda_call_book_begin(&call)) {
		device_objects_retain(*handle);
		reentry_guard_leave();
	}
	cuda_call_end(&call);
	return result;
}
HOOK_EXPORT(cuMemRetainAllocationHandle);

int
hook_cuMemMap(cuda_device_addr addr, size_t bytes, size_t offset, cuda_memory_handle handle, unsigned long long flags)
{
	BEGIN(cuMemMap);
	int result = REAL(cuMemMap)(addr, bytes, offset, handle, flags);
	int host_errno = errno;

	if (result == CUDA_ABI_SUCCESS && cuda_call_book_begin(&call)) {
		device_objects_mapped(addr, bytes, handle);
		reentry_guard_leave();
	}
	cuda_call_end(&call);
	errno = host_errno;
	return result;
}
HOOK_EXPORT(cuMemMap);

/* The addresses stay the caller's until it gives them back, so that nobody maps there before we have looked. */
int
hook_cuMemUnmap(cuda_device_addr addr, size_t bytes)
{
	BEGIN(cuMemUnmap);
	int result = REAL(cuMemUnmap)(addr, bytes);
	int host_errno = errno;

	if (result == CUDA_ABI_SUCCESS && cuda_call_book_begin(&call)) {
		tracker_object_unmapped(addr, bytes);
		reentry_guard_leave();
	}
	cuda_call_end(&call);
	errno = host_errno;
	return result;
}
HOOK_EXPORT(cuMemUnmap);

/* ---- host memory that is pinned where it lies ---- */

int
hook_cuMemHostRegister_v2(void *addr, size_t bytes, unsigned flags)
{
	BEGIN(cuMemHostRegister_v2);
	int result = REAL(cuMemHostRegister_v2)(addr, bytes, flags);

	cuda_call_end_allocation(&call, CUDA_MEMORY_REGISTERED, result, (uint64_t)(uintptr_t)addr, bytes);
	return result;
}
HOOK_EXPORT(cuMemHostRegister_v2);

int
hook_cuMemHostUnregister(void *addr)
{
	void *real = real_cuda_driver(REAL_CUDA_cuMemHostUnregister, __builtin_return_address(0));
	struct cuda_call call;

	if (real == NULL)
		return CUDA_ABI_NOT_INITIALIZED;
	cuda_call_begin_release(&call, CUDA_LAYER_DRIVER, __builtin_frame_address(0), (uint64_t)(uintptr_t)addr);
	int result = REAL(cuMemHostUnregister)(addr);

	cuda_call_end_release(&call, result);
	return result;
}
HOOK_EXPORT(cuMemHostUnregister);

/* ---- reset ---- */

#define HOOK_RESET(name)                                                                              \
	int hook_##name(int device)                                                                   \
	{                                                                                             \
		BEGIN(name);                                                                          \
		int result = REAL(name)(device);                                                      \
		int host_errno = errno;                                                               \
                                                                                                      \
		if (result == CUDA_ABI_SUCCESS && cuda_call_book_begin(&call)) {                      \
			tracker_device_reset(device);                                                 \
			reentry_guard_leave();                                                        \
		}                                                                                     \
		cuda_call_end(&call);                                                                 \
		errno = host_errno;                                                                   \
		return result;                                                                        \
	}                                                                                             \
	HOOK_EXPORT(name)

HOOK_RESET(cuDevicePrimaryCtxReset);
HOOK_RESET(cuDevicePrimaryCtxReset_v2);
