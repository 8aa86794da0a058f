/* owner.c - see owner.h. */
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/regular_file.h"
#include "base/text_clean.h"

#define LINKS_MAX 40 // as Linux

/* A link that leads to an open file, or to what a process has; its text is no path. */
static bool
is_of_proc(int link)
{
	struct statfs system;

	return fstatfs(link, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

bool
owner_is_trusted(uid_t owner)
{
	return owner == 0 || owner == geteuid();
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

bool
owner_stat(const char *path, struct stat *status)
{
	return lstat(path, status) == 0 &&
	       (!S_ISLNK(status->st_mode) || !owner_is_trusted(status->st_uid) || stat(path, status) == 0);
}

static int
open_from(int folder, const char *path, int flags, mode_t mode, unsigned links)
{
	OWNED_FILE int root = *path == '/' ? open("/", O_PATH | O_CLOEXEC) : -1;
	int from = *path == '/' ? root : folder;
	const char *part = path + strspn(path, "/");
	size_t length = strcspn(part, "/");
	const char *rest = part + length + strspn(part + length, "/");
	OWNED char *name = memory_printed("%.*s", (int)length, part);
	OWNED_FILE int next = openat(from, length != 0 ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (next >= 0 && fstat(next, &status) == 0 && S_ISLNK(status.st_mode)) {
		OWNED char *way = memory_zeroed(PATH_MAX + strlen(rest) + 2, 1);

		errno = ELOOP;
		if (!owner_is_trusted(status.st_uid) || links == 0)
			return -1;
		if (is_of_proc(next) && *rest == '\0')
			return openat(from, name, flags | O_CLOEXEC, mode);
		if (readlinkat(next, "", way, PATH_MAX - 1) <= 0)
			return -1;
		return open_from(from, strcat(strcat(way, "/"), rest), flags, mode, links - 1);
	}
	if (*rest == '\0')
		return openat(from, length != 0 ? name : ".", flags | O_NOFOLLOW | O_CLOEXEC, mode);
	return next >= 0 ? open_from(next, rest, flags, mode, links) : -1;
}

int
owner_open(const char *path, int flags, mode_t mode)
{
	return open_from(AT_FDCWD, path, flags, mode, LINKS_MAX);
}

bool
owner_is_anothers(const char *folder, uid_t *owner)
{
	struct stat status;

	if (!owner_stat(folder, &status) || owner_is_trusted(status.st_uid))
		return false;
	*owner = status.st_uid;
	return true;
}

bool
owner_is_alone(char *real)
{
	bool is_last = true;
	struct stat status;

	for (char *slash; (slash = strrchr(real, '/')) != NULL && slash != real; is_last = false) {
		if (stat(real, &status) != 0 || !owner_is_trusted(status.st_uid) ||
		    ((is_last || (status.st_mode & S_ISVTX) == 0) &&
		     ((status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IWGRP) != 0 && status.st_gid != getegid()))))
			return false;
		*slash = '\0';
	}
	return true;
}
