/*
 * route_trampoline.c - a program that links to trampolines (trampoline.c); the driver comes with the first call. With
 * ALLOCATE_FIRST that call is an allocation (which fails: no cuInit yet).
 */
#include <stdlib.h>

#include "route_driver.h"

int
main(int argc, char **argv)
{
	const struct cuda_api api = {
		.use_device = route_use_device,
		.device = (void *)cuMemAlloc_v2,
		.release = (void *)cuMemFree_v2,
	};
	cuda_device_addr addr;

	if (getenv("ALLOCATE_FIRST") != NULL && cuMemAlloc_v2(&addr, 100) != CUDA_ABI_NOT_INITIALIZED)
		return 2;
	route_retain = cuDevicePrimaryCtxRetain;
	route_set_current = cuCtxSetCurrent;
	return cuInit(0) != 0 ? 2 : workload_run(&api, argc, argv);
}
