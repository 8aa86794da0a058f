/*
 * tracker.h - the order of steps: stack, site, counters and peak, pointer map. Hooks book through this.
 *
 * Rules that every function here keeps (the numbers are used in comments):
 *   R1  a block leaves the live map before the real release and enters it after the real allocation; a failed
 *       realloc puts it back
 *   R2  the real call runs inside the reentry guard
 *   R3  contents before the index that leads to them
 *   R4  what cannot be recorded is counted, and every report prints the losses
 *   R5  the program sees the real result, the real errno and its own signals
 *   R6  no allocation, no stdio, no lock, no loader call, no system call per event
 *   R7  sizes are requested bytes
 *
 * Safe from   any thread, any signal handler; errno is left alone.
 */
#ifndef TRACKER_H
#define TRACKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"
#include "moments/failed_requests.h"
#include "sites/callbacks.h"
#include "sites/event_site.h"
#include "tables/range_map.h"

/* A block that was taken out of the live map. */
struct live_block {
	void *addr;
	uint64_t bytes;
	uint32_t site;      // index + 1; 0 = we never saw it given out
	uint8_t generation; // 0 = not counted in a generation bucket
};

/*
 * Heap. hook_frame is __builtin_frame_address(0) of the hook. The functions named _python are for requests of the interpreter's
 * allocator: if the thread has a Python stack, that stack is enough and no native frame is walked. They pass hook_frame on with the bit
 * TRACKER_FRAME_PYTHON, which is 0 in an address. `object_bit` is POINTER_MAP_OBJECT if the block may be a Python object, else 0.
 */
#define TRACKER_FRAME_PYTHON EVENT_SITE_PYTHON
void tracker_allocated(const void *hook_frame, void *addr, size_t bytes);
void tracker_allocated_python(const void *hook_frame, uint8_t object_bit, void *addr, size_t bytes);
/*
 * A block of malloc's that holds a small Python object of so many bytes, which was drawn as a sample (python_samples.h). It is released
 * like any other block.
 */
void tracker_sampled(const void *hook_frame, void *addr, size_t bytes);
/* A living sample counts as released from now on. Its memory stays; when it is really released, nothing is booked. */
void tracker_disowned(void *addr);
// before the real free; false: nothing was done, tracker_freed() is to do it
bool tracker_freed_fast(void *addr);
void tracker_freed(const void *hook_frame, void *addr);
// after tracker_freed(): tracker_look_after_release() is wanted, after the real free
bool tracker_has_fallen(void);
void tracker_look_after_release(void);              // keeps errno
void tracker_released(struct live_block block);     // one that was taken out of the live map
struct live_block tracker_take(void *addr);         // before the real realloc
struct live_block tracker_take_sampled(void *addr); // the same where a sample is recorded: most blocks are not known
void tracker_put_back(struct live_block block);     // the real realloc failed
void tracker_resized(const void *hook_frame, struct live_block old, void *addr, size_t bytes);
/* The same where a sample of the heap is recorded. is_drawn: the new block is in it, or as large as those that are recorded each. */
void tracker_resized_sampled(const void *hook_frame, struct live_block old, void *addr, size_t bytes, bool is_drawn);
void tracker_resized_python(const void *hook_frame, uint8_t object_bit, struct live_block old, void *addr,
                            size_t bytes);
void tracker_failed(const void *hook_frame, enum kmem_domain domain, size_t bytes, int error);
/*
 * To be called before a request is passed on. Requests of 1 MiB and more are noted.
 *
 * old_bytes  of the block that the new one replaces; 0 = none
 * returns    false: the request must fail, because it would pass the guard (KMEMSHIM_GUARD_ACTION=raise); only for the heap
 */
bool tracker_attempt_large(enum kmem_domain domain, size_t bytes, size_t old_bytes);
static inline bool
tracker_attempt(enum kmem_domain domain, size_t bytes, size_t old_bytes)
{
	return __builtin_expect(bytes < FAILED_REQUESTS_LARGE_BYTES, 1) || tracker_attempt_large(domain, bytes, old_bytes);
}
void tracker_refused_by_guard(const void *hook_frame, size_t bytes);

/*
 * Mappings. A mapping counts as many bytes as were asked for. Unmapping goes by whole pages, so the last page goes as a whole. begin
 * takes what is known of the range out of the map before the real release (R1). end books it, or puts it back if the real call failed.
 */
void tracker_mapped(const void *hook_frame /* NULL: of the interpreter's allocator */, enum kmem_domain domain,
                    void *addr, size_t bytes);
void tracker_unmap_begin(void *addr, size_t bytes, struct range_pieces *taken);
void tracker_unmap_end(const struct range_pieces *taken, bool was_released);
/* After a successful mremap. old: what tracker_unmap_begin() took. */
void tracker_remapped(const void *hook_frame, const struct range_pieces *old, void *addr, size_t bytes);
/* After an mprotect that makes the range writable: the parts that were only reserved are memory of this call site from now on. */
void tracker_writable(const void *hook_frame, void *addr, size_t bytes);
/* After a successful madvise that gives pages back. Counts the part of the range that is known. */
void tracker_returned(void *addr, size_t bytes);
/* The same as tracker_unmap_begin() for all that is left of what was mapped at this very address. */
void tracker_detach_begin(void *addr, struct range_pieces *taken);

enum tracker_state {
	TRACKER_ASLEEP = 0, // not started, or forked: what the kernel makes of the page in a child (MADV_WIPEONFORK)
	TRACKER_ON = 1,
	TRACKER_BUSY = 2, // one thread is starting
	TRACKER_OFF = 3,  // the end
};

/* Owned by lifecycle.c: in a page that is zeroed in every forked child, also by a bare clone system call. */
extern _Atomic uint32_t *tracker_state;

/* Returns false also while recording could be woken: then tracker_is_on() is to be asked. */
static inline bool
tracker_is_awake(void)
{
	/* acquire: pairs with the release in lifecycle_wake() that follows a complete start. */
	return atomic_load_explicit(tracker_state, memory_order_acquire) == TRACKER_ON;
}

/* Every hook asks first: false before the start, after the end, and while another thread starts. */
static inline bool
tracker_is_on(void)
{
	/* acquire: pairs with the release in lifecycle_wake() that follows a complete start. */
	uint32_t state = atomic_load_explicit(tracker_state, memory_order_acquire);

	return __builtin_expect(state == TRACKER_ON, 1) || (state == TRACKER_ASLEEP && record_callbacks.wake());
}

/* For reentry_guard_on_left: the event of a hook that was left by a jump is lost, and counted. */
void tracker_hook_left(void);

/* In a forked child: nothing of the parent is alive here. One thread. */
void tracker_clear(void);

#endif
