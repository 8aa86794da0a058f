/*
 * place.c - a line of code as short text.
 *
 * When failing  it does not: unknown parts are left out, long ones are cut.
 */
#include "base/place.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text_clean.h"
#include "base/text_start.h"

#define TWINS_MAX 4096 // of one base name: each is compared with all others
#define PART_BYTES 96  // of a file's or function's name; the rest is cut out of its middle

const char *
place_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

bool
place_is_of_libc(const char *path)
{
	static const char *const starts[] = { "libc.so.",       "libc-2.",   "libm.so.",  "ld-linux-",
		                                  "libpthread.so.", "libdl.so.", "librt.so.", NULL };

	return text_starts_with_any(place_base(path), starts);
}

/* Behind ".../lib/python3.11/" or ".../lib64/python3.11/"; NULL when the path has no such folder. */
static const char *
below_standard_library(const char *path)
{
	const char *at = strstr(path, "/python3.");
	const char *end = at != NULL ? at + 9 + strspn(at + 9, "0123456789t") : NULL;
	bool is_in_lib = at != NULL && ((at - path >= 4 && strncmp(at - 4, "/lib", 4) == 0) ||
	                                (at - path >= 6 && strncmp(at - 6, "/lib64", 6) == 0));

	return is_in_lib && *end == '/' ? end + 1 : NULL;
}

bool
place_is_cell(const char *file)
{
	return strncmp(file, "cell In[", 8) == 0 || strncmp(file, "cell #", 6) == 0;
}

/* Files that a base name does not tell apart. */
struct twin {
	const char *path;
	const char *name; // the end of the path that does
	UT_hash_handle hh;
};
static struct twin *twins;

void
place_forget(void)
{
	HASH_FREE(twins, free);
}

ORDER_OF_POINTERS(compare_by_name, char, strcmp(place_base(a), place_base(b)) ?: strcmp(a, b))

/* How many bytes both end in. */
static size_t
common_end(const char *left, size_t left_length, const char *right, size_t right_length)
{
	size_t length = 0;

	while (length < left_length && length < right_length &&
	       left[left_length - 1 - length] == right[right_length - 1 - length])
		length++;
	return length;
}

/* The whole components of the path that no other of these ends in. */
static const char *
own_end(const char *path, const char *const *others, size_t count)
{
	size_t length = strlen(path);
	size_t common = 0;

	for (size_t i = 0; i < count; i++) {
		size_t same = strcmp(path, others[i]) != 0 ? common_end(path, length, others[i], strlen(others[i])) : 0;

		common = same > common ? same : common;
	}

	const char *end = path + length - common;

	while (end > path && end[-1] != '/')
		end--;
	if (*end == '/' || (common != 0 && end == path + length - common)) { // what differs is the folder before
		end -= end > path;
		while (end > path && end[-1] != '/')
			end--;
	}
	return end;
}

static void
add_same_stack(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct twin *twin;

		if (i > 0 && strcmp(paths[i - 1], paths[i]) == 0)
			continue;
		twin = memory_zeroed(1, sizeof(*twin));
		twin->path = paths[i];
		twin->name = own_end(paths[i], paths, count);
		HASH_ADD_KEYPTR(hh, twins, twin->path, strlen(twin->path), twin);
	}
}

void
place_learn(const char *const *paths, size_t count)
{
	OWNED const char **order = memory_zeroed(count, sizeof(*order));

	place_forget();
	memcpy(order, paths, count * sizeof(*order));
	SORT(order, count, compare_by_name);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && strcmp(place_base(order[first]), place_base(order[end])) == 0;)
			end++;
		if (end - first <= TWINS_MAX && strcmp(order[first], order[end - 1]) != 0)
			add_same_stack(order + first, end - first);
	}
}

/* "__init__.py" alone is no place in any project. */
static const char *
telling_base(const char *path)
{
	static const char *const names[] = { "__init__.py", "__main__.py", "mod.rs" };
	const char *base = place_base(path);
	struct twin *twin;

	HASH_FIND(hh, twins, path, strlen(path), twin);
	if (twin != NULL && twin->name < base)
		return twin->name;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && base > path + 1; i++) {
		if (strcmp(base, names[i]) != 0)
			continue;
		base--;
		while (base > path && base[-1] != '/')
			base--;
		break;
	}
	return base;
}

const char *
place_short(const char *path)
{
	static const char *const packages[] = { "/site-packages/", "/dist-packages/" };
	const char *below;

	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
		below = strstr(path, packages[i]);
		if (below != NULL)
			return below + strlen(packages[i]);
	}
	below = below_standard_library(path);
	return below != NULL ? below : telling_base(path);
}

static bool
is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* At most PART_BYTES bytes of `part`: head, "...", tail, cut between characters. */
static const char *
shortened(const char *part, char room[PART_BYTES + 4])
{
	size_t length = strlen(part);
	size_t head = PART_BYTES / 2 - 2;
	size_t tail = length - (PART_BYTES / 2 - 2);

	if (length <= PART_BYTES)
		return part;
	while (head > 0 && is_continuation(part[head]))
		head--;
	while (is_continuation(part[tail]))
		tail++;
	return memory_text_in(room, PART_BYTES + 4, "%.*s...%s", (int)head, part, part + tail);
}

/* What IPython calls the code of a cell itself. */
static bool
is_body(const char *function)
{
	return strcmp(function, "<module>") == 0 || strncmp(function, "<cell line:", 11) == 0;
}

/* where: a short name of the file, or of the module; name: of the function. */
static void
write_place(const char *file, uint32_t line, const char *where, const char *name, uint64_t offset, char *text,
            size_t bytes)
{
	const char *space = where[0] != '\0' && name[0] != '\0' ? " " : "";

	if (where[0] == '\0' && name[0] == '\0')
		(void)snprintf(text, bytes, "unknown place");
	else if (file[0] == '\0' && name[0] == '\0' && offset != 0)
		(void)snprintf(text, bytes, "%s+0x%" PRIx64, where, offset);
	else if (line != 0 && place_is_cell(file))
		(void)snprintf(text, bytes, "%s line %" PRIu32 "%s%s", where, line, is_body(name) ? "" : space,
		               is_body(name) ? "" : name);
	else if (line != 0 && file[0] != '\0')
		(void)snprintf(text, bytes, "%s:%" PRIu32 "%s%s", where, line, space, name);
	else
		(void)snprintf(text, bytes, "%s%s%s", where, space, name);
	(void)text_clean(text, strlen(text));
}

const char *
place_text(const char *file, uint32_t line, const char *function, const char *module, uint64_t offset,
           char text[PLACE_TEXT_BYTES])
{
	char file_room[PART_BYTES + 4];
	char function_room[PART_BYTES + 4];
	const char *where = shortened(file[0] != '\0' ? place_short(file) : module, file_room);

	write_place(file, line, where, shortened(function, function_room), offset, text, PLACE_TEXT_BYTES);
	return text;
}

char *
place_whole(const char *file, uint32_t line, const char *function, const char *module, uint64_t offset)
{
	const char *where = file[0] != '\0' ? place_short(file) : module;
	size_t bytes = strlen(where) + strlen(function) + PLACE_TEXT_BYTES;
	char *text = memory_zeroed(bytes, 1);

	write_place(file, line, where, function, offset, text, bytes);
	return text;
}

const char *
place_related(const char *relation, char text[PLACE_TEXT_BYTES])
{
	size_t length = strlen(text);

	if (relation[0] != '\0')
		(void)snprintf(text + length, PLACE_TEXT_BYTES - length, " [%s]", relation);
	return text;
}
