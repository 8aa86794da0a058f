/*
 * page_look.c - which pages of this process are in memory (see page_look.h)?
 */
#include "periodic/page_look.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/raw_sys.h"

#define PAGE_BYTES PAGE_LOOK_PAGE_BYTES
/* Of a word of the page map: Documentation/admin-guide/mm/pagemap.rst. */
#define PRESENT (UINT64_C(1) << 63)
#define OF_FILE (UINT64_C(1) << 61)   // or of shared memory
#define EXCLUSIVE (UINT64_C(1) << 56) // mapped by this process alone; since Linux 4.2

#define SMALL_PAGES 1024u // so many words are read at once at least: the mappings of a library lie side by side
#define WORD_WORK 16u     // the kernel looked at the page itself, which is in no cache
#define SCAN_WORK 4u
#define HOLE_SHARE 8u       // so many pages that are not there are as much work as one that is
#define TABLES_PAGES 65536u // the same, where there is not even a table of pages
#define SCAN_RANGES 64u     // 1.5 KiB of stack

/* As in linux/fs.h, which is older on some machines than their kernel. */
#define PAGEMAP_SCAN_CALL 0xc0606610
#define SCAN_PRESENT (1u << 3)
#define SCAN_ZERO_PAGE (1u << 5)
struct scan_range {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};
struct scan_request {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end; // on return
	uint64_t ranges;
	uint64_t ranges_max;
	uint64_t pages_max; // 0 = all
	uint64_t inverted;
	uint64_t wanted;
	uint64_t wanted_any;
	uint64_t told;
};
static_assert(sizeof(struct scan_request) == 96, "as the number of the call says");

static bool
starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* ---- pages ---- */

#define EIGHT_ONES UINT64_C(0x0101010101010101)

/* Eight at a time. The bytes that are summed up are 0 or 1: the sum of eight fits into the highest byte. */
uint64_t
page_look_count(const unsigned char *pages, uint64_t count, unsigned bit)
{
	unsigned shift = (unsigned)__builtin_ctz(bit);
	uint64_t sum = 0;
	uint64_t i = 0;

	for (; i + 8 <= count; i += 8) {
		uint64_t eight;

		memcpy(&eight, pages + i, sizeof(eight));
		sum += (eight >> shift & EIGHT_ONES) * EIGHT_ONES >> 56;
	}
	for (; i < count; i++)
		sum += pages[i] >> shift & 1;
	return sum;
}

/* Of what mincore() says one bit is defined. Up to seven pages behind are cleared, for which there is room. Returns how many are there. */
static uint64_t
keep_present(unsigned char *pages, uint64_t count)
{
	uint64_t sum = 0;

	memset(pages + count, 0, -count % 8);
	for (uint64_t i = 0; i < count; i += 8) {
		uint64_t eight;

		memcpy(&eight, pages + i, sizeof(eight));
		eight &= EIGHT_ONES * PAGE_LOOK_PRESENT;
		memcpy(pages + i, &eight, sizeof(eight));
		sum += eight * EIGHT_ONES >> 56;
	}
	return sum;
}

/* By two bits of a word: is it of a file, and is it this process's alone? */
static void
find_kinds(const struct page_mapping *mapping, unsigned char kinds[4])
{
	const unsigned char counted = PAGE_LOOK_PRESENT | PAGE_LOOK_COUNTED;

	memset(kinds, counted, 4);
	/* A private page of a file, which is not the file's any more, is counted. Else it may be the zero page, or a device's. */
	kinds[0] = mapping->is_shared ? 0 : mapping->is_of_file ? counted : PAGE_LOOK_PRESENT;
	kinds[2] = mapping->is_shared ? 0 : counted | PAGE_LOOK_OWN;
}

static unsigned char
bits_of(uint64_t word, const unsigned char kinds[4])
{
	return (word & PRESENT) == 0 ? 0 : kinds[((word & OF_FILE) != 0) | ((word & EXCLUSIVE) != 0) << 1];
}

/* How many words there are from this page on, at most so many; 0 = the page map does not tell. */
static uint64_t
find_words(struct page_look *look, uint64_t page, uint64_t count)
{
	if (page - look->words_page >= look->words_count) {
		uint64_t bytes = (count > SMALL_PAGES ? count : SMALL_PAGES) * sizeof(*look->words);
		long got = look->page_map < 0 ? 0 : raw_syscall(SYS_pread64, look->page_map, look->words, bytes, page * 8);

		look->words_page = page;
		look->words_count = got > 0 ? (uint64_t)got / sizeof(*look->words) : 0;
	}
	uint64_t left = look->words_page + look->words_count - page;

	return left < count ? left : count;
}

/* Those that are there already (`known`: else all) are told apart. Returns how many. */
static uint64_t
ask_page_map(struct page_look *look, uint64_t start, uint64_t count, bool is_known)
{
	uint64_t page = start / PAGE_BYTES;
	uint64_t found = find_words(look, page, count < PAGE_LOOK_WORDS ? count : PAGE_LOOK_WORDS);
	const uint64_t *words = &look->words[page - look->words_page];
	unsigned char kinds[4];
	uint64_t present = 0;

	find_kinds(&look->mapping, kinds);
	for (uint64_t i = 0; i < found; i++) {
		unsigned char bits = bits_of(words[i], kinds);

		present += words[i] >> 63;
		look->pages[i] = is_known && look->pages[i] == 0 ? 0 : bits;
	}
	look->work += found + present * WORD_WORK;
	return found;
}

/* Up to *end, which is set to where it stopped. Returns how many ranges were found; -1 = the kernel cannot tell. */
static long
scan(struct page_look *look, struct scan_request *request, uint64_t start, uint64_t *end)
{
	long found = -1;

	request->size = sizeof(*request);
	request->start = start;
	request->end = *end;
	request->told = SCAN_PRESENT;
	if (look->page_map >= 0 && !look->cannot_scan)
		found = raw_syscall(SYS_ioctl, look->page_map, PAGEMAP_SCAN_CALL, request);
	if (found < 0)
		look->cannot_scan = true;
	else
		*end = request->walk_end;
	return found;
}

/* How many pages to the first one that is there, if only the zero page? Where nobody touched anything there are no tables to read. */
static uint64_t
skip_hole(struct page_look *look, uint64_t start, uint64_t end)
{
	struct scan_range first;
	struct scan_request request = {
		.ranges = (uintptr_t)&first, .ranges_max = 1, .pages_max = 1, .wanted = SCAN_PRESENT
	};
	long found = scan(look, &request, start, &end);

	if (found < 0)
		return 0;
	look->work += (end - start) / PAGE_BYTES / TABLES_PAGES + 1;
	return ((found != 0 ? first.start : end) - start) / PAGE_BYTES;
}

/* As find_pages(), of pages that are not the zero page; 0 = the kernel cannot tell. */
static uint64_t
scan_pages(struct page_look *look, uint64_t start, uint64_t count)
{
	struct scan_range ranges[SCAN_RANGES];
	struct scan_request request = { .ranges = (uintptr_t)ranges,
		                            .ranges_max = SCAN_RANGES,
		                            .inverted = SCAN_ZERO_PAGE,
		                            .wanted = SCAN_PRESENT | SCAN_ZERO_PAGE };
	uint64_t end = start + count * PAGE_BYTES;
	long found = scan(look, &request, start, &end);

	if (found < 0 || end <= start)
		return 0;
	count = (end - start) / PAGE_BYTES;
	look->is_hole = found == 0;
	look->work += count / HOLE_SHARE + 1;
	memset(look->pages, 0, count);
	for (long i = 0; i < found; i++) {
		uint64_t pages = (ranges[i].end - ranges[i].start) / PAGE_BYTES;

		memset(&look->pages[(ranges[i].start - start) / PAGE_BYTES], PAGE_LOOK_PRESENT | PAGE_LOOK_COUNTED, pages);
		look->work += pages * SCAN_WORK;
	}
	return count;
}

/* Of a device nothing is resident, which words alone tell. */
static bool
may_scan(const struct page_look *look)
{
	const char *path = look->mapping.path;
	bool is_memory = starts_with(path, "/dev/shm/") || starts_with(path, "/dev/zero");

	return look->depth != PAGE_LOOK_OWNERS && (!look->mapping.is_shared || is_memory || !starts_with(path, "/dev/"));
}

/* Fills look->pages for the beginning of what lies there, or says that it is a hole. Returns how many pages. */
static uint64_t
find_pages(struct page_look *look, uint64_t start, uint64_t end)
{
	uint64_t all = (end - start) / PAGE_BYTES;
	bool is_large = all > SMALL_PAGES || look->page_map < 0;
	uint64_t count = all < PAGE_LOOK_AT_ONCE ? all : PAGE_LOOK_AT_ONCE;
	bool is_behind_hole = look->is_hole && start != look->mapping.start;
	bool is_known = false;
	uint64_t asked = is_behind_hole ? skip_hole(look, start, end) : 0;

	look->is_hole = asked != 0;
	if (asked == 0 && is_large && may_scan(look) && (look->mapping.is_of_file || look->depth != PAGE_LOOK_CHEAP))
		asked = scan_pages(look, start, count);
	if (asked != 0)
		return asked;
	if (look->depth != PAGE_LOOK_CHEAP && count > PAGE_LOOK_WORDS)
		count = PAGE_LOOK_WORDS;
	if (!look->mapping.is_of_file && is_large &&
	    raw_syscall(SYS_mincore, start, count * PAGE_BYTES, look->pages) == 0) {
		uint64_t present = keep_present(look->pages, count);

		look->work += present != 0 ? count : count / HOLE_SHARE + 1;
		look->is_hole = present == 0;
		if (look->depth == PAGE_LOOK_CHEAP || present == 0)
			return count;
		is_known = true;
	}
	asked = ask_page_map(look, start, count, is_known);
	look->is_hole = asked == 0 && !is_known;
	look->work += asked == 0 ? count : 0;
	return asked != 0 ? asked : count;
}

/* ---- mappings ---- */

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
parse_mapping(const char *at, struct page_mapping *mapping)
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
	mapping->is_cuda_driver = strstr(at, "/libcuda.so.") != NULL;
	if (!mapping->is_shared && starts_with(mapping->path, "/dev/zero"))
		mapping->is_of_file = false;
}

/* False: the work is done for now, and look->next is set. */
static bool
take_mapping(struct page_look *look, page_look_visit *visit, uint64_t from, uint64_t work_max)
{
	const struct page_mapping *mapping = &look->mapping;

	/* Of huge pages that were reserved, the kernel counts none as resident. Nor are calls to the system memory ([vsyscall]). */
	if (mapping->end <= from || mapping->end > UINT64_MAX / 2 ||
	    (look->depth == PAGE_LOOK_OWNERS && (mapping->is_shared || !mapping->is_writable)) ||
	    starts_with(mapping->path, "/anon_hugepage"))
		return true;
	for (uint64_t at = from > mapping->start ? from : mapping->start, to; at < mapping->end; at = to) {
		if (look->work >= work_max) {
			atomic_store_explicit(&look->next, at, memory_order_relaxed);
			return false;
		}
		to = at + find_pages(look, at, mapping->end) * PAGE_BYTES;
		visit(look, at, to);
	}
	return true;
}

/* False: not all was read, or the work is done for now. */
static bool
read_mappings(struct page_look *look, int fd, page_look_visit *visit, uint64_t from, uint64_t work_max)
{
	size_t held = 0;
	ssize_t got = -1;

	while (fd >= 0 && (got = raw_read(fd, look->text + held, sizeof(look->text) - 1 - held)) > 0) {
		char *line = look->text;
		char *end;

		held += (size_t)got;
		look->text[held] = '\0';
		while ((end = strchr(line, '\n')) != NULL) {
			*end = '\0';
			parse_mapping(line, &look->mapping);
			if (!take_mapping(look, visit, from, work_max))
				return false;
			line = end + 1;
		}
		held -= (size_t)(line - look->text);
		memmove(look->text, line, held);
		if (held == sizeof(look->text) - 1)
			held = 0; // a path longer than all of this
	}
	return got == 0;
}

bool
page_look_go_on(struct page_look *look, page_look_visit *visit, uint64_t work_max)
{
	uint64_t from = atomic_load_explicit(&look->next, memory_order_relaxed);
	int maps = raw_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	bool is_complete = false;

	page_look_drop(look); // who is left in the middle begins anew
	look->page_map = raw_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
	look->words_count = 0;
	look->work = 0;
	if (look->page_map >= 0 || (errno != EMFILE && errno != ENFILE))
		is_complete = read_mappings(look, maps, visit, from, work_max);
	if (maps >= 0)
		raw_close(maps);
	if (look->page_map >= 0)
		raw_close(look->page_map);
	if (look->work > look->most_work)
		look->most_work = look->work;
	return is_complete;
}

bool
page_look_is_time(const struct page_look *look, uint64_t now_ns)
{
	return (int64_t)(now_ns - atomic_load_explicit(&look->next_ns, memory_order_relaxed)) >= 0;
}

uint64_t
page_look_wait(struct page_look *look, uint64_t begin_ns, unsigned share)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t next_ns = now_ns + (now_ns - begin_ns) * (share - 1);

	atomic_store_explicit(&look->next_ns, next_ns, memory_order_relaxed);
	return next_ns;
}

/* ---- single pages ---- */

struct page_look_map
page_look_open_map(void)
{
	return (struct page_look_map){ .fd = raw_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0) };
}

bool
page_look_is_own(struct page_look_map *map, uint64_t addr)
{
	uint64_t page = addr / PAGE_BYTES;

	if (map->fd < 0)
		return false;
	if (map->page != page + 1) {
		map->page = page + 1;
		if (raw_syscall(SYS_pread64, map->fd, &map->word, sizeof(map->word), page * sizeof(map->word)) !=
		    (long)sizeof(map->word))
			map->word = 0;
	}
	return (map->word & PRESENT) != 0 && (map->word & EXCLUSIVE) != 0;
}

void
page_look_close_map(struct page_look_map *map)
{
	if (map->fd >= 0)
		raw_close(map->fd);
}
