/* route_plugin.c - a program that knows nothing of CUDA, and opens a library that does (PLUGIN_FILE). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char **argv)
{
	void *library = dlopen(getenv("PLUGIN_FILE"), RTLD_NOW | RTLD_LOCAL);
	int (*run)(int, char **);

	if (library == NULL || (run = (int (*)(int, char **))dlsym(library, "plugin_run")) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	return run(argc, argv);
}
