/*
 * running_capture.c - which capture does a running process write (see running_capture.h)?
 */
#include "capture/running_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_start.h"
#include "kmem_words.h"

#define LINE_BYTES RUNNING_CAPTURE_PATH_BYTES

/* ".kmem" at its end, before what the kernel adds when the file was removed. */
static char *
capture_in(char *line)
{
	char *path = strchr(line, '/');
	size_t length;

	if (path == NULL)
		return NULL;
	length = strcspn(path, "\n");
	path[length] = '\0';
	return length > 5 && strcmp(path + length - 5, ".kmem") == 0 ? path : NULL;
}

/* path: out, of LINE_BYTES; "" = it has no capture mapped. *has_library: it runs under the recorder. False: it cannot be read. */
static bool
find_capture(const char *pid, char *path, bool *has_library)
{
	char name[64];
	char line[LINE_BYTES];
	FILE *maps;

	*path = '\0';
	*has_library = false;
	(void)snprintf(name, sizeof(name), "/proc/%.20s/maps", pid);
	maps = fopen(name, "re");
	if (maps == NULL)
		return false;
	while (fgets(line, sizeof(line), maps) != NULL) {
		char *found = capture_in(line);

		*has_library = *has_library || strstr(line, "libkmemshim.so") != NULL;
		if (found != NULL)
			(void)snprintf(path, LINE_BYTES, "%s", found);
	}
	(void)fclose(maps);
	return true;
}

static bool
is_number(const char *text)
{
	return *text != '\0' && strlen(text) <= 10 && strspn(text, "0123456789") == strlen(text) &&
	       strtoul(text, NULL, 10) != 0;
}

/* Its number where it runs: in a container it has another one. */
static unsigned long
own_number(const char *pid)
{
	char name[64];
	char line[256];
	unsigned long number = strtoul(pid, NULL, 10);
	FILE *status;

	(void)snprintf(name, sizeof(name), "/proc/%.20s/status", pid);
	status = fopen(name, "re");
	while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
		const char *last = strrchr(line, '\t');

		if (text_starts(line, "NSpid:") && last != NULL)
			number = strtoul(last + 1, NULL, 10);
	}
	if (status != NULL)
		(void)fclose(status);
	return number;
}

/* Is the file the running capture of this process, of our format? A forked child has its parent's mapped, until it allocates. */
static bool
is_its_capture(int fd, const char *pid)
{
	struct kmem_header header;

	return pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       memcmp(header.magic, KMEM_MAGIC, sizeof(header.magic)) == 0 && kmem_version_is_read(header.version) &&
	       header.endian == KMEM_ENDIAN &&
	       atomic_load_explicit(&header.state, memory_order_relaxed) == KMEM_STATE_RUNNING &&
	       header.identity.pid == own_number(pid);
}

bool
running_capture_path(const char *command, const char *pid, char *path, struct fail *fail)
{
	bool has_library;

	if (!is_number(pid))
		return fail_set(fail, EXIT_USAGE, "%s: \"%.40s\" is not a process: give the number of one, such as 1234",
		                command, pid);
	if (!find_capture(pid, path, &has_library))
		return fail_set(fail, EXIT_USAGE,
		                errno == EACCES || errno == EPERM ? "%s: process %s belongs to another user"
		                                                  : "%s: process %s is gone",
		                command, pid);
	if (path[0] == '\0')
		return fail_set(
			fail, EXIT_USAGE,
			has_library ? "%s: process %s has no capture yet: it holds next to nothing, or its folder cannot be written"
						: "%s: process %s is not recorded: start it with kmemshim run",
			command, pid);
	return true;
}

int
running_capture_open(const char *command, const char *pid, int flags, char *path, struct fail *fail)
{
	int fd;

	if (!running_capture_path(command, pid, path, fail))
		return -1;
	fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return fail_set(fail, EXIT_CAPTURE, "%s: %s: cannot be %s (%s)", command, path,
		                (flags & O_ACCMODE) == O_RDONLY ? "read" : "written", strerror(errno)),
		       -1;
	if (!is_its_capture(fd, pid)) {
		(void)close(fd);
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: %s: is not the capture of a running process %s, of this version's format", command, path,
		                pid),
		       -1;
	}
	return fd;
}
