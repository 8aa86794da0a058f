/*
 * far_news.cc - calls of operator new on pages of code that lie far apart, as in a large library.
 *
 *   g++ -DAPART=BYTES -fno-toplevel-reorder -shared    far_0() to far_3(): each asks for a block and gives it back
 *   far_news LIBRARY...    a thread calls them, library after library, while 60 children are forked. Each child calls all of them: it
 *                          waits for nobody. Prints how many children ended
 */
#include <cstdio>
#include <cstdlib>
#include <new>

#ifdef APART

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
#define FAR(n)                                          \
	extern "C" __attribute__((noinline)) void far_##n() \
	{                                                   \
		void *volatile block = ::operator new(100);     \
		::operator delete(block);                       \
	}                                                   \
	__asm__(".text\n .skip " TEXT(APART) "\n");
FAR(0)
FAR(1)
FAR(2)
FAR(3)

#else

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
			char name[] = "far_0";

			name[4] = (char)('0' + site);
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
#endif
