/*
 * loader_changes.c - a program that asks for a function of CUDA's that nobody has while a thread loads and unloads a plugin: is what it asks
 * about read only while it is there?
 *
 *   loader_changes here | confined     confined: by a sandbox that forbids to copy memory through the kernel (process_vm_readv)
 *
 * Compiled with -DEARLY it is a library that opens the first plugin in its constructor, before anybody else's: the program closes it.
 * LOADER_PLUGINS is the folder with first.so and second.so.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void *open_plugin(const char *name);
extern void *first_plugin;

#ifdef EARLY
void *first_plugin;

void *
open_plugin(const char *name)
{
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/%s", getenv("LOADER_PLUGINS"), name);
	return dlopen(path, RTLD_NOW);
}

static __attribute__((constructor)) void
open_first(void)
{
	first_plugin = open_plugin("first.so");
}
#else

#define ROUNDS 3000

static _Atomic int rounds;

static void *
load_and_unload(void *unused)
{
	for (; rounds < ROUNDS; rounds++)
		(void)dlclose(open_plugin("second.so"));
	return unused;
}

static int
confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	int found = 0;

	if (argc == 2 && strcmp(argv[1], "confined") == 0) {
		if (!confine())
			return 77;
		execl(argv[0], argv[0], "here", NULL); // a sandbox is around the whole process
	}
	if (first_plugin == NULL || dlclose(first_plugin) != 0)
		return 78;
	if (pthread_create(&thread, NULL, load_and_unload, NULL) != 0)
		return 79;
	while (rounds < ROUNDS)
		found += dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL;
	pthread_join(thread, NULL);
	printf("%d found\n", found);
	return 0;
}
#endif
