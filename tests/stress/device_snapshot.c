/*
 * device_snapshot.c - while threads make and release tensors, does each look at the device find what the thread that looks keeps?
 *
 * Looks read the counters, generations and blocks of all threads, which never stop. One thread at a time is refused memory.
 *
 * Proven by plain loads of a slot in a sweep of the table of addresses, and by plain loads of a site's counters: reported by the
 * thread sanitizer in three of three runs.
 */
#include "stress.h"

#include "capture/capture_file.h"
#include "kmem_words.h"
#include "gpu/tracker_devices.h"
#include "moments/failed_requests.h"
#include "record/tracker.h"
#include "sites/site_table.h"
#include "sites/thread_slot.h"
#include "unwind/native_stack.h"

#define EVENTS 1500
#define OWN 64
#define KEPT_BYTES(thread) ((UINT64_C(1) << 30) + (thread))
#define HERE __builtin_frame_address(0)

static atomic_flag is_refused = ATOMIC_FLAG_INIT;
static _Atomic unsigned looks;

__attribute__((noinline)) static void
hook_tensor(uint64_t addr, uint64_t bytes)
{
	tracker_tensor_allocated(HERE, 0, addr, bytes);
	__asm__ volatile("" ::: "memory");
}

/* Another call site than that of the other tensors. */
__attribute__((noinline)) static void
keep(unsigned thread)
{
	hook_tensor(UINT64_C(0x7000000000) + 4096 * (thread + 1), KEPT_BYTES(thread));
	__asm__ volatile("" ::: "memory");
}

static bool
holds(const struct kmem_device_snapshot *device_snapshot, uint64_t bytes)
{
	for (unsigned i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX; i++) {
		if (device_snapshot->sites[i].live_bytes == (int64_t)bytes && device_snapshot->sites[i].live_count == 1)
			return true;
	}
	return false;
}

__attribute__((noinline)) static void
refuse(unsigned thread)
{
	const struct kmem_header *header = capture_file_header();
	const struct kmem_device_snapshot *device_snapshot;
	const struct kmem_failed *failed;

	if (atomic_flag_test_and_set_explicit(&is_refused, memory_order_acquire))
		return;
	tracker_tensor_failed(HERE, 0, 4096, 2);
	failed = &header->failed[header->failed_count % KMEM_FAILED_MAX];
	device_snapshot = capture_file_item(KMEM_SECTION_RECORDS, failed->device_snapshot);
	CHECK(failed->checksum == kmem_failed_checksum(failed, failed->sequence));
	if (failed->device_snapshot != 0 && device_snapshot->sequence == failed->sequence) { // else it has taken its time
		CHECK(device_snapshot->record.checksum == kmem_record_checksum(&device_snapshot->record, 0));
		CHECK(holds(device_snapshot, KEPT_BYTES(thread)));
		atomic_fetch_add_explicit(&looks, 1, memory_order_relaxed);
	}
	atomic_flag_clear_explicit(&is_refused, memory_order_release);
}

static void
work(unsigned thread, uint64_t *random)
{
	bool is_alive[OWN] = { false };

	keep(thread);
	for (unsigned i = 0; i < EVENTS; i++) {
		unsigned which = (unsigned)random_below(random, OWN);
		uint64_t addr = UINT64_C(0x100000000) + 4096 * (thread * OWN + which + 1);

		if (is_alive[which])
			tracker_tensor_released(addr);
		else
			hook_tensor(addr, 1 + random_below(random, 100000));
		is_alive[which] = !is_alive[which];
		if (random_below(random, 200) == 0)
			refuse(thread);
		stress_yield(random);
	}
	for (unsigned which = 0; which < OWN; which++) {
		if (is_alive[which])
			tracker_tensor_released(UINT64_C(0x100000000) + 4096 * (thread * OWN + which + 1));
	}
}

int
main(void)
{
	struct site_totals totals[KMEM_DOMAINS_MAX];
	uint64_t random = random_seed();
	uint64_t bytes = 0;

	native_stack_start();
	thread_slot_start();
	stress_run(STRESS_THREADS, work, random);
	for (unsigned thread = 0; thread < STRESS_THREADS; thread++)
		bytes += KEPT_BYTES(thread);
	site_table_totals(totals);
	CHECK(totals[KMEM_DOMAIN_TENSORS_FIRST].live_bytes == bytes);
	CHECK(totals[KMEM_DOMAIN_TENSORS_FIRST].live_count == STRESS_THREADS);
	CHECK(looks != 0);
	return 0;
}
