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
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/owner.h"
#include "base/regular_file.h"

#define NAME_BYTES 200 // of the file's own, in the name beside it

struct output_file {
	FILE *stream;
	char *path;
	int folder;                   // -1: written in place
	const char *name;             // in it
	char beside[NAME_BYTES + 32]; // in it, until it is whole
};

/*
 * What a signal that ends the command takes away: files that are not whole. Signal handlers read it, so a name is there before its file
 * and goes after it.
 */
#define UNFINISHED_MAX 8
static struct output_file *volatile unfinished[UNFINISHED_MAX];
static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void
remove_unfinished(int number)
{
	for (size_t i = 0; i < UNFINISHED_MAX; i++) {
		if (unfinished[i] != NULL)
			(void)unlinkat(unfinished[i]->folder, unfinished[i]->beside, 0);
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
note_unfinished(struct output_file *file)
{
	watch_signals();
	for (size_t i = 0; i < UNFINISHED_MAX; i++) {
		if (unfinished[i] == NULL) {
			unfinished[i] = file;
			return;
		}
	}
}

static void
forget_unfinished(const struct output_file *file)
{
	for (size_t i = 0; i < UNFINISHED_MAX; i++) {
		if (unfinished[i] == file)
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
	return error == 0 || is_abandoned(stream, error) ||
	       fail_set(fail, EXIT_USAGE, "%s: cannot write: %s: the output is incomplete", name, strerror(error));
}

bool
output_finish(struct fail *fail)
{
	return flush(stdout, "standard output", fail);
}

static void
free_file(struct output_file *file)
{
	if (file->folder >= 0) {
		(void)unlinkat(file->folder, file->beside, 0); // where it is whole there is none of this name
		(void)close(file->folder);
	}
	forget_unfinished(file);
	free(file->path);
	free(file);
}

/* A device, a pipe or a terminal. A FIFO that nobody reads is refused, not waited for, and so is what has become a file meanwhile. */
static FILE *
open_in_place(const char *path)
{
	int fd = owner_open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	struct stat status;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) != 0 || S_ISREG(status.st_mode)) {
		(void)close(fd);
		errno = EEXIST;
		return NULL;
	}
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fdopen(fd, "w");
}

/*
 * Who may read an older file of this name may read the new one, from the first byte on, where the older one is no other user's. A group that
 * we may not give it to may do nothing.
 */
static void
take_mode(int fd, const struct stat *there)
{
	mode_t mode = 0777;
	struct stat own;

	if (fstat(fd, &own) != 0 || !S_ISREG(own.st_mode) || own.st_nlink != 1 || own.st_uid != geteuid())
		return;
	if (fchown(fd, (uid_t)-1, there->st_gid) != 0)
		mode &= 0707;
	(void)fchmod(fd, there->st_mode & mode);
}

/* A file that was not there, of a name that nobody can know before. there: the older file; NULL = there is none. */
static FILE *
open_beside(struct output_file *file, mode_t mode, const struct stat *there)
{
	const char *slash = strrchr(file->path, '/');
	OWNED char *folder = slash != NULL ? memory_printed("%.*s/", (int)(slash - file->path), file->path)
	                                   : memory_text(".");
	uint64_t chance;
	int fd = -1;

	file->name = slash != NULL ? slash + 1 : file->path;
	file->folder = owner_open(folder, O_PATH | O_DIRECTORY, 0);
	if (file->folder < 0 || getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return NULL;
	(void)snprintf(file->beside, sizeof(file->beside), "%.*s.%016" PRIx64 ".new", NAME_BYTES, file->name, chance);
	note_unfinished(file);
	fd = openat(file->folder, file->beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	            there != NULL ? there->st_mode & 0700 : mode & 0777);
	if (fd < 0)
		return NULL;
	if (there != NULL)
		take_mode(fd, there);
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
	return !S_ISREG(there.st_mode) || is_forced ||
	       fail_set(fail, EXIT_USAGE, "%s: is there already: give --force to replace it", path);
}

struct output_file *
output_open(const char *path, mode_t mode, struct fail *fail)
{
	struct output_file *file = memory_zeroed(1, sizeof(*file));
	struct stat there;

	file->folder = -1;
	file->path = memory_text(strcmp(path, "-") == 0 ? "/dev/stdout" : path);
	OWNED_FILE int found = mode != OUTPUT_OVER ? owner_open(file->path, O_PATH | O_CLOEXEC, 0) : -1;
	bool is_there = found >= 0 && fstat(found, &there) == 0;
	bool is_own = is_there && is_standard_output(&there);

	if (!is_own && (!is_there || S_ISREG(there.st_mode))) {
		char real[PATH_MAX];

		if (is_there && regular_file_path(found, real)) { // a link of ours stays
			free(file->path);
			file->path = memory_text(real);
		}
		file->stream = open_beside(
			file, mode, is_there && S_ISREG(there.st_mode) && owner_is_trusted(there.st_uid) ? &there : NULL);
	} else {
		file->stream = is_own ? fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), "w") : open_in_place(file->path);
	}
	if (file->stream != NULL)
		return file;
	(void)fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", path, OWNER_WHY(errno));
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
	free_file(file);
}

bool
output_close(struct output_file *file, struct fail *fail)
{
	bool is_written = flush(file->stream, file->path, fail);

	if (fclose(file->stream) != 0 && is_written)
		is_written = fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", file->path, strerror(errno));
	if (file->folder >= 0 && is_written && renameat(file->folder, file->beside, file->folder, file->name) != 0)
		is_written = fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", file->path, strerror(errno));
	free_file(file);
	return is_written;
}
