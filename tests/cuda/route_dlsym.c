/* route_dlsym.c - a program that opens the driver and looks every function up by its exported name. */
#include <dlfcn.h>

#include "route_driver.h"

#define REACH(name, asked, version, flags) dlsym(library, #name)

int
main(int argc, char **argv)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (library == NULL)
		return 2;
	const struct cuda_api api = ROUTE_API;
	route_retain = (void *)dlsym(library, "cuDevicePrimaryCtxRetain");
	route_set_current = (void *)dlsym(library, "cuCtxSetCurrent");
	return ((__typeof__(cuInit) *)dlsym(library, "cuInit"))(0) != 0 ? 2 : workload_run(&api, argc, argv);
}
