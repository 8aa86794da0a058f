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
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/text_start.h"
#include "capture/capture_memory.h"
#include "capture/process_alive.h"
#include "kmem_words.h"

#define LINE_BYTES RUNNING_CAPTURE_PATH_BYTES
#define LIBRARY "libkmemshim.so"
#define PAUSE_NS 2000000
#define PAUSES_MAX 100 // until a program that has just begun has loaded its libraries
#define SURE_LOOKS 3   // at a process without a recorder: exec may replace what is being read

/* What the list of its memory says; all 0: the list is empty. */
struct mapped {
	bool has_any;
	bool has_library; // it runs under the recorder
};

/* ".kmem" at its end, before what the kernel adds when the file was removed. */
static char *
capture_in(char *line)
{
	char *path = strchr(line, '/');

	if (path == NULL)
		return NULL;
	path[strcspn(path, "\n")] = '\0';
	return text_ends(path, ".kmem") ? path : NULL; // it begins with a slash
}

/* The list has "\\012" for a newline in a name, and for these characters themselves. */
static void
put_newlines(char *path)
{
	if (access(path, F_OK) == 0)
		return;
	for (char *at = path; (at = strstr(at, "\\012")) != NULL; at++) {
		*at = '\n';
		memmove(at + 1, at + 4, strlen(at + 4) + 1);
	}
}

/* path: out, of LINE_BYTES; "" = it has no capture mapped. False: it cannot be read. */
static bool
find_capture(const char *pid, char *path, struct mapped *mapped)
{
	char line[LINE_BYTES];
	OWNED_STREAM FILE *maps = fopen(TEXT(64, "/proc/%.20s/maps", pid), "re");

	*path = '\0';
	*mapped = (struct mapped){ 0 };
	if (maps == NULL)
		return false;
	while (fgets(line, sizeof(line), maps) != NULL) {
		char *found = capture_in(line);

		mapped->has_any = true;
		mapped->has_library = mapped->has_library || strstr(line, LIBRARY) != NULL;
		if (found != NULL)
			(void)snprintf(path, LINE_BYTES, "%s", found);
	}
	put_newlines(path);
	return true;
}

/* "NAME=value" of its environment, for free(); "" = it has no such, NULL = the environment is not there yet, or cannot be read. */
static char *
setting_of(const char *pid, const char *begin)
{
	bool is_there = false;

	EACH_PART (entry, TEXT(64, "/proc/%.20s/environ", pid), '\0') {
		is_there = true;
		if (text_starts(entry, begin))
			return memory_text(entry);
	}
	return is_there ? memory_text("") : NULL;
}

/* Its environment names the recorder, or is not there yet. */
static bool
is_to_be_recorded(const char *pid)
{
	OWNED char *preload = setting_of(pid, "LD_PRELOAD=");

	return preload == NULL || strstr(preload, LIBRARY) != NULL;
}

/* Of a capture that lies in memory: its name in the folder of captures, beside which there are other files. */
static void
find_name(const char *pid, char *path)
{
	char place[PATH_MAX];
	OWNED char *folder = text_starts(path, CAPTURE_MEMORY_FOLDERS) ? setting_of(pid, "KMEMSHIM_OUT=") : NULL;

	if (folder != NULL && folder[0] != '\0') {
		const char *link = TEXT(RUNNING_CAPTURE_PATH_BYTES, "%s%s", strchr(folder, '=') + 1, strrchr(path, '/'));

		if (capture_memory_place(link, place) && strcmp(place, path) == 0)
			(void)snprintf(path, RUNNING_CAPTURE_PATH_BYTES, "%s", link);
	}
}

/*
 * While exec replaces a program its list is empty, and then without the recorder until the loader has come to it: that is waited for. False: its
 * list cannot be read, or it is dead.
 */
static bool
find_settled(const char *pid, char *path, struct mapped *mapped)
{
	unsigned without = 0;

	for (unsigned pauses = 0; find_capture(pid, path, mapped); pauses++) {
		if (!mapped->has_any && process_is_dead(pid)) {
			errno = ESRCH;
			return false;
		}
		if (mapped->has_library || path[0] != '\0' || pauses == PAUSES_MAX)
			return true;
		without = mapped->has_any && !is_to_be_recorded(pid) ? without + 1 : 0;
		if (without == SURE_LOOKS)
			return true;
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	}
	return false;
}

static bool
is_number(const char *text)
{
	return *text != '\0' && strlen(text) <= 10 && strspn(text, "0123456789") == strlen(text) &&
	       strtoul(text, NULL, 10) != 0;
}

bool
running_capture_is_process(const char *argument)
{
	return argument != NULL && is_number(argument) && access(argument, F_OK) != 0;
}

/* Which line says that this process has no capture that is being written? Its two places: the command, the process. */
static const char *
why_not(const struct mapped *mapped)
{
	return mapped->has_library
	           ? "%s: process %s has no capture yet: it holds next to nothing, or its folder cannot be written"
	           : "%s: process %s is not recorded: start it with kmemshim run";
}

/* The first child of it that has a capture, such as the program of a launcher; 0 = none. */
static unsigned long
recorded_child(const char *pid)
{
	EACH_PART (child, TEXT(80, "/proc/%.20s/task/%.20s/children", pid, pid), ' ') {
		char path[RUNNING_CAPTURE_PATH_BYTES];
		struct mapped mapped;

		if (find_capture(child, path, &mapped) && path[0] != '\0')
			return strtoul(child, NULL, 10);
	}
	return 0;
}

/* What it has mapped. */
static bool
find_mapped(const char *command, const char *pid, char *path, struct fail *fail)
{
	struct mapped mapped;

	if (!is_number(pid))
		return fail_set(fail, EXIT_USAGE, "%s: \"%.40s\" is not a process: give the number of one, such as 1234",
		                command, pid);
	if (!find_settled(pid, path, &mapped))
		return fail_set(fail, EXIT_USAGE,
		                errno == EACCES || errno == EPERM ? "%s: process %s may not be read by this user"
		                                                  : "%s: process %s is gone",
		                command, pid);
	if (path[0] != '\0')
		return true;

	unsigned long child = mapped.has_library ? 0 : recorded_child(pid);

	return child != 0 ? fail_set(fail, EXIT_USAGE, "%s: process %s is not recorded, its child %lu is: give that number",
	                             command, pid, child)
	                  : fail_set(fail, EXIT_USAGE, why_not(&mapped), command, pid);
}

bool
running_capture_path(const char *command, const char *pid, char *path, struct fail *fail)
{
	if (!find_mapped(command, pid, path, fail))
		return false;
	find_name(pid, path);
	return true;
}

/* Is the file the running capture of this process, of our format? */
static bool
check(const char *command, const char *pid, const char *path, int fd, struct fail *fail)
{
	const struct mapped before_it_allocates = { .has_library = true }; // a forked child has its parent's mapped
	struct kmem_header header = { 0 };
	bool is_begun = pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) && header.magic[0] != '\0';

	if (is_begun && (memcmp(header.magic, KMEM_MAGIC, sizeof(header.magic)) != 0 ||
	                 !kmem_version_is_read(header.version) || header.endian != KMEM_ENDIAN))
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: %s: is not the capture of a running process %s, of this version's format", command, path,
		                pid);

	uint32_t state = atomic_load_explicit(&header.state, memory_order_relaxed);

	if (!is_begun || header.identity.pid != (process_inner_pid(pid) ?: (uint32_t)strtoul(pid, NULL, 10)) ||
	    state == KMEM_STATE_STARTING)
		return fail_set(fail, EXIT_USAGE, why_not(&before_it_allocates), command, pid);
	return state == KMEM_STATE_RUNNING ||
	       fail_set(fail, EXIT_USAGE, "%s: process %s ends, or becomes another program, at this moment", command, pid);
}

int
running_capture_open(const char *command, const char *pid, int flags, char *path, struct fail *fail)
{
	char before[RUNNING_CAPTURE_PATH_BYTES] = "";
	int fd;

	for (;;) {
		if (!find_mapped(command, pid, path, fail))
			return -1;
		fd = regular_file_open(path, flags | O_NOFOLLOW, NULL); // who runs it may have put a pipe there
		if (fd >= 0 || errno != ENOENT || strcmp(path, before) == 0)
			break;
		(void)snprintf(before, sizeof(before), "%s", path); // exec removes that of a small program
	}
	if (fd < 0)
		return fail_set(fail, EXIT_CAPTURE, "%s: %s: cannot be %s (%s)", command, path,
		                (flags & O_ACCMODE) == O_RDONLY ? "read" : "written", regular_file_why(errno)),
		       -1;
	if (check(command, pid, path, fd, fail)) {
		find_name(pid, path);
		return fd;
	}
	(void)close(fd);
	return -1;
}
