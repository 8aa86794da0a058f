/*
 * memory.c - allocation that cannot fail.
 *
 * When failing  one line on stderr and exit 2, see memory.h.
 */
#include "base/memory.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/fail.h"
#include "base/text_clean.h"

#define ROOM_LEAST 16 // elements

void
memory_exhausted(void)
{
	fputs("kmemshim: out of memory for the report: read the capture on a machine with more free\n", stderr);
	exit(EXIT_USAGE);
}

void
memory_die_first(void)
{
	int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (score < 0)
		return;
	(void)!write(score, "1000", 4);
	(void)close(score);
}

static void *
checked(void *memory)
{
	if (memory == NULL)
		memory_exhausted();
	return memory;
}

void *
memory_zeroed(size_t count, size_t size)
{
	return checked(calloc(count != 0 ? count : 1, size));
}

void *
memory_grown(void *array, size_t count, size_t size)
{
	size_t room = count < ROOM_LEAST ? ROOM_LEAST : 2 * count;

	if (count != 0 && (count < ROOM_LEAST || (count & (count - 1)) != 0))
		return array;
	return checked(reallocarray(array, room, size));
}

void *
memory_grown_zeroed(void *array, size_t *room, size_t wanted, size_t size)
{
	size_t before = array != NULL ? *room : 0;

	if (array != NULL && wanted <= before)
		return array;
	*room = amount_greater(before + before / 2 + ROOM_LEAST, wanted);

	char *grown = checked(reallocarray(array, *room, size));

	memset(grown + before * size, 0, (*room - before) * size);
	return grown;
}

void
memory_free_owned(void *pointer)
{
	void *owned;

	memcpy(&owned, pointer, sizeof(owned)); // of any type
	free(owned);
}

char *
memory_text(const char *text)
{
	return checked(strdup(text));
}

/* A text that is cut ends with a whole character. */
__attribute__((format(printf, 3, 0))) static void
print_whole(char *text, size_t bytes, const char *format, va_list values)
{
	int written = vsnprintf(text, bytes, format, values);

	if (written > 0 && (size_t)written >= bytes && bytes > 0)
		text[text_whole(text, bytes - 1)] = '\0';
}

char *
memory_text_in(char *text, size_t bytes, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print_whole(text, bytes, format, values);
	va_end(values);
	return text;
}

void
memory_text_add(char *text, size_t bytes, const char *format, ...)
{
	size_t used = strlen(text);
	va_list values;

	va_start(values, format);
	print_whole(text + used, bytes - used, format, values);
	va_end(values);
}

char *
memory_vprinted(const char *format, va_list values)
{
	char *text;

	if (vasprintf(&text, format, values) < 0)
		memory_exhausted();
	return text;
}

char *
memory_printed(const char *format, ...)
{
	va_list values;

	va_start(values, format);

	char *text = memory_vprinted(format, values);

	va_end(values);
	return text;
}

FILE *
memory_stream(char **text, size_t *bytes)
{
	static size_t nobodys_bytes;

	return checked(open_memstream(text, bytes != NULL ? bytes : &nobodys_bytes));
}

void
memory_stream_close(FILE *stream)
{
	if (fclose(stream) != 0)
		memory_exhausted();
}
