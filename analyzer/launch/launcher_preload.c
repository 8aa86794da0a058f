/*
 * launcher_preload.c - see launcher_preload.h.
 *
 * Our library comes first: it calls the allocator of the library behind it. Two of ours would record each block twice.
 */
#include "launch/launcher_preload.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool
is_ours(const char *entry, const char *shim)
{
	const char *slash = strrchr(entry, '/');

	return strcmp(slash != NULL ? slash + 1 : entry, strrchr(shim, '/') + 1) == 0;
}

static void
tell_other(const char *entry, const char *shim)
{
	static bool was_told; // of several runs of one program
	char path[PATH_MAX];

	if (was_told || (realpath(entry, path) != NULL && strcmp(path, shim) == 0))
		return;
	was_told = true;
	(void)fprintf(stderr, "kmemshim: LD_PRELOAD names the library of another installation, %s: left out, %s records\n",
	              entry, shim);
}

char *
launcher_preload(const char *shim, bool is_told)
{
	const char *present = getenv("LD_PRELOAD");
	OWNED char *entries = memory_text(present != NULL ? present : "");
	size_t room = strlen(shim) + strlen(entries) + 2;
	char *list = memory_zeroed(room, 1);
	size_t length = (size_t)snprintf(list, room, "%s", shim);
	char *save;

	for (char *entry = strtok_r(entries, " :", &save); entry != NULL; entry = strtok_r(NULL, " :", &save)) {
		if (is_ours(entry, shim) && is_told)
			tell_other(entry, shim);
		if (!is_ours(entry, shim))
			length += (size_t)snprintf(list + length, room - length, ":%s", entry);
	}
	return list;
}
