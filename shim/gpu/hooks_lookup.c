/*
 * hooks_lookup.c - a program looks up a function of CUDA's driver, or of HIP, by name: it is given our hook.
 *
 * Every CUDA runtime, also one that is linked statically into a program or a library, finds the driver with
 * dlsym and then asks the driver's own cuGetProcAddress for the rest. Both are answered here.
 *
 *   - exact names from one table, never a prefix; the driver's own lookups are left alone
 *   - the real lookup goes first, with the caller's handle: nothing is given out that was not found
 *   - only what lies in libcuda.so.*, or in libamdhip64, is replaced, so that trampolines of the same name keep working
 *   - a name that nobody has but us is not found: programs look whether there is CUDA that way
 *
 * Safe from   wherever dlsym is: no lock of ours, no opening of libraries, no waiting for another thread.
 * When failing  what the real lookup returned; of functions in a form that we do not know the report says so.
 * Not chosen  a hook of dlsym in C: without a guaranteed tail call our return address would become the
 *             caller, and RTLD_NEXT of every other library would mean "next after the shim".
 */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/diag.h"
#include "capture/capture_file.h"
#include "gpu/hooks_cuda_call.h"
#include "gpu/real_cuda.h"

struct lookup_row {
	const char *name; // as exported, for dlsym
	const char *base; // for cuGetProcAddress
	void *hook;
	int first_version;
	bool is_per_thread;
};

#define ROW(exported, parameters, asked, version, per_thread) \
	[REAL_CUDA_##exported] = { #exported, asked, (void *)hook_##exported, version, per_thread },
static const struct lookup_row rows[] = { CUDA_ABI_DRIVER_FUNCTIONS(ROW) };
#undef ROW
#define ROW(exported, parameters) { #exported, NULL, (void *)hook_##exported, 0, false },
static const struct lookup_row hip_rows[] = { HIP_ABI_FUNCTIONS(ROW) };
#undef ROW
#define HIP_COUNT (sizeof(hip_rows) / sizeof(hip_rows[0]))

/* Used by the assembly below. */
const char *hooks_lookup_name(void *handle, const char *name) INTERNAL;
const struct lookup_row *hooks_lookup_row(void *handle, const char *name) INTERNAL;
void *hooks_lookup_wrap(void *handle, const char *name, const struct lookup_row *row) INTERNAL;

/* The name to be looked up. Instead of one that only we have, it is one that nobody has: the loader's own message tells the program. */
const char *
hooks_lookup_name(void *handle, const char *name)
{
	static __thread char absent[64] __attribute__((tls_model("initial-exec")));

	if (!real_cuda_is_absent(handle, name))
		return name;
	diag_format(absent, sizeof(absent), "%s ", name);
	return absent;
}

const struct lookup_row *
hooks_lookup_row(void *handle, const char *name)
{
	(void)handle;
	for (size_t i = 0; i < REAL_CUDA_DRIVER_COUNT; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	for (size_t i = 0; i < HIP_COUNT; i++) {
		if (strcmp(hip_rows[i].name, name) == 0)
			return &hip_rows[i];
	}
	return NULL;
}

void *
hooks_lookup_wrap(void *handle, const char *name, const struct lookup_row *row)
{
	const void *caller = __builtin_return_address(0);
	void *real = (real_cuda_dlsym != NULL ? real_cuda_dlsym : real_cuda_find_dlsym())(handle, name);

	/* The hook finds it again from wherever it is called; so the library of a second HIP keeps its own. */
	if (row->base == NULL)
		return real == NULL || !real_cuda_is_hip(real) || real_cuda_is_hip(caller) ? real : row->hook;
	/* The driver that WSL installs is a shell that looks up the real one by the same names. */
	if (real == NULL || !real_cuda_is_driver(real) || real_cuda_is_driver(caller))
		return real;
	real_cuda_found((enum real_cuda_driver)(row - rows), real);
	return row->hook;
}

static bool
has_per_thread_twin(const char *base)
{
	for (size_t i = 0; i < REAL_CUDA_DRIVER_COUNT; i++) {
		if (rows[i].is_per_thread && strcmp(rows[i].base, base) == 0)
			return true;
	}
	return false;
}

/* The newest row whose ABI the requested version includes; older ABIs are passed through. */
static const struct lookup_row *
find_requested(const char *base, int version, unsigned long long flags)
{
	bool per_thread = (flags & CUDA_ABI_PER_THREAD_STREAM) != 0 && has_per_thread_twin(base);
	const struct lookup_row *best = NULL;

	for (size_t i = 0; i < REAL_CUDA_DRIVER_COUNT; i++) {
		const struct lookup_row *row = &rows[i];

		if (row->is_per_thread == per_thread && row->first_version <= version &&
		    (best == NULL || row->first_version > best->first_version) && strcmp(row->base, base) == 0)
			best = row;
	}
	return best;
}

/* Once per function, in the report. */
static void
tell_unknown(const struct lookup_row *row)
{
	static _Atomic uint64_t told; // bit n: of row n; relaxed: guards nothing
	uint64_t bit = UINT64_C(1) << (row - rows);
	char text[160];

	_Static_assert(REAL_CUDA_DRIVER_COUNT <= 64, "a bit for each row");
	if (!tracker_is_on() || (atomic_fetch_or_explicit(&told, bit, memory_order_relaxed) & bit) != 0 ||
	    !reentry_guard_enter())
		return;
	diag_format(text, sizeof(text),
	            "the CUDA driver gave out a newer form of %s than is known: its calls are not recorded", row->base);
	capture_file_note(text);
	reentry_guard_leave();
}

/* A version that is newer than we are may be another ABI under the same name. */
typedef int lookup_again(void *real, const char *name, void **function, unsigned long long flags);

static void
replace_found(const char *name, void **function, int version, unsigned long long flags, void *real, lookup_again *again)
{
	if (name == NULL || function == NULL || *function == NULL)
		return;

	const struct lookup_row *row = find_requested(name, version, flags);
	void *known = NULL;

	if (row == NULL || *function == row->hook)
		return;
	if (version > CUDA_ABI_NEWEST && (again(real, name, &known, flags) != CUDA_ABI_SUCCESS || known != *function)) {
		tell_unknown(row);
		return;
	}
	real_cuda_found((enum real_cuda_driver)(row - rows), *function);
	*function = row->hook;
}

static int
lookup_again_v1(void *real, const char *name, void **function, unsigned long long flags)
{
	return ((__typeof__(cuGetProcAddress) *)real)(name, function, CUDA_ABI_NEWEST, flags);
}

static int
lookup_again_v2(void *real, const char *name, void **function, unsigned long long flags)
{
	int status;

	return ((__typeof__(cuGetProcAddress_v2) *)real)(name, function, CUDA_ABI_NEWEST, flags, &status);
}

int
hook_cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
	void *real = real_cuda_driver(REAL_CUDA_cuGetProcAddress, __builtin_return_address(0));

	struct cuda_call call;

	if (real == NULL)
		return CUDA_ABI_NOT_INITIALIZED;
	cuda_call_begin(&call, CUDA_LAYER_NONE, __builtin_frame_address(0));
	int result = ((__typeof__(cuGetProcAddress) *)real)(name, function, version, flags);
	if (result == CUDA_ABI_SUCCESS)
		replace_found(name, function, version, flags, real, lookup_again_v1);
	cuda_call_end(&call);
	return result;
}
HOOK_EXPORT(cuGetProcAddress);

int
hook_cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status)
{
	void *real = real_cuda_driver(REAL_CUDA_cuGetProcAddress_v2, __builtin_return_address(0));

	struct cuda_call call;

	if (real == NULL)
		return CUDA_ABI_NOT_INITIALIZED;
	cuda_call_begin(&call, CUDA_LAYER_NONE, __builtin_frame_address(0));
	int result = ((__typeof__(cuGetProcAddress_v2) *)real)(name, function, version, flags, status);
	if (result == CUDA_ABI_SUCCESS)
		replace_found(name, function, version, flags, real, lookup_again_v2);
	cuda_call_end(&call);
	return result;
}
HOOK_EXPORT(cuGetProcAddress_v2);
