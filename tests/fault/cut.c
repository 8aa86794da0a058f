/*
 * cut.c - a program whose capture somebody cuts while it records.
 *
 *   cut HOW HANDLER
 *
 * HOW: truncate, none. HANDLER, of the program itself for SIGBUS: default, ignore, plain, info,
 * reset, jump. Then four threads record on; then a SIGBUS of the program's own, which must do what HANDLER says.
 */
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

static _Atomic unsigned rounds;
static _Atomic int is_over;
static volatile sig_atomic_t seen;
static sigjmp_buf back;

static void
on_plain(int number)
{
	(void)number;
	seen = 1;
	_exit(40);
}

static void
on_info(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	_exit(info->si_code == BUS_ADRERR && info->si_addr != NULL ? 41 : 99);
}

static void
on_jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void
set_handler(const char *how)
{
	struct sigaction action = { .sa_flags = SA_RESTART };
	struct sigaction before;

	sigaddset(&action.sa_mask, SIGUSR1);
	if (strcmp(how, "ignore") == 0)
		signal(SIGBUS, SIG_IGN);
	else if (strcmp(how, "plain") == 0)
		signal(SIGBUS, on_plain);
	else if (strcmp(how, "info") == 0)
		action.sa_sigaction = on_info, action.sa_flags = SA_SIGINFO | SA_ONSTACK, sigaction(SIGBUS, &action, NULL);
	else if (strcmp(how, "reset") == 0)
		action.sa_handler = on_plain, action.sa_flags = (int)SA_RESETHAND, sigaction(SIGBUS, &action, NULL);
	else if (strcmp(how, "jump") == 0)
		action.sa_handler = on_jump, sigaction(SIGBUS, &action, NULL);
	sigaction(SIGBUS, NULL, &before);
	printf("%s: %d %x %d\n", how,
	       before.sa_handler == SIG_DFL     ? 0
	       : before.sa_handler == SIG_IGN   ? 1
	       : before.sa_handler == on_plain  ? 2
	       : before.sa_sigaction == on_info ? 3
	       : before.sa_handler == on_jump   ? 4
	                                        : 5,
	       (unsigned)before.sa_flags, sigismember(&before.sa_mask, SIGUSR1));
}

/* Allocates from ever other call sites: new records, not only counters. */
static void *
dig(unsigned depth, void **kept)
{
	void *volatile block = malloc(depth + 1);

	free(kept[depth % 64]);
	kept[depth % 64] = block;
	if (depth < 2)
		return block;
	return depth % 3 == 0 ? dig(depth / 3, kept) : depth % 2 == 0 ? dig(depth / 2, kept) : dig(depth - 1, kept);
}

static void *
work(void *unused)
{
	(void)unused;
	for (unsigned round = 0; !is_over; round++) {
		void *kept[64] = { NULL };

		dig(round % 100000, kept);
		for (unsigned i = 0; i < 64; i++)
			free(kept[i]);
		rounds++;
	}
	return NULL;
}

static void
let_work(unsigned more)
{
	unsigned until = rounds + more;

	while (rounds < until)
		sched_yield();
}

static void
cut(const char *how)
{
	char pattern[4096];
	glob_t found;

	if (strcmp(how, "none") == 0 || getenv("KMEMSHIM_OUT") == NULL)
		return;
	snprintf(pattern, sizeof(pattern), "%s/cut.*.kmem", getenv("KMEMSHIM_OUT"));
	if (glob(pattern, 0, NULL, &found) != 0 || truncate(found.gl_pathv[0], 0) != 0)
		abort();
	globfree(&found);
}

/* A mapping behind the end of its file. */
static char *
map_nothing(void)
{
	FILE *file = tmpfile();
	char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);

	return mapped;
}

int
main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	const char *handler = argv[argc - 1];
	char *nothing = map_nothing();
	int status;

	set_handler(handler);
	fflush(stdout);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	let_work(2000);
	cut(argv[1]);
	let_work(2000);
	if (fork() == 0) {
		void *volatile block = malloc(2 << 20);

		free(block);
		exit(7);
	}
	wait(&status);
	is_over = 1;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("child %d\n", WEXITSTATUS(status));
	fflush(stdout);
	if (strcmp(handler, "jump") == 0 && sigsetjmp(back, 1) != 0) {
		printf("came back\n");
		return 42;
	}
	if (strcmp(handler, "sent") == 0)
		kill(getpid(), SIGBUS);
	nothing[0] = 1;
	return 43;
}
