/*
 * hooks_dlclose.c - dlclose(): what was unloaded must not lend its addresses to what comes next.
 *
 * Context     Not inside the reentry guard: destructors that run here belong to the program.
 * Safe from   where dlclose itself is.
 * When failing  the next dlclose in line is not found: -1, as for a bad handle.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/export.h"
#include "base/loaded_object.h"
#include "base/reentry_guard.h"
#include "gpu/real_cuda.h"
#include "hooks/hooks_new.h"
#include "python/python_runtime.h"
#include "sites/module_map.h"

typedef int dlclose_function(void *handle);

EXPORT int dlclose(void *handle);

static int
read_unload_count(struct dl_phdr_info *info, size_t bytes, void *context)
{
	if (bytes >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
		*(unsigned long long *)context = info->dlpi_subs;
	return 1; // the first object says it for all
}

static unsigned long long
unload_count(void)
{
	unsigned long long count = 0;

	(void)dl_iterate_phdr(read_unload_count, &count);
	return count;
}

EXPORT int
dlclose(void *handle)
{
	static _Atomic(dlclose_function *) real; // relaxed: every thread finds the same one
	dlclose_function *next = atomic_load_explicit(&real, memory_order_relaxed);

	if (next == NULL) {
		next = (dlclose_function *)dlsym(RTLD_NEXT, "dlclose");
		if (next == NULL)
			return -1;
		atomic_store_explicit(&real, next, memory_order_relaxed);
	}

	if (reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK)) {
		python_runtime_pin();
		reentry_guard_leave();
	}

	unsigned long long before = unload_count();
	int result = next(handle);

	if (unload_count() != before) {
		bool was_outside = reentry_guard_enter();

		loaded_object_unloaded();
		module_map_unloaded_check();
		real_cuda_unloaded();
		hooks_new_unloaded();
		if (was_outside)
			reentry_guard_leave();
	}
	return result;
}
