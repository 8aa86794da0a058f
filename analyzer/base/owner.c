/* owner.c - see owner.h. */
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/text_clean.h"

#define LINKS_MAX 40              // as Linux
#define UNMAPPED 65534            // as Linux, where nobody has changed it
#define WAY_BYTES (16 * PATH_MAX) // that somebody writes with . and ..

/* A link that leads to an open file, or to what a process has; its text is no path. */
static bool
is_of_proc(int link)
{
	struct statfs system;

	return fstatfs(link, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/* A user namespace shows all users whom it does not map as this one. Where all are mapped, as without a namespace, it is one user. */
static bool
is_unmapped(uid_t owner)
{
	unsigned count = 0;

	if (owner != UNMAPPED)
		return false;
	EACH_LINE (line, "/proc/self/uid_map")
		(void)sscanf(line, "%*u%*u%u", &count);
	return count != UINT32_MAX;
}

bool
owner_is_trusted(uid_t owner)
{
	return (owner == 0 || owner == geteuid()) && !is_unmapped(owner);
}

const char *
owner_text(uid_t owner, char text[OWNER_TEXT_BYTES])
{
	const struct passwd *known = getpwuid(owner);

	if (known != NULL)
		(void)snprintf(text, OWNER_TEXT_BYTES, "user %s", known->pw_name);
	else
		(void)snprintf(text, OWNER_TEXT_BYTES, "user %lu", (unsigned long)owner);
	(void)text_clean(text, strlen(text));
	return text;
}

int
owner_open(const char *path, int flags, mode_t mode)
{
	OWNED char *way = memory_text(path);
	OWNED_FILE int folder = strlen(path) < WAY_BYTES ? open(*path == '/' ? "/" : ".", O_PATH | O_CLOEXEC)
	                                                 : (errno = ENAMETOOLONG, -1);
	char *rest = way;

	for (unsigned links = 0; folder >= 0;) {
		const char *part = strsep(&rest, "/");
		const char *name = *part != '\0' ? part : part == way ? "/" : ".";
		OWNED_FILE int next = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		char target[PATH_MAX] = "";
		struct stat status;

		bool is_link = next >= 0 && fstat(next, &status) == 0 && S_ISLNK(status.st_mode);
		if (is_link && (!owner_is_trusted(status.st_uid) || links++ == LINKS_MAX))
			return errno = ELOOP, -1;
		if (rest == NULL && (!is_link || is_of_proc(next)))
			return openat(folder, name, flags | (is_link ? 0 : O_NOFOLLOW) | O_CLOEXEC, mode);
		if (next < 0 || (is_link && readlinkat(next, "", target, sizeof(target) - 1) <= 0))
			return -1;
		if (is_link) {
			char *longer = memory_printed("%s%s%s", target, rest != NULL ? "/" : "", rest != NULL ? rest : "");
			free(way);
			way = rest = longer;
		} else {
			int above = folder;
			folder = next;
			next = above; // is closed
		}
	}
	return -1;
}

bool
owner_is_anothers(const char *folder, uid_t *owner)
{
	struct stat status;

	if (lstat(folder, &status) != 0 ||
	    (S_ISLNK(status.st_mode) && owner_is_trusted(status.st_uid) && stat(folder, &status) != 0) ||
	    owner_is_trusted(status.st_uid))
		return false;
	*owner = status.st_uid;
	return true;
}

bool
owner_is_alone(char *real)
{
	struct stat status;

	for (bool is_last = true;; is_last = false) {
		char *slash = strrchr(real, '/');

		if (stat(real, &status) != 0 || !owner_is_trusted(status.st_uid) ||
		    ((is_last || (status.st_mode & S_ISVTX) == 0) &&
		     ((status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IWGRP) != 0 && status.st_gid != getegid()))))
			return false;
		if (slash[1] == '\0') // of all
			return true;
		slash[slash == real] = '\0';
	}
}
