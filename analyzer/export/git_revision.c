/*
 * git_revision.c - which commit was checked out (see git_revision.h)?
 *
 * Read as git does: .git is a folder, or a file that names one ("gitdir: "); HEAD is a commit, or the name of a ref ("ref: "), which is
 * a file or a line of packed-refs in the folder that all work trees share (commondir).
 */
#include "export/git_revision.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"

#define LINE_BYTES 1024

/* Was the file written after the program started? Then it says nothing of the program's commit. */
static bool
is_since(const struct stat *status, uint64_t started_ns)
{
	return (uint64_t)status->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)status->st_mtim.tv_nsec > started_ns;
}

static FILE *
open_old(const char *folder, const char *name, uint64_t started_ns)
{
	char path[PATH_MAX];
	struct stat status;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return NULL;

	int fd = regular_file_open(path, O_RDONLY, &status);

	if (fd >= 0 && !is_since(&status, started_ns) &&
	    regular_file_is_public(fd)) // a forged capture can lead to any file
		return fdopen(fd, "r");
	regular_file_close(&fd);
	return NULL;
}

/* Its first line. */
static bool
read_line(const char *folder, const char *name, uint64_t started_ns, char line[LINE_BYTES])
{
	OWNED_STREAM FILE *stream = open_old(folder, name, started_ns);
	bool is_read = stream != NULL && fgets(line, LINE_BYTES, stream) != NULL;

	if (is_read)
		line[strcspn(line, "\r\n")] = '\0';
	return is_read;
}

static bool
take_commit(const char *text, char revision[GIT_REVISION_BYTES])
{
	size_t length = strspn(text, "0123456789abcdef");

	if ((length != 40 && length != 64) || (text[length] != '\0' && text[length] != ' '))
		return false;
	memcpy(revision, text, length);
	revision[length] = '\0';
	return true;
}

/* "COMMIT refs/heads/main" */
static bool
find_packed(const char *shared, const char *ref, uint64_t started_ns, char revision[GIT_REVISION_BYTES])
{
	OWNED_STREAM FILE *stream = open_old(shared, "packed-refs", started_ns);
	char line[LINE_BYTES];
	bool is_found = false;

	while (stream != NULL && !is_found && fgets(line, sizeof(line), stream) != NULL) {
		const char *space = strchr(line, ' ');

		line[strcspn(line, "\r\n")] = '\0';
		is_found = space != NULL && strcmp(space + 1, ref) == 0 && take_commit(line, revision);
	}
	return is_found;
}

/* text: as a file of git's names it, from `folder` on. */
static bool
join(const char *folder, const char *text, char path[PATH_MAX])
{
	int length = text[0] == '/' ? snprintf(path, PATH_MAX, "%s", text)
	                            : snprintf(path, PATH_MAX, "%s/%s", folder, text);

	return length > 0 && length < PATH_MAX;
}

static bool
read_repository(const char *work, uint64_t started_ns, char revision[GIT_REVISION_BYTES])
{
	char line[LINE_BYTES];
	char git[PATH_MAX];
	char shared[PATH_MAX];
	char ref[PATH_MAX];

	if (!join(work, read_line(work, ".git", UINT64_MAX, line) && strncmp(line, "gitdir: ", 8) == 0 ? line + 8 : ".git",
	          git))
		return false;
	if (!join(git, read_line(git, "commondir", UINT64_MAX, line) ? line : ".", shared))
		return false;
	if (!read_line(git, "HEAD", started_ns, line))
		return false;
	if (strncmp(line, "ref: ", 5) != 0)
		return take_commit(line, revision);
	if (strstr(line, "..") != NULL)
		return false;
	memcpy(ref, line + 5, strlen(line + 5) + 1);

	bool is_ref_there = join(shared, ref, git) &&
	                    access(git, F_OK) == 0; // one that is newer is no reason to look behind it

	return is_ref_there ? read_line(shared, ref, started_ns, line) && take_commit(line, revision)
	                    : find_packed(shared, ref, started_ns, revision);
}

const char *
git_revision_find(const char *folder, uint64_t started_ns, char revision[GIT_REVISION_BYTES])
{
	char work[PATH_MAX];
	char git[PATH_MAX];

	revision[0] = '\0';
	if (folder[0] != '/' || (size_t)snprintf(work, sizeof(work), "%s", folder) >= sizeof(work))
		return revision;
	for (;;) {
		if (join(work, ".git", git) && access(git, F_OK) == 0) {
			if (!read_repository(work, started_ns, revision))
				revision[0] = '\0';
			return revision;
		}
		char *slash = strrchr(work, '/');

		if (slash == NULL || slash == work)
			return revision;
		*slash = '\0';
	}
}
