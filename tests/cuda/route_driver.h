/*
 * route_driver.h - the driver's functions as a workload wants them. A route says how one is found by defining
 * REACH(exported name, name for cuGetProcAddress, version, flags).
 */
#ifndef ROUTE_DRIVER_H
#define ROUTE_DRIVER_H

#include "../../shim/gpu/cuda_abi.h"
#include "workload.h"

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuStreamCreate(void **stream, unsigned flags);
int cuGreenCtxCreate(void **green, void *resources, int device, unsigned flags);
int cuCtxFromGreenCtx(void **context, void *green);

static __typeof__(cuDevicePrimaryCtxRetain) *route_retain;
static __typeof__(cuCtxSetCurrent) *route_set_current;

static int
route_use_device(int device)
{
	void *context;
	int result = route_retain(&context, device);

	return result != 0 ? result : route_set_current(context);
}

/* Device addresses and pointers travel in the same registers. */
#define ROUTE_API                                                                                                   \
	{                                                                                                               \
		.use_device = route_use_device, .device = (void *)REACH(cuMemAlloc_v2, "cuMemAlloc", 3020, 0),              \
		.device_async = (void *)REACH(cuMemAllocAsync, "cuMemAllocAsync", 11020, 0),                                \
		.device_async_twin = (void *)REACH(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 2),                      \
		.managed = (void *)REACH(cuMemAllocManaged, "cuMemAllocManaged", 6000, 0),                                  \
		.pinned = (void *)REACH(cuMemAllocHost_v2, "cuMemAllocHost", 3020, 0),                                      \
		.pinned_flags = (void *)REACH(cuMemHostAlloc, "cuMemHostAlloc", 2020, 0),                                   \
		.release = (void *)REACH(cuMemFree_v2, "cuMemFree", 3020, 0),                                               \
		.release_async = (void *)REACH(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0),                                 \
		.release_async_twin = (void *)REACH(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 2),                       \
		.release_pinned = (void *)REACH(cuMemFreeHost, "cuMemFreeHost", 2000, 0),                                   \
		.pooled = (void *)REACH(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0),                      \
		.pooled_twin = (void *)REACH(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 2),            \
		.pitched = (void *)REACH(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0),                                   \
		.create = (void *)REACH(cuMemCreate, "cuMemCreate", 10020, 0),                                              \
		.release_handle = (void *)REACH(cuMemRelease, "cuMemRelease", 10020, 0),                                    \
		.retain = (void *)REACH(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 0),              \
		.map = (void *)REACH(cuMemMap, "cuMemMap", 10020, 0),                                                       \
		.unmap = (void *)REACH(cuMemUnmap, "cuMemUnmap", 10020, 0),                                                 \
		.array = (void *)REACH(cuArrayCreate_v2, "cuArrayCreate", 3020, 0),                                         \
		.array_3d = (void *)REACH(cuArray3DCreate_v2, "cuArray3DCreate", 3020, 0),                                  \
		.release_array = (void *)REACH(cuArrayDestroy, "cuArrayDestroy", 2000, 0),                                  \
		.levels = (void *)REACH(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, 0),                         \
		.release_levels = (void *)REACH(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000, 0),               \
		.pin = (void *)REACH(cuMemHostRegister_v2, "cuMemHostRegister", 6050, 0),                                   \
		.unpin = (void *)REACH(cuMemHostUnregister, "cuMemHostUnregister", 4000, 0),                                \
		.reset = (void *)REACH(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0),                    \
		.make_pool = (void *)REACH(cuMemPoolCreate, "cuMemPoolCreate", 11020, 0),                                   \
		.end_pool = (void *)REACH(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0),                                  \
		.default_pool = (void *)REACH(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, 0),            \
		.open_shared = (void *)REACH(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, 0),                        \
		.close_shared = (void *)REACH(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, 0),                         \
		.import_pointer = (void *)REACH(cuMemPoolImportPointer, "cuMemPoolImportPointer", 11020, 0),                \
		.external = (void *)REACH(cuExternalMemoryGetMappedBuffer, "cuExternalMemoryGetMappedBuffer", 10000, 0),    \
		.external_levels = (void *)REACH(cuExternalMemoryGetMappedMipmappedArray,                                   \
		                                 "cuExternalMemoryGetMappedMipmappedArray", 10000, 0),                      \
		.graph_memory = (void *)REACH(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040, 0),                  \
		.graph_free = (void *)REACH(cuGraphAddMemFreeNode, "cuGraphAddMemFreeNode", 11040, 0),                      \
		.import_handle = (void *)REACH(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, 0), \
		.make_stream = (void *)REACH(cuStreamCreate, "cuStreamCreate", 2000, 0),                                    \
		.make_context = (void *)REACH(cuCtxCreate_v2, "cuCtxCreate", 3020, 0),                                      \
		.make_context_newest = (void *)REACH(cuCtxCreate_v4, "cuCtxCreate", 12050, 0),                              \
		.end_context = (void *)REACH(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0),                                     \
		.graph_node = (void *)REACH(cuGraphAddNode_v2, "cuGraphAddNode", 12030, 0),                                 \
		.graph_node_old = (void *)REACH(cuGraphAddNode, "cuGraphAddNode", 12020, 0),                                \
		.make_green = (void *)REACH(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, 0),                                \
		.green_as_context = (void *)REACH(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, 0),                        \
		.end_green = (void *)REACH(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, 0),                               \
		.set_current = (void *)REACH(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 0),                                  \
		.release_primary = (void *)REACH(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 0),      \
	}

#endif
