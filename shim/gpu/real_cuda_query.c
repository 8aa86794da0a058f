/*
 * real_cuda_query.c - what the driver knows and its caller did not say: which device, which context, how many bytes.
 *
 * Context     outside the reentry guard: what the driver allocates here is the program's, as in any
 *             call of it.
 * Safe from   CUDA hooks, as real_cuda.h says.
 * When failing  the answer that changes least (see real_cuda.h).
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/real_cuda.h"

/* The function `name` of the driver; `known` keeps it. relaxed: an address of code that stays. */
static void *
question(_Atomic(void *) *known, const char *name)
{
	void *ask = atomic_load_explicit(known, memory_order_relaxed);

	if (ask == NULL) {
		ask = real_cuda_unhooked(name);
		atomic_store_explicit(known, ask, memory_order_relaxed);
	}
	return ask;
}

/* `ask` of the type of the driver's function; NULL where there is none. */
#define QUESTION(name)            \
	static _Atomic(void *) known; \
	__typeof__(name) *ask = (__typeof__(name) *)question(&known, #name)

/* -1: it cannot be asked. */
static int
context_device(void)
{
	int device;

	QUESTION(cuCtxGetDevice);
	return ask != NULL && ask(&device) == CUDA_ABI_SUCCESS ? device : -1;
}

int
real_cuda_device(void)
{
	int device = context_device();

	return device >= 0 ? device : 0;
}

void
real_cuda_memory(int device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	int current = context_device();
	size_t free, total;

	QUESTION(cuMemGetInfo_v2);
	if (ask == NULL || current < 0 || (device >= 0 && current != device) || ask(&free, &total) != CUDA_ABI_SUCCESS ||
	    free > total)
		return;
	*free_bytes = free;
	*total_bytes = total;
}

void *
real_cuda_context(void)
{
	void *context = NULL;

	QUESTION(cuCtxGetCurrent);
	return ask != NULL && ask(&context) == CUDA_ABI_SUCCESS ? context : NULL;
}

struct cuda_place
real_cuda_place(uint64_t addr)
{
	const int attributes[] = { CUDA_ATTRIBUTE_DEVICE, CUDA_ATTRIBUTE_MEMORY_TYPE, CUDA_ATTRIBUTE_IS_MANAGED };
	uint64_t type = 0, is_managed = 0; // the driver writes 1 to 4 bytes
	int64_t device = -1;
	void *values[] = { &device, &type, &is_managed };

	QUESTION(cuPointerGetAttributes);
	if (ask == NULL || ask(3, attributes, values, addr) != CUDA_ABI_SUCCESS)
		return (struct cuda_place){ .device = -1 };
	return (struct cuda_place){ (int)device, type == CUDA_MEMORY_TYPE_HOST, is_managed != 0 };
}

uint64_t
real_cuda_bytes(uint64_t addr)
{
	cuda_device_addr start = 0;
	size_t bytes = 0;

	QUESTION(cuMemGetAddressRange_v2);
	return ask != NULL && ask(&start, &bytes, addr) == CUDA_ABI_SUCCESS && start == addr ? bytes : 0;
}

bool
real_cuda_is_recorded(void *stream)
{
	int is_capturing = 0;

	QUESTION(cuStreamIsCapturing);
	return ask != NULL && ask(stream, &is_capturing) == CUDA_ABI_SUCCESS && is_capturing != 0;
}

static bool
push_context(void *context)
{
	QUESTION(cuCtxPushCurrent_v2);
	return ask != NULL && ask(context) == CUDA_ABI_SUCCESS;
}

bool
real_cuda_enter_stream(void *stream)
{
	void *context = NULL;

	QUESTION(cuStreamGetCtx);
	return (uintptr_t)stream > (uintptr_t)CUDA_ABI_STREAM_PER_THREAD && ask != NULL &&
	       ask(stream, &context) == CUDA_ABI_SUCCESS && context != NULL && context != real_cuda_context() &&
	       push_context(context);
}

void
real_cuda_leave_stream(void)
{
	void *context;

	QUESTION(cuCtxPopCurrent_v2);
	if (ask != NULL)
		(void)ask(&context);
}

bool
real_cuda_has_primary_context(int device)
{
	unsigned flags;
	int is_active = 1;

	QUESTION(cuDevicePrimaryCtxGetState);
	return ask == NULL || ask(device, &flags, &is_active) != CUDA_ABI_SUCCESS || is_active != 0;
}

void *
real_cuda_own_pool(int device)
{
	void *own = NULL;

	QUESTION(cuDeviceGetDefaultMemPool);
	return ask != NULL && ask(&own, device) == CUDA_ABI_SUCCESS ? own : NULL;
}

int
real_cuda_pool_device(const void *pool, int devices_max)
{
	int current = context_device();

	if (pool != NULL && current >= 0 && real_cuda_own_pool(current) == pool)
		return current;
	for (int device = 0; pool != NULL && device < devices_max; device++) {
		if (real_cuda_own_pool(device) == pool)
			return device;
	}
	return -1;
}

uint64_t
real_cuda_pool_kept(void *pool)
{
	uint64_t reserved_bytes = 0, used_bytes = 0;

	QUESTION(cuMemPoolGetAttribute);
	if (ask == NULL || pool == NULL || ask(pool, CUDA_POOL_RESERVED, &reserved_bytes) != CUDA_ABI_SUCCESS ||
	    ask(pool, CUDA_POOL_USED, &used_bytes) != CUDA_ABI_SUCCESS || used_bytes > reserved_bytes)
		return 0;
	return reserved_bytes - used_bytes;
}
