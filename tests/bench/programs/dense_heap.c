/*
 * dense_heap.c - an allocator that puts small blocks side by side, as jemalloc, tcmalloc and mimalloc do. A library to preload.
 *
 * Blocks of 8 bytes for what has at most 8, else of a multiple of 16: without headers, from slabs of one size, given back to a list of
 * their size. Larger than 1,024 bytes: pages, given back in the same way up to 1 MiB. One lock, and no memory goes back to the system:
 * enough to count with, and nothing more.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE ((size_t)4096)
#define HEAP_BYTES ((size_t)8 << 30)
#define SMALL_MAX ((size_t)1024)
#define SMALL_CLASSES (SMALL_MAX / 16 + 1) // 0: 8 bytes
#define PAGES_MAX ((size_t)256)            // of a block that is used again

struct free_block {
	struct free_block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *heap;
static size_t pages_used;
static struct free_block *small_free[SMALL_CLASSES];
static struct free_block *page_free[PAGES_MAX + 1];
static uint32_t *page_says; // how large the blocks that begin there are; beyond PAGE: so many pages more than that

EXPORT void *malloc(size_t bytes);
EXPORT void *calloc(size_t count, size_t bytes);
EXPORT void *realloc(void *old, size_t bytes);
EXPORT void free(void *block);
EXPORT void *memalign(size_t alignment, size_t bytes);
EXPORT void *aligned_alloc(size_t alignment, size_t bytes);
EXPORT void *valloc(size_t bytes);
EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes);
EXPORT size_t malloc_usable_size(void *block);

static bool
begin(void)
{
	void *made = mmap(NULL, HEAP_BYTES + HEAP_BYTES / PAGE * sizeof(*page_says), PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		return false;
	heap = made;
	page_says = (uint32_t *)(void *)(heap + HEAP_BYTES);
	return true;
}

static size_t
page_of(const void *block)
{
	return (size_t)((const char *)block - heap) / PAGE;
}

static char *
take_pages(size_t count, size_t alignment)
{
	char *pages;

	if (heap == NULL && !begin())
		return NULL;
	while (((uintptr_t)heap + pages_used * PAGE) % alignment != 0)
		pages_used++;
	if (pages_used + count > HEAP_BYTES / PAGE)
		return NULL;
	pages = heap + pages_used * PAGE;
	pages_used += count;
	return pages;
}

static void *
take_small(size_t class, size_t bytes)
{
	struct free_block *block = small_free[class];

	if (block == NULL) {
		char *slab = take_pages(1, PAGE);

		if (slab == NULL)
			return NULL;
		page_says[page_of(slab)] = (uint32_t)bytes;
		for (size_t at = PAGE / bytes * bytes; at != 0; at -= bytes) {
			block = (struct free_block *)(void *)(slab + at - bytes);
			block->next = small_free[class];
			small_free[class] = block;
		}
	}
	small_free[class] = block->next;
	return block;
}

static void *
take_large(size_t bytes, size_t alignment)
{
	size_t count = bytes / PAGE + 1;
	char *block = NULL;

	if (alignment <= PAGE && count <= PAGES_MAX && page_free[count] != NULL) {
		block = (char *)page_free[count];
		page_free[count] = page_free[count]->next;
		return block;
	}
	block = bytes < HEAP_BYTES ? take_pages(count, alignment) : NULL;
	if (block != NULL)
		page_says[page_of(block)] = (uint32_t)(PAGE + count);
	return block;
}

static void *
take(size_t bytes, size_t alignment)
{
	size_t class = bytes <= 8 ? 0 : (bytes + 15) / 16;
	void *block;

	(void)pthread_mutex_lock(&lock);
	block = bytes <= SMALL_MAX && alignment <= 8 + 8 * (class != 0) ? take_small(class, class == 0 ? 8 : class * 16)
	                                                                : take_large(bytes, alignment);
	(void)pthread_mutex_unlock(&lock);
	if (block == NULL)
		errno = ENOMEM;
	return block;
}

size_t
malloc_usable_size(void *block)
{
	size_t says = block != NULL ? page_says[page_of(block)] : 0;

	return says > PAGE ? (says - PAGE) * PAGE : says;
}

void
free(void *block)
{
	struct free_block *freed = block;
	size_t bytes = malloc_usable_size(block);
	size_t pages = bytes / PAGE;

	if (block == NULL || pages > PAGES_MAX)
		return;
	struct free_block **list = pages != 0 ? &page_free[pages] : &small_free[bytes == 8 ? 0 : bytes / 16];

	(void)pthread_mutex_lock(&lock);
	freed->next = *list;
	*list = freed;
	(void)pthread_mutex_unlock(&lock);
}

void *
malloc(size_t bytes)
{
	return take(bytes, 8);
}

void *
calloc(size_t count, size_t bytes)
{
	size_t total;
	void *block;

	if (__builtin_mul_overflow(count, bytes, &total))
		total = SIZE_MAX;
	block = take(total, 8); // malloc and memset would be made a call of calloc
	return block != NULL ? memset(block, 0, total) : NULL;
}

void *
realloc(void *old, size_t bytes)
{
	size_t old_bytes = malloc_usable_size(old);
	void *block;

	if (old != NULL && bytes == 0) {
		free(old);
		return NULL;
	}
	if (old != NULL && bytes <= old_bytes)
		return old;
	block = malloc(bytes);
	if (block != NULL && old != NULL) {
		memcpy(block, old, old_bytes);
		free(old);
	}
	return block;
}

void *
memalign(size_t alignment, size_t bytes)
{
	return take(bytes, alignment);
}

void *
aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

void *
valloc(size_t bytes)
{
	return memalign(PAGE, bytes);
}

int
posix_memalign(void **block, size_t alignment, size_t bytes)
{
	int host_errno = errno;
	void *made = memalign(alignment, bytes);

	errno = host_errno;
	*block = made != NULL ? made : *block;
	return made != NULL ? 0 : ENOMEM;
}
