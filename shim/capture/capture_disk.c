/* capture_disk.c - see capture_disk.h. */
#include "capture/capture_disk.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/raw_sys.h"

#define NAMES_TRIED 100
#define FOLDER_MODE 0755 // others may look, and put nothing there whatever the umask is

static char file_path[4096];
static struct stat identity;

static void
close_keeping_errno(int fd)
{
	int error = errno;

	raw_close(fd);
	errno = error;
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

static bool
is_of_another(const struct stat *file)
{
	return file->st_uid != 0 && file->st_uid != (uid_t)raw_syscall(SYS_geteuid);
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
create_first_free(const char *folder, const char *name)
{
	for (unsigned attempt = 1; attempt < NAMES_TRIED; attempt++) {
		char suffix[16] = "";
		int fd;

		if (attempt > 1)
			diag_format(suffix, sizeof(suffix), "-%u", attempt);
		diag_format(file_path, sizeof(file_path), "%s/%s%s.kmem", folder, name, suffix);
		fd = raw_open(file_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
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
	int error = errno;

	raw_syscall(SYS_unlinkat, AT_FDCWD, file_path, 0);
	raw_close(fd);
	errno = error;
	return -1;
}

int
capture_disk_create(const char *folder, const char *name, size_t bytes)
{
	static char path[sizeof(file_path)]; // one thread; the stack may be small
	int fd;

	diag_format(path, sizeof(path), "%s", folder);
	return make_folders(path) && (fd = create_first_free(folder, name)) >= 0 ? prepare(fd, bytes) : -1;
}

int
capture_disk_create_again(size_t bytes)
{
	int fd = raw_open(file_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

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
	return capture_disk_is_there() && raw_syscall(SYS_unlinkat, AT_FDCWD, file_path, 0) == 0;
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
	return file_path;
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
