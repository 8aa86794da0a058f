/*
 * hooks_cuda_call.h - one CUDA call of the program: which of the nested hooks books it, and when?
 *
 * The runtime calls the driver, trampolines call our hook twice, and each layer has hooks. The rules:
 *   - an allocation is booked by the driver hook, once it succeeded; by the runtime hook only when no
 *     driver hook booked anything inside it
 *   - the stack is that of the outermost of our hooks, so that it begins at the call the program made
 *   - a release is taken out by the outermost hook before the real call (R1)
 *   - the same layer inside itself, and the runtime inside the driver, pass through
 *
 * The guard is held while we book, but not during the real call. CUDA calls malloc inside: these blocks are host memory
 * like any other. A block that was allocated unseen and released in sight, or the other way round, would be booked wrongly.
 * For mappings that are made inside, see real_cuda_depth.
 *
 * Another vendor's functions are a second table, not second code: hip_abi.h, hooks_hip.c.
 *
 * Context     Every begin is followed by exactly one end, on the same thread.
 * Safe from   any thread; errno is kept by the end functions.
 */
#ifndef HOOKS_CUDA_CALL_H
#define HOOKS_CUDA_CALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/reentry_guard.h"
#include "gpu/cuda_abi.h"
#include "gpu/hip_abi.h"
#include "gpu/tracker_devices.h"
#include "record/tracker.h"

#define INTERNAL __attribute__((visibility("hidden")))

/*
 * hook_NAME is the code of the export NAME. Only this name may be used for a pointer that we give out:
 * NAME itself may be bound to another library's definition.
 */
#define HOOK_ROW(name, ...) extern __typeof__(name) hook_##name INTERNAL;
CUDA_ABI_DRIVER_FUNCTIONS(HOOK_ROW)
CUDA_ABI_RUNTIME_FUNCTIONS(HOOK_ROW)
HIP_ABI_FUNCTIONS(HOOK_ROW)
#undef HOOK_ROW

#define HOOK_EXPORT(name) EXPORT extern __typeof__(name) name __attribute__((alias("hook_" #name)))

/* NONE: a call that allocates nothing for the program, such as a lookup. */
enum cuda_layer { CUDA_LAYER_NONE, CUDA_LAYER_RUNTIME, CUDA_LAYER_DRIVER };
/*
 * What kind of memory does a call give out? DEVICE, PINNED and MANAGED belong to the current context.
 *
 * POOLED      from a memory pool: it belongs to the pool's device and to no context
 * FROM_POOL   the same; the caller named the pool, it is call->pool
 * REGISTERED  host memory of the program's own, which is pinned by the call
 * IMPORTED    from a memory pool of another owner
 * EXTERNAL    memory of another owner, mapped in a context
 * OPENED      the same; it may be opened several times, and is gone when it was closed as often
 * GRAPH       what a graph takes when it runs
 */
enum cuda_memory {
	CUDA_MEMORY_DEVICE,
	CUDA_MEMORY_POOLED,
	CUDA_MEMORY_FROM_POOL,
	CUDA_MEMORY_PINNED,
	CUDA_MEMORY_MANAGED,
	CUDA_MEMORY_REGISTERED,
	CUDA_MEMORY_IMPORTED,
	CUDA_MEMORY_EXTERNAL,
	CUDA_MEMORY_OPENED,
	CUDA_MEMORY_GRAPH,
};

/* On the stack of a hook. */
struct cuda_call {
	const void *hook_frame;     // whose caller the stack begins with
	void *pool;                 // of FROM_POOL
	void *stream;               // of POOLED, FROM_POOL, where the hook knows it
	struct live_block released; // of a release: what was taken out, site 0 = nothing
	enum cuda_layer layer;
	enum cuda_layer outer_layer; // restored at the end
	unsigned outer_depth;        // restored at the end
	bool is_booked_here;         // this hook, not one outside or inside it
};

void cuda_call_begin(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame);
void cuda_call_end(const struct cuda_call *call); // when there is nothing to book

/* By a hook inside. */
bool cuda_call_was_booked(const struct cuda_call *call);
void cuda_call_note_booked(void);

/* True when the tracker may be called; then reentry_guard_leave() must follow. once: and no hook inside has booked it. */
static inline __attribute__((always_inline)) bool
cuda_call_book_begin(const struct cuda_call *call)
{
	return call->is_booked_here && reentry_guard_enter();
}

static inline __attribute__((always_inline)) bool
cuda_call_book_once(const struct cuda_call *call)
{
	if (cuda_call_was_booked(call) || !cuda_call_book_begin(call))
		return false;
	cuda_call_note_booked();
	return true;
}

/* Before the real call, when it asks for host memory: the kernel may end the process inside. */
void cuda_call_attempt(const struct cuda_call *call, enum cuda_memory memory, uint64_t bytes);

/* result is the real function's; bytes what was asked for; addr is looked at only on success. */
void cuda_call_end_allocation(struct cuda_call *call, enum cuda_memory memory, int result, uint64_t addr,
                              uint64_t bytes);

/* Notes that CUDA did not start, if `result` means that. errno is kept. */
void cuda_call_did_not_start(struct cuda_call *call, const char *function, int result);

/* Physical memory, in `domain`; left: of the device that refused it. */
void cuda_call_end_creation(struct cuda_call *call, unsigned domain, int result, uint64_t handle, uint64_t bytes,
                            struct device_memory left);

void cuda_call_begin_release(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame, uint64_t addr);
void cuda_call_end_release(struct cuda_call *call, int result);

/* The same for a handle in device_objects.h: a reference is dropped before the real call, and is ours again when that fails. */
struct device_drop cuda_call_begin_drop(struct cuda_call *call, enum cuda_layer layer, const void *hook_frame,
                                        uint64_t handle);
void cuda_call_end_drop(const struct cuda_call *call, const struct device_drop *dropped, uint64_t handle, int result);

/* Which of the two an allocation from a stream's pool is: POOLED, or GRAPH while the stream is recorded. */
enum cuda_memory cuda_call_pooled(struct cuda_call *call, void *stream);

/* FROM_POOL, when it is POOLED. */
static inline enum cuda_memory
cuda_call_from_pool(struct cuda_call *call, enum cuda_memory memory, void *pool)
{
	call->pool = pool;
	return memory == CUDA_MEMORY_POOLED ? CUDA_MEMORY_FROM_POOL : memory;
}

/* hooks_cuda_pool.c: where its memory is. Asks the driver. */
unsigned cuda_call_pool_domain(const void *pool);
/* What the pools of a device keep for themselves: its own, those that the program made, and `pool` (NULL: none). Asks the driver. */
uint64_t cuda_call_pools_kept(int device, void *pool);
void cuda_call_forget_pools(unsigned device); // its state has ended

/* Size of memory that another owner gave out. The driver is asked, if it is to be booked. */
uint64_t cuda_call_bytes(const struct cuda_call *call, uint64_t addr);

/* Sizes of what has a shape; too large for a number: the largest there is. */
uint64_t cuda_call_times(uint64_t a, uint64_t b);
uint64_t cuda_call_array_bytes(const struct cuda_array_3d *shape, unsigned levels);
uint64_t cuda_call_channel_bytes(const struct cuda_channels *channels, struct cuda_extent extent, unsigned levels,
                                 unsigned flags);

/* hooks_cuda_context.c: the TRACKER_OWNER_CONTEXT of this thread's context; that of another kind on `device`: the device. */
unsigned cuda_call_owner(int device);

/*
 * The code of one export. The including file says what its rows have in common:
 *   HOOK_LAYER           enum cuda_layer
 *   HOOK_FIND(row, caller)  the real function
 *   HOOK_NOT_FOUND       result without one
 *   HOOK_END_ALLOCATION  before this file is included: another function than cuda_call_end_allocation()
 */
#ifndef HOOK_END_ALLOCATION
#define HOOK_END_ALLOCATION cuda_call_end_allocation
#endif

#define HOOK_FIND_REAL(name)                                               \
	void *real = HOOK_FIND(REAL_CUDA_##name, __builtin_return_address(0)); \
	struct cuda_call call;                                                 \
                                                                           \
	if (real == NULL)                                                      \
	return HOOK_NOT_FOUND

#define HOOK_BEGIN(name)  \
	HOOK_FIND_REAL(name); \
	cuda_call_begin(&call, HOOK_LAYER, __builtin_frame_address(0))

#define HOOK_REAL(name) ((__typeof__(name) *)real)

/*
 * out    where the address is after success; may be NULL
 * asked  bytes of the request
 * given  bytes to book, evaluated after success
 */
#define HOOK_ALLOCATION_AT(name, kind, parameters, arguments, out, asked, given)         \
	int hook_##name parameters                                                           \
	{                                                                                    \
		HOOK_BEGIN(name);                                                                \
		enum cuda_memory booked_as = (kind);                                             \
		cuda_call_attempt(&call, booked_as, asked);                                      \
		int result = HOOK_REAL(name) arguments;                                          \
		bool is_given = result == CUDA_ABI_SUCCESS && (out) != NULL;                     \
		HOOK_END_ALLOCATION(&call, booked_as, result, is_given ? (uint64_t) * (out) : 0, \
		                    is_given ? (given) : (asked));                               \
		return result;                                                                   \
	}                                                                                    \
	HOOK_EXPORT(name)

#define HOOK_ALLOCATION(name, kind, parameters, arguments, asked, given) \
	HOOK_ALLOCATION_AT(name, kind, parameters, arguments, addr, asked, given)

/* Does `booking` after success, if `is_so`. is_so may ask the driver. */
#define HOOK_AFTER(name, parameters, arguments, is_so, booking)                                           \
	int hook_##name parameters                                                                            \
	{                                                                                                     \
		HOOK_BEGIN(name);                                                                                 \
		int result = HOOK_REAL(name) arguments;                                                           \
		int host_errno = errno;                                                                           \
                                                                                                          \
		if (result == CUDA_ABI_SUCCESS && call.is_booked_here && (is_so) && cuda_call_book_once(&call)) { \
			booking;                                                                                      \
			reentry_guard_leave();                                                                        \
		}                                                                                                 \
		cuda_call_end(&call);                                                                             \
		errno = host_errno;                                                                               \
		return result;                                                                                    \
	}                                                                                                     \
	HOOK_EXPORT(name)

/* A function that programs call first. If its error says that CUDA does not work at all, that is noted. */
#define HOOK_START(name, parameters, arguments)              \
	int hook_##name parameters                               \
	{                                                        \
		HOOK_BEGIN(name);                                    \
		int result = HOOK_REAL(name) arguments;              \
                                                             \
		if (__builtin_expect(result != CUDA_ABI_SUCCESS, 0)) \
			cuda_call_did_not_start(&call, #name, result);   \
		cuda_call_end(&call);                                \
		return result;                                       \
	}                                                        \
	HOOK_EXPORT(name)

/* Ends everything that was given out on the current device. The device is asked for before, since it is not known afterwards. */
#define HOOK_RESET(name, current_device, gone)                          \
	int hook_##name(void)                                               \
	{                                                                   \
		HOOK_BEGIN(name);                                               \
		int device = call.is_booked_here ? current_device() : 0;        \
		int result = HOOK_REAL(name)();                                 \
		int host_errno = errno;                                         \
                                                                        \
		if (result == CUDA_ABI_SUCCESS && cuda_call_book_once(&call)) { \
			gone((unsigned)device);                                     \
			reentry_guard_leave();                                      \
		}                                                               \
		cuda_call_end(&call);                                           \
		errno = host_errno;                                             \
		return result;                                                  \
	}                                                                   \
	HOOK_EXPORT(name)

/* Has a parameter `addr`. */
#define HOOK_RELEASE(name, parameters, arguments)                                               \
	int hook_##name parameters                                                                  \
	{                                                                                           \
		HOOK_FIND_REAL(name);                                                                   \
		cuda_call_begin_release(&call, HOOK_LAYER, __builtin_frame_address(0), (uint64_t)addr); \
		int result = HOOK_REAL(name) arguments;                                                 \
		cuda_call_end_release(&call, result);                                                   \
		return result;                                                                          \
	}                                                                                           \
	HOOK_EXPORT(name)

/* Lets go of the object `handle`. */
#define HOOK_DROP(name, parameters, arguments, handle)                                                            \
	int hook_##name parameters                                                                                    \
	{                                                                                                             \
		HOOK_FIND_REAL(name);                                                                                     \
		struct device_drop dropped = cuda_call_begin_drop(&call, HOOK_LAYER, __builtin_frame_address(0), handle); \
		int result = HOOK_REAL(name) arguments;                                                                   \
		cuda_call_end_drop(&call, &dropped, handle, result);                                                      \
		return result;                                                                                            \
	}                                                                                                             \
	HOOK_EXPORT(name)

#endif
