/*
 * workload_objects.c - the part of the workloads that is about physical memory by handle, and about memory of others.
 */
#include "workload_parts.h"

/* Physical memory: it lives while a handle or a mapping is there, and handles come back as numbers. */
void
workload_physical(void)
{
	const struct cuda_memory_place on_device = { 1, 0, CUDA_LOCATION_DEVICE, 0 }, on_host = { 1, 0, 2, 0 };
	const cuda_device_addr base = 0x700000000000;
	const size_t chunk = 2 << 20;
	cuda_memory_handle handle, other, same;

	/* As PyTorch's segments that grow: the handle goes at once, the mapping stays; all are unmapped together. */
	for (int i = 0; i < 8; i++) {
		MUST(api->create(&handle, chunk, &on_device, 0));
		MUST(api->map(base + (cuda_device_addr)i * chunk, chunk, 0, handle, 0));
		MUST(api->release_handle(handle));
	}
	MUST(api->unmap(base + 2 * chunk, 4 * chunk));

	/* As NCCL: retains what others have mapped, releases, unmaps, releases. */
	MUST(api->create(&handle, 3 * chunk, &on_device, 0));
	MUST(api->map(base + 100 * chunk, 3 * chunk, 0, handle, 0));
	MUST(api->retain(&same, (void *)(base + 100 * chunk)));
	MUST(api->release_handle(same));
	MUST(api->unmap(base + 100 * chunk, 3 * chunk));
	MUST(api->create(&other, chunk, &on_device, 0));
	MUST(api->release_handle(handle));

	/* Or what has no handle any more, and another memory has that number; the new one outlives the mapping. */
	MUST(api->create(&handle, 11 * chunk, &on_device, 0));
	MUST(api->map(base + 500 * chunk, 11 * chunk, 0, handle, 0));
	MUST(api->release_handle(handle));
	MUST(api->create(&same, chunk, &on_device, 0));
	MUST(api->retain(&handle, (void *)(base + 500 * chunk)));
	MUST(api->unmap(base + 500 * chunk, 11 * chunk));
	MUST(api->create(&same, chunk, &on_device, 0));
	MUST(api->release_handle(handle));

	/* One memory, mapped twice; a handle that is never mapped; memory of the host; an import. */
	MUST(api->map(base + 200 * chunk, chunk, 0, other, 0));
	MUST(api->map(base + 300 * chunk, chunk, 0, other, 0));
	MUST(api->release_handle(other));
	MUST(api->unmap(base + 200 * chunk, chunk));
	MUST(api->create(&handle, 5 * chunk, &on_device, 0));
	MUST(api->create(&handle, 7 * chunk, &on_host, 0));
	MUST(api->map(base + 400 * chunk, chunk, 0, 0x600000000000, 0)); // of somebody else
	MUST(api->release_handle(0x600000000000));
	MUST(api->unmap(base + 400 * chunk, chunk));
	if (api->create(&handle, (size_t)1 << 40, &on_device, 0) != CUDA_ABI_OUT_OF_MEMORY)
		exit(2);
}

static void *
work_physical(void *argument)
{
	const struct cuda_memory_place on_device = { 1, 0, CUDA_LOCATION_DEVICE, 0 };
	cuda_device_addr base = 0x700000000000 + ((cuda_device_addr)(size_t)argument << 32);
	cuda_memory_handle handle;

	for (unsigned i = 0; i < 3000; i++) {
		MUST(api->create(&handle, 4096 * (1 + i % 7), &on_device, 0));
		MUST(api->map(base, 4096 * (1 + i % 7), 0, handle, 0));
		MUST(api->release_handle(handle));
		if (i != 2999)
			MUST(api->unmap(base, 4096 * (1 + i % 7)));
	}
	return NULL;
}

void
workload_physical_threads(void)
{
	workload_in_threads(4, work_physical);
}

/* What others gave out: counted apart. Opened twice is the same memory. */
void
workload_imports(void)
{
	struct cuda_ipc_handle handle = { { 3 } };
	const struct cuda_external_buffer part = { 4096, 123456 };
	char exported = 2;
	void *addr, *same;

	handle.bytes[63] = 1;
	MUST(api->open_shared(&addr, handle, 1));
	MUST(api->open_shared(&same, handle, 1));
	MUST(api->close_shared(same));
	handle.bytes[63] = 2;
	MUST(api->open_shared(&addr, handle, 1));
	MUST(api->open_shared(&addr, handle, 1));
	MUST(api->close_shared(addr));
	MUST(api->close_shared(addr));
	if (api->close_shared(addr) == 0)
		exit(2);
	MUST(api->import_pointer(&addr, NULL, &exported));
	MUST(api->import_pointer(&addr, NULL, &exported));
	MUST(api->release_async(addr, NULL));
	MUST(api->external(&addr, NULL, &part));
	MUST(api->external(&addr, NULL, &part));
	MUST(api->release(addr));
	MUST(api->device(&addr, 1000)); // ours
}

/* The mappings end with their context, but for that of a pool; what is opened afterwards is new, wherever it is. */
void
workload_imports_reset(void)
{
	const struct cuda_external_buffer part = { 0, 70000 };
	struct cuda_ipc_handle first = { { 3 } }, second = { { 5 } };
	char exported = 2;
	void *addr;

	first.bytes[63] = 1;
	second.bytes[63] = 2;
	MUST(api->open_shared(&addr, first, 1));
	MUST(api->open_shared(&addr, first, 1));
	MUST(api->use_device(1));
	MUST(api->open_shared(&addr, second, 1));
	MUST(api->external(&addr, NULL, &part));
	MUST(api->import_pointer(&addr, NULL, &exported));
	MUST(api->reset(1));
	MUST(api->use_device(0));
	MUST(api->external(&addr, NULL, &part));
	MUST(api->reset(0));
	MUST(api->use_device(0));
	MUST(api->open_shared(&addr, second, 1));
	MUST(api->open_shared(&addr, first, 1));
	MUST(api->close_shared(addr));
}

/* Memory of several others, closed by one thread while another one opens: the addresses are the same. */
static void *
work_imports(void *argument)
{
	struct cuda_ipc_handle handle = { { (char)(size_t)argument } };
	void *addr;

	handle.bytes[63] = handle.bytes[0];
	MUST(api->use_device(0));
	for (unsigned i = 0; i < 5000; i++) {
		MUST(api->open_shared(&addr, handle, 1));
		if (i != 4999)
			MUST(api->close_shared(addr));
	}
	return NULL;
}

void
workload_imports_threads(void)
{
	workload_in_threads(4, work_imports);
}

void
workload_imported_handles(void)
{
	const struct cuda_external_levels part = { 0, { 64, 32, 16, 0x10, 2, 0 }, 1 };
	const cuda_device_addr base = 0x700000000000;
	const size_t chunk = 2 << 20;
	cuda_memory_handle handle, multicast = 0x600000000000;
	void *addr;

	MUST(api->import_handle(&handle, (void *)1, 1));
	MUST(api->map(base, 3 * chunk, 0, handle, 0));
	MUST(api->map(base + 10 * chunk, chunk, 0, handle, 0));
	MUST(api->release_handle(handle));
	MUST(api->unmap(base + 10 * chunk, chunk));
	MUST(api->import_handle(&handle, (void *)2, 1));
	MUST(api->map(base + 20 * chunk, 5 * chunk, 0, handle, 0));
	MUST(api->unmap(base + 20 * chunk, 5 * chunk));
	MUST(api->release_handle(handle));
	MUST(api->map(base + 30 * chunk, chunk, 0, multicast, 0)); // addresses of memory that is there already
	MUST(api->external_levels(&addr, NULL, &part));
	MUST(api->external_levels(&addr, NULL, &part));
	MUST(api->release_levels(addr));
}
