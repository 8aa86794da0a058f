/*
 * hooks_cuda_runtime.c - the CUDA runtime's allocation functions, for programs that link to a shared libcudart.
 *
 * The driver's hooks book what happens inside; these give them the stack of the call that the program made,
 * and book by themselves only where the driver cannot be seen (RTLD_DEEPBIND). Lookups by dlsym are not
 * answered with them: two runtimes may live in one process, and a wrapper could not tell whose it is.
 *
 * Called by   the program.
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When failing  without a runtime: cudaErrorNoDevice, for programs that test a weak reference.
 */
#include "hooks_cuda_call.h"
#include "real_cuda.h"

#define HOOK_LAYER CUDA_LAYER_RUNTIME
#define HOOK_FIND real_cuda_runtime
#define HOOK_NOT_FOUND CUDA_ABI_NO_DEVICE

#define DEVICE CUDA_MEMORY_DEVICE
#define MANAGED CUDA_MEMORY_MANAGED
#define PINNED CUDA_MEMORY_PINNED

HOOK_ALLOCATION(cudaMalloc, DEVICE, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cudaMallocManaged, MANAGED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags),
                bytes, bytes);
HOOK_ALLOCATION(cudaMallocAsync, DEVICE, (void **addr, size_t bytes, void *stream), (addr, bytes, stream),
                bytes, bytes);
HOOK_ALLOCATION(cudaMallocAsync_ptsz, DEVICE, (void **addr, size_t bytes, void *stream), (addr, bytes, stream),
                bytes, bytes);
HOOK_ALLOCATION(cudaMallocHost, PINNED, (void **addr, size_t bytes), (addr, bytes), bytes, bytes);
HOOK_ALLOCATION(cudaHostAlloc, PINNED, (void **addr, size_t bytes, unsigned flags), (addr, bytes, flags),
                bytes, bytes);

HOOK_RELEASE(cudaFree, (void *addr), (addr));
HOOK_RELEASE(cudaFreeAsync, (void *addr, void *stream), (addr, stream));
HOOK_RELEASE(cudaFreeAsync_ptsz, (void *addr, void *stream), (addr, stream));
HOOK_RELEASE(cudaFreeHost, (void *addr), (addr));
