/*
 * ledger.c - a program that knows exactly what it holds, to be compared with what the report says.
 *
 *   ledger FILE SEED THREADS STEPS [LIBRARY...]   works; STEPS of 0 means until SIGTERM ends it in order, or it is killed
 *   ledger FILE                                   prints the ledger in FILE as JSON
 *
 * With libraries, another thread does what programs do besides all along: it starts a thread for a few steps, loads each library,
 * calls its allocate() and unloads it, and forks a child that allocates.
 *
 *   TOUCH=1     of the environment: the first MiB of each block is written, so that memory runs out
 *   WORKERS=n   n forked processes do the same, each with a ledger of its own in FILE.1 to FILE.n
 *
 * The ledger is a shared mapping of FILE, so it is there after SIGKILL too. Each call site is a function of its own,
 * so that the report's figures can be summed by function. With one thread the ledger also knows the exact peak of
 * each domain and who held it. Blocks are never touched: a GiB costs nothing.
 *
 *   L1  a step announces in `pending` what it is about to do before it does it, and withdraws that after the ledger
 *       was brought up to date: what a killed program's report may differ by is what is pending.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 512
#define THREADS_MAX 64
#define SITES_MAX 64
#define GRANULES 16 // a mapping is given back in sixteenths
#define VISIT_STEPS 100
#define TOUCH_BYTES ((size_t)1 << 20)

enum domain { HEAP, MMAP, DOMAINS };

/* --- call sites: one function each ----------------------------------------------------------- */

typedef void *allocate_function(size_t bytes, size_t alignment);
typedef void *resize_function(void *old, size_t bytes);

#define SITE(name, ...)                                                                         \
	static __attribute__((noinline, noclone, noipa)) void *name(size_t bytes, size_t alignment) \
	{                                                                                           \
		(void)alignment;                                                                        \
		__VA_ARGS__                                                                             \
	}
#define RESIZE(name, ...)                                                                \
	static __attribute__((noinline, noclone, noipa)) void *name(void *old, size_t bytes) \
	{                                                                                    \
		__VA_ARGS__                                                                      \
	}

SITE(site_malloc_1, return malloc(bytes);)
SITE(site_malloc_2, return malloc(bytes);)
SITE(site_calloc, return calloc(1, bytes);)
SITE(site_calloc_array, return calloc(bytes / 8, 8);)
SITE(site_realloc_null, return realloc(NULL, bytes);)
SITE(site_reallocarray_null, return reallocarray(NULL, bytes / 4, 4);)
SITE(site_memalign, return memalign(alignment, bytes);)
SITE(site_aligned_alloc, return aligned_alloc(alignment, bytes);)
SITE(site_posix_memalign, void *block; return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;)
SITE(site_valloc, return valloc(bytes);)
SITE(site_pvalloc, return pvalloc(bytes);)
SITE(site_mmap_1, return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);)
SITE(site_mmap_2, return mmap64(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);)
RESIZE(site_realloc_1, return realloc(old, bytes);)
RESIZE(site_realloc_2, return realloc(old, bytes);)
RESIZE(site_reallocarray, return reallocarray(old, bytes / 2, 2);)

static const struct {
	const char *name;
	allocate_function *allocate;
	resize_function *resize;
	enum domain domain;
	size_t unit; // a request is a multiple of this
} sites[] = {
	{ "site_malloc_1", site_malloc_1, NULL, HEAP, 1 },
	{ "site_malloc_2", site_malloc_2, NULL, HEAP, 1 },
	{ "site_calloc", site_calloc, NULL, HEAP, 1 },
	{ "site_calloc_array", site_calloc_array, NULL, HEAP, 8 },
	{ "site_realloc_null", site_realloc_null, NULL, HEAP, 1 },
	{ "site_reallocarray_null", site_reallocarray_null, NULL, HEAP, 4 },
	{ "site_memalign", site_memalign, NULL, HEAP, 1 },
	{ "site_aligned_alloc", site_aligned_alloc, NULL, HEAP, 1 },
	{ "site_posix_memalign", site_posix_memalign, NULL, HEAP, 1 },
	{ "site_valloc", site_valloc, NULL, HEAP, 1 },
	{ "site_pvalloc", site_pvalloc, NULL, HEAP, 1 },
	{ "site_mmap_1", site_mmap_1, NULL, MMAP, 0 },
	{ "site_mmap_2", site_mmap_2, NULL, MMAP, 0 },
	{ "site_realloc_1", NULL, site_realloc_1, HEAP, 1 },
	{ "site_realloc_2", NULL, site_realloc_2, HEAP, 1 },
	{ "site_reallocarray", NULL, site_reallocarray, HEAP, 2 },
};
#define SITES (sizeof(sites) / sizeof(sites[0]))
#define ALLOCATING_SITES 13

/* --- the ledger ------------------------------------------------------------------------------ */

struct entry {
	_Atomic int64_t live_bytes, live_count, allocated_bytes, allocated_count;
	int64_t peak_bytes; // of the domain's peak; with one thread only
};

struct pending {
	_Atomic int32_t released_site, allocated_site; // site + 1, 0 = none
	_Atomic int64_t released_bytes, allocated_bytes;
};

struct ledger {
	uint32_t threads, is_done;
	uint64_t steps, visits;
	_Atomic uint64_t failures; // requests that were refused
	int64_t live[DOMAINS], peak[DOMAINS];
	struct entry entry[SITES_MAX];
	struct pending pending[THREADS_MAX];
};

static struct ledger *ledger;

struct slot {
	atomic_flag is_busy;
	char *addr;
	size_t bytes;    // of a block; of one sixteenth of a mapping
	unsigned mapped; // bit per sixteenth that is still there
	int site;
};

static struct slot slots[SLOTS];
static volatile sig_atomic_t is_over;
static bool is_touching;

static void
announce(struct pending *pending, int released, int64_t released_bytes, int allocated, int64_t allocated_bytes)
{
	pending->released_bytes = released_bytes;
	pending->allocated_bytes = allocated_bytes;
	pending->released_site = released + 1;
	pending->allocated_site = allocated + 1;
}

static void
withdraw(struct pending *pending)
{
	pending->released_site = 0;
	pending->allocated_site = 0;
}

static void
book(int site, int64_t bytes, int64_t count)
{
	struct entry *entry = &ledger->entry[site];

	entry->live_bytes += bytes;
	entry->live_count += count;
	if (bytes > 0 || count > 0) {
		entry->allocated_bytes += bytes;
		entry->allocated_count += count;
	}
	if (ledger->threads == 1)
		ledger->live[sites[site].domain] += bytes;
}

/* After a whole step: a realloc counts by its net change. */
static void
note_peak(enum domain domain)
{
	if (ledger->threads != 1 || ledger->live[domain] <= ledger->peak[domain])
		return;
	ledger->peak[domain] = ledger->live[domain];
	for (size_t i = 0; i < SITES; i++)
		if (sites[i].domain == domain)
			ledger->entry[i].peak_bytes = ledger->entry[i].live_bytes;
}

/* --- the work -------------------------------------------------------------------------------- */

static uint64_t
next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u; // splitmix64

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to 1 GiB: mostly small, now and then huge. */
static size_t
pick_bytes(uint64_t *random)
{
	static const unsigned bits[] = { 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14, 16, 18, 20, 22 };
	uint64_t which = next_random(random) % 256;

	if (which < 4)
		return 0;
	if (which == 4)
		return 1u << 30;
	if (which == 5)
		return next_random(random) % (1u << 30);
	return next_random(random) % (1u << bits[which % (sizeof(bits) / sizeof(bits[0]))]);
}

static void
allocate(struct slot *slot, struct pending *pending, uint64_t *random)
{
	int site = (int)(next_random(random) % ALLOCATING_SITES);
	size_t bytes = pick_bytes(random);
	size_t alignment = 16u << next_random(random) % 9;
	bool is_mapping = sites[site].domain == MMAP;

	if (is_mapping) {
		slot->bytes = 4096 * (1 + next_random(random) % 64);
		bytes = GRANULES * slot->bytes;
	} else {
		slot->bytes = bytes -= bytes % sites[site].unit;
	}
	announce(pending, -1, 0, site, (int64_t)bytes);
	slot->addr = sites[site].allocate(bytes, alignment);
	if (is_mapping && slot->addr == MAP_FAILED)
		slot->addr = NULL;
	slot->site = site;
	slot->mapped = (1u << GRANULES) - 1;
	if (slot->addr != NULL) {
		book(site, (int64_t)bytes, 1);
		note_peak(sites[site].domain);
	} else {
		ledger->failures++;
	}
	withdraw(pending);
	if (is_touching && slot->addr != NULL)
		memset(slot->addr, 1, bytes < TOUCH_BYTES ? bytes : TOUCH_BYTES);
}

static void
resize(struct slot *slot, struct pending *pending, uint64_t *random)
{
	int site = ALLOCATING_SITES + (int)(next_random(random) % (SITES - ALLOCATING_SITES));
	size_t bytes = pick_bytes(random);

	bytes -= bytes % sites[site].unit;
	announce(pending, slot->site, (int64_t)slot->bytes, site, (int64_t)bytes);
	char *moved = sites[site].resize(slot->addr, bytes);
	if (moved == NULL && bytes != 0) {
		ledger->failures++;
	} else {
		book(slot->site, -(int64_t)slot->bytes, -1);
		if (moved != NULL) // of 0 bytes: a release only
			book(site, (int64_t)bytes, 1);
		note_peak(HEAP);
		slot->addr = moved;
		slot->bytes = bytes;
		slot->site = site;
	}
	withdraw(pending);
}

/* A run of sixteenths that are all still there: another thread may have mapped over a hole. */
static void
unmap_part(struct slot *slot, struct pending *pending, uint64_t *random)
{
	unsigned first = (unsigned)(next_random(random) % GRANULES), end;
	unsigned wanted = 1 + (unsigned)(next_random(random) % GRANULES);

	while ((slot->mapped >> first & 1) == 0)
		first = (first + 1) % GRANULES;
	for (end = first; end < GRANULES && end - first < wanted && (slot->mapped >> end & 1) != 0; end++)
		slot->mapped &= ~(1u << end);

	int64_t bytes = (int64_t)((end - first) * slot->bytes);

	announce(pending, slot->site, bytes, -1, 0);
	munmap(slot->addr + first * slot->bytes, (size_t)bytes);
	book(slot->site, -bytes, slot->mapped == 0 ? -1 : 0);
	if (slot->mapped == 0)
		slot->addr = NULL;
	withdraw(pending);
}

static void
release(struct slot *slot, struct pending *pending)
{
	announce(pending, slot->site, (int64_t)slot->bytes, -1, 0);
	free(slot->addr);
	book(slot->site, -(int64_t)slot->bytes, -1);
	slot->addr = NULL;
	withdraw(pending);
}

struct worker {
	pthread_t thread;
	uint64_t random, steps;
	struct pending *pending;
};

static void *
work(void *argument)
{
	struct worker *worker = argument;

	for (uint64_t step = 0; worker->steps == 0 ? !is_over : step < worker->steps; step++) {
		struct slot *slot = &slots[next_random(&worker->random) % SLOTS];

		if (atomic_flag_test_and_set(&slot->is_busy))
			continue; // another thread has it
		if (slot->addr == NULL)
			allocate(slot, worker->pending, &worker->random);
		else if (sites[slot->site].domain == MMAP)
			unmap_part(slot, worker->pending, &worker->random);
		else if (next_random(&worker->random) % 3 == 0)
			resize(slot, worker->pending, &worker->random);
		else
			release(slot, worker->pending);
		atomic_flag_clear(&slot->is_busy);
		if (worker->pending == ledger->pending)
			ledger->steps = step;
	}
	return NULL;
}

/* --- what programs do besides ------------------------------------------------------------------ */

static char **libraries;

static void
use_library(const char *path)
{
	typedef void *allocate_function(size_t bytes);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	allocate_function *allocate = handle != NULL ? (allocate_function *)dlsym(handle, "allocate") : NULL;

	if (allocate == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		abort();
	}
	free(allocate(1000));
	dlclose(handle);
}

static void
use_child(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		for (size_t bytes = 1; bytes < 1000; bytes += 10)
			free(site_malloc_1(bytes, 0));
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "child %d: status %#x\n", (int)child, (unsigned)status);
		abort();
	}
}

static void *
visit(void *argument)
{
	struct worker *visitor = argument;

	for (; !is_over; ledger->visits++) {
		visitor->steps = VISIT_STEPS;
		pthread_create(&visitor->thread, NULL, work, visitor);
		pthread_join(visitor->thread, NULL);
		for (char **library = libraries; *library != NULL; library++)
			use_library(*library);
		if (ledger->visits % 16 == 0)
			use_child();
	}
	return NULL;
}

static void
end_in_order(int number)
{
	(void)number;
	is_over = 1;
}

/* --- both modes ------------------------------------------------------------------------------ */

static void
print_ledger(void)
{
	printf(
		"{\"is_done\": %u, \"steps\": %ju, \"visits\": %ju, \"failures\": %ju, \"peak\": {\"heap\": %jd, \"mmap\": %jd}, \"sites\": {",
		ledger->is_done, (uintmax_t)ledger->steps, (uintmax_t)ledger->visits, (uintmax_t)ledger->failures,
		(intmax_t)ledger->peak[HEAP], (intmax_t)ledger->peak[MMAP]);
	for (size_t i = 0; i < SITES; i++) {
		const struct entry *entry = &ledger->entry[i];

		printf("%s\n\"%s\": {\"domain\": \"%s\", \"live_bytes\": %jd, \"live_count\": %jd, \"allocated_bytes\": %jd, "
		       "\"allocated_count\": %jd, \"peak_bytes\": %jd}",
		       i == 0 ? "" : ",", sites[i].name, sites[i].domain == HEAP ? "heap" : "mmap", (intmax_t)entry->live_bytes,
		       (intmax_t)entry->live_count, (intmax_t)entry->allocated_bytes, (intmax_t)entry->allocated_count,
		       (intmax_t)entry->peak_bytes);
	}
	printf("},\n\"pending\": [");
	for (size_t i = 0, printed = 0; i <= ledger->threads; i++) {
		const struct pending *pending = &ledger->pending[i];

		if (pending->released_site != 0)
			printf("%s[\"%s\", %jd]", printed++ == 0 ? "" : ", ", sites[pending->released_site - 1].name,
			       (intmax_t)pending->released_bytes);
		if (pending->allocated_site != 0)
			printf("%s[\"%s\", %jd]", printed++ == 0 ? "" : ", ", sites[pending->allocated_site - 1].name,
			       (intmax_t)pending->allocated_bytes);
	}
	printf("]}\n");
}

static bool
open_ledger(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT, 0644);

	if (file < 0 || ftruncate(file, sizeof(struct ledger)) != 0)
		return false;
	ledger = mmap(NULL, sizeof(struct ledger), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	return ledger != MAP_FAILED;
}

/* This process, or the number of the one that it is. */
static unsigned
fork_workers(unsigned count)
{
	for (unsigned i = 1; i <= count; i++) {
		if (fork() == 0)
			return i;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	struct worker visitor = { .random = 1 };
	pthread_t besides;
	char path[4096];
	const char *count = getenv("WORKERS");
	unsigned number = count != NULL && argc > 2 ? fork_workers((unsigned)atoi(count)) : 0;

	if (argc != 2 && argc < 5)
		return 2;
	snprintf(path, sizeof(path), number != 0 ? "%s.%u" : "%s", argv[1], number);
	if (!open_ledger(path))
		return 2;
	if (argc == 2) {
		print_ledger();
		return 0;
	}
	ledger->threads = (uint32_t)atoi(argv[3]);
	libraries = argv + 5;
	if (ledger->threads < 1 || ledger->threads >= THREADS_MAX)
		return 2;
	is_touching = getenv("TOUCH") != NULL;
	signal(SIGTERM, end_in_order);
	for (uint32_t i = 0; i < ledger->threads; i++) {
		workers[i].random = (strtoull(argv[2], NULL, 10) + number) * THREADS_MAX + i;
		workers[i].steps = strtoull(argv[4], NULL, 10);
		workers[i].pending = &ledger->pending[i];
	}
	visitor.pending = &ledger->pending[ledger->threads];
	if (*libraries != NULL)
		pthread_create(&besides, NULL, visit, &visitor);
	for (uint32_t i = 1; i < ledger->threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	work(&workers[0]);
	for (uint32_t i = 1; i < ledger->threads; i++)
		pthread_join(workers[i].thread, NULL);
	is_over = 1;
	if (*libraries != NULL)
		pthread_join(besides, NULL);
	ledger->is_done = 1;
	return 0;
}
