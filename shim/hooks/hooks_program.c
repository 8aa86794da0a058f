/*
 * hooks_program.c - what a program says about itself: steps, marks, snapshots, phases (include/kmemshim.h).
 *
 * Safe from   anywhere, signal handlers too; errno is kept. Inside a hook of the same thread nothing is done.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/export.h"
#include "base/reentry_guard.h"
#include "base/thread_stack.h"
#include "moments/marks.h"
#include "moments/phases.h"
#include "periodic/launcher_pipe.h"
#include "periodic/memory_guard.h"
#include "record/tracker.h"
#include "sites/steps.h"
#include "sites/thread_slot.h"

EXPORT void kmemshim_recorder_step(void);
EXPORT void kmemshim_recorder_mark(const char *name);
EXPORT void kmemshim_recorder_snapshot(const char *name);
EXPORT size_t kmemshim_recorder_phase(void *out, size_t bytes);
EXPORT unsigned kmemshim_recorder_guard(uint64_t bytes[3]);
EXPORT size_t kmemshim_recorder_usage(void *out, size_t bytes);
EXPORT void kmemshim_recorder_let_look(unsigned long pid);

static inline __attribute__((always_inline)) bool
enter(void)
{
	if (!tracker_is_on() || !reentry_guard_enter())
		return false;
	if (thread_stack_has_room())
		return true;
	reentry_guard_leave();
	return false;
}

EXPORT void
kmemshim_recorder_step(void)
{
	int host_errno = errno;

	if (enter()) {
		steps_next();
		reentry_guard_leave();
	}
	errno = host_errno;
}

EXPORT void
kmemshim_recorder_mark(const char *name)
{
	int host_errno = errno;

	if (name != NULL && enter()) {
		marks_note(KMEM_MARK_PROGRAM, name);
		reentry_guard_leave();
	}
	errno = host_errno;
}

EXPORT void
kmemshim_recorder_snapshot(const char *name)
{
	int host_errno = errno;

	if (enter()) {
		marks_snapshot(KMEM_MARK_PROGRAM, name != NULL ? name : "");
		reentry_guard_leave();
	}
	errno = host_errno;
}

/* Returns how many bytes of `out` were filled in: 0 = the program is not recorded, or another thread is filling. */
static size_t
fill(void *out, size_t bytes, bool begins)
{
	struct phases_row rows[KMEM_DOMAINS_MAX];
	int host_errno = errno;
	size_t filled = 0;

	if (enter()) {
		struct thread_slot *slot = thread_slot_here();
		struct peak_batch *heap = slot != NULL ? &slot->heap : NULL;
		bool is_filled = true;

		if (begins)
			is_filled = phases_next(heap, rows);
		else
			phases_look(heap, rows);
		if (is_filled)
			filled = bytes < sizeof(rows) ? bytes / sizeof(rows[0]) * sizeof(rows[0]) : sizeof(rows);
		reentry_guard_leave();
	}
	if (out != NULL)
		memcpy(out, rows, filled);
	errno = host_errno;
	return filled;
}

EXPORT size_t
kmemshim_recorder_phase(void *out, size_t bytes)
{
	return fill(out, bytes, true);
}

EXPORT size_t
kmemshim_recorder_usage(void *out, size_t bytes)
{
	return fill(out, bytes, false);
}

/* For the notebook: how often the guard was passed. bytes: of the last time, what was in use, the guard, and the limit. */
EXPORT unsigned
kmemshim_recorder_guard(uint64_t bytes[3])
{
	int host_errno = errno;
	unsigned passings = 0;

	if (enter()) {
		passings = memory_guard_passings(bytes);
		reentry_guard_leave();
	}
	errno = host_errno;
	return passings;
}

/* For kmemshim.holders(): the command of this pid may look at the program; 0: it has looked. */
EXPORT void
kmemshim_recorder_let_look(unsigned long pid)
{
	int host_errno = errno;

	if (enter()) {
		launcher_pipe_let_look(pid);
		reentry_guard_leave();
	}
	errno = host_errno;
}
