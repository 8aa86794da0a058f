/*
 * inherited.c - what did this process inherit at fork, and how much of that has it copied (see inherited.h)?
 */
#include "periodic/inherited.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "moments/phases.h"
#include "periodic/page_look.h"
#include "periodic/resident.h"
#include "python/python_frames.h"
#include "python/python_runtime.h"
#include "python/python_types.h"
#include "record/python_samples.h"
#include "sites/thread_slot.h"
#include "tables/peak.h"

/*
 * A look takes 14 ms per GiB that is resident (page_look.h): no more than a 64th of the time since the last one, or since the fork. A child
 * that lives for a moment takes none, unless that much may be copied.
 */
#define WORTH_A_LOOK_BYTES ((uint64_t)4 << 20)
#define BYTES_PER_NS 1      // that are resident
#define COPIED_MUCH_SHARE 8 // of what is resident: the copies took about as long as a look
#define PIECES_SHARE 8      // pieces of a look take no more than that part of its time

/* Of the last fork; in a child, what its parent held at that moment. */
static struct site_totals totals[KMEM_DOMAINS_MAX];
static struct kmem_inherited_site largest[KMEM_INHERITED_SITES_MAX]; // first the largest
static uint32_t largest_count;
static struct turn gathering; // of two forks at once the second child gathers by itself
static bool is_gathered;

/* In a child: the parent's samples of small Python objects. The lowest bits of an address are 0: here they are the place in `largest`. */
#define SAMPLE_ALIGN ((uint64_t)16)
static_assert(KMEM_INHERITED_SITES_MAX <= SAMPLE_ALIGN, "the place in `largest` fits");
static uint64_t samples[PYTHON_SAMPLES_MAX];
static uint32_t sample_count;
static bool is_forked;
static struct turn sampling; // a thread is at the figures; others leave it to that
static struct {
	struct page_look look;
	uint64_t bytes; // of private memory that no other process has
	uint64_t table_bytes;
	uint64_t looked_ns; // at the last look, or the fork
	uint64_t looked_faulted_bytes;
} own_pages; // under it

/*
 * Records are summed one after the other while other threads go on: an event that comes meanwhile may count half. The domain's own word
 * is off by no more than what threads hold back.
 */
void
inherited_totals_now(struct site_totals now_totals[KMEM_DOMAINS_MAX])
{
	int64_t held_back = (int64_t)thread_slot_count() * peak_batch_limit(INT64_MAX);

	site_table_totals(now_totals);
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		int64_t now = kmem_peak_now_signed(peak_load(&capture_file_domain(i)->peak));
		int64_t off = (int64_t)now_totals[i].live_bytes - now;

		if (off > held_back || off < -held_back || (int64_t)now_totals[i].live_bytes < 0)
			now_totals[i].live_bytes = now > 0 ? (uint64_t)now : 0;
		if ((int64_t)now_totals[i].live_count < 0)
			now_totals[i].live_count = 0;
	}
}

static void
note_site(uint32_t site, uint64_t live_bytes)
{
	uint32_t place = largest_count;

	while (place != 0 && largest[place - 1].live_bytes < live_bytes)
		place--;
	if (place == KMEM_INHERITED_SITES_MAX)
		return;
	if (largest_count < KMEM_INHERITED_SITES_MAX)
		largest_count++;
	memmove(&largest[place + 1], &largest[place], (largest_count - 1 - place) * sizeof(*largest));
	largest[place] = (struct kmem_inherited_site){ .site = site, .live_bytes = live_bytes };
}

void
inherited_gather(void)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);

	if (!turn_take(&gathering))
		return;
	inherited_totals_now(totals);
	largest_count = 0;
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);
		/* relaxed: counters, which go on meanwhile. */
		int64_t live = (int64_t)(atomic_load_explicit(&site->allocated_bytes, memory_order_relaxed) -
		                         atomic_load_explicit(&site->freed_bytes, memory_order_relaxed));

		if (live > 0 && site_table_is_complete(site) && kmem_domain_is_private(site->domain))
			note_site(i, (uint64_t)live);
	}
	is_gathered = true;
	turn_give(&gathering);
}

void
inherited_forked_parent(void)
{
	is_gathered = false;
}

/*
 * Has the block a count of references, which reading writes? Blocks without one (the keys of a dictionary) lie in malloc's heap beside
 * objects, but not in the arenas. The block is alive and no other thread is here, so its words can be read. Where types are not known it
 * is taken for an object.
 */
static bool
is_object(uint64_t object, uint64_t bytes)
{
	uint64_t words[PYTHON_TYPES_WORDS] = { 0 };

	if (!python_frames_is_attached())
		return true;
	memcpy(words, (const void *)(uintptr_t)object, bytes < sizeof(words) ? bytes : sizeof(words));
	return python_types_name(&python_runtime.interpreter, words, bytes) != NULL;
}

static void
note_sample(uint64_t object, uint64_t bytes, uint32_t site)
{
	for (uint32_t i = 0; i < largest_count && sample_count < PYTHON_SAMPLES_MAX; i++) {
		if (largest[i].site == site) {
			if (is_object(object, bytes))
				samples[sample_count++] = (object & ~(SAMPLE_ALIGN - 1)) | i;
			return;
		}
	}
}

/* To be called while the parent's tables are there. */
static void
note_samples(void)
{
	bool has_any = false;

	sample_count = 0;
	for (uint32_t i = 0; i < largest_count; i++)
		has_any = has_any || site_table_at(largest[i].site)->domain == KMEM_DOMAIN_PYTHON_OBJECT;
	if (!has_any)
		return;
	python_types_forget();
	python_samples_visit(note_sample);
}

void
inherited_forked_child(void)
{
	if (!is_gathered)
		inherited_gather();
	is_gathered = false;
	note_samples();
	page_look_drop(&own_pages.look);
	own_pages.looked_ns = clock_now_ns();
	own_pages.looked_faulted_bytes = 0;
	is_forked = true;
}

void
inherited_store(void)
{
	struct kmem_inherited *stored = &capture_file_header()->inherited;

	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		capture_file_domain(i)->inherited_bytes = totals[i].live_bytes;
		capture_file_domain(i)->inherited_count = totals[i].live_count;
	}
	memcpy(stored->sites, largest, largest_count * sizeof(*largest));
	stored->site_count = largest_count;
	stored->sites_checksum = kmem_inherited_sites(stored);
}

uint64_t
inherited_own_peak_bytes(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		if (i != KMEM_DOMAIN_RESERVED && i != KMEM_DOMAIN_FILE && i != KMEM_DOMAIN_PYTHON_OBJECT) // these lie in arenas
			bytes += phases_peak_bytes(capture_file_domain(i));
	}
	return bytes;
}

uint64_t
inherited_copied_bytes(void)
{
	return atomic_load_explicit(&capture_file_header()->inherited.copied_bytes, memory_order_relaxed);
}

static void
count_copied_samples(struct kmem_inherited *stored)
{
	static uint32_t counts[KMEM_INHERITED_SITES_MAX]; // one thread at a time; the stack may be small

	if (sample_count == 0)
		return;

	struct page_look_map map = page_look_open_map();

	memset(counts, 0, sizeof(counts));
	for (uint32_t i = 0; i < sample_count; i++)
		counts[samples[i] % SAMPLE_ALIGN] += page_look_is_own(&map, samples[i]) ? 1 : 0;
	page_look_close_map(&map);
	/* relaxed: each word is the whole message. Never less than before: what is given back had been copied all the same. */
	for (uint32_t i = 0; i < largest_count; i++) {
		uint32_t before = atomic_load_explicit(&stored->sites[i].copied_samples, memory_order_relaxed) & UINT16_MAX;

		if (counts[i] > before)
			atomic_store_explicit(&stored->sites[i].copied_samples, kmem_twice_16(counts[i]), memory_order_relaxed);
	}
}

/* Pages of the recorder's tables are no copies of what the program had built. */
static void
visit(struct page_look *look, uint64_t start, uint64_t end)
{
	enum kmem_own_part part;
	uint64_t to;

	for (uint64_t at = start; at < end && !look->is_hole; at = to) {
		bool is_table = raw_is_reserved(at, &to, &part) && part != KMEM_OWN_CAPTURE;

		to = to < end ? to : end;
		uint64_t bytes = page_look_count(&look->pages[(at - start) / PAGE_LOOK_PAGE_BYTES],
		                                 (to - at) / PAGE_LOOK_PAGE_BYTES, PAGE_LOOK_OWN) *
		                 PAGE_LOOK_PAGE_BYTES;

		own_pages.bytes += bytes;
		own_pages.table_bytes += is_table ? bytes : 0;
	}
}

static bool
is_worth_it(bool is_end, uint64_t most_bytes)
{
	const struct kmem_header *header = capture_file_header();
	uint64_t least_bytes = inherited_own_peak_bytes() + WORTH_A_LOOK_BYTES;

	uint64_t since_bytes = most_bytes - own_pages.looked_faulted_bytes;

	if (most_bytes < least_bytes ||
	    (!is_end && (since_bytes < WORTH_A_LOOK_BYTES || since_bytes < inherited_copied_bytes() / 4)))
		return false;
	uint64_t resident_bytes = memory_limits_resident(&header->identity);
	uint64_t since_ns = is_end ? header->identity.start_monotonic_ns : own_pages.looked_ns;

	return clock_now_ns() - since_ns >= resident_bytes / BYTES_PER_NS ||
	       most_bytes >= least_bytes - WORTH_A_LOOK_BYTES + resident_bytes / COPIED_MUCH_SHARE;
}

/* Where nobody looked, at most what was faulted may be copied. */
static void
publish(bool is_looked, uint64_t most_bytes)
{
	struct kmem_inherited *stored = &capture_file_header()->inherited;
	uint64_t own_bytes = inherited_own_peak_bytes();
	uint64_t bytes = own_pages.bytes < most_bytes ? own_pages.bytes : most_bytes;

	/* relaxed: the checksum tells a reader whether what it saw is of one look (F7). */
	atomic_store_explicit(&stored->figures_checksum, 0, memory_order_relaxed);
	atomic_store_explicit(&stored->faulted_bytes, most_bytes, memory_order_relaxed);
	if (is_looked) {
		own_pages.looked_ns = clock_now_ns();
		own_pages.looked_faulted_bytes = most_bytes;
		atomic_store_explicit(&stored->private_dirty_bytes, own_pages.bytes, memory_order_relaxed);
		bytes -= own_pages.table_bytes < bytes ? own_pages.table_bytes : bytes;
		if (bytes > own_bytes && bytes - own_bytes > inherited_copied_bytes())
			atomic_store_explicit(&stored->copied_bytes, bytes - own_bytes, memory_order_relaxed);
		count_copied_samples(stored);
	}
	atomic_store_explicit(&stored->figures_checksum, kmem_inherited_figures(stored), memory_order_relaxed);
}

/* Returns when it goes on; UINT64_MAX: it does not. */
static uint64_t
look(bool is_end)
{
	bool has_parent = (uint32_t)raw_syscall(SYS_getppid) == capture_file_header()->identity.forked_from;
	bool goes_on = has_parent && !is_end && page_look_is_halfway(&own_pages.look);
	uint64_t now_ns = clock_now_ns();
	uint64_t most_bytes = memory_limits_faulted(&capture_file_header()->identity);

	if (goes_on && !page_look_is_time(&own_pages.look, now_ns))
		return atomic_load_explicit(&own_pages.look.next_ns, memory_order_relaxed);
	if (!has_parent || (!goes_on && !is_worth_it(is_end, most_bytes))) {
		publish(false, most_bytes);
		return UINT64_MAX;
	}
	if (!goes_on) {
		page_look_drop(&own_pages.look);
		own_pages.look.depth = PAGE_LOOK_OWNERS;
		own_pages.bytes = own_pages.table_bytes = 0;
	}
	if (page_look_go_on(&own_pages.look, visit, is_end ? UINT64_MAX : PAGE_LOOK_PIECE_WORK) ||
	    !page_look_is_halfway(&own_pages.look)) { // it failed: not again for each beat
		publish(true, most_bytes);
		return UINT64_MAX;
	}
	return page_look_wait(&own_pages.look, now_ns, PIECES_SHARE);
}

uint64_t
inherited_sample(bool is_end)
{
	uint64_t next_ns = UINT64_MAX;

	if (!is_forked || !raw_sys_may_call() || !turn_take(&sampling))
		return next_ns;
	next_ns = look(is_end);
	turn_give(&sampling);
	return next_ns;
}
