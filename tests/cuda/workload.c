/*
 * workload.c - what the test programs do, whichever way they reach CUDA. The oracle is the driver double's
 * ledger, so nothing is counted here.
 */
#include "workload.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                    \
	do {                                                                                          \
		int must_result = (call);                                                             \
		if (must_result != 0) {                                                               \
			fprintf(stderr, "%s:%d: %s = %d\n", __FILE__, __LINE__, #call, must_result);  \
			exit(2);                                                                      \
		}                                                                                     \
	} while (0)

static const struct cuda_api *api;

static void
leak(void)
{
	void *addr;

	for (size_t i = 1; i <= 100; i++) {
		MUST(api->device(&addr, i * 1000));
		if (i % 2 == 0)
			MUST(api->release(addr));
	}
}

/* Eight threads that free each other's blocks of a few sizes, so that addresses come back at once. */
#define SLOTS 64
static _Atomic(void *) slots[SLOTS];

static void *
work(void *argument)
{
	unsigned seed = (unsigned)(size_t)argument;

	MUST(api->use_device(0));
	for (int i = 0; i < 20000; i++) {
		void *addr = NULL;

		seed = seed * 1103515245u + 12345u;
		if ((seed >> 16) % 2 == 0)
			MUST(api->device(&addr, 512u << (seed >> 20) % 4));
		addr = atomic_exchange_explicit(&slots[(seed >> 8) % SLOTS], addr, memory_order_acq_rel);
		MUST(api->release(addr));
	}
	return NULL;
}

static void
threads(void)
{
	pthread_t ids[8];

	for (size_t i = 0; i < 8; i++)
		MUST(pthread_create(&ids[i], NULL, work, (void *)(i + 1)));
	for (size_t i = 0; i < 8; i++)
		MUST(pthread_join(ids[i], NULL));
}

/* Some of these fail, as KMEMDOUBLE_CAPACITY and the others say; what is kept stays live. */
static void
failing(void)
{
	void *kept[40] = { 0 };

	for (int i = 0; i < 40; i++)
		(void)api->device(&kept[i], 1000000);
	for (int i = 0; i < 40; i += 2)
		(void)api->release(kept[i]);
	(void)api->release((void *)&kept); // never given out
	(void)api->release(kept[1]);
	(void)api->release(kept[1]);       // twice
}

static void
zero(void)
{
	void *addr = NULL;

	(void)api->device(&addr, 0);
	(void)api->release(NULL);
	(void)api->device(NULL, 0);
	MUST(api->device(&addr, 1));
}

static void
pinned(void)
{
	void *addr[4];

	MUST(api->pinned(&addr[0], 5000));
	MUST(api->pinned_flags(&addr[1], 3 << 20, 0));
	memset(addr[1], 1, 3 << 20);
	MUST(api->pinned(&addr[2], 7000));
	MUST(api->release_pinned(addr[0]));
	MUST(api->managed(&addr[3], 9000, 1));
	MUST(api->managed(&addr[0], 11000, 1));
	MUST(api->release(addr[3]));
}

static void
devices(void)
{
	void *addr[3];

	MUST(api->use_device(0));
	MUST(api->device(&addr[0], 1 << 20));
	MUST(api->use_device(1));
	MUST(api->device(&addr[1], 2 << 20));
	MUST(api->device(&addr[2], 4 << 20));
	MUST(api->use_device(0)); // the device of now is not that of then
	MUST(api->release(addr[1]));
}

static void
async(void)
{
	void *addr[4];

	MUST(api->device_async(&addr[0], 1000, NULL));
	MUST(api->device_async_twin(&addr[1], 2000, NULL));
	MUST(api->device(&addr[2], 4000));
	MUST(api->device_async(&addr[3], 8000, NULL));
	MUST(api->release(addr[0]));
	MUST(api->release_async(addr[1], NULL));
	MUST(api->release_async_twin(addr[2], NULL));
}

static const struct {
	const char *name;
	void (*run)(void);
} workloads[] = { { "leak", leak },     { "threads", threads }, { "failing", failing }, { "zero", zero },
	          { "pinned", pinned }, { "devices", devices }, { "async", async } };

int
workload_run(const struct cuda_api *reached, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "leak";

	api = reached;
	MUST(api->use_device(0));
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		if (strcmp(workloads[i].name, name) != 0)
			continue;
		workloads[i].run();
		if (argc > 2 && strcmp(argv[2], "kill") == 0)
			raise(SIGKILL);
		return 0;
	}
	fprintf(stderr, "no workload \"%s\"\n", name);
	return 2;
}
