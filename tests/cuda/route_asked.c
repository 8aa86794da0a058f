/*
 * route_asked.c - a program that asks the driver's cuGetProcAddress, in the form that CUDA_VERSION chooses; with -DENTRY_POINT the
 * runtime's cudaGetDriverEntryPoint, as PyTorch does for physical memory.
 */
#include <stdlib.h>

#include "route_driver.h"

#ifdef ENTRY_POINT
int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *status);

static void *
ask(const char *name, int version, unsigned long long flags)
{
	void *function = NULL;
	int status;

	return version > 0 && cudaGetDriverEntryPoint(name, &function, flags, &status) == 0 ? function : NULL;
}
#else
static void *
ask(const char *name, int version, unsigned long long flags)
{
	void *function = NULL;
	int status;

	/* A newer toolkit asks for its own version of everything. */
	version = getenv("ASK_VERSION") != NULL ? atoi(getenv("ASK_VERSION")) : version;
	if (getenv("ASK_OLD_FORM") != NULL)
		return cuGetProcAddress(name, &function, version, flags) == 0 ? function : NULL;
	return cuGetProcAddress_v2(name, &function, version, flags, &status) == 0 ? function : NULL;
}
#endif

#define REACH(name, asked, version, flags) ask(asked, version, flags)

int
main(int argc, char **argv)
{
	const struct cuda_api api = ROUTE_API;

	route_retain = (void *)ask("cuDevicePrimaryCtxRetain", 7000, 0);
	route_set_current = (void *)ask("cuCtxSetCurrent", 4000, 0);
	return ((__typeof__(cuInit) *)ask("cuInit", 2000, 0))(0) != 0 ? 2 : workload_run(&api, argc, argv);
}
