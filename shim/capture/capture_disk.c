/* capture_disk.c - see capture_disk.h. */
#include "capture/capture_disk.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/diag.h"
#include "base/raw_sys.h"
#include "base/settings.h"

#define NAMES_TRIED 100
#define UNMAPPED 65534                         // as Linux, where nobody has changed it
#define MEMORY_LEFT_BYTES ((uint64_t)64 << 20) // for the program, which may need its shared memory
#define FOLDER_MODE 0755                       // others may look, and put nothing there whatever the umask is

static char file_path[4096]; // that is mapped
static char
	link_path[4096]; // in the folder, where the file lies in memory: leads to it; "" = the file is in the folder
static struct stat identity;

static void
close_keeping_errno(int fd)
{
	int error = errno;

	raw_close(fd);
	errno = error;
}

static bool
leaves_memory(int fd, size_t bytes)
{
	struct statfs place;

	if (raw_syscall(SYS_fstatfs, fd, &place) != 0)
		return false;
	errno = ENOSPC;
	return (uint64_t)place.f_bavail * (uint64_t)place.f_bsize >= bytes + MEMORY_LEFT_BYTES;
}

static bool
has_room(int fd, uint64_t offset, size_t bytes)
{
	static const char zeros[4096];
	struct rlimit limit;

	/* Growing past RLIMIT_FSIZE would send SIGXFSZ to the program. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < offset + bytes) {
		errno = EFBIG;
		return false;
	}
	if (link_path[0] != '\0' && !leaves_memory(fd, bytes))
		return false;
	if (raw_syscall(SYS_fallocate, fd, 0, offset, bytes) == 0)
		return true;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return false;
	for (size_t done = 0; done < bytes; done += sizeof(zeros)) {
		if (raw_syscall(SYS_pwrite64, fd, zeros, sizeof(zeros), offset + done) != (long)sizeof(zeros))
			return false;
	}
	return true;
}

bool
capture_disk_extend(int fd, uint64_t offset, size_t bytes)
{
	bool is_ours = has_room(fd, offset, bytes);
	int error = errno;

	if (!is_ours)
		raw_syscall(SYS_ftruncate, fd, offset); // a full disk may have given half of it
	errno = error;
	return is_ours;
}

/* Mostly it is there already, or only the last one is missing. */
static bool
make_folders(char *path)
{
	if (raw_syscall(SYS_mkdirat, AT_FDCWD, path, FOLDER_MODE) == 0 || errno == EEXIST)
		return true;
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash != NULL)
			*slash = '\0';
		long made = raw_syscall(SYS_mkdirat, AT_FDCWD, path, FOLDER_MODE);
		bool is_usable = made == 0 || errno == EEXIST;

		if (slash == NULL)
			return is_usable;
		*slash = '/';
	}
}

/* A user namespace that does not map all users shows the others as one: whose that is, nobody knows. */
static bool
is_of_another(const struct stat *file)
{
	char map[40] = ""; // "0 0 4294967295" with blanks: all are mapped
	int fd = file->st_uid == UNMAPPED ? raw_open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC, 0) : -1;

	if (fd >= 0) {
		(void)raw_read(fd, map, sizeof(map) - 1);
		raw_close(fd);
	}
	return (file->st_uid == UNMAPPED && strstr(map, " 4294967295") == NULL) ||
	       (file->st_uid != 0 && file->st_uid != (uid_t)raw_syscall(SYS_geteuid));
}

bool
capture_disk_is_anothers(const char *folder, uint32_t *owner)
{
	struct stat file;
	bool is_there = raw_syscall(SYS_newfstatat, AT_FDCWD, folder, &file, AT_SYMLINK_NOFOLLOW) == 0;

	if (is_there && S_ISLNK(file.st_mode) && !is_of_another(&file)) // then it is up to where it leads
		is_there = raw_stat(folder, &file) == 0;
	*owner = is_there ? file.st_uid : 0;
	return is_there && is_of_another(&file);
}

static int
create_file(void)
{
	return raw_open(file_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* The new file, of which nobody knows yet. */
static void
drop(int fd)
{
	int error = errno;

	raw_syscall(SYS_unlinkat, AT_FDCWD, file_path, 0);
	raw_close(fd);
	errno = error;
}

/* And in the folder what leads to it, if it lies elsewhere. */
static int
create_named(void)
{
	int fd = create_file();

	if (fd < 0 || link_path[0] == '\0' || raw_syscall(SYS_symlinkat, file_path, AT_FDCWD, link_path) == 0)
		return fd;
	drop(fd);
	return -1;
}

/* place: where the file itself is to lie. */
static int
create_first_free(const char *place, const char *folder, const char *name)
{
	for (unsigned attempt = 1; attempt < NAMES_TRIED; attempt++) {
		char suffix[16] = "";

		if (attempt > 1)
			diag_format(suffix, sizeof(suffix), "-%u", attempt);
		diag_format(file_path, sizeof(file_path), "%s/%s%s.kmem", place, name, suffix);
		link_path[0] = '\0';
		if (place != folder)
			diag_format(link_path, sizeof(link_path), "%s/%s%s.kmem", folder, name, suffix);

		int fd = create_named();

		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

/* The new file is ours alone, and as long as it is to be; or it is gone again. */
static int
prepare(int fd, size_t bytes)
{
	raw_syscall(SYS_fchmod, fd, 0600); // a umask may have taken our own right to open it again
	if (raw_fstat(fd, &identity) == 0 && capture_disk_extend(fd, 0, bytes))
		return fd;
	if (link_path[0] != '\0')
		raw_syscall(SYS_unlinkat, AT_FDCWD, link_path, 0);
	drop(fd);
	return -1;
}

static int
create_in(const char *place, const char *folder, const char *name, size_t bytes)
{
	int fd = create_first_free(place, folder, name);

	return fd >= 0 ? prepare(fd, bytes) : -1;
}

int
capture_disk_create(const char *folder, const char *name, size_t bytes)
{
	static char path[sizeof(file_path)]; // one thread; the stack may be small
	int fd = -1;

	diag_format(path, sizeof(path), "%s", folder);
	if (!make_folders(path))
		return -1;
	if (settings.memory != NULL) // no room there, or no links in the folder: on the disk, then
		fd = create_in(settings.memory, folder, name, bytes);
	return fd >= 0 ? fd : create_in(folder, folder, name, bytes);
}

int
capture_disk_create_again(size_t bytes)
{
	int fd = create_named();

	return fd >= 0 ? prepare(fd, bytes) : -1;
}

int
capture_disk_open(uint64_t bytes)
{
	struct stat now;
	int fd = raw_open(file_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);

	if (fd < 0)
		return -1;
	if (raw_fstat(fd, &now) == 0) {
		if (now.st_dev == identity.st_dev && now.st_ino == identity.st_ino && (uint64_t)now.st_size >= bytes)
			return fd;
		errno = ESTALE;
	}
	close_keeping_errno(fd);
	return -1;
}

bool
capture_disk_is_there(void)
{
	int fd = capture_disk_open(0);

	if (fd >= 0)
		raw_close(fd);
	return fd >= 0;
}

bool
capture_disk_remove(void)
{
	if (!capture_disk_is_there())
		return false;
	if (link_path[0] != '\0') // first: a link that leads nowhere is a capture that was lost
		raw_syscall(SYS_unlinkat, AT_FDCWD, link_path, 0);
	return raw_syscall(SYS_unlinkat, AT_FDCWD, file_path, 0) == 0;
}

bool
capture_disk_remove_other(const char *folder, const char *name)
{
	static char path[sizeof(file_path)]; // one thread; the stack may be small

	diag_format(path, sizeof(path), "%s/%s.kmem", folder, name);

	bool is_gone = raw_syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0 || errno == ENOENT;

	if (is_gone && settings.memory != NULL) {
		diag_format(path, sizeof(path), "%s/%s.kmem", settings.memory, name);
		is_gone = raw_syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0 || errno == ENOENT;
	}
	return is_gone;
}

void
capture_disk_hand_over(uint32_t user)
{
	int fd = capture_disk_open(0);

	if (fd >= 0) {
		raw_syscall(SYS_fchown, fd, user, -1);
		raw_close(fd);
	}
}

const char *
capture_disk_path(void)
{
	return link_path[0] != '\0' ? link_path : file_path;
}

bool
capture_disk_is_final(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOENT || error == ESTALE ||
	       error == EROFS || error == EIO;
}

void
capture_disk_tell_of_folder(const char *folder)
{
	bool is_full = errno == ENOSPC || errno == EDQUOT;

	diag_warn("%s: cannot write a capture here (%s); nothing is recorded; set KMEMSHIM_OUT to a folder %s", folder,
	          strerrorname_np(errno), is_full ? "on a disk with room" : "that this user can write to");
}
