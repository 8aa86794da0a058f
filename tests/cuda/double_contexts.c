/*
 * double_contexts.c - the driver double's contexts. A primary one is counted by who holds it; its handle is the device's number
 * plus one. Those that the program makes have numbers from FIRST_CONTEXT on, which are given out again at once.
 */
#include "double_driver.h"

#define FIRST_CONTEXT 100
#define CONTEXTS_MAX 16
#define DEVICES_MAX (LEDGER_ROWS - LEDGER_DEVICE)

static __thread int current;
static int held[DEVICES_MAX];          // primary contexts: how often
static int device_of[CONTEXTS_MAX];    // + 1, of those that were made; 0 = there is none

int
double_context(void)
{
	return current;
}

int
double_context_device(void)
{
	if (current >= FIRST_CONTEXT)
		return device_of[current - FIRST_CONTEXT] - 1;
	return current == 0 ? 0 : current - 1;
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
	*handle = (void *)(uintptr_t)current;
	return CUDA_ABI_SUCCESS;
}

int
cuCtxGetDevice(int *device)
{
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
