/*
 * hooks_python.c - small objects of Python, and the arenas they live in.
 *
 * The interpreter serves requests of up to 512 bytes from arenas that it maps: malloc sees none of them. Two things are put
 * into its tables of allocators, by its own functions:
 *
 *   arenas    always: a function that marks the mapping while it is made (REENTRY_GUARD_PYTHON), so that it is booked as an
 *             arena and not on the line that made the arenas grow.
 *   objects   with KMEMSHIM_PYTHON_OBJECTS=1, and by itself where malloc sees nothing at all (mimalloc, which free-threaded
 *             interpreters use): wrappers of the domains MEM and OBJ. Each request is one event of the heap, whatever the
 *             interpreter's allocator does for it; a malloc or a mapping that it makes meanwhile is part of that event.
 *             RAW is malloc, and is called without the lock: it is left alone.
 *
 * When the wrappers are installed: at the first walk of a thread that holds the lock and has a Python frame. Earlier the interpreter
 * may still reset its tables (PYTHONMALLOC, -X dev), and nobody else can be reading them. Blocks from before are unknown to
 * the map: they are passed on without that bit, so that the malloc hooks book what they always booked.
 *
 * A wrapper runs no Python code, allocates nothing, and keeps errno. It asks for 17 bytes at least: the classes of blocks
 * closer together than 32 bytes stay unused, for over glibc the pointer map has no more than a word for each 32 bytes. The program may
 * have more than it asked for, and more words would cost as much.
 *
 * What the interpreter keeps in its free lists does not come here again: an object that is taken out of one stays with the line for
 * which it was first made. Such a list has at most 2,000 tuples of each length up to 20, 80 dictionaries and as many tables
 * of theirs, 80 lists, 100 floats, and up to 255 of kinds that few programs make; but where one line fills it and another empties it, all that
 * the other keeps is booked at the first. No version offers to switch them off: the lists lie
 * in structures of the interpreter whose offsets _Py_DebugOffsets does not say and which move between releases; up to 3.13 their
 * counters are indexes into arrays, and where -1 means "disabled" (3.14) debug builds stop when such a list is not empty.
 *
 * Others wrap the same tables. Debug hooks and tracemalloc, above our wrappers or below them, change nothing. But another wrapper that
 * was installed before ours and is removed after them takes ours out, too. So we check from time to time whether our wrappers are there
 * or were called. If not, they are installed once more, as a new layer. A wrapper below still calls the old layer, which passes on
 * everything that comes from a wrapper. An interpreter that is initialised once more has its first tables again (from 3.12 on): there the
 * old layer is put in again.
 *
 * Invariants, tested in tests/python/test_objects.py:
 *   O1  a block is booked once: by the outermost wrapper, or by the malloc hooks.
 *   O2  a layer never changes once the interpreter has it.
 *   O3  the tables are written only while no other thread may read them: under the lock, or (free-threaded) by the first thread with a
 *       Python frame, later by the only thread.
 */
#include "hooks/hooks_python.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/raw_sys.h"
#include "base/reentry_guard.h"
#include "base/settings.h"
#include "base/tail_call.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "hooks/hooks_python_sample.h"
#include "periodic/object_census.h"
#include "python/python_frames.h"
#include "python/python_runtime.h"
#include "record/heap_samples.h"
#include "record/tracker.h"
#include "sites/thread_slot.h"
#include "tables/pointer_map.h"

#define HERE __builtin_frame_address(0)
#define RARE __attribute__((noinline, cold))
#define LAYERS_MAX 16
#define WALKS_PER_LOOK 256
#define REFUSALS_MAX 4                      // a thread that is joined is not quite gone
#define ARENA_BYTES_MIN ((size_t)256 << 10) // smaller ones hold frames of Python: the line that calls so deep
#define BYTES_MIN ((size_t)17)              // see above

struct layer {
	struct python_allocator inner;
	uint8_t object_bit; // for tracker.h
};

static struct layer layers[LAYERS_MAX];
static unsigned layer_count; // under the turn
static struct turn looking;
enum { NOT_SETTLED, NOT_WANTED, INSTALLED, SAMPLED };
static _Atomic int state; // written under the turn; relaxed: who reads it late comes once more

/* ---- events ---- */

static RARE bool
wake(void)
{
	return tracker_is_on();
}

/* Is this call to be tracked? Then the guard is held, and events from below are part of it. */
static inline __attribute__((always_inline)) bool
enter(void)
{
	return (__builtin_expect(tracker_is_awake(), 1) || wake()) && reentry_guard_enter_as(REENTRY_GUARD_PYTHON);
}

static inline size_t
room_for(size_t bytes)
{
	return bytes < BYTES_MIN ? BYTES_MIN : bytes;
}

static inline const void *
tagged(const void *hook_frame)
{
	return (const void *)((uintptr_t)hook_frame | TRACKER_FRAME_PYTHON);
}

static RARE void
note_failed(const void *hook_frame, size_t bytes)
{
	int host_errno = errno;

	tracker_failed(tagged(hook_frame), KMEM_DOMAIN_HEAP, bytes, ENOMEM);
	errno = host_errno;
}

/* After the real call: from here on a signal handler's event counts as lost again. */
static inline void *
leave_allocated(const void *hook_frame, uint8_t object_bit, void *addr, size_t bytes)
{
	reentry_guard_change(REENTRY_GUARD_HOOK);
	if (__builtin_expect(addr != NULL, 1))
		tracker_allocated_python(hook_frame, object_bit, addr, bytes);
	else
		note_failed(hook_frame, bytes);
	reentry_guard_leave();
	return addr;
}

static inline __attribute__((always_inline)) void *
allocate(const struct layer *layer, const void *hook_frame, uint8_t object_bit, size_t bytes)
{
	if (heap_samples_passes(bytes) || __builtin_expect(!enter(), 0))
		return layer->inner.malloc(layer->inner.context, bytes);
	return leave_allocated(hook_frame, object_bit, layer->inner.malloc(layer->inner.context, room_for(bytes)), bytes);
}

/* This function and the one for free do all their usual work in one function each; the others share the tracker's. */
static __attribute__((flatten)) void *
object_malloc(void *context, size_t bytes)
{
	return allocate(context, HERE, POINTER_MAP_OBJECT, bytes);
}

static void *
memory_malloc(void *context, size_t bytes)
{
	return allocate(context, HERE, 0, bytes);
}

static void *
object_calloc(void *context, size_t count, size_t bytes)
{
	const struct layer *layer = context;
	size_t total;

	if (__builtin_mul_overflow(count, bytes, &total) || heap_samples_passes(total) || !enter())
		return layer->inner.calloc(layer->inner.context, count, bytes);
	return leave_allocated(HERE, layer->object_bit, layer->inner.calloc(layer->inner.context, 1, room_for(total)),
	                       total);
}

/* Takes the block out of the live map (R1); false when it is not in it. */
static inline bool
take(void *addr, struct live_block *block)
{
	struct address_block found;

	if (!pointer_map_take(addr, &found))
		return false;
	heap_samples_forget(addr);
	*block = (struct live_block){ addr, found.bytes, found.site, found.generation };
	return true;
}

static void *
object_realloc(void *context, void *old, size_t bytes)
{
	const struct layer *layer = context;
	struct live_block block = { 0 };
	bool is_seen = !heap_samples_passes(bytes);

	if ((!is_seen && (old == NULL || heap_samples_is_unseen(old))) || !enter())
		return layer->inner.realloc(layer->inner.context, old, bytes);
	if (old != NULL && !take(old, &block) && heap_samples_limit() == 0) {
		reentry_guard_leave();
		return layer->inner.realloc(layer->inner.context, old, bytes);
	}
	void *fresh = layer->inner.realloc(layer->inner.context, old, room_for(bytes));
	if (old == NULL)
		return leave_allocated(HERE, layer->object_bit, fresh, bytes);
	int host_errno = errno;

	reentry_guard_change(REENTRY_GUARD_HOOK);
	if (fresh != NULL && !is_seen) {
		tracker_released(block);
	} else if (fresh != NULL) {
		tracker_resized_python(HERE, layer->object_bit, block, fresh, bytes);
	} else {
		block.generation |= layer->object_bit; // taking it out has lost it
		tracker_put_back(block);
		tracker_failed(tagged(HERE), KMEM_DOMAIN_HEAP, bytes, ENOMEM);
	}
	reentry_guard_leave();
	errno = host_errno;
	return fresh;
}

/* Nothing of the release is booked yet, and the guard is held. */
static RARE void
free_slow(const struct layer *layer, void *addr)
{
	int host_errno = errno;
	struct live_block block;

	if (addr != NULL && take(addr, &block)) {
		tracker_released(block);
		errno = host_errno;
		layer->inner.free(layer->inner.context, addr);
		if (tracker_has_fallen())
			tracker_look_after_release();
		reentry_guard_leave();
	} else {
		reentry_guard_leave();
		errno = host_errno;
		layer->inner.free(layer->inner.context, addr);
	}
}

static __attribute__((flatten)) void
object_free(void *context, void *addr)
{
	const struct layer *layer = context;

	if (heap_samples_is_unseen(addr) || __builtin_expect(!enter(), 0)) {
		layer->inner.free(layer->inner.context, addr);
	} else if (__builtin_expect(tracker_freed_fast(addr), 1)) {
		layer->inner.free(layer->inner.context, addr);
		reentry_guard_leave();
	} else {
		free_slow(layer, addr);
	}
}

/* ---- objects ---- */

/* Puts a layer of ours on top of a domain's allocator, unless one is there, or is called by what is there. */
static bool
cover(enum python_allocator_domain domain)
{
	uint8_t object_bit = domain == PYTHON_ALLOCATOR_OBJ ? POINTER_MAP_OBJECT : 0;
	struct python_allocator top;

	python_runtime.allocators.get((int)domain, &top);
	if (top.free == object_free)
		return true;
	struct layer *layer = layers; // the same one as before, where the tables are as they were then

	while (layer < layers + layer_count &&
	       (layer->object_bit != object_bit || !python_allocator_is(&layer->inner, &top)))
		layer++;
	if (layer == layers + LAYERS_MAX)
		return false;
	if (layer == layers + layer_count) {
		layer_count++;
		*layer = (struct layer){ .inner = top, .object_bit = object_bit };
	}
	atomic_signal_fence(memory_order_seq_cst); // O2; other threads need the lock to see it
	python_runtime.allocators.set(
		(int)domain, &(struct python_allocator){ layer, layer->object_bit != 0 ? object_malloc : memory_malloc,
	                                             object_calloc, object_realloc, object_free });
	return true;
}

static bool
is_on_top(enum python_allocator_domain domain)
{
	struct python_allocator top;

	python_runtime.allocators.get((int)domain, &top);
	return top.free == object_free;
}

static void
become(int next)
{
	atomic_store_explicit(&state, next, memory_order_relaxed);
}

static void
install(void)
{
	if (!cover(PYTHON_ALLOCATOR_MEM) || !cover(PYTHON_ALLOCATOR_OBJ)) {
		capture_file_note(
			"small Python objects are not recorded any more: the allocators are replaced again and again");
		become(NOT_WANTED);
		return;
	}
	become(INSTALLED);
	object_census_begin(OBJECT_CENSUS_ALL);
}

/* Is the allocator one whose requests malloc does not see? */
static bool
is_malloc_blind(void)
{
	const char *name = python_runtime.allocators.name != NULL ? python_runtime.allocators.name() : NULL;

	return name != NULL && strncmp(name, "mimalloc", 8) == 0;
}

static void
settle(void)
{
	const struct python_allocators *allocators = &python_runtime.allocators;

	become(NOT_WANTED);
	if (settings.python_objects == SETTINGS_OFF)
		return;
	if (settings.python_objects == SETTINGS_AUTO && !is_malloc_blind()) {
		if (hooks_python_sample_start(allocators)) {
			become(SAMPLED);
			object_census_begin(OBJECT_CENSUS_SAMPLES);
		}
		return;
	}
	if (allocators->get == NULL || allocators->set == NULL)
		capture_file_note(
			"small Python objects are not recorded: this interpreter does not export PyMem_GetAllocator and "
			"PyMem_SetAllocator");
	else
		install();
}

/* Is this the only thread? Then it stays the only one, because no other can start one meanwhile. False also when it is not known. */
static bool
is_only_thread(void)
{
	struct stat status;

	return raw_sys_may_call() && raw_stat("/proc/self/task", &status) == 0 &&
	       status.st_nlink == 3; // a link for each thread, and the two of a folder
}

/* Were the wrappers taken out? A domain that was not used for so long is covered once more, which does no harm. */
static void
look_again(void)
{
	static unsigned refusals;

	if (thread_slot_current != NULL && python_frames_were_attached(&thread_slot_current->events.chain))
		return;
	if (is_on_top(PYTHON_ALLOCATOR_MEM) && is_on_top(PYTHON_ALLOCATOR_OBJ))
		return;
	if (python_runtime.interpreter.layout.is_free_threaded && !is_only_thread()) { // O3
		if (++refusals < REFUSALS_MAX)
			return;
		capture_file_note(
			"small Python objects are not recorded any more: their allocators were replaced while threads run");
		become(NOT_WANTED);
		return;
	}
	install();
}

/* Where the wrappers of samples were taken out, arenas are recorded as before. */
static void
look_at_samples(void)
{
	if (!hooks_python_sample_stays(&python_runtime.allocators))
		capture_file_note(
			"small Python objects have lines only until the program, or a tool in it, replaced the interpreter's "
			"allocators");
}

/* ---- arenas ---- */

static struct python_arena_allocator arenas; // the interpreter's own
static _Atomic bool has_ended;               // relaxed: who reads it late comes once more

static __attribute__((noinline)) void *
allocate_marked(void *context, size_t bytes)
{
	bool is_entered = reentry_guard_enter_as(REENTRY_GUARD_PYTHON);
	void *addr = arenas.allocate(context, bytes);

	if (is_entered)
		reentry_guard_leave();
	return addr;
}

/* Goes on by jumps: the stack of a small allocation has only frames of the program. */
static TAIL_CALLER void *
allocate_arena(void *context, size_t bytes)
{
	if (bytes < ARENA_BYTES_MIN)
		TAIL_RETURN arenas.allocate(context, bytes);
	TAIL_RETURN allocate_marked(context, bytes);
}

/*
 * Only one word of three changes: a thread that reads them meanwhile may see any mixture. Done once more when the words are as they were
 * found. Where another wrapper's words are there, it may call ours.
 */
static void
mark_arenas(void)
{
	const struct python_allocators *allocators = &python_runtime.allocators;
	struct python_arena_allocator top;

	if (allocators->get_arena == NULL || allocators->set_arena == NULL)
		return;
	allocators->get_arena(&top);
	if (arenas.allocate == NULL)
		arenas = top;
	if (top.context != arenas.context || top.allocate != arenas.allocate || top.free != arenas.free)
		return;
	top.allocate = allocate_arena;
	allocators->set_arena(&top);
}

/* ---- beginnings ---- */

bool
hooks_python_records_objects(void)
{
	int now = atomic_load_explicit(&state, memory_order_relaxed);

	return now == INSTALLED || (now == NOT_SETTLED && settings.python_objects == SETTINGS_ON);
}

void
hooks_python_start(void)
{
	if (python_frames_available())
		mark_arenas();
}

/* See object_census_forked(). A layer that was being put in place is completed by the next look. */
void
hooks_python_forked(void)
{
	hooks_python_sample_forked();
}

void
hooks_python_ends(void)
{
	atomic_store_explicit(&has_ended, true, memory_order_relaxed);
}

/*
 * Inside the guard. The interpreter's functions that are called copy a few words, from 3.12 on under a lock that no thread holds for
 * longer, and never across an allocation.
 */
void
hooks_python_arrived(void)
{
	bool is_new = atomic_load_explicit(&has_ended, memory_order_relaxed) && !python_runtime_is_finalizing();

	if ((atomic_load_explicit(&state, memory_order_relaxed) == NOT_WANTED && !is_new) || !python_frames_is_attached() ||
	    !turn_take(&looking))
		return;
	static unsigned walks;
	bool is_due = is_new || state == NOT_SETTLED || ++walks % WALKS_PER_LOOK == 0;

	if (is_new)
		atomic_store_explicit(&has_ended, false, memory_order_relaxed);
	if (is_due)
		mark_arenas(); // of an interpreter that came late, or once more
	if (state == NOT_SETTLED) {
		settle();
		heap_samples_start(settings.sample_bytes); // now that the objects' allocators are known
	} else if (is_due && state == INSTALLED) {
		look_again();
	} else if (is_due && state == SAMPLED) {
		look_at_samples();
	}
	turn_give(&looking);
}
