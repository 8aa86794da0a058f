/*
 * make_folders.c - mkdir -p.
 *
 * When failing  folders that were made stay.
 */
#include "base/make_folders.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

bool
make_folders(const char *path, mode_t mode)
{
	OWNED char *copy = memory_text(path);
	struct stat there;
	int why = 0; // the first failure above the last folder

	for (char *slash = copy; slash[0] != '\0' && (slash = strchr(slash + 1, '/')) != NULL;) {
		*slash = '\0';
		if (mkdir(copy, mode) != 0 && errno != EEXIST && why == 0)
			why = errno;
		*slash = '/';
	}

	bool is_made = mkdir(copy, mode) == 0;

	if (!is_made && errno == EEXIST) {
		is_made = stat(copy, &there) == 0 && S_ISDIR(there.st_mode);
		errno = ENOTDIR;
	}
	if (!is_made && errno == ENOENT && why != 0)
		errno = why;
	return is_made;
}
