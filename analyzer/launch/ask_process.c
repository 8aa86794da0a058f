/*
 * ask_process.c - tells a program that is being recorded to make a mark or a snapshot (see ask_process.h).
 */
#include "launch/ask_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/regular_file.h"
#include "base/text_clean.h"
#include "capture/running_capture.h"
#include "kmem_words.h"

#define PAUSE_NS 5000000
#define PAUSES_MAX 400 // two seconds

static bool
wait_for(int fd, uint64_t number)
{
	const off_t at = (off_t)(KMEM_TIMELINE_OFFSET + offsetof(struct kmem_timeline, request_done));

	for (unsigned i = 0; i < PAUSES_MAX; i++) {
		uint64_t done = 0;

		/* acquire: a system call is one. Pairs with marks_serve(). */
		if (pread(fd, &done, sizeof(done), at) == (ssize_t)sizeof(done) && done == number)
			return true;
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	}
	return false;
}

/* Cuts a name behind a whole character. */
static void
set_name(struct kmem_request *request, const char *name)
{
	memcpy(request->name, name, text_whole(name, strnlen(name, sizeof(request->name) - 1)));
}

bool
ask_process(const char *command, const char *pid, enum ask_what what, const char *name, bool *is_done,
            struct fail *fail)
{
	struct kmem_request request = { .wants = (uint32_t)what };
	char path[RUNNING_CAPTURE_PATH_BYTES];
	OWNED_FILE int fd = running_capture_open(command, pid, O_RDWR, path, fail);

	if (fd < 0)
		return false;
	request.number = clock_monotonic_ns();
	set_name(&request, name);
	request.checksum = kmem_request_checksum(&request);
	if (pwrite(fd, &request, sizeof(request), (off_t)KMEM_REQUEST_OFFSET) != (ssize_t)sizeof(request)) {
		return fail_set(fail, EXIT_CAPTURE, "%s: %s: cannot be written (%s)", command, path, strerror(errno));
	}
	*is_done = wait_for(fd, request.number);
	return true;
}
