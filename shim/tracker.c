/*
 * tracker.c - the order of the steps (see tracker.h for the rules R1 to R7).
 *
 *   allocation   stack -> site -> books (generation, domain, site) -> pointer map -> heartbeat
 *   release      pointer map -> books
 *
 * The books are written before the address is in the map, and the address is in the map before the program gets it: a
 * release can never be booked before its allocation.
 */
#include "tracker.h"

#include <errno.h>
#include <stdatomic.h>

#include "address_table.h"
#include "call_stack.h"
#include "capture_file.h"
#include "generations.h"
#include "heartbeat.h"
#include "kmem_words.h"
#include "peak.h"
#include "pointer_map.h"
#include "python_frames.h"
#include "range_map.h"
#include "site_table.h"

#define ATTEMPT_MIN_BYTES ((size_t)1 << 20)

static struct address_table devices;

static _Atomic uint32_t state_before_page; // until lifecycle.c has the page
_Atomic uint32_t *tracker_state = &state_before_page;

/*
 * Python's teardown frees everything: what counts is the state before it. From then on nothing is booked, and what the
 * program does meanwhile is counted only.
 */
static bool
is_teardown(void)
{
	if (!python_frames_is_finalizing())
		return false;
	atomic_store_explicit(&capture_file_header()->is_finalizing, 1, memory_order_relaxed);
	capture_file_lost(KMEM_LOST_TEARDOWN_EVENTS, 1);
	return true;
}

/* ---- books ---- */

/*
 * Two views of the same event: `net` is what the domain's total sees, so that a realloc is no false peak of old and new
 * together. relaxed everywhere but at freed: counters, summed by the reader (S4).
 */
static void
book_born(struct kmem_domain_row *row, struct kmem_site *site, uint64_t bytes, uint32_t epoch)
{
	atomic_fetch_add_explicit(&row->allocated_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&row->allocated_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->allocated_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&site->allocated_count, 1, memory_order_relaxed);
	peak_apply(&site->peak, (int64_t)bytes, epoch);
}

static void
book_dead(struct kmem_domain_row *row, struct kmem_site *site, uint64_t bytes, bool is_whole, uint32_t epoch)
{
	uint64_t count = is_whole ? 1 : 0;

	atomic_fetch_add_explicit(&row->freed_bytes, bytes, memory_order_release); // S4
	atomic_fetch_add_explicit(&row->freed_count, count, memory_order_release);
	atomic_fetch_add_explicit(&site->freed_bytes, bytes, memory_order_release);
	atomic_fetch_add_explicit(&site->freed_count, count, memory_order_release);
	peak_apply(&site->peak, -(int64_t)bytes, epoch);
}

static struct kmem_domain_row *
row_in_use(unsigned domain)
{
	struct kmem_domain_row *row = capture_file_domain(domain);

	if (atomic_load_explicit(&row->is_used, memory_order_relaxed) == 0)
		atomic_store_explicit(&row->is_used, 1, memory_order_relaxed);
	return row;
}

static uint64_t
live_host_bytes(void)
{
	return kmem_peak_now(capture_file_domain(KMEM_DOMAIN_HEAP)->peak) +
	       kmem_peak_now(capture_file_domain(KMEM_DOMAIN_MMAP)->peak) +
	       kmem_peak_now(capture_file_domain(KMEM_DOMAIN_SHARED)->peak);
}

static void
lose_event(uint64_t bytes)
{
	capture_file_lost(KMEM_LOST_EVENTS, 1);
	capture_file_lost(KMEM_LOST_EVENT_BYTES, bytes);
}

static uint32_t
site_here(const void *hook_frame, unsigned domain, uint8_t clock)
{
	const struct call_stack *stack = call_stack_take(hook_frame);
	uint32_t site = site_table_find(stack, domain, clock);

	call_stack_give_back(stack);
	return site;
}

/* Address space and files are not volume. */
static bool
drives_clock(unsigned domain)
{
	return domain != KMEM_DOMAIN_RESERVED && domain != KMEM_DOMAIN_FILE;
}

/* Everything about a new block but its address. site 0: it could not be booked. */
static struct address_block
born(const void *hook_frame, unsigned domain, uint64_t bytes)
{
	uint8_t clock = generations_tick(drives_clock(domain) ? bytes : 0);
	struct address_block block = { .bytes = bytes, .site = site_here(hook_frame, domain, clock) };
	struct kmem_site *site;
	uint64_t total;

	if (block.site == 0) {
		lose_event(bytes);
		return block;
	}
	site = site_table_at(block.site);
	block.generation = generations_born(site, block.site, clock);
	book_born(row_in_use(domain), site, bytes, peak_add(&capture_file_domain(domain)->peak, bytes, &total));
	return block;
}

static void
dead(struct address_block block, uint64_t bytes, bool is_whole)
{
	struct kmem_site *site = site_table_at(block.site);
	struct kmem_domain_row *row = capture_file_domain(site->domain);

	if (is_whole)
		generations_died(site, block.generation);
	book_dead(row, site, bytes, is_whole, peak_sub(&row->peak, bytes));
}

/* ---- heap ---- */

static void
map_block(void *addr, struct address_block block)
{
	struct address_block old;

	switch (pointer_map_put(addr, block, &old)) {
	case POINTER_MAP_STORED:
		break;
	case POINTER_MAP_REPLACED:
		capture_file_lost(KMEM_LOST_MISSED_FREES, 1);
		dead(old, old.bytes, true);
		break;
	case POINTER_MAP_FULL:
		/* Its release will not be seen: better not alive at all than alive for ever. */
		dead(block, block.bytes, true);
		lose_event(block.bytes);
		break;
	}
}

void
tracker_allocated(const void *hook_frame, void *addr, size_t bytes)
{
	struct address_block block;

	if (is_teardown())
		return;
	block = born(hook_frame, KMEM_DOMAIN_HEAP, bytes);
	if (block.site != 0)
		map_block(addr, block);
	heartbeat_after(live_host_bytes());
}

struct live_block
tracker_take(void *addr)
{
	struct address_block block = { 0 };

	if (addr != NULL && !is_teardown() && !pointer_map_take(addr, &block))
		capture_file_lost(KMEM_LOST_UNKNOWN_FREES, 1);
	return (struct live_block){ addr, block.bytes, block.site, block.generation };
}

static struct address_block
block_of(struct live_block block)
{
	return (struct address_block){ block.bytes, block.site, block.generation };
}

void
tracker_freed(void *addr)
{
	struct live_block block = tracker_take(addr);

	if (block.site != 0)
		dead(block_of(block), block.bytes, true);
}

void
tracker_put_back(struct live_block block)
{
	if (block.site != 0)
		map_block(block.addr, block_of(block));
}

void
tracker_resized(const void *hook_frame, struct live_block old, void *addr, size_t bytes)
{
	struct kmem_domain_row *row = row_in_use(KMEM_DOMAIN_HEAP);
	uint8_t clock;
	struct address_block block = { .bytes = bytes };
	struct kmem_site *site;
	uint64_t total;
	uint32_t epoch;

	if (addr == NULL || old.site == 0) {
		if (old.site != 0)
			dead(block_of(old), old.bytes, true);
		if (addr != NULL)
			tracker_allocated(hook_frame, addr, bytes);
		return;
	}
	if (is_teardown())
		return;
	clock = generations_tick(bytes);
	block.site = site_here(hook_frame, KMEM_DOMAIN_HEAP, clock);
	if (block.site == 0) {
		dead(block_of(old), old.bytes, true);
		lose_event(bytes);
		return;
	}
	site = site_table_at(block.site);
	block.generation = generations_born(site, block.site, clock);
	/* One event for the total: the net change. No change is a release: the first of equal maxima counts (P3). */
	if (bytes > old.bytes)
		epoch = peak_add(&row->peak, bytes - old.bytes, &total);
	else
		epoch = peak_sub(&row->peak, old.bytes - bytes);
	book_born(row, site, bytes, epoch);
	generations_died(site_table_at(old.site), old.generation);
	book_dead(row, site_table_at(old.site), old.bytes, true, epoch);
	map_block(addr, block);
	heartbeat_after(live_host_bytes());
}

/* ---- requests ---- */

void
tracker_attempt(enum kmem_domain domain, size_t bytes)
{
	struct kmem_header *header = capture_file_header();

	if (bytes < ATTEMPT_MIN_BYTES)
		return;
	atomic_store_explicit(&header->attempt_domain, domain, memory_order_relaxed);
	atomic_store_explicit(&header->attempt_bytes, bytes, memory_order_relaxed);
}

static void
request_failed(const void *hook_frame, unsigned domain, uint64_t bytes, int error)
{
	struct kmem_header *header = capture_file_header();
	uint64_t number = atomic_fetch_add_explicit(&header->failed_count, 1, memory_order_relaxed) + 1;
	struct kmem_failed *failed = &header->failed[number % KMEM_FAILED_MAX];
	struct kmem_domain_row *row = row_in_use(domain);

	atomic_store_explicit(&failed->sequence, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); // the 0 before the new contents
	failed->bytes = bytes;
	failed->monotonic_ns = heartbeat_now_ns();
	failed->events_before = atomic_load_explicit(&row->allocated_count, memory_order_relaxed);
	failed->site = site_here(hook_frame, domain, generations_clock());
	failed->domain = (uint16_t)domain;
	failed->error = error;
	atomic_store_explicit(&failed->sequence, number, memory_order_release); // contents first
	if (number <= KMEM_FAILED_MAX || bytes >= ATTEMPT_MIN_BYTES) // a program may live with thousands of small refusals
		heartbeat_take(live_host_bytes());
}

void
tracker_failed(const void *hook_frame, enum kmem_domain domain, size_t bytes, int error)
{
	if (!is_teardown())
		request_failed(hook_frame, domain, bytes, error);
}

/* ---- mappings ---- */

static void
pieces_dead(const struct range_pieces *pieces)
{
	for (uint32_t i = 0; i < pieces->count; i++) {
		const struct range *piece = &pieces->piece[i];
		struct address_block block = { .site = piece->site, .generation = piece->generation };

		dead(block, piece->end - piece->start, piece->is_last_piece);
	}
}

/* What does not fit one set of pieces is booked at once: only the first set can be put back. */
static void
take_pieces(uint64_t start, uint64_t end, struct range_pieces *taken)
{
	struct range_pieces more = { .is_more = true };

	if (!range_map_take(start, end, taken)) {
		lose_event(0);
		return;
	}
	for (more.is_more = taken->is_more; more.is_more;) {
		if (!range_map_take(start, end, &more))
			break;
		pieces_dead(&more);
	}
}

void
tracker_mapped(const void *hook_frame, enum kmem_domain domain, void *addr, size_t bytes)
{
	uint64_t start = (uint64_t)addr;
	struct address_block block;
	struct range_pieces stale;

	if (is_teardown())
		return;
	take_pieces(start, start + bytes, &stale);
	if (stale.count != 0) { // unmapped without our seeing it
		capture_file_lost(KMEM_LOST_MISSED_FREES, stale.count);
		pieces_dead(&stale);
	}
	block = born(hook_frame, domain, bytes);
	if (block.site != 0 && !range_map_put(start, start + bytes, block.site, block.generation)) {
		dead(block, bytes, true);
		lose_event(bytes);
	}
	heartbeat_after(live_host_bytes());
}

void
tracker_unmap_begin(void *addr, size_t bytes, struct range_pieces *taken)
{
	taken->count = 0;
	if (!is_teardown())
		take_pieces((uint64_t)addr, (uint64_t)addr + bytes, taken);
}

void
tracker_unmap_end(const struct range_pieces *taken, bool was_released)
{
	if (was_released)
		pieces_dead(taken);
	else if (!range_map_put_back(taken))
		pieces_dead(taken);
}

/* The old pieces live on at another place or in another size: one event with the net change, as for realloc. */
void
tracker_remapped(const void *hook_frame, const struct range_pieces *old, void *addr, size_t bytes)
{
	enum kmem_domain domain;
	struct kmem_domain_row *row;
	uint64_t start = (uint64_t)addr;
	uint64_t old_bytes = 0;
	uint64_t total;
	uint32_t epoch;

	if (old->count == 0) // we never saw it: it stays unknown
		return;
	domain = (enum kmem_domain)site_table_at(old->piece[0].site)->domain;
	row = row_in_use(domain);
	for (uint32_t i = 0; i < old->count; i++) {
		if (site_table_at(old->piece[i].site)->domain != domain) { // a move across kinds: no net change to speak of
			pieces_dead(old);
			tracker_mapped(hook_frame, domain, addr, bytes);
			return;
		}
		old_bytes += old->piece[i].end - old->piece[i].start;
	}

	uint8_t clock = generations_tick(drives_clock(domain) ? bytes : 0);
	struct address_block block = { .bytes = bytes, .site = site_here(hook_frame, domain, clock) };
	if (block.site == 0) {
		pieces_dead(old);
		lose_event(bytes);
		return;
	}
	struct kmem_site *site = site_table_at(block.site);
	block.generation = generations_born(site, block.site, clock);
	if (bytes > old_bytes)
		epoch = peak_add(&row->peak, bytes - old_bytes, &total);
	else
		epoch = peak_sub(&row->peak, old_bytes - bytes);
	book_born(row, site, bytes, epoch);
	for (uint32_t i = 0; i < old->count; i++) {
		const struct range *piece = &old->piece[i];
		struct kmem_site *old_site = site_table_at(piece->site);

		if (piece->is_last_piece)
			generations_died(old_site, piece->generation);
		book_dead(row, old_site, piece->end - piece->start, piece->is_last_piece, epoch);
	}
	if (!range_map_put(start, start + bytes, block.site, block.generation)) {
		dead(block, bytes, true);
		lose_event(bytes);
	}
	heartbeat_after(live_host_bytes());
}

/* ---- devices ---- */

unsigned
tracker_device_domain(int device)
{
	const int last = KMEM_DOMAIN_CUDA_LAST - KMEM_DOMAIN_CUDA_FIRST;

	return KMEM_DOMAIN_CUDA_FIRST + (unsigned)(device >= 0 && device < last ? device : last);
}

void
tracker_device_allocated(const void *hook_frame, unsigned domain, uint64_t key, uint64_t bytes)
{
	struct address_block block;

	if (is_teardown())
		return;
	block = born(hook_frame, domain, bytes);
	if (block.site != 0 && !address_table_put(&devices, key, block)) {
		dead(block, bytes, true);
		lose_event(bytes);
	}
}

struct live_block
tracker_device_take(uint64_t key)
{
	struct address_block block = { 0 };

	if (key != 0 && !is_teardown() && !address_table_take(&devices, key, &block))
		capture_file_lost(KMEM_LOST_UNKNOWN_FREES, 1);
	return (struct live_block){ (void *)key, block.bytes, block.site, block.generation };
}

void
tracker_device_put_back(struct live_block block)
{
	if (block.site != 0 && !address_table_put(&devices, (uint64_t)block.addr, block_of(block)))
		dead(block_of(block), block.bytes, true);
}

void
tracker_device_freed(struct live_block block)
{
	if (block.site != 0)
		dead(block_of(block), block.bytes, true);
}

void
tracker_device_failed(const void *hook_frame, unsigned domain, uint64_t bytes, int result)
{
	if (!is_teardown())
		request_failed(hook_frame, domain, bytes, result);
}

void
tracker_clear(void)
{
	pointer_map_clear();
	range_map_clear();
	address_table_clear(&devices);
	site_table_clear();
}
