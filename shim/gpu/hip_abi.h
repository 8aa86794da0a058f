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

enum { HIP_TYPE_PINNED = 1 }; // hipMemAllocationTypePinned

/* Asked, never hooked. */
int hipGetDevice(int *device);
int hipMemGetAddressRange(void **start, size_t *bytes, void *addr);
int hipPointerGetAttributes(struct hip_attributes *attributes, const void *addr);
int hipMemGetInfo(size_t *free_bytes, size_t *total_bytes);

/* ROW(exported name, parameters) */
#define HIP_ABI_FUNCTIONS(ROW)                                                                                        \
	ROW(hipMalloc, (void **addr, size_t bytes))                                                                       \
	ROW(hipExtMallocWithFlags, (void **addr, size_t bytes, unsigned flags))                                           \
	ROW(hipMallocManaged, (void **addr, size_t bytes, unsigned flags))                                                \
	ROW(hipMallocAsync, (void **addr, size_t bytes, void *stream))                                                    \
	ROW(hipMallocFromPoolAsync, (void **addr, size_t bytes, void *pool, void *stream))                                \
	ROW(hipMallocPitch, (void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height))                        \
	ROW(hipMemAllocPitch,                                                                                             \
	    (void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height, unsigned element_bytes))                \
	ROW(hipMalloc3D, (struct cuda_pitched * block, struct cuda_extent extent))                                        \
	ROW(hipMallocArray,                                                                                               \
	    (void **addr, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags))             \
	ROW(hipMalloc3DArray,                                                                                             \
	    (void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags))               \
	ROW(hipHostMalloc, (void **addr, size_t bytes, unsigned flags))                                                   \
	ROW(hipHostAlloc, (void **addr, size_t bytes, unsigned flags))                                                    \
	ROW(hipMallocHost, (void **addr, size_t bytes))                                                                   \
	ROW(hipMemAllocHost, (void **addr, size_t bytes))                                                                 \
	ROW(hipHostRegister, (void *addr, size_t bytes, unsigned flags))                                                  \
	ROW(hipHostUnregister, (void *addr))                                                                              \
	ROW(hipFree, (void *addr))                                                                                        \
	ROW(hipFreeAsync, (void *addr, void *stream))                                                                     \
	ROW(hipFreeArray, (void *addr))                                                                                   \
	ROW(hipHostFree, (void *addr))                                                                                    \
	ROW(hipFreeHost, (void *addr))                                                                                    \
	ROW(hipDeviceReset, (void))                                                                                       \
	ROW(hipMemCreate, (void **handle, size_t bytes, const struct cuda_memory_place *place, unsigned long long flags)) \
	ROW(hipMemRelease, (void *handle))                                                                                \
	ROW(hipMemRetainAllocationHandle, (void **handle, void *addr))                                                    \
	ROW(hipMemImportFromShareableHandle, (void **handle, void *shared, int shared_as))                                \
	ROW(hipMemMap, (void *addr, size_t bytes, size_t offset, void *handle, unsigned long long flags))                 \
	ROW(hipMemUnmap, (void *addr, size_t bytes))                                                                      \
	ROW(hipIpcOpenMemHandle, (void **addr, struct cuda_ipc_handle handle, unsigned flags))                            \
	ROW(hipIpcCloseMemHandle, (void *addr))

HIP_ABI_FUNCTIONS(CUDA_ABI_PROTOTYPE)

#endif
