/*
 * hooks_cuda_call.c - one CUDA call of the program: which of the nested hooks books it, and when?
 */
#include "hooks_cuda_call.h"

#include <errno.h>

#include "real_cuda.h"
#include "reentry_guard.h"

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
	call->layer = layer;
	call->outer_layer = thread.layer;
	call->is_booked_here = tracker_is_on() && reentry_guard_depth == 0 && thread.layer < layer;
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

bool
cuda_call_book_begin(const struct cuda_call *call)
{
	return call->is_booked_here && reentry_guard_enter();
}

void
cuda_call_end(const struct cuda_call *call)
{
	if (call->is_booked_here)
		thread.layer = call->outer_layer;
	real_cuda_depth = call->outer_depth;
}

static unsigned
domain_of(enum cuda_memory memory)
{
	if (memory == CUDA_MEMORY_PINNED)
		return KMEM_DOMAIN_CUDA_PINNED;
	if (memory == CUDA_MEMORY_MANAGED)
		return KMEM_DOMAIN_CUDA_MANAGED;
	if (memory == CUDA_MEMORY_REGISTERED)
		return KMEM_DOMAIN_CUDA_REGISTERED;
	return tracker_device_domain(real_cuda_device());
}

void
cuda_call_attempt(const struct cuda_call *call, enum cuda_memory memory, uint64_t bytes)
{
	if (memory != CUDA_MEMORY_PINNED || bytes < 1u << 20 || !cuda_call_book_begin(call))
		return;
	tracker_attempt(KMEM_DOMAIN_CUDA_PINNED, bytes);
	reentry_guard_leave();
}

void
cuda_call_end_allocation(struct cuda_call *call, enum cuda_memory memory, int result, uint64_t addr,
                         uint64_t bytes)
{
	int host_errno = errno;
	bool is_given = result == CUDA_ABI_SUCCESS && addr != 0;
	bool is_refused = result == CUDA_ABI_OUT_OF_MEMORY; // other errors say nothing about memory
	bool was_booked_inside = call->layer == CUDA_LAYER_RUNTIME && thread.was_booked;

	if (call->is_booked_here && !was_booked_inside && (is_given || is_refused)) {
		unsigned domain = domain_of(memory); // asks the driver, so outside the guard
		struct device_memory left = { 0 };

		if (is_refused && memory != CUDA_MEMORY_PINNED && memory != CUDA_MEMORY_REGISTERED)
			real_cuda_memory(-1, &left.free_bytes, &left.total_bytes);
		if (cuda_call_book_begin(call)) {
			if (is_given)
				tracker_device_allocated(call->hook_frame, domain, addr, bytes, memory == CUDA_MEMORY_POOLED);
			else
				tracker_device_refused(call->hook_frame, domain, bytes, result, left);
			reentry_guard_leave();
			thread.was_booked = true;
		}
	}
	cuda_call_end(call);
	errno = host_errno;
}

void
cuda_call_begin_release(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame,
                        uint64_t addr)
{
	bool is_taken_outside = layer == CUDA_LAYER_DRIVER && thread.layer == CUDA_LAYER_RUNTIME &&
	                        thread.released_addr == addr;

	cuda_call_begin(call, layer, hook_frame);
	if (addr == 0 || is_taken_outside || !cuda_call_book_begin(call))
		return;
	call->released = tracker_device_take(addr);
	reentry_guard_leave();
	if (layer == CUDA_LAYER_RUNTIME)
		thread.released_addr = addr;
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
	if (call->layer == CUDA_LAYER_RUNTIME && call->is_booked_here)
		thread.released_addr = 0;
	cuda_call_end(call);
	errno = host_errno;
}
