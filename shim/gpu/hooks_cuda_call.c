/*
 * hooks_cuda_call.c - one CUDA call of the program: which of the nested hooks books it, and when?
 */
#include "gpu/hooks_cuda_call.h"
#include "gpu/tracker_devices.h"
#include "moments/other_limits.h"

#include <errno.h>

#include "base/reentry_guard.h"
#include "gpu/real_cuda.h"

/* What this thread is doing, from its outermost CUDA hook on. */
struct thread_state {
	const void *outermost_frame; // valid while real_cuda_depth != 0
	const void *runtime_frame;   // valid while layer is not NONE and a runtime hook is outside
	uint64_t released_addr;      // what that runtime hook has taken out, 0 = nothing
	enum cuda_layer layer;       // of the innermost hook that books
	bool was_booked;             // a driver hook inside the runtime hook has booked the call
};
static __thread struct thread_state thread __attribute__((tls_model("initial-exec")));

void
cuda_call_begin(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame)
{
	/* Stacks grow down: a hook that is not below the outermost one was left by longjmp. */
	if (real_cuda_depth != 0 && hook_frame > thread.outermost_frame) {
		real_cuda_depth = 0;
		thread.layer = CUDA_LAYER_NONE;
	}
	if (real_cuda_depth == 0)
		thread.outermost_frame = hook_frame;

	call->outer_depth = real_cuda_depth++;
	call->released.site = 0;
	call->stream = NULL;
	call->layer = layer;
	call->outer_layer = thread.layer;
	call->is_booked_here = tracker_is_on() && reentry_guard_is_outside() && thread.layer < layer;
	if (!call->is_booked_here)
		return;
	if (layer == CUDA_LAYER_RUNTIME) {
		thread.runtime_frame = hook_frame;
		thread.released_addr = 0;
		thread.was_booked = false;
	}
	call->hook_frame = thread.layer == CUDA_LAYER_RUNTIME ? thread.runtime_frame : hook_frame;
	thread.layer = layer;
}

void
cuda_call_end(const struct cuda_call *call)
{
	if (call->is_booked_here)
		thread.layer = call->outer_layer;
	real_cuda_depth = call->outer_depth;
}

bool
cuda_call_was_booked(const struct cuda_call *call)
{
	return call->layer == CUDA_LAYER_RUNTIME && thread.was_booked;
}

void
cuda_call_note_booked(void)
{
	thread.was_booked = true;
}

/* Asks the driver, so outside the guard. addr: 0 = the request was refused. */
static unsigned
pooled_domain(const struct cuda_call *call, enum cuda_memory memory, uint64_t addr)
{
	struct cuda_place place = { .device = -1 };

	if (addr != 0)
		place = real_cuda_place(addr);
	else if (memory == CUDA_MEMORY_FROM_POOL)
		return cuda_call_pool_domain(call->pool);
	if (place.is_managed)
		return KMEM_DOMAIN_CUDA_MANAGED;
	if (place.is_host)
		return KMEM_DOMAIN_CUDA_PINNED;
	return tracker_device_domain(place.device >= 0 ? place.device : real_cuda_device());
}

static bool
is_of_others(enum cuda_memory memory)
{
	return memory == CUDA_MEMORY_IMPORTED || memory == CUDA_MEMORY_EXTERNAL || memory == CUDA_MEMORY_OPENED;
}

static unsigned
place_of(const struct cuda_call *call, enum cuda_memory memory, uint64_t addr, unsigned *owner)
{
	*owner = TRACKER_OWNER_NONE;
	if (memory == CUDA_MEMORY_POOLED || memory == CUDA_MEMORY_FROM_POOL)
		return pooled_domain(call, memory, addr);
	if (memory == CUDA_MEMORY_GRAPH)
		return KMEM_DOMAIN_CUDA_GRAPH;
	if (memory == CUDA_MEMORY_IMPORTED)
		return KMEM_DOMAIN_CUDA_IMPORTED;

	int device = real_cuda_device();

	*owner = cuda_call_owner(device);
	if (is_of_others(memory))
		return KMEM_DOMAIN_CUDA_IMPORTED;
	if (memory == CUDA_MEMORY_PINNED)
		return KMEM_DOMAIN_CUDA_PINNED;
	if (memory == CUDA_MEMORY_MANAGED)
		return KMEM_DOMAIN_CUDA_MANAGED;
	return memory == CUDA_MEMORY_REGISTERED ? KMEM_DOMAIN_CUDA_REGISTERED : tracker_device_domain(device);
}

enum cuda_memory
cuda_call_pooled(struct cuda_call *call, void *stream)
{
	call->stream = stream;
	/* The stream that all threads share cannot be recorded. */
	return call->is_booked_here && (uintptr_t)stream > 1 && real_cuda_is_recorded(stream) ? CUDA_MEMORY_GRAPH
	                                                                                      : CUDA_MEMORY_POOLED;
}

uint64_t
cuda_call_bytes(const struct cuda_call *call, uint64_t addr)
{
	return call->is_booked_here && !(call->layer == CUDA_LAYER_RUNTIME && thread.was_booked) ? real_cuda_bytes(addr)
	                                                                                         : 0;
}

/* ---- shapes ---- */

uint64_t
cuda_call_times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Each level is half as large as the one before, in each direction. */
static uint64_t
levels_bytes(struct cuda_extent extent, bool is_layered, uint64_t element_bytes, unsigned levels)
{
	uint64_t bytes = 0;

	for (unsigned level = 0; level < levels && level < 64; level++) {
		uint64_t width = extent.width >> level, height = extent.height >> level;
		uint64_t depth = is_layered ? extent.depth : extent.depth >> level;
		uint64_t own = cuda_call_times(width + (width == 0), height + (height == 0));

		own = cuda_call_times(cuda_call_times(own, depth + (depth == 0)), element_bytes);
		if (__builtin_add_overflow(bytes, own, &bytes))
			return UINT64_MAX;
	}
	return bytes;
}

uint64_t
cuda_call_array_bytes(const struct cuda_array_3d *shape, unsigned levels)
{
	unsigned channel_bytes = 1;

	if (shape == NULL)
		return 0;
	switch (shape->format) {
	case CUDA_FORMAT_UNSIGNED_INT32:
	case CUDA_FORMAT_SIGNED_INT32:
	case CUDA_FORMAT_FLOAT:
		channel_bytes = 4;
		break;
	case CUDA_FORMAT_UNSIGNED_INT16:
	case CUDA_FORMAT_SIGNED_INT16:
	case CUDA_FORMAT_HALF:
		channel_bytes = 2;
		break;
	default: // 8-bit channels
		break;
	}
	return levels_bytes((struct cuda_extent){ shape->width, shape->height, shape->depth },
	                    (shape->flags & CUDA_ARRAY_LAYERED) != 0, (uint64_t)channel_bytes * shape->channels, levels);
}

uint64_t
cuda_call_channel_bytes(const struct cuda_channels *channels, struct cuda_extent extent, unsigned levels,
                        unsigned flags)
{
	uint64_t bits = 0;

	for (unsigned i = 0; channels != NULL && i < 4; i++)
		bits += channels->bits[i] > 0 ? (uint64_t)channels->bits[i] : 0;
	return levels_bytes(extent, (flags & CUDA_ARRAY_LAYERED) != 0, bits / 8, levels);
}

/* ---- allocations and releases ---- */

void
cuda_call_attempt(const struct cuda_call *call, enum cuda_memory memory, uint64_t bytes)
{
	if (memory != CUDA_MEMORY_PINNED || bytes < 1u << 20 || !cuda_call_book_begin(call))
		return;
	(void)tracker_attempt(KMEM_DOMAIN_CUDA_PINNED, bytes, 0); // never refused
	reentry_guard_leave();
}

static void
given(const struct cuda_call *call, enum cuda_memory memory, uint64_t addr, uint64_t bytes)
{
	unsigned owner, domain = place_of(call, memory, addr, &owner);

	if (!cuda_call_book_once(call))
		return;
	if (memory == CUDA_MEMORY_OPENED)
		tracker_object_opened(call->hook_frame, domain, addr, bytes, owner);
	else
		tracker_device_allocated(call->hook_frame, domain, addr, bytes, owner);
	reentry_guard_leave();
}

static __attribute__((noinline, cold)) void
refused(const struct cuda_call *call, enum cuda_memory memory, int result, uint64_t bytes)
{
	bool has_entered = memory != CUDA_MEMORY_GRAPH && real_cuda_enter_stream(call->stream);
	unsigned owner, domain = place_of(call, memory, 0, &owner);
	bool is_one_devices = domain >= KMEM_DOMAIN_CUDA_FIRST && domain <= KMEM_DOMAIN_CUDA_LAST;
	int device = is_one_devices ? (int)(domain - KMEM_DOMAIN_CUDA_FIRST) : -1;
	struct device_memory left = { 0 };

	if (domain != KMEM_DOMAIN_CUDA_PINNED && domain != KMEM_DOMAIN_CUDA_REGISTERED)
		real_cuda_memory(device, &left.free_bytes, &left.total_bytes);
	if (is_one_devices)
		left.pool_kept_bytes = cuda_call_pools_kept(device, memory == CUDA_MEMORY_FROM_POOL ? call->pool : NULL);
	if (has_entered)
		real_cuda_leave_stream();
	if (!cuda_call_book_once(call))
		return;
	tracker_device_refused(call->hook_frame, domain, bytes, result, left);
	reentry_guard_leave();
}

void
cuda_call_did_not_start(struct cuda_call *call, const char *function, int result)
{
	int host_errno = errno;

	if (other_limits_is_cuda_start(result) && cuda_call_book_begin(call)) {
		other_limits_cuda(function, result);
		reentry_guard_leave();
	}
	errno = host_errno;
}

void
cuda_call_end_allocation(struct cuda_call *call, enum cuda_memory memory, int result, uint64_t addr, uint64_t bytes)
{
	int host_errno = errno;
	// by the driver's hook: nothing is asked again
	bool was_booked = call->layer == CUDA_LAYER_RUNTIME && thread.was_booked;

	/* Other errors say nothing about memory, and memory of others is there already. */
	if (call->is_booked_here && !was_booked && result == CUDA_ABI_SUCCESS && addr != 0)
		given(call, memory, addr, bytes);
	else if (call->is_booked_here && !was_booked && result == CUDA_ABI_OUT_OF_MEMORY && !is_of_others(memory))
		refused(call, memory, result, bytes);
	else if (result != CUDA_ABI_SUCCESS && call->layer == CUDA_LAYER_RUNTIME)
		cuda_call_did_not_start(call, "an allocation", result);
	cuda_call_end(call);
	errno = host_errno;
}

void
cuda_call_end_creation(struct cuda_call *call, unsigned domain, int result, uint64_t handle, uint64_t bytes,
                       struct device_memory left)
{
	int host_errno = errno;
	bool is_given = result == CUDA_ABI_SUCCESS && handle != 0;

	if ((is_given || result == CUDA_ABI_OUT_OF_MEMORY) && cuda_call_book_begin(call)) {
		if (is_given)
			tracker_object_created(call->hook_frame, domain, handle, bytes, TRACKER_OWNER_NONE);
		else
			tracker_device_refused(call->hook_frame, domain, bytes, result, left);
		reentry_guard_leave();
	}
	cuda_call_end(call);
	errno = host_errno;
}

/* Begins a call that gives back what has this address or handle. True: that is booked here; the guard is held. */
static bool
begin_release(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame, uint64_t addr)
{
	bool is_taken_outside = layer == CUDA_LAYER_DRIVER && thread.layer == CUDA_LAYER_RUNTIME &&
	                        thread.released_addr == addr;

	cuda_call_begin(call, layer, hook_frame);
	if (is_taken_outside || !cuda_call_book_begin(call))
		return false;
	if (layer == CUDA_LAYER_RUNTIME)
		thread.released_addr = addr;
	return true;
}

static void
end_release(const struct cuda_call *call)
{
	if (call->layer == CUDA_LAYER_RUNTIME && call->is_booked_here)
		thread.released_addr = 0;
	cuda_call_end(call);
}

void
cuda_call_begin_release(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame, uint64_t addr)
{
	if (!begin_release(call, layer, hook_frame, addr))
		return;
	call->released = tracker_device_take(addr); // of NULL: nothing
	reentry_guard_leave();
}

void
cuda_call_end_release(struct cuda_call *call, int result)
{
	int host_errno = errno;

	if (call->released.site != 0 && cuda_call_book_begin(call)) {
		/* Late destructors are told that CUDA is gone, and the memory with it. */
		if (result == CUDA_ABI_SUCCESS || result == CUDA_ABI_UNLOADING)
			tracker_device_released(call->released);
		else
			tracker_device_put_back(call->released);
		reentry_guard_leave();
	}
	end_release(call);
	errno = host_errno;
}

struct device_drop
cuda_call_begin_drop(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame, uint64_t handle)
{
	struct device_drop dropped = { 0 };

	if (!begin_release(call, layer, hook_frame, handle))
		return dropped;
	dropped = device_objects_release(handle);
	reentry_guard_leave();
	return dropped;
}

void
cuda_call_end_drop(const struct cuda_call *call, const struct device_drop *dropped, uint64_t handle, int result)
{
	int host_errno = errno;

	if (dropped->object != 0 && cuda_call_book_begin(call)) {
		if (result == CUDA_ABI_SUCCESS || result == CUDA_ABI_UNLOADING)
			tracker_object_released(*dropped);
		else
			device_objects_not_released(*dropped, handle);
		reentry_guard_leave();
	}
	end_release(call);
	errno = host_errno;
}
