/*
 * memory.h - allocation that cannot fail: without memory the analyzer says so and exits with 2; and room for short texts.
 *
 * The one exit outside main: there is nothing to report with, and no caller could do better.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Zeroed; never NULL, also for 0 elements. Freed with free(). */
void *memory_zeroed(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));

/*
 * Room for one more element behind `count`; returns the array's new place. How much room an array has follows from its count: all elements
 * of an array are added in this way. array: NULL as long as there are none.
 */
void *memory_grown(void *array, size_t count, size_t size) __attribute__((returns_nonnull));

/* Where the next element of an array goes, which has `count` until then. */
#define MEMORY_NEXT(array, count) ((array) = memory_grown(array, count, sizeof(*(array))), &(array)[(count)++])

/* The element with this number; an array that is too short for it grows by zeroed ones. */
#define MEMORY_AT(array, room, number) \
	((array) = memory_grown_zeroed(array, &(room), (size_t)(number) + 1, sizeof(*(array))), &(array)[number])
void *memory_grown_zeroed(void *array, size_t *room, size_t wanted, size_t size) __attribute__((returns_nonnull));

/* Before the declaration of a pointer: what it points to then is freed where its block is left, by whatever way. */
#define OWNED __attribute__((cleanup(memory_free_owned)))
void memory_free_owned(void *pointer); // to it

char *memory_text(const char *text) __attribute__((malloc, returns_nonnull));
char *memory_printed(const char *format, ...) __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
char *memory_vprinted(const char *format, va_list values)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 0)));

/*
 * A text in room of its own, cut to `bytes`: fopen(TEXT(64, "/proc/%d/maps", (int)pid), "re"). It lasts until the end of the block in which
 * the call stands; the statement behind an `if` without braces is a block.
 */
#define TEXT(bytes, ...) memory_text_in((char[bytes]){ 0 }, (bytes), __VA_ARGS__)
char *memory_text_in(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds to what the text has, cut to `bytes` in all; of an array. */
#define TEXT_ADD(text, ...) memory_text_add(text, sizeof(text), __VA_ARGS__)
void memory_text_add(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A stream whose text is *text once it is closed, for free(), and *bytes long; bytes: may be NULL. */
FILE *memory_stream(char **text, size_t *bytes) __attribute__((returns_nonnull));
void memory_stream_close(FILE *stream);

/*
 * When the cgroup is full, which is also the program's, the kernel is to kill this process, and not the program that it reads about. The
 * children that it starts inherit that.
 */
void memory_die_first(void);

/* For what else needs memory and got none. */
_Noreturn void memory_exhausted(void);

#endif
