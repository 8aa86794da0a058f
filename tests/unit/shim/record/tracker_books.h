/*
 * tracker_books.h - what the books of domains and sites must say after events whose addresses are numbers: the tracker never follows them.
 */
#ifndef TRACKER_BOOKS_H
#define TRACKER_BOOKS_H

#include "unit.h"

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "record/tracker.h"
#include "record/tracker_library.h"
#include "sites/site_table.h"
#include "sites/thread_slot.h"
#include "tables/pointer_map.h"
#include "unwind/native_stack.h"

#define PAGE UINT64_C(4096)
#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") // no tail call
#define HERE __builtin_frame_address(0)

SETUP(start_empty)
{
	capture_file_forked();
	tracker_library_clear();
	tracker_clear();
	capture_file_header()->generation_clock = 1;
	capture_file_header()->identity.page_bytes = 4096;
}

static inline void *
at(uint64_t addr)
{
	return (void *)addr;
}

struct totals {
	uint64_t allocated_bytes;
	uint64_t freed_bytes;
	uint64_t allocated_count;
	uint64_t freed_count;
	uint64_t peak_bytes;
};

/* The domain's word as a reader takes it: with what its records hold. */
static inline struct kmem_peak_word
peak_word(unsigned domain)
{
	struct site_totals totals[KMEM_DOMAINS_MAX];
	struct kmem_peak_word word = capture_file_domain(domain)->peak;

	site_table_totals(totals);
	return kmem_peak_pack(totals[domain].live_bytes, kmem_peak_high(word), kmem_peak_epoch(word));
}

/* P1, P2 and S3: what the records of a domain add up to. */
static inline void
assert_row(unsigned domain, struct totals wanted)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);
	struct kmem_peak_word word = peak_word(domain);
	struct totals sum = { 0 };

	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);

		if (site->domain != domain)
			continue;
		assert_int_equal(kmem_peak_now(site->peak), site->allocated_bytes - site->freed_bytes);
		sum.allocated_bytes += site->allocated_bytes;
		sum.freed_bytes += site->freed_bytes;
		sum.allocated_count += site->allocated_count;
		sum.freed_count += site->freed_count;
		sum.peak_bytes += kmem_site_peak_bytes(word, site->peak);
	}
	assert_int_equal(sum.allocated_bytes, wanted.allocated_bytes);
	assert_int_equal(sum.freed_bytes, wanted.freed_bytes);
	assert_int_equal(sum.allocated_count, wanted.allocated_count);
	assert_int_equal(sum.freed_count, wanted.freed_count);
	assert_int_equal(sum.peak_bytes, wanted.peak_bytes);
	assert_int_equal(kmem_domain_peak_bytes(word), wanted.peak_bytes);
}

static inline uint64_t
lost(enum kmem_loss loss)
{
	return capture_file_header()->losses[loss];
}

#endif
