/*
 * real_cuda.h - where are the CUDA functions that our exports stand in front of?
 *
 * Safe from   CUDA hooks only: the first call of each function opens loaded objects by name, which takes
 *             the loader's lock. Never from an allocation hook. Later calls are one load (driver) or one
 *             hash probe (runtime).
 * When failing  NULL: the hook answers with a CUDA error, as a machine without a driver would.
 */
#ifndef REAL_CUDA_H
#define REAL_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda_abi.h"
#include "gpu/hip_abi.h"

#define REAL_CUDA_ROW(name, ...) REAL_CUDA_##name,
enum real_cuda_driver { CUDA_ABI_DRIVER_FUNCTIONS(REAL_CUDA_ROW) REAL_CUDA_DRIVER_COUNT };
enum real_cuda_runtime {
	CUDA_ABI_RUNTIME_FUNCTIONS(REAL_CUDA_ROW) HIP_ABI_FUNCTIONS(REAL_CUDA_ROW) REAL_CUDA_RUNTIME_COUNT
};
#undef REAL_CUDA_ROW
#define REAL_TORCH_ROW(name, ...) REAL_TORCH_##name,
enum real_torch { TORCH_ABI_FUNCTIONS(REAL_TORCH_ROW) REAL_TORCH_COUNT };
#undef REAL_TORCH_ROW

/*
 * How many real CUDA functions this thread is inside of. While it is not 0, mappings that are made are
 * the driver's, not the program's: it reserves hundreds of gigabytes of addresses.
 */
extern __thread unsigned real_cuda_depth __attribute__((tls_model("initial-exec")));

/* The function behind our export of the same name; `caller` is the hook's return address. */
void *real_cuda_driver(enum real_cuda_driver function, const void *caller);
void *real_cuda_runtime(enum real_cuda_runtime function, const void *caller);

/*
 * The same in libc10. `caller` holds a mutex of PyTorch's, so the loader is asked only when no libc10 defines the function;
 * otherwise what is mapped is read.
 */
void *real_cuda_torch(enum real_torch function, const void *caller);

/* After the loader unloaded something: call sites may stand for others now. Safe from anywhere. */
void real_cuda_unloaded(void);

/* A lookup by the program found `real`; from now on the hook of `function` calls that. */
void real_cuda_found(enum real_cuda_driver function, void *real);

/* Did any function of the driver or the runtime pass here, by a call or a lookup? */
bool real_cuda_was_seen(void);

/* Is this a name that we export, and no other library that a lookup by this handle may find has it? */
bool real_cuda_is_absent(void *handle, const char *name);

/* Is this address code of libcuda.so.*, the driver? Of the first libamdhip64 there is, to which lookups by name lead? */
bool real_cuda_is_driver(const void *addr);
bool real_cuda_is_hip(const void *addr);

/* The function `name` of a loaded library whose file name begins so, kept in *known from then on; NULL: there is none. */
void *real_cuda_query(_Atomic(void *) *known, const char *library, const char *name);

/* A function of the driver that has no hook; NULL: there is no driver that we can see. */
void *real_cuda_unhooked(const char *name);

/*
 * real_cuda_query.c: questions to the driver. None of them changes the driver's last error. Only real_cuda_enter_stream() and
 * real_cuda_leave_stream() change the current context. Ask only inside a call that needs a context, or right after it: at other times the
 * thread may have none. The answer is 0, NULL or false if the driver cannot be asked.
 */
struct cuda_place {
	int device; // -1 = it is not known
	bool is_host, is_managed;
};
int real_cuda_device(void);                       // of the current context
void *real_cuda_context(void);                    // the current one
struct cuda_place real_cuda_place(uint64_t addr); // where memory of a pool is
uint64_t real_cuda_bytes(uint64_t addr);          // of the memory that begins at addr
bool real_cuda_is_recorded(void *stream);         // what is called on it becomes a graph
bool real_cuda_has_primary_context(int device);

/*
 * If the stream belongs to another context, that context becomes the current one, so that questions are about its device. True: it
 * did, and this thread must call real_cuda_leave_stream().
 */
bool real_cuda_enter_stream(void *stream);
void real_cuda_leave_stream(void);
int real_cuda_pool_device(const void *pool, int devices_max); // whose own pool it is; -1 = no device's

/*
 * What the driver says of a device right after it refused memory: by its own cuMemGetInfo, which changes no context and no last
 * error. `device` is the one that was asked, -1 = that of this thread's context. The two stay as they are when the thread has no
 * context, or that of another device.
 */
void real_cuda_memory(int device, uint64_t *free_bytes, uint64_t *total_bytes);

/* A device's own pool; NULL: it has none. What a pool that there is keeps for itself. */
void *real_cuda_own_pool(int device);
uint64_t real_cuda_pool_kept(void *pool);

/* The next dlsym in line; real_cuda_dlsym is NULL until the first call of real_cuda_find_dlsym(). */
typedef void *real_cuda_dlsym_fn(void *handle, const char *name);
extern real_cuda_dlsym_fn *real_cuda_dlsym;
real_cuda_dlsym_fn *real_cuda_find_dlsym(void);

#endif
