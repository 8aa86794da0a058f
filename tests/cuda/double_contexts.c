/*
 * double_contexts.c - the driver double's contexts. A primary one is counted by who holds it; its handle is the device's number
 * plus one. Those that the program makes have numbers from FIRST_CONTEXT on, which are given out again at once. A green context holds
 * the primary one, whose memory is all that it has; as a context it has a number from FIRST_GREEN on. A stream's handle is the number of
 * its context plus FIRST_STREAM.
 */
#include "double_driver.h"

#define FIRST_CONTEXT 100
#define CONTEXTS_MAX 90
#define FIRST_GREEN 200
#define GREEN_ADDR UINT64_C(0x900000) // and its number: the handle, which is no context's
#define FIRST_STREAM 0x5000
#define DEVICES_MAX (LEDGER_ROWS - LEDGER_DEVICE)

static __thread int current, pushed;   // this one waits for the other's end
static int held[DEVICES_MAX];          // primary contexts: how often
static int device_of[CONTEXTS_MAX];    // + 1, of those that were made; 0 = there is none
static int green_device[CONTEXTS_MAX]; // the same of green ones

int
double_context(void)
{
	return current >= FIRST_GREEN ? green_device[current - FIRST_GREEN] : current;
}

static int
device_of_context(int context)
{
	if (context >= FIRST_CONTEXT)
		return device_of[context - FIRST_CONTEXT] - 1;
	return context == 0 ? 0 : context - 1;
}

int
double_context_device(void)
{
	return device_of_context(double_context());
}

int
double_stream_device(const void *stream)
{
	return (uintptr_t)stream < FIRST_STREAM ? double_context_device()
	                                        : device_of_context((int)(uintptr_t)stream - FIRST_STREAM);
}

int
cuStreamCreate(void **stream, unsigned flags)
{
	*stream = (void *)(uintptr_t)(FIRST_STREAM + double_context());
	return flags == 0 ? CUDA_ABI_SUCCESS : INVALID_VALUE;
}

int
cuStreamGetCtx(void *stream, void **handle)
{
	double_asked(__builtin_return_address(0));
	*handle = (void *)((uintptr_t)stream - FIRST_STREAM);
	return CUDA_ABI_SUCCESS;
}

int
cuCtxPushCurrent_v2(void *handle)
{
	double_asked(__builtin_return_address(0));
	if (pushed != 0)
		return INVALID_CONTEXT;
	pushed = current;
	current = (int)(uintptr_t)handle;
	return CUDA_ABI_SUCCESS;
}

int
cuCtxPopCurrent_v2(void **handle)
{
	double_asked(__builtin_return_address(0));
	*handle = (void *)(uintptr_t)current;
	current = pushed;
	pushed = 0;
	return CUDA_ABI_SUCCESS;
}

int
cuDevicePrimaryCtxRetain(void **handle, int device)
{
	*handle = (void *)(uintptr_t)(device + 1);
	if (cuDeviceGet(&device, device) != CUDA_ABI_SUCCESS)
		return INVALID_DEVICE;
	__atomic_fetch_add(&held[device], 1, __ATOMIC_RELAXED);
	return CUDA_ABI_SUCCESS;
}

int
cuDevicePrimaryCtxRelease_v2(int device)
{
	if (held[device] == 0)
		return INVALID_CONTEXT;
	if (--held[device] == 0)
		double_context_ended(device + 1);
	return CUDA_ABI_SUCCESS;
}

int
cuDevicePrimaryCtxRelease(int device)
{
	return cuDevicePrimaryCtxRelease_v2(device);
}

int
cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
	double_asked(__builtin_return_address(0));
	*flags = 0;
	*is_active = held[device] != 0;
	return CUDA_ABI_SUCCESS;
}

int
cuDevicePrimaryCtxReset_v2(int device)
{
	double_context_ended(device + 1);
	return CUDA_ABI_SUCCESS;
}

int
cuDevicePrimaryCtxReset(int device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

int
cuCtxSetCurrent(void *handle)
{
	current = (int)(uintptr_t)handle;
	return CUDA_ABI_SUCCESS;
}

int
cuCtxGetCurrent(void **handle)
{
	double_asked(__builtin_return_address(0));
	*handle = (void *)(uintptr_t)current;
	return CUDA_ABI_SUCCESS;
}

int
cuCtxGetDevice(int *device)
{
	double_asked(__builtin_return_address(0));
	if (current == 0)
		return INVALID_CONTEXT;
	*device = double_context_device();
	return CUDA_ABI_SUCCESS;
}

int
cuCtxCreate_v2(void **handle, unsigned flags, int device)
{
	(void)flags;
	for (int i = 0; i < CONTEXTS_MAX; i++) {
		if (device_of[i] != 0)
			continue;
		device_of[i] = device + 1;
		current = FIRST_CONTEXT + i;
		*handle = (void *)(uintptr_t)current;
		return CUDA_ABI_SUCCESS;
	}
	return CUDA_ABI_OUT_OF_MEMORY;
}

int
cuCtxCreate_v3(void **handle, void *affinities, int affinity_count, unsigned flags, int device)
{
	return affinities != NULL || affinity_count != 0 ? INVALID_VALUE : cuCtxCreate_v2(handle, flags, device);
}

int
cuCtxCreate_v4(void **handle, void *parameters, unsigned flags, int device)
{
	return parameters != NULL ? INVALID_VALUE : cuCtxCreate_v2(handle, flags, device);
}

int
cuCtxDestroy_v2(void *handle)
{
	int number = (int)(uintptr_t)handle - FIRST_CONTEXT;

	if (number < 0 || number >= CONTEXTS_MAX || device_of[number] == 0)
		return INVALID_CONTEXT;
	double_context_ended((int)(uintptr_t)handle);
	device_of[number] = 0;
	if (current == (int)(uintptr_t)handle)
		current = 0;
	return CUDA_ABI_SUCCESS;
}

int
cuCtxDetach(void *handle)
{
	return cuCtxDestroy_v2(handle);
}

int
cuGreenCtxCreate(void **green, void *resources, int device, unsigned flags)
{
	void *primary;
	int number = 0;

	while (number < CONTEXTS_MAX && green_device[number] != 0)
		number++;
	if (resources != NULL || flags != 1 || number == CONTEXTS_MAX)
		return INVALID_VALUE;
	*green = (void *)(uintptr_t)(GREEN_ADDR + (unsigned)number);
	green_device[number] = device + 1;
	return cuDevicePrimaryCtxRetain(&primary, device);
}

int
cuCtxFromGreenCtx(void **handle, void *green)
{
	*handle = (void *)(uintptr_t)(FIRST_GREEN + ((uintptr_t)green - GREEN_ADDR));
	return CUDA_ABI_SUCCESS;
}

int
cuGreenCtxDestroy(void *green)
{
	uint64_t number = (uintptr_t)green - GREEN_ADDR;
	int device;

	if (number >= CONTEXTS_MAX || green_device[number] == 0)
		return INVALID_CONTEXT;
	device = green_device[number] - 1;
	green_device[number] = 0;
	if (current == FIRST_GREEN + (int)number)
		current = 0;
	return cuDevicePrimaryCtxRelease_v2(device);
}
