/* regular_file.c - see regular_file.h. */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

int
regular_file_open(const char *path, int flags, struct stat *status)
{
	struct stat own;
	struct stat *found = status != NULL ? status : &own;
	OWNED_FILE int place = openat(AT_FDCWD, path, O_PATH | (flags & O_NOFOLLOW) | O_CLOEXEC);
	int fd = -1;

	if (place < 0 || fstat(place, found) != 0)
		return -1;
	if (S_ISREG(found->st_mode)) // O_NONBLOCK: no waiting for somebody who has leased it
		fd = openat(AT_FDCWD, TEXT(32, "/proc/self/fd/%d", place),
		            (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	else
		errno = S_ISDIR(found->st_mode) ? EISDIR : S_ISLNK(found->st_mode) ? ELOOP : EINVAL;
	if (fd < 0 && errno == ENOENT && S_ISREG(found->st_mode)) // there is no /proc
		fd = openat(AT_FDCWD, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	(void)fstat(fd >= 0 ? fd : place, found); // a server says what is now when it is opened
	return fd;
}

bool
regular_file_path(int file, char path[PATH_MAX])
{
	ssize_t bytes = readlink(TEXT(32, "/proc/self/fd/%d", file), path, PATH_MAX);

	if (bytes <= 0 || bytes == PATH_MAX || path[0] != '/')
		return false;
	path[bytes] = '\0';
	return true;
}

/* What leads on from the folder to what lies below it; NULL: this does not. */
static char *
rest_below(char path[PATH_MAX], const char *folder)
{
	char top[PATH_MAX];
	size_t length = realpath(folder, top) != NULL ? strlen(top) : 0;

	if (length == 1)
		return path;
	return length != 0 && strncmp(path, top, length) == 0 && path[length] == '/' ? path + length : NULL;
}

bool
regular_file_is_below(int file, const char *folder)
{
	char path[PATH_MAX];

	return regular_file_path(file, path) && rest_below(path, folder[0] != '\0' ? folder : ".") != NULL;
}

bool
regular_file_is_public(int file)
{
	struct stat there, own;
	char path[PATH_MAX];
	bool is_public = regular_file_path(file, path) && fstat(file, &own) == 0;
	char *rest = is_public ? rest_below(path, ".") : NULL;
	int at = open(rest != NULL ? "." : "/", O_PATH | O_CLOEXEC);

	rest = rest != NULL ? rest : path;
	for (char *name; is_public && (name = strsep(&rest, "/")) != NULL;) {
		OWNED_FILE int folder = at;

		is_public = fstat(folder, &there) == 0 && (there.st_mode & S_IXOTH) != 0;
		at = openat(folder, *name != '\0' ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	OWNED_FILE int found = at;
	return is_public && fstat(found, &there) == 0 && there.st_dev == own.st_dev && there.st_ino == own.st_ino &&
	       (own.st_mode & S_IROTH) != 0;
}

const char *
regular_file_why(int error)
{
	return error == EINVAL ? "is not a regular file" : strerror(error);
}

void
regular_file_close(const int *file)
{
	if (*file >= 0)
		(void)close(*file);
}

void
regular_file_close_stream(FILE *const *stream)
{
	if (*stream != NULL)
		(void)fclose(*stream);
}
