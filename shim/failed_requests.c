/*
 * failed_requests.c - the ring of refused requests in the capture's header (see failed_requests.h).
 */
#include "failed_requests.h"

#include <stdatomic.h>

#include "capture_file.h"
#include "heartbeat.h"
#include "holdings.h"
#include "kmem_words.h"
#include "raw_sys.h"
#include "site_table.h"

#define LARGE_BYTES ((uint64_t)1 << 20)
#define BURST_NS UINT64_C(1000000000) // tries that follow each other

__thread uint64_t failed_requests_least = UINT64_MAX;
static __thread uint32_t own_thread __attribute__((tls_model("initial-exec"))); // who was refused here

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

/*
 * Fields of a request in the ring, whose place another thread may be given meanwhile. relaxed: whether they are of one request, the
 * checksum tells (F7).
 */
#define SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)
#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/*
 * Of this thread, and nothing has come of it. Its place in the ring may be given to another request meanwhile: then that one may be
 * taken for recovered, in a program that is refused sixteen times in that moment.
 */
static bool
is_waiting(const struct kmem_failed *failed)
{
	return own_thread != 0 && GET(failed->thread) == own_thread &&
	       atomic_load_explicit(&failed->checksum, memory_order_relaxed) != 0 &&
	       atomic_load_explicit(&failed->outcome, memory_order_relaxed) == KMEM_FAILED_OPEN;
}

/*
 * The request's place in the ring, for this thread alone; NULL while another one writes there, which was refused sixteen requests ago:
 * one of both is left out. Its checksum is taken away by one of them; where there never was one, the number tells. acquire: after what
 * the other one wrote. Pairs with failed_requests_note().
 */
static struct kmem_failed *
claim(struct kmem_header *header, uint64_t number)
{
	struct kmem_failed *failed = &header->failed[number % KMEM_FAILED_MAX];
	uint64_t never = 0;

	if (atomic_exchange_explicit(&failed->checksum, 0, memory_order_acquire) == 0 &&
	    !atomic_compare_exchange_strong_explicit(&failed->sequence, &never, number, memory_order_relaxed, memory_order_relaxed))
		return NULL;
	atomic_thread_fence(memory_order_release); // the 0 before the new contents
	atomic_store_explicit(&failed->sequence, number, memory_order_relaxed);
	return failed;
}

static uint32_t
thread_number(void)
{
	return raw_sys_may_call() ? (uint32_t)syscall(SYS_gettid) : 0;
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

static void
store(struct kmem_failed *failed, const struct failed_request *request, uint64_t number)
{
	bool is_of_device = holdings_has(request->domain);
	uint32_t thread = is_of_device ? thread_number() : 0;
	uint64_t now_ns = heartbeat_now_ns();
	uint64_t before;

	SET(failed->bytes, request->bytes);
	SET(failed->monotonic_ns, now_ns);
	SET(failed->free_bytes, request->free_bytes);
	SET(failed->total_bytes, request->total_bytes);
	SET(failed->site, request->site);
	SET(failed->domain, (uint16_t)request->domain);
	SET(failed->flags, request->total_bytes != 0 ? KMEM_FAILED_MEMORY_KNOWN : 0);
	SET(failed->space_limit, space_limit());
	SET(failed->error, request->error);
	SET(failed->thread, thread);
	atomic_store_explicit(&failed->outcome, KMEM_FAILED_OPEN, memory_order_relaxed);
	if (!is_of_device || !holdings_take(&failed->holdings, request->domain, number, &before))
		before = allocations_before(request->domain, now_ns);
	SET(failed->events_before, before);
	/* release: the contents first (F7); our use of the place before the next one's. Pairs with claim(). */
	atomic_store_explicit(&failed->checksum, kmem_failed_checksum(failed, number), memory_order_release);
	if (thread != 0) {
		own_thread = thread;
		failed_requests_least = 1; // it may try again with less
	}
}

bool
failed_requests_note(const struct failed_request *request)
{
	struct kmem_header *header = capture_file_header();
	uint64_t number = atomic_fetch_add_explicit(&header->failed_count, 1, memory_order_relaxed) + 1;
	struct kmem_failed *failed = claim(header, number);

	atomic_store_explicit(&capture_file_domain(request->domain)->is_used, KMEM_YES, memory_order_relaxed);
	if (failed != NULL)
		store(failed, request, number);
	return number <= KMEM_FAILED_MAX || request->bytes >= LARGE_BYTES; // a program may live with thousands of small refusals
}

/* The newest request of this thread to the domain that nothing came of, within the time in which it tries again; NULL = none. */
static const struct kmem_failed *
newest_of_burst(const struct kmem_header *header, unsigned domain, uint64_t now_ns)
{
	const struct kmem_failed *newest = NULL;

	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		const struct kmem_failed *failed = &header->failed[i];

		if (is_waiting(failed) && GET(failed->domain) == domain && now_ns - GET(failed->monotonic_ns) <= BURST_NS &&
		    (newest == NULL || GET(failed->monotonic_ns) >= GET(newest->monotonic_ns)))
			newest = failed;
	}
	return newest;
}

/*
 * What it got is at least as much as it was refused; or less, but enough of it to go on with: allocators of regions ask for a
 * tenth less each time. Then all that was refused in a row is done with.
 */
void
failed_requests_got_rest(unsigned domain, uint64_t bytes)
{
	struct kmem_header *header = capture_file_header();
	uint64_t now_ns = heartbeat_now_ns();
	const struct kmem_failed *newest = newest_of_burst(header, domain, now_ns);
	bool is_retry = newest != NULL && bytes >= GET(newest->bytes) / 2;

	failed_requests_least = UINT64_MAX;
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		struct kmem_failed *failed = &header->failed[i];
		bool is_in_burst = now_ns - GET(failed->monotonic_ns) <= BURST_NS;

		if (!is_waiting(failed))
			continue;
		if (GET(failed->domain) == domain && bytes >= GET(failed->bytes))
			atomic_store_explicit(&failed->outcome, KMEM_FAILED_GOT_ENOUGH, memory_order_relaxed);
		else if (GET(failed->domain) == domain && is_retry && is_in_burst)
			atomic_store_explicit(&failed->outcome, KMEM_FAILED_GOT_LESS, memory_order_relaxed);
		else if (is_in_burst)
			failed_requests_least = 1;
		else if (GET(failed->bytes) < failed_requests_least)
			failed_requests_least = GET(failed->bytes);
	}
}

void
failed_requests_forked(void)
{
	failed_requests_least = UINT64_MAX;
	holdings_forked();
}
