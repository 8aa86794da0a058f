/*
 * double_driver.c - a libcuda.so.1 of our own: the driver's allocation functions without a device.
 *
 * Device addresses come from a reserved range and are given out again right after a release; pinned and managed
 * memory is real. Physical memory lives as long as a handle or a mapping refers to it, and its handle is given out again as
 * soon as nobody has it; the reset of a device leaves pools and physical memory. Contexts are per thread, and are needed as in the real driver. What it gave out is in the
 * ledger (double_ledger.h).
 *
 *   KMEMDOUBLE_DEVICES        how many devices; 1
 *   KMEMDOUBLE_CAPACITY       bytes per device; no limit
 *   KMEMDOUBLE_OTHERS         bytes of these that others hold: contexts, other processes
 *   KMEMDOUBLE_FAIL_NTH       this allocation, counted from 1 over all kinds, is refused
 *   KMEMDOUBLE_FAIL_FREE_NTH  this release of a live block fails with 700 and double_releases nothing
 *   KMEMDOUBLE_GENERIC        1: cuGetProcAddress finds every name; unknown ones answer 801
 *
 * Built a second time with -DDOUBLE_DRIVER_11: a driver before CUDA 12, without cuGetProcAddress_v2.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../shim/cuda_abi.h"
#include "double_driver.h"

#define BLOCKS_MAX 8192
#define DEVICES_MAX (LEDGER_ROWS - LEDGER_DEVICE)


struct block {
	uint64_t addr;
	uint64_t room_bytes; // rounded
	uint64_t bytes;
	void *note;          // the driver has bookkeeping in the program's heap
	int row;             // of the ledger
	bool is_live;
	bool is_pooled;      // survives a reset
};

pthread_mutex_t double_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[BLOCKS_MAX];
static int block_count, newest_free = -1;
static uint64_t next_addr[DEVICES_MAX];
uint64_t double_allocations, double_releases;
static struct ledger own_ledger;
struct ledger *double_ledger = &own_ledger;
bool double_is_initialized;
static __thread int context; // device + 1, 0 = none

uint64_t
double_setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

__attribute__((constructor)) static void
open_ledger(void)
{
	const char *path = getenv("KMEMDOUBLE_LEDGER");
	int fd = path == NULL ? -1 : open(path, O_RDWR | O_CREAT, 0644);

	if (fd < 0 || ftruncate(fd, sizeof(*double_ledger)) != 0)
		return;
	void *mapped = mmap(NULL, sizeof(*double_ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		double_ledger = mapped;
	close(fd);
}

uint64_t
double_live_bytes(int row)
{
	return double_ledger->rows[row].allocated_bytes - double_ledger->rows[row].freed_bytes;
}

static uint64_t
map_inner(uint64_t bytes, int protection)
{
	void *addr = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return 0;
	double_ledger->inner_bytes += protection == PROT_NONE ? 0 : bytes;
	return (uint64_t)addr;
}

static struct block *
find_free_locked(int row, uint64_t room_bytes)
{
	if (newest_free >= 0 && !blocks[newest_free].is_live && blocks[newest_free].row == row &&
	    blocks[newest_free].room_bytes == room_bytes)
		return &blocks[newest_free];
	for (int i = 0; i < block_count; i++) {
		if (!blocks[i].is_live && blocks[i].row == row && blocks[i].room_bytes == room_bytes)
			return &blocks[i];
	}
	return NULL;
}

static struct block *
give_device_locked(int row, uint64_t room_bytes)
{
	uint64_t *next = &next_addr[row - LEDGER_DEVICE];
	struct block *block = find_free_locked(row, room_bytes);

	if (block != NULL) {
		double_ledger->reused_addrs++;
		return block;
	}
	if (*next == 0 && (*next = map_inner(DEVICE_RANGE_BYTES, PROT_NONE)) == 0)
		return NULL;
	if (block_count == BLOCKS_MAX)
		return NULL;
	block = &blocks[block_count++];
	block->addr = *next;
	*next += room_bytes;
	return block;
}

static struct block *
give_host_locked(uint64_t room_bytes)
{
	struct block *block = find_free_locked(0, 0); // emptied by a release

	if (block == NULL && block_count < BLOCKS_MAX)
		block = &blocks[block_count++];
	if (block != NULL)
		block->addr = map_inner(room_bytes, PROT_READ | PROT_WRITE);
	return block != NULL && block->addr != 0 ? block : NULL;
}

uint64_t
double_capacity(void)
{
	return double_setting("KMEMDOUBLE_CAPACITY", DEVICE_RANGE_BYTES / 2) - double_setting("KMEMDOUBLE_OTHERS", 0);
}

static int
allocate(int row, uint64_t *addr, uint64_t bytes)
{
	uint64_t room_bytes = row >= LEDGER_DEVICE ? (bytes + 511) & ~UINT64_C(511) : (bytes + 4095) & ~UINT64_C(4095);
	struct ledger_row *account = &double_ledger->rows[row];
	struct block *block = NULL;
	void *note;

	if (!double_is_initialized)
		return CUDA_ABI_NOT_INITIALIZED;
	if (context == 0)
		return INVALID_CONTEXT;
	if (addr == NULL || bytes == 0)
		return INVALID_VALUE;
	note = malloc(48);
	pthread_mutex_lock(&double_mutex);
	double_allocations++;
	if (double_allocations != double_setting("KMEMDOUBLE_FAIL_NTH", 0) &&
	    (row < LEDGER_DEVICE || (bytes <= double_capacity() && double_live_bytes(row) + bytes <= double_capacity())))
		block = row >= LEDGER_DEVICE ? give_device_locked(row, room_bytes) : give_host_locked(room_bytes);
	if (block == NULL) {
		account->refused_count++;
		pthread_mutex_unlock(&double_mutex);
		free(note);
		return CUDA_ABI_OUT_OF_MEMORY;
	}
	*addr = block->addr;
	*block = (struct block){ block->addr, room_bytes, bytes, note, row, true, false };
	account->allocated_bytes += bytes;
	account->allocated_count++;
	if (double_live_bytes(row) > account->peak_bytes)
		account->peak_bytes = double_live_bytes(row);
	pthread_mutex_unlock(&double_mutex);
	return CUDA_ABI_SUCCESS;
}

static int
release(uint64_t addr, bool is_pinned)
{
	struct block *block = NULL;
	void *note;

	if (addr == 0)
		return is_pinned ? INVALID_VALUE : CUDA_ABI_SUCCESS;
	pthread_mutex_lock(&double_mutex);
	for (int i = 0; i < block_count && block == NULL; i++) {
		if (blocks[i].is_live && blocks[i].addr == addr && (blocks[i].row == LEDGER_PINNED) == is_pinned)
			block = &blocks[i];
	}
	if (block == NULL || ++double_releases == double_setting("KMEMDOUBLE_FAIL_FREE_NTH", 0)) {
		pthread_mutex_unlock(&double_mutex);
		return block == NULL ? INVALID_VALUE : ILLEGAL_ADDRESS;
	}
	double_ledger->rows[block->row].freed_bytes += block->bytes;
	double_ledger->rows[block->row].freed_count++;
	note = block->note;
	block->is_live = false;
	newest_free = (int)(block - blocks);
	if (block->row < LEDGER_DEVICE) {
		munmap((void *)block->addr, block->room_bytes);
		double_ledger->inner_bytes -= block->room_bytes;
		*block = (struct block){ 0 };
	}
	pthread_mutex_unlock(&double_mutex);
	free(note);
	return CUDA_ABI_SUCCESS;
}

/* ---- start and contexts ---- */

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **handle, int device);
int cuCtxSetCurrent(void *handle);
int cuMemAlloc(unsigned *addr, unsigned bytes);
int cuGetExportTable(const void **table, const void *id);

int
cuInit(unsigned flags)
{
	double_is_initialized = true;
	return flags == 0 ? CUDA_ABI_SUCCESS : INVALID_VALUE;
}

int
cuDriverGetVersion(int *version)
{
	*version = CUDA_ABI_NEWEST;
	return CUDA_ABI_SUCCESS;
}

int
cuDeviceGetCount(int *count)
{
	*count = (int)double_setting("KMEMDOUBLE_DEVICES", 1);
	return double_is_initialized ? CUDA_ABI_SUCCESS : CUDA_ABI_NOT_INITIALIZED;
}

int
cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal >= 0 && ordinal < (int)double_setting("KMEMDOUBLE_DEVICES", 1) ? CUDA_ABI_SUCCESS : 101;
}

int
cuDevicePrimaryCtxRetain(void **handle, int device)
{
	*handle = (void *)(uintptr_t)(device + 1);
	return cuDeviceGet(&device, device);
}

int
cuCtxSetCurrent(void *handle)
{
	context = (int)(uintptr_t)handle;
	return CUDA_ABI_SUCCESS;
}

int
cuCtxGetDevice(int *device)
{
	if (context == 0)
		return INVALID_CONTEXT;
	*device = context - 1;
	return CUDA_ABI_SUCCESS;
}

/* ---- memory ---- */

static int
device_row(void)
{
	return LEDGER_DEVICE + (context == 0 ? 0 : context - 1);
}

int
cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	if (context == 0)
		return INVALID_CONTEXT;
	*total_bytes = double_setting("KMEMDOUBLE_CAPACITY", DEVICE_RANGE_BYTES / 2);
	*free_bytes = double_capacity() - double_live_bytes(device_row());
	return CUDA_ABI_SUCCESS;
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
	return allocate(device_row(), (uint64_t *)addr, bytes);
}

int
cuMemAllocPitch_v2(cuda_device_addr *addr, size_t *pitch_bytes, size_t width_bytes, size_t height,
                   unsigned element_bytes)
{
	(void)element_bytes;
	*pitch_bytes = (width_bytes + 511) & ~(size_t)511;
	return allocate(device_row(), (uint64_t *)addr, *pitch_bytes * height);
}

int
cuMemAllocManaged(cuda_device_addr *addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return allocate(LEDGER_MANAGED, (uint64_t *)addr, bytes);
}

static int
allocate_pooled(cuda_device_addr *addr, size_t bytes)
{
	int result = allocate(device_row(), (uint64_t *)addr, bytes);

	pthread_mutex_lock(&double_mutex);
	for (int i = 0; result == CUDA_ABI_SUCCESS && i < block_count; i++) {
		if (blocks[i].is_live && blocks[i].addr == *addr)
			blocks[i].is_pooled = true;
	}
	pthread_mutex_unlock(&double_mutex);
	return result;
}

int
cuMemAllocAsync(cuda_device_addr *addr, size_t bytes, void *stream)
{
	(void)stream;
	return allocate_pooled(addr, bytes);
}

int
cuMemAllocAsync_ptsz(cuda_device_addr *addr, size_t bytes, void *stream)
{
	(void)stream;
	return allocate_pooled(addr, bytes);
}

int
cuMemAllocHost_v2(void **addr, size_t bytes)
{
	return allocate(LEDGER_PINNED, (uint64_t *)addr, bytes);
}

int
cuMemHostAlloc(void **addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return allocate(LEDGER_PINNED, (uint64_t *)addr, bytes);
}

int
cuMemFree_v2(cuda_device_addr addr)
{
	return release(addr, false);
}

int
cuMemFreeAsync(cuda_device_addr addr, void *stream)
{
	(void)stream;
	return release(addr, false);
}

int
cuMemFreeAsync_ptsz(cuda_device_addr addr, void *stream)
{
	(void)stream;
	return release(addr, false);
}

int
cuMemFreeHost(void *addr)
{
	return release((uint64_t)addr, true);
}

int
cuMemAllocFromPoolAsync(cuda_device_addr *addr, size_t bytes, void *pool, void *stream)
{
	(void)pool;
	(void)stream;
	return allocate_pooled(addr, bytes);
}

int
cuMemAllocFromPoolAsync_ptsz(cuda_device_addr *addr, size_t bytes, void *pool, void *stream)
{
	return cuMemAllocFromPoolAsync(addr, bytes, pool, stream);
}

int
cuMemHostRegister_v2(void *addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return addr == NULL || bytes == 0 ? INVALID_VALUE : CUDA_ABI_SUCCESS;
}

int
cuMemHostUnregister(void *addr)
{
	return addr == NULL ? INVALID_VALUE : CUDA_ABI_SUCCESS;
}

/* ---- arrays ---- */

static uint64_t
array_bytes(size_t width, size_t height, size_t depth, int format, unsigned channels)
{
	static const int sizes[] = { [0x01] = 1, [0x02] = 2, [0x03] = 4, [0x08] = 1, [0x09] = 2, [0x0a] = 4, [0x10] = 2, [0x20] = 4 };

	return (uint64_t)width * (height == 0 ? 1 : height) * (depth == 0 ? 1 : depth) * channels * (unsigned)sizes[format];
}

int
cuArrayCreate_v2(void **addr, const struct cuda_array *shape)
{
	return allocate(device_row(), (uint64_t *)addr, array_bytes(shape->width, shape->height, 0, shape->format, shape->channels));
}

int
cuArray3DCreate_v2(void **addr, const struct cuda_array_3d *shape)
{
	return allocate(device_row(), (uint64_t *)addr,
	                array_bytes(shape->width, shape->height, shape->depth, shape->format, shape->channels));
}

int
cuArrayDestroy(void *addr)
{
	return addr == NULL ? INVALID_VALUE : release((uint64_t)addr, false);
}

int
cuMipmappedArrayCreate(void **addr, const struct cuda_array_3d *shape, unsigned levels)
{
	uint64_t bytes = 0;

	for (unsigned level = 0; level < levels; level++)
		bytes += array_bytes(shape->width >> level ? shape->width >> level : 1, shape->height >> level, shape->depth >> level,
		                     shape->format, shape->channels);
	return allocate(device_row(), (uint64_t *)addr, bytes);
}

int
cuMipmappedArrayDestroy(void *addr)
{
	return cuArrayDestroy(addr);
}

/* ---- reset ---- */

int
cuDevicePrimaryCtxReset_v2(int device)
{
	bool is_only_one = true;

	pthread_mutex_lock(&double_mutex);
	for (int row = LEDGER_DEVICE; row < LEDGER_ROWS; row++)
		is_only_one = is_only_one && (row == LEDGER_DEVICE + device || double_live_bytes(row) == 0);
	pthread_mutex_unlock(&double_mutex);
	for (int i = 0; i < block_count; i++) {
		bool is_meant = blocks[i].row == LEDGER_DEVICE + device || (blocks[i].row < LEDGER_DEVICE && is_only_one);

		if (blocks[i].is_live && is_meant && !blocks[i].is_pooled)
			(void)release(blocks[i].addr, blocks[i].row == LEDGER_PINNED);
	}
	return CUDA_ABI_SUCCESS;
}

int
cuDevicePrimaryCtxReset(int device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

/* ---- lookup ---- */

static int
unknown_function(void)
{
	return NOT_SUPPORTED;
}

#define FOUND(exported, asked, version, per_thread) { asked, version, per_thread, (void *)exported },
#ifdef DOUBLE_DRIVER_11
#define cuGetProcAddress_v2 cuGetProcAddress
#endif
static const struct {
	const char *name;
	int version;
	bool is_per_thread;
	void *function;
} functions[] = { FOUND(cuInit, "cuInit", 2000, 0) FOUND(cuDriverGetVersion, "cuDriverGetVersion", 2020, 0)
	          FOUND(cuDeviceGetCount, "cuDeviceGetCount", 2000, 0) FOUND(cuDeviceGet, "cuDeviceGet", 2000, 0)
	          FOUND(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0)
	          FOUND(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 0)
	          FOUND(cuCtxGetDevice, "cuCtxGetDevice", 2000, 0) FOUND(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 0)
	          FOUND(cuMemAlloc, "cuMemAlloc", 2000, 0)
	          CUDA_ABI_DRIVER_FUNCTIONS(FOUND) };
#undef cuGetProcAddress_v2

static int
look_up(const char *name, void **function, int version, unsigned long long flags, int *status, const void *caller)
{
	int best = -1;
	Dl_info info;

	double_ledger->lookups++;
	if (dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libkmemshim.so") != NULL)
		double_ledger->lookups_by_shim++;
	for (int i = 0; i < (int)(sizeof(functions) / sizeof(functions[0])); i++) {
		bool wants_other_twin = functions[i].is_per_thread && (flags & CUDA_ABI_PER_THREAD_STREAM) == 0;

		if (strcmp(functions[i].name, name) == 0 && functions[i].version <= version && !wants_other_twin &&
		    (best < 0 || functions[i].version >= functions[best].version))
			best = i;
	}
	if (status != NULL)
		*status = best < 0;
	*function = best < 0 ? NULL : functions[best].function;
	if (best < 0 && double_setting("KMEMDOUBLE_GENERIC", 0) != 0)
		*function = (void *)unknown_function;
	return *function == NULL ? NOT_FOUND : CUDA_ABI_SUCCESS;
}

int
cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
	return look_up(name, function, version, flags, NULL, __builtin_return_address(0));
}

#ifndef DOUBLE_DRIVER_11
int
cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status)
{
	return look_up(name, function, version, flags, status, __builtin_return_address(0));
}
#endif

int
cuGetExportTable(const void **table, const void *id)
{
	(void)id;
	*table = NULL;
	return NOT_FOUND;
}
