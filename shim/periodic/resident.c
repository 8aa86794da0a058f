/*
 * resident.c - what is the resident set made of (see resident.h)?
 *
 * The kernel says for each of its mappings how much of it is resident. What lies there is found out by address: our own tables, mappings
 * that went through our hooks, loaded objects, blocks of the heap. The kernel joins neighbours into one mapping. Where several things
 * lie in one, mincore() says which pages are there. It takes pages for resident that were only read and are the one zero page of all: so
 * no part gets more than is left of the whole.
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
#include "periodic/rate_limit.h"
#include "periodic/resident_heap.h"
#include "periodic/resident_lines.h"
#include "periodic/resident_pages.h"
#include "record/tracker_library.h"
#include "sites/site_table.h"
#include "tables/pointer_map.h"
#include "tables/range_map.h"

#define PAGE_BYTES RESIDENT_PAGE_BYTES
#define CHUNK_WORDS_BYTES 16 // of malloc's, before the block
#define GUARD_BYTES_MAX (UINT64_C(64) << 10)
#define PERIOD_PART 1024
#define PERIOD_NS UINT64_C(50000000)
#define URGENT_PART 32
#define PRESSING_PART 25
#define GROWTH_SHARE 4
#define FALL_BYTES (UINT64_C(16) << 20)
#define NEAR_SHARE 8  // of the limit, before it
#define STEP_SHARE 64 // of the limit
#define TEXT_BYTES 16384
#define PATH_BYTES 64 // of a path, only its beginning says anything here

struct mapping {
	uint64_t start;
	uint64_t end;
	bool is_writable;
	bool is_inaccessible;
	bool is_shared;
	bool is_of_file; // also anonymous shared memory
	char path[PATH_BYTES];
};

/* All of it is under the flag. */
static struct {
	uint64_t sequence;
	struct kmem_resident found;
	struct mapping mapping;
	enum kmem_own_part own; // of what was last found to be ours
	uint64_t own_bytes[KMEM_OWN_PARTS];
	uint64_t guard_end;   // the mapping before was a guard, up to here
	bool has_cuda_driver; // at any look
	uint64_t heap_end;    // what lay before was malloc's, up to here
	char text[TEXT_BYTES];
} look;
static struct rate_limit paced = {
	.period_ns = PERIOD_NS,
	.parts = { [PACED_USUAL] = PERIOD_PART,
	           [PACED_URGENT] = URGENT_PART,
	           [PACED_FALLEN] = URGENT_PART,
	           [PACED_PRESSING] = PRESSING_PART },
};

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
file_at(const struct mapping *mapping, uint64_t addr, uint64_t *end)
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
part_at(const struct mapping *mapping, uint64_t addr, uint64_t *end)
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
add(enum kmem_resident_part part, uint64_t bytes)
{
	look.found.part_bytes[part] += bytes;
	if (part == KMEM_RESIDENT_OWN && look.own != KMEM_OWN_OTHER)
		look.own_bytes[look.own] += bytes;
}

static void
look_into(enum kmem_resident_part part, uint64_t start, uint64_t end)
{
	if (part == KMEM_RESIDENT_BRK || part == KMEM_RESIDENT_HEAP)
		resident_heap_pages(start, end, resident_lines_are_large);
}

/* Divides one mapping of the kernel's, of which so many bytes are resident, among the parts. */
static void
add_mapping(const struct mapping *mapping, uint64_t resident_bytes)
{
	uint64_t left = resident_bytes;
	uint64_t end = mapping->end;
	enum kmem_resident_part part = resident_bytes != 0 ? part_at(mapping, mapping->start, &end) : KMEM_RESIDENT_OTHER;

	uint64_t last = mapping->start;

	look.found.resident_bytes += resident_bytes;
	for (uint64_t start = mapping->start; left != 0 && end < mapping->end;) {
		uint64_t bytes = resident_pages_bytes(start, end);

		look_into(part, start, end);

		bytes = bytes < left ? bytes : left;
		add(part, bytes);
		left -= bytes;
		last = start = end;
		end = mapping->end;
		part = part_at(mapping, start, &end);
	}
	add(part, left);
	if (left != 0)
		look_into(part, last, mapping->end);
	look.guard_end = mapping->is_inaccessible && !mapping->is_of_file &&
	                         mapping->end - mapping->start <= GUARD_BYTES_MAX
	                     ? mapping->end
	                     : 0;
}

static uint64_t
parse_hex(const char **at)
{
	uint64_t number = 0;

	for (;; (*at)++) {
		if (**at >= '0' && **at <= '9')
			number = number << 4 | (uint64_t)(**at - '0');
		else if (**at >= 'a' && **at <= 'f')
			number = number << 4 | (uint64_t)(**at - 'a' + 10);
		else
			return number;
	}
}

/* "7f00-7f10 rw-p 00000000 00:00 0     [heap]" */
static void
parse_mapping(const char *at, struct mapping *mapping)
{
	mapping->start = parse_hex(&at);
	at++;
	mapping->end = parse_hex(&at);
	at++;
	mapping->is_inaccessible = at[0] == '-' && at[1] == '-' && at[2] == '-';
	mapping->is_writable = at[1] == 'w';
	mapping->is_shared = at[3] == 's';
	for (unsigned field = 0; field < 3; field++) { // to the number of the inode
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	mapping->is_of_file = *at != '0';
	at += strcspn(at, " ");
	at += strspn(at, " ");
	strncpy(mapping->path, at, sizeof(mapping->path) - 1);
	if (!mapping->is_shared && starts_with(mapping->path, "/dev/zero"))
		mapping->is_of_file = false;
}

static void
take_line(const char *line)
{
	uint64_t kib = 0;

	if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
		parse_mapping(line, &look.mapping);
		look.has_cuda_driver = look.has_cuda_driver || strstr(line, "/libcuda.so.") != NULL;
	} else if (starts_with(line, "Rss:")) {
		for (line += strcspn(line, "0123456789"); *line >= '0' && *line <= '9'; line++)
			kib = kib * 10 + (uint64_t)(*line - '0');
		add_mapping(&look.mapping, kib << 10);
		resident_lines_mapping(look.mapping.start, look.mapping.end, kib << 10);
	}
}

/* False: not all was read. */
static bool
read_all(void)
{
	int fd = raw_open("/proc/self/smaps", O_RDONLY | O_CLOEXEC, 0);
	size_t held = 0;
	ssize_t got = -1;

	memset(&look.found, 0, sizeof(look.found));
	memset(look.own_bytes, 0, sizeof(look.own_bytes));
	look.guard_end = 0;
	look.heap_end = 0;
	resident_lines_begin();
	resident_heap_begin();
	while (fd >= 0 && (got = raw_read(fd, look.text + held, sizeof(look.text) - 1 - held)) > 0) {
		char *line = look.text;
		char *end;

		held += (size_t)got;
		look.text[held] = '\0';
		while ((end = strchr(line, '\n')) != NULL) {
			*end = '\0';
			take_line(line);
			line = end + 1;
		}
		held -= (size_t)(line - look.text);
		memmove(look.text, line, held);
		if (held == sizeof(look.text) - 1)
			held = 0; // a path longer than all of this
	}
	if (fd >= 0)
		raw_close(fd);
	return got == 0;
}

static void
store(uint64_t now_ns)
{
	struct kmem_resident *to = &capture_file_header()->resident[++look.sequence % 2];

	to->monotonic_ns = now_ns;
	to->resident_bytes = look.found.resident_bytes;
	memcpy(to->part_bytes, look.found.part_bytes, sizeof(to->part_bytes));
	look.own_bytes[KMEM_OWN_OTHER] = look.found.part_bytes[KMEM_RESIDENT_OWN];
	for (unsigned i = 1; i < KMEM_OWN_PARTS; i++)
		look.own_bytes[KMEM_OWN_OTHER] -= look.own_bytes[i];
	memcpy(capture_file_header()->own_bytes[look.sequence % 2], look.own_bytes, sizeof(look.own_bytes));
	memory_limits_read_container(&capture_file_header()->identity, look.text, sizeof(look.text),
	                             &capture_file_header()->container[look.sequence % 2]);
	resident_lines_store(&capture_file_resident_lines()[look.sequence % 2], look.sequence);
	/* Until then it is the older one, which no reader takes. release: the contents first (F1). */
	atomic_store_explicit(&to->sequence, look.sequence, memory_order_release);
	atomic_store_explicit(&last_bytes, look.found.resident_bytes, memory_order_relaxed);
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
	int host_errno = errno;

	/* When the interpreter began to end, live bytes were frozen: so is the look of that moment. */
	if (now != NULL && atomic_load_explicit(&capture_file_header()->is_finalizing, memory_order_relaxed) != 0)
		return;
	if (!rate_limit_begin(&paced, reason))
		return;
	tracker_library_sample_now();
	if (read_all()) {
		store(paced.begin_ns);
		atomic_store_explicit(&last_live_bytes, live_bytes, memory_order_relaxed);
		if (now != NULL && now->cgroup_bytes != 0)
			atomic_store_explicit(&last_charged_bytes, now->cgroup_bytes, memory_order_relaxed);
	}
	rate_limit_end(&paced);
	errno = host_errno;
}

bool
resident_saw_cuda_driver(void)
{
	return look.has_cuda_driver;
}

bool
resident_has_lived(void)
{
	return rate_limit_has_lived(&paced);
}

void
resident_forked(void)
{
	/* A child's first beat is its start. Most children end before a look would pay; it takes longer the larger the parent is. */
	rate_limit_forked(&paced, clock_now_ns() + PERIOD_NS, atomic_load_explicit(&paced.took_ns, memory_order_relaxed));
	atomic_store_explicit(&last_live_bytes, 0, memory_order_relaxed); // its own books begin anew
}
