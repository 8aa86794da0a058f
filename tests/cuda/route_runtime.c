/*
 * route_runtime.c - the CUDA runtime, linked. The same file is a program over the shared runtime, one over the
 * static runtime, and with -DPLUGIN a library that route_plugin.c opens with RTLD_LOCAL.
 */
#include "../../shim/gpu/cuda_abi.h"
#include "workload.h"

int cudaSetDevice(int device);
int cudaMemPoolCreate(void **pool, const void *properties);
int cudaMemPoolDestroy(void *pool);
int cudaDeviceGetDefaultMemPool(void **pool, int device);
int cudaGraphAddNode(void **node, void *graph, void *const *before, const void *edges, size_t before_count,
                     struct cuda_graph_node *parameters);
int plugin_run(int argc, char **argv);

/* The runtime's forms of what the driver says otherwise. */
static struct cuda_channels
channels_of(int format, unsigned count)
{
	int bits = format == 0x20 ? 32 : format == 0x10 ? 16 : 8;

	return (struct cuda_channels){ { bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0 }, 2 };
}

static int
pitched(void **addr, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
	return element_bytes == 0 ? 1 : cudaMallocPitch(addr, pitch, width, height);
}

static int
array(void **addr, const struct cuda_array *shape)
{
	struct cuda_channels channels = channels_of(shape->format, shape->channels);

	return cudaMallocArray(addr, &channels, shape->width, shape->height, 0);
}

static int
array_3d(void **addr, const struct cuda_array_3d *shape)
{
	struct cuda_channels channels = channels_of(shape->format, shape->channels);

	return cudaMalloc3DArray(addr, &channels, (struct cuda_extent){ shape->width, shape->height, shape->depth },
	                         shape->flags);
}

static int
levels(void **addr, const struct cuda_array_3d *shape, unsigned count)
{
	struct cuda_channels channels = channels_of(shape->format, shape->channels);

	return cudaMallocMipmappedArray(addr, &channels, (struct cuda_extent){ shape->width, shape->height, shape->depth },
	                                count, shape->flags);
}

static int
reset(int device)
{
	return device < 0 ? 1 : cudaDeviceReset();
}

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
	.make_pool = cudaMemPoolCreate,
	.end_pool = cudaMemPoolDestroy,
	.default_pool = cudaDeviceGetDefaultMemPool,
	.pooled = cudaMallocFromPoolAsync,
	.pooled_twin = cudaMallocFromPoolAsync_ptsz,
	.pitched = pitched,
	.solid = cudaMalloc3D,
	.array = array,
	.array_3d = array_3d,
	.release_array = cudaFreeArray,
	.levels = levels,
	.release_levels = cudaFreeMipmappedArray,
	.pin = cudaHostRegister,
	.unpin = cudaHostUnregister,
	.reset = reset,
	.open_shared = cudaIpcOpenMemHandle,
	.close_shared = cudaIpcCloseMemHandle,
	.import_pointer = cudaMemPoolImportPointer,
	.external = cudaExternalMemoryGetMappedBuffer,
	.graph_memory = cudaGraphAddMemAllocNode,
	.graph_free = cudaGraphAddMemFreeNode,
	.graph_node = cudaGraphAddNode,
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
