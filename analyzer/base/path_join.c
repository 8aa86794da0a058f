/*
 * path_join.c - see path_join.h.
 *
 * When failing  it does not: what cannot be joined stays as it is.
 */
#include "base/path_join.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

const char *
path_join(const char *folder, const char *name, char path[PATH_JOIN_BYTES])
{
	char whole[PATH_JOIN_BYTES];
	size_t length = 0;

	if (name[0] == '/')
		folder = "";
	else if (folder[0] != '/' || name[0] == '\0' || name[0] == '<')
		return name;
	if (snprintf(whole, sizeof(whole), "%s/%s", folder, name) >= (int)sizeof(whole))
		return name;
	for (const char *at = whole; *at != '\0';) {

		at += strspn(at, "/");

		size_t part = strcspn(at, "/");

		if (part == 2 && at[0] == '.' && at[1] == '.') {
			while (length > 0 && path[--length] != '/')
				continue;
		} else if (part != 0 && (part != 1 || at[0] != '.')) {
			path[length++] = '/'; // never longer than `whole`
			memcpy(path + length, at, part);
			length += part;
		}
		at += part;
	}
	if (length == 0)
		path[length++] = '/';
	path[length] = '\0';
	return path;
}
