/* library.c - the same as command.c, of the recording library. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* 2.32. Those that files and limits give. */
__attribute__((visibility("hidden"))) const char *
strerrorname_np(int error)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
#define NAME(error) { error, #error }
		NAME(EACCES), NAME(EBADF),  NAME(EDQUOT), NAME(EEXIST),  NAME(EFAULT),     NAME(EFBIG),        NAME(EINTR),
		NAME(EINVAL), NAME(EIO),    NAME(EISDIR), NAME(ELOOP),   NAME(EMFILE),     NAME(ENAMETOOLONG), NAME(ENFILE),
		NAME(ENODEV), NAME(ENOENT), NAME(ENOMEM), NAME(ENOSPC),  NAME(ENOSYS),     NAME(ENOTDIR),      NAME(EPERM),
		NAME(EROFS),  NAME(ESTALE), NAME(ENXIO),  NAME(ETXTBSY), NAME(EOPNOTSUPP),
#undef NAME
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].number == error)
			return names[i].name;
	}
	return "another error";
}
