/*
 * interposer.c - another library that stands in front of the runtime and the driver, and asks for the next one with RTLD_NEXT, as
 * hooks that swap a framework's memory do. It says at the end how often it was called.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "../../shim/gpu/cuda_abi.h"

static _Atomic int calls;

#define NEXT(name, parameters, arguments)                                                 \
	int name parameters                                                                   \
	{                                                                                     \
		__typeof__(name) *next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);             \
                                                                                          \
		if (next == NULL) /* the runtime came with a plugin: RTLD_LOCAL */                \
			next = (__typeof__(name) *)dlsym(dlopen("libcudart.so.13", RTLD_NOW), #name); \
		calls++;                                                                          \
		return next == NULL ? CUDA_ABI_NO_DEVICE : next arguments;                        \
	}

NEXT(cudaMalloc, (void **addr, size_t bytes), (addr, bytes))
NEXT(cudaFree, (void *addr), (addr))
NEXT(cuMemAlloc_v2, (cuda_device_addr * addr, size_t bytes), (addr, bytes))
NEXT(cuMemFree_v2, (cuda_device_addr addr), (addr))

__attribute__((destructor)) static void
say(void)
{
	printf("%d\n", calls);
}
