/*
 * trampoline.c - a library that exports the driver's names and finds the driver when first called, as TensorFlow and
 * XLA do. Whoever links to it reaches our export, which may find this, which finds our wrapper.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "../../shim/gpu/cuda_abi.h"

#define TRAMPOLINE(name, parameters, arguments)                                        \
	int name parameters;                                                               \
	int name parameters                                                                \
	{                                                                                  \
		static __typeof__(name) *real;                                                 \
		if (real == NULL)                                                              \
			real = (__typeof__(name) *)dlsym(dlopen("libcuda.so.1", RTLD_NOW), #name); \
		return real arguments;                                                         \
	}

TRAMPOLINE(cuInit, (unsigned flags), (flags))
TRAMPOLINE(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device))
TRAMPOLINE(cuCtxSetCurrent, (void *context), (context))
TRAMPOLINE(cuMemAlloc_v2, (cuda_device_addr * addr, size_t bytes), (addr, bytes))
TRAMPOLINE(cuMemFree_v2, (cuda_device_addr addr), (addr))
