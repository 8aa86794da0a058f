/*
 * route_hip.c - every kind of HIP memory, some given back; prints what the double holds of each kind. HIPDOUBLE_KILL=1: dies of SIGKILL
 * then. As a program, with -DPLUGIN as a library, with -DLOOKED_UP as a program that opens the library and asks for each name.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../shim/gpu/hip_abi.h"

int hipSetDevice(int device);
unsigned long long hip_double_live(int kind);
void hip_workload(void);

#define KINDS 6
#ifdef LOOKED_UP
#define HIP(name) ((__typeof__(name) *)dlsym(dlopen("libamdhip64.so.6", RTLD_LAZY | RTLD_LOCAL), #name))
#else
#define HIP(name) name
#endif

static char own[100000], reserved[3][123456];

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

	check(HIP(hipSetDevice)(device), 0);
	for (size_t i = 1; i <= 50; i++) {
		check(HIP(hipMalloc)(&kept, i * 1000 + (size_t)device), 0);
		check(HIP(hipMalloc)(&other, 777), 0);
		check(HIP(hipFree)(other), 0);
	}
	check(HIP(hipExtMallocWithFlags)(&kept, 4321, 0), 0);
	check(HIP(hipMallocPitch)(&kept, &pitch_bytes, 1000, 7), 0);
	check(HIP(hipMallocArray)(&kept, &channels, 100, 30, 0), 0);
	check(HIP(hipMallocArray)(&other, &channels, 100, 30, 0), 0);
	check(HIP(hipFreeArray)(other), 0);
	check(HIP(hipMallocManaged)(&kept, 5000, 1), 0);
	check(HIP(hipMallocAsync)(&kept, 6000, NULL), 0);
	check(HIP(hipMallocAsync)(&other, 6000, NULL), 0);
	check(HIP(hipFreeAsync)(other, NULL), 0);
	check(HIP(hipHostMalloc)(&kept, 7000, 0), 0);
	check(HIP(hipFree)(kept), 1); // not its kind of memory: it stays
	check(HIP(hipMallocHost)(&other, 8000), 0);
	check(HIP(hipHostFree)(other), 0);
	check(HIP(hipMalloc)(&other, 0), 0);
	check(HIP(hipFree)(NULL), 0);
	check(HIP(hipMalloc)(NULL, 10), 1);
}

/* It lives as long as a handle or a mapping; that of others is none of ours. */
static void
physical(void)
{
	const struct cuda_memory_place second = { HIP_TYPE_PINNED, 0, CUDA_LOCATION_DEVICE, 1 };
	struct cuda_ipc_handle shared = { { 0 } };
	void *kept, *gone, *again, *of_others, *opened;

	check(HIP(hipSetDevice)(0), 0);
	check(HIP(hipMemCreate)(&kept, 70000, &second, 0), 0);
	check(HIP(hipMemCreate)(&gone, 80000, &second, 0), 0);
	check(HIP(hipMemMap)(reserved[0], 70000, 0, kept, 0), 0);
	check(HIP(hipMemRelease)(kept), 0);
	check(HIP(hipMemRetainAllocationHandle)(&again, reserved[0]), 0);
	check(HIP(hipMemRelease)(again), 0); // its mapping keeps it
	check(HIP(hipMemMap)(reserved[1], 80000, 0, gone, 0), 0);
	check(HIP(hipMemRelease)(gone), 0);
	check(HIP(hipMemUnmap)(reserved[1], 80000), 0);
	check(HIP(hipMemImportFromShareableHandle)(&of_others, reserved, 1), 0);
	check(HIP(hipMemMap)(reserved[2], sizeof(reserved[2]), 0, of_others, 0), 0);
	check(HIP(hipMemRelease)(of_others), 0);
	*(void **)shared.bytes = own + 100;
	for (int i = 0; i < 3; i++)
		check(HIP(hipIpcOpenMemHandle)(&opened, shared, 1), 0);
	for (int i = 0; i < 2; i++)
		check(HIP(hipIpcCloseMemHandle)(opened), 0);
	*(void **)shared.bytes = own + 200;
	check(HIP(hipIpcOpenMemHandle)(&opened, shared, 1), 0);
	check(HIP(hipIpcCloseMemHandle)(opened), 0);
	check(HIP(hipMallocAsync)(&kept, 9000, (void *)2), 0); // on a stream of the second device
}

void
hip_workload(void)
{
	void *addr;

	for (int device = 0; device < 2; device++)
		work(device);
	physical();
	check(HIP(hipSetDevice)(1), 0);
	check(HIP(hipHostRegister)(own, sizeof(own), 0), 0);
	if (getenv("HIPDOUBLE_RESET") != NULL)
		check(HIP(hipDeviceReset)(), 0);
	for (int kind = 0; kind < KINDS; kind++)
		printf("%llu%s", HIP(hip_double_live)(kind), kind == KINDS - 1 ? "\n" : " ");
	(void)fflush(stdout);
	if (getenv("HIPDOUBLE_KILL") != NULL)
		(void)kill(getpid(), SIGKILL);
	if (getenv("HIPDOUBLE_CAPACITY") == NULL)
		return;
	while (HIP(hipMalloc)(&addr, 1u << 20) == 0)
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
