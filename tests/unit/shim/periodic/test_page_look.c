/*
 * test_page_look.c - are the pages found that are in memory, whatever a piece may do, and is no piece longer than it may be?
 */
#include "unit.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/raw_sys.h"
#include "periodic/page_look.h"
#include "vast.h"

#define MIB ((uint64_t)1 << 20)
#define PAGE PAGE_LOOK_PAGE_BYTES
#define SLACK MIB // of what the process does on its own between two looks
#define RW (PROT_READ | PROT_WRITE)
#define WHOLE UINT64_MAX

static struct page_look pages;
static uint64_t watched_start, watched_end;

static struct found {
	uint64_t behind; // what was told of last ends here
	uint64_t present;
	uint64_t counted;
	uint64_t own;
	uint64_t watched_present; // of those in [watched_start, watched_end)
	uint64_t watched_counted;
	uint64_t watched_own;
} found;

static void
add_up(struct page_look *look, uint64_t start, uint64_t end)
{
	assert_true(start >= found.behind);
	assert_true(start < end);
	assert_true(start >= look->mapping.start && end <= look->mapping.end);
	assert_false(page_look_is_halfway(look)); // who is left here begins anew
	found.behind = end;
	for (uint64_t i = 0; !look->is_hole && i < (end - start) / PAGE; i++) {
		uint64_t addr = start + i * PAGE;
		bool is_present = (look->pages[i] & PAGE_LOOK_PRESENT) != 0;
		bool is_counted = (look->pages[i] & PAGE_LOOK_COUNTED) != 0;
		bool is_own = (look->pages[i] & PAGE_LOOK_OWN) != 0;

		found.present += is_present;
		found.counted += is_counted;
		found.own += is_own;
		if (addr < watched_start || addr >= watched_end)
			continue;
		found.watched_present += is_present;
		found.watched_counted += is_counted;
		found.watched_own += is_own;
	}
}

/* Returns how many pieces it was. */
static unsigned
look_in_pieces(enum page_look_depth depth, uint64_t work_max)
{
	unsigned pieces = 1;

	memset(&found, 0, sizeof(found));
	page_look_drop(&pages);
	pages.most_work = 0;
	pages.depth = depth;
	while (!page_look_go_on(&pages, add_up, work_max)) {
		assert_true(page_look_is_halfway(&pages));
		pieces++;
	}
	return pieces;
}

static char *
map(uint64_t bytes, int flags)
{
	char *at = mmap(NULL, bytes, RW, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	watched_start = (uint64_t)at;
	watched_end = (uint64_t)at + bytes;
	return at;
}

/* Bytes, as the kernel says: of the line with this name, summed up. */
static uint64_t
sum_of(const char *name)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	uint64_t sum = 0;
	uint64_t kib;
	char line[512];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps) != NULL) {
		if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), ": %" SCNu64, &kib) == 1)
			sum += kib << 10;
	}
	fclose(smaps);
	return sum;
}

/* Each way to ask, also that of a kernel without a scan. */
static const struct way {
	enum page_look_depth depth;
	bool cannot_scan;
} ways[] = { { PAGE_LOOK_CHEAP, false },
	         { PAGE_LOOK_EXACT, false },
	         { PAGE_LOOK_OWNERS, false },
	         { PAGE_LOOK_CHEAP, true },
	         { PAGE_LOOK_EXACT, true } };
static size_t ways_count = ARRAY_LEN(ways);

TEST(in_pieces_it_finds_what_the_kernel_says_at_rest)
{
	char *at = map(64 * MIB, MAP_PRIVATE);
	char *shared = map(8 * MIB, MAP_SHARED);

	memset(at, 1, 20 * MIB);
	memset(at + 40 * MIB, 1, MIB);
	memset(shared, 1, 3 * MIB);
	for (size_t i = 0; i < ways_count; i++) {
		for (uint64_t work_max = 1; work_max != 0; work_max = work_max == 1 ? 5000 : work_max == 5000 ? WHOLE : 0) {
			pages.cannot_scan = ways[i].cannot_scan;
			unsigned pieces = look_in_pieces(ways[i].depth, work_max);
			uint64_t rss = sum_of("Rss");
			bool is_own = ways[i].depth == PAGE_LOOK_OWNERS;

			assert_true(work_max == WHOLE ? pieces == 1 : pieces > 2);
			assert_true(found.present * PAGE >= (is_own ? 20 * MIB : rss - SLACK));
			if (!is_vast()) // else much is the zero page
				assert_true(found.present * PAGE <= rss + SLACK);
			if (ways[i].depth == PAGE_LOOK_EXACT)
				assert_in_range(found.counted * PAGE, rss - SLACK, rss + SLACK);
			if (is_own)
				assert_in_range(found.own * PAGE, sum_of("Anonymous") - SLACK, sum_of("Anonymous") + SLACK);
			assert_int_equal(found.watched_present, is_own ? 0 : 3 * MIB / PAGE); // the shared one
		}
	}
	munmap(at, 64 * MIB);
	munmap(shared, 8 * MIB);
}

/* The work of one piece is what it may be, and what it asked for last. */
TEST(no_piece_does_much_more_than_it_may)
{
	const uint64_t huge = 16384 * MIB; // 16 GiB, of which nearly nothing is there
	char *at = map(huge, MAP_PRIVATE);

	memset(at + huge / 2, 1, 40 * MIB);
	for (size_t i = 0; i < ways_count; i++) {
		pages.cannot_scan = ways[i].cannot_scan;
		unsigned pieces = look_in_pieces(ways[i].depth, PAGE_LOOK_PIECE_WORK / 4);

		assert_true(pages.most_work <= PAGE_LOOK_PIECE_WORK / 4 + PAGE_LOOK_WORDS * 20);
		assert_true(pieces >= (ways[i].cannot_scan ? 2 : 1));
		assert_int_equal(found.watched_present, 40 * MIB / PAGE);
	}
	munmap(at, huge);
}

/* A scan passes over what nobody touched: the file of a database, the shadow of the address sanitizer. */
TEST(a_mapping_that_is_larger_than_the_machine_is_no_work)
{
	static const int flags[] = { MAP_SHARED, MAP_PRIVATE };
	const uint64_t huge = UINT64_C(1) << 42;
	char *small = map(64 * MIB, MAP_PRIVATE); // which it has reason to scan

	pages.cannot_scan = false;
	look_in_pieces(PAGE_LOOK_EXACT, WHOLE);
	munmap(small, 64 * MIB);
	if (pages.cannot_scan)
		skip(); // before Linux 6.7
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		for (enum page_look_depth depth = PAGE_LOOK_CHEAP; depth <= PAGE_LOOK_OWNERS; depth++) {
			bool is_seen = flags[i] == MAP_PRIVATE || depth != PAGE_LOOK_OWNERS;

			look_in_pieces(depth, WHOLE);
			uint64_t work = pages.work;
			char *at = map(huge, flags[i]);

			memset(at + huge - 3 * MIB, 1, MIB);
			look_in_pieces(depth, WHOLE);
			assert_int_equal(munmap(at, huge), 0);
			assert_true(pages.work < work + PAGE_LOOK_PIECE_WORK / 4);
			assert_int_equal(found.watched_present, is_seen ? MIB / PAGE : 0);
		}
	}
}

TEST(the_zero_page_counts_only_where_it_is_cheap)
{
	char *at = map(16 * MIB, MAP_PRIVATE);
	volatile char sum = 0;

	for (uint64_t i = 0; i < 8 * MIB; i += PAGE)
		sum = (char)(sum + at[i]);
	memset(at + 8 * MIB, 1, 4 * MIB);
	for (size_t i = 0; i < ways_count; i++) {
		pages.cannot_scan = ways[i].cannot_scan;
		look_in_pieces(ways[i].depth, WHOLE);
		if (ways[i].depth == PAGE_LOOK_CHEAP) {
			assert_int_equal(found.watched_present, 12 * MIB / PAGE);
			assert_int_equal(found.watched_counted, 0);
		} else {
			assert_int_equal(found.watched_counted, 4 * MIB / PAGE);
		}
		assert_int_equal(found.watched_own, ways[i].depth == PAGE_LOOK_OWNERS ? 4 * MIB / PAGE : found.watched_own);
	}
	munmap(at, 16 * MIB);
}

TEST(what_is_unmapped_between_two_pieces_is_left_out)
{
	char *at = map(64 * MIB, MAP_PRIVATE);

	memset(at, 1, 64 * MIB);
	for (size_t i = 0; i < ways_count; i++) {
		pages.cannot_scan = ways[i].cannot_scan;
		memset(&found, 0, sizeof(found));
		page_look_drop(&pages);
		pages.depth = ways[i].depth;
		while (found.watched_present == 0)
			assert_false(page_look_go_on(&pages, add_up, 1));
		uint64_t before = found.watched_present;

		assert_int_equal(munmap(at + 32 * MIB, 32 * MIB), 0);
		while (!page_look_go_on(&pages, add_up, 1))
			assert_true(page_look_is_halfway(&pages));
		assert_in_range(found.watched_present, before, 32 * MIB / PAGE > before ? 32 * MIB / PAGE : before);
		assert_ptr_equal(mmap(at + 32 * MIB, 32 * MIB, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		                 at + 32 * MIB);
		memset(at + 32 * MIB, 1, 32 * MIB);
	}
	munmap(at, 64 * MIB);
}

TEST(one_that_was_dropped_begins_with_the_first_mapping)
{
	look_in_pieces(PAGE_LOOK_CHEAP, WHOLE);
	uint64_t first = found.present;
	memset(&found, 0, sizeof(found));
	assert_false(page_look_go_on(&pages, add_up, 1));
	assert_false(page_look_go_on(&pages, add_up, 1));
	page_look_drop(&pages);
	memset(&found, 0, sizeof(found));
	assert_true(page_look_go_on(&pages, add_up, WHOLE));
	assert_in_range(found.present, first - SLACK / PAGE, first + SLACK / PAGE);
}

/* Pages that a child has in common with its parent are resident, and nobody's own. */
TEST(of_a_forked_child_its_copies_are_its_own)
{
	char *at = map(16 * MIB, MAP_PRIVATE);
	int status;

	memset(at, 1, 16 * MIB);
	if (fork() == 0) {
		memset(at, 2, 5 * MIB);
		look_in_pieces(PAGE_LOOK_OWNERS, 1000);
		if (found.watched_own != 5 * MIB / PAGE || found.watched_present != 16 * MIB / PAGE)
			_exit(1);
		pages.cannot_scan = false;
		look_in_pieces(PAGE_LOOK_EXACT, 1000);
		if (!pages.cannot_scan && found.watched_counted != 16 * MIB / PAGE)
			_exit(2);
		_exit(0);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	munmap(at, 16 * MIB);
}

/* The program may need every descriptor but one. */
TEST(without_descriptors_there_is_no_look)
{
	struct rlimit before, few;
	int fd = dup(0);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	close(fd);
	page_look_drop(&pages);
	assert_false(page_look_go_on(&pages, add_up, WHOLE));
	assert_false(page_look_is_halfway(&pages));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	memset(&found, 0, sizeof(found));
	assert_true(page_look_go_on(&pages, add_up, WHOLE));
}

TEST(pages_are_counted_eight_at_a_time)
{
	unsigned char bytes[100];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 % 8);
	for (unsigned from = 0; from < 9; from++) {
		for (unsigned count = 0; count + from <= sizeof(bytes); count++) {
			for (unsigned bit = 1; bit <= 4; bit *= 2) {
				uint64_t sum = 0;

				for (unsigned i = 0; i < count; i++)
					sum += (bytes[from + i] & bit) != 0;
				assert_int_equal(page_look_count(bytes + from, count, bit), sum);
			}
		}
	}
}

int
main(void)
{
	if (access("/proc/self/pagemap", R_OK) != 0)
		return 0;
	if (is_vast())
		ways_count -= 2;                   // those without a scan
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // what is touched is resident, and nothing beside it
	return test_run(NULL, NULL, NULL, NULL);
}
