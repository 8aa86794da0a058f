/*
 * test_inherited.c - what did a child inherit, and how much of it has it copied?
 */
#include "unit.h"

#include <sys/syscall.h>

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "periodic/inherited.h"
#include "periodic/page_look.h"

#define MIB ((uint64_t)1 << 20)
#define BUILT (32 * MIB)

SETUP(start_empty)
{
	capture_file_forked();
	capture_file_header()->identity.page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
}

static void
add_site(unsigned domain, uint64_t allocated_bytes, uint64_t freed_bytes)
{
	uint32_t index;
	struct kmem_site *site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &index);

	assert_non_null(site);
	site->domain = (uint8_t)domain;
	site->stack = 1; // complete
	site->allocated_bytes = allocated_bytes;
	site->freed_bytes = freed_bytes;
	site->stack = 1; // complete (S1)
}

TEST(the_largest_records_are_kept_in_order)
{
	const struct kmem_inherited *stored = &capture_file_header()->inherited;

	for (uint64_t i = 0; i < 3 * KMEM_INHERITED_SITES_MAX; i++)
		add_site(KMEM_DOMAIN_HEAP, 1000 + (i * 7 % 48) * 100, 0); // every rank once, in no order
	add_site(KMEM_DOMAIN_MMAP, 90000, 10000);
	add_site(KMEM_DOMAIN_HEAP, 1000, 900000); // of another thread's blocks it freed more
	add_site(KMEM_DOMAIN_SHARED, 900000, 0);  // nobody copies these
	add_site(KMEM_DOMAIN_RESERVED, 900000, 0);
	inherited_gather();
	inherited_store();
	assert_int_equal(stored->site_count, KMEM_INHERITED_SITES_MAX);
	assert_int_equal(stored->sites[0].site, 3 * KMEM_INHERITED_SITES_MAX + 1);
	assert_int_equal(stored->sites[0].live_bytes, 80000);
	for (uint32_t i = 1; i < KMEM_INHERITED_SITES_MAX; i++) {
		assert_int_equal(stored->sites[i].live_bytes, 1000 + (48 - i) * 100);
		assert_int_equal((stored->sites[i].site - 1) * 7 % 48, 48 - i);
	}
}

/* In MiB, of a child that touches so much of what its parent built, and says that it held so much of its own. */
static unsigned
copied_by_child(char *built, uint64_t written, uint64_t own_peak, bool is_orphan)
{
	uint32_t parent = (uint32_t)getpid();
	volatile char sum = 0;
	int status;

	inherited_gather();
	pid_t child = fork();
	if (child == 0) {
		inherited_forked_child();
		capture_file_header()->identity.forked_from = is_orphan ? parent + 1 : parent;
		capture_file_domain(KMEM_DOMAIN_HEAP)->peak = kmem_peak_pack(0, own_peak, 0);
		for (uint64_t i = 0; i < BUILT; i += 4096) {
			sum = (char)(sum + built[i]);
			if (i < written)
				built[i] = 2;
		}
		inherited_sample(true);
		_exit((int)(inherited_copied_bytes() / MIB));
	}
	inherited_forked_parent();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return (unsigned)WEXITSTATUS(status);
}

TEST(what_is_written_to_is_copied)
{
	char *built = mmap(NULL, BUILT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (access("/proc/self/smaps_rollup", R_OK) != 0)
		skip(); // before Linux 4.14
	assert_true(built != MAP_FAILED);
	memset(built, 1, BUILT);
	assert_int_equal(copied_by_child(built, 0, 0, false), 0);
	assert_in_range(copied_by_child(built, BUILT, 0, false), 31, 36);
	assert_in_range(copied_by_child(built, BUILT / 2, 0, false), 15, 20);
	assert_in_range(copied_by_child(built, BUILT, 8 * MIB, false), 23, 28); // as if these were its own
	assert_int_equal(copied_by_child(built, BUILT, 64 * MIB, false), 0);
	assert_int_equal(copied_by_child(built, BUILT, 0, true), 0); // its parent is gone
	munmap(built, BUILT);
}

/* Most page faults are no copies: what is copied after many of them is seen too, when it is a quarter more. */
TEST(what_is_copied_late_is_looked_at_again)
{
	char *built = mmap(NULL, BUILT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *others = mmap(NULL, 2 * BUILT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t parent = (uint32_t)getpid();
	int status;

	assert_true(built != MAP_FAILED && others != MAP_FAILED);
	memset(built, 1, BUILT);
	pid_t child = fork();
	if (child == 0) {
		(void)alarm(60);
		inherited_forked_child();
		capture_file_header()->identity.forked_from = parent;
		memset(others, 1, 2 * BUILT);
		for (unsigned part = 1; part <= 2; part++) {
			memset(built + (part - 1) * BUILT / 2, (int)part + 1, BUILT / 2);
			while (inherited_copied_bytes() < part * BUILT / 2 - 2 * MIB)
				inherited_sample(false);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	munmap(built, BUILT);
	munmap(others, 2 * BUILT);
}

/* Before the first look, page faults say that nothing can have been copied. */
TEST(page_faults_are_known_without_a_look)
{
	const struct kmem_inherited *stored = &capture_file_header()->inherited;
	uint32_t parent = (uint32_t)getpid();
	int status;
	pid_t child = fork();

	if (child == 0) {
		inherited_forked_child();
		capture_file_header()->identity.forked_from = parent;
		inherited_sample(false);
		_exit(stored->faulted_bytes != 0 && stored->faulted_bytes < 4 * MIB && stored->private_dirty_bytes == 0 &&
		              stored->figures_checksum == kmem_inherited_figures(stored)
		          ? 0
		          : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(a_page_is_the_childs_own_when_it_wrote_there)
{
	char *built = mmap(NULL, BUILT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;

	if (access("/proc/self/pagemap", R_OK) != 0)
		skip();
	assert_true(built != MAP_FAILED);
	memset(built, 1, 4 * PAGE_LOOK_PAGE_BYTES);
	pid_t child = fork();
	if (child == 0) {
		int own = 0;

		built[PAGE_LOOK_PAGE_BYTES] = 2;
		struct page_look_map map = page_look_open_map();
		for (int i = 0; i < 8;
		     i++) // of four pages that were there, and one that nobody ever touched: two addresses each
			own |= page_look_is_own(&map, (uint64_t)built + (uint64_t)i * PAGE_LOOK_PAGE_BYTES / 2 + 100) ? 1 << i : 0;
		own |= page_look_is_own(&map, (uint64_t)built + 5 * PAGE_LOOK_PAGE_BYTES) ? 1 << 8 : 0;
		page_look_close_map(&map);
		_exit(own == (1 << 2 | 1 << 3) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	munmap(built, BUILT);
}

TEST(the_first_process_inherits_nothing)
{
	inherited_sample(true);
	assert_int_equal(capture_file_header()->inherited.private_dirty_bytes, 0);
}

RUN_TESTS(start_empty, NULL)
