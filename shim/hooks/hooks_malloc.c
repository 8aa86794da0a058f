/*
 * hooks_malloc.c - the malloc family, and operator new of allocators. Exported names, no logic: guard, real call, tracker, errno.
 *
 * Every hook hands its own frame address on: the stack of the call site begins above it.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/boot_arena.h"
#include "base/export.h"
#include "base/real_libc.h"
#include "base/reentry_guard.h"
#include "base/tail_call.h"
#include "capture/capture_file.h"
#include "hooks/hooks_new.h"
#include "hooks/hooks_python_sample.h"
#include "moments/failed_requests.h"
#include "record/heap_samples.h"
#include "record/tracker.h"
#include "tables/pointer_map.h"

#define HERE __builtin_frame_address(0)
#define RARE __attribute__((noinline, cold))

/* What becomes of a call: tracked (then the guard is held), passed on, or served without the real functions. */
enum entry { ENTRY_TRACKED, ENTRY_PLAIN, ENTRY_BOOT };

static RARE enum entry
enter_unawake(uint64_t hook_frame)
{
	int host_errno = errno;
	enum entry entry = ENTRY_PLAIN;

	if (!real_libc_find())
		entry = ENTRY_BOOT;
	else if (tracker_is_on() && (reentry_guard_leave_new(), reentry_guard_enter_at(REENTRY_GUARD_HOOK, hook_frame)))
		entry = ENTRY_TRACKED;
	else if (tracker_is_on() && reentry_guard_is(REENTRY_GUARD_HOOK))
		capture_file_lost(KMEM_LOST_REENTRANT, 1);
	errno = host_errno;
	return entry;
}

/* A part of an event: jemalloc's operator delete calls free. Else it is to be found out. */
static RARE enum entry
enter_slow(uint64_t hook_frame)
{
	return tracker_is_awake() && reentry_guard_is_below(REENTRY_GUARD_OWN_WORK, hook_frame) ? ENTRY_PLAIN
	                                                                                        : enter_unawake(hook_frame);
}

/* Recording starts when the real functions are found: where it is on they are there. */
static inline __attribute__((always_inline)) enum entry
enter(void)
{
	return __builtin_expect(tracker_is_awake() && reentry_guard_enter(), 1) ? ENTRY_TRACKED
	                                                                        : enter_slow((uintptr_t)HERE);
}

static RARE void
note_failed(const void *hook_frame, size_t bytes, int error)
{
	int host_errno = errno;

	if (error != EINVAL) // a wrong alignment, no lack of memory
		tracker_failed(hook_frame, KMEM_DOMAIN_HEAP, bytes, error);
	errno = host_errno;
}

/* After the real call: books the result and leaves the guard. errno stays as the real call set it. */
static inline void *
leave_allocated(const void *hook_frame, void *addr, size_t bytes)
{
	if (__builtin_expect(addr != NULL, 1))
		tracker_allocated(hook_frame, addr, bytes);
	else if (bytes != 0)
		note_failed(hook_frame, bytes, errno);
	reentry_guard_leave();
	return addr;
}

/* For a request that would pass the guard. */
static RARE void *
refuse(const void *hook_frame, size_t bytes)
{
	tracker_refused_by_guard(hook_frame, bytes);
	reentry_guard_leave();
	errno = ENOMEM;
	return NULL;
}

/* The result of a call that is not recorded on its own: it may be the block of a sampled object. */
static void *
untracked(void *addr, size_t bytes)
{
	return reentry_guard_is(REENTRY_GUARD_SAMPLE) ? hooks_python_sample_served(addr, bytes) : addr;
}

static RARE void *
allocate_untracked(enum entry entry, size_t bytes)
{
	return entry == ENTRY_BOOT ? boot_arena_allocate(0, bytes) : untracked(real_libc.malloc(bytes), bytes);
}

/* ---- blocks that are not in the sample (record/heap_samples.h) ---- */

/* Nothing is left to do but the real call. */
static inline __attribute__((always_inline)) bool
is_unseen(void *addr)
{
	return heap_samples_is_unseen(addr) && !boot_arena_serves(addr);
}

static RARE void
note_unseen_failed(const void *hook_frame, size_t bytes)
{
	int host_errno = errno;

	if (bytes != 0 && tracker_is_on() && reentry_guard_enter_at(REENTRY_GUARD_HOOK, (uintptr_t)hook_frame)) {
		note_failed(hook_frame, bytes, host_errno);
		reentry_guard_leave();
	}
	errno = host_errno;
}

/* After the real call. */
static inline __attribute__((always_inline)) void *
unseen(const void *hook_frame, void *addr, size_t bytes)
{
	if (__builtin_expect(addr == NULL, 0))
		note_unseen_failed(hook_frame, bytes);
	return addr;
}

/*
 * malloc and free do all their usual work in one function each; the other hooks share the tracker's. They go there by a jump: what is not
 * in the sample pays for no register that recording needs, and no frame lies between the hook and its caller.
 */
static __attribute__((flatten, noinline)) void *
malloc_seen(size_t bytes)
{
	enum entry entry = enter();

	if (__builtin_expect(entry != ENTRY_TRACKED, 0))
		return allocate_untracked(entry, bytes);
	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, 0))
		return refuse(HERE, bytes);
	return leave_allocated(HERE, real_libc.malloc(bytes), bytes);
}

EXPORT TAIL_CALLER void *
malloc(size_t bytes)
{
	if (heap_samples_passes(bytes))
		return unseen(HERE, real_libc.malloc(bytes), bytes);
	TAIL_RETURN malloc_seen(bytes);
}

EXPORT void *
calloc(size_t count, size_t bytes)
{
	size_t total;

	if (__builtin_mul_overflow(count, bytes, &total))
		total = SIZE_MAX; // the real one refuses it
	if (heap_samples_passes(total))
		return unseen(HERE, real_libc.calloc(count, bytes), total);
	enum entry entry = enter();

	if (__builtin_expect(entry != ENTRY_TRACKED, 0))
		return entry == ENTRY_BOOT ? boot_arena_allocate(0, total) : untracked(real_libc.calloc(count, bytes), total);
	if (!tracker_attempt(KMEM_DOMAIN_HEAP, total, 0))
		return refuse(HERE, total);
	return leave_allocated(HERE, real_libc.calloc(count, bytes), total);
}

/* A block of the boot arena grows into the real heap. */
static void *
realloc_from_boot(void *old, size_t bytes)
{
	size_t old_bytes = boot_arena_bytes(old);
	void *fresh = real_libc_find() ? real_libc.malloc(bytes) : boot_arena_allocate(0, bytes);

	if (fresh != NULL)
		memcpy(fresh, old, old_bytes < bytes ? old_bytes : bytes);
	return fresh;
}

/*
 * How many bytes of the old block count for the new one. glibc moves a block that is a mapping of its own (it begins 16 bytes into a
 * page) without copying it. Any other block may be copied, and then both exist for a moment.
 */
static size_t
bytes_reused(struct live_block block, size_t bytes)
{
	return bytes <= block.bytes || ((uintptr_t)block.addr & 4095) <= 16 ? block.bytes : 0;
}

/*
 * The old block leaves the live map before the real call: once that returns, another thread may own the address (R1). It
 * goes back only on failure.
 */
static void *
realloc_at(const void *hook_frame, void *old, size_t bytes)
{
	struct live_block block = tracker_take(old);

	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, bytes_reused(block, bytes))) {
		tracker_put_back(block);
		return refuse(hook_frame, bytes);
	}
	void *fresh = real_libc.realloc(old, bytes);
	int host_errno = errno;

	if (fresh == NULL && (bytes != 0 || old == NULL)) {
		tracker_put_back(block);
		tracker_failed(hook_frame, KMEM_DOMAIN_HEAP, bytes, host_errno);
	} else {
		tracker_resized(hook_frame, block, fresh, bytes); // fresh is NULL if bytes was 0: the block is gone
	}
	reentry_guard_leave();
	errno = host_errno;
	return fresh;
}

/*
 * A realloc inside the shim's own work. The block is known here in two cases, both while the interpreter's allocator is called: its
 * table of arenas, made before the allocator was wrapped, grows; or the block becomes a sample. Then the old block is released in the
 * books. The new one is booked by the event around this call.
 */
static RARE void *
realloc_untracked(void *old, size_t bytes)
{
	bool is_below = reentry_guard_is(REENTRY_GUARD_PYTHON) || reentry_guard_is(REENTRY_GUARD_SAMPLE);
	struct address_block known = { 0 };
	bool is_known = old != NULL && is_below && pointer_map_take(old, &known);
	if (is_known)
		heap_samples_forget(old);
	struct live_block block = { old, known.bytes, known.site, known.generation };
	void *fresh = real_libc.realloc(old, bytes);
	int host_errno = errno;

	if (is_known && fresh == NULL)
		tracker_put_back(block);
	else if (is_known)
		tracker_released(block);
	errno = host_errno;
	return untracked(fresh, bytes);
}

/* The same where a sample is recorded: the old block may be in it, or the new one, or both. */
static RARE void *
realloc_sampled(const void *hook_frame, void *old, size_t bytes)
{
	bool is_drawn = !heap_samples_passes(bytes);

	if (!is_drawn && (old == NULL || is_unseen(old)))
		return unseen(hook_frame, real_libc.realloc(old, bytes), bytes);
	if (enter_slow((uintptr_t)hook_frame) != ENTRY_TRACKED)
		return realloc_untracked(old, bytes);
	struct live_block block = tracker_take_sampled(old);

	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, bytes_reused(block, bytes))) {
		tracker_put_back(block);
		return refuse(hook_frame, bytes);
	}
	void *fresh = real_libc.realloc(old, bytes);
	int host_errno = errno;

	if (fresh == NULL && bytes != 0) {
		tracker_put_back(block);
		tracker_failed(hook_frame, KMEM_DOMAIN_HEAP, bytes, host_errno);
	} else {
		tracker_resized_sampled(hook_frame, block, fresh, bytes, is_drawn);
	}
	reentry_guard_leave();
	errno = host_errno;
	return fresh;
}

static inline __attribute__((always_inline)) void *
resize(void *old, size_t bytes)
{
	if (__builtin_expect(heap_samples_limit() != 0, 0))
		return realloc_sampled(HERE, old, bytes);
	enum entry entry = enter();

	if (__builtin_expect(entry != ENTRY_TRACKED, 0))
		return entry == ENTRY_BOOT ? boot_arena_allocate(0, bytes) : realloc_untracked(old, bytes);
	return realloc_at(HERE, old, bytes);
}

EXPORT void *
realloc(void *old, size_t bytes)
{
	if (boot_arena_serves(old))
		return realloc_from_boot(old, bytes);
	return resize(old, bytes);
}

EXPORT void *
reallocarray(void *old, size_t count, size_t bytes)
{
	size_t total;

	if (__builtin_mul_overflow(count, bytes, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	if (boot_arena_serves(old))
		return realloc_from_boot(old, total);
	if (real_libc_find() && real_libc_front.realloc != NULL)
		return real_libc_front.realloc(old, total);
	return resize(old, total);
}

/*
 * What is left to do for a release: nothing; the real call; the real call, then leaving the guard (R2); or the same, then asking whether
 * a heartbeat is due because much was released.
 */
enum release { RELEASE_NOTHING, RELEASE_PLAIN, RELEASE_GUARDED, RELEASE_LOOK };

static RARE enum release
release_tracked(const void *hook_frame, void *addr)
{
	int host_errno = errno;

	if (boot_arena_serves(addr)) {
		reentry_guard_leave();
		return RELEASE_NOTHING;
	}
	tracker_freed(hook_frame, addr);
	errno = host_errno;
	return tracker_has_fallen() ? RELEASE_LOOK : RELEASE_GUARDED;
}

static RARE enum release
release_slow(enum entry entry, void *addr)
{
	/* The hook's frame, which called us: read here, so that the hook need not pass it. */
	if (entry == ENTRY_TRACKED)
		return release_tracked(*(const void *const *)HERE, addr);
	return entry == ENTRY_BOOT || boot_arena_serves(addr) ? RELEASE_NOTHING : RELEASE_PLAIN;
}

static RARE void
look_after_release(void)
{
	reentry_guard_change(REENTRY_GUARD_HOOK);
	tracker_look_after_release();
	reentry_guard_leave();
}

static inline __attribute__((always_inline)) enum release
release_begin(void *addr)
{
	if (addr == NULL)
		return RELEASE_NOTHING;
	enum entry entry = enter();

	return __builtin_expect(entry == ENTRY_TRACKED && tracker_freed_fast(addr), 1) ? RELEASE_GUARDED
	                                                                               : release_slow(entry, addr);
}

static inline void
release_end(enum release release)
{
	if (release == RELEASE_GUARDED)
		reentry_guard_leave();
	else if (release == RELEASE_LOOK)
		look_after_release();
}

static __attribute__((flatten, noinline)) void
free_seen(void *addr)
{
	enum release release = release_begin(addr);

	if (release != RELEASE_NOTHING)
		real_libc.free(addr);
	release_end(release);
}

EXPORT TAIL_CALLER void
free(void *addr)
{
	if (is_unseen(addr))
		TAIL_RETURN real_libc.free(addr);
	TAIL_RETURN free_seen(addr);
}

EXPORT void cfree(void *addr);

EXPORT void
cfree(void *addr)
{
	free(addr);
}

/* An allocator that comes before ours releases its own blocks. False: there is none, and nothing was done. */
static bool
forward_to_preceding_allocator(void *addr)
{
	if (!real_libc_find() || real_libc_front.free == NULL || boot_arena_serves(addr))
		return false;
	real_libc_front.free(addr);
	return true;
}

EXPORT void free_sized(void *addr, size_t bytes);

EXPORT void
free_sized(void *addr, size_t bytes)
{
	if (forward_to_preceding_allocator(addr))
		return;
	enum release release = is_unseen(addr) ? RELEASE_PLAIN : release_begin(addr);

	if (release != RELEASE_NOTHING && real_libc.free_sized != NULL)
		real_libc.free_sized(addr, bytes);
	else if (release != RELEASE_NOTHING)
		real_libc.free(addr);
	release_end(release);
}

EXPORT void free_aligned_sized(void *addr, size_t alignment, size_t bytes);

EXPORT void
free_aligned_sized(void *addr, size_t alignment, size_t bytes)
{
	if (forward_to_preceding_allocator(addr))
		return;
	enum release release = is_unseen(addr) ? RELEASE_PLAIN : release_begin(addr);

	if (release != RELEASE_NOTHING && real_libc.free_aligned_sized != NULL)
		real_libc.free_aligned_sized(addr, alignment, bytes);
	else if (release != RELEASE_NOTHING)
		real_libc.free(addr);
	release_end(release);
}

EXPORT int
posix_memalign(void **addr, size_t alignment, size_t bytes)
{
	bool is_seen = !heap_samples_passes(bytes);
	enum entry entry = enter();

	if (entry == ENTRY_BOOT) {
		*addr = boot_arena_allocate(alignment, bytes);
		return *addr != NULL ? 0 : ENOMEM;
	}
	if (entry == ENTRY_PLAIN)
		return real_libc.posix_memalign(addr, alignment, bytes);
	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, 0)) {
		int host_errno = errno;

		(void)refuse(HERE, bytes);
		errno = host_errno; // this one returns its error
		return ENOMEM;
	}
	int result = real_libc.posix_memalign(addr, alignment, bytes);

	if (__builtin_expect(result != 0, 0))
		note_failed(HERE, bytes, result);
	else if (__builtin_expect(is_seen, 1))
		tracker_allocated(HERE, *addr, bytes);
	reentry_guard_leave();
	return result;
}

EXPORT void *
aligned_alloc(size_t alignment, size_t bytes)
{
	if (heap_samples_passes(bytes))
		return unseen(HERE, real_libc.aligned_alloc(alignment, bytes), bytes);
	enum entry entry = enter();

	if (__builtin_expect(entry != ENTRY_TRACKED, 0))
		return entry == ENTRY_BOOT ? boot_arena_allocate(alignment, bytes) : real_libc.aligned_alloc(alignment, bytes);
	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, 0))
		return refuse(HERE, bytes);
	return leave_allocated(HERE, real_libc.aligned_alloc(alignment, bytes), bytes);
}

EXPORT void *
memalign(size_t alignment, size_t bytes)
{
	if (heap_samples_passes(bytes))
		return unseen(HERE, real_libc.memalign(alignment, bytes), bytes);
	enum entry entry = enter();

	if (__builtin_expect(entry != ENTRY_TRACKED, 0))
		return entry == ENTRY_BOOT ? boot_arena_allocate(alignment, bytes) : real_libc.memalign(alignment, bytes);
	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, 0))
		return refuse(HERE, bytes);
	return leave_allocated(HERE, real_libc.memalign(alignment, bytes), bytes);
}

EXPORT void *
valloc(size_t bytes)
{
	if (heap_samples_passes(bytes))
		return unseen(HERE, real_libc.valloc(bytes), bytes);
	enum entry entry = enter();

	if (__builtin_expect(entry != ENTRY_TRACKED, 0))
		return entry == ENTRY_BOOT ? boot_arena_allocate(4096, bytes) : real_libc.valloc(bytes);
	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, 0))
		return refuse(HERE, bytes);
	return leave_allocated(HERE, real_libc.valloc(bytes), bytes);
}

EXPORT void *
pvalloc(size_t bytes)
{
	if (heap_samples_passes(bytes))
		return unseen(HERE, real_libc.pvalloc(bytes), bytes);
	enum entry entry = enter();

	if (__builtin_expect(entry != ENTRY_TRACKED, 0))
		return entry == ENTRY_BOOT ? boot_arena_allocate(4096, bytes) : real_libc.pvalloc(bytes);
	if (!tracker_attempt(KMEM_DOMAIN_HEAP, bytes, 0))
		return refuse(HERE, bytes);
	return leave_allocated(HERE, real_libc.pvalloc(bytes), bytes);
}

/* ---- operator new and delete of an allocator ---- */

/* The request of this thread's operator new, for when an exception passes that function. */
static __thread struct {
	const void *hook_frame;
	size_t bytes;
} new_request __attribute__((tls_model("initial-exec")));

/* A hook inside may have recorded something: the allocator's malloc, which gave out this very block, or a malloc of a new handler. */
static RARE void
note_unless_known(const void *hook_frame, void *addr, size_t bytes)
{
	struct address_block known;
	struct address_block old;

	if (addr == NULL || !reentry_guard_enter())
		return;
	if (pointer_map_take(addr, &known))
		(void)pointer_map_put(addr, known, &old);
	else
		tracker_allocated(hook_frame, addr, bytes);
	reentry_guard_leave();
}

__attribute__((flatten)) void *
hooks_new_ask(size_t bytes, uintptr_t second, uintptr_t third, hooks_new_ask_function *real)
{
	if (heap_samples_passes(bytes)) {
		int64_t left = heap_sampler.countdown;
		void *addr;

		heap_sampler.countdown = left + (int64_t)bytes; // it may call malloc: that is the same request
		addr = real(bytes, second, third);
		heap_sampler.countdown = left;
		return unseen(HERE, addr, bytes);
	}
	if (__builtin_expect(enter() != ENTRY_TRACKED, 0))
		return real(bytes, second, third);
	failed_requests_attempt(KMEM_DOMAIN_HEAP, bytes); // it cannot fail for us: that is between it and its new handler
	new_request.hook_frame = HERE;
	new_request.bytes = bytes;
	reentry_guard_change(REENTRY_GUARD_NEW);

	void *addr = hooks_new_call(bytes, second, third, real);

	if (__builtin_expect(!reentry_guard_is(REENTRY_GUARD_NEW), 0)) {
		int host_errno = errno;

		note_unless_known(HERE, addr, bytes);
		errno = host_errno;
		return addr;
	}
	reentry_guard_change(REENTRY_GUARD_HOOK);
	if (__builtin_expect(addr != NULL, 1))
		tracker_allocated(HERE, addr, bytes);
	else
		note_failed(HERE, bytes, ENOMEM);
	reentry_guard_leave();
	return addr;
}

/*
 * Called by the unwinder for the frame of hooks_new_call(): first while it searches for a handler, then to clean up. The frames below
 * are still there. It calls nothing of the unwinder, because a process may have several of them.
 */
int
hooks_new_personality(int version, int actions, uint64_t exception_class, void *exception, void *context)
{
	enum { CLEANUP_PHASE = 2, FORCED = 8, CONTINUE_UNWIND = 8 };

	(void)version;
	(void)exception_class;
	(void)exception;
	(void)context;
	if ((actions & CLEANUP_PHASE) != 0) {
		reentry_guard_leave_new();
		if ((actions & FORCED) == 0 && reentry_guard_enter()) { // FORCED: the thread ends
			note_failed(new_request.hook_frame, new_request.bytes, ENOMEM);
			reentry_guard_leave();
		}
	}
	return CONTINUE_UNWIND;
}

__attribute__((flatten)) void
hooks_new_drop(void *addr, uintptr_t second, uintptr_t third, hooks_new_drop_function *real)
{
	enum release release = is_unseen(addr) ? RELEASE_PLAIN : release_begin(addr);

	if (release >= RELEASE_GUARDED)
		reentry_guard_change(REENTRY_GUARD_OWN_WORK); // it may call free: that is the same event, and no loss
	if (release != RELEASE_NOTHING)
		real(addr, second, third);
	release_end(release);
}

void *
hooks_new_ask_nobody(size_t bytes)
{
	return malloc(bytes);
}

void
hooks_new_drop_nobody(void *addr)
{
	free(addr);
}

/* The program wants memory back: ours is given back, too. */
EXPORT int
malloc_trim(size_t pad_bytes)
{
	int result;

	if (!real_libc_find() || real_libc.malloc_trim == NULL)
		return 0;
	result = real_libc.malloc_trim(pad_bytes);
	int host_errno = errno;

	if (tracker_is_on() && reentry_guard_enter()) {
		pointer_map_trim(UINT64_MAX, SIZE_MAX);
		reentry_guard_leave();
	}
	errno = host_errno;
	return result;
}
