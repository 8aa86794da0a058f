/*
 * far_news.cc - children of a program whose thread asks for C++ memory all the time: do they wait for it?
 *
 *   far_news LIBRARY...    of tests/bench/programs/pages.cc: a thread calls the functions of one after the other, while 60 children are
 *                          forked. Each child calls all of them: it waits for nobody. Prints how many children ended
 */
#include <cstdio>

#include <atomic>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 60
#define SITES 4

typedef void far_function();

static far_function *functions[SITES * 64];
static int count;
static std::atomic<int> started;
static std::atomic<bool> is_over;

static void *
call_all(void *)
{
	for (started = 1; !is_over; started++)
		functions[started % count]();
	return NULL;
}

int
main(int argc, char **argv)
{
	int ended = 0;
	pthread_t thread;

	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);

		for (int site = 0; site < SITES; site++) {
			char name[] = "pages_0";

			name[6] = (char)('0' + site);
			if (library == NULL || (functions[count++] = (far_function *)dlsym(library, name)) == NULL) {
				puts(dlerror());
				return 77;
			}
		}
	}
	pthread_create(&thread, NULL, call_all, NULL);
	for (int i = 0; i < CHILDREN; i++) {
		int before = started;
		int status;

		while (started == before) // it is in the middle of its work
			;

		pid_t child = fork();

		if (child == 0) {
			alarm(20); // one that waits for a thread it does not have
			for (int k = count - 1; k >= 0; k--)
				functions[k]();
			_exit(0);
		}
		ended += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
		if (!WIFEXITED(status))
			break;
	}
	is_over = true;
	pthread_join(thread, NULL);
	printf("%d of %d\n", ended, CHILDREN);
	return 0;
}
