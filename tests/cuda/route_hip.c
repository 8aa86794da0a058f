/*
 * route_hip.c - every kind of HIP memory, some given back; prints what the double holds of each kind. HIPDOUBLE_KILL=1: dies of SIGKILL
 * then. As a program, and with -DPLUGIN as a library.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../shim/hip_abi.h"

int hipSetDevice(int device);
unsigned long long hip_double_live(int kind);
void hip_workload(void);

static char own[100000];

static void
check(int result, int wanted)
{
	if (result != wanted)
		abort();
}

/* Once on each device. */
static void
work(int device)
{
	const struct cuda_channels channels = { .bits = { 32 } };
	void *kept, *other;
	size_t pitch_bytes;

	check(hipSetDevice(device), 0);
	for (size_t i = 1; i <= 50; i++) {
		check(hipMalloc(&kept, i * 1000 + (size_t)device), 0);
		check(hipMalloc(&other, 777), 0);
		check(hipFree(other), 0);
	}
	check(hipExtMallocWithFlags(&kept, 4321, 0), 0);
	check(hipMallocPitch(&kept, &pitch_bytes, 1000, 7), 0);
	check(hipMallocArray(&kept, &channels, 100, 30, 0), 0);
	check(hipMallocArray(&other, &channels, 100, 30, 0), 0);
	check(hipFreeArray(other), 0);
	check(hipMallocManaged(&kept, 5000, 1), 0);
	check(hipMallocAsync(&kept, 6000, NULL), 0);
	check(hipMallocAsync(&other, 6000, NULL), 0);
	check(hipFreeAsync(other, NULL), 0);
	check(hipHostMalloc(&kept, 7000, 0), 0);
	check(hipFree(kept), 1); // not its kind of memory: it stays
	check(hipMallocHost(&other, 8000), 0);
	check(hipHostFree(other), 0);
	check(hipMalloc(&other, 0), 0);
	check(hipFree(NULL), 0);
	check(hipMalloc(NULL, 10), 1);
}

void
hip_workload(void)
{
	void *addr;

	for (int device = 0; device < 2; device++)
		work(device);
	check(hipHostRegister(own, sizeof(own), 0), 0);
	if (getenv("HIPDOUBLE_RESET") != NULL)
		check(hipDeviceReset(), 0);
	for (int kind = 0; kind < 5; kind++)
		printf("%llu%s", hip_double_live(kind), kind == 4 ? "\n" : " ");
	(void)fflush(stdout);
	if (getenv("HIPDOUBLE_KILL") != NULL)
		(void)kill(getpid(), SIGKILL);
	if (getenv("HIPDOUBLE_CAPACITY") == NULL)
		return;
	while (hipMalloc(&addr, 1u << 20) == 0)
		continue;
	exit(1);
}

#ifndef PLUGIN
int
main(void)
{
	hip_workload();
	return 0;
}
#endif
