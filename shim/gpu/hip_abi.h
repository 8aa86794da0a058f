/*
 * hip_abi.h - the functions of AMD's HIP that the shim needs, declared without ROCm.
 *
 * Their parameters and numbers are those of the CUDA functions of the same kind: cuda_abi.h has the types. Handles of physical memory are
 * pointers. Where it is created stands as in CUDA since ROCm 6, and then begins with HIP_TYPE_PINNED; before, elsewhere.
 *
 * Context     Declarations only.
 * Sources     hip_runtime_api.h of ROCm 5.2: names, parameters, hipErrorOutOfMemory 2, hipErrorDeinitialized 4, hipErrorNoDevice 100.
 *             Exports have the version node hip_4.2, which our names without one satisfy, too.
 */
#ifndef HIP_ABI_H
#define HIP_ABI_H

#include <stddef.h>

#include "gpu/cuda_abi.h"

/* The beginning of hipPointerAttribute_t; its end has grown. */
struct hip_attributes {
	int memory_type;
	int device;
	char rest[120];
};

int hipMalloc(void **addr, size_t bytes);
int hipExtMallocWithFlags(void **addr, size_t bytes, unsigned flags);
int hipMallocManaged(void **addr, size_t bytes, unsigned flags);
int hipMallocAsync(void **addr, size_t bytes, void *stream);
int hipMallocFromPoolAsync(void **addr, size_t bytes, void *pool, void *stream);
int hipMallocPitch(void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height);
int hipMemAllocPitch(void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height, unsigned element_bytes);
int hipMalloc3D(struct cuda_pitched *block, struct cuda_extent extent);
int hipMallocArray(void **addr, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags);
int hipMalloc3DArray(void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags);
int hipHostMalloc(void **addr, size_t bytes, unsigned flags);
int hipHostAlloc(void **addr, size_t bytes, unsigned flags);
int hipMallocHost(void **addr, size_t bytes);
int hipMemAllocHost(void **addr, size_t bytes);
int hipHostRegister(void *addr, size_t bytes, unsigned flags);
int hipHostUnregister(void *addr);
int hipFree(void *addr);
int hipFreeAsync(void *addr, void *stream);
int hipFreeArray(void *addr);
int hipHostFree(void *addr);
int hipFreeHost(void *addr);
int hipDeviceReset(void);
int hipMemCreate(void **handle, size_t bytes, const struct cuda_memory_place *place, unsigned long long flags);
int hipMemRelease(void *handle);
int hipMemRetainAllocationHandle(void **handle, void *addr);
int hipMemImportFromShareableHandle(void **handle, void *shared, int shared_as);
int hipMemMap(void *addr, size_t bytes, size_t offset, void *handle, unsigned long long flags);
int hipMemUnmap(void *addr, size_t bytes);
int hipIpcOpenMemHandle(void **addr, struct cuda_ipc_handle handle, unsigned flags);
int hipIpcCloseMemHandle(void *addr);
enum { HIP_TYPE_PINNED = 1 }; // hipMemAllocationTypePinned

/* Asked, never hooked. */
int hipGetDevice(int *device);
int hipMemGetAddressRange(void **start, size_t *bytes, void *addr);
int hipPointerGetAttributes(struct hip_attributes *attributes, const void *addr);
int hipMemGetInfo(size_t *free_bytes, size_t *total_bytes);

/* ROW(exported name) */
#define HIP_ABI_FUNCTIONS(ROW)           \
	ROW(hipMalloc)                       \
	ROW(hipExtMallocWithFlags)           \
	ROW(hipMallocManaged)                \
	ROW(hipMallocAsync)                  \
	ROW(hipMallocFromPoolAsync)          \
	ROW(hipMallocPitch)                  \
	ROW(hipMemAllocPitch)                \
	ROW(hipMalloc3D)                     \
	ROW(hipMallocArray)                  \
	ROW(hipMalloc3DArray)                \
	ROW(hipHostMalloc)                   \
	ROW(hipHostAlloc)                    \
	ROW(hipMallocHost)                   \
	ROW(hipMemAllocHost)                 \
	ROW(hipHostRegister)                 \
	ROW(hipHostUnregister)               \
	ROW(hipFree)                         \
	ROW(hipFreeAsync)                    \
	ROW(hipFreeArray)                    \
	ROW(hipHostFree)                     \
	ROW(hipFreeHost)                     \
	ROW(hipDeviceReset)                  \
	ROW(hipMemCreate)                    \
	ROW(hipMemRelease)                   \
	ROW(hipMemRetainAllocationHandle)    \
	ROW(hipMemImportFromShareableHandle) \
	ROW(hipMemMap)                       \
	ROW(hipMemUnmap)                     \
	ROW(hipIpcOpenMemHandle)             \
	ROW(hipIpcCloseMemHandle)

#endif
