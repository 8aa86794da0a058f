/*
 * command.c - what the command of the wheel asks of libc and an older glibc than that of this machine does not have
 *
 * Linked into the wheel's command alone: the linker takes these before it looks into libc. Each says since when glibc has it. They are
 * hidden: the loader, too, would take them for libc's.
 */
#include <fcntl.h>
#include <libiberty/libiberty.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int main_function(int, char **, char **);

/* What all have. */
double older_log(double value);
double older_hypot(double one, double other);
int older_start(main_function *main, int argc, char **argv, main_function *init, void (*fini)(void),
                void (*loader_fini)(void), void *stack_end);
__asm__(".symver older_log, log@GLIBC_2.2.5");
__asm__(".symver older_hypot, hypot@GLIBC_2.2.5");
__asm__(".symver older_start, __libc_start_main@GLIBC_2.2.5");

#pragma GCC visibility push(hidden)

/* 2.33: functions. The kernel's structure is libc's on x86-64. */
int
stat(const char *restrict path, struct stat *restrict status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0L);
}

int
lstat(const char *restrict path, struct stat *restrict status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, (long)AT_SYMLINK_NOFOLLOW);
}

int
fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_fstat, (long)fd, status);
}

/* 2.32 */
const char *
strerrorname_np(int error)
{
	return strerrno(error);
}

const char *
sigabbrev_np(int signal)
{
	const char *name = strsigno(signal);

	return name != NULL && strncmp(name, "SIG", 3) == 0 ? name + 3 : NULL;
}

/* 2.29 and 2.35: no errno for what is out of range, which nobody here looks at. */
double
log(double value)
{
	return older_log(value);
}

double
hypot(double one, double other)
{
	return older_hypot(one, other);
}

/*
 * 2.34: from then on it calls the program's constructors itself, and the code that calls it (crt1.o) gives it none. The older function
 * calls what it is given.
 */
int __wrap___libc_start_main(main_function *main, int argc, char **argv, main_function *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end);

extern main_function *__init_array_start[], *__init_array_end[];
extern void _init(void);

static int
construct(int argc, char **argv, char **environment)
{
	_init(); // what comes before it (DT_PREINIT_ARRAY) the loader has called
	for (main_function **function = __init_array_start; function != __init_array_end; function++)
		(void)(*function)(argc, argv, environment);
	return 0;
}

int
__wrap___libc_start_main(main_function *main, int argc, char **argv, main_function *init, void (*fini)(void),
                         void (*loader_fini)(void), void *stack_end)
{
	return older_start(main, argc, argv, init != NULL ? init : construct, fini, loader_fini, stack_end);
}
