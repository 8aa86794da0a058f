/*
 * test_tracker_killed.c - what does a kill leave in the books, at any instruction of an event?
 *
 * The total of a domain, what a record has counted and what it holds are three words: apart for some instructions, in which nothing is
 * called that takes long. analyzer/capture/capture_cross_check.c allows for one request of each thread.
 */
#include "gpu/tracker_devices.h"
#include "record/tracker_books.h"

#include "record/tracker_parts.h"
#include "tables/peak.h"
#include "unwind/each_instruction.h"

#define MIB (UINT64_C(1) << 20)
#define QUIET_MAX 300 // instructions after an event was booked: it may look at all memory then
#define AHEAD_MAX 300 // the change of two records takes 200 at most, that of one half as many
#define TORN_MAX 150

static unsigned domain;     // that is looked at
static int64_t start_bytes; // the total is ahead by so much: what this thread holds back
static struct {
	unsigned instructions;
	unsigned ahead; // the total is ahead of the records, by what is under way or less
	unsigned torn;  // of these: a record has counted what it does not hold
	unsigned wrong;
	unsigned quiet;
	bool is_over;
} seen;

/* The total is ahead of the records by *total_bytes, the counters by *counted_bytes. */
static void
compare(int64_t *total_bytes, int64_t *counted_bytes)
{
	uint64_t count = capture_file_header()->used_bytes[KMEM_SECTION_SITES] / sizeof(struct kmem_site);
	int64_t held = 0;

	*counted_bytes = 0;
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);
		int64_t now = kmem_peak_now_signed(peak_load(&site->peak));

		if (site->domain != domain)
			continue;
		held += now;
		*counted_bytes += (int64_t)(site->allocated_bytes - site->freed_bytes) - now;
	}
	*total_bytes = kmem_peak_now_signed(peak_load(&capture_file_domain(domain)->peak)) - held;
}

static bool
look(void)
{
	int64_t total_bytes;
	int64_t counted_bytes;

	compare(&total_bytes, &counted_bytes);
	total_bytes -= start_bytes;
	seen.instructions++;
	seen.ahead += total_bytes != 0;
	seen.torn += counted_bytes != 0;
	seen.wrong += counted_bytes != 0 && total_bytes == 0;
	seen.quiet = total_bytes == 0 && counted_bytes == 0 ? seen.quiet + (seen.torn != 0) : 0;
	return !seen.is_over && seen.quiet < QUIET_MAX;
}

/* ---- events ---- */

#define OLD 0x10000000 // this thread's
#define OTHERS 0x20000000
#define FRESH 0x30000000

static NOINLINE void
make(uint64_t addr)
{
	switch (domain) {
	case KMEM_DOMAIN_HEAP:
		tracker_allocated(HERE, at(addr), 40 * MIB);
		break;
	case KMEM_DOMAIN_MMAP:
		tracker_mapped(HERE, domain, at(addr), 40 * MIB);
		break;
	default:
		tracker_device_allocated(HERE, domain, addr, 40 * MIB, TRACKER_OWNER_NONE);
	}
	KEEP_FRAME();
}

static NOINLINE void
drop(uint64_t addr)
{
	struct range_pieces taken;

	switch (domain) {
	case KMEM_DOMAIN_HEAP:
		if (!tracker_freed_fast(at(addr)))
			tracker_freed(__builtin_frame_address(0), at(addr));
		break;
	case KMEM_DOMAIN_MMAP:
		tracker_unmap_begin(at(addr + 4 * MIB), 40 * MIB, &taken);
		tracker_unmap_end(&taken, true);
		break;
	default:
		tracker_device_released(tracker_device_take(addr));
	}
}

static NOINLINE void
change(uint64_t addr, uint64_t bytes)
{
	struct range_pieces taken;

	if (domain == KMEM_DOMAIN_HEAP) {
		tracker_resized(HERE, tracker_take(at(addr)), at(FRESH), bytes);
	} else {
		tracker_unmap_begin(at(addr), 40 * MIB, &taken);
		tracker_remapped(HERE, &taken, at(FRESH), bytes);
	}
	KEEP_FRAME();
}

static void
make_fresh(void)
{
	make(FRESH);
}

static void
drop_own(void)
{
	drop(OLD);
}

static void
drop_others(void)
{
	drop(OTHERS);
}

static void
grow_own(void)
{
	change(OLD, 70 * MIB);
}

static void
shrink_others(void)
{
	change(OTHERS, 3 * MIB);
}

static void *
make_in_thread(void *unused)
{
	make(OTHERS);
	return unused;
}

TEST(the_words_of_the_books_are_apart_for_some_instructions)
{
	static const struct {
		const char *what;
		unsigned domain;
		void (*event)(void);
	} cases[] = {
		{ "malloc", KMEM_DOMAIN_HEAP, make_fresh },
		{ "free", KMEM_DOMAIN_HEAP, drop_own },
		{ "free of another thread's", KMEM_DOMAIN_HEAP, drop_others },
		{ "realloc", KMEM_DOMAIN_HEAP, grow_own },
		{ "realloc of another thread's", KMEM_DOMAIN_HEAP, shrink_others },
		{ "mmap", KMEM_DOMAIN_MMAP, make_fresh },
		{ "munmap", KMEM_DOMAIN_MMAP, drop_own },
		{ "munmap of another thread's", KMEM_DOMAIN_MMAP, drop_others },
		{ "mremap", KMEM_DOMAIN_MMAP, grow_own },
		{ "mremap of another thread's", KMEM_DOMAIN_MMAP, shrink_others },
		{ "device memory", KMEM_DOMAIN_CUDA_FIRST, make_fresh },
		{ "device memory freed", KMEM_DOMAIN_CUDA_FIRST, drop_own },
		{ "device memory freed that is another thread's", KMEM_DOMAIN_CUDA_FIRST, drop_others },
	};

#ifdef __SANITIZE_ADDRESS__
	print_message("SKIPPED: of a sanitizer's code each step is many instructions\n");
	skip();
#endif
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		pthread_t thread;
		int64_t total_bytes;
		int64_t counted_bytes;

		(void)start_empty(test_state);
		domain = cases[i].domain;
		make(OLD);
		assert_int_equal(pthread_create(&thread, NULL, make_in_thread, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		compare(&start_bytes, &counted_bytes);
		assert_true(counted_bytes == 0 && llabs(start_bytes) < (int64_t)MIB);
		memset(&seen, 0, sizeof(seen));
		tracker_look_after(0, 0, true); // else the event may
		each_instruction(look);
		cases[i].event();
		seen.is_over = true;
		print_message("%s: %u instructions, the total ahead in %u, a record torn in %u\n", cases[i].what,
		              seen.instructions, seen.ahead, seen.torn);
		assert_int_equal(seen.wrong, 0);
		assert_true(seen.ahead > 0 && seen.ahead <= AHEAD_MAX && seen.torn > 0 && seen.torn <= TORN_MAX);
		compare(&total_bytes, &counted_bytes);
		assert_true(counted_bytes == 0 && llabs(total_bytes) < (int64_t)MIB);
	}
}

int
main(void)
{
	native_stack_start();
	if (test_run(NULL, NULL, NULL, NULL) != 0)
		return 1;
	thread_slot_start();
	if (test_run(NULL, NULL, NULL, NULL) != 0)
		return 1;
	pointer_map_start(true);
	return test_run(NULL, NULL, NULL, NULL); // tracker_fast.c
}
