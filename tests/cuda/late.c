/*
 * late.c - the driver comes when the program has long called for it: first there is none, then somebody opens it. Then lookups that
 * make no sense. Prints what every call said.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

#include "../../shim/gpu/cuda_abi.h"

extern int cudaMalloc(void **addr, size_t bytes) __attribute__((weak));
extern int cuMemAlloc_v2(cuda_device_addr *addr, size_t bytes) __attribute__((weak));

static void
odd_lookups(void *library)
{
	__typeof__(cuGetProcAddress_v2) *ask = (__typeof__(cuGetProcAddress_v2) *)dlsym(library, "cuGetProcAddress_v2");
	static const int versions[] = { 0, -1, INT_MIN, INT_MAX, 1 };
	void *function;
	int status;

	for (unsigned i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		function = NULL;
		printf("%d", ask("cuMemAlloc", &function, versions[i], UINT64_C(0xfffffffffffffffd), &status));
		printf("%d ", function != NULL);
	}
	printf("%d%d", ask(NULL, &function, 12000, 0, &status), ask("cuMemAlloc", NULL, 12000, 0, &status));
	printf("%d\n", ask("cuMemAlloc", &function, 12000, 0, NULL));
}

int
main(void)
{
	cuda_device_addr addr = 0;
	void *unused;

	if (cudaMalloc != NULL && cuMemAlloc_v2 != NULL)
		printf("%d %d\n", cudaMalloc(&unused, 100), cuMemAlloc_v2(&addr, 100));

	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (library == NULL || ((int (*)(unsigned))dlsym(library, "cuInit"))(0) != 0)
		return 2;
	((int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain"))(&unused, 0);
	((int (*)(void *))dlsym(library, "cuCtxSetCurrent"))(unused);
	if (cuMemAlloc_v2 != NULL)
		printf("%d\n", cuMemAlloc_v2(&addr, 100000));
	odd_lookups(library);
	return 0;
}
