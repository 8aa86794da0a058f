/*
 * workload.c - what the test programs do, whichever way they reach CUDA. The oracle is the driver double's
 * ledger, so nothing is counted here.
 */
#include "workload_parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct cuda_api *api;

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

void
workload_in_threads(size_t count, void *(*run)(void *))
{
	pthread_t ids[8];

	for (size_t i = 0; i < count; i++)
		MUST(pthread_create(&ids[i], NULL, run, (void *)(i + 1)));
	for (size_t i = 0; i < count; i++)
		MUST(pthread_join(ids[i], NULL));
}

static void
threads(void)
{
	workload_in_threads(8, work);
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
	(void)api->release(kept[1]); // twice
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

static void
pool(void)
{
	void *addr[5];
	size_t pitch;

	const struct cuda_memory_place second = { 1, 0, CUDA_LOCATION_DEVICE, 1 }, on_host = { 1, 0, 2, 0 };
	void *of_second, *of_host;

	MUST(api->make_pool(&of_second, &second));
	MUST(api->make_pool(&of_host, &on_host));
	MUST(api->pooled(&addr[0], 16000, of_second, NULL)); // the device of the pool, not the one of now
	MUST(api->pooled(&addr[1], 32000, of_second, NULL));
	MUST(api->pooled(&addr[2], 64000, of_host, NULL));
	MUST(api->pooled_twin(&addr[3], 128000, of_host, NULL));
	MUST(api->release_async(addr[0], NULL));
	MUST(api->release_async(addr[2], NULL));

	MUST(api->pooled(&addr[0], 1000, NULL, NULL));
	MUST(api->pooled_twin(&addr[1], 2000, NULL, NULL));
	MUST(api->pooled(&addr[2], 4000, NULL, NULL));
	MUST(api->pitched(&addr[3], &pitch, 100, 30, 4)); // rows of 512
	MUST(api->pitched(&addr[4], &pitch, 700, 20, 4)); // rows of 1024
	MUST(api->release_async(addr[0], NULL));
	MUST(api->release(addr[1])); // any release is right for any of them
	MUST(api->release(addr[3]));
}

/* Each is refused, while the first device is the current one. */
static void
pools_refuse(void)
{
	const struct cuda_memory_place places[] = { { 1, 0, CUDA_LOCATION_DEVICE, 1 },
		                                        { 1, 0, CUDA_LOCATION_DEVICE, 0 },
		                                        { 1, 0, 2, 0 },
		                                        { CUDA_TYPE_MANAGED, 0, CUDA_LOCATION_DEVICE, 1 } };
	void *pool, *addr;

	for (size_t i = 0; i < 4; i++) {
		MUST(api->make_pool(&pool, &places[i]));
		if (api->pooled(&addr, (i + 1) << 45, pool, NULL) != CUDA_ABI_OUT_OF_MEMORY)
			exit(2);
	}
	MUST(api->make_pool(&pool, &places[0]));
	MUST(api->end_pool(pool));
	MUST(api->make_pool(&pool, &places[1])); // with its handle
	if (api->pooled(&addr, (size_t)5 << 45, pool, NULL) != CUDA_ABI_OUT_OF_MEMORY)
		exit(2);
	MUST(api->default_pool(&pool, 1));
	if (api->pooled_twin(&addr, (size_t)6 << 45, pool, NULL) != CUDA_ABI_OUT_OF_MEMORY)
		exit(2);
	if (api->device_async(&addr, (size_t)7 << 45, NULL) != CUDA_ABI_OUT_OF_MEMORY)
		exit(2);
	for (int i = 0; i < 100; i++) // more than are noted
		MUST(api->make_pool(&pool, &places[0]));
	if (api->pooled_twin(&addr, (size_t)8 << 45, pool, NULL) != CUDA_ABI_OUT_OF_MEMORY)
		exit(2);
}

/* Each is refused on a stream of the second device, the last but one in its pool, while the first one is the current one. */
static void
streams_refuse(void)
{
	void *stream, *pool, *addr;

	MUST(api->use_device(1));
	MUST(api->make_stream(&stream, 0));
	MUST(api->use_device(0));
	MUST(api->default_pool(&pool, 1));
	if (api->device_async(&addr, (size_t)1 << 45, stream) != CUDA_ABI_OUT_OF_MEMORY ||
	    api->device_async_twin(&addr, (size_t)2 << 45, stream) != CUDA_ABI_OUT_OF_MEMORY ||
	    api->pooled(&addr, (size_t)3 << 45, pool, stream) != CUDA_ABI_OUT_OF_MEMORY ||
	    api->device_async(&addr, (size_t)4 << 45, NULL) != CUDA_ABI_OUT_OF_MEMORY)
		exit(2);
	MUST(api->device(&addr, 1000)); // on the first, as before
}

static void
arrays(void)
{
	const struct cuda_array line = { 1000, 0, 0x20, 4 };           // floats, four channels
	const struct cuda_array_3d solid = { 64, 32, 16, 0x10, 2, 0 }; // halves
	const struct cuda_array_3d layers = { 64, 32, 6, 0x10, 2, 1 }; // each level has all six
	void *kept, *gone;

	MUST(api->array(&kept, &line));
	MUST(api->array(&gone, &line));
	MUST(api->release_array(gone));
	MUST(api->levels(&kept, &layers, 3));
	MUST(api->array_3d(&kept, &solid));
	MUST(api->levels(&kept, &solid, 4));
	MUST(api->levels(&gone, &solid, 4));
	MUST(api->release_levels(gone));
}

/* A reset takes all but pools and physical memory; then life goes on, at the same addresses. */
static void
reset(void)
{
	static char own[70000];
	void *addr;

	for (int i = 0; i < 100; i++)
		MUST(api->device(&addr, 1000 + (size_t)i));
	MUST(api->pooled(&addr, 30000, NULL, NULL));
	MUST(api->pinned(&addr, 50000));
	MUST(api->managed(&addr, 60000, 1));
	MUST(api->pin(own, sizeof(own), 0));
	MUST(api->reset(0));
	MUST(api->use_device(0));
	MUST(api->device(&addr, 1000));
	MUST(api->device(&addr, 2000));
}

/* Of the second device, with what it gave out of the host's memory; the first one's stays. */
static void
reset_one(void)
{
	void *addr;

	MUST(api->device(&addr, 1000));
	MUST(api->pinned(&addr, 5000));
	MUST(api->use_device(1));
	MUST(api->device(&addr, 2000));
	MUST(api->pinned(&addr, 7000));
	MUST(api->managed(&addr, 9000, 1));
	MUST(api->reset(1));
}

static void
reset_physical(void)
{
	const struct cuda_memory_place on_device = { 1, 0, CUDA_LOCATION_DEVICE, 0 };
	cuda_memory_handle handle;
	void *addr;

	MUST(api->create(&handle, 70000, &on_device, 0));
	MUST(api->device(&addr, 1000));
	MUST(api->reset(0));
}

/* Contexts that the program makes end with what was given out in them; the device's own, and pools, stay. */
static void
contexts(void)
{
	void *first, *second, *addr;

	MUST(api->device(&addr, 1000));
	MUST(api->make_context(&first, 0, 0));
	MUST(api->device(&addr, 2000));
	MUST(api->pinned(&addr, 3000));
	MUST(api->pooled(&addr, 4000, NULL, NULL));
	MUST(api->make_context_newest(&second, NULL, 0, 1));
	MUST(api->device(&addr, 5000));
	MUST(api->managed(&addr, 6000, 1));
	MUST(api->end_context(first));
	MUST(api->device(&addr, 7000));
	MUST(api->end_context(second));
	MUST(api->make_context(&first, 0, 0)); // at the first one's address
	MUST(api->device(&addr, 8000));
	if (api->end_context(second) == 0) // twice
		exit(2);
	MUST(api->use_device(0));
	MUST(api->device(&addr, 9000));
	MUST(api->release(addr));
}

/* The last one who holds a primary context ends it. */
static void
primary(void)
{
	void *addr;

	MUST(api->use_device(0)); // the second time: workload_run() was the first
	MUST(api->device(&addr, 1000));
	MUST(api->use_device(1));
	MUST(api->device(&addr, 2000));
	MUST(api->pinned(&addr, 3000));
	MUST(api->release_primary(0)); // no
	MUST(api->release_primary(1)); // yes
	MUST(api->use_device(0));
	MUST(api->device(&addr, 4000));
	MUST(api->release_primary(0)); // no: it was the third
}

/* What is given out in a green context is the primary one's. It holds that one, and may be the last who does. */
static void
green(void)
{
	void *first, *second, *context, *addr;

	MUST(api->device(&addr, 1000));
	MUST(api->make_green(&first, NULL, 0, 1));
	MUST(api->make_green(&second, NULL, 1, 1));
	MUST(api->green_as_context(&context, first));
	MUST(api->set_current(context));
	MUST(api->device(&addr, 2000));
	MUST(api->device(&addr, 4000));
	MUST(api->release(addr));
	MUST(api->green_as_context(&context, second));
	MUST(api->set_current(context));
	MUST(api->device(&addr, 8000));
	MUST(api->pinned(&addr, 16000));
	MUST(api->end_green(first));  // workload_run() has the primary one
	MUST(api->end_green(second)); // nobody has
	if (api->end_green(second) == 0)
		exit(2);
	MUST(api->use_device(1));
	MUST(api->device(&addr, 32000));
}

/* What graphs take when they run is not the device's while they do not. */
static void
graphs(void)
{
	struct cuda_graph_memory memory[4] = { { .bytes = 1000 }, { .bytes = 2000 }, { .bytes = 4000 }, { .bytes = 8000 } };
	void *node, *addr;

	for (int i = 0; i < 4; i++)
		MUST(api->graph_memory(&node, NULL, NULL, 0, &memory[i]));
	MUST(api->graph_free(&node, NULL, NULL, 0, (void *)memory[1].addr));
	MUST(api->release((void *)memory[2].addr)); // of the program, after a run
	MUST(api->device(&addr, 16000));
}

/* Nodes of any type: two of them are about memory. */
static void
graph_nodes(void)
{
	struct cuda_graph_node parameters = { .type = CUDA_NODE_MEM_ALLOC, .memory.bytes = 1000 };
	cuda_device_addr addr[3];
	void *node;

	for (int i = 0; i < 3; i++) {
		parameters.memory.bytes *= 2;
		MUST(api->graph_node(&node, NULL, NULL, NULL, 0, &parameters));
		addr[i] = parameters.memory.addr;
	}
	parameters = (struct cuda_graph_node){ .type = 5, .freed = addr[0] }; // an empty one
	MUST(api->graph_node(&node, NULL, NULL, NULL, 0, &parameters));
	parameters = (struct cuda_graph_node){ .type = CUDA_NODE_MEM_FREE, .freed = addr[1] };
	MUST(api->graph_node(&node, NULL, NULL, NULL, 0, &parameters));
	if (api->graph_node(&node, NULL, NULL, NULL, 0, &parameters) == 0) // twice
		exit(2);
	if (api->graph_node(&node, NULL, NULL, NULL, 0, NULL) == 0)
		exit(2);
	MUST(api->device((void **)&addr[0], 16000));
}

static void
graph_nodes_old(void)
{
	struct cuda_graph_node parameters = { .type = CUDA_NODE_MEM_ALLOC, .memory.bytes = 3000 };
	void *node;

	MUST(api->graph_node_old(&node, NULL, NULL, 0, &parameters));
	MUST(api->graph_node_old(&node, NULL, NULL, 0, &parameters));
	parameters = (struct cuda_graph_node){ .type = CUDA_NODE_MEM_FREE, .freed = parameters.memory.addr };
	MUST(api->graph_node_old(&node, NULL, NULL, 0, &parameters));
}

static void
recorded(void)
{
	void *const stream = (void *)0x77; // the double records it
	void *addr[4];

	MUST(api->device_async(&addr[0], 1000, stream));
	MUST(api->device_async_twin(&addr[1], 2000, stream));
	MUST(api->pooled(&addr[2], 4000, NULL, stream));
	MUST(api->device_async(&addr[3], 8000, (void *)0x78));
	MUST(api->release_async(addr[1], stream));
}

static void
solid(void)
{
	struct cuda_pitched block;

	MUST(api->solid(&block, (struct cuda_extent){ 700, 20, 3 })); // rows of 1024
	MUST(api->solid(&block, (struct cuda_extent){ 100, 5, 2 }));
	MUST(api->release(block.addr));
}

/* Requests that make no sense, and places for answers that are not there: whatever the driver says, we say. */
static void
senseless(void)
{
	const struct cuda_array_3d huge = { SIZE_MAX / 2, SIZE_MAX / 2, 2, 0x20, 4, 0 };
	void *addr[8] = { NULL };
	size_t pitch;
	int results[8];

	results[0] = api->device(NULL, 1000);
	results[1] = api->device(&addr[1], SIZE_MAX);
	results[2] = api->pitched(&addr[2], NULL, 100, 3, 4);
	results[3] = api->pitched(&addr[3], &pitch, SIZE_MAX / 2, 3, 4);
	results[4] = api->array(&addr[4], NULL);
	results[5] = api->array_3d(&addr[5], &huge);
	results[6] = api->create(NULL, 1000, NULL, 0);
	results[7] = api->device(&addr[7], 1000);
	for (int i = 0; i < 8; i++)
		printf("%d ", results[i]);
	puts("");
}

/* A child has none of it, and its end changes nothing. */
static void
forked(void)
{
	void *addr;
	pid_t child;

	MUST(api->device(&addr, 1000));
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	MUST(api->device(&addr, 2000));
}

/* Green contexts that come and go, while nothing is given out on their device. */
static void
green_often(void)
{
	void *green, *addr;

	MUST(api->device(&addr, 1000));
	for (int i = 0; i < 50; i++) {
		MUST(api->make_green(&green, NULL, 1, 1));
		MUST(api->end_green(green));
	}
}

/* More than are told apart: what the last ones leave is not known to be gone. */
static void
contexts_many(void)
{
	enum { COUNT = 70 };
	void *contexts[COUNT], *addr;

	for (size_t i = 0; i < COUNT; i++) {
		MUST(api->make_context(&contexts[i], 0, 0));
		MUST(api->device(&addr, 1000));
	}
	for (size_t i = 0; i < COUNT; i++)
		MUST(api->end_context(contexts[i]));
}

static void *
create_without_context(void *unused)
{
	const struct cuda_memory_place second = { 1, 0, CUDA_LOCATION_DEVICE, 1 };
	cuda_memory_handle handle;

	(void)unused;
	MUST(api->create(&handle, 4 << 20, &second, 0));
	return NULL;
}

static void
no_context(void)
{
	pthread_t id;

	MUST(pthread_create(&id, NULL, create_without_context, NULL));
	MUST(pthread_join(id, NULL));
}

static void
registered(void)
{
	void *kept = malloc(300000), *back = malloc(400000);

	MUST(api->pin(kept, 300000, 0));
	MUST(api->pin(back, 400000, 0));
	MUST(api->unpin(back));
	free(back);
}

static const struct {
	const char *name;
	void (*run)(void);
} workloads[] = {
#define WORKLOAD(name) \
	{                  \
#name, name    \
	}
	WORKLOAD(leak),
	WORKLOAD(threads),
	WORKLOAD(failing),
	WORKLOAD(zero),
	WORKLOAD(pinned),
	WORKLOAD(devices),
	WORKLOAD(async),
	WORKLOAD(pool),
	WORKLOAD(pools_refuse),
	WORKLOAD(streams_refuse),
	WORKLOAD(arrays),
	{ "physical", workload_physical },
	{ "physical_threads", workload_physical_threads },
	WORKLOAD(registered),
	WORKLOAD(reset),
	WORKLOAD(reset_one),
	WORKLOAD(reset_physical),
	WORKLOAD(contexts),
	WORKLOAD(primary),
	{ "imports", workload_imports },
	{ "imports_reset", workload_imports_reset },
	{ "imports_threads", workload_imports_threads },
	{ "imported_handles", workload_imported_handles },
	WORKLOAD(graphs),
	WORKLOAD(recorded),
	WORKLOAD(solid),
	WORKLOAD(senseless),
	WORKLOAD(forked),
	WORKLOAD(no_context),
	WORKLOAD(graph_nodes),
	WORKLOAD(graph_nodes_old),
	WORKLOAD(green),
	WORKLOAD(green_often),
	WORKLOAD(contexts_many)
};

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
		if (argc > 2 && strcmp(argv[2], "_exit") == 0)
			_exit(0);
		return 0;
	}
	fprintf(stderr, "no workload \"%s\"\n", name);
	return 2;
}
