/*
 * process_memory.c - pages, regions and words of another process (see process_memory.h).
 */
#include "holders/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#define CACHE_PAGES (PROCESS_MEMORY_CACHE_BYTES / PROCESS_MEMORY_PAGE)
#define PAGEMAP_WORDS 4096u // that are read at once
#define PAGEMAP_IS_THERE (UINT64_C(3) << 62)
#define MAPS_LINE_BYTES 8192

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
	line[strcspn(line, "\n")] = '\0';
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
	char name[64];
	char line[MAPS_LINE_BYTES];
	size_t room = 0;
	FILE *maps;

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	maps = fopen(name, "re");
	if (maps == NULL)
		return false;
	while (fgets(line, sizeof(line), maps) != NULL) {
		memory->regions = memory_grown(memory->regions, &room, memory->region_count + 1, sizeof(*memory->regions));
		if (read_region(line, &memory->regions[memory->region_count]))
			memory->region_count++;
	}
	(void)fclose(maps);
	return memory->region_count != 0;
}

bool
process_memory_open(const char *command, pid_t pid, struct process_memory *memory, struct fail *fail)
{
	struct live *live = memory_zeroed(1, sizeof(*live));
	char name[64];

	*memory = (struct process_memory){ .fetch = live_fetch, .present = live_present, .context = live };
	(void)snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)pid);
	live->pid = pid;
	live->pagemap = open(name, O_RDONLY | O_CLOEXEC);
	if (read_regions(pid, memory))
		return true;
	process_memory_close(memory);
	return fail_set(fail, EXIT_USAGE, "%s: process %d is gone", command, (int)pid);
}

void
process_memory_close(struct process_memory *memory)
{
	struct live *live = memory->fetch == live_fetch ? memory->context : NULL;

	if (live != NULL && live->pagemap >= 0)
		(void)close(live->pagemap);
	for (size_t i = 0; live != NULL && i < memory->region_count; i++)
		free((void *)(uintptr_t)memory->regions[i].path);
	if (live != NULL)
		free(memory->regions);
	free(live);
	free(memory->pages);
	free(memory->piece);
	*memory = (struct process_memory){ 0 };
}

/* ---- any ---- */

bool
process_memory_is_late(const struct process_memory *memory)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return memory->deadline_ns != 0 && (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec > memory->deadline_ns;
}

void
process_memory_forget(struct process_memory *memory)
{
	for (size_t i = 0; memory->pages != NULL && i < CACHE_PAGES; i++)
		memory->pages[i].addr = 0;
}

const struct memory_region *
process_memory_region(const struct process_memory *memory, uint64_t addr)
{
	size_t low = 0;
	size_t high = memory->region_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (memory->regions[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < memory->region_count && memory->regions[low].start <= addr ? &memory->regions[low] : NULL;
}

static const struct memory_page *
page_of(struct process_memory *memory, uint64_t addr)
{
	uint64_t start = addr & ~(uint64_t)(PROCESS_MEMORY_PAGE - 1);
	struct memory_page *page;

	if (memory->pages == NULL)
		memory->pages = memory_zeroed(CACHE_PAGES, sizeof(*memory->pages));
	page = &memory->pages[start / PROCESS_MEMORY_PAGE * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (CACHE_PAGES - 1)];
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
	text[length] = '\0';
	return is_read;
}

/* Words of a piece that was read. */
static bool
scan_piece(const uint64_t *words, size_t count, uint64_t addr, struct word_range wanted,
           process_memory_visitor *visitor, void *context)
{
	uint64_t span = wanted.end - wanted.lowest;

	for (size_t i = 0; i < count; i++) {
		if (__builtin_expect(words[i] - wanted.lowest < span, 0) && !visitor(context, addr + i * 8, words[i]))
			return false;
	}
	return true;
}

/* Where its bytes end early, one page is left out. */
static bool
scan_run(struct process_memory *memory, uint64_t start, uint64_t end, struct word_range wanted,
         process_memory_visitor *visitor, void *context)
{
	while (start < end) {
		size_t most = end - start < PROCESS_MEMORY_PIECE ? (size_t)(end - start) : (size_t)PROCESS_MEMORY_PIECE;
		size_t got = memory->fetch(memory->context, start, memory->piece, most);

		memory->scanned_bytes += got;
		if (!scan_piece(memory->piece, got / 8, start, wanted, visitor, context))
			return false;
		start += got;
		if (got < most)
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
	if (end > start && end - start <= PROCESS_MEMORY_PAGE) // what is small is there, mostly: asking costs as much
		return scan_run(memory, start, end, wanted, visitor, context);
	while (start < end) {
		uint64_t run_end = memory->present != NULL ? memory->present(memory->context, &start, end) : end;

		if (!scan_run(memory, start, run_end, wanted, visitor, context))
			return false;
		start = run_end;
	}
	return true;
}
