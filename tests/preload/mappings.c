/*
 * mappings.c - every way in which mappings come, go and change: what must be live afterwards, by case and domain?
 *
 *   mappings FOLDER [SEED]     prints a line for each case: function, domain, live bytes, live mappings
 *
 * Each case is a function of its own, which makes all of its mappings, so that the report's rows can be summed by its name. What it
 * leaves stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../random.h"

#define PAGE ((size_t)4096)
#define CASE static __attribute__((noinline)) void
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW (PROT_READ | PROT_WRITE)

static const char *folder;
static uint64_t seed;

static void
must(int condition, const char *what)
{
	if (!condition) {
		perror(what);
		exit(1);
	}
}
#define MUST(condition) must(condition, #condition)

static void
expect(const char *function, const char *domain, size_t bytes, size_t count)
{
	printf("%s %s %zu %zu\n", function, domain, bytes, count);
}
#define EXPECT(domain, bytes, count) expect(__func__, domain, bytes, count)

/* Inlined, so that the case is the caller. */
static inline __attribute__((always_inline)) char *
map(size_t pages)
{
	char *at = mmap(NULL, pages * PAGE, RW, ANON, -1, 0);

	MUST(at != MAP_FAILED);
	return at;
}

static int
open_file(const char *name, size_t bytes)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	MUST(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	return fd;
}

CASE
remap_grows_in_place_or_not(void)
{
	char *at = map(8);

	at = mremap(at, 8 * PAGE, 800 * PAGE, MREMAP_MAYMOVE);
	MUST(at != MAP_FAILED);
	at[799 * PAGE] = 1;
	EXPECT("mmap", 800 * PAGE, 1);
}

CASE
remap_shrinks(void)
{
	MUST(mremap(map(8), 8 * PAGE, 3 * PAGE, 0) != MAP_FAILED);
	EXPECT("mmap", 3 * PAGE, 1);
}

CASE
remap_moves_over_another(void)
{
	char *from = map(4);
	char *over = map(8);

	MUST(mremap(from, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, over + 2 * PAGE) == over + 2 * PAGE);
	EXPECT("mmap", 8 * PAGE, 2);
}

CASE
remap_of_the_middle(void)
{
	char *at = map(9);

	at = mremap(at + 3 * PAGE, 3 * PAGE, 30 * PAGE, MREMAP_MAYMOVE);
	MUST(at != MAP_FAILED);
	EXPECT("mmap", 36 * PAGE, 2);
}

CASE
remap_that_fails_changes_nothing(void)
{
	char *at = map(4);

	MUST(mremap(at, 4 * PAGE, (size_t)1 << 46, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
	EXPECT("mmap", 4 * PAGE, 1);
}

CASE
remap_leaves_the_old_range(void)
{
	char *at = map(4);

	at[0] = 1;
	at = mremap(at, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (at == MAP_FAILED) { // before Linux 5.7
		EXPECT("mmap", 4 * PAGE, 1);
		return;
	}
	MUST(at[0] == 1);
	EXPECT("mmap", 8 * PAGE, 2);
}

CASE
remap_of_size_0_shares(void)
{
	char *at = mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(mremap(at, 0, 4 * PAGE, MREMAP_MAYMOVE) != MAP_FAILED);
	EXPECT("shared", 8 * PAGE, 2);
}

CASE
unmap_of_the_start_the_end_and_the_middle(void)
{
	char *at = map(10);

	MUST(munmap(at, 2 * PAGE) == 0 && munmap(at + 9 * PAGE, PAGE) == 0 && munmap(at + 4 * PAGE, 3 * PAGE) == 0);
	EXPECT("mmap", 4 * PAGE, 1);
}

CASE
unmap_of_a_hole(void)
{
	char *at = map(4);

	MUST(munmap(at + PAGE, PAGE) == 0 && munmap(at + PAGE, PAGE) == 0);
	EXPECT("mmap", 3 * PAGE, 1);
}

CASE
unmap_across_several_with_holes(void)
{
	char *at = map(40);

	for (unsigned i = 0; i < 40; i += 4) // ten more, over the first one
		MUST(mmap(at + i * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) != MAP_FAILED);
	MUST(munmap(at + 2 * PAGE, PAGE) == 0 && munmap(at + PAGE, 36 * PAGE) == 0);
	EXPECT("mmap", 4 * PAGE, 2); // the first page is another one's, three of the last belong to the first
}

CASE
unmap_that_fails_changes_nothing(void)
{
	char *at = map(4);

	MUST(munmap(at + 1, PAGE) == -1 && errno == EINVAL && munmap(at, 0) == -1);
	EXPECT("mmap", 4 * PAGE, 1);
}

CASE
unmap_of_more_pieces_than_fit_one_look(void)
{
	char *at = map(200);

	for (unsigned i = 1; i < 200; i += 2)
		MUST(munmap(at + i * PAGE, PAGE) == 0);
	MUST(munmap(at, 199 * PAGE) == 0);
	EXPECT("mmap", 0, 0);
}

CASE
fixed_over_live_ranges(void)
{
	char *at = map(10);

	MUST(mmap(at + 2 * PAGE, 3 * PAGE, PROT_NONE, ANON | MAP_FIXED, -1, 0) != MAP_FAILED);
	MUST(mmap(at + 4 * PAGE, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	EXPECT("mmap", 6 * PAGE, 1);
	EXPECT("reserved", 2 * PAGE, 1);
	EXPECT("shared", 2 * PAGE, 1);
}

CASE
fixed_that_fails_or_finds_room_taken(void)
{
	char *at = map(4);

	MUST(mmap(at + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0) == MAP_FAILED);
	MUST(mmap(at, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) != at);
	EXPECT("mmap", 4 * PAGE, 1);
}

CASE
bytes_that_are_no_whole_pages(void)
{
	char *at = mmap(NULL, 5000, RW, ANON, -1, 0);

	MUST(mmap(NULL, 100, RW, ANON, -1, 0) != MAP_FAILED && munmap(at, 4097) == 0);
	EXPECT("mmap", 100, 1);
}

CASE
protect_makes_a_reservation_memory(void)
{
	char *at = mmap(NULL, 100 * PAGE, PROT_NONE, ANON, -1, 0);

	MUST(mprotect(at + 10 * PAGE, 20 * PAGE, RW) == 0);
	MUST(mprotect(at + 15 * PAGE, 20 * PAGE, RW) == 0); // half of it again
	MUST(mprotect(at + 50 * PAGE, PAGE, PROT_READ) == 0);
	MUST(mprotect(at + 10 * PAGE, 20 * PAGE, PROT_NONE) == 0);
	at[32 * PAGE] = 1;
	EXPECT("mmap", 25 * PAGE, 2);
	EXPECT("reserved", 75 * PAGE, 1);
}

CASE
protect_then_unmap(void)
{
	char *at = mmap(NULL, 100 * PAGE, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);

	for (unsigned i = 0; i < 100; i += 2)
		MUST(mprotect(at + i * PAGE, PAGE, RW) == 0);
	MUST(munmap(at, 90 * PAGE) == 0);
	EXPECT("mmap", 5 * PAGE, 5);
	EXPECT("reserved", 5 * PAGE, 1);
}

CASE
protect_page_by_page(void)
{
	char *at = mmap(NULL, 400 * PAGE, PROT_NONE, ANON, -1, 0);

	for (unsigned i = 0; i < 400; i++)
		MUST(mprotect(at + i * PAGE, PAGE, RW) == 0);
	MUST(munmap(at, 100 * PAGE) == 0);
	EXPECT("mmap", 300 * PAGE, SIZE_MAX);
	EXPECT("reserved", 0, 0);
}

CASE
protect_of_the_whole_and_of_nothing(void)
{
	char *at = mmap(NULL, 5000, PROT_NONE, ANON, -1, 0);

	MUST(mprotect(at, 5000, RW) == 0 && mprotect(at + 1, PAGE, RW) == -1 && mprotect(at, 0, RW) == 0);
	EXPECT("mmap", 5000, 1);
	EXPECT("reserved", 0, 0);
}

CASE
reservations_and_huge_pages(void)
{
	char *huge = mmap(NULL, (size_t)4 << 20, RW, ANON | MAP_HUGETLB, -1, 0);
	size_t huge_bytes = huge == MAP_FAILED ? 0 : (size_t)4 << 20;

	MUST(mmap(NULL, 7 * PAGE, RW, ANON | MAP_NORESERVE, -1, 0) != MAP_FAILED);
	if (huge_bytes != 0)
		MUST(munmap(huge, (size_t)2 << 20) == 0);
	char *thp = mmap(NULL, (size_t)8 << 20, RW, ANON, -1, 0);
	(void)madvise(thp, (size_t)8 << 20, MADV_HUGEPAGE);
	memset(thp, 1, (size_t)8 << 20);
	EXPECT("reserved", 7 * PAGE, 1);
	EXPECT("mmap", ((size_t)8 << 20) + huge_bytes / 2, 1 + (huge_bytes != 0));
}

CASE
advice_returns_pages(void)
{
	char *at = map(20);

	memset(at, 1, 20 * PAGE);
	MUST(madvise(at, 10 * PAGE, MADV_DONTNEED) == 0 && madvise(at + 10 * PAGE, 5 * PAGE, MADV_FREE) == 0);
	MUST(madvise(at + 1, PAGE, MADV_DONTNEED) == -1 && madvise(at, 20 * PAGE, MADV_NORMAL) == 0);
	EXPECT("mmap", 20 * PAGE, 1);
	expect("returned", "mmap", 15 * PAGE, 0);
}

CASE
devices_and_files(void)
{
	int zero = open("/dev/zero", O_RDWR);
	int file = open_file("file", 50 * PAGE);

	MUST(zero >= 0 && mmap(NULL, 3 * PAGE, RW, MAP_PRIVATE, zero, 0) != MAP_FAILED);
	MUST(mmap(NULL, 5 * PAGE, PROT_NONE, MAP_PRIVATE, zero, 0) != MAP_FAILED);
	MUST(mmap(NULL, 7 * PAGE, RW, MAP_SHARED, zero, 0) != MAP_FAILED);
	MUST(mmap(NULL, 11 * PAGE, RW, MAP_PRIVATE, file, 0) != MAP_FAILED);
	MUST(mmap64(NULL, 13 * PAGE, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED);
	MUST(mmap(NULL, 17 * PAGE, RW, MAP_SHARED, file, 0) != MAP_FAILED);
	MUST(mmap(NULL, PAGE, RW, MAP_PRIVATE, 12345, 0) == MAP_FAILED && errno == EBADF);
	EXPECT("mmap", 3 * PAGE, 1);
	EXPECT("reserved", 5 * PAGE, 1);
	EXPECT("shared", 24 * PAGE, 2);
	EXPECT("file", 24 * PAGE, 2);
}

CASE
shared_memory(void)
{
	char name[64];
	int memory = memfd_create("memory", 0);
	int segment = shmget(IPC_PRIVATE, 6 * PAGE + 1, IPC_CREAT | 0600);
	size_t attached = 0;

	snprintf(name, sizeof(name), "/kmemshim-test-%d", (int)getpid());
	int shm = shm_open(name, O_RDWR | O_CREAT, 0600);
	MUST(memory >= 0 && ftruncate(memory, 4 * PAGE) == 0);
	MUST(mmap(NULL, 4 * PAGE, RW, MAP_SHARED, memory, 0) != MAP_FAILED);
	if (shm >= 0) {
		MUST(shm_unlink(name) == 0 && ftruncate(shm, 3 * PAGE) == 0);
		MUST(mmap(NULL, 3 * PAGE, RW, MAP_SHARED, shm, 0) != MAP_FAILED);
	}
	if (segment >= 0) {
		char *first = shmat(segment, NULL, 0);
		char *second = shmat(segment, NULL, SHM_RDONLY);

		MUST(first != (char *)-1 && second != (char *)-1 && shmctl(segment, IPC_RMID, NULL) == 0);
		first[6 * PAGE] = 1;
		MUST(second[6 * PAGE] == 1 && shmdt(second) == 0 && shmdt(second) == -1 && errno == EINVAL);
		attached = 6 * PAGE + 1;
	}
	if (segment >= 0) {
		segment = shmget(IPC_PRIVATE, 6 * PAGE, IPC_CREAT | 0600);
		char *pieces = shmat(segment, NULL, 0);

		MUST(pieces != (char *)-1 && shmctl(segment, IPC_RMID, NULL) == 0);
		MUST(munmap(pieces + 2 * PAGE, PAGE) == 0 && shmdt(pieces) == 0); // all of them
	}
	MUST(shmat(-1, NULL, 0) == (void *)-1 && errno == EINVAL);
	EXPECT("shared", 4 * PAGE + (shm >= 0 ? 3 * PAGE : 0) + attached, 1 + (shm >= 0) + (attached != 0));
}

CASE
direct_calls_are_not_seen(void)
{
	char *at = map(4);

	MUST(syscall(SYS_mmap, NULL, 9 * PAGE, RW, ANON, -1, 0) != -1);
	MUST(syscall(SYS_munmap, at, 4 * PAGE) == 0);
	EXPECT("mmap", 4 * PAGE, 1);
	/* Given out again, or not: then the old one is known to be gone. */
	MUST(mmap(at, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == at);
}

/* Anything over anything, in a window of 64 pages; what each page is, is remembered. */
enum { NOTHING, MEMORY, RESERVED, SHARED };

CASE
random_work(void)
{
	enum { PAGES = 64 };
	char *window = mmap(NULL, PAGES * PAGE, PROT_NONE, ANON, -1, 0);
	unsigned char is[PAGES];
	size_t live[4] = { 0 };

	memset(is, RESERVED, sizeof(is));
	for (unsigned step = 0; step < 5000; step++) {
		size_t from = random_below(&seed, PAGES);
		size_t pages = 1 + random_below(&seed, PAGES - from);
		char *at = window + from * PAGE;

		switch (random_below(&seed, 5)) {
		case 0:
			MUST(munmap(at, pages * PAGE) == 0);
			memset(is + from, NOTHING, pages);
			break;
		case 1:
			MUST(mmap(at, pages * PAGE, RW, ANON | MAP_FIXED, -1, 0) == at);
			memset(is + from, MEMORY, pages);
			break;
		case 2:
			MUST(mmap(at, pages * PAGE, PROT_NONE, ANON | MAP_FIXED, -1, 0) == at);
			memset(is + from, RESERVED, pages);
			break;
		case 3:
			MUST(mmap(at, pages * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
			memset(is + from, SHARED, pages);
			break;
		case 4: // as far as there is no hole
			for (size_t i = 0; i < pages && is[from + i] != NOTHING; i++) {
				MUST(mprotect(at + i * PAGE, PAGE, RW) == 0);
				if (is[from + i] == RESERVED)
					is[from + i] = MEMORY;
			}
			break;
		}
	}
	for (unsigned i = 0; i < PAGES; i++)
		live[is[i]] += PAGE;
	EXPECT("mmap", live[MEMORY], SIZE_MAX);
	EXPECT("reserved", live[RESERVED], SIZE_MAX);
	EXPECT("shared", live[SHARED], SIZE_MAX);
}

int
main(int argc, char **argv)
{
	folder = argv[1];
	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	remap_grows_in_place_or_not();
	remap_shrinks();
	remap_moves_over_another();
	remap_of_the_middle();
	remap_that_fails_changes_nothing();
	remap_leaves_the_old_range();
	remap_of_size_0_shares();
	unmap_of_the_start_the_end_and_the_middle();
	unmap_of_a_hole();
	unmap_across_several_with_holes();
	unmap_that_fails_changes_nothing();
	unmap_of_more_pieces_than_fit_one_look();
	fixed_over_live_ranges();
	fixed_that_fails_or_finds_room_taken();
	bytes_that_are_no_whole_pages();
	protect_makes_a_reservation_memory();
	protect_then_unmap();
	protect_page_by_page();
	protect_of_the_whole_and_of_nothing();
	reservations_and_huge_pages();
	advice_returns_pages();
	devices_and_files();
	direct_calls_are_not_seen();
	random_work();
	shared_memory(); // last: what is mapped later covers what was forgotten
	return 0;
}
