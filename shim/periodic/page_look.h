/*
 * page_look.h - which pages of this process are in memory? A piece at a time.
 *
 * A look walks through all mappings in order of address (/proc/self/maps). It stops after so much work and goes on there later: no event
 * waits for all of it. So a look is of a span of time. What is unmapped meanwhile is left out, what is mapped behind it is not seen.
 *
 * Of large private mappings mincore() tells which pages are there. It reads page tables only: 0.7 ms per GiB of small pages. It takes
 * pages that were only read, and are the one zero page of all, for memory. For all others, and where the one who looks must know, the
 * page map is scanned (PAGEMAP_SCAN, since Linux 6.7): 4 ms per GiB. Where that is not there, or it matters who else has a page, words of
 * the page map are read: 14 ms per GiB, for the kernel looks at each page itself, as it does for /proc/self/smaps.
 *
 * Context     each struct page_look under a turn of its owner's.
 * Safe from   any hook, guard held; system calls, no allocation. A forked child and who was left in the middle begin anew (page_look_drop).
 * When failing  without /proc, or without two descriptors that are free, there is no look. Without the page map (a process that nobody may trace) files have no page in memory, and
 *             of the rest what mincore() says counts.
 *
 * Not chosen  /proc/self/smaps: one mapping may be all of the heap, and a read of it cannot stop inside.
 */
#ifndef PAGE_LOOK_H
#define PAGE_LOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PAGE_LOOK_PAGE_BYTES UINT64_C(4096)
#define PAGE_LOOK_AT_ONCE 4096u // pages that are told of at once, at most; a multiple of 8
#define PAGE_LOOK_WORDS 2048u
#define PAGE_LOOK_PATH_BYTES 64 // of a path, only its beginning says anything here

/* Of a page, as bits. 0 = it is not in memory. */
enum {
	PAGE_LOOK_PRESENT = 1, // and may be the zero page, or shared with a forked process
	PAGE_LOOK_COUNTED = 2, // the kernel counts it as resident
	PAGE_LOOK_OWN = 4,     // of private memory, and no other process has it
};

/* How much is to be known of private memory. */
enum page_look_depth {
	PAGE_LOOK_CHEAP = 0, // PRESENT
	PAGE_LOOK_EXACT,     // COUNTED, as far as the kernel tells: some may be PRESENT alone
	PAGE_LOOK_OWNERS,    // OWN. What is shared, or nobody can write to, is left out
};

struct page_mapping {
	uint64_t start;
	uint64_t end;
	bool is_writable;
	bool is_inaccessible;
	bool is_shared;
	bool is_of_file; // also anonymous shared memory
	bool is_cuda_driver;
	char path[PAGE_LOOK_PATH_BYTES];
};

/* Zeroed is one that did not begin. */
struct page_look {
	enum page_look_depth depth; // set by the owner
	bool cannot_scan;           // the kernel has no PAGEMAP_SCAN
	_Atomic uint64_t next;      // where it goes on; 0 = it begins anew. relaxed: only who has the turn decides by it
	_Atomic uint64_t next_ns;   // not before that, see page_look_is_time(); relaxed, too
	uint64_t work;              // of this piece: a page that mincore() told of is 1, another one is more
	uint64_t most_work;         // of any piece
	struct page_mapping mapping;
	bool is_hole;
	unsigned char pages[PAGE_LOOK_AT_ONCE];

	int page_map; // while it looks; -1 = there is none
	uint64_t words_page;
	uint64_t words_count;
	uint64_t words[PAGE_LOOK_WORDS];
	char text[16384];
};

/* About 2 ms: 2 GiB of small pages by mincore(), 512 MiB by a scan, 128 MiB by words of the page map. */
#define PAGE_LOOK_PIECE_WORK (UINT64_C(1) << 19)

/* Is told of each part of look->mapping, in order. look->is_hole: no page of it is there; else look->pages has the bits of each one. */
typedef void page_look_visit(struct page_look *look, uint64_t start, uint64_t end);

/*
 * Goes on until so much work is done. True: the look is complete. False: it goes on later, or, where page_look_is_halfway() says no, it
 * failed.
 */
bool page_look_go_on(struct page_look *look, page_look_visit *visit, uint64_t work_max);

/* share: of the time that pieces may take, one part in so many. Returns until when it waits. */
bool page_look_is_time(const struct page_look *look, uint64_t now_ns);
uint64_t page_look_wait(struct page_look *look, uint64_t begin_ns, unsigned share);

static inline bool
page_look_is_halfway(const struct page_look *look)
{
	return atomic_load_explicit(&look->next, memory_order_relaxed) != 0;
}

static inline void
page_look_drop(struct page_look *look)
{
	atomic_store_explicit(&look->next, 0, memory_order_relaxed);
}

/* How many of so many pages have the bit? */
uint64_t page_look_count(const unsigned char *pages, uint64_t count, unsigned bit);

/*
 * For many addresses that lie anywhere: is the page of each private memory that no other process has? What the kernel says of a page is
 * kept for the next address. -1 and false where it does not tell.
 */
struct page_look_map {
	int fd;
	uint64_t page; // that was read last, + 1; 0 = none
	uint64_t word;
};
struct page_look_map page_look_open_map(void);
bool page_look_is_own(struct page_look_map *map, uint64_t addr);
void page_look_close_map(struct page_look_map *map);

#endif
