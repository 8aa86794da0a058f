/*
 * failed_requests.c - the ring of refused requests in the capture's header (see failed_requests.h).
 */
#include "failed_requests.h"

#include <stdatomic.h>

#include "capture_file.h"
#include "heartbeat.h"
#include "kmem_words.h"
#include "raw_sys.h"
#include "site_table.h"

#define LARGE_BYTES ((uint64_t)1 << 20)

void
failed_requests_attempt(unsigned domain, uint64_t bytes)
{
	struct kmem_header *header = capture_file_header();

	if (bytes < LARGE_BYTES)
		return;
	atomic_store_explicit(&header->attempt_domain, domain, memory_order_relaxed);
	atomic_store_explicit(&header->attempt_bytes, bytes, memory_order_relaxed);
}

/*
 * Allocations booked in the domain so far. All records are read for that: no more often than costs a fiftieth of the time, for a
 * program may live with refusals; in between the last sums stand.
 */
static uint64_t
allocations_before(unsigned domain, uint64_t now_ns)
{
	static _Atomic uint64_t known[KMEM_DOMAINS_MAX]; // relaxed, both: an estimate
	static _Atomic uint64_t next_ns;
	struct site_totals totals[KMEM_DOMAINS_MAX];

	if (now_ns >= atomic_load_explicit(&next_ns, memory_order_relaxed)) {
		site_table_totals(totals);
		for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++)
			atomic_store_explicit(&known[i], totals[i].allocated_count, memory_order_relaxed);
		uint64_t end_ns = heartbeat_now_ns();

		atomic_store_explicit(&next_ns, end_ns + 50 * (end_ns - now_ns), memory_order_relaxed);
	}
	return atomic_load_explicit(&known[domain], memory_order_relaxed);
}

/* The program may have set one since its start. */
static uint16_t
space_limit(void)
{
	struct rlimit limit;

	if (!raw_sys_may_call() || syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return kmem_rough(limit.rlim_cur);
}

bool
failed_requests_note(unsigned domain, uint64_t bytes, int error, uint32_t site)
{
	struct kmem_header *header = capture_file_header();
	uint64_t number = atomic_fetch_add_explicit(&header->failed_count, 1, memory_order_relaxed) + 1;
	struct kmem_failed *failed = &header->failed[number % KMEM_FAILED_MAX];

	atomic_store_explicit(&capture_file_domain(domain)->is_used, KMEM_YES, memory_order_relaxed);
	atomic_store_explicit(&failed->checksum, 0, memory_order_relaxed);
	atomic_store_explicit(&failed->sequence, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); // the 0 before the new contents
	failed->bytes = bytes;
	failed->monotonic_ns = heartbeat_now_ns();
	failed->events_before = allocations_before(domain, failed->monotonic_ns);
	failed->site = site;
	failed->domain = (uint16_t)domain;
	failed->space_limit = space_limit();
	failed->error = error;
	atomic_store_explicit(&failed->checksum, kmem_failed_checksum(failed, number), memory_order_relaxed);
	atomic_store_explicit(&failed->sequence, number, memory_order_release); // contents first
	return number <= KMEM_FAILED_MAX || bytes >= LARGE_BYTES; // a program may live with thousands of small refusals
}
