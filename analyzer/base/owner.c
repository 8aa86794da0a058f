/* owner.c - see owner.h. */
#include "base/owner.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text_clean.h"

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
