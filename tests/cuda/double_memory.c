/*
 * double_memory.c - the driver double's entry points that give memory out and take it back: by address, from pools, as arrays; what
 * others have given out; nodes of graphs.
 */
#include <string.h>

#include "double_driver.h"

// the handle of a device's pool is this and its row of the ledger; made ones are in steps above it
#define FIRST_POOL 0x1000
#define POOL_STEP 0x100
#define RECORDED_STREAM ((void *)0x77)

static int
device_row(void)
{
	return LEDGER_DEVICE + double_context_device();
}

static int
on_device(void *addr, uint64_t bytes)
{
	return double_allocate(device_row(), addr, bytes, double_context());
}

/* Another ABI under a name that is known. */
int
double_mem_alloc_newer(cuda_device_addr *addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return on_device(addr, bytes);
}

/* The ABI before CUDA 3.2, with 32-bit addresses: nobody may take it for cuMemAlloc_v2. */
int
cuMemAlloc(unsigned *addr, unsigned bytes)
{
	(void)addr;
	(void)bytes;
	return NOT_SUPPORTED;
}

int
cuMemAlloc_v2(cuda_device_addr *addr, size_t bytes)
{
	return on_device(addr, bytes);
}

int
cuMemAllocPitch_v2(cuda_device_addr *addr, size_t *pitch_bytes, size_t width_bytes, size_t height,
                   unsigned element_bytes)
{
	(void)element_bytes;
	if (pitch_bytes == NULL)
		return double_setting("KMEMDOUBLE_CARELESS", 0) != 0 ? on_device(addr, width_bytes * height) : INVALID_VALUE;
	*pitch_bytes = (width_bytes + 511) & ~(size_t)511;
	return on_device(addr, *pitch_bytes * height);
}

int
cuMemAllocManaged(cuda_device_addr *addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return double_allocate(LEDGER_MANAGED, (uint64_t *)addr, bytes, double_context());
}

/* By number and row; number 0 is the device's own. */
#define POOLS_MAX 256
static struct {
	uint64_t used_bytes, kept_bytes;
} pools[POOLS_MAX][LEDGER_ROWS];
static int made_row[POOLS_MAX]; // of those that were made; 0 = there is none

static int
pool_number(const void *pool)
{
	return pool == NULL ? 0 : (int)((uintptr_t)pool - FIRST_POOL) / POOL_STEP;
}

static int
pool_row(const void *pool, const void *stream)
{
	int number = pool_number(pool);

	if (number != 0)
		return made_row[number];
	return pool == NULL ? LEDGER_DEVICE + double_stream_device(stream) : (int)((uintptr_t)pool - FIRST_POOL);
}

static void
keep(int number, int row, uint64_t used_bytes, uint64_t kept_bytes)
{
	pthread_mutex_lock(&double_mutex);
	pools[number][row].used_bytes += used_bytes;
	pools[number][row].kept_bytes += kept_bytes;
	double_pool_kept[row] += kept_bytes;
	pthread_mutex_unlock(&double_mutex);
}

/* The pool's device; a stream that is being recorded makes a node of a graph. No pool: the one of the stream's device. */
static int
pooled(cuda_device_addr *addr, size_t bytes, void *pool, void *stream)
{
	int number = pool_number(pool), row = pool_row(pool, stream), result;
	uint64_t again_bytes = pools[number][row].kept_bytes;

	if (stream == RECORDED_STREAM)
		return double_allocate(LEDGER_GRAPH, (uint64_t *)addr, bytes, 0);
	again_bytes = again_bytes < bytes ? again_bytes : bytes;
	keep(number, row, 0, -again_bytes);
	result = double_allocate(row, (uint64_t *)addr, bytes, -number - 1);
	if (result == CUDA_ABI_SUCCESS)
		keep(number, row, bytes, 0);
	else
		keep(number, row, 0, again_bytes);
	return result;
}

int
cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
	int number = pool_number(pool), row = pool_row(pool, NULL);

	double_asked(__builtin_return_address(0));
	*(uint64_t *)value = pools[number][row].used_bytes +
	                     (attribute == CUDA_POOL_RESERVED ? pools[number][row].kept_bytes : 0);
	return CUDA_ABI_SUCCESS;
}

int
cuMemPoolCreate(void **pool, const struct cuda_memory_place *place)
{
	int number = 1,
		row = place->location_type == CUDA_LOCATION_DEVICE ? LEDGER_DEVICE + place->location_id : LEDGER_PINNED;

	if (place->type == CUDA_TYPE_MANAGED)
		row = LEDGER_MANAGED;
	while (number < POOLS_MAX && made_row[number] != 0)
		number++;
	if (number == POOLS_MAX)
		return CUDA_ABI_OUT_OF_MEMORY;
	made_row[number] = row;
	*pool = (void *)(uintptr_t)(FIRST_POOL + POOL_STEP * number);
	return CUDA_ABI_SUCCESS;
}

int
cuMemPoolDestroy(void *pool)
{
	int number = pool_number(pool);

	if (number <= 0 || number >= POOLS_MAX || made_row[number] == 0)
		return INVALID_VALUE;
	keep(number, made_row[number], 0, -pools[number][made_row[number]].kept_bytes);
	made_row[number] = 0;
	return CUDA_ABI_SUCCESS;
}

int
cuDeviceGetDefaultMemPool(void **pool, int device)
{
	double_asked(__builtin_return_address(0));
	*pool = (void *)(uintptr_t)(FIRST_POOL + LEDGER_DEVICE + device);
	return cuDeviceGet(&device, device);
}

int
cuMemAllocAsync(cuda_device_addr *addr, size_t bytes, void *stream)
{
	return pooled(addr, bytes, NULL, stream);
}

int
cuMemAllocAsync_ptsz(cuda_device_addr *addr, size_t bytes, void *stream)
{
	return pooled(addr, bytes, NULL, stream);
}

int
cuMemAllocFromPoolAsync(cuda_device_addr *addr, size_t bytes, void *pool, void *stream)
{
	return pooled(addr, bytes, pool, stream);
}

int
cuMemAllocFromPoolAsync_ptsz(cuda_device_addr *addr, size_t bytes, void *pool, void *stream)
{
	return pooled(addr, bytes, pool, stream);
}

/* A block of a pool of the host is freed like any of a pool. */
static int
release(cuda_device_addr addr)
{
	struct block block;
	bool is_pools = double_block(addr, &block) && block.context < 0;
	int result = double_release(addr, is_pools ? block.row : -1);

	if (is_pools && result == CUDA_ABI_SUCCESS)
		keep(-block.context - 1, block.row, -block.bytes, double_setting("KMEMDOUBLE_POOLS_KEEP", 0) * block.bytes);
	return result;
}

int
cuMemAllocHost_v2(void **addr, size_t bytes)
{
	return double_allocate(LEDGER_PINNED, (uint64_t *)addr, bytes, double_context());
}

int
cuMemHostAlloc(void **addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return double_allocate(LEDGER_PINNED, (uint64_t *)addr, bytes, double_context());
}

int
cuMemFree_v2(cuda_device_addr addr)
{
	return release(addr);
}

int
cuMemFreeAsync(cuda_device_addr addr, void *stream)
{
	(void)stream;
	return release(addr);
}

int
cuMemFreeAsync_ptsz(cuda_device_addr addr, void *stream)
{
	(void)stream;
	return release(addr);
}

int
cuMemFreeHost(void *addr)
{
	return double_release((uint64_t)addr, LEDGER_PINNED);
}

int
cuMemHostRegister_v2(void *addr, size_t bytes, unsigned flags)
{
	uint64_t where = (uint64_t)addr;

	(void)flags;
	return addr == NULL ? INVALID_VALUE : double_allocate(LEDGER_REGISTERED, &where, bytes, double_context());
}

int
cuMemHostRegister(void *addr, size_t bytes, unsigned flags)
{
	return cuMemHostRegister_v2(addr, bytes, flags);
}

int
cuMemHostUnregister(void *addr)
{
	return double_release((uint64_t)addr, LEDGER_REGISTERED);
}

/* ---- arrays ---- */

static uint64_t
array_bytes(size_t width, size_t height, size_t depth, int format, unsigned channels)
{
	static const int sizes[] = {
		[0x01] = 1, [0x02] = 2, [0x03] = 4, [0x08] = 1, [0x09] = 2, [0x0a] = 4, [0x10] = 2, [0x20] = 4
	};

	if (width > UINT32_MAX)
		return UINT64_MAX;
	return (uint64_t)width * (height == 0 ? 1 : height) * (depth == 0 ? 1 : depth) * channels * (unsigned)sizes[format];
}

int
cuArrayCreate_v2(void **addr, const struct cuda_array *shape)
{
	if (shape == NULL)
		return on_device(addr, double_setting("KMEMDOUBLE_CARELESS", 0) != 0 ? UINT64_MAX : 0);
	return on_device(addr, array_bytes(shape->width, shape->height, 0, shape->format, shape->channels));
}

int
cuArray3DCreate_v2(void **addr, const struct cuda_array_3d *shape)
{
	return on_device(addr, array_bytes(shape->width, shape->height, shape->depth, shape->format, shape->channels));
}

int
cuArrayDestroy(void *addr)
{
	return addr == NULL ? INVALID_VALUE : double_release((uint64_t)addr, -1);
}

int
cuMipmappedArrayCreate(void **addr, const struct cuda_array_3d *shape, unsigned levels)
{
	uint64_t bytes = 0;

	for (unsigned level = 0; level < levels; level++)
		bytes += array_bytes(shape->width >> level ? shape->width >> level : 1, shape->height >> level,
		                     (shape->flags & CUDA_ARRAY_LAYERED) != 0 ? shape->depth : shape->depth >> level,
		                     shape->format, shape->channels);
	return on_device(addr, bytes);
}

int
cuMipmappedArrayDestroy(void *addr)
{
	return cuArrayDestroy(addr);
}

/* ---- what the shim asks ---- */

int
cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	double_asked(__builtin_return_address(0));
	if (double_context() == 0)
		return INVALID_CONTEXT;
	*total_bytes = double_setting("KMEMDOUBLE_CAPACITY", DEVICE_RANGE_BYTES / 2);
	*free_bytes = double_capacity() - double_live_bytes(device_row()) - double_pool_kept[device_row()];
	return CUDA_ABI_SUCCESS;
}

int
cuMemGetAddressRange_v2(cuda_device_addr *start, size_t *bytes, cuda_device_addr addr)
{
	struct block block;

	double_asked(__builtin_return_address(0));
	if (!double_block(addr, &block) && !double_opened(addr, &block))
		return INVALID_VALUE;
	*start = block.addr;
	*bytes = block.bytes;
	return CUDA_ABI_SUCCESS;
}

/* As the real one: of an address that it does not know it says nothing, and succeeds. */
int
cuPointerGetAttributes(unsigned count, const int *attributes, void **values, cuda_device_addr addr)
{
	struct block block = { .row = -1 };
	bool is_known = double_block(addr, &block);

	double_asked(__builtin_return_address(0));
	for (unsigned i = 0; i < count; i++) {
		bool is_device = attributes[i] == CUDA_ATTRIBUTE_DEVICE;
		int value = is_device ? -2 : 0;

		if (is_known && is_device)
			value = block.row >= LEDGER_DEVICE ? block.row - LEDGER_DEVICE : 0;
		if (is_known && attributes[i] == CUDA_ATTRIBUTE_MEMORY_TYPE)
			value = block.row == LEDGER_PINNED ? CUDA_MEMORY_TYPE_HOST : 2;
		memcpy(values[i], &value, attributes[i] == CUDA_ATTRIBUTE_IS_MANAGED ? 1 : sizeof(value));
	}
	return CUDA_ABI_SUCCESS;
}

int
cuStreamIsCapturing(void *stream, int *is_capturing)
{
	double_asked(__builtin_return_address(0));
	*is_capturing = stream == RECORDED_STREAM;
	return CUDA_ABI_SUCCESS;
}

/*
 * ---- memory of others: its size is in the first byte of what they handed over, in MiB, and the last one tells it from others.
 * Opened again it is where it is; the address of what was closed is given out again at once.
 */

#define OPENED_MAX 8
static struct {
	uint64_t bytes;
	int name;
	int count;
	int context; // of who opened it first: its end is the end of all
} opened[OPENED_MAX];
#define OPENED_ADDR(number) (UINT64_C(0x680000000000) + ((uint64_t)(number) << 32))

bool
double_opened(uint64_t addr, struct block *found)
{
	bool is_known = false;

	pthread_mutex_lock(&double_mutex);
	for (int i = 0; i < OPENED_MAX && !is_known; i++) {
		*found = (struct block){ .addr = OPENED_ADDR(i), .bytes = opened[i].bytes };
		is_known = addr == found->addr && opened[i].count != 0;
	}
	pthread_mutex_unlock(&double_mutex);
	return is_known;
}

static int
opened_number_locked(int name)
{
	int number = -1;

	for (int i = OPENED_MAX - 1; i >= 0; i--) {
		if (opened[i].count != 0 && opened[i].name == name)
			return i;
		if (opened[i].count == 0)
			number = i;
	}
	return number;
}

void
double_opened_ended_locked(int context)
{
	for (int i = 0; i < OPENED_MAX; i++) {
		if (opened[i].count == 0 || opened[i].context != context)
			continue;
		opened[i].count = 0;
		double_account_freed_locked(LEDGER_IMPORTED, opened[i].bytes);
	}
}

int
cuIpcOpenMemHandle_v2(cuda_device_addr *addr, struct cuda_ipc_handle handle, unsigned flags)
{
	int number;

	(void)flags;
	if (addr == NULL || handle.bytes[63] == 0)
		return INVALID_VALUE;
	pthread_mutex_lock(&double_mutex);
	number = opened_number_locked(handle.bytes[63]);
	opened[number].bytes = (uint64_t)handle.bytes[0] << 20;
	opened[number].name = handle.bytes[63];
	*addr = OPENED_ADDR(number);
	if (opened[number].count++ == 0) {
		opened[number].context = double_context();
		double_account_locked(LEDGER_IMPORTED, opened[number].bytes);
	}
	pthread_mutex_unlock(&double_mutex);
	return CUDA_ABI_SUCCESS;
}

int
cuIpcOpenMemHandle(cuda_device_addr *addr, struct cuda_ipc_handle handle, unsigned flags)
{
	return cuIpcOpenMemHandle_v2(addr, handle, flags);
}

int
cuIpcCloseMemHandle(cuda_device_addr addr)
{
	int number = (int)((addr - OPENED_ADDR(0)) >> 32), result = INVALID_VALUE;

	pthread_mutex_lock(&double_mutex);
	if (number < 0 || number >= OPENED_MAX || opened[number].count == 0) {
		result = INVALID_VALUE;
	} else if (++double_releases == double_setting("KMEMDOUBLE_FAIL_FREE_NTH", 0)) {
		result = ILLEGAL_ADDRESS;
	} else {
		if (--opened[number].count == 0)
			double_account_freed_locked(LEDGER_IMPORTED, opened[number].bytes);
		result = CUDA_ABI_SUCCESS;
	}
	pthread_mutex_unlock(&double_mutex);
	return result;
}

int
cuMemPoolImportPointer(cuda_device_addr *addr, void *pool, void *exported)
{
	(void)pool;
	return double_allocate(LEDGER_IMPORTED, (uint64_t *)addr, (uint64_t) * (char *)exported << 20, 0);
}

int
cuExternalMemoryGetMappedBuffer(cuda_device_addr *addr, void *memory, const struct cuda_external_buffer *part)
{
	(void)memory;
	return double_allocate(LEDGER_IMPORTED, (uint64_t *)addr, part->bytes, double_context());
}

int
cuExternalMemoryGetMappedMipmappedArray(void **addr, void *memory, const struct cuda_external_levels *part)
{
	uint64_t bytes = array_bytes(part->shape.width, part->shape.height, part->shape.depth, part->shape.format,
	                             part->shape.channels);

	(void)memory;
	return part->levels != 1 ? INVALID_VALUE
	                         : double_allocate(LEDGER_IMPORTED, (uint64_t *)addr, bytes, double_context());
}

/* ---- graphs ---- */

int
cuGraphAddMemAllocNode(void **node, void *graph, void *const *before, size_t before_count,
                       struct cuda_graph_memory *memory)
{
	(void)graph;
	(void)before;
	(void)before_count;
	*node = memory;
	return double_allocate(LEDGER_GRAPH, (uint64_t *)&memory->addr, memory->bytes, 0);
}

int
cuGraphAddMemFreeNode(void **node, void *graph, void *const *before, size_t before_count, cuda_device_addr addr)
{
	*node = graph;
	return (before_count == 0) != (before == NULL) ? INVALID_VALUE : double_release(addr, LEDGER_GRAPH);
}

/* Other types of nodes take nothing. */
int
cuGraphAddNode_v2(void **node, void *graph, void *const *before, const void *edges, size_t before_count,
                  struct cuda_graph_node *parameters)
{
	if (parameters == NULL || edges != NULL)
		return INVALID_VALUE;
	*node = graph;
	if (parameters->type == CUDA_NODE_MEM_ALLOC)
		return cuGraphAddMemAllocNode(node, graph, before, before_count, &parameters->memory);
	if (parameters->type == CUDA_NODE_MEM_FREE)
		return cuGraphAddMemFreeNode(node, graph, before, before_count, parameters->freed);
	return CUDA_ABI_SUCCESS;
}

int
cuGraphAddNode(void **node, void *graph, void *const *before, size_t before_count, struct cuda_graph_node *parameters)
{
	return cuGraphAddNode_v2(node, graph, before, NULL, before_count, parameters);
}
