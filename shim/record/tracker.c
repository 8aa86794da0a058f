/*
 * tracker.c - the order of the steps (see tracker.h for the rules R1 to R7).
 *
 *   allocation   stack -> site -> books (generation, domain, record of the site) -> pointer map -> heartbeat
 *   release      pointer map -> books (domain, this thread's record of the site)
 *
 * The books are written before the address is in the map, and the address is in the map before the program gets it: a
 * release can never be booked before its allocation.
 */
#include "record/tracker.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/effort.h"
#include "base/settings.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "moments/failed_requests.h"
#include "moments/history.h"
#include "moments/marks.h"
#include "record/beat_due.h"
#include "record/guard_due.h"
#include "record/heap_samples.h"
#include "record/library_due.h"
#include "record/python_samples.h"
#include "record/teardown.h"
#include "record/tracker_parts.h"
#include "sites/callbacks.h"
#include "sites/event_site.h"
#include "sites/releases.h"
#include "sites/site_table.h"
#include "sites/thread_attribution.h"
#include "sites/thread_slot.h"
#include "tables/address_table.h"
#include "tables/generations.h"
#include "tables/peak.h"
#include "tables/pointer_map.h"
#include "tables/range_map.h"

static _Atomic uint32_t state_before_page; // until lifecycle.c has the page
_Atomic uint32_t *tracker_state = &state_before_page;

/* ---- books ---- */

/* Small events of the heap add up in the thread; other domains have few events. */
static struct peak_batch *
batch_of(struct thread_slot *slot, unsigned domain)
{
	return slot != NULL && domain == KMEM_DOMAIN_HEAP ? &slot->heap : NULL;
}

static struct site_owner *
owner_of(struct thread_slot *slot)
{
	return slot != NULL ? &slot->owner : NULL;
}

uint64_t
tracker_live_bytes(unsigned domain)
{
	int64_t now = kmem_peak_now_signed(peak_load(&capture_file_domain(domain)->peak));

	return now > 0 ? (uint64_t)now : 0;
}

uint64_t
tracker_live_host_bytes(void)
{
	return KMEM_HOST_DOMAINS(tracker_live_bytes);
}

/* After an allocation. Where a thread holds events back no total changes: there is nothing to look at. */
static inline void
look_after(const struct peak_batch *batch)
{
	if (library_due_is())
		record_callbacks.library_due(NULL);
	if (batch != NULL && batch->pending_bytes != 0) {
		if (beat_due_by_clock())
			record_callbacks.beat(tracker_live_host_bytes());
		return;
	}
	peak_note_error(thread_slot_count());

	uint64_t live_bytes = tracker_live_host_bytes();

	if (beat_due_after(live_bytes))
		record_callbacks.beat(live_bytes);
	history_look();
}

/* Address space and files are not volume. Nor are arenas, where the objects in them drive the clock. */
static bool
drives_clock(unsigned domain)
{
	if (domain == KMEM_DOMAIN_PYTHON_ARENA)
		return atomic_load_explicit(&capture_file_header()->python_sample_bytes, memory_order_relaxed) == 0;
	return domain != KMEM_DOMAIN_RESERVED && domain != KMEM_DOMAIN_FILE;
}

/* Site and generation of a new block. site 0: no room for it. */
static inline struct address_block
place(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes)
{
	uint8_t clock = drives_clock(domain) ? generations_tick(bytes, 1) : generations_clock();
	struct address_block block = { .bytes = bytes, .site = event_site(slot, hook_frame, domain, bytes, clock) };

	if (block.site == 0) {
		lose_event(bytes);
		return block;
	}
	struct kmem_site *site = site_table_at(block.site);

	if (slot == NULL)
		effort_count(KMEM_EFFORT_NO_SLOT);
	block.generation = kmem_domain_is_sampled(domain) ? generations_born_sample(site, block.site, clock)
	                                                  : generations_born(site, block.site, clock);
	book_prepare(site);
	if (slot != NULL)
		steps_look(&slot->steps, slot->owner.slot, block.site, kmem_domain_is_sampled(domain) ? UINT32_MAX : 1);
	return block;
}

static inline void
book_gain(struct thread_slot *slot, uint32_t site, unsigned domain, uint64_t bytes, bool is_whole)
{
	book_born_slow(site_table_at(site), bytes, is_whole,
	               peak_gain(&capture_file_domain(domain)->peak, batch_of(slot, domain), bytes));
}

/* Everything about a new block but its address. site 0: it could not be booked. */
static inline struct address_block
born(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes)
{
	struct address_block block = place(slot, hook_frame, domain, bytes);

	if (block.site != 0)
		book_gain(slot, block.site, domain, bytes, true);
	return block;
}

/* Booked at once in the record of the thread that releases, and in that record's generations. 0 = no room: the release is lost. */
static inline uint32_t
own_record(struct thread_slot *slot, uint32_t site, uint8_t generation, uint64_t bytes, bool is_whole)
{
	uint32_t own = site_table_own(owner_of(slot), site, generations_clock());

	if (__builtin_expect(own == 0, 0)) {
		lose_event(bytes);
		return 0;
	}
	if (own != site)
		effort_count(KMEM_EFFORT_OTHERS_BLOCKS);
	if (is_whole)
		generations_died(site_table_at(own), own, generation);
	book_prepare(site_table_at(own));
	return own;
}

/* What a sample of so many bytes stands for. */
struct weight {
	uint64_t bytes;
	uint64_t blocks;
};

static struct weight
weight_of(unsigned domain, uint64_t bytes)
{
	uint64_t weight = domain == KMEM_DOMAIN_PYTHON_OBJECT ? PYTHON_SAMPLES_BYTES : heap_samples_weight(bytes);

	return (struct weight){ weight, bytes != 0 ? (weight + bytes / 2) / bytes : weight };
}

/* Samples are booked in records that belong to no thread: the fast paths leave these alone, and so need not ask for the domain. */
static void
dead_sample(unsigned domain, struct address_block block)
{
	struct weight weight = weight_of(domain, block.bytes);
	uint32_t own = own_record(NULL, block.site, block.generation, weight.bytes, true);

	if (own != 0)
		book_dead_slow(site_table_at(own), weight.bytes, weight.blocks,
		               peak_release(&capture_file_domain(domain)->peak, NULL, weight.bytes));
}

static inline void
dead(struct thread_slot *slot, struct address_block block, uint64_t bytes, bool is_whole)
{
	unsigned domain = site_table_at(block.site)->domain;

	if (__builtin_expect(kmem_domain_is_sampled(domain), 0)) {
		dead_sample(domain, block);
		return;
	}
	uint32_t own = own_record(slot, block.site, block.generation, bytes, is_whole);

	if (slot == NULL)
		effort_count(KMEM_EFFORT_NO_SLOT);
	if (__builtin_expect(own != 0, 1))
		book_dead_slow(site_table_at(own), bytes, is_whole,
		               peak_release(&capture_file_domain(domain)->peak, batch_of(slot, domain), bytes));
}

/* Is the event not to be booked, because Python is being torn down? Then it is counted. bytes: what the event asks for. */
static inline bool
is_teardown(uint64_t bytes)
{
	enum teardown_answer answer = teardown_ask(bytes);

	if (__builtin_expect(answer == TEARDOWN_OVER, 0)) {
		struct teardown_release release;

		for (uint32_t i = 0; teardown_released(i, &release); i++) {
			if (release.block.site != 0)
				dead(thread_slot_here(), release.block, release.block.bytes, release.is_whole);
		}
		teardown_done();
	}
	return answer == TEARDOWN_YES;
}

/* A block that was taken out of a map: booked as released, or kept for later. */
static inline void
released(struct thread_slot *slot, struct address_block block, bool is_whole)
{
	if (__builtin_expect(is_teardown(0), 0)) {
		teardown_keep(block, is_whole);
		return;
	}
	effort_count(KMEM_EFFORT_SLOW_RELEASES);
	dead(slot, block, block.bytes, is_whole);
}

/* One event for the total: the net change. A change of 0 is a release, because the first of equal maxima counts (P3). */
static uint32_t
net_change(struct thread_slot *slot, unsigned domain, uint64_t old_bytes, uint64_t bytes)
{
	struct kmem_peak_word *word = &capture_file_domain(domain)->peak;

	return bytes > old_bytes ? peak_gain(word, batch_of(slot, domain), bytes - old_bytes)
	                         : peak_release(word, batch_of(slot, domain), old_bytes - bytes);
}

/* ---- heap ---- */

/* Such blocks are few, and lie where no region of the map is worth its memory. */
static inline bool
is_heap_sample(struct address_block block)
{
	return block.bytes < heap_samples_limit() && block.site != 0 &&
	       site_table_at(block.site)->domain == KMEM_DOMAIN_HEAP_SAMPLE;
}

static inline void
map_block(struct thread_slot *slot, void *addr, struct address_block block)
{
	struct address_block old;

	/* No block of a sample goes the fast way, where the filter is not asked: nor one of before the sample began. */
	if (settings.sample_bytes != 0 || (slot != NULL && (slot->map_bits & POINTER_MAP_WATCHED) != 0))
		block.generation |= POINTER_MAP_WATCH;
	heap_samples_note(addr);
	enum pointer_map_put put = is_heap_sample(block) ? pointer_map_put_aside((uint64_t)addr, block, &old)
	                                                 : POINTER_MAP_FULL;

	if (put == POINTER_MAP_FULL)
		put = pointer_map_put(addr, block, &old);
	switch (put) {
	case POINTER_MAP_STORED:
		break;
	case POINTER_MAP_REPLACED:
		heap_samples_forget(addr);
		capture_file_lost(KMEM_LOST_MISSED_FREES, 1);
		if (old.site != 0) // else tracker_disowned()
			dead(slot, old, old.bytes, true);
		break;
	case POINTER_MAP_FULL:
		/* Its release will not be seen: better not alive at all than alive for ever. */
		heap_samples_forget(addr);
		block.generation &= POINTER_MAP_GENERATION_MASK;
		dead(slot, block, block.bytes, true);
		lose_event(block.bytes);
		break;
	}
	if (__builtin_expect(slot != NULL && slot->owes_beat, 0)) {
		slot->owes_beat = false;
		if (beat_due_now())
			record_callbacks.beat(tracker_live_host_bytes());
	}
}

static void
sampled(const void *hook_frame, unsigned domain, uint8_t object_bit, void *addr, uint64_t bytes)
{
	struct kmem_header *header = capture_file_header();
	struct weight weight = weight_of(domain, bytes);
	int host_errno = errno;

	if (is_teardown(weight.bytes))
		return;
	if (domain == KMEM_DOMAIN_PYTHON_OBJECT)
		atomic_store_explicit(&header->python_sample_bytes, kmem_twice((uint32_t)PYTHON_SAMPLES_BYTES),
		                      memory_order_relaxed);
	else
		marks_look();

	struct address_block block = place(thread_slot_here(), hook_frame, domain, weight.bytes);

	if (block.site != 0) {
		book_born_slow(site_table_at(block.site), weight.bytes, weight.blocks,
		               peak_gain(&capture_file_domain(domain)->peak, NULL, weight.bytes));
		block.bytes = bytes;
		block.generation |= object_bit;
		map_block(thread_slot_here(), addr, block);
	}
	look_after(NULL);
	errno = host_errno;
}

void
tracker_allocated_slow(const void *hook_frame, uint8_t object_bit, void *addr, uint64_t bytes)
{
	int host_errno = errno;

	if (bytes < heap_samples_limit()) {
		sampled(hook_frame, KMEM_DOMAIN_HEAP_SAMPLE, object_bit, addr, bytes);
		return;
	}
	if (is_teardown(bytes))
		return;

	struct thread_slot *slot = thread_slot_here();

	effort_count(KMEM_EFFORT_SLOW_ALLOCATIONS);

	struct address_block block = born(slot, hook_frame, KMEM_DOMAIN_HEAP, bytes);

	block.generation |= object_bit;
	if (block.site != 0)
		map_block(slot, addr, block);
	look_after(batch_of(slot, KMEM_DOMAIN_HEAP));
	errno = host_errno;
}

void
tracker_sampled(const void *hook_frame, void *addr, size_t bytes)
{
	sampled((const void *)((uintptr_t)hook_frame | TRACKER_FRAME_PYTHON), KMEM_DOMAIN_PYTHON_OBJECT, 0, addr, bytes);
}

/* Watched, so that its release does not go the fast way, which asks for the record of its site. */
void
tracker_disowned(void *addr)
{
	struct address_block block;

	if (!pointer_map_take(addr, &block))
		return;
	if (block.site != 0)
		released(thread_slot_here(), block, true);
	(void)pointer_map_put(addr, (struct address_block){ .bytes = block.bytes, .generation = POINTER_MAP_WATCH },
	                      &block);
}

uint32_t
tracker_site_slow(struct thread_slot *slot, const void *hook_frame, struct event_lookup lookup, uint64_t bytes)
{
	int host_errno = errno;

	if (is_teardown(bytes))
		return 0;

	uint32_t site = event_site_slow(slot, hook_frame, lookup, bytes, generations_clock());

	if (site == 0)
		lose_event(bytes);
	errno = host_errno;
	return site;
}

void
tracker_gain_slow(struct thread_slot *slot, void *addr, struct address_block block)
{
	struct kmem_site *site = site_table_at(block.site);
	int host_errno = errno;

	effort_count(KMEM_EFFORT_SLOW_ALLOCATIONS);
	book_prepare(site);
	book_born_slow(site, block.bytes, true,
	               peak_gain(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, &slot->heap, block.bytes));
	map_block(slot, addr, block);
	look_after(&slot->heap);
	errno = host_errno;
}

void
tracker_resize_slow(struct thread_slot *slot, struct address_block old, void *addr, struct address_block block)
{
	struct kmem_site *old_site = site_table_at(old.site);
	struct kmem_site *site = site_table_at(block.site);

	effort_count(KMEM_EFFORT_SLOW_ALLOCATIONS);
	generations_died(old_site, old.site, old.generation);
	book_prepare(old_site);
	book_prepare(site);

	uint32_t epoch = net_change(slot, KMEM_DOMAIN_HEAP, old.bytes, block.bytes);

	book_born_slow(site, block.bytes, true, epoch);
	book_dead_slow(old_site, old.bytes, true, epoch);
	map_block(slot, addr, block);
	look_after(&slot->heap);
}

void
tracker_dead_slow(struct thread_slot *slot, struct address_block block)
{
	released(slot, block, true);
}

void
tracker_map_slow(struct thread_slot *slot, void *addr, uint64_t bytes, uint32_t site, uint8_t generation)
{
	int host_errno = errno;

	map_block(slot, addr, (struct address_block){ bytes, site, generation });
	errno = host_errno;
}

void
tracker_look_after(uint64_t bytes, uint64_t blocks, bool may_beat)
{
	int host_errno = errno;

	generations_tick(bytes, blocks);
	marks_look();
	if (may_beat && beat_due_now())
		record_callbacks.beat(tracker_live_host_bytes());
	history_look();
	if (pointer_map_is_trim_due(tracker_live_bytes(KMEM_DOMAIN_HEAP)))
		pointer_map_trim_step(clock_now_ns());
	errno = host_errno;
}

struct live_block
tracker_take(void *addr)
{
	struct address_block block = { 0 };

	if (addr != NULL && !pointer_map_take(addr, &block) && heap_samples_limit() == 0 && !is_teardown(0))
		capture_file_lost(
			capture_file_header()->identity.is_forked != 0 ? KMEM_LOST_INHERITED_FREES : KMEM_LOST_UNKNOWN_FREES, 1);
	return (struct live_block){ addr, block.bytes, block.site, block.generation };
}

struct live_block
tracker_take_sampled(void *addr)
{
	struct address_block block = { 0 };

	if (pointer_map_take(addr, &block))
		heap_samples_forget(addr);
	return (struct live_block){ addr, block.bytes, block.site, block.generation };
}

static struct address_block
block_of(struct live_block block)
{
	return (struct address_block){ block.bytes, block.site, block.generation };
}

void
tracker_released(struct live_block block)
{
	if (block.site != 0)
		released(thread_slot_to_release(), block_of(block), true);
}

/*
 * Large blocks and samples of small objects never go the fast way: they need not be watched. Where the heap is sampled, these walks would be
 * half of what recording costs.
 */
static inline bool
is_releaser_wanted(bool is_watched, struct live_block block)
{
	return block.site != 0 &&
	       (is_watched || block.bytes >= POINTER_MAP_LARGE_BYTES ||
	        (heap_samples_limit() == 0 && site_table_at(block.site)->domain == KMEM_DOMAIN_PYTHON_OBJECT));
}

void
tracker_freed(const void *hook_frame, void *addr)
{
	bool is_watched = settings.sample_bytes == 0 && pointer_map_is_watched(addr);
	struct live_block block = tracker_take(addr);
	struct thread_slot *slot = thread_slot_current;

	if (block.site != 0)
		heap_samples_forget(addr);

	if (slot != NULL && is_releaser_wanted(is_watched, block) && !is_teardown(0))
		releases_note(slot, hook_frame, (uint64_t)addr, block.site, block.bytes);
	tracker_released(block);
}

/* Where a thread holds events back no total changes: until they are added there is nothing to see. */
bool
tracker_has_fallen(void)
{
	struct thread_slot *slot = thread_slot_current;

	return (slot == NULL || slot->heap.pending_bytes == 0) && beat_due_has_fallen(tracker_live_host_bytes());
}

void
tracker_look_after_release(void)
{
	uint64_t live_bytes = tracker_live_host_bytes();

	if (beat_due_after_release(live_bytes))
		record_callbacks.beat(live_bytes);
}

void
tracker_put_back(struct live_block block)
{
	if (block.site != 0)
		map_block(thread_slot_here(), block.addr, block_of(block));
}

void
tracker_resized_slow(const void *hook_frame, uint8_t object_bit, struct live_block old, void *addr, uint64_t bytes)
{
	struct thread_slot *slot = thread_slot_here();

	if (addr == NULL || old.site == 0 || bytes < heap_samples_limit() ||
	    site_table_at(old.site)->domain != KMEM_DOMAIN_HEAP) {
		if (old.site != 0)
			released(slot, block_of(old), true);
		if (addr != NULL)
			tracker_allocated_slow(hook_frame, object_bit, addr, bytes);
		return;
	}
	if (is_teardown(bytes)) {
		teardown_keep(block_of(old), true);
		return;
	}
	effort_count(KMEM_EFFORT_SLOW_ALLOCATIONS);

	struct address_block block = place(slot, hook_frame, KMEM_DOMAIN_HEAP, bytes);

	block.generation |= object_bit;
	if (block.site == 0) {
		dead(slot, block_of(old), old.bytes, true);
		return;
	}

	uint32_t own = own_record(slot, old.site, old.generation, old.bytes, true);
	uint32_t epoch = net_change(slot, KMEM_DOMAIN_HEAP, own != 0 ? old.bytes : 0, bytes);

	book_born_slow(site_table_at(block.site), bytes, true, epoch);
	if (own != 0)
		book_dead_slow(site_table_at(own), old.bytes, true, epoch);
	map_block(slot, addr, block);
	look_after(batch_of(slot, KMEM_DOMAIN_HEAP));
}

void
tracker_resized_sampled(const void *hook_frame, struct live_block old, void *addr, size_t bytes, bool is_drawn)
{
	if (is_drawn)
		tracker_resized_slow(hook_frame, 0, old, addr, bytes);
	else
		tracker_released(old);
}

/* ---- requests ---- */

bool
tracker_attempt_large(enum kmem_domain domain, size_t bytes, size_t old_bytes)
{
	uint64_t more_bytes = bytes > old_bytes ? bytes - old_bytes : 0;

	failed_requests_attempt(domain, bytes);
	return !guard_due_is(more_bytes) || record_callbacks.guard_allows(domain, more_bytes, old_bytes != 0);
}

void
tracker_refused_by_guard(const void *hook_frame, size_t bytes)
{
	tracker_refused(hook_frame, (struct failed_request){
									.domain = KMEM_DOMAIN_HEAP, .bytes = bytes, .error = ENOMEM, .is_by_guard = true });
}

void
tracker_failed(const void *hook_frame, enum kmem_domain domain, size_t bytes, int error)
{
	tracker_refused(hook_frame, (struct failed_request){ .domain = domain, .bytes = bytes, .error = error });
}

void
tracker_refused(const void *hook_frame, struct failed_request request)
{
	if (is_teardown(0))
		return;
	record_callbacks.needs_file();
	struct thread_slot *slot = thread_slot_here();

	request.slot = slot != NULL ? slot->owner.slot : 0;
	request.site = event_site(slot, hook_frame, request.domain, request.bytes, generations_clock());
	if (failed_requests_note(&request))
		record_callbacks.beat(tracker_live_host_bytes());
}

/* ---- for the tracker's other files ---- */

struct address_block
tracker_place(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes)
{
	return place(slot, hook_frame, domain, bytes);
}

struct address_block
tracker_place_at(uint32_t site, uint64_t bytes)
{
	uint8_t clock = generations_tick(bytes, 1);
	struct address_block block = { .bytes = bytes,
		                           .site = site,
		                           .generation = generations_born(site_table_at(site), site, clock) };

	book_prepare(site_table_at(site));
	return block;
}

void
tracker_gain(struct thread_slot *slot, uint32_t site, unsigned domain, uint64_t bytes, bool is_whole)
{
	book_gain(slot, site, domain, bytes, is_whole);
}

uint32_t
tracker_own_record(struct thread_slot *slot, uint32_t site, uint8_t generation, uint64_t bytes, bool is_whole)
{
	return own_record(slot, site, generation, bytes, is_whole);
}

uint32_t
tracker_net_change(struct thread_slot *slot, unsigned domain, uint64_t old_bytes, uint64_t bytes)
{
	return net_change(slot, domain, old_bytes, bytes);
}

void
tracker_gone(struct thread_slot *slot, struct address_block block, bool is_whole)
{
	released(slot, block, is_whole);
}

void
tracker_look_after_total(void)
{
	look_after(NULL);
}

struct address_block
tracker_born(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes)
{
	return is_teardown(bytes) ? (struct address_block){ 0 } : born(slot, hook_frame, domain, bytes);
}

void
tracker_dead(struct thread_slot *slot, struct address_block block)
{
	dead(slot, block, block.bytes, true);
}

void
tracker_lost(struct thread_slot *slot, struct address_block block)
{
	tracker_dead(slot, block);
	lose_event(block.bytes);
}

bool
tracker_is_teardown(uint64_t bytes)
{
	return is_teardown(bytes);
}

void
tracker_hook_left(void)
{
	turn_left();
	thread_slot_left();
	heap_samples_hook_left();
	lose_event(0);
}

void
tracker_clear(void)
{
	pointer_map_clear();
	range_map_clear();
	tracker_devices_clear();
	site_table_clear();
	event_site_clear();
	thread_slot_forked();
	heap_samples_forked();
	teardown_forked();
}
