/*
 * process_memory.c - pages, regions and words of another process (see process_memory.h).
 */
#include "holders/process_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/read_each.h"
#include "base/text_clean.h"

#define CACHE_PAGES (PROCESS_MEMORY_CACHE_BYTES / PROCESS_MEMORY_PAGE)
#define UNREGARDED_BYTES (UINT64_C(4) << 20) // of a scan between two looks at the clock
#define HEADERS_MAX 64u                      // of an image
#define PAGEMAP_WORDS 4096u                  // that are read at once
#define PAGEMAP_IS_THERE (UINT64_C(3) << 62)

struct memory_page {
	uint64_t addr; // of it, + 1; 0 = none
	size_t bytes;  // that could be read
	unsigned char content[PROCESS_MEMORY_PAGE];
};

/* ---- a live process ---- */

struct live {
	pid_t pid;
	int pagemap;    // -1 = there is none
	uint64_t first; // of `words`
	size_t count;
	uint64_t words[PAGEMAP_WORDS];
};

static size_t
live_fetch(void *context, uint64_t addr, void *to, size_t bytes)
{
	const struct live *live = context;
	struct iovec here = { to, bytes };
	struct iovec there = { (void *)(uintptr_t)addr, bytes };
	ssize_t got = process_vm_readv(live->pid, &here, 1, &there, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

static size_t
live_fetch_pages(void *context, const uint64_t *addrs, unsigned char *const *to, size_t count)
{
	const struct live *live = context;
	struct iovec here[PROCESS_MEMORY_AHEAD];
	struct iovec there[PROCESS_MEMORY_AHEAD];

	for (size_t i = 0; i < count; i++) {
		here[i] = (struct iovec){ to[i], PROCESS_MEMORY_PAGE };
		there[i] = (struct iovec){ (void *)(uintptr_t)addrs[i], PROCESS_MEMORY_PAGE };
	}

	ssize_t got = process_vm_readv(live->pid, here, count, there, count, 0);

	return got > 0 ? (size_t)got / PROCESS_MEMORY_PAGE : 0;
}

/* 1 there, 0 not there, -1 not known. */
static int
is_there(struct live *live, uint64_t page)
{
	if (page - live->first >= live->count) {
		ssize_t got = pread(live->pagemap, live->words, sizeof(live->words), (off_t)(page * sizeof(uint64_t)));

		live->first = page;
		live->count = got > 0 ? (size_t)got / sizeof(uint64_t) : 0;
		if (live->count == 0)
			return -1;
	}
	return (live->words[page - live->first] & PAGEMAP_IS_THERE) != 0;
}

static uint64_t
live_present(void *context, uint64_t *start, uint64_t end)
{
	struct live *live = context;
	uint64_t page = *start / PROCESS_MEMORY_PAGE;
	uint64_t last = (end + PROCESS_MEMORY_PAGE - 1) / PROCESS_MEMORY_PAGE;

	if (live->pagemap < 0)
		return end;
	while (page < last && is_there(live, page) == 0)
		page++;
	if (page * PROCESS_MEMORY_PAGE > *start)
		*start = page < last ? page * PROCESS_MEMORY_PAGE : end;
	while (page < last && is_there(live, page) != 0)
		page++;
	return page < last ? page * PROCESS_MEMORY_PAGE : end;
}

static bool
read_region(char *line, struct memory_region *region)
{
	char flags[8];
	unsigned long start;
	unsigned long end;
	unsigned long offset;
	int path = 0;

	if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &start, &end, flags, &offset, &path) < 4 || path == 0)
		return false;
	*region = (struct memory_region){
		.start = start,
		.end = end,
		.offset = offset,
		.is_readable = flags[0] == 'r',
		.is_writable = flags[1] == 'w',
		.is_executable = flags[2] == 'x',
		.is_shared = flags[3] == 's',
		.path = memory_text(line + path),
	};
	return true;
}

static bool
read_regions(pid_t pid, struct process_memory *memory)
{

	EACH_LINE (line, TEXT(64, "/proc/%d/maps", (int)pid)) {
		memory->regions = memory_grown(memory->regions, memory->region_count, sizeof(*memory->regions));
		if (read_region(line, &memory->regions[memory->region_count]))
			memory->region_count++;
	}
	return memory->region_count != 0;
}

bool
process_memory_open(const char *command, pid_t pid, struct process_memory *memory, struct fail *fail)
{
	struct live *live = memory_zeroed(1, sizeof(*live));

	*memory = (struct process_memory){
		.fetch = live_fetch, .fetch_pages = live_fetch_pages, .present = live_present, .context = live
	};
	live->pid = pid;
	live->pagemap = open(TEXT(64, "/proc/%d/pagemap", (int)pid), O_RDONLY | O_CLOEXEC);
	if (read_regions(pid, memory))
		return true;
	process_memory_close(memory);
	return fail_set(fail, EXIT_USAGE, "%s: process %d is gone", command, (int)pid);
}

void
process_memory_close(struct process_memory *memory)
{
	OWNED struct live *live = memory->fetch == live_fetch ? memory->context : NULL;

	if (live != NULL && live->pagemap >= 0)
		(void)close(live->pagemap);
	for (size_t i = 0; live != NULL && i < memory->region_count; i++)
		free((void *)(uintptr_t)memory->regions[i].path);
	if (live != NULL)
		free(memory->regions);
	free(memory->pages);
	free(memory->piece);
	data_pages_free(&memory->data);
	*memory = (struct process_memory){ 0 };
}

/* ---- any ---- */

bool
process_memory_is_late(const struct process_memory *memory)
{
	return memory->deadline_ns != 0 && clock_monotonic_ns() > memory->deadline_ns;
}

void
process_memory_stands_still(struct process_memory *memory)
{
	memory->pointers = (struct word_range){ UINT64_MAX, 0 };
	for (size_t i = 0; i < memory->region_count; i++) {
		const struct memory_region *region = &memory->regions[i];

		if (region->start < memory->pointers.lowest)
			memory->pointers.lowest = region->start;
		if (region->end > memory->pointers.end && region->end >> 63 == 0) // without the kernel's
			memory->pointers.end = region->end;
	}
}

/* The place where a page is remembered; another page may be there. */
static struct memory_page *
place_of(struct process_memory *memory, uint64_t start)
{
	if (memory->pages == NULL)
		memory->pages = memory_zeroed(CACHE_PAGES, sizeof(*memory->pages));
	return &memory->pages[start / PROCESS_MEMORY_PAGE * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (CACHE_PAGES - 1)];
}

void
process_memory_ahead(struct process_memory *memory, const uint64_t *addrs, size_t count)
{
	uint64_t starts[PROCESS_MEMORY_AHEAD];
	unsigned char *to[PROCESS_MEMORY_AHEAD];
	size_t wanted = 0;

	for (size_t i = 0; memory->fetch_pages != NULL && i < count; i++) {
		uint64_t start = addrs[i] & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1);
		struct memory_page *page = place_of(memory, start);

		if (page->addr == start + 1)
			continue;
		page->addr = start + 1; // of two that share a place the second one is read last
		page->bytes = PROCESS_MEMORY_PAGE;
		to[wanted] = page->content;
		starts[wanted++] = start;
	}

	size_t whole = wanted != 0 ? memory->fetch_pages(memory->context, starts, to, wanted) : 0;

	for (size_t i = whole; i < wanted; i++)
		place_of(memory, starts[i])->addr = 0;
}

static const struct memory_page *
page_of(struct process_memory *memory, uint64_t addr)
{
	uint64_t start = addr & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1);
	struct memory_page *page = place_of(memory, start);

	if (page->addr != start + 1) {
		page->addr = start + 1;
		page->bytes = memory->fetch(memory->context, start, page->content, sizeof(page->content));
	}
	return page;
}

bool
process_memory_read(struct process_memory *memory, uint64_t addr, void *to, size_t bytes)
{
	unsigned char *next = to;

	while (bytes != 0) {
		const struct memory_page *page = page_of(memory, addr);
		size_t offset = addr % PROCESS_MEMORY_PAGE;
		size_t part = PROCESS_MEMORY_PAGE - offset < bytes ? PROCESS_MEMORY_PAGE - offset : bytes;

		if (offset + part > page->bytes) {
			memset(next, 0, bytes);
			return false;
		}
		memcpy(next, page->content + offset, part);
		next += part;
		addr += part;
		bytes -= part;
	}
	return true;
}

uint64_t
process_memory_word(struct process_memory *memory, uint64_t addr)
{
	uint64_t word;

	(void)process_memory_read(memory, addr, &word, sizeof(word));
	return word;
}

uint32_t
process_memory_half(struct process_memory *memory, uint64_t addr)
{
	uint32_t half;

	(void)process_memory_read(memory, addr, &half, sizeof(half));
	return half;
}

bool
process_memory_header(struct process_memory *memory, uint64_t image, unsigned number, Elf64_Phdr *part)
{
	Elf64_Ehdr head;

	return process_memory_read(memory, image, &head, sizeof(head)) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
	       number < head.e_phnum && number < HEADERS_MAX &&
	       process_memory_read(memory, image + head.e_phoff + number * sizeof(*part), part, sizeof(*part));
}

bool
process_memory_text(struct process_memory *memory, uint64_t addr, char *text, size_t room)
{
	size_t length = 0;
	bool is_read = true;

	while (is_read && length + 1 < room) {
		is_read = process_memory_read(memory, addr + length, &text[length], 1);
		if (!is_read || text[length] == '\0')
			break;
		length++;
	}
	(void)text_clean(text, length);
	text[length] = '\0';
	return is_read;
}

/* Searches words that were read. Returns whether one of them lies in `pointers`, which contains the wanted range. */
static bool
scan_words(const uint64_t *words, size_t count, uint64_t addr, struct word_range pointers, struct word_range wanted,
           process_memory_visitor *visitor, void *context, bool *is_ended)
{
	uint64_t span = pointers.end - pointers.lowest;
	bool has_pointer = false;

	for (size_t i = 0; i < count; i++) {
		if (__builtin_expect(words[i] - pointers.lowest < span, 0)) {
			has_pointer = true;
			if (words[i] - wanted.lowest < wanted.end - wanted.lowest && !visitor(context, addr + i * 8, words[i])) {
				*is_ended = true;
				return true;
			}
		}
	}
	return has_pointer;
}

/* Searches a piece that was read, page by page. Pages that need not be read again are remembered. False when the visitor ended it. */
static bool
scan_pages(struct process_memory *memory, size_t bytes, uint64_t addr, struct word_range wanted,
           process_memory_visitor *visitor, void *context)
{
	bool is_ended = false;

	for (size_t at = 0, next; at < bytes && !is_ended; at = next) {
		next = at + PROCESS_MEMORY_PAGE - (addr + at) % PROCESS_MEMORY_PAGE;
		next = next < bytes ? next : bytes;
		if (!scan_words(memory->piece + at / 8, (next - at) / 8, addr + at, memory->pointers, wanted, visitor, context,
		                &is_ended) &&
		    next - at == PROCESS_MEMORY_PAGE)
			data_pages_add(&memory->data, (addr + at) / PROCESS_MEMORY_PAGE);
	}
	return !is_ended;
}

/* Is it a page that was read and has only data? *end: behind it and the data pages that follow; else before the next one. */
static bool
is_data(const struct process_memory *memory, uint64_t start, uint64_t most, uint64_t *end)
{
	uint64_t page = start / PROCESS_MEMORY_PAGE;
	bool is = data_pages_has(&memory->data, page++);

	while (page * PROCESS_MEMORY_PAGE < most && data_pages_has(&memory->data, page) == is)
		page++;
	*end = page * PROCESS_MEMORY_PAGE < most ? page * PROCESS_MEMORY_PAGE : most;
	return is;
}

/* Where a run's bytes end early, one page is left out. */
static bool
scan_run(struct process_memory *memory, uint64_t start, uint64_t end, struct word_range wanted,
         process_memory_visitor *visitor, void *context)
{
	bool may_skip = wanted.lowest < wanted.end && // or it wraps: no addresses are wanted
	                wanted.lowest >= memory->pointers.lowest && wanted.end <= memory->pointers.end;
	bool is_ended = false;

	while (start < end) {
		uint64_t until = end - start < PROCESS_MEMORY_PIECE ? end : start + PROCESS_MEMORY_PIECE;

		if (may_skip && memory->data.chunks != NULL && is_data(memory, start, until, &until)) {
			start = until;
			continue;
		}

		size_t got = memory->fetch(memory->context, start, memory->piece, until - start);

		memory->scanned_bytes += got;
		if (may_skip)
			is_ended = !scan_pages(memory, got / 8 * 8, start, wanted, visitor, context);
		else
			(void)scan_words(memory->piece, got / 8, start, wanted, wanted, visitor, context, &is_ended);
		if (is_ended)
			return false;
		start += got;
		if (start < until)
			start = (start / PROCESS_MEMORY_PAGE + 1) * PROCESS_MEMORY_PAGE;
	}
	return true;
}

bool
process_memory_scan(struct process_memory *memory, uint64_t start, uint64_t end, struct word_range wanted,
                    process_memory_visitor *visitor, void *context)
{
	if (memory->piece == NULL)
		memory->piece = memory_zeroed(PROCESS_MEMORY_PIECE, 1);
	start = (start + 7) & ~UINT64_C(7);
	end &= ~UINT64_C(7);
	if (end > start &&
	    end - start <= PROCESS_MEMORY_PAGE) { // small blocks lie side by side: their pages are remembered
		bool is_ended = false;

		(void)process_memory_read(memory, start, memory->piece, end - start);
		memory->scanned_bytes += end - start;
		(void)scan_words(memory->piece, (end - start) / 8, start, wanted, wanted, visitor, context, &is_ended);
		return !is_ended;
	}
	while (start < end) {
		uint64_t until = end - start > UNREGARDED_BYTES ? start + UNREGARDED_BYTES : end;
		uint64_t run_end = memory->present != NULL ? memory->present(memory->context, &start, until) : until;

		if (process_memory_is_late(memory) || !scan_run(memory, start, run_end, wanted, visitor, context))
			return false;
		start = run_end;
	}
	return true;
}
