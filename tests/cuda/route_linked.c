/* route_linked.c - a program that links to libcuda.so.1. */
#include "route_driver.h"

#define REACH(name, asked, version, flags) name

int
main(int argc, char **argv)
{
	const struct cuda_api api = ROUTE_API;

	route_retain = cuDevicePrimaryCtxRetain;
	route_set_current = cuCtxSetCurrent;
	return cuInit(0) != 0 ? 2 : workload_run(&api, argc, argv);
}
