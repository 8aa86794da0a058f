/*
 * processes.c - starts, replaces and ends processes in every way there is; the first argument says which.
 *
 * The first process holds 4 MiB at parents_block() before and frees nothing; every child that is to be seen holds 2 MiB at
 * childs_block(), so that its capture stays. Prints how the children ended.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

extern char **environ;

static void *volatile sink[64];

static __attribute__((noinline)) void
parents_block(void)
{
	sink[0] = malloc(4 * MIB);
}

static __attribute__((noinline)) void
childs_block(void)
{
	sink[1] = malloc(2 * MIB);
}

static void
await(pid_t child)
{
	int status = 0;

	if (child < 0 || waitpid(child, &status, 0) != child)
		printf("no child\n");
	else if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
	else
		printf("status %d\n", WEXITSTATUS(status));
}

/* --- ends ------------------------------------------------------------------------------------------------------ */

static void
leave_in_handler(int number)
{
	(void)number;
	_exit(7);
}

static void
by_handler(void)
{
	signal(SIGUSR1, leave_in_handler);
	raise(SIGUSR1);
}

static void
by_exit(void)
{
	exit(3);
}
static void
by_underscore(void)
{
	_exit(4);
}
static void
by_quick(void)
{
	quick_exit(5);
}
static void
by_kill(void)
{
	raise(SIGKILL);
}
static void
by_raw_exit(void)
{
	syscall(SYS_exit_group, 6);
}

static void
ends(void)
{
	static void (*const ways[])(void) = { by_exit, by_underscore, by_quick, by_handler, by_raw_exit, by_kill };

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		pid_t child = fork();

		if (child == 0) {
			childs_block();
			ways[i]();
		}
		await(child);
	}
}

/* --- forks ----------------------------------------------------------------------------------------------------- */

static void
nested(int depth)
{
	pid_t child = fork();

	if (child == 0) {
		childs_block();
		if (depth > 1)
			nested(depth - 1);
		exit(0);
	}
	await(child);
}

#define FORKERS 8
#define FORKS 5

static pthread_barrier_t all_are_there;

static void *
fork_often(void *unused)
{
	pthread_barrier_wait(&all_are_there);
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();
		int status;

		for (int j = 0; j < 200; j++) { // both of them
			void *volatile block = malloc(300);
			free(block);
		}
		if (child == 0) {
			childs_block();
			exit(0);
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			printf("child %d: %x\n", child, status);
	}
	return unused;
}

static void
threads(void)
{
	pthread_t forkers[FORKERS];

	pthread_barrier_init(&all_are_there, NULL, FORKERS);
	for (int i = 0; i < FORKERS; i++)
		pthread_create(&forkers[i], NULL, fork_often, NULL);
	for (int i = 0; i < FORKERS; i++)
		pthread_join(forkers[i], NULL);
}

static void
raw(void)
{
	pid_t child = (pid_t)syscall(SYS_fork);

	if (child == 0) {
		childs_block();
		_exit(0);
	}
	await(child);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		childs_block();
		_exit(0);
	}
	await(child);
	child = (pid_t)syscall(SYS_fork);
	if (child == 0)
		syscall(SYS_exit_group, 0); // no event at all
	await(child);
}

/* What it inherited is no longer its business; what it makes is, also at the same addresses. */
static void
frees(void)
{
	pid_t child;

	for (size_t i = 2; i < ARRAY_LEN(sink); i++)
		sink[i] = malloc(1000 * i);
	child = fork();
	if (child == 0) {
		for (size_t i = 2; i < ARRAY_LEN(sink); i++)
			free(sink[i]);
		free(sink[0]);
		for (size_t i = 2; i < ARRAY_LEN(sink); i++)
			sink[i] = malloc(1000 * i);
		childs_block();
		exit(0);
	}
	await(child);
	for (size_t i = 2; i < ARRAY_LEN(sink); i++)
		free(sink[i]);
}

static int
in_parents_memory(void *unused)
{
	childs_block();
	_exit(unused != NULL);
}

static void *
vfork_here(void *status)
{
	pid_t child = vfork();

	if (child == 0) {
		void *volatile block = malloc(3 * MIB); // in its parent's memory

		free(block);
		_exit((int)(intptr_t)status);
	}
	await(child);
	return NULL;
}

static void
shared_memory(void)
{
	void *stack = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	vfork_here((void *)2);
	pthread_create(&thread, NULL, vfork_here, (void *)3);
	pthread_join(thread, NULL);
	await(clone(in_parents_memory, (char *)stack + MIB, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}

static void
daemon_process(void)
{
	int ends_of_pipe[2];
	char byte;
	pid_t child;

	if (pipe(ends_of_pipe) != 0)
		return;
	sink[2] = memset(malloc(16 * MIB), 1, 16 * MIB);
	child = fork();
	if (child == 0) {
		setsid();
		if (fork() != 0)
			_exit(0);
		close_range(0, (unsigned)ends_of_pipe[1] - 1, 0);
		if (chdir("/") != 0)
			_exit(1);
		while (getppid() == child) // it is adopted
			sched_yield();
		memset(sink[2], 2, 16 * MIB);
		childs_block();
		_exit(0);
	}
	close(ends_of_pipe[1]);
	await(child);
	printf("daemon is gone: %zd\n", read(ends_of_pipe[0], &byte, 1));
}

#define CHILDREN 200

static void
many(void)
{
	pid_t child[CHILDREN];
	int failed = 0;

	for (int i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			childs_block();
			exit(0);
		}
	}
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		failed += waitpid(child[i], &status, 0) != child[i] || status != 0;
	}
	printf("%d failed\n", failed);
}

static pid_t
fork_as(pid_t wanted)
{
	FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
	pid_t child;

	if (last == NULL || fprintf(last, "%d", wanted - 1) < 0 || fclose(last) != 0)
		return -1;
	child = fork();
	if (child == 0 && getpid() != wanted) // another process was faster
		_exit(0);
	if (child == 0) {
		childs_block();
		exit(0);
	}
	return child;
}

static void
same_pid(void)
{
	pid_t first = fork(), again = -1;

	if (first == 0) {
		childs_block();
		exit(0);
	}
	await(first);
	for (int tries = 0; again != first && tries < 1000; tries++) {
		again = fork_as(first);
		if (again > 0 && again != first)
			waitpid(again, NULL, 0);
	}
	await(again);
	printf("%s\n", again == first ? "again" : "another pid");
}

/* The first process ends inside of libc. */
static void
becomes_daemon(void)
{
	if (daemon(1, 1) != 0)
		printf("no daemon\n");
	childs_block();
}

/* --- images ---------------------------------------------------------------------------------------------------- */

static char *self;

static void
become(const char *how)
{
	char *const argv[] = { self, (char *)"leaf", NULL };
	char *const nothing[] = { NULL };

	if (strcmp(how, "execv") == 0)
		execv(self, argv);
	else if (strcmp(how, "bare") == 0) // nothing of ours in the environment
		execve(self, argv, nothing);
	else if (strcmp(how, "execveat") == 0)
		execveat(AT_FDCWD, self, argv, environ, 0);
	else if (strcmp(how, "execveat-bare") == 0)
		execveat(AT_FDCWD, self, argv, nothing, 0);
	else if (strcmp(how, "raw") == 0)
		syscall(SYS_execve, self, argv, environ);
	else if (strcmp(how, "fails") == 0)
		execv("/nonexistent/program", argv);
}

static void
images(const char *how)
{
	pid_t child = fork();

	if (child == 0) {
		childs_block();
		become(how);
		_exit(9);
	}
	await(child);
}

/* A script without an interpreter's name may be executed, and exec fails: small when it tries, and large afterwards. */
static void
fails_small(const char *script)
{
	char *const argv[] = { (char *)"script", NULL };
	pid_t child = fork();

	if (child == 0) {
		sink[2] = malloc(5000);
		execv(script, argv);
		childs_block();
		exit(0);
	}
	await(child);
}

static char *
stack_of(size_t bytes)
{
	char *guarded = mmap(NULL, bytes + MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(guarded, MIB, PROT_NONE);
	return guarded + MIB + bytes;
}

static int
fail_to_become(void *unused)
{
	execv("/nonexistent/program", (char *[]){ (char *)"program", NULL });
	return unused != NULL;
}

/* As libraries do that start programs on a small stack, with their own clone(). The first one binds the functions, which takes more. */
static void
borrows(void)
{
	await(clone(fail_to_become, stack_of(65536), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	await(clone(fail_to_become, stack_of(4096), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}

static void
spawns(void)
{
	char *const argv[] = { self, (char *)"leaf", NULL };
	char *const nothing[] = { NULL };
	char command[4200];
	pid_t child;
	FILE *pipe;

	await(posix_spawn(&child, self, NULL, NULL, argv, environ) == 0 ? child : -1);
	await(posix_spawn(&child, self, NULL, NULL, argv, nothing) == 0 ? child : -1);
	printf("spawn of nothing: %d\n", posix_spawn(&child, "/nonexistent/program", NULL, NULL, argv, environ));
	child = vfork();
	if (child == 0) {
		execv(self, argv);
		_exit(1);
	}
	await(child);
	snprintf(command, sizeof(command), "'%s' leaf", self);
	printf("system %d\n", system(command));
	pipe = popen(command, "r");
	printf("popen %d\n", pclose(pipe));
}

static void
leaf(void)
{
	childs_block();
	exit(0);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	self = argv[0];
	setvbuf(stdout, NULL, _IONBF, 0);
	if (strcmp(what, "leaf") == 0)
		leaf();
	parents_block();
	if (strcmp(what, "ends") == 0)
		ends();
	else if (strcmp(what, "nested") == 0)
		nested(3);
	else if (strcmp(what, "threads") == 0)
		threads();
	else if (strcmp(what, "raw") == 0)
		raw();
	else if (strcmp(what, "frees") == 0)
		frees();
	else if (strcmp(what, "shared-memory") == 0)
		shared_memory();
	else if (strcmp(what, "daemon") == 0)
		daemon_process();
	else if (strcmp(what, "many") == 0)
		many();
	else if (strcmp(what, "same-pid") == 0)
		same_pid();
	else if (strcmp(what, "spawns") == 0)
		spawns();
	else if (strcmp(what, "image") == 0 && argc > 2)
		images(argv[2]);
	else if (strcmp(what, "fails-small") == 0 && argc > 2)
		fails_small(argv[2]);
	else if (strcmp(what, "becomes-daemon") == 0)
		becomes_daemon();
	else if (strcmp(what, "borrows") == 0)
		borrows();
	else
		return 2;
	return 0;
}
