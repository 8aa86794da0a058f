/* route_plugin.c - a program that knows nothing of CUDA, and opens a library that does (PLUGIN_FILE, PLUGIN_DEEPBIND). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char **argv)
{
	int binding = getenv("PLUGIN_DEEPBIND") != NULL ? RTLD_DEEPBIND : 0;
	void *library = dlopen(getenv("PLUGIN_FILE"), RTLD_NOW | RTLD_LOCAL | binding);
	int (*run)(int, char **);

	if (library == NULL || (run = (int (*)(int, char **))dlsym(library, "plugin_run")) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	return run(argc, argv);
}
