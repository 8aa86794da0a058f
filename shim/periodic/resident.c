/*
 * resident.c - what is the resident set made of (see resident.h)?
 *
 * The kernel says of each page whether it is in memory (page_look.h). What lies there is found out by address: our own tables, mappings
 * that went through our hooks, loaded objects, blocks of the heap.
 *
 * The pages of a large process are looked at cheaply, so that zero pages are taken for memory. Then the sum is compared with the size of
 * the resident set. Where it is larger they are looked at once more, exactly, as those of a small process are at once. Of pages of which that cannot tell either (a process that forked, a kernel
 * without PAGEMAP_SCAN), all together get what is left of the resident set.
 *
 * Not attributed: mappings made by direct system calls, by libc for itself, by a libc of another namespace. A forked child starts with
 * empty tables: there such memory is what it has from its parent.
 */
#include "periodic/resident.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/loaded_object.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "periodic/page_look.h"
#include "periodic/rate_limit.h"
#include "periodic/resident_heap.h"
#include "periodic/resident_lines.h"
#include "record/tracker_library.h"
#include "sites/site_table.h"
#include "tables/pointer_map.h"
#include "tables/range_map.h"

#define PAGE_BYTES PAGE_LOOK_PAGE_BYTES
#define CHUNK_WORDS_BYTES 16 // of malloc's, before the block
#define GUARD_BYTES_MAX (UINT64_C(64) << 10)
#define PERIOD_PART 1024
#define PERIOD_NS UINT64_C(50000000)
#define URGENT_PART 32
#define PRESSING_PART 25
#define GROWTH_SHARE 4
#define FALL_BYTES (UINT64_C(16) << 20)
#define NEAR_SHARE 8     // of the limit, before it
#define STEP_SHARE 64    // of the limit
#define WORDS_PER_WORK 8 // of the pointer map: they lie side by side
#define PIECES_SHARE 8   // pieces take no more than that part of the time of a look
#define PIECES_SHARE_PRESSING 2
#define ERROR_SHARE \
	256 // so much may be the zero page without a second look; what the kernel says of the whole may be off, too
#define ERROR_BYTES (UINT64_C(1) << 20)
#define SMALL_BYTES (UINT64_C(64) << 20)
#define SMALL_DOUBT_BYTES (UINT64_C(64) << 10) // the kernel's own pages ([vvar]) are 16 KiB

/* All of it is under the flag. */
static struct {
	uint64_t sequence;
	enum kmem_own_part own; // of what was last found to be ours
	uint64_t counted_bytes[KMEM_RESIDENT_PARTS];
	uint64_t doubtful_bytes[KMEM_RESIDENT_PARTS]; // there, and perhaps the zero page
	uint64_t own_counted_bytes[KMEM_OWN_PARTS];
	uint64_t own_doubtful_bytes[KMEM_OWN_PARTS];
	uint64_t guard_end;   // what lay before was a guard or a stack, up to here
	bool has_cuda_driver; // at any look
	uint64_t heap_end;    // what lay before was malloc's, up to here
	uint64_t doubtful;    // all of that,
	uint64_t room;        // and so much of it is resident
} look;
struct page_look resident_pages; // under it, too
static struct rate_limit paced = {
	.period_ns = PERIOD_NS,
	.parts = { [PACED_USUAL] = PERIOD_PART,
	           [PACED_URGENT] = URGENT_PART,
	           [PACED_FALLEN] = URGENT_PART,
	           [PACED_PRESSING] = PRESSING_PART },
};

uint64_t resident_piece_work = PAGE_LOOK_PIECE_WORK;
uint64_t resident_cheap_bytes = RESIDENT_CHEAP_BYTES;

/* What the last look found, and what was charged then. relaxed: they guard nothing. UINT64_MAX: there was none. */
static _Atomic uint64_t last_bytes = UINT64_MAX;
static _Atomic uint64_t last_charged_bytes = UINT64_MAX;
static _Atomic uint64_t last_live_bytes; // 0: there was none

static bool
starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static enum kmem_resident_part
part_of_domain(unsigned domain)
{
	switch (domain) {
	case KMEM_DOMAIN_MMAP:
		return KMEM_RESIDENT_MMAP;
	case KMEM_DOMAIN_RESERVED:
		return KMEM_RESIDENT_RESERVED;
	case KMEM_DOMAIN_PYTHON_ARENA:
		return KMEM_RESIDENT_PYTHON_ARENA;
	default:
		return KMEM_RESIDENT_OTHER;
	}
}

/* Does an ELF object lie there? */
static bool
is_in_object(uint64_t addr, uint64_t *end, enum kmem_resident_part *part)
{
	static uint64_t own_addr;
	struct loaded_object object;

	if (!loaded_object_find(addr, &object))
		return false;
	if (own_addr == 0) {
		struct loaded_object own;

		own_addr = loaded_object_find((uintptr_t)resident_take, &own) ? own.start_addr : UINT64_MAX;
	}
	*part = object.start_addr == own_addr ? KMEM_RESIDENT_OWN : KMEM_RESIDENT_PROGRAM;
	*end = (object.end_addr + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	return true;
}

static enum kmem_resident_part
file_at(const struct page_mapping *mapping, uint64_t addr, uint64_t *end)
{
	enum kmem_resident_part part;

	if (!mapping->is_shared && is_in_object(addr, end, &part))
		return part;
	if (addr - (uint64_t)capture_file_header() < KMEM_HEAD_BYTES) {
		look.own = KMEM_OWN_CAPTURE;
		return KMEM_RESIDENT_OWN;
	}
	return (mapping->is_shared && mapping->is_writable) || starts_with(mapping->path, "/dev/shm/") ||
	               starts_with(mapping->path, "/memfd:") || starts_with(mapping->path, "/SYSV") ||
	               starts_with(mapping->path, "/dev/zero")
	           ? KMEM_RESIDENT_SHARED
	           : KMEM_RESIDENT_FILE;
}

/* Memory that did not come through our hooks: a thread's stack lies above a guard, and a heap has blocks in it. */
static enum kmem_resident_part
unseen_at(uint64_t addr, uint64_t *end)
{
	bool was_used;
	uint64_t block = pointer_map_lowest(addr, *end, &was_used) & ~(PAGE_BYTES - 1);
	struct address_block large;

	/* Where addresses are short, a large block is in no leaf of the map. malloc gives it a mapping of its own. */
	if (block >= *end && pointer_map_find(addr + CHUNK_WORDS_BYTES, &large))
		block = addr;

	if (addr == look.guard_end && block > addr) {
		if (block < *end)
			*end = block; // older kernels join a stack and what malloc mapped above it
		return KMEM_RESIDENT_STACKS;
	}
	/* Advice to the kernel cuts a block's mapping: in the rest of it no block begins. */
	if (block < *end || was_used || addr == look.heap_end) {
		look.heap_end = *end;
		return KMEM_RESIDENT_HEAP;
	}
	return capture_file_header()->identity.is_forked != 0 ? KMEM_RESIDENT_INHERITED : KMEM_RESIDENT_OTHER;
}

/* What lies at `addr`. *end: the end of the mapping, on return how far the part reaches. */
static enum kmem_resident_part
part_at(const struct page_mapping *mapping, uint64_t addr, uint64_t *end)
{
	enum kmem_resident_part part;
	struct range range;
	uint64_t limit;

	look.own = KMEM_OWN_OTHER;
	if (raw_is_reserved(addr, &limit, &look.own)) {
		*end = limit < *end ? limit : *end;
		return KMEM_RESIDENT_OWN;
	}
	if (limit < *end)
		*end = limit;
	if (mapping->is_of_file)
		return file_at(mapping, addr, end);
	if (mapping->path[0] == '[' && !starts_with(mapping->path, "[anon")) {
		return starts_with(mapping->path, "[heap")    ? KMEM_RESIDENT_BRK
		       : starts_with(mapping->path, "[stack") ? KMEM_RESIDENT_STACKS
		                                              : KMEM_RESIDENT_PROGRAM; // [vdso] and the like
	}
	if (range_map_next(addr, &range) && range.site != 0) {
		if (range.start <= addr) {
			limit = (range.end + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
			*end = limit < *end ? limit : *end;
			return part_of_domain(site_table_at(range.site)->domain);
		}
		*end = range.start < *end ? range.start : *end;
	}
	limit = *end;
	if (is_in_object(addr, &limit, &part)) { // .bss
		*end = limit < *end ? limit : *end;
		return part;
	}
	return unseen_at(addr, end);
}

static void
add(enum kmem_resident_part part, const unsigned char *found, uint64_t count)
{
	uint64_t present_bytes = page_look_count(found, count, PAGE_LOOK_PRESENT) * PAGE_BYTES;
	uint64_t counted_bytes = page_look_count(found, count, PAGE_LOOK_COUNTED) * PAGE_BYTES;

	look.counted_bytes[part] += counted_bytes;
	look.doubtful_bytes[part] += present_bytes - counted_bytes;
	if (part == KMEM_RESIDENT_OWN) {
		look.own_counted_bytes[look.own] += counted_bytes;
		look.own_doubtful_bytes[look.own] += present_bytes - counted_bytes;
	}
}

/* Divides some pages of one mapping among the parts. */
static void
visit(struct page_look *at_look, uint64_t start, uint64_t end)
{
	const struct page_mapping *mapping = &at_look->mapping;
	uint64_t part_end, to;

	look.has_cuda_driver = look.has_cuda_driver || mapping->is_cuda_driver;
	if (at_look->is_hole) {
		look.guard_end = look.guard_end == start ? end : look.guard_end;
		look.heap_end = look.heap_end == start ? end : look.heap_end;
		start = end;
	}
	for (uint64_t at = start; at < end; at = to) {
		const unsigned char *found = &at_look->pages[(at - start) / PAGE_BYTES];

		part_end = mapping->end;
		enum kmem_resident_part part = part_at(mapping, at, &part_end);

		to = part_end < end ? part_end : end;
		add(part, found, (to - at) / PAGE_BYTES);
		if (part == KMEM_RESIDENT_BRK || part == KMEM_RESIDENT_HEAP)
			at_look->work += resident_heap_pages(at, to, found, resident_lines_are_large) / WORDS_PER_WORK;
		/* The rest of the part is looked at later, perhaps in another piece. */
		if (to < part_end && part == KMEM_RESIDENT_HEAP)
			look.heap_end = to;
		if (to < part_end && part == KMEM_RESIDENT_STACKS)
			look.guard_end = to;
	}
	resident_lines_pages(start, end, at_look->pages);
	if (end == mapping->end && mapping->is_inaccessible && !mapping->is_of_file &&
	    mapping->end - mapping->start <= GUARD_BYTES_MAX)
		look.guard_end = end;
}

static void
begin(void)
{
	memset(look.counted_bytes, 0, sizeof(look.counted_bytes));
	memset(look.doubtful_bytes, 0, sizeof(look.doubtful_bytes));
	memset(look.own_counted_bytes, 0, sizeof(look.own_counted_bytes));
	memset(look.own_doubtful_bytes, 0, sizeof(look.own_doubtful_bytes));
	look.guard_end = 0;
	look.heap_end = 0;
	resident_lines_begin();
	resident_heap_begin();
}

/* Of what is there and perhaps not resident: no more than the kernel says, in equal shares. */
static uint64_t
scaled(uint64_t bytes)
{
	return look.doubtful <= look.room ? bytes : (uint64_t)((unsigned __int128)bytes * look.room / look.doubtful);
}

/* May what was found stand? Else the next look at the pages is to know more of them. */
static bool
judge(void)
{
	uint64_t counted = 0;

	look.doubtful = 0;
	for (unsigned i = 0; i < KMEM_RESIDENT_PARTS; i++) {
		counted += look.counted_bytes[i];
		look.doubtful += look.doubtful_bytes[i];
	}
	look.room = 0;
	if (resident_pages.depth == PAGE_LOOK_EXACT && look.doubtful < SMALL_DOUBT_BYTES && counted < SMALL_BYTES)
		return true; // not worth four calls to the system
	uint64_t resident_bytes = memory_limits_resident(&capture_file_header()->identity);
	uint64_t error = resident_bytes / ERROR_SHARE + ERROR_BYTES;

	look.room = resident_bytes > counted ? resident_bytes - counted : 0;
	if (resident_pages.depth == PAGE_LOOK_CHEAP && look.doubtful > look.room + error) {
		resident_pages.depth = PAGE_LOOK_EXACT;
		return false;
	}
	if (resident_pages.depth == PAGE_LOOK_CHEAP)
		look.room = look.doubtful;
	/* Some kernels say of a huge zero page, to a scan, that it is memory. */
	if (resident_pages.depth == PAGE_LOOK_EXACT && counted > resident_bytes + error && !resident_pages.cannot_scan) {
		resident_pages.cannot_scan = true;
		return false;
	}
	return true;
}

/* False: it is not complete. It goes on, if page_look_is_halfway(). */
static bool
look_at_pages(uint64_t work_max)
{
	do {
		if (!page_look_is_halfway(&resident_pages))
			begin();
		if (!page_look_go_on(&resident_pages, visit, work_max))
			return false;
		work_max -= resident_pages.work < work_max ? resident_pages.work : work_max;
	} while (!judge());
	return true;
}

static void
store(uint64_t now_ns)
{
	struct kmem_resident *to = &capture_file_header()->resident[++look.sequence % 2];
	uint64_t *own_bytes = capture_file_header()->own_bytes[look.sequence % 2];
	uint64_t resident_bytes = 0;

	to->monotonic_ns = now_ns;
	for (unsigned i = 0; i < KMEM_RESIDENT_PARTS; i++) {
		to->part_bytes[i] = look.counted_bytes[i] + scaled(look.doubtful_bytes[i]);
		resident_bytes += to->part_bytes[i];
	}
	to->resident_bytes = resident_bytes;
	own_bytes[KMEM_OWN_OTHER] = to->part_bytes[KMEM_RESIDENT_OWN];
	for (unsigned i = 1; i < KMEM_OWN_PARTS; i++) {
		own_bytes[i] = look.own_counted_bytes[i] + scaled(look.own_doubtful_bytes[i]);
		own_bytes[KMEM_OWN_OTHER] -= own_bytes[i];
	}
	memory_limits_read_container(&capture_file_header()->identity, resident_pages.text, sizeof(resident_pages.text),
	                             &capture_file_header()->container[look.sequence % 2]);
	resident_lines_store(&capture_file_resident_lines()[look.sequence % 2], look.sequence,
	                     to->part_bytes[KMEM_RESIDENT_OTHER] + to->part_bytes[KMEM_RESIDENT_MMAP] +
	                         to->part_bytes[KMEM_RESIDENT_RESERVED] + to->part_bytes[KMEM_RESIDENT_INHERITED],
	                     scaled);
	/* Until then it is the older one, which no reader takes. release: the contents first (F1). */
	atomic_store_explicit(&to->sequence, look.sequence, memory_order_release);
	atomic_store_explicit(&last_bytes, resident_bytes, memory_order_relaxed);
}

static uint64_t
grown_since(const _Atomic uint64_t *last, uint64_t bytes)
{
	uint64_t then = atomic_load_explicit(last, memory_order_relaxed);

	return bytes > then ? bytes - then : 0;
}

/* How many quarters of what was live at the last sample were freed and not given back? One is a reason to look. */
static uint64_t
kept_quarters(uint64_t resident_bytes, uint64_t live_bytes)
{
	uint64_t then_bytes = atomic_load_explicit(&last_live_bytes, memory_order_relaxed);
	uint64_t sampled_bytes = atomic_load_explicit(&last_bytes, memory_order_relaxed);
	uint64_t freed_bytes = then_bytes > live_bytes ? then_bytes - live_bytes : 0;
	uint64_t returned_bytes = sampled_bytes != UINT64_MAX && sampled_bytes > resident_bytes
	                              ? sampled_bytes - resident_bytes
	                              : 0;

	return freed_bytes >= FALL_BYTES && returned_bytes < freed_bytes / 2 ? freed_bytes / (then_bytes / 4) : 0;
}

enum rate_limit_reason
resident_reason(const struct memory_limits_now *now, uint64_t live_bytes)
{
	uint64_t used = now->cgroup_bytes > now->resident_bytes ? now->cgroup_bytes : now->resident_bytes;
	uint64_t grown = grown_since(&last_bytes, now->resident_bytes);
	uint64_t charged = grown_since(&last_charged_bytes, now->cgroup_bytes);

	if (used >= now->limit_bytes - now->limit_bytes / NEAR_SHARE && grown >= now->limit_bytes / STEP_SHARE &&
	    grown != 0)
		return PACED_PRESSING;

	uint64_t quarters = kept_quarters(now->resident_bytes, live_bytes);

	if (quarters >= 2)
		return PACED_FALLEN;
	return quarters != 0 || grown > (now->resident_bytes - grown) / GROWTH_SHARE ||
	               charged > (now->cgroup_bytes - charged) / GROWTH_SHARE
	           ? PACED_URGENT
	           : PACED_USUAL;
}

void
resident_take(const struct memory_limits_now *now, uint64_t live_bytes)
{
	enum rate_limit_reason reason = now != NULL ? resident_reason(now, live_bytes) : PACED_DUE;
	bool goes_on = now != NULL && page_look_is_halfway(&resident_pages);
	int host_errno = errno;

	/* When the interpreter began to end, live bytes were frozen: so is the look of that moment. */
	if (now != NULL && atomic_load_explicit(&capture_file_header()->is_finalizing, memory_order_relaxed) != 0)
		return;
	if (goes_on ? !page_look_is_time(&resident_pages, clock_now_ns()) || !rate_limit_go_on(&paced)
	            : !rate_limit_begin(&paced, reason))
		return;
	if (!goes_on) {
		uint64_t resident_bytes = now != NULL ? now->resident_bytes
		                                      : atomic_load_explicit(&last_bytes, memory_order_relaxed);

		resident_pages.depth = resident_bytes == UINT64_MAX || resident_bytes <= resident_cheap_bytes ? PAGE_LOOK_EXACT
		                                                                                              : PAGE_LOOK_CHEAP;
		page_look_drop(&resident_pages); // at the end, what was found before is of no use
		tracker_library_sample_now();
	}
	if (look_at_pages(now != NULL ? resident_piece_work : UINT64_MAX)) {
		store(paced.begin_ns);
		atomic_store_explicit(&last_live_bytes, live_bytes, memory_order_relaxed);
		if (now != NULL && now->cgroup_bytes != 0)
			atomic_store_explicit(&last_charged_bytes, now->cgroup_bytes, memory_order_relaxed);
	}
	if (page_look_is_halfway(&resident_pages)) {
		page_look_wait(&resident_pages, paced.piece_ns,
		               reason == PACED_PRESSING ? PIECES_SHARE_PRESSING : PIECES_SHARE);
		rate_limit_pause(&paced);
	} else {
		rate_limit_end(&paced);
	}
	errno = host_errno;
}

bool
resident_saw_cuda_driver(void)
{
	return look.has_cuda_driver;
}

void
resident_forked(void)
{
	page_look_drop(&resident_pages);
	/* A child's first beat is its start. Most children end before a look would pay; it takes longer the larger the parent is. */
	rate_limit_forked(&paced, clock_now_ns() + PERIOD_NS, atomic_load_explicit(&paced.took_ns, memory_order_relaxed));
	atomic_store_explicit(&last_live_bytes, 0, memory_order_relaxed); // its own books begin anew
}
