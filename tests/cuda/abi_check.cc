/*
 * abi_check.cc - do our prototypes mean to the processor what the toolkit's headers mean?
 *
 * Compiled only (-fsyntax-only), where a toolkit is installed; once plainly, once with
 * -DCUDA_API_PER_THREAD_DEFAULT_STREAM, where the toolkit's names stand for the _ptsz twins. Parameters agree when
 * both are pointers, or both are integers or enums of one size. C would compare the types themselves, which differ on
 * purpose.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <type_traits>

/* Ours last, as plain C++ names in a room of their own; the toolkit's macros must not rename them. */
#pragma push_macro("cuMemAllocAsync")
#pragma push_macro("cuMemFreeAsync")
#pragma push_macro("cuMemAllocFromPoolAsync")
#pragma push_macro("cuDevicePrimaryCtxReset")
#pragma push_macro("cuGetProcAddress")
#pragma push_macro("cuGetProcAddress_v2")
#pragma push_macro("cudaMallocAsync")
#pragma push_macro("cudaFreeAsync")
#undef cuMemAllocAsync
#undef cuMemFreeAsync
#undef cuMemAllocFromPoolAsync
#undef cuDevicePrimaryCtxReset
#undef cuGetProcAddress
#undef cuGetProcAddress_v2
#undef cudaMallocAsync
#undef cudaFreeAsync
namespace ours {
#include "../../shim/cuda_abi.h"
}
#pragma pop_macro("cuMemAllocAsync")
#pragma pop_macro("cuMemFreeAsync")
#pragma pop_macro("cuMemAllocFromPoolAsync")
#pragma pop_macro("cuDevicePrimaryCtxReset")
#pragma pop_macro("cuGetProcAddress")
#pragma pop_macro("cuGetProcAddress_v2")
#pragma pop_macro("cudaMallocAsync")
#pragma pop_macro("cudaFreeAsync")

template <class A, class B> constexpr bool
same_word()
{
	constexpr bool numbers = (std::is_integral<A>::value || std::is_enum<A>::value) &&
	                         (std::is_integral<B>::value || std::is_enum<B>::value);
	return sizeof(A) == sizeof(B) && (numbers || (std::is_pointer<A>::value && std::is_pointer<B>::value));
}

template <class A, class B> struct same_function : std::false_type {};
template <class R, class... P, class S, class... Q> struct same_function<R (*)(P...), S (*)(Q...)> {
	template <class... T> struct list {};
	template <class X, class Y> struct all : std::false_type {};
	template <class... X, class... Y> struct all<list<X...>, list<Y...>>
		: std::bool_constant<(same_word<X, Y>() && ...)> {};
	static constexpr bool same_count = sizeof...(P) == sizeof...(Q);
	template <bool, class X, class Y> struct guarded : std::false_type {};
	template <class X, class Y> struct guarded<true, X, Y> : all<X, Y> {};
	static constexpr bool value = same_word<R, S>() && guarded<same_count, list<P...>, list<Q...>>::value;
};

/* theirs may be a macro of the toolkit's; our name is then what it stands for. */
#define CHECK(our_name, theirs) \
	static_assert(same_function<decltype(&ours::our_name), decltype(&theirs)>::value, #our_name)

CHECK(cuMemAlloc_v2, cuMemAlloc);
CHECK(cuMemAllocPitch_v2, cuMemAllocPitch);
CHECK(cuMemAllocManaged, cuMemAllocManaged);
CHECK(cuMemAllocHost_v2, cuMemAllocHost);
CHECK(cuMemHostAlloc, cuMemHostAlloc);
CHECK(cuMemFree_v2, cuMemFree);
CHECK(cuMemFreeHost, cuMemFreeHost);
CHECK(cuMemHostRegister_v2, cuMemHostRegister);
CHECK(cuMemHostUnregister, cuMemHostUnregister);
CHECK(cuArrayCreate_v2, cuArrayCreate);
CHECK(cuArray3DCreate_v2, cuArray3DCreate);
CHECK(cuArrayDestroy, cuArrayDestroy);
CHECK(cuMipmappedArrayCreate, cuMipmappedArrayCreate);
CHECK(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy);
CHECK(cuMemCreate, cuMemCreate);
CHECK(cuMemRelease, cuMemRelease);
CHECK(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle);
CHECK(cuMemMap, cuMemMap);
CHECK(cuMemUnmap, cuMemUnmap);
CHECK(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset);
CHECK(cuCtxGetDevice, cuCtxGetDevice);
CHECK(cuMemGetInfo_v2, cuMemGetInfo);
CHECK(cudaMalloc, cudaMalloc);
CHECK(cudaMallocManaged, cudaMallocManaged);
CHECK(cudaMallocHost, cudaMallocHost);
CHECK(cudaHostAlloc, cudaHostAlloc);
CHECK(cudaFree, cudaFree);
CHECK(cudaFreeHost, cudaFreeHost);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
static_assert(same_function<decltype(&ours::cuMemAllocAsync_ptsz), decltype(&::cuMemAllocAsync_ptsz)>::value, "");
static_assert(same_function<decltype(&ours::cuMemAllocFromPoolAsync_ptsz), decltype(&::cuMemAllocFromPoolAsync_ptsz)>::value, "");
static_assert(same_function<decltype(&ours::cuMemFreeAsync_ptsz), decltype(&::cuMemFreeAsync_ptsz)>::value, "");
static_assert(same_function<decltype(&ours::cudaMallocAsync_ptsz), decltype(&::cudaMallocAsync_ptsz)>::value, "");
static_assert(same_function<decltype(&ours::cudaFreeAsync_ptsz), decltype(&::cudaFreeAsync_ptsz)>::value, "");
#else
CHECK(cuMemAllocAsync, cuMemAllocAsync);
CHECK(cuMemFreeAsync, cuMemFreeAsync);
CHECK(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync);
CHECK(cudaMallocAsync, cudaMallocAsync);
CHECK(cudaFreeAsync, cudaFreeAsync);
#if CUDA_VERSION >= 12000
static_assert(same_function<decltype(&ours::cuGetProcAddress_v2), decltype(&::cuGetProcAddress_v2)>::value, "");
#endif
#endif

static_assert((int)ours::CUDA_ABI_OUT_OF_MEMORY == (int)CUDA_ERROR_OUT_OF_MEMORY, "");
static_assert((int)ours::CUDA_ABI_OUT_OF_MEMORY == (int)cudaErrorMemoryAllocation, "");
static_assert((int)ours::CUDA_ABI_NOT_INITIALIZED == (int)CUDA_ERROR_NOT_INITIALIZED, "");
static_assert((int)ours::CUDA_ABI_UNLOADING == (int)CUDA_ERROR_DEINITIALIZED, "");
static_assert((int)ours::CUDA_ABI_UNLOADING == (int)cudaErrorCudartUnloading, "");
static_assert((int)ours::CUDA_ABI_NO_DEVICE == (int)cudaErrorNoDevice, "");
static_assert((int)ours::CUDA_ABI_PER_THREAD_STREAM == (int)CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "");

/* What we read of structures. */
#define SAME_PLACE(our_struct, our_field, their_struct, their_field)                                                \
	static_assert(offsetof(ours::our_struct, our_field) == offsetof(their_struct, their_field) &&              \
	              sizeof(ours::our_struct::our_field) == sizeof(their_struct::their_field), #our_struct " " #our_field)
SAME_PLACE(cuda_memory_place, location_type, CUmemAllocationProp, location.type);
SAME_PLACE(cuda_memory_place, location_id, CUmemAllocationProp, location.id);
SAME_PLACE(cuda_array, width, CUDA_ARRAY_DESCRIPTOR, Width);
SAME_PLACE(cuda_array, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME_PLACE(cuda_array, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_PLACE(cuda_array, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_PLACE(cuda_array_3d, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_PLACE(cuda_array_3d, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
SAME_PLACE(cuda_array_3d, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_PLACE(cuda_array_3d, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_PLACE(cuda_array_3d, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
static_assert((int)ours::CUDA_LOCATION_DEVICE == (int)CU_MEM_LOCATION_TYPE_DEVICE, "");
