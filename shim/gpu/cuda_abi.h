/*
 * cuda_abi.h - the few CUDA functions and numbers that the shim needs, declared without a toolkit.
 *
 * Context     Declarations only; no CUDA package is needed.
 * Sources     cuda.h and cuda_runtime_api.h of the CUDA 13.0 toolkit: the driver's exported names are only
 *             ever added to, and no function below changed its signature between 11.2 and 13.0. Versions
 *             are those of cudaTypedefs.h (PFN_cuMemAlloc_v3020: 3020).
 *             tests/cuda/abi_check.cc compares every prototype with those of CUDA 11, 12 and 13.
 *
 * Results are C enums in the toolkit, passed as int; handles are pointers, or 64-bit integers for
 * device addresses.
 */
#ifndef CUDA_ABI_H
#define CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	CUDA_ABI_SUCCESS = 0,           // CUDA_SUCCESS, cudaSuccess
	CUDA_ABI_OUT_OF_MEMORY = 2,     // CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation
	CUDA_ABI_NOT_INITIALIZED = 3,   // CUDA_ERROR_NOT_INITIALIZED
	CUDA_ABI_UNLOADING = 4,         // CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading
	CUDA_ABI_NO_DEVICE = 100,       // cudaErrorNoDevice
	CUDA_ABI_PER_THREAD_STREAM = 2, // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
	CUDA_ABI_NEWEST = 13000,        // CUDA_VERSION of the headers that this file was written from
};

#define CUDA_ABI_STREAM_PER_THREAD ((void *)2) // CU_STREAM_PER_THREAD; 0 and 1 are the one that all threads share

typedef unsigned long long cuda_device_addr;   // CUdeviceptr
typedef unsigned long long cuda_memory_handle; // CUmemGenericAllocationHandle

/* The beginning of CUmemAllocationProp, and of CUmemPoolProps; the rest is not looked at. */
struct cuda_memory_place {
	int type; // enum below
	int shared_as;
	int location_type; // enum below
	int location_id;   // of a device
};
enum { CUDA_LOCATION_DEVICE = 1 }; // CU_MEM_LOCATION_TYPE_DEVICE; others are host memory
enum { CUDA_TYPE_MANAGED = 2 };    // CU_MEM_ALLOCATION_TYPE_MANAGED, since 13.0

/* CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR; 0 = the shape does not go in that direction. */
struct cuda_array {
	size_t width, height;
	int format; // CUarray_format
	unsigned channels;
};
struct cuda_array_3d {
	size_t width, height, depth;
	int format;
	unsigned channels;
	unsigned flags;
};

/* CUarray_format, of more than one byte. */
enum {
	CUDA_FORMAT_UNSIGNED_INT16 = 0x02,
	CUDA_FORMAT_UNSIGNED_INT32 = 0x03,
	CUDA_FORMAT_SIGNED_INT16 = 0x09,
	CUDA_FORMAT_SIGNED_INT32 = 0x0a,
	CUDA_FORMAT_HALF = 0x10,
	CUDA_FORMAT_FLOAT = 0x20,
};
enum { CUDA_ARRAY_LAYERED = 1 | 4 }; // CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_CUBEMAP; cudaArrayLayered, cudaArrayCubemap

/* cudaExtent and cudaIpcMemHandle_t travel by value, on the stack. */
struct cuda_extent {
	size_t width, height, depth;
};
struct cuda_ipc_handle {
	char bytes[64];
};
struct cuda_pitched { // cudaPitchedPtr
	void *addr;
	size_t pitch_bytes, width, height;
};
struct cuda_channels { // cudaChannelFormatDesc
	int bits[4];
	int kind;
};
/* The beginnings of CUDA_EXTERNAL_MEMORY_BUFFER_DESC and of CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC. */
struct cuda_external_buffer {
	unsigned long long offset, bytes;
};
struct cuda_external_levels {
	unsigned long long offset;
	struct cuda_array_3d shape;
	unsigned levels;
};
/* CUDA_MEM_ALLOC_NODE_PARAMS, cudaMemAllocNodeParams */
struct cuda_graph_memory {
	char pool[88]; // CUmemPoolProps
	const void *access;
	size_t access_count;
	size_t bytes;
	cuda_device_addr addr; // out
};
/* The beginning of CUgraphNodeParams; the rest is of other types of nodes. */
struct cuda_graph_node {
	int type; // CUgraphNodeType: enum below
	int reserved[3];
	union {
		struct cuda_graph_memory memory; // of MEM_ALLOC
		cuda_device_addr freed;          // of MEM_FREE
	};
};
enum { CUDA_NODE_MEM_ALLOC = 10, CUDA_NODE_MEM_FREE = 11 };

/* Asked, never hooked. */
int cuCtxGetDevice(int *device);
int cuCtxGetCurrent(void **context);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
int cuMemGetAddressRange_v2(cuda_device_addr *start, size_t *bytes, cuda_device_addr addr);
int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, cuda_device_addr addr);
int cuStreamIsCapturing(void *stream, int *is_capturing);
int cuStreamGetCtx(void *stream, void **context);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
enum { CUDA_POOL_RESERVED = 5, CUDA_POOL_USED = 7 }; // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, _USED_MEM_CURRENT: 64 bits
enum {                                               // CU_POINTER_ATTRIBUTE_*
	CUDA_ATTRIBUTE_MEMORY_TYPE = 2,
	CUDA_ATTRIBUTE_IS_MANAGED = 8,
	CUDA_ATTRIBUTE_DEVICE = 9,
	CUDA_MEMORY_TYPE_HOST = 1, // CU_MEMORYTYPE_HOST, a value of the first
};

/*
 * Driver, libcuda.so.1.
 *
 * ROW(exported name, parameters, name to ask cuGetProcAddress for, first version with this ABI, 1 for the twin that
 * cuGetProcAddress gives out for per-thread default streams)
 */
#define CUDA_ABI_DRIVER_FUNCTIONS(ROW)                                                                                 \
	ROW(cuInit, (unsigned flags), "cuInit", 2000, 0)                                                                   \
	ROW(cuMemAlloc_v2, (cuda_device_addr * addr, size_t bytes), "cuMemAlloc", 3020, 0)                                 \
	ROW(cuMemAllocPitch_v2,                                                                                            \
	    (cuda_device_addr * addr, size_t * pitch_bytes, size_t width_bytes, size_t height, unsigned element_bytes),    \
	    "cuMemAllocPitch", 3020, 0)                                                                                    \
	ROW(cuMemAllocManaged, (cuda_device_addr * addr, size_t bytes, unsigned flags), "cuMemAllocManaged", 6000, 0)      \
	ROW(cuMemAllocAsync, (cuda_device_addr * addr, size_t bytes, void *stream), "cuMemAllocAsync", 11020, 0)           \
	ROW(cuMemAllocAsync_ptsz, (cuda_device_addr * addr, size_t bytes, void *stream), "cuMemAllocAsync", 11020, 1)      \
	ROW(cuMemAllocHost_v2, (void **addr, size_t bytes), "cuMemAllocHost", 3020, 0)                                     \
	ROW(cuMemHostAlloc, (void **addr, size_t bytes, unsigned flags), "cuMemHostAlloc", 2020, 0)                        \
	ROW(cuMemAllocFromPoolAsync, (cuda_device_addr * addr, size_t bytes, void *pool, void *stream),                    \
	    "cuMemAllocFromPoolAsync", 11020, 0)                                                                           \
	ROW(cuMemAllocFromPoolAsync_ptsz, (cuda_device_addr * addr, size_t bytes, void *pool, void *stream),               \
	    "cuMemAllocFromPoolAsync", 11020, 1)                                                                           \
	ROW(cuMemPoolCreate, (void **pool, const struct cuda_memory_place *place), "cuMemPoolCreate", 11020, 0)            \
	ROW(cuMemPoolDestroy, (void *pool), "cuMemPoolDestroy", 11020, 0)                                                  \
	ROW(cuMemHostRegister_v2, (void *addr, size_t bytes, unsigned flags), "cuMemHostRegister", 6050, 0)                \
	ROW(cuMemHostUnregister, (void *addr), "cuMemHostUnregister", 4000, 0)                                             \
	ROW(cuArrayCreate_v2, (void **addr, const struct cuda_array *shape), "cuArrayCreate", 3020, 0)                     \
	ROW(cuArray3DCreate_v2, (void **addr, const struct cuda_array_3d *shape), "cuArray3DCreate", 3020, 0)              \
	ROW(cuArrayDestroy, (void *addr), "cuArrayDestroy", 2000, 0)                                                       \
	ROW(cuMipmappedArrayCreate, (void **addr, const struct cuda_array_3d *shape, unsigned levels),                     \
	    "cuMipmappedArrayCreate", 5000, 0)                                                                             \
	ROW(cuMipmappedArrayDestroy, (void *addr), "cuMipmappedArrayDestroy", 5000, 0)                                     \
	ROW(cuMemCreate,                                                                                                   \
	    (cuda_memory_handle * handle, size_t bytes, const struct cuda_memory_place *place, unsigned long long flags),  \
	    "cuMemCreate", 10020, 0)                                                                                       \
	ROW(cuMemRelease, (cuda_memory_handle handle), "cuMemRelease", 10020, 0)                                           \
	ROW(cuMemRetainAllocationHandle, (cuda_memory_handle * handle, void *addr), "cuMemRetainAllocationHandle", 11000,  \
	    0)                                                                                                             \
	ROW(cuMemMap,                                                                                                      \
	    (cuda_device_addr addr, size_t bytes, size_t offset, cuda_memory_handle handle, unsigned long long flags),     \
	    "cuMemMap", 10020, 0)                                                                                          \
	ROW(cuMemUnmap, (cuda_device_addr addr, size_t bytes), "cuMemUnmap", 10020, 0)                                     \
	ROW(cuDevicePrimaryCtxReset, (int device), "cuDevicePrimaryCtxReset", 7000, 0)                                     \
	ROW(cuDevicePrimaryCtxReset_v2, (int device), "cuDevicePrimaryCtxReset", 11000, 0)                                 \
	ROW(cuMemHostRegister, (void *addr, size_t bytes, unsigned flags), "cuMemHostRegister", 4000, 0)                   \
	ROW(cuMemImportFromShareableHandle, (cuda_memory_handle * handle, void *shared, int shared_as),                    \
	    "cuMemImportFromShareableHandle", 10020, 0)                                                                    \
	ROW(cuMemPoolImportPointer, (cuda_device_addr * addr, void *pool, void *exported), "cuMemPoolImportPointer",       \
	    11020, 0)                                                                                                      \
	ROW(cuIpcOpenMemHandle, (cuda_device_addr * addr, struct cuda_ipc_handle handle, unsigned flags),                  \
	    "cuIpcOpenMemHandle", 4010, 0)                                                                                 \
	ROW(cuIpcOpenMemHandle_v2, (cuda_device_addr * addr, struct cuda_ipc_handle handle, unsigned flags),               \
	    "cuIpcOpenMemHandle", 11000, 0)                                                                                \
	ROW(cuIpcCloseMemHandle, (cuda_device_addr addr), "cuIpcCloseMemHandle", 4010, 0)                                  \
	ROW(cuExternalMemoryGetMappedBuffer,                                                                               \
	    (cuda_device_addr * addr, void *memory, const struct cuda_external_buffer *part),                              \
	    "cuExternalMemoryGetMappedBuffer", 10000, 0)                                                                   \
	ROW(cuExternalMemoryGetMappedMipmappedArray, (void **addr, void *memory, const struct cuda_external_levels *part), \
	    "cuExternalMemoryGetMappedMipmappedArray", 10000, 0)                                                           \
	ROW(cuGraphAddMemAllocNode,                                                                                        \
	    (void **node, void *graph, void *const *before, size_t before_count, struct cuda_graph_memory *memory),        \
	    "cuGraphAddMemAllocNode", 11040, 0)                                                                            \
	ROW(cuGraphAddMemFreeNode,                                                                                         \
	    (void **node, void *graph, void *const *before, size_t before_count, cuda_device_addr addr),                   \
	    "cuGraphAddMemFreeNode", 11040, 0)                                                                             \
	ROW(cuGraphAddNode,                                                                                                \
	    (void **node, void *graph, void *const *before, size_t before_count, struct cuda_graph_node *parameters),      \
	    "cuGraphAddNode", 12020, 0)                                                                                    \
	ROW(cuGraphAddNode_v2,                                                                                             \
	    (void **node, void *graph, void *const *before, const void *edges, size_t before_count,                        \
	     struct cuda_graph_node *parameters),                                                                          \
	    "cuGraphAddNode", 12030, 0)                                                                                    \
	ROW(cuDevicePrimaryCtxRelease, (int device), "cuDevicePrimaryCtxRelease", 7000, 0)                                 \
	ROW(cuDevicePrimaryCtxRelease_v2, (int device), "cuDevicePrimaryCtxRelease", 11000, 0)                             \
	ROW(cuCtxCreate_v2, (void **context, unsigned flags, int device), "cuCtxCreate", 3020, 0)                          \
	ROW(cuCtxCreate_v3, (void **context, void *affinities, int affinity_count, unsigned flags, int device),            \
	    "cuCtxCreate", 11040, 0)                                                                                       \
	ROW(cuCtxCreate_v4, (void **context, void *parameters, unsigned flags, int device), "cuCtxCreate", 12050, 0)       \
	ROW(cuCtxDestroy_v2, (void *context), "cuCtxDestroy", 4000, 0)                                                     \
	ROW(cuCtxDetach, (void *context), "cuCtxDetach", 2000, 0)                                                          \
	ROW(cuGreenCtxDestroy, (void *green), "cuGreenCtxDestroy", 12040, 0)                                               \
	ROW(cuMemFree_v2, (cuda_device_addr addr), "cuMemFree", 3020, 0)                                                   \
	ROW(cuMemFreeAsync, (cuda_device_addr addr, void *stream), "cuMemFreeAsync", 11020, 0)                             \
	ROW(cuMemFreeAsync_ptsz, (cuda_device_addr addr, void *stream), "cuMemFreeAsync", 11020, 1)                        \
	ROW(cuMemFreeHost, (void *addr), "cuMemFreeHost", 2000, 0)                                                         \
	ROW(cuGetProcAddress, (const char *name, void **function, int version, unsigned long long flags),                  \
	    "cuGetProcAddress", 11030, 0)                                                                                  \
	ROW(cuGetProcAddress_v2, (const char *name, void **function, int version, unsigned long long flags, int *status),  \
	    "cuGetProcAddress", 12000, 0)

/*
 * Runtime, libcudart.so.11.0, .12 and .13, or inside any program that was linked with libcudart_static.a.
 *
 * ROW(exported name, parameters)
 */
#define CUDA_ABI_RUNTIME_FUNCTIONS(ROW)                                                                            \
	ROW(cudaGetDeviceCount, (int *count))                                                                          \
	ROW(cudaMalloc, (void **addr, size_t bytes))                                                                   \
	ROW(cudaMallocManaged, (void **addr, size_t bytes, unsigned flags))                                            \
	ROW(cudaMallocAsync, (void **addr, size_t bytes, void *stream))                                                \
	ROW(cudaMallocAsync_ptsz, (void **addr, size_t bytes, void *stream))                                           \
	ROW(cudaMallocHost, (void **addr, size_t bytes))                                                               \
	ROW(cudaHostAlloc, (void **addr, size_t bytes, unsigned flags))                                                \
	ROW(cudaMallocPitch, (void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height))                    \
	ROW(cudaMalloc3D, (struct cuda_pitched * block, struct cuda_extent extent))                                    \
	ROW(cudaMallocFromPoolAsync, (void **addr, size_t bytes, void *pool, void *stream))                            \
	ROW(cudaMallocFromPoolAsync_ptsz, (void **addr, size_t bytes, void *pool, void *stream))                       \
	ROW(cudaMallocArray,                                                                                           \
	    (void **addr, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags))          \
	ROW(cudaMalloc3DArray,                                                                                         \
	    (void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags))            \
	ROW(cudaMallocMipmappedArray, (void **addr, const struct cuda_channels *channels, struct cuda_extent extent,   \
	                               unsigned levels, unsigned flags))                                               \
	ROW(cudaFree, (void *addr))                                                                                    \
	ROW(cudaFreeAsync, (void *addr, void *stream))                                                                 \
	ROW(cudaFreeAsync_ptsz, (void *addr, void *stream))                                                            \
	ROW(cudaFreeHost, (void *addr))                                                                                \
	ROW(cudaFreeArray, (void *addr))                                                                               \
	ROW(cudaFreeMipmappedArray, (void *addr))                                                                      \
	ROW(cudaHostRegister, (void *addr, size_t bytes, unsigned flags))                                              \
	ROW(cudaHostUnregister, (void *addr))                                                                          \
	ROW(cudaMemPoolImportPointer, (void **addr, void *pool, void *exported))                                       \
	ROW(cudaIpcOpenMemHandle, (void **addr, struct cuda_ipc_handle handle, unsigned flags))                        \
	ROW(cudaIpcCloseMemHandle, (void *addr))                                                                       \
	ROW(cudaExternalMemoryGetMappedBuffer, (void **addr, void *memory, const struct cuda_external_buffer *part))   \
	ROW(cudaGraphAddMemAllocNode,                                                                                  \
	    (void **node, void *graph, void *const *before, size_t before_count, struct cuda_graph_memory *memory))    \
	ROW(cudaGraphAddMemFreeNode, (void **node, void *graph, void *const *before, size_t before_count, void *addr)) \
	ROW(cudaDeviceReset, (void))                                                                                   \
	ROW(cudaThreadExit, (void)) /* until 12 */

#define CUDA_ABI_PROTOTYPE(name, parameters, ...) int name parameters;
CUDA_ABI_DRIVER_FUNCTIONS(CUDA_ABI_PROTOTYPE)
CUDA_ABI_RUNTIME_FUNCTIONS(CUDA_ABI_PROTOTYPE)

/*
 * PyTorch, libc10.so: c10::reportMemoryUsageToProfiler() and reportOutOfMemoryToProfiler(). From c10/core/Allocator.h of 1.6, of
 * 1.10 and of 2.x, which differ in the types of numbers that are passed alike. bytes < 0: given back. c10::Device is two
 * bytes, DeviceType and index.
 */
void torch_report_block(void *block, int64_t bytes, uint16_t device);
void torch_report_lll(void *addr, int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device);
void torch_report_lmm(void *addr, int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device);
void torch_refusal_lll(int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device);
void torch_refusal_lmm(int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device);
void torch_refusal_mmm(int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device);

/* ROW(name above without torch_, exported name) */
#define TORCH_ABI_FUNCTIONS(ROW)                                             \
	ROW(report_block, "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE") \
	ROW(report_lll, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE") \
	ROW(report_lmm, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE") \
	ROW(refusal_lll, "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE")  \
	ROW(refusal_lmm, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE")  \
	ROW(refusal_mmm, "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE")

#endif
