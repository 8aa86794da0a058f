/*
 * route_runtime.c - the CUDA runtime, linked. The same file is a program over the shared runtime, one over the
 * static runtime, and with -DPLUGIN a library that route_plugin.c opens with RTLD_LOCAL.
 */
#include "../../shim/cuda_abi.h"
#include "workload.h"

int cudaSetDevice(int device);
int plugin_run(int argc, char **argv);

static const struct cuda_api api = {
	.use_device = cudaSetDevice,
	.device = cudaMalloc,
	.device_async = cudaMallocAsync,
	.device_async_twin = cudaMallocAsync_ptsz,
	.managed = cudaMallocManaged,
	.pinned = cudaMallocHost,
	.pinned_flags = cudaHostAlloc,
	.release = cudaFree,
	.release_async = cudaFreeAsync,
	.release_async_twin = cudaFreeAsync_ptsz,
	.release_pinned = cudaFreeHost,
};

#ifdef PLUGIN
int
plugin_run(int argc, char **argv)
#else
int
main(int argc, char **argv)
#endif
{
	return workload_run(&api, argc, argv);
}
