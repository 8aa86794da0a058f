/*
 * thread_slot.c - what belongs to the calling thread alone (see thread_slot.h)?
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_thread_slot.c:
 *   N1  a slot belongs to one thread from acquire to release; release and acquire order what the two owners do.
 *   N2  a thread that runs its last destructors has no slot, and gets none again.
 *
 * Not chosen  freeing the memory of a slot: the next thread needs it, and its sums must not be lost.
 */
#include "sites/thread_slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/raw_sys.h"
#include "base/reentry_guard.h"
#include "base/settings.h"
#include "tables/pointer_map.h"

// an ending thread frees what libc made for it, after the last destructor: that takes no slot
#define RELEASES_WITHOUT 64
#define KEYS_WITHOUT_ALLOCATION 32 // glibc keeps so many values of pthread_setspecific() in the thread itself

static struct {
	_Atomic bool is_taken;
	struct thread_slot *memory; // stays once it is there; belongs to the owner
} slots[THREAD_SLOTS_MAX];

static _Atomic uint32_t in_use; // relaxed: counts
static _Atomic uint32_t most_in_use;
static pthread_key_t key;
static bool has_key;

__thread struct thread_slot *thread_slot_current __attribute__((tls_model("initial-exec"), visibility("hidden")));
static __thread bool has_none __attribute__((tls_model("initial-exec"))); // for good: not tried again

static void
release(void *value)
{
	struct thread_slot *slot = thread_slot_current;

	if (slot == NULL || slot != value)
		return;
	reentry_guard_enter_last(); // a handler may have ended the thread inside a hook
	has_none = true;            // N2
	thread_attribution_ended(&slot->parent);
	thread_attribution_current = NULL;
	thread_slot_current = NULL;
	atomic_fetch_sub_explicit(&in_use, 1, memory_order_relaxed);
	/* release: what this thread did with the slot comes before its next owner (N1). */
	atomic_store_explicit(&slots[slot->owner.slot - 1].is_taken, false, memory_order_release);
	reentry_guard_leave();
}

static void
count_one(void)
{
	uint32_t now = atomic_fetch_add_explicit(&in_use, 1, memory_order_relaxed) + 1;
	uint32_t most = atomic_load_explicit(&most_in_use, memory_order_relaxed);

	while (most < now &&
	       !atomic_compare_exchange_weak_explicit(&most_in_use, &most, now, memory_order_relaxed, memory_order_relaxed))
		;
	peak_note_error(now); // also when no sum of theirs ever reaches the total
}

/* What was remembered of walks and events. */
static void
forget(struct thread_slot *slot)
{
	native_cache_clear(&slot->stack.caches);
	event_cache_clear(&slot->events);
	slot->events.is_python_only = settings.native == SETTINGS_NATIVE_AUTO;
	slot->steps = (struct steps_thread){ .version = slot->steps.version + 1 };
	thread_slot_publish(slot, 0);
}

static struct thread_slot *
take(uint32_t number)
{
	struct thread_slot *memory = slots[number - 1].memory;

	if (memory == NULL) {
		if (number * sizeof(*memory) <= raw_reserve_max()) // all slots together
			memory = raw_reserve(KMEM_OWN_THREADS, sizeof(*memory), PROT_READ | PROT_WRITE);
		slots[number - 1].memory = memory;
	}
	if (memory == NULL || pthread_setspecific(key, memory) != 0) {
		atomic_store_explicit(&slots[number - 1].is_taken, false, memory_order_release); // N1
		return NULL;
	}
	memory->owner.slot = (uint16_t)number;
	memory->map_bits = memory->own_bits = thread_slot_map_bits(number);
	forget(memory);
	memory->parent.last_site = &memory->last_site;
	memory->parent.while_line = memory->parent.library_line = memory->parent.started_hash = 0;
	memory->parent.started_count = memory->parent.started_user = 0;
	memory->parent.work_line = memory->parent.put_line = 0;
	memory->parent.put_digest = 0;
	count_one();
	return memory;
}

struct thread_slot *
thread_slot_acquire_to_release(void)
{
	static __thread unsigned releases __attribute__((tls_model("initial-exec")));

	return ++releases % RELEASES_WITHOUT != 0 ? NULL : thread_slot_acquire();
}

struct thread_slot *
thread_slot_acquire(void)
{
	if (has_none || !has_key)
		return NULL;
	for (uint32_t number = 1; number <= THREAD_SLOTS_MAX; number++) {
		_Atomic bool *is_taken = &slots[number - 1].is_taken;

		/* acquire: pairs with release() (N1). */
		if (atomic_load_explicit(is_taken, memory_order_relaxed) ||
		    atomic_exchange_explicit(is_taken, true, memory_order_acquire))
			continue;
		thread_slot_current = take(number);
		thread_attribution_current = thread_slot_current != NULL ? &thread_slot_current->parent : NULL;
		break;
	}
	has_none = thread_slot_current == NULL;
	if (has_none) // it shares slot 0
		peak_note_error(thread_slot_count() + 1);
	return thread_slot_current;
}

void
thread_slot_left(void)
{
	if (thread_slot_current != NULL)
		forget(thread_slot_current);
}

uint32_t
thread_slot_count(void)
{
	return atomic_load_explicit(&most_in_use, memory_order_relaxed);
}

void
thread_slot_start(void)
{
	event_cache_start();
	has_key = pthread_key_create(&key, release) == 0;
	if (has_key && key >= KEYS_WITHOUT_ALLOCATION) { // a hook must not allocate: all threads share slot 0
		pthread_key_delete(key);
		has_key = false;
	}
}

void
thread_slot_forked(void)
{
	for (uint32_t i = 0; i < THREAD_SLOTS_MAX; i++) {
		if (slots[i].memory != NULL) {
			native_cache_release(&slots[i].memory->stack.caches);
			raw_madvise(slots[i].memory, sizeof(*slots[i].memory), MADV_DONTNEED);
		}
		atomic_store_explicit(&slots[i].is_taken, false, memory_order_relaxed);
	}
	atomic_store_explicit(&in_use, 0, memory_order_relaxed);
	atomic_store_explicit(&most_in_use, 0, memory_order_relaxed);
	thread_slot_current = NULL;
	thread_attribution_current = NULL;
	has_none = false;
	thread_attribution_forked();
}
