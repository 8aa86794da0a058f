/*
 * foreign.c - the whole allocation interface, served by whichever allocator the caller put in line; C and C++.
 *
 *   foreign                        everything once, by one thread and by four
 *   foreign libc                   blocks of __libc_malloc, __libc_calloc, __libc_realloc and __libc_memalign, freed by free
 *   foreign deepbind|own PLUGIN    the same by a plugin: opened with RTLD_DEEPBIND, or in a namespace of its own
 *   foreign swap PLUGIN            deepbind; blocks go both ways and are released on the other side
 *   foreign small COUNT BYTES      so many blocks of so few bytes; then every second one is released and asked for again
 *
 * keep() holds KEPT blocks of KEPT_BYTES at the end. Built with -DPLUGIN this is the plugin.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <new>
#include <string>
#include <vector>
#define C extern "C"
#else
#define C
#endif

#define KEPT 1000
#define KEPT_BYTES 1000
#define SWAPPED 100

static unsigned failures;

#define CHECK(condition)                                        \
	do {                                                        \
		if (!(condition)) {                                     \
			printf("failed at %d: %s\n", __LINE__, #condition); \
			__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED); \
		}                                                       \
	} while (0)

/* A block can be written to its end, lies where it was asked for, and knows its size. */
static void *
used(void *block, size_t bytes, size_t alignment)
{
	CHECK(block != NULL && (uintptr_t)block % alignment == 0);
	CHECK(malloc_usable_size(block) >= bytes);
	memset(block, 0x5a, bytes);
	return block;
}

static void
every_function(size_t bytes)
{
	void *block;

	free(used(malloc(bytes), bytes, 8));
	block = calloc(bytes, 3);
	for (size_t i = 0; i < 3 * bytes; i++)
		CHECK(((char *)block)[i] == 0);
	block = used(realloc(used(block, 3 * bytes, 8), 7 * bytes), 7 * bytes, 8);
	for (size_t i = 0; i < 3 * bytes; i++)
		CHECK(((char *)block)[i] == 0x5a);
	block = used(realloc(block, bytes), bytes, 8);
	free(block);
	free(used(realloc(NULL, bytes), bytes, 8));
	for (size_t alignment = 16; alignment <= 65536; alignment *= 8) {
		CHECK(posix_memalign(&block, alignment, bytes) == 0);
		free(used(block, bytes, alignment));
		free(used(aligned_alloc(alignment, alignment * 2), alignment * 2, alignment));
		block = used(memalign(alignment, bytes), bytes, alignment);
		free(used(realloc(block, 2 * bytes), 2 * bytes, 8));
	}
	free(used(valloc(bytes), bytes, 4096));
#ifndef PLUGIN // an allocator without reallocarray, and libc's own blocks, are not for a plugin that brings its heap
	char *text = NULL;
	free(used(reallocarray(malloc(bytes), bytes, 2), 2 * bytes, 8));
	CHECK(asprintf(&text, "%zu %s", bytes, "words") > 0);
	free(realloc(text, 1000));
	free(strdup("more words"));
#endif
	CHECK(malloc(SIZE_MAX / 2 - bytes) == NULL);
	free(NULL);
#ifdef __cplusplus
	delete new int(3);
	delete[] new char[bytes];
	operator delete(used(operator new(bytes), bytes, 8));
	operator delete(used(operator new(bytes, std::align_val_t(256)), bytes, 256), std::align_val_t(256));
	operator delete(operator new(bytes, std::nothrow), std::nothrow);
	std::vector<std::string> texts;
	for (unsigned i = 0; i < 100; i++)
		texts.push_back(std::string(bytes, 'x'));
	CHECK(texts.back().size() == bytes);
#endif
}

static void *
all_sizes(void *rounds)
{
	for (uintptr_t i = 0; i < (uintptr_t)rounds; i++) {
		for (size_t bytes = 1; bytes < 1000000; bytes = bytes * 19 + 3)
			every_function(bytes);
	}
	return NULL;
}

static void *
free_all(void *blocks)
{
	for (unsigned i = 0; i < SWAPPED; i++)
		free(((void **)blocks)[i]);
	return NULL;
}

static void
threads(void)
{
	void *blocks[SWAPPED];
	pthread_t thread[4];

	for (unsigned i = 0; i < SWAPPED; i++)
		blocks[i] = used(malloc(i * 100 + 1), i * 100 + 1, 8);
	CHECK(pthread_create(&thread[0], NULL, free_all, blocks) == 0);
	for (unsigned i = 1; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, all_sizes, (void *)1) == 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

static void *volatile kept[KEPT];

__attribute__((noinline)) static void
keep(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		kept[i] = used(malloc(KEPT_BYTES), KEPT_BYTES, 8);
}

C __attribute__((visibility("default"))) unsigned
plugin_run(void)
{
	all_sizes((void *)1);
	threads();
	keep();
	return failures;
}

C __attribute__((visibility("default"))) void *
plugin_give(void *taken)
{
	void *given = malloc(KEPT_BYTES);

	free(taken);
	return given;
}

#ifndef PLUGIN
__attribute__((noinline)) static void *
keep_small(size_t bytes)
{
	return used(malloc(bytes), bytes, 8);
}

static void
small_blocks(size_t count, size_t bytes)
{
	void **blocks = (void **)calloc(count, sizeof(*blocks));

	for (size_t i = 0; i < count; i++)
		blocks[i] = keep_small(bytes);
	for (size_t i = 0; i < count; i += 2)
		free(blocks[i]);
	for (size_t i = 0; i < count; i += 2)
		blocks[i] = keep_small(bytes);
}

C void *__libc_malloc(size_t bytes);
C void *__libc_calloc(size_t count, size_t bytes);
C void *__libc_realloc(void *old, size_t bytes);
C void *__libc_memalign(size_t alignment, size_t bytes);
C void __libc_free(void *block);

static void
libc_blocks(void)
{
	for (unsigned i = 0; i < SWAPPED; i++) {
		free(used(__libc_malloc(100 + i), 100 + i, 8));
		free(used(__libc_calloc(100 + i, 2), 100 + i, 8));
		free(used(__libc_realloc(malloc(3), 100 + i), 100 + i, 8));
		free(used(__libc_memalign(64, 100 + i), 100 + i, 64));
		free(used(realloc(__libc_malloc(100 + i), 3000), 3000, 8));
		__libc_free(used(malloc(100 + i), 100 + i, 8));
	}
}

static void
with_plugin(const char *how, const char *path)
{
	void *plugin = strcmp(how, "own") == 0 ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
	                                       : dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);

	if (plugin == NULL) {
		printf("not opened: %s\n", dlerror());
		exit(77);
	}
	unsigned (*run)(void) = (unsigned (*)(void))dlsym(plugin, "plugin_run");
	void *(*give)(void *) = (void *(*)(void *))dlsym(plugin, "plugin_give");

	CHECK(run() == 0);
	for (unsigned i = 0; strcmp(how, "swap") == 0 && i < SWAPPED; i++)
		free(used(give(malloc(KEPT_BYTES)), KEPT_BYTES, 8));
}

int
main(int argc, char **argv)
{
	keep();
	if (argc > 3)
		small_blocks(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	else if (argc > 2)
		with_plugin(argv[1], argv[2]);
	else if (argc > 1)
		libc_blocks();
	all_sizes((void *)1);
	threads();
	printf("%u failures\n", failures);
	return failures != 0;
}
#endif
