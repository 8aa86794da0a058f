/*
 * hooks_hip.c - the allocation functions of AMD's HIP, for programs that are linked to libamdhip64 or look its functions up by name.
 *
 * Below HIP there is no driver that programs call: these book by themselves, into the rows of devices, which the header then says are
 * HIP's. One process has devices of one vendor.
 *
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without HIP: hipErrorNoDevice. What HIP cannot be asked: device 0, and no figures of it.
 * Not seen    arrays by handles of the driver's kind (hipArrayCreate), what hipGetProcAddress gives out.
 */
#define HOOK_END_ALLOCATION end_allocation
#include "gpu/tracker_devices.h"
#include "capture/capture_file.h"
#include "gpu/hip_abi.h"
#include "gpu/hooks_cuda_call.h"
#include "gpu/real_cuda.h"
#include "tables/device_objects.h"

#define HOOK_LAYER CUDA_LAYER_DRIVER
#define HOOK_FIND real_cuda_runtime
#define HOOK_NOT_FOUND CUDA_ABI_NO_DEVICE

/* relaxed: an address of code that stays. */
#define QUESTION(name)            \
	static _Atomic(void *) known; \
	__typeof__(name) *ask = (__typeof__(name) *)real_cuda_query(&known, "libamdhip64", #name)

static int
current_device(void)
{
	int device;

	QUESTION(hipGetDevice);
	return ask != NULL && ask(&device) == CUDA_ABI_SUCCESS ? device : 0;
}

static struct device_memory
memory_left(void)
{
	size_t free, total;

	QUESTION(hipMemGetInfo);
	if (ask == NULL || ask(&free, &total) != CUDA_ABI_SUCCESS || free > total)
		return (struct device_memory){ 0 };
	return (struct device_memory){ .free_bytes = free, .total_bytes = total };
}

/* A pool's memory is where its stream is, or the pool itself. */
static int
device_at(uint64_t addr)
{
	struct hip_attributes attributes;

	QUESTION(hipPointerGetAttributes);
	return ask != NULL && ask(&attributes, (const void *)addr) == CUDA_ABI_SUCCESS ? attributes.device
	                                                                               : current_device();
}

static uint64_t
bytes_at(uint64_t addr)
{
	size_t bytes;
	void *start;

	QUESTION(hipMemGetAddressRange);
	return ask != NULL && ask(&start, &bytes, (void *)addr) == CUDA_ABI_SUCCESS && (uint64_t)start == addr ? bytes : 0;
}

/* Before anything is booked of it. relaxed: guards nothing. */
static void
say_hip(const struct cuda_call *call)
{
	if (call->is_booked_here)
		atomic_store_explicit(&capture_file_header()->devices_are_hip, KMEM_YES, memory_order_relaxed);
}

static unsigned
domain_of(enum cuda_memory memory, int device)
{
	return memory == CUDA_MEMORY_OPENED       ? KMEM_DOMAIN_CUDA_IMPORTED
	       : memory == CUDA_MEMORY_PINNED     ? KMEM_DOMAIN_CUDA_PINNED
	       : memory == CUDA_MEMORY_MANAGED    ? KMEM_DOMAIN_CUDA_MANAGED
	       : memory == CUDA_MEMORY_REGISTERED ? KMEM_DOMAIN_CUDA_REGISTERED
	                                          : tracker_device_domain(device);
}

/* As cuda_call_end_allocation(), of which HIP answers the questions. */
static void
end_allocation(struct cuda_call *call, enum cuda_memory memory, int result, uint64_t addr, uint64_t bytes)
{
	int host_errno = errno;
	bool is_given = result == CUDA_ABI_SUCCESS && addr != 0;

	if (call->is_booked_here && (is_given || (result == CUDA_ABI_OUT_OF_MEMORY && memory != CUDA_MEMORY_OPENED))) {
		int device = is_given && memory == CUDA_MEMORY_POOLED ? device_at(addr) : current_device();
		bool is_on_device = memory == CUDA_MEMORY_DEVICE || memory == CUDA_MEMORY_POOLED;
		/* What else a reset gives back is not said anywhere. */
		unsigned owner = memory == CUDA_MEMORY_DEVICE || memory == CUDA_MEMORY_OPENED ? (unsigned)device
		                                                                              : TRACKER_OWNER_NONE;
		struct device_memory left = !is_given && is_on_device ? memory_left() : (struct device_memory){ 0 };

		if (cuda_call_book_begin(call)) {
			say_hip(call);
			if (is_given && memory == CUDA_MEMORY_OPENED)
				tracker_object_opened(call->hook_frame, domain_of(memory, device), addr, bytes, owner);
			else if (is_given)
				tracker_device_allocated(call->hook_frame, domain_of(memory, device), addr, bytes, owner);
			else
				tracker_device_refused(call->hook_frame, domain_of(memory, device), bytes, result, left);
			reentry_guard_leave();
		}
	}
	cuda_call_end(call);
	errno = host_errno;
}

#define DEVICE CUDA_MEMORY_DEVICE
#define POOLED CUDA_MEMORY_POOLED
#define PINNED CUDA_MEMORY_PINNED

HOOK_ALLOCATION(hipMalloc, DEVICE, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(hipExtMallocWithFlags, DEVICE, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags), bytes,
                bytes);
HOOK_ALLOCATION(hipMallocManaged, CUDA_MEMORY_MANAGED, (void **addr, size_t bytes, unsigned flags),
                (addr, bytes, flags), bytes, bytes);
HOOK_ALLOCATION(hipMallocAsync, POOLED, (void **addr, size_t bytes, void *stream), (addr, bytes, stream), bytes, bytes);
HOOK_ALLOCATION(hipMallocFromPoolAsync, POOLED, (void **addr, size_t bytes, void *pool, void *stream),
                (addr, bytes, pool, stream), bytes, bytes);
HOOK_ALLOCATION(hipHostMalloc, PINNED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags), bytes, bytes);
HOOK_ALLOCATION(hipHostAlloc, PINNED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags), bytes, bytes);
HOOK_ALLOCATION(hipMallocHost, PINNED, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(hipMemAllocHost, PINNED, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);

#define PITCHED cuda_call_times(pitch_bytes == NULL ? width_bytes : *pitch_bytes, height)
HOOK_ALLOCATION(hipMallocPitch, DEVICE, (void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height),
                (addr, pitch_bytes, width_bytes, height), cuda_call_times(width_bytes, height), PITCHED);
HOOK_ALLOCATION(hipMemAllocPitch, DEVICE,
                (void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height, unsigned element_bytes),
                (addr, pitch_bytes, width_bytes, height, element_bytes), cuda_call_times(width_bytes, height), PITCHED);
HOOK_ALLOCATION_AT(hipMalloc3D, DEVICE, (struct cuda_pitched * block, struct cuda_extent extent), (block, extent),
                   block == NULL ? NULL : &block->addr,
                   cuda_call_times(cuda_call_times(extent.width, extent.height), extent.depth),
                   cuda_call_times(cuda_call_times(block->pitch_bytes, extent.height), extent.depth));

#define ARRAY(extent) cuda_call_channel_bytes(channels, extent, 1, flags)
#define FLAT ((struct cuda_extent){ width, height, 0 })
HOOK_ALLOCATION(hipMallocArray, DEVICE,
                (void **addr, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags),
                (addr, channels, width, height, flags), ARRAY(FLAT), ARRAY(FLAT));
HOOK_ALLOCATION(hipMalloc3DArray, DEVICE,
                (void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags),
                (addr, channels, extent, flags), ARRAY(extent), ARRAY(extent));
HOOK_ALLOCATION_AT(hipHostRegister, CUDA_MEMORY_REGISTERED, (void *addr, size_t bytes, unsigned flags),
                   (addr, bytes, flags), &addr, bytes, bytes);

HOOK_RELEASE(hipFree, (void *addr), (addr));
HOOK_RELEASE(hipFreeAsync, (void *addr, void *stream), (addr, stream));
HOOK_RELEASE(hipFreeArray, (void *addr), (addr));
HOOK_RELEASE(hipHostFree, (void *addr), (addr));
HOOK_RELEASE(hipFreeHost, (void *addr), (addr));
HOOK_RELEASE(hipHostUnregister, (void *addr), (addr));

HOOK_RESET(hipDeviceReset, current_device, tracker_owner_gone);

/* ---- physical memory, by handle, and its mappings; memory of other processes: as in hooks_cuda_memory.c ---- */

int
hook_hipMemCreate(void **handle, size_t bytes, const struct cuda_memory_place *place, unsigned long long flags)
{
	HOOK_BEGIN(hipMemCreate);
	int result = HOOK_REAL(hipMemCreate)(handle, bytes, place, flags);
	bool is_told = place != NULL && place->type == HIP_TYPE_PINNED;
	bool is_on_device = !is_told || place->location_type == CUDA_LOCATION_DEVICE;
	struct device_memory left = { 0 };
	int host_errno = errno;
	int current = call.is_booked_here ? current_device() : 0, device = is_told ? place->location_id : current;

	say_hip(&call);
	if (call.is_booked_here && result == CUDA_ABI_OUT_OF_MEMORY && is_on_device && device == current)
		left = memory_left();
	errno = host_errno;
	cuda_call_end_creation(&call, is_on_device ? tracker_device_domain(device) : KMEM_DOMAIN_CUDA_PINNED, result,
	                       result == CUDA_ABI_SUCCESS && handle != NULL ? (uint64_t)*handle : 0, bytes, left);
	return result;
}
HOOK_EXPORT(hipMemCreate);

HOOK_DROP(hipMemRelease, (void *handle), (handle), (uint64_t)handle);
HOOK_AFTER(hipMemRetainAllocationHandle, (void **handle, void *addr), (handle, addr), handle != NULL,
           device_objects_retain_mapped((uint64_t)*handle, (uint64_t)addr));
HOOK_AFTER(hipMemImportFromShareableHandle, (void **handle, void *shared, int shared_as), (handle, shared, shared_as),
           (say_hip(&call), handle != NULL), tracker_object_imported((uint64_t)*handle));
HOOK_AFTER(hipMemMap, (void *addr, size_t bytes, size_t offset, void *handle, unsigned long long flags),
           (addr, bytes, offset, handle, flags), true,
           tracker_object_mapped(call.hook_frame, (uint64_t)addr, bytes, (uint64_t)handle));
HOOK_AFTER(hipMemUnmap, (void *addr, size_t bytes), (addr, bytes), true,
           tracker_object_unmapped((uint64_t)addr, bytes));

HOOK_ALLOCATION(hipIpcOpenMemHandle, CUDA_MEMORY_OPENED, (void **addr, struct cuda_ipc_handle handle, unsigned flags),
                (addr, handle, flags), 0, call.is_booked_here ? bytes_at((uint64_t)*addr) : 0);
HOOK_DROP(hipIpcCloseMemHandle, (void *addr), (addr), TRACKER_OPENED((uint64_t)addr));
