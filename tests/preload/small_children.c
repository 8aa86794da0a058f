/*
 * small_children.c - a child that holds little for a while: what it recorded before it mattered is told all the same.
 *
 *   small_children HOW FOLDER    a child holds SMALL blocks, does what HOW says, and is killed; the first process waits
 *
 * Prints how many captures there were in FOLDER while the child was small.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL 100
#define BYTES 1000

static void *volatile kept[SMALL];
static void *volatile large;

static __attribute__((noinline)) void
keep_small(void)
{
	for (unsigned i = 0; i < SMALL; i++)
		kept[i] = malloc(BYTES);
	for (unsigned i = 0; i < SMALL / 2; i++) { // half of them go again
		free(kept[i]);
		kept[i] = NULL;
	}
}

static __attribute__((noinline)) void
keep_large(void)
{
	large = malloc(700 << 10);
}

static __attribute__((noinline)) void *
keep_in_thread(void *unused)
{
	(void)unused;
	large = malloc(3000);
	return NULL;
}

static __attribute__((noinline)) void
keep_too_much(void)
{
	large = malloc(SIZE_MAX / 4);
}

static void
count(const char *folder)
{
	DIR *open = opendir(folder);
	struct dirent *entry;
	unsigned captures = 0;

	while (open != NULL && (entry = readdir(open)) != NULL)
		captures += strstr(entry->d_name, ".kmem") != NULL;
	if (open != NULL)
		closedir(open);
	printf("%u captures\n", captures);
	fflush(stdout);
}

static void
go_on(const char *how)
{
	char *const nothing[] = { "nothing", NULL };
	pthread_t thread;

	if (strcmp(how, "grows") == 0) {
		keep_large();
	} else if (strcmp(how, "thread") == 0) {
		if (pthread_create(&thread, NULL, keep_in_thread, NULL) == 0)
			pthread_join(thread, NULL);
	} else if (strcmp(how, "refused") == 0) {
		keep_too_much();
	} else if (strcmp(how, "exec-fails") == 0) {
		execv("/dev/null", nothing);
		keep_large();
	} else if (strcmp(how, "forks") == 0) {
		if (fork() != 0)
			wait(NULL);
		else
			keep_large();
	}
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (fork() == 0) {
		keep_small();
		count(argv[2]);
		go_on(argv[1]);
		raise(SIGKILL);
	}
	wait(NULL);
	return 0;
}
