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

#include "../../shim/cuda_abi.h"

#define LOOKED_UP(exported, asked, version, per_thread) __typeof__(exported) *exported;
static struct {
	CUDA_ABI_DRIVER_FUNCTIONS(LOOKED_UP)
	int (*cuInit)(unsigned);
	int (*cuDevicePrimaryCtxRetain)(void **, int);
	int (*cuCtxSetCurrent)(void *);
	int (*cuCtxGetDevice)(int *);
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
#define ASK(exported, asked, version, per_thread)                                                     \
	if (strcmp(asked, "cuGetProcAddress") != 0)                                                   \
		driver.exported = ask(asked, version, per_thread ? CUDA_ABI_PER_THREAD_STREAM : 0);
		CUDA_ABI_DRIVER_FUNCTIONS(ASK)
		driver.cuInit = ask("cuInit", 2000, 0);
		driver.cuDevicePrimaryCtxRetain = ask("cuDevicePrimaryCtxRetain", 7000, 0);
		driver.cuCtxSetCurrent = ask("cuCtxSetCurrent", 4000, 0);
		driver.cuCtxGetDevice = ask("cuCtxGetDevice", 2000, 0);
	} else {
#define FIND(exported, asked, version, per_thread) driver.exported = find(library, #exported);
		CUDA_ABI_DRIVER_FUNCTIONS(FIND)
		driver.cuInit = find(library, "cuInit");
		driver.cuDevicePrimaryCtxRetain = find(library, "cuDevicePrimaryCtxRetain");
		driver.cuCtxSetCurrent = find(library, "cuCtxSetCurrent");
		driver.cuCtxGetDevice = find(library, "cuCtxGetDevice");
	}
	start_result = driver.cuInit(0);
}

int double_runtime_calls(void);
int cudaSetDevice(int device);
int cudaGetLastError(void);
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

int
cudaSetDevice(int device)
{
	void *context;

	pthread_once(&once, start);
	if (start_result != 0)
		return start_result;
	return driver.cuDevicePrimaryCtxRetain(&context, device) != 0 ? 101 : driver.cuCtxSetCurrent(context);
}

/* A thread that never chose a device works on the first. */
static int
ready(void)
{
	int device;

	calls++;
	pthread_once(&once, start);
	if (start_result != 0)
		return start_result;
	return driver.cuCtxGetDevice(&device) == 0 ? 0 : cudaSetDevice(0);
}

#define ALLOCATE(addr, bytes, call)                                                                   \
	int result = ready();                                                                         \
                                                                                                      \
	if (result == 0 && addr == NULL)                                                              \
		result = 1;                                                                           \
	if (result == 0 && bytes == 0)                                                                \
		*addr = NULL;                                                                         \
	if (result != 0 || bytes == 0)                                                                \
		return result;                                                                        \
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
