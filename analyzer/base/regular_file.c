/* regular_file.c - see regular_file.h. */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
regular_file_open(const char *path, int flags, struct stat *status)
{
	struct stat own;
	struct stat *found = status != NULL ? status : &own;
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		if (errno == ENXIO) // a FIFO without a reader, a socket, a device that is gone
			errno = EINVAL;
		return -1;
	}

	int error = fstat(fd, found) != 0 ? errno : S_ISREG(found->st_mode) ? 0 : S_ISDIR(found->st_mode) ? EISDIR : EINVAL;

	if (error == 0)
		return fd;
	(void)close(fd);
	errno = error;
	return -1;
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
