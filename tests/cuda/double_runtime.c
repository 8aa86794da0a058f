/*
 * double_runtime.c - a CUDA runtime of our own, that finds the driver as the real one does.
 *
 * dlopen("libcuda.so.1"), one dlsym of cuGetProcAddress_v2, then cuGetProcAddress through itself, and everything
 * else through that answer; without cuGetProcAddress_v2 (a driver before CUDA 12) dlsym by exported name. Linked as
 * libcudart.so.13 with a version node and -Bsymbolic, and as a static archive.
 *
 *   KMEMDOUBLE_HIDDEN_DRIVER  1: looks up with libc's own dlsym, which nobody sees: only the runtime level is left
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../shim/gpu/cuda_abi.h"

#define LOOKED_UP(exported, parameters, asked, version, per_thread) __typeof__(exported) *exported;
static struct {
	CUDA_ABI_DRIVER_FUNCTIONS(LOOKED_UP)
	int (*cuDevicePrimaryCtxRetain)(void **, int);
	int (*cuCtxSetCurrent)(void *);
	int (*cuCtxGetDevice)(int *);
	int (*cuDeviceGetDefaultMemPool)(void **, int);
} driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int start_result = CUDA_ABI_NO_DEVICE;
static _Atomic int calls; // of allocation functions

static void *
find(void *library, const char *name)
{
	__typeof__(dlsym) *hidden = NULL;

	if (getenv("KMEMDOUBLE_HIDDEN_DRIVER") != NULL)
		hidden = (__typeof__(dlsym) *)dlvsym(dlopen("libc.so.6", RTLD_NOW), "dlsym", "GLIBC_2.2.5");
	return hidden != NULL ? hidden(library, name) : dlsym(library, name);
}

static void *
ask(const char *name, int version, unsigned long long flags)
{
	void *function = NULL;
	int status;

	return driver.cuGetProcAddress_v2(name, &function, version, flags, &status) == 0 ? function : NULL;
}

static void
start(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *lookup = library == NULL ? NULL : find(library, "cuGetProcAddress_v2");

	if (library == NULL)
		return;
	if (lookup != NULL) {
		driver.cuGetProcAddress_v2 = lookup;
		driver.cuGetProcAddress = ask("cuGetProcAddress", 11030, 0);
		driver.cuGetProcAddress_v2 = ask("cuGetProcAddress", 12000, 0);
#define ASK(exported, parameters, asked, version, per_thread) \
	if (strcmp(asked, "cuGetProcAddress") != 0)               \
		driver.exported = ask(asked, version, per_thread ? CUDA_ABI_PER_THREAD_STREAM : 0);
		CUDA_ABI_DRIVER_FUNCTIONS(ASK)
		driver.cuDevicePrimaryCtxRetain = ask("cuDevicePrimaryCtxRetain", 7000, 0);
		driver.cuCtxSetCurrent = ask("cuCtxSetCurrent", 4000, 0);
		driver.cuCtxGetDevice = ask("cuCtxGetDevice", 2000, 0);
		driver.cuDeviceGetDefaultMemPool = ask("cuDeviceGetDefaultMemPool", 11020, 0);
	} else {
#define FIND(exported, parameters, asked, version, per_thread) driver.exported = find(library, #exported);
		CUDA_ABI_DRIVER_FUNCTIONS(FIND)
		driver.cuDevicePrimaryCtxRetain = find(library, "cuDevicePrimaryCtxRetain");
		driver.cuCtxSetCurrent = find(library, "cuCtxSetCurrent");
		driver.cuCtxGetDevice = find(library, "cuCtxGetDevice");
		driver.cuDeviceGetDefaultMemPool = find(library, "cuDeviceGetDefaultMemPool");
	}
	start_result = driver.cuInit(0);
}

int double_runtime_calls(void);
int cudaSetDevice(int device);
int cudaGetLastError(void);
int cudaDeviceSynchronize(void);
int cudaGraphCreate(void **graph, unsigned flags);
int cudaMemPoolCreate(void **pool, const void *properties);
int cudaMemPoolDestroy(void *pool);
int cudaDeviceGetDefaultMemPool(void **pool, int device);
int cudaGraphAddNode(void **node, void *graph, void *const *before, const void *edges, size_t before_count,
                     struct cuda_graph_node *parameters);
int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *status);
const char *cudaGetErrorString(int error);
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);

int
double_runtime_calls(void)
{
	return calls;
}

/* KMEMDOUBLE_TOO_OLD: the runtime finds the driver too old before it asks it anything. */
static int
started(void)
{
	if (getenv("KMEMDOUBLE_TOO_OLD") != NULL)
		return 35;
	pthread_once(&once, start);
	return start_result;
}

int
cudaGetDeviceCount(int *count)
{
	int result = started();

	*count = result == 0;
	return result;
}

int
cudaSetDevice(int device)
{
	void *context;

	if (started() != 0)
		return started();
	return driver.cuDevicePrimaryCtxRetain(&context, device) != 0 ? 101 : driver.cuCtxSetCurrent(context);
}

/* A thread that never chose a device works on the first. */
static int
ready(void)
{
	int device;

	calls++;
	if (started() != 0)
		return started();
	return driver.cuCtxGetDevice(&device) == 0 ? 0 : cudaSetDevice(0);
}

#define ALLOCATE(addr, bytes, call)  \
	int result = ready();            \
                                     \
	if (result == 0 && addr == NULL) \
		result = 1;                  \
	if (result == 0 && bytes == 0)   \
		*addr = NULL;                \
	if (result != 0 || bytes == 0)   \
		return result;               \
	return call

int
cudaMalloc(void **addr, size_t bytes)
{
	ALLOCATE(addr, bytes, driver.cuMemAlloc_v2((cuda_device_addr *)addr, bytes));
}

int
cudaMallocManaged(void **addr, size_t bytes, unsigned flags)
{
	ALLOCATE(addr, bytes, driver.cuMemAllocManaged((cuda_device_addr *)addr, bytes, flags));
}

int
cudaMallocAsync(void **addr, size_t bytes, void *stream)
{
	ALLOCATE(addr, bytes, driver.cuMemAllocAsync((cuda_device_addr *)addr, bytes, stream));
}

int
cudaMallocAsync_ptsz(void **addr, size_t bytes, void *stream)
{
	ALLOCATE(addr, bytes, driver.cuMemAllocAsync_ptsz((cuda_device_addr *)addr, bytes, stream));
}

int
cudaMallocHost(void **addr, size_t bytes)
{
	ALLOCATE(addr, bytes, driver.cuMemHostAlloc(addr, bytes, 0));
}

int
cudaHostAlloc(void **addr, size_t bytes, unsigned flags)
{
	ALLOCATE(addr, bytes, driver.cuMemHostAlloc(addr, bytes, flags));
}

int
cudaFree(void *addr)
{
	int result = ready();

	return result != 0 || addr == NULL ? result : driver.cuMemFree_v2((cuda_device_addr)addr);
}

int
cudaFreeAsync(void *addr, void *stream)
{
	int result = ready();

	return result != 0 ? result : driver.cuMemFreeAsync((cuda_device_addr)addr, stream);
}

int
cudaFreeAsync_ptsz(void *addr, void *stream)
{
	int result = ready();

	return result != 0 ? result : driver.cuMemFreeAsync_ptsz((cuda_device_addr)addr, stream);
}

int
cudaFreeHost(void *addr)
{
	int result = ready();

	return result != 0 || addr == NULL ? result : driver.cuMemFreeHost(addr);
}

int
cudaDeviceSynchronize(void)
{
	return ready();
}

/* All nodes are those of one graph. */
int
cudaGraphCreate(void **graph, unsigned flags)
{
	*graph = &calls;
	return flags == 0 ? ready() : 1;
}

/* ---- pools, shapes, arrays ---- */

int
cudaMemPoolCreate(void **pool, const void *properties)
{
	int result = ready();

	return result != 0 ? result : driver.cuMemPoolCreate(pool, properties);
}

int
cudaMallocFromPoolAsync(void **addr, size_t bytes, void *pool, void *stream)
{
	ALLOCATE(addr, bytes, driver.cuMemAllocFromPoolAsync((cuda_device_addr *)addr, bytes, pool, stream));
}

int
cudaMallocFromPoolAsync_ptsz(void **addr, size_t bytes, void *pool, void *stream)
{
	ALLOCATE(addr, bytes, driver.cuMemAllocFromPoolAsync_ptsz((cuda_device_addr *)addr, bytes, pool, stream));
}

int
cudaMallocPitch(void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height)
{
	ALLOCATE(addr, width_bytes * height,
	         driver.cuMemAllocPitch_v2((cuda_device_addr *)addr, pitch_bytes, width_bytes, height, 4));
}

int
cudaMalloc3D(struct cuda_pitched *block, struct cuda_extent extent)
{
	block->width = extent.width;
	block->height = extent.height;
	return cudaMallocPitch(&block->addr, &block->pitch_bytes, extent.width, extent.height * extent.depth);
}

static struct cuda_array_3d
shape_of(const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags)
{
	unsigned count = 0;

	while (count < 4 && channels->bits[count] != 0)
		count++;
	return (struct cuda_array_3d){ extent.width, extent.height,
		                           extent.depth, channels->bits[0] == 32 ? 0x20 : channels->bits[0] == 16 ? 0x10 : 1,
		                           count,        flags };
}

int
cudaMallocArray(void **addr, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags)
{
	struct cuda_array_3d solid = shape_of(channels, (struct cuda_extent){ width, height, 0 }, flags);
	struct cuda_array shape = { width, height, solid.format, solid.channels };

	ALLOCATE(addr, width, driver.cuArrayCreate_v2(addr, &shape));
}

int
cudaMalloc3DArray(void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned flags)
{
	struct cuda_array_3d shape = shape_of(channels, extent, flags);

	ALLOCATE(addr, extent.width, driver.cuArray3DCreate_v2(addr, &shape));
}

int
cudaMallocMipmappedArray(void **addr, const struct cuda_channels *channels, struct cuda_extent extent, unsigned levels,
                         unsigned flags)
{
	struct cuda_array_3d shape = shape_of(channels, extent, flags);

	ALLOCATE(addr, extent.width, driver.cuMipmappedArrayCreate(addr, &shape, levels));
}

/* ---- what the driver has under the same name ---- */

#define PASS_ON(name, parameters, call)            \
	int name parameters                            \
	{                                              \
		int result = ready();                      \
                                                   \
		return result != 0 ? result : driver.call; \
	}

PASS_ON(cudaDeviceGetDefaultMemPool, (void **pool, int device), cuDeviceGetDefaultMemPool(pool, device))
PASS_ON(cudaMemPoolDestroy, (void *pool), cuMemPoolDestroy(pool))
PASS_ON(cudaFreeArray, (void *addr), cuArrayDestroy(addr))
PASS_ON(cudaFreeMipmappedArray, (void *addr), cuMipmappedArrayDestroy(addr))
PASS_ON(cudaHostRegister, (void *addr, size_t bytes, unsigned flags), cuMemHostRegister_v2(addr, bytes, flags))
PASS_ON(cudaHostUnregister, (void *addr), cuMemHostUnregister(addr))
PASS_ON(cudaMemPoolImportPointer, (void **addr, void *pool, void *exported),
        cuMemPoolImportPointer((cuda_device_addr *)addr, pool, exported))
PASS_ON(cudaIpcOpenMemHandle, (void **addr, struct cuda_ipc_handle handle, unsigned flags),
        cuIpcOpenMemHandle_v2((cuda_device_addr *)addr, handle, flags))
PASS_ON(cudaIpcCloseMemHandle, (void *addr), cuIpcCloseMemHandle((cuda_device_addr)addr))
PASS_ON(cudaExternalMemoryGetMappedBuffer, (void **addr, void *memory, const struct cuda_external_buffer *part),
        cuExternalMemoryGetMappedBuffer((cuda_device_addr *)addr, memory, part))
PASS_ON(cudaGraphAddMemAllocNode,
        (void **node, void *graph, void *const *before, size_t before_count, struct cuda_graph_memory *memory),
        cuGraphAddMemAllocNode(node, graph, before, before_count, memory))
PASS_ON(cudaGraphAddMemFreeNode, (void **node, void *graph, void *const *before, size_t before_count, void *addr),
        cuGraphAddMemFreeNode(node, graph, before, before_count, (cuda_device_addr)addr))
/* As in CUDA 13; before, a form without edges had this name. The shim hooks neither. */
PASS_ON(cudaGraphAddNode,
        (void **node, void *graph, void *const *before, const void *edges, size_t before_count,
         struct cuda_graph_node *parameters),
        cuGraphAddNode_v2(node, graph, before, edges, before_count, parameters))
PASS_ON(cudaGetDriverEntryPoint, (const char *name, void **function, unsigned long long flags, int *status),
        cuGetProcAddress_v2(name, function, CUDA_ABI_NEWEST, flags, status))

int
cudaDeviceReset(void)
{
	int device, result = ready();

	return result != 0 || driver.cuCtxGetDevice(&device) != 0 ? result : driver.cuDevicePrimaryCtxReset(device);
}

int
cudaGetLastError(void)
{
	return 0;
}

const char *
cudaGetErrorString(int error)
{
	return error == 2 ? "out of memory" : "some error";
}

/* What nvcc puts around a program without kernels. */
void **
__cudaRegisterFatBinary(void *image)
{
	static void *handle;

	(void)image;
	return &handle;
}

void
__cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void
__cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

char
__cudaInitModule(void **handle)
{
	(void)handle;
	return 0;
}
