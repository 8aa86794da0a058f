/*
 * floor.h - the allocator's functions, for preloads that show what any recorder must cost at least.
 *
 * A floor includes this and defines floor_made() and floor_gone(). glibc's own entry points are called directly: nothing
 * is looked up, so nothing can be called too early.
 *
 * Safe from   any thread; as safe as glibc's malloc.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <errno.h>
#include <stddef.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *block);

#define EXPORT __attribute__((visibility("default")))

static inline void floor_made(void *block, size_t bytes);
static inline void floor_gone(void *block);

EXPORT void *
malloc(size_t bytes)
{
	void *block = __libc_malloc(bytes);

	floor_made(block, bytes);
	return block;
}

EXPORT void
free(void *block)
{
	floor_gone(block);
	__libc_free(block);
}

EXPORT void *
calloc(size_t count, size_t bytes)
{
	void *block = __libc_calloc(count, bytes);

	floor_made(block, count * bytes);
	return block;
}

EXPORT void *
realloc(void *old, size_t bytes)
{
	void *block;

	floor_gone(old);
	block = __libc_realloc(old, bytes);
	floor_made(block, bytes);
	return block;
}

EXPORT void *
memalign(size_t alignment, size_t bytes)
{
	void *block = __libc_memalign(alignment, bytes);

	floor_made(block, bytes);
	return block;
}

EXPORT void *
aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

EXPORT int
posix_memalign(void **result, size_t alignment, size_t bytes)
{
	void *block = memalign(alignment, bytes);

	if (block == NULL)
		return ENOMEM;
	*result = block;
	return 0;
}

#endif
