/*
 * hooks_dlclose.c - dlclose(): what was unloaded must not lend its addresses to what comes next.
 *
 * Most calls unload nothing. Where the object of the handle stays, all else does, but for objects that waited for a thread to end which had
 * values of theirs: so each part of ours asks for what it knows.
 *
 * Context     Not inside the reentry guard: destructors that run here belong to the program.
 * Safe from   where dlclose itself is.
 * When failing  the next dlclose in line is not found: -1, as for a bad handle. A handle that is not known: something was unloaded.
 * Not chosen  the count of unloaded objects that dl_iterate_phdr() tells: it takes the loader's lock.
 */
#include <dlfcn.h>
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

	struct loaded_object object;
	bool is_known = loaded_object_of_handle(handle, &object);
	int result = next(handle);
	bool was_outside = reentry_guard_enter();

	bool is_gone = !is_known || loaded_object_was_closed(&object);

	if (is_gone)
		loaded_object_unloaded();
	if (module_map_unloaded_check(is_gone))
		real_cuda_unloaded();
	hooks_new_unloaded();
	if (was_outside)
		reentry_guard_leave();
	return result;
}
