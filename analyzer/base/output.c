/*
 * output.c - did what we wrote arrive?
 *
 * When failing  see output.h.
 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

struct output_file {
	FILE *stream;
	char *path;
	char *beside; // NULL: written in place
};

/*
 * What a signal that ends the command takes away: files that are not whole. Signal handlers read it, so a path is there before its file
 * and goes after it.
 */
#define UNFINISHED_MAX 8
static char *volatile unfinished[UNFINISHED_MAX];
static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void
remove_unfinished(int number)
{
	for (size_t i = 0; i < UNFINISHED_MAX; i++) {
		if (unfinished[i] != NULL)
			(void)unlink(unfinished[i]);
	}
	(void)raise(number); // SA_RESETHAND: now it ends us
}

/* Signals that somebody ignores or handles stay so. */
static void
watch_signals(void)
{
	static bool is_watching;
	struct sigaction action = { .sa_handler = remove_unfinished, .sa_flags = (int)SA_RESETHAND };
	struct sigaction before;

	if (is_watching)
		return;
	is_watching = true;
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(ending_signals[0]); i++) {
		if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			(void)sigaction(ending_signals[i], &action, NULL);
	}
}

static void
note_unfinished(char *path)
{
	watch_signals();
	for (size_t i = 0; i < UNFINISHED_MAX; i++) {
		if (unfinished[i] == NULL) {
			unfinished[i] = path;
			return;
		}
	}
}

static void
forget_unfinished(const char *path)
{
	for (size_t i = 0; i < UNFINISHED_MAX && path != NULL; i++) {
		if (unfinished[i] == path)
			unfinished[i] = NULL;
	}
}

/* The reader of a pipe or socket is gone. */
static bool
is_abandoned(FILE *stream, int error)
{
	struct pollfd poll_of = { .fd = fileno(stream) };

	return error == EPIPE || (poll(&poll_of, 1, 0) == 1 && (poll_of.revents & (POLLERR | POLLHUP)) != 0);
}

static bool
flush(FILE *stream, const char *name, struct fail *fail)
{
	int error = 0;

	if (fflush(stream) != 0)
		error = errno;
	else if (ferror(stream) != 0)
		error = ENOSPC; // an earlier write failed; that it was room is the likely reason
	if (error == 0 || is_abandoned(stream, error))
		return true;
	return fail_set(fail, EXIT_USAGE, "%s: cannot write: %s: the output is incomplete", name, strerror(error));
}

bool
output_finish(struct fail *fail)
{
	return flush(stdout, "standard output", fail);
}

static void
free_file(struct output_file *file)
{
	forget_unfinished(file->beside);
	free(file->beside);
	free(file->path);
	free(file);
}

/* A device, a pipe or a terminal. A FIFO that nobody reads is refused, not waited for. */
static FILE *
open_in_place(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return NULL;
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fdopen(fd, "w");
}

/*
 * Whom an older file of this name belongs to, and who may read it: as before, from the first byte on. A group that we may not give it to
 * may do nothing. there: NULL = there is none.
 */
static FILE *
open_beside(const char *path, const struct stat *there)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, there != NULL ? there->st_mode & 0700 : 0666);

	if (fd < 0)
		return NULL;
	if (there != NULL) {
		bool has_group = fchown(fd, there->st_uid, there->st_gid) == 0 || fchown(fd, (uid_t)-1, there->st_gid) == 0;

		(void)fchmod(fd, there->st_mode & (has_group ? 0777 : 0707));
	}
	return fdopen(fd, "w");
}

/* What follows there is written behind it. */
static bool
is_standard_output(const struct stat *there)
{
	struct stat own;

	return fstat(STDOUT_FILENO, &own) == 0 && own.st_dev == there->st_dev && own.st_ino == there->st_ino;
}

bool
output_may_write(const char *path, bool is_forced, struct fail *fail)
{
	struct stat there;

	if (stat(path, &there) != 0)
		return true; // whether it can be made, output_open() finds out
	if (S_ISDIR(there.st_mode))
		return fail_set(fail, EXIT_USAGE, "%s: is a folder: give the name of a file to write", path);
	if (S_ISREG(there.st_mode) && !is_forced)
		return fail_set(fail, EXIT_USAGE, "%s: is there already: give --force to replace it", path);
	return true;
}

struct output_file *
output_open(const char *path, struct fail *fail)
{
	struct output_file *file = memory_zeroed(1, sizeof(*file));
	struct stat there;

	file->path = memory_text(strcmp(path, "-") == 0 ? "/dev/stdout" : path);
	bool is_there = stat(file->path, &there) == 0;
	bool is_own = is_there && is_standard_output(&there);

	if (!is_own && (!is_there || S_ISREG(there.st_mode))) {
		char *real = realpath(file->path, NULL); // a link stays one

		if (real != NULL) {
			free(file->path);
			file->path = real;
		}

		size_t room = strlen(file->path) + 32;

		file->beside = memory_zeroed(room, 1);
		(void)snprintf(file->beside, room, "%s.%ld.new", file->path, (long)getpid());
	}
	if (file->beside != NULL)
		note_unfinished(file->beside);
	file->stream = file->beside != NULL ? open_beside(file->beside, is_there ? &there : NULL)
	               : is_own             ? fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), "w")
	                                    : open_in_place(file->path);
	if (file->stream != NULL)
		return file;
	(void)fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", path, strerror(errno));
	free_file(file);
	return NULL;
}

FILE *
output_stream(struct output_file *file)
{
	return file->stream;
}

void
output_drop(struct output_file *file)
{
	(void)fclose(file->stream);
	if (file->beside != NULL)
		(void)unlink(file->beside);
	free_file(file);
}

bool
output_close(struct output_file *file, struct fail *fail)
{
	bool is_written = flush(file->stream, file->path, fail);

	if (fclose(file->stream) != 0 && is_written)
		is_written = fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", file->path, strerror(errno));
	if (file->beside != NULL && is_written && rename(file->beside, file->path) != 0)
		is_written = fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", file->path, strerror(errno));
	if (file->beside != NULL && !is_written)
		(void)unlink(file->beside);
	free_file(file);
	return is_written;
}
