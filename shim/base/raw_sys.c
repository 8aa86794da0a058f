/*
 * raw_sys.c - which addresses are our own (see raw_sys.h)?
 *
 * A list that is appended to, from any thread; a place in it is never used again.
 */
#include "base/raw_sys.h"

#include <stdatomic.h>

#include "kmem_tables.h"

#define RANGES_MAX KMEM_OWN_RANGES_MAX

static struct {
	_Atomic uint64_t start; // 0: not there yet, or no more; stored last
	uint64_t end;           // written once, before; and so is
	enum kmem_own_part what;
} ranges[RANGES_MAX];
static _Atomic uint32_t range_count;
static _Atomic uint64_t reserved_bytes; // relaxed: a sum

/* Who looks from outside reads what this says. */
KMEM_TABLE_SIGN(sign, KMEM_TABLE_OWN, ranges, &range_count);
static_assert(sizeof(ranges[0]) == sizeof(struct kmem_own_range) && sizeof(ranges[0].what) == sizeof(uint32_t), "");

static void
remember(enum kmem_own_part what, void *addr, size_t bytes)
{
	atomic_fetch_add_explicit(&reserved_bytes, bytes, memory_order_relaxed);

	uint32_t place = atomic_load_explicit(&range_count, memory_order_relaxed);

	/* relaxed: it hands out places. */
	while (place < RANGES_MAX && !atomic_compare_exchange_weak_explicit(&range_count, &place, place + 1,
	                                                                    memory_order_relaxed, memory_order_relaxed))
		;
	if (place < RANGES_MAX) {
		ranges[place].end = (uint64_t)addr + bytes;
		ranges[place].what = what;
		// pairs with raw_is_reserved()
		atomic_store_explicit(&ranges[place].start, (uint64_t)addr, memory_order_release);
	}
}

/*
 * A program that locks all that it maps from now on (mlockall) would have each page of it in memory at once: what cannot be touched yet is
 * not brought there, and after munlock() it is not any more.
 */
static void *
map_unlocked(size_t bytes, int protection)
{
	bool is_at_once = !raw_sys_may_call(); // a program that confined itself would not let us unlock it
	void *addr = raw_mmap(NULL, bytes, is_at_once ? protection : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	                      -1, 0);

	if (addr == MAP_FAILED || is_at_once)
		return addr;
	(void)raw_syscall(SYS_munlock, addr, bytes);
	if (protection == PROT_NONE || raw_syscall(SYS_mprotect, addr, bytes, protection) == 0)
		return addr;
	int error = errno;

	raw_munmap(addr, bytes);
	errno = error;
	return MAP_FAILED;
}

void *
raw_reserve(enum kmem_own_part what, size_t bytes, int protection)
{
	void *addr = map_unlocked(bytes, protection);

	if (addr == MAP_FAILED)
		return NULL;
	(void)raw_madvise(addr, bytes, MADV_NOHUGEPAGE); // of most of ours little is used: 2 MiB for a word, else
	remember(what, addr, bytes);
	return addr;
}

void *
raw_reserve_shared(enum kmem_own_part what, size_t bytes)
{
	void *addr = raw_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return NULL;
	remember(what, addr, bytes);
	return addr;
}

void
raw_unreserve(void *addr, size_t bytes)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&range_count, memory_order_relaxed); i++) {
		uint64_t start = (uint64_t)addr;

		/* relaxed: whoever still sees it takes what was ours a moment ago for ours. */
		(void)atomic_compare_exchange_strong_explicit(&ranges[i].start, &start, 0, memory_order_relaxed,
		                                              memory_order_relaxed);
	}
	raw_munmap(addr, bytes);
	atomic_fetch_sub_explicit(&reserved_bytes, bytes, memory_order_relaxed);
}

uint64_t
raw_reserved_bytes(void)
{
	return atomic_load_explicit(&reserved_bytes, memory_order_relaxed);
}

bool
raw_is_reserved(uint64_t addr, uint64_t *end, enum kmem_own_part *what)
{
	*end = UINT64_MAX;
	for (uint32_t i = 0; i < atomic_load_explicit(&range_count, memory_order_relaxed); i++) {
		uint64_t start = atomic_load_explicit(&ranges[i].start, memory_order_acquire); // the end with it

		if (start == 0)
			continue;
		if (start <= addr && addr < ranges[i].end) {
			*end = ranges[i].end;
			*what = ranges[i].what;
			return true;
		}
		if (start > addr && start < *end)
			*end = start;
	}
	return false;
}
