/*
 * hooks_cuda_context.c - the end of a context, or of a device's state: all that was given out in it is gone at once.
 *
 * Nearly every program works in the primary context of a device, as the CUDA runtime does. What is given out in a context that the
 * program made itself ends with that one: those have places in a table, and each block is marked with its place. What is given out in
 * a green context is the primary one's, which it holds.
 *
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without a driver or runtime: the error that there is none. With more contexts than places: what is given out in
 *             those is taken for the primary context's, and they are counted.
 */
#include <stdatomic.h>

#include "gpu/tracker_devices.h"
#include "capture/capture_file.h"
#include "gpu/hooks_cuda_call.h"
#include "gpu/real_cuda.h"

#define DEVICES (KMEM_DOMAIN_CUDA_LAST - KMEM_DOMAIN_CUDA_FIRST + 1)
_Static_assert(DEVICES <= 32, "a bit for each");
#define CONTEXTS_MAX 64u
#define DYING UINT64_C(1) // no context has this address

/*
 * The contexts that the program made; 0 = free. A place is used again only after all that it stands for is taken out. relaxed: who
 * works in a context was given it by the thread that made it.
 */
static _Atomic uint64_t contexts[CONTEXTS_MAX];
static _Atomic bool was_any_made;
/* Bit n: something was given out in the primary context of device n since its last end. relaxed: as above. */
static _Atomic uint32_t used_primary_contexts;

/* Puts `after` where `before` stands; CONTEXTS_MAX: that is nowhere. */
static unsigned
exchange(uint64_t before, uint64_t after)
{
	for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
		uint64_t expected = before;

		if (atomic_compare_exchange_strong_explicit(&contexts[i], &expected, after, memory_order_relaxed,
		                                            memory_order_relaxed))
			return i;
	}
	return CONTEXTS_MAX;
}

static void
add_context(const void *context)
{
	if (exchange(0, (uint64_t)(uintptr_t)context) == CONTEXTS_MAX)
		capture_file_lost(KMEM_LOST_CONTEXTS, 1);
	atomic_store_explicit(&was_any_made, true, memory_order_relaxed);
}

/* The device, as the owner of what is given out there. */
static unsigned
primary_context(unsigned device)
{
	uint32_t bit = device < DEVICES ? UINT32_C(1) << device : 0;

	if ((~atomic_load_explicit(&used_primary_contexts, memory_order_relaxed) & bit) != 0)
		atomic_fetch_or_explicit(&used_primary_contexts, bit, memory_order_relaxed);
	return device;
}

unsigned
cuda_call_owner(int device)
{
	if (!atomic_load_explicit(&was_any_made, memory_order_relaxed))
		return primary_context((unsigned)device);

	uint64_t context = (uint64_t)(uintptr_t)real_cuda_context();

	for (unsigned i = 0; context != 0 && i < CONTEXTS_MAX; i++) {
		if (atomic_load_explicit(&contexts[i], memory_order_relaxed) == context)
			return TRACKER_OWNER_CONTEXT + i;
	}
	return primary_context((unsigned)device);
}

/* Without a look at all blocks when there are none. */
static void
primary_context_gone(unsigned device)
{
	uint32_t bit = device < DEVICES ? UINT32_C(1) << device : 0;

	cuda_call_forget_pools(device);
	if (bit == 0 || (atomic_fetch_and_explicit(&used_primary_contexts, ~bit, memory_order_relaxed) & bit) != 0)
		tracker_owner_gone(device);
}

#define HOOK_LAYER CUDA_LAYER_DRIVER
#define HOOK_FIND real_cuda_driver
#define HOOK_NOT_FOUND CUDA_ABI_NOT_INITIALIZED

HOOK_START(cuInit, (unsigned flags), (flags));

HOOK_AFTER(cuCtxCreate_v2, (void **context, unsigned flags, int device), (context, flags, device), context != NULL,
           add_context(*context));
HOOK_AFTER(cuCtxCreate_v3, (void **context, void *affinities, int affinity_count, unsigned flags, int device),
           (context, affinities, affinity_count, flags, device), context != NULL, add_context(*context));
HOOK_AFTER(cuCtxCreate_v4, (void **context, void *parameters, unsigned flags, int device),
           (context, parameters, flags, device), context != NULL, add_context(*context));

/* cuCtxDetach is the older name; the program may hold a context more than once by cuCtxAttach, which nobody does. */
#define HOOK_CONTEXT_END(name)                                                                                         \
	int hook_##name(void *context)                                                                                     \
	{                                                                                                                  \
		HOOK_BEGIN(name);                                                                                              \
		/* Before the driver may give out its address again. */                                                        \
		unsigned place = exchange((uint64_t)(uintptr_t)context, DYING);                                                \
		int result = HOOK_REAL(name)(context);                                                                         \
		int host_errno = errno;                                                                                        \
		bool is_gone = result == CUDA_ABI_SUCCESS || result == CUDA_ABI_UNLOADING;                                     \
                                                                                                                       \
		if (place < CONTEXTS_MAX && is_gone && cuda_call_book_once(&call)) {                                           \
			tracker_owner_gone(TRACKER_OWNER_CONTEXT + place);                                                         \
			reentry_guard_leave();                                                                                     \
		}                                                                                                              \
		if (place < CONTEXTS_MAX)                                                                                      \
			atomic_store_explicit(&contexts[place], is_gone ? 0 : (uint64_t)(uintptr_t)context, memory_order_relaxed); \
		cuda_call_end(&call);                                                                                          \
		errno = host_errno;                                                                                            \
		return result;                                                                                                 \
	}                                                                                                                  \
	HOOK_EXPORT(name)

HOOK_CONTEXT_END(cuCtxDestroy_v2);
HOOK_CONTEXT_END(cuCtxDetach);

/* The last one that holds the primary context ends it. */
HOOK_AFTER(cuDevicePrimaryCtxRelease, (int device), (device), !real_cuda_has_primary_context(device),
           primary_context_gone((unsigned)device));
HOOK_AFTER(cuDevicePrimaryCtxRelease_v2, (int device), (device), !real_cuda_has_primary_context(device),
           primary_context_gone((unsigned)device));
HOOK_AFTER(cuDevicePrimaryCtxReset, (int device), (device), true, primary_context_gone((unsigned)device));
HOOK_AFTER(cuDevicePrimaryCtxReset_v2, (int device), (device), true, primary_context_gone((unsigned)device));

/* Bit n: nobody holds that of device n any more, though something was given out in it. */
static uint32_t
ended_primary_contexts(void)
{
	uint32_t used = atomic_load_explicit(&used_primary_contexts, memory_order_relaxed), ended = 0;

	for (unsigned device = 0; device < DEVICES; device++)
		ended |= (uint32_t)((used >> device & 1) != 0 && !real_cuda_has_primary_context((int)device)) << device;
	return ended;
}

static void
lose_primary_contexts(uint32_t ended)
{
	for (unsigned device = 0; device < DEVICES; device++) {
		if ((ended >> device & 1) != 0)
			primary_context_gone(device);
	}
}

/* Of which device it was is not to be known afterwards. */
int
hook_cuGreenCtxDestroy(void *green)
{
	HOOK_BEGIN(cuGreenCtxDestroy);
	int result = HOOK_REAL(cuGreenCtxDestroy)(green);
	int host_errno = errno;
	uint32_t ended = result == CUDA_ABI_SUCCESS && call.is_booked_here ? ended_primary_contexts() : 0;

	if (ended != 0 && cuda_call_book_once(&call)) {
		lose_primary_contexts(ended);
		reentry_guard_leave();
	}
	cuda_call_end(&call);
	errno = host_errno;
	return result;
}
HOOK_EXPORT(cuGreenCtxDestroy);

/* ---- the runtime ---- */

#undef HOOK_LAYER
#undef HOOK_FIND
#undef HOOK_NOT_FOUND
#define HOOK_LAYER CUDA_LAYER_RUNTIME
#define HOOK_FIND real_cuda_runtime
#define HOOK_NOT_FOUND CUDA_ABI_NO_DEVICE

HOOK_RESET(cudaDeviceReset, real_cuda_device, primary_context_gone);
HOOK_RESET(cudaThreadExit, real_cuda_device, primary_context_gone);
