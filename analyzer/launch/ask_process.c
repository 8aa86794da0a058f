/*
 * ask_process.c - tells a program that is being recorded to make a mark or a snapshot (see ask_process.h).
 *
 * Its capture is found in /proc/PID/maps: wherever its folder is, that is the file that it has mapped.
 */
#include "launch/ask_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text_start.h"
#include "kmem_words.h"

#define PAUSE_NS 5000000
#define PAUSES_MAX 400 // two seconds
#define LINE_BYTES ASK_PATH_BYTES

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

static bool
wait_for(int fd, uint64_t number)
{
	const off_t at = (off_t)(KMEM_TIMELINE_OFFSET + offsetof(struct kmem_timeline, request_done));

	for (unsigned i = 0; i < PAUSES_MAX; i++) {
		uint64_t done = 0;

		/* acquire is what a system call is. Pairs with marks_serve(). */
		if (pread(fd, &done, sizeof(done), at) == (ssize_t)sizeof(done) && done == number)
			return true;
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	}
	return false;
}

/* The first bytes that are whole characters. */
static void
set_name(struct kmem_request *request, const char *name)
{
	size_t length = strnlen(name, sizeof(request->name) - 1);

	while (name[length] != '\0' && length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
		length--;
	memcpy(request->name, name, length);
}

bool
ask_process_capture(const char *command, const char *pid, char path[ASK_PATH_BYTES], struct fail *fail)
{
	bool has_library;

	if (!is_number(pid))
		return fail_set(fail, EXIT_USAGE, "%s: \"%.40s\" is no process: give the number of one, such as 1234", command,
		                pid);
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

bool
ask_process(const char *command, const char *pid, enum ask_what what, const char *name, bool *is_done,
            struct fail *fail)
{
	struct kmem_request request = { .wants = (uint32_t)what };
	char path[LINE_BYTES];
	struct timespec now;
	int fd;

	if (!ask_process_capture(command, pid, path, fail))
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return fail_set(fail, EXIT_CAPTURE, "%s: %s: cannot be written (%s)", command, path, strerror(errno));
	if (!is_its_capture(fd, pid)) {
		(void)close(fd);
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: %s: is not the capture of a running process %s, of this version's format", command, path,
		                pid);
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	request.number = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	set_name(&request, name);
	request.checksum = kmem_request_checksum(&request);
	if (pwrite(fd, &request, sizeof(request), (off_t)KMEM_REQUEST_OFFSET) != (ssize_t)sizeof(request)) {
		(void)close(fd);
		return fail_set(fail, EXIT_CAPTURE, "%s: %s: cannot be written (%s)", command, path, strerror(errno));
	}
	*is_done = wait_for(fd, request.number);
	(void)close(fd);
	return true;
}
