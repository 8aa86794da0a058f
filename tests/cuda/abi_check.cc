/*
 * abi_check.cc - do our prototypes mean to the processor what the toolkit's headers mean?
 *
 * Compiled only (-fsyntax-only), over the headers of each CUDA that can be had. Parameters agree when both are pointers, or both are
 * integers or enums of one size, or both are structures of one size. C would compare the types themselves, which differ on purpose.
 * The toolkit's names stand in a room of their own inside ours: one that a toolkit lacks is ours there, of the very same type.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>

namespace theirs
{
#define __CUDA_API_VERSION_INTERNAL // all versions of all names, and none is a macro
#include <cuda.h>
#include <cuda_runtime_api.h>
} // namespace theirs

#include "../../shim/gpu/cuda_abi.h"

template <class A, class B>
constexpr bool
same_word()
{
	constexpr bool numbers = (std::is_integral<A>::value || std::is_enum<A>::value) &&
	                         (std::is_integral<B>::value || std::is_enum<B>::value);
	constexpr bool pointers = std::is_pointer<A>::value && std::is_pointer<B>::value;
	return sizeof(A) == sizeof(B) && (numbers || pointers || (std::is_class<A>::value && std::is_class<B>::value));
}

template <class A, class B> struct same_function : std::false_type {
};
template <class R, class... P, class S, class... Q> struct same_function<R (*)(P...), S (*)(Q...)> {
	template <class... T> struct list {
	};
	template <class X, class Y> struct all : std::false_type {
	};
	template <class... X, class... Y>
	struct all<list<X...>, list<Y...>> : std::bool_constant<(same_word<X, Y>() && ...)> {
	};
	static constexpr bool same_count = sizeof...(P) == sizeof...(Q);
	template <bool, class X, class Y> struct guarded : std::false_type {
	};
	template <class X, class Y> struct guarded<true, X, Y> : all<X, Y> {
	};
	static constexpr bool value = same_word<R, S>() && guarded<same_count, list<P...>, list<Q...>>::value;
};

namespace theirs
{
#define CHECK(name, ...) static_assert(same_function<decltype(&::name), decltype(&name)>::value, #name);
#define ASKED(CHECK)                  \
	CHECK(cuCtxGetDevice)             \
	CHECK(cuCtxGetCurrent)            \
	CHECK(cuDevicePrimaryCtxGetState) \
	CHECK(cuMemGetAddressRange_v2)    \
	CHECK(cuMemGetInfo_v2)            \
	CHECK(cuPointerGetAttributes)     \
	CHECK(cuStreamIsCapturing)        \
	CHECK(cuDeviceGetDefaultMemPool)  \
	CHECK(cuMemPoolGetAttribute)      \
	CHECK(cuStreamGetCtx)             \
	CHECK(cuCtxPushCurrent_v2)        \
	CHECK(cuCtxPopCurrent_v2)
CUDA_ABI_DRIVER_FUNCTIONS(CHECK)
CUDA_ABI_RUNTIME_FUNCTIONS(CHECK)
ASKED(CHECK)

/* A result of ours is an int, of theirs an enum. */
#define MISSING(name, ...) +std::is_same<decltype(&::name), decltype(&name)>::value
constexpr int missing = 0 CUDA_ABI_DRIVER_FUNCTIONS(MISSING) CUDA_ABI_RUNTIME_FUNCTIONS(MISSING) ASKED(MISSING);
#if CUDA_VERSION < 12000
static_assert(missing == 5,
              "cuCtxCreate_v4, cuGetProcAddress_v2, cuGraphAddNode, cuGraphAddNode_v2, cuGreenCtxDestroy");
#elif CUDA_VERSION < 13000
static_assert(missing == 0, "");
#else
static_assert(missing == 1, "cudaThreadExit");
#endif

#define SAME(ours, value) static_assert((int)ours == (int)value, #ours)
SAME(CUDA_ABI_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ABI_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
SAME(CUDA_ABI_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_ABI_UNLOADING, CUDA_ERROR_DEINITIALIZED);
SAME(CUDA_ABI_UNLOADING, cudaErrorCudartUnloading);
SAME(CUDA_ABI_NO_DEVICE, cudaErrorNoDevice);
SAME(CUDA_ABI_PER_THREAD_STREAM, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CUDA_ARRAY_LAYERED, (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
SAME(CUDA_ARRAY_LAYERED, (cudaArrayLayered | cudaArrayCubemap));
SAME(CUDA_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CUDA_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CUDA_ATTRIBUTE_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CUDA_MEMORY_TYPE_HOST, CU_MEMORYTYPE_HOST);
SAME(CUDA_POOL_RESERVED, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(CUDA_POOL_USED, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
#if CUDA_VERSION >= 13000
SAME(CUDA_TYPE_MANAGED, CU_MEM_ALLOCATION_TYPE_MANAGED);
#endif
#if CUDA_VERSION >= 11040
SAME(CUDA_NODE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
SAME(CUDA_NODE_MEM_FREE, CU_GRAPH_NODE_TYPE_MEM_FREE);
#endif

/* What we read of structures. */
#define SAME_PLACE(our_struct, our_field, their_struct, their_field)                                 \
	static_assert(offsetof(struct ::our_struct, our_field) == offsetof(their_struct, their_field) && \
	                  sizeof(::our_struct::our_field) == sizeof(their_struct::their_field),          \
	              #our_struct " " #our_field)
SAME_PLACE(cuda_memory_place, location_type, CUmemAllocationProp, location.type);
SAME_PLACE(cuda_memory_place, location_id, CUmemAllocationProp, location.id);
SAME_PLACE(cuda_memory_place, type, CUmemAllocationProp, type);
SAME_PLACE(cuda_memory_place, type, CUmemPoolProps, allocType);
SAME_PLACE(cuda_memory_place, location_type, CUmemPoolProps, location.type);
SAME_PLACE(cuda_memory_place, location_id, CUmemPoolProps, location.id);
SAME_PLACE(cuda_array, width, CUDA_ARRAY_DESCRIPTOR, Width);
SAME_PLACE(cuda_array, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME_PLACE(cuda_array, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_PLACE(cuda_array, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_PLACE(cuda_array_3d, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_PLACE(cuda_array_3d, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
SAME_PLACE(cuda_array_3d, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_PLACE(cuda_array_3d, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_PLACE(cuda_array_3d, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
SAME_PLACE(cuda_array_3d, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_PLACE(cuda_extent, width, cudaExtent, width);
SAME_PLACE(cuda_extent, height, cudaExtent, height);
SAME_PLACE(cuda_extent, depth, cudaExtent, depth);
SAME_PLACE(cuda_pitched, addr, cudaPitchedPtr, ptr);
SAME_PLACE(cuda_pitched, pitch_bytes, cudaPitchedPtr, pitch);
SAME_PLACE(cuda_channels, bits[3], cudaChannelFormatDesc, w);
SAME_PLACE(cuda_external_buffer, bytes, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
SAME_PLACE(cuda_external_buffer, bytes, cudaExternalMemoryBufferDesc, size);
SAME_PLACE(cuda_external_levels, shape, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, arrayDesc);
SAME_PLACE(cuda_external_levels, levels, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels);
SAME_PLACE(cuda_graph_memory, bytes, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
SAME_PLACE(cuda_graph_memory, addr, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME_PLACE(cuda_graph_memory, bytes, cudaMemAllocNodeParams, bytesize);
SAME_PLACE(cuda_graph_memory, addr, cudaMemAllocNodeParams, dptr);
#if CUDA_VERSION >= 12020
SAME_PLACE(cuda_graph_node, type, CUgraphNodeParams, type);
SAME_PLACE(cuda_graph_node, memory.bytes, CUgraphNodeParams, alloc.bytesize);
SAME_PLACE(cuda_graph_node, memory.addr, CUgraphNodeParams, alloc.dptr);
SAME_PLACE(cuda_graph_node, freed, CUgraphNodeParams, free.dptr);
static_assert(sizeof(struct ::cuda_graph_node) <= sizeof(CUgraphNodeParams), "it is the beginning");
#endif
static_assert(sizeof(struct cuda_ipc_handle) == sizeof(CUipcMemHandle) &&
                  sizeof(struct cuda_ipc_handle) == sizeof(cudaIpcMemHandle_t),
              "");
} // namespace theirs
