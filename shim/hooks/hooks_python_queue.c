/*
 * hooks_python_queue.c - which line's work does a thread of a pool do?
 *
 * concurrent.futures, asyncio's executors and multiprocessing.pool.ThreadPool hand work to their threads through queue.SimpleQueue,
 * which is written in C. Its methods are found through the descriptors of its type. Each descriptor leads to a PyMethodDef, which only
 * we change; the function in it is called each time. Our functions are put there: they note the item and go on to the interpreter's own.
 * No Python code runs for this, and nothing is done where nothing goes through such a queue.
 *
 * When: a pool makes its queue before its threads. So the queue is looked for in pthread_create(), in a thread that holds the
 * interpreter's lock: no allocator is at work there, and the interpreter's functions may be called.
 *
 * When failing  (another interpreter, another kind of method, a table that may not be written) nothing is noted.
 * Not chosen  a wrapper of the class of work items: its objects are made by special instructions from 3.13 on, which call no slot.
 *             queue.Queue, which is written in Python: nothing below its lines tells what it does.
 */
#include "hooks/hooks_python_queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/raw_sys.h"
#include "base/reentry_guard.h"
#include "base/tail_call.h"
#include "base/turn.h"
#include "python/python_frames.h"
#include "python/python_memory.h"
#include "python/python_runtime.h"
#include "record/tracker.h"
#include "sites/work_items.h"

/* Of Python's headers. */
#define METH_O 0x08
#define METH_FASTCALL_KEYWORDS 0x82
#define METH_METHOD_FASTCALL_KEYWORDS 0x282

/* For all calling conventions: all arguments are in registers, and are passed on. */
typedef void *method_function(void *self, void *b, void *c, void *d, void *e, void *f);

struct method {
	const char *name;
	_Atomic(method_function *) function;
	int flags;
	const char *text;
};

enum { PUT, PUT_NOWAIT, GET, GET_NOWAIT, METHODS };

static method_function *inner[METHODS]; // constant once ours is in its place
static int flags[METHODS];

/* ---- what goes through ---- */

static void
note_put(int convention, void *b, void *c, void *d)
{
	void *const *arguments = convention == METH_METHOD_FASTCALL_KEYWORDS ? c : b;
	size_t count = (size_t)(convention == METH_METHOD_FASTCALL_KEYWORDS ? d : c);
	const void *item = convention == METH_O ? b : count != 0 ? arguments[0] : NULL;
	int host_errno = errno;

	if (item != NULL && tracker_is_on() && reentry_guard_enter()) {
		work_items_put(item);
		reentry_guard_leave();
	}
	errno = host_errno;
}

static void *
note_got(void *item)
{
	int host_errno = errno;

	if (item != NULL && tracker_is_on() && reentry_guard_enter()) {
		work_items_got(item);
		reentry_guard_leave();
	}
	errno = host_errno;
	return item;
}

static TAIL_CALLER void *
put(void *self, void *b, void *c, void *d, void *e, void *f)
{
	note_put(flags[PUT], b, c, d);
	TAIL_RETURN inner[PUT](self, b, c, d, e, f);
}

static TAIL_CALLER void *
put_nowait(void *self, void *b, void *c, void *d, void *e, void *f)
{
	note_put(flags[PUT_NOWAIT], b, c, d);
	TAIL_RETURN inner[PUT_NOWAIT](self, b, c, d, e, f);
}

static void *
get(void *self, void *b, void *c, void *d, void *e, void *f)
{
	return note_got(inner[GET](self, b, c, d, e, f));
}

static void *
get_nowait(void *self, void *b, void *c, void *d, void *e, void *f)
{
	return note_got(inner[GET_NOWAIT](self, b, c, d, e, f));
}

/* ---- installation ---- */

static const struct {
	const char *name;
	method_function *function;
	bool is_put;
} methods[METHODS] = {
	[PUT] = { "put", put, true },
	[PUT_NOWAIT] = { "put_nowait", put_nowait, true },
	[GET] = { "get", get, false },
	[GET_NOWAIT] = { "get_nowait", get_nowait, false },
};

/* Writes what is there already: the kernel refuses where writing is not allowed. */
static bool
may_be_written(const void *addr)
{
	uint64_t word = python_memory_u64((uint64_t)addr);
	struct iovec here = { &word, sizeof(word) };
	struct iovec there = { (void *)(uintptr_t)addr, sizeof(word) };

	return raw_sys_may_call() &&
	       raw_syscall(SYS_process_vm_writev, raw_syscall(SYS_getpid), &here, 1L, &there, 1L, 0L) == (long)sizeof(word);
}

/* The descriptor has its object's head, type, name and qualified name; then this pointer. */
static struct method *
definition_of(const void *descriptor)
{
	const struct python_layout *layout = &python_runtime.interpreter.layout;

	return (struct method *)(uintptr_t)python_memory_u64((uint64_t)descriptor + layout->object_type + 8 + 24);
}

static bool
is_a(const void *object, uint64_t type)
{
	return object != NULL &&
	       python_memory_u64((uint64_t)object + python_runtime.interpreter.layout.object_type) == type;
}

static void
put_in(unsigned number, const void *descriptor)
{
	if (!is_a(descriptor, python_runtime.objects.method_descriptor))
		return;

	struct method *method = definition_of(descriptor);
	bool is_known = method->flags == METH_FASTCALL_KEYWORDS || method->flags == METH_METHOD_FASTCALL_KEYWORDS ||
	                method->flags == METH_O || !methods[number].is_put;

	if (!is_known || strcmp(method->name, methods[number].name) != 0 || !may_be_written(&method->function))
		return;
	flags[number] = method->flags;
	inner[number] = atomic_load_explicit(&method->function, memory_order_relaxed);
	/* release: the function to go on to. Its caller loads it as plain C, which on x86-64 is an acquire. */
	atomic_store_explicit(&method->function, methods[number].function, memory_order_release);
}

/* False: the module is not there, or not yet (a module that is loaded at its first use is of another type). No error is left behind. */
static bool
install(const struct python_objects *objects)
{
	void *module = objects->item(objects->modules(), "_queue");
	void *type = is_a(module, objects->module) ? objects->attribute(module, "SimpleQueue") : NULL;

	if (!is_a(module, objects->module))
		return false;
	for (unsigned i = 0; type != NULL && i < METHODS; i++) {
		void *descriptor = objects->attribute(type, methods[i].name);

		if (descriptor == NULL)
			break;
		put_in(i, descriptor);
		objects->release(descriptor);
	}
	if (objects->has_error() != NULL)
		objects->clear_error();
	if (type != NULL)
		objects->release(type);
	return true;
}

static bool
may_ask(const struct python_objects *objects)
{
	bool is_attached = false;

	if (!python_frames_available() || python_runtime_is_finalizing() || !objects->is_complete || !tracker_is_on() ||
	    !reentry_guard_enter())
		return false;
	is_attached = python_frames_is_attached();
	reentry_guard_leave();
	return is_attached && objects->has_error() == NULL;
}

void
hooks_python_queue_look(void)
{
	static struct turn installing;
	static bool is_done; // under it
	int host_errno = errno;

	if (may_ask(&python_runtime.objects) && turn_take(&installing)) {
		if (!is_done)
			is_done = install(&python_runtime.objects);
		turn_give(&installing);
	}
	errno = host_errno;
}
