/*
 * two_runtimes.c - two plugins, each over a CUDA runtime of its own, as two frameworks bring them. The first is closed
 * and opened once more. Prints how many calls each runtime has seen.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void
run(const char *file)
{
	static char *words[] = { "two_runtimes", "leak", NULL };
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	int (*plugin_run)(int, char **) = library == NULL ? NULL : (int (*)(int, char **))dlsym(library, "plugin_run");

	if (plugin_run == NULL || plugin_run(2, words) != 0)
		exit(2);
	dlclose(library);
}

static int
calls_of(void *runtime)
{
	int (*calls)(void) = (int (*)(void))dlsym(runtime, "double_runtime_calls");

	return calls == NULL ? -1 : calls();
}

int
main(int argc, char **argv)
{
	void *runtime12 = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
	void *runtime13 = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);

	if (argc != 3 || runtime12 == NULL || runtime13 == NULL)
		return 2;
	run(argv[1]);
	run(argv[2]);
	run(argv[1]);
	printf("%d %d\n", calls_of(runtime12), calls_of(runtime13));
	return 0;
}
