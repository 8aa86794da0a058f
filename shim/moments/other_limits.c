/*
 * other_limits.c - see other_limits.h.
 */
#include "moments/other_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/diag.h"
#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "kmem_format.h"

enum { TOLD_THREAD = 1, TOLD_FILES = 2, TOLD_CUDA = 4, TOLD_PROCESS = 8 };

/* relaxed: guards nothing; the exchange alone says who tells. */
static _Atomic uint32_t told;

static bool
is_first(uint32_t what)
{
	return (atomic_fetch_or_explicit(&told, what, memory_order_relaxed) & what) == 0;
}

static uint64_t
soft_limit(int kind)
{
	struct rlimit limit;

	if (raw_syscall(SYS_prlimit64, 0, kind, NULL, &limit) != 0)
		return RLIM_INFINITY;
	return limit.rlim_cur;
}

/* Threads and processes are counted together, by user (ulimit -u) and by container. */
static void
tell_start(uint32_t what, const char *begin, int error)
{
	char text[KMEM_TEXT_BYTES];

	if (!is_first(what))
		return;

	uint64_t limit = raw_sys_may_call() ? soft_limit(RLIMIT_NPROC) : RLIM_INFINITY;

	if (limit == RLIM_INFINITY)
		diag_format(text, sizeof(text), "%s (error %d)", begin, error);
	else
		diag_format(text, sizeof(text), "%s (error %d; ulimit -u is %lu)", begin, error, (unsigned long)limit);
	capture_file_note(text);
}

void
other_limits_thread(int error)
{
	tell_start(TOLD_THREAD, KMEM_NOTE_THREAD, error);
}

void
other_limits_process(int error)
{
	tell_start(TOLD_PROCESS, KMEM_NOTE_PROCESS, error);
}

void
other_limits_look(void)
{
	char text[KMEM_TEXT_BYTES];
	int host_errno = errno;

	if (!raw_sys_may_call() || (atomic_load_explicit(&told, memory_order_relaxed) & TOLD_FILES) != 0)
		return;

	int fd = raw_open("/", O_PATH | O_CLOEXEC, 0);
	bool is_full = fd < 0 && errno == EMFILE;

	if (fd >= 0)
		raw_close(fd);
	errno = host_errno;
	if (!is_full || !is_first(TOLD_FILES))
		return;
	diag_format(text, sizeof(text), KMEM_NOTE_FILES " (ulimit -n is %lu)", (unsigned long)soft_limit(RLIMIT_NOFILE));
	capture_file_note(text);
}

/* From cuda.h and driver_types.h; the runtime and the driver number these alike. */
static const struct {
	int result;
	const char *says;
} cuda_starts[] = {
	{ 35, "there is no driver, or it is older than the CUDA runtime needs" },
	{ 100, "there is no device that it may use" },
	{ 209, "the program has no code for this device" },
	{ 222, "the program's code is of a newer CUDA than the driver's" },
	{ 803, "the driver and its library are of different versions" },
	{ 804, "this device does not work with a library newer than its driver" },
};
#define CUDA_STARTS (sizeof(cuda_starts) / sizeof(cuda_starts[0]))

bool
other_limits_is_cuda_start(int result)
{
	for (size_t i = 0; i < CUDA_STARTS; i++) {
		if (cuda_starts[i].result == result)
			return true;
	}
	return false;
}

void
other_limits_cuda(const char *function, int result)
{
	char text[KMEM_TEXT_BYTES];

	for (size_t i = 0; i < CUDA_STARTS; i++) {
		if (cuda_starts[i].result != result || !is_first(TOLD_CUDA))
			continue;
		diag_format(text, sizeof(text), KMEM_NOTE_CUDA " (%s answered error %d: %s)", function, result,
		            cuda_starts[i].says);
		capture_file_note(text);
	}
}

void
other_limits_forked(void)
{
	atomic_store_explicit(&told, 0, memory_order_relaxed);
}
