/*
 * failed_requests.c - the ring of refused requests in the capture's header (see failed_requests.h).
 */
#include "moments/failed_requests.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "moments/device_snapshot.h"
#include "moments/marks.h"
#include "sites/site_table.h"

#define BURST_NS UINT64_C(1000000000) // tries that follow each other

/* What this thread was refused by devices, in the place that it has in the header's ring. */
struct own_request {
	uint64_t number; // 0 = none
	uint64_t bytes;
	uint64_t monotonic_ns;
	unsigned domain;
};

__thread uint64_t failed_requests_least = UINT64_MAX;
static __thread struct own_request own_requests[KMEM_FAILED_MAX] __attribute__((tls_model("initial-exec")));

void
failed_requests_attempt(unsigned domain, uint64_t bytes)
{
	struct kmem_header *header = capture_file_header();

	if (bytes < FAILED_REQUESTS_LARGE_BYTES)
		return;
	atomic_store_explicit(&header->attempt_domain, domain, memory_order_relaxed);
	atomic_store_explicit(&header->attempt_bytes, bytes, memory_order_relaxed);
}

static _Atomic uint64_t known[KMEM_DOMAINS_MAX]; // of allocations_before(); relaxed, both: an estimate
static _Atomic uint64_t next_ns;

/*
 * Allocations booked in the domain so far. All records are read for that: no more often than costs a fiftieth of the time, for a
 * program may live with refused requests; in between the last sums stand.
 */
static uint64_t
allocations_before(unsigned domain, uint64_t now_ns)
{
	struct site_totals totals[KMEM_DOMAINS_MAX];

	if (now_ns >= atomic_load_explicit(&next_ns, memory_order_relaxed)) {
		site_table_totals(totals);
		for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++)
			atomic_store_explicit(&known[i], totals[i].allocated_count, memory_order_relaxed);
		uint64_t end_ns = clock_now_ns();

		atomic_store_explicit(&next_ns, end_ns + 50 * (end_ns - now_ns), memory_order_relaxed);
	}
	return atomic_load_explicit(&known[domain], memory_order_relaxed);
}

static __thread struct {
	uint64_t next_ns;
	uint64_t bytes;
} given __attribute__((tls_model("initial-exec")));

/* What this thread was given so far: whether it went on from the refusal shows in what it gets after. Small ones cost as little as above. */
static uint64_t
given_before(const struct failed_request *request, uint64_t now_ns)
{
	if (request->bytes >= FAILED_REQUESTS_LARGE_BYTES || now_ns >= given.next_ns) {
		given.bytes = site_table_given(request->slot);
		uint64_t end_ns = clock_now_ns();

		given.next_ns = end_ns + 50 * (end_ns - now_ns);
	}
	return given.bytes;
}

/* When memory is used up, what unwinds is refused dozens of times more, and asks for little: what began it is worth more. */
static bool
began_the_burst(const struct kmem_failed *failed, const struct failed_request *request)
{
	return !device_snapshot_has(request->domain) && failed->domain == request->domain &&
	       (failed->bytes >= request->bytes || request->bytes < KMEM_ERROR_PATH_BYTES) &&
	       clock_now_ns() - failed->monotonic_ns <= BURST_NS;
}

/*
 * The request's place in the ring, for this thread alone; NULL when what stands there is to stay, or while another one writes there, which
 * was refused sixteen requests ago: one of both is left out. Its checksum is taken away by one of them; where there never was one, the
 * number tells. acquire: after what the other one wrote. Pairs with store().
 */
static struct kmem_failed *
claim(struct kmem_header *header, uint64_t number, const struct failed_request *request)
{
	struct kmem_failed *failed = &header->failed[number % KMEM_FAILED_MAX];
	uint32_t checksum = atomic_exchange_explicit(&failed->checksum, 0, memory_order_acquire);
	uint64_t never = 0;

	if (checksum == 0) {
		if (!atomic_compare_exchange_strong_explicit(&failed->sequence, &never, number, memory_order_relaxed,
		                                             memory_order_relaxed))
			return NULL;
	} else if (began_the_burst(failed, request)) {
		atomic_store_explicit(&failed->checksum, checksum, memory_order_release); // as when it was written
		return NULL;
	}
	atomic_thread_fence(memory_order_release); // the 0 before the new contents
	atomic_store_explicit(&failed->sequence, number, memory_order_relaxed);
	return failed;
}

static uint32_t
thread_number(void)
{
	return raw_sys_may_call() ? (uint32_t)raw_syscall(SYS_gettid) : 0;
}

static void
store(struct kmem_failed *failed, const struct failed_request *request, uint64_t number)
{
	bool is_of_device = device_snapshot_has(request->domain);

	failed->bytes = request->bytes;
	failed->monotonic_ns = clock_now_ns();
	failed->free_bytes = request->total_bytes != 0 ? request->free_bytes : raw_reserved_bytes();
	failed->total_bytes = request->total_bytes;
	failed->site = request->site;
	failed->domain = (uint16_t)request->domain;
	failed->flags = request->total_bytes != 0 ? KMEM_FAILED_MEMORY_KNOWN : 0;
	if (request->is_by_guard)
		failed->flags |= KMEM_FAILED_BY_GUARD;
	failed->space_limit = kmem_rough(memory_limits_space());
	failed->pool_kept = kmem_rough(request->pool_kept_bytes);
	failed->error = request->error;
	failed->thread = is_of_device ? thread_number() : 0;
	atomic_store_explicit(&failed->outcome, KMEM_FAILED_OPEN, memory_order_relaxed);
	if (!is_of_device ||
	    !device_snapshot_take(&failed->device_snapshot, request->domain, number, &failed->events_before))
		failed->events_before = allocations_before(request->domain, failed->monotonic_ns);
	if (kmem_domain_is_private(request->domain) && request->slot != 0) {
		failed->flags |= KMEM_FAILED_SLOT_KNOWN;
		failed->pool_kept = request->slot;
		failed->thread = (uint32_t)(given_before(request, failed->monotonic_ns) >> 20);
	}
	/* release: the contents first (F7); our use of the place before the next one's. Pairs with claim(). */
	atomic_store_explicit(&failed->checksum, kmem_failed_checksum(failed, number), memory_order_release);
	if (is_of_device) {
		own_requests[number % KMEM_FAILED_MAX] = (struct own_request){ number, request->bytes, failed->monotonic_ns,
			                                                           request->domain };
		failed_requests_least = 1; // it may try again with less
	}
}

bool
failed_requests_note(const struct failed_request *request)
{
	struct kmem_header *header = capture_file_header();
	uint64_t number = atomic_fetch_add_explicit(&header->failed_count, 1, memory_order_relaxed) + 1;
	struct kmem_failed *failed = claim(header, number, request);

	atomic_store_explicit(&capture_file_domain(request->domain)->is_used, KMEM_YES, memory_order_relaxed);
	if (failed != NULL)
		store(failed, request, number);
	marks_refused(request->domain);
	// a program may live with thousands of small refused requests
	return number <= KMEM_FAILED_MAX || request->bytes >= FAILED_REQUESTS_LARGE_BYTES;
}

/* The newest to the domain, within the time in which it tries again; NULL = none. */
static const struct own_request *
newest_of_burst(unsigned domain, uint64_t now_ns)
{
	const struct own_request *newest = NULL;

	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		const struct own_request *own = &own_requests[i];

		if (own->number != 0 && own->domain == domain && now_ns - own->monotonic_ns <= BURST_NS &&
		    (newest == NULL || own->number > newest->number))
			newest = own;
	}
	return newest;
}

/* relaxed: it says nothing about other memory. When the place is given to another request at this moment, that one may get it. */
static void
settle(struct own_request *own, enum kmem_failed_outcome outcome)
{
	struct kmem_failed *failed = &capture_file_header()->failed[own->number % KMEM_FAILED_MAX];

	if (atomic_load_explicit(&failed->sequence, memory_order_relaxed) == own->number)
		atomic_store_explicit(&failed->outcome, (uint32_t)outcome, memory_order_relaxed);
	own->number = 0;
}

/*
 * What it got is at least as much as it was refused; or less, but enough of it to go on with: allocators of regions ask for a
 * tenth less each time. Then all that was refused in a row is done with.
 */
void
failed_requests_got_slow(unsigned domain, uint64_t bytes)
{
	uint64_t now_ns = clock_now_ns();
	const struct own_request *newest = newest_of_burst(domain, now_ns);
	bool is_retry = newest != NULL && bytes >= newest->bytes / 2;

	failed_requests_least = UINT64_MAX;
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		struct own_request *own = &own_requests[i];
		bool is_in_burst = now_ns - own->monotonic_ns <= BURST_NS;

		if (own->number == 0)
			continue;
		if (own->domain == domain && bytes >= own->bytes)
			settle(own, KMEM_FAILED_GOT_ENOUGH);
		else if (own->domain == domain && is_retry && is_in_burst)
			settle(own, KMEM_FAILED_GOT_LESS);
		else if (is_in_burst)
			failed_requests_least = 1;
		else if (own->bytes < failed_requests_least)
			failed_requests_least = own->bytes;
	}
}

void
failed_requests_forked(void)
{
	failed_requests_least = UINT64_MAX;
	atomic_store_explicit(&next_ns, 0, memory_order_relaxed);
	memset(own_requests, 0, sizeof(own_requests));
	given.next_ns = 0;
	device_snapshot_forked();
}
