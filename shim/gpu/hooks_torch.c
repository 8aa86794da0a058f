/*
 * hooks_torch.c - which tensors live in the memory that PyTorch took from the driver?
 *
 * PyTorch's caching allocator tells a function of libc10 of every block that it gives out and takes back on a device, whether
 * or not a profiler runs. Its blocks are booked as tensors, in a domain of their own: the driver's memory is what they
 * lie in, so the two are never added up. The name of the function says which parameters it has; three are known.
 *
 * Safe from   any thread.
 * When failing  the call is passed on to libc10 all the same, for torch.profiler.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "base/reentry_guard.h"
#include "capture/capture_file.h"
#include "gpu/cuda_abi.h"
#include "gpu/real_cuda.h"
#include "gpu/tracker_devices.h"
#include "record/tracker.h"
#include "sites/event_site.h"

#define C10_DEVICE_CUDA 1
#define C10_DEVICE_HIP 6 // what builds for ROCm said until 2026; since then, the other one

/* c10::Device, two signed bytes in one register: what kind, and which. */
static bool
is_gpu(uint16_t device)
{
	return (device & 0xff) == C10_DEVICE_CUDA || (device & 0xff) == C10_DEVICE_HIP;
}

static int
device_number(uint16_t device)
{
	return (int8_t)(device >> 8);
}

/* The Python stack says who asked: below it stands PyTorch's own code, the same for each operation. */
static const void *
frame_of(const void *hook_frame)
{
	return (const void *)((uintptr_t)hook_frame | EVENT_SITE_PYTHON);
}

static void
book(const void *hook_frame, const void *addr, int64_t bytes, uint16_t device)
{
	int host_errno = errno;

	if (!is_gpu(device) || !tracker_is_on() || !reentry_guard_enter())
		return;
	if (bytes > 0)
		tracker_tensor_allocated(frame_of(hook_frame), device_number(device), (uint64_t)(uintptr_t)addr,
		                         (uint64_t)bytes);
	else if (bytes < 0)
		tracker_tensor_released((uint64_t)(uintptr_t)addr);
	reentry_guard_leave();
	errno = host_errno;
}

/*
 * As PyTorch reads it, of these names the first that is set. Programs set it themselves before they import PyTorch, so it is asked for only
 * where the answer matters. relaxed: guards nothing.
 */
static void
note_expandable_segments(void)
{
	static const char *const names[] = { "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF" };

	const char *words = NULL;

	for (size_t i = 0; words == NULL && i < sizeof(names) / sizeof(names[0]); i++)
		words = getenv(names[i]);
	if (words != NULL && strstr(words, "expandable_segments:True") != NULL)
		atomic_store_explicit(&capture_file_header()->has_expandable_segments, KMEM_YES, memory_order_relaxed);
}

/* The allocator gave up: what it keeps is flushed, and the program gets an exception. */
static void
book_refusal(const void *hook_frame, int64_t bytes, uint16_t device)
{
	int host_errno = errno;

	if (!is_gpu(device) || bytes <= 0 || !tracker_is_on() || !reentry_guard_enter())
		return;
	note_expandable_segments();
	tracker_tensor_failed(frame_of(hook_frame), device_number(device), (uint64_t)bytes, CUDA_ABI_OUT_OF_MEMORY);
	reentry_guard_leave();
	errno = host_errno;
}

#define HOOK(name, mangled) EXPORT extern __typeof__(torch_##name) hook_torch_##name __asm__(mangled);
TORCH_ABI_FUNCTIONS(HOOK)
#undef HOOK

/* A hook, and the real function with the same arguments. */
#define PASS_ON(name, arguments)                                                      \
	do {                                                                              \
		void *real = real_cuda_torch(REAL_TORCH_##name, __builtin_return_address(0)); \
                                                                                      \
		if (real != NULL)                                                             \
			((__typeof__(torch_##name) *)real) arguments;                             \
	} while (0)

void
hook_torch_report_block(void *addr, int64_t bytes, uint16_t device)
{
	book(__builtin_frame_address(0), addr, bytes, device);
	PASS_ON(report_block, (addr, bytes, device));
}

#define HOOK_REPORT(name)                                                                                     \
	void hook_torch_##name(void *addr, int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device) \
	{                                                                                                         \
		book(__builtin_frame_address(0), addr, bytes, device);                                                \
		PASS_ON(name, (addr, bytes, allocated, reserved, device));                                            \
	}
HOOK_REPORT(report_lll)
HOOK_REPORT(report_lmm)

#define HOOK_REFUSAL(name)                                                                        \
	void hook_torch_##name(int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device) \
	{                                                                                             \
		book_refusal(__builtin_frame_address(0), bytes, device);                                  \
		PASS_ON(name, (bytes, allocated, reserved, device));                                      \
	}
HOOK_REFUSAL(refusal_lll)
HOOK_REFUSAL(refusal_lmm)
HOOK_REFUSAL(refusal_mmm)
