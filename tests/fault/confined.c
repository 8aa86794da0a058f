/*
 * confined.c - a program that confines itself and goes on allocating.
 *
 *   confined HOW
 *
 * HOW: prctl or seccomp (the two ways to install a filter, which kills for every call that an allocator does not make), raw (the same,
 * all by syscall()), rootly (seccomp without no_new_privs), strict, raw-strict or seccomp-strict (seccomp's first mode: read, write and
 * exit alone), nnp (no new privileges and no filter), no-clock (a look at the processor's clock is a signal), none; setuid or setresuid (another
 * user from there on), a path (another root, where exec of /no-program fails).
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(SYS_read),
	ALLOW(SYS_write),
	ALLOW(SYS_exit),
	ALLOW(SYS_exit_group),
	ALLOW(SYS_brk),
	ALLOW(SYS_mmap),
	ALLOW(SYS_munmap),
	ALLOW(SYS_mremap),
	ALLOW(SYS_mprotect),
	ALLOW(SYS_madvise),
	ALLOW(SYS_futex),
	ALLOW(SYS_rt_sigprocmask),
	ALLOW(SYS_vfork),
	ALLOW(SYS_clone),
	ALLOW(SYS_wait4),
	ALLOW(SYS_set_robust_list),
	ALLOW(SYS_rseq),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void *fan_out(unsigned depth, unsigned path);

static __attribute__((noinline, noipa)) void *
fan_right(unsigned depth, unsigned path)
{
	void *volatile block = fan_out(depth, path);

	return block;
}

/* Each path is a stack of its own. */
static __attribute__((noinline, noipa)) void *
fan_out(unsigned depth, unsigned path)
{
	void *volatile block = depth == 0      ? malloc(64)
	                       : path % 2 != 0 ? fan_right(depth - 1, path / 2)
	                                       : fan_out(depth - 1, path / 2);

	return block;
}

static int
confine(const char *how)
{
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (strcmp(how, "none") == 0)
		return 0;
	if (how[0] == '/')
		return chroot(how) != 0 || execl("/no-program", "no-program", NULL) == 0; // never a program that can run
	if (strcmp(how, "setuid") == 0)
		return setuid(65534);
	if (strcmp(how, "setresuid") == 0)
		return setresuid(65534, 65534, 65534);
	if (strcmp(how, "strict") == 0)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (strcmp(how, "raw-strict") == 0)
		return (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0L, 0L, 0L);
	if (strcmp(how, "seccomp-strict") == 0)
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0L, NULL);
	if (strcmp(how, "no-clock") == 0)
		return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	if (strcmp(how, "raw") == 0 && syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0)
		return 1;
	if (strcmp(how, "raw") == 0 || strcmp(how, "rootly") == 0)
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &program);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || strcmp(how, "nnp") == 0)
		return 0;
	return strcmp(how, "prctl") == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
	                                 : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int
main(int argc, char **argv)
{
	void *volatile kept;
	void *volatile small = malloc(1000);
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (unsigned i = 0; i < 1000; i++)
		free(malloc(i % 500 + 1)); // pages and look-ups that come with the first calls
	printf("%d\n", argc);
	fflush(stdout);
	if (confine(argv[1]) != 0)
		return 77;
	for (unsigned i = 0; i < 100000; i++) { // from what there is: past every look at the clock
		kept = malloc(i % 500 + 1);
		free(kept);
	}
	if (strstr(argv[1], "strict") != NULL)
		syscall(SYS_exit, small != NULL ? 9 : 1);
	if (vfork() == 0)
		_exit(3); // not the end of this program
	kept = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, zeros, 0);
	for (unsigned i = 0; i < 40; i++)
		kept = malloc((size_t)1 << 28); // never touched; past every step between two heartbeats
	for (unsigned path = 0; path < 1 << 15; path++)
		kept = fan_out(15, path); // new sites
	free(small);
	pid_t child = fork();
	if (child == 0) {
		kept = malloc(3000);
		_exit(3);
	}
	int status = 0;
	waitpid(child, &status, 0);
	_exit(kept != NULL ? 8 + WEXITSTATUS(status) : 1);
}
