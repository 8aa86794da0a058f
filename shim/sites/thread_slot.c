/*
 * thread_slot.c - what belongs to the calling thread alone (see thread_slot.h)?
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_thread_slot.c:
 *   N1  a slot belongs to one thread from acquire to release; release and acquire order what the two owners do.
 *   N2  a thread that runs its last destructors has no slot, and gets none again.
 *   N3  a thread that found none asks again once another thread has given one back.
 *
 * Not chosen  freeing the memory of a slot: the next thread needs it, and its sums must not be lost.
 */
#include "sites/thread_slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/effort.h"
#include "base/raw_sys.h"
#include "base/reentry_guard.h"
#include "base/settings.h"
#include "tables/pointer_map.h"

// an ending thread frees what libc made for it, after the last destructor: that takes no slot
#define RELEASES_WITHOUT 64
#define KEYS_WITHOUT_ALLOCATION 32 // glibc keeps so many values of pthread_setspecific() in the thread itself

static _Atomic uint64_t taken[THREAD_SLOTS_MAX / 64];
static struct thread_slot *memories[THREAD_SLOTS_MAX]; // stay once they are there; each belongs to the owner

static _Atomic uint32_t in_use; // relaxed, all four: counts
static _Atomic uint32_t most_in_use;
static _Atomic uint32_t released;    // ever
static _Atomic uint32_t numbers_end; // behind the highest that was ever taken
static pthread_key_t key;
static bool has_key;

__thread struct thread_slot *thread_slot_current __attribute__((tls_model("initial-exec"), visibility("hidden")));
static __thread bool has_ended __attribute__((tls_model("initial-exec")));
// `released` when there was none, + 1; 0 = not tried
static __thread uint32_t none_at __attribute__((tls_model("initial-exec")));

/* Lowest first: a program with few threads touches few. 0 = all are taken. */
static uint32_t
claim(void)
{
	for (uint32_t i = 0; i < THREAD_SLOTS_MAX / 64; i++) {
		uint64_t seen = atomic_load_explicit(&taken[i], memory_order_relaxed);

		while (seen != UINT64_MAX) {
			unsigned place = (unsigned)__builtin_ctzll(~seen);

			/* acquire: pairs with give_back() (N1). */
			seen = atomic_fetch_or_explicit(&taken[i], UINT64_C(1) << place, memory_order_acquire);
			if ((seen >> place & 1) == 0)
				return i * 64 + place + 1;
		}
	}
	return 0;
}

/* release: what this thread did with the slot comes before its next owner (N1). */
static void
give_back(uint32_t number)
{
	atomic_fetch_and_explicit(&taken[(number - 1) / 64], ~(UINT64_C(1) << (number - 1) % 64), memory_order_release);
}

static void
release(void *value)
{
	struct thread_slot *slot = thread_slot_current;

	if (slot == NULL || slot != value)
		return;
	reentry_guard_enter_last(); // a handler may have ended the thread inside a hook
	has_ended = true;           // N2
	thread_attribution_ended(&slot->parent);
	effort_thread_ends();
	thread_attribution_current = NULL;
	thread_slot_current = NULL;
	atomic_fetch_sub_explicit(&in_use, 1, memory_order_relaxed);
	give_back(slot->owner.slot);
	/* relaxed: who sees it too early finds none, and asks again at the next one. */
	atomic_fetch_add_explicit(&released, 1, memory_order_relaxed);
	reentry_guard_leave();
}

static void
count_one(uint32_t number)
{
	uint32_t end = atomic_load_explicit(&numbers_end, memory_order_relaxed);

	while (end < number && !atomic_compare_exchange_weak_explicit(&numbers_end, &end, number, memory_order_relaxed,
	                                                              memory_order_relaxed))
		;
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
	python_chain_forget(&slot->events.chain);
	slot->events.is_python_only = settings.native == SETTINGS_NATIVE_AUTO;
	slot->steps = (struct steps_thread){ .version = slot->steps.version + 1 };
	thread_slot_publish(slot, 0);
}

static struct thread_slot *
take(uint32_t number)
{
	struct thread_slot *memory = memories[number - 1];

	if (memory == NULL) {
		if (number * sizeof(*memory) <= raw_reserve_max()) // all slots together
			memory = raw_reserve(KMEM_OWN_THREADS, sizeof(*memory), PROT_READ | PROT_WRITE);
		memories[number - 1] = memory;
	}
	if (memory == NULL || pthread_setspecific(key, memory) != 0) {
		give_back(number);
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
	count_one(number);
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
	uint32_t now = atomic_load_explicit(&released, memory_order_relaxed) + 1;

	if (has_ended || !has_key || none_at == now)
		return NULL;

	uint32_t number = claim();

	if (number != 0)
		thread_slot_current = take(number);
	thread_attribution_current = thread_slot_current != NULL ? &thread_slot_current->parent : NULL;
	none_at = thread_slot_current == NULL ? now : 0; // N3
	if (none_at != 0)                                // it shares slot 0
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
	uint32_t end = atomic_load_explicit(&numbers_end, memory_order_relaxed);

	for (uint32_t i = 0; i < end; i++) {
		if (memories[i] != NULL) {
			native_cache_release(&memories[i]->stack.caches);
			event_cache_release(&memories[i]->events);
			raw_madvise(memories[i], sizeof(*memories[i]), MADV_DONTNEED);
		}
	}
	for (uint32_t i = 0; i < (end + 63) / 64; i++)
		atomic_store_explicit(&taken[i], 0, memory_order_relaxed);
	atomic_store_explicit(&in_use, 0, memory_order_relaxed);
	atomic_store_explicit(&most_in_use, 0, memory_order_relaxed);
	thread_slot_current = NULL;
	thread_attribution_current = NULL;
	has_ended = false;
	none_at = 0;
	thread_attribution_forked();
}
