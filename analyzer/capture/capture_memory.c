/* capture_memory.c - see capture_memory.h. */
#include "capture/capture_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/owner.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/text_start.h"
#include "capture/process_alive.h"
#include "kmem_words.h"

bool
capture_memory_place(const char *path, char place[PATH_MAX])
{
	ssize_t length = readlink(path, place, PATH_MAX - 1);

	place[length > 0 ? length : 0] = '\0';
	if (length == PATH_MAX - 1 || !text_starts(place, CAPTURE_MEMORY_FOLDERS))
		return false;

	const char *slash = place + sizeof(CAPTURE_MEMORY_FOLDERS) - 1 +
	                    strspn(place + sizeof(CAPTURE_MEMORY_FOLDERS) - 1, "0123456789abcdef.");
	return slash[0] == '/' && slash[1] != '\0' && strchr(slash + 1, '/') == NULL;
}

static bool
copy_all(int file, int copy)
{
	struct stat status;
	off_t done = 0;

	if (fstat(file, &status) != 0)
		return false;
	while (done < status.st_size) {
		ssize_t got = sendfile(copy, file, &done, (size_t)(status.st_size - done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
	}
	/* Of a program that another user runs: as if it had written the file there. */
	return status.st_uid == geteuid() || fchown(copy, status.st_uid, status.st_gid) == 0;
}

bool
capture_memory_copy(const char *path, int file)
{
	struct fail fail;
	struct output_file *copy = output_open(path, OUTPUT_OVER, &fail);

	if (copy == NULL)
		return false;
	if (copy_all(file, fileno(output_stream(copy))))
		return output_close(copy, &fail); // where a server has it, this is when it says no
	output_drop(copy);
	return false;
}

bool
capture_memory_identity(int file, struct kmem_identity *identity)
{
	struct kmem_header header;

	if (pread(file, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.magic, KMEM_MAGIC, sizeof(header.magic)) != 0 || !kmem_version_is_read(header.version) ||
	    atomic_load_explicit(&header.identity_checksum, memory_order_relaxed) == 0)
		return false;
	*identity = header.identity;
	return true;
}

/* Where others can write, a name may lead elsewhere by the time that it is used: what is another user's stays. */
static bool
is_own(const char *path, mode_t kind)
{
	struct stat status;

	return lstat(path, &status) == 0 && (status.st_mode & S_IFMT) == kind && owner_is_trusted(status.st_uid);
}

/* Has its process ended, of what we can see? Opens the file then; -1 = no, or it cannot be known. */
static int
open_ended(const char *place)
{
	struct kmem_identity identity;
	int file = regular_file_open(place, O_RDONLY | O_NOFOLLOW, NULL);

	if (file < 0 ||
	    (capture_memory_identity(file, &identity) && !process_is_hidden(&identity) && !process_is_alive(&identity)))
		return file;
	(void)close(file);
	return -1;
}

void
capture_memory_leave(const char *folder)
{
	EACH_NAME (name, folder) {
		if (name[0] != '.') // the owner's name is hidden, too
			return;
	}
	(void)unlink(TEXT(PATH_MAX + 16, "%s/" CAPTURE_MEMORY_OWNER, folder));
	(void)rmdir(folder);
}

void
capture_memory_settle(const char *path)
{
	char place[PATH_MAX];
	char *name;

	if (!capture_memory_place(path, place) || (name = strrchr(place, '/')) == NULL)
		return;
	*name = '\0';
	if (!is_own(path, S_IFLNK) || !is_own(place, S_IFDIR) ||
	    !process_is_dead(strrchr(place, '.') + 1)) // else its launcher will do it
		return;
	*name = '/';

	OWNED_FILE int file = open_ended(place);

	if (file < 0)
		return;
	if (capture_memory_copy(path, file)) {
		(void)unlink(place);
		*name = '\0';
		capture_memory_leave(place);
	}
}

static void
sweep_folder(const char *folder)
{
	char owner[PATH_MAX];
	struct stat status;
	ssize_t length = readlink(TEXT(PATH_MAX, "%s/" CAPTURE_MEMORY_OWNER, folder), owner, sizeof(owner) - 1);

	EACH_NAME (name, folder) {
		if (length <= 0 || name[0] == '.')
			continue;
		owner[length] = '\0';
		const char *path = TEXT(PATH_MAX + NAME_MAX + 1, "%s/%s", owner, name);

		if (lstat(path, &status) == 0) {
			capture_memory_settle(path);
			continue;
		}
		path = TEXT(PATH_MAX + NAME_MAX + 1, "%s/%s", folder, name);
		OWNED_FILE int file = open_ended(path);
		if (file >= 0)
			(void)unlink(path);
	}
	capture_memory_leave(folder);
}

void
capture_memory_sweep(void)
{
	const char *begin = strrchr(CAPTURE_MEMORY_FOLDERS, '/') + 1;

	EACH_NAME (name, "/dev/shm") {
		const char *path = TEXT(PATH_MAX, "/dev/shm/%s", name);

		if (text_starts(name, begin) && is_own(path, S_IFDIR) && process_is_dead(strrchr(path, '.') + 1))
			sweep_folder(path);
	}
}
