/*
 * double_driver.c - a libcuda.so.1 of our own: the driver's allocation functions without a device.
 *
 * Device addresses come from a reserved range and are given out again right after a release; pinned and managed
 * memory is real. Contexts are per thread, and are needed as in the real driver. What it gave out is in the ledger
 * (double_ledger.h). This file keeps the books; the entry points are in double_memory.c, double_contexts.c, double_objects.c.
 *
 *   KMEMDOUBLE_DEVICES        how many devices; 1
 *   KMEMDOUBLE_CAPACITY       bytes per device; no limit
 *   KMEMDOUBLE_OTHERS         bytes of these that others hold: contexts, other processes
 *   KMEMDOUBLE_FAIL_NTH       this allocation, counted from 1 over all kinds, is refused
 *   KMEMDOUBLE_FAIL_FREE_NTH  this release of a live block fails with 700 and double_releases nothing
 *   KMEMDOUBLE_INIT           what cuInit answers
 *   KMEMDOUBLE_RESULT         what every allocation answers, and nothing else
 *   KMEMDOUBLE_CARELESS       1: says yes to anything that it could not give out
 *   KMEMDOUBLE_UNLOADING      from this release on CUDA is being torn down, and says so
 *   KMEMDOUBLE_NEWER          1: has another cuMemAlloc, of a version that nobody knows yet
 *   KMEMDOUBLE_POOLS_KEEP     1: pools keep for themselves what is given back to them
 *   KMEMDOUBLE_QUESTIONS      1: counts what the shim asks
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

#include "../../shim/gpu/cuda_abi.h"
#include "double_driver.h"

#define BLOCKS_MAX 8192
#define NEWER_VERSION 14000

pthread_mutex_t double_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[BLOCKS_MAX];
static int block_count, newest_free = -1;
static uint64_t next_addr[LEDGER_ROWS];
uint64_t double_allocations, double_releases;
static struct ledger own_ledger;
struct ledger *double_ledger = &own_ledger;
bool double_is_initialized;
uint64_t double_pool_kept[LEDGER_ROWS];
static bool counts_questions;

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

	counts_questions = double_setting("KMEMDOUBLE_QUESTIONS", 0) != 0;
	if (fd < 0 || ftruncate(fd, sizeof(*double_ledger)) != 0)
		return;
	void *mapped = mmap(NULL, sizeof(*double_ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		double_ledger = mapped;
	close(fd);
}

static bool
is_shim(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libkmemshim.so") != NULL;
}

void
double_asked(const void *caller)
{
	if (counts_questions && is_shim(caller))
		double_ledger->questions++;
}

uint64_t
double_live_bytes(int row)
{
	return double_ledger->rows[row].allocated_bytes - double_ledger->rows[row].freed_bytes;
}

void
double_account_locked(int row, uint64_t bytes)
{
	struct ledger_row *account = &double_ledger->rows[row];

	account->allocated_bytes += bytes;
	account->allocated_count++;
	if (double_live_bytes(row) > account->peak_bytes)
		account->peak_bytes = double_live_bytes(row);
}

void
double_account_freed_locked(int row, uint64_t bytes)
{
	double_ledger->rows[row].freed_bytes += bytes;
	double_ledger->rows[row].freed_count++;
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
	uint64_t *next = &next_addr[row];
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
give_host_locked(int row, uint64_t addr, uint64_t room_bytes)
{
	struct block *block = find_free_locked(0, 0); // emptied by a release

	if (block == NULL && block_count < BLOCKS_MAX)
		block = &blocks[block_count++];
	if (block != NULL)
		block->addr = row == LEDGER_REGISTERED ? addr : map_inner(room_bytes, PROT_READ | PROT_WRITE);
	return block != NULL && block->addr != 0 ? block : NULL;
}

uint64_t
double_capacity(void)
{
	return double_setting("KMEMDOUBLE_CAPACITY", DEVICE_RANGE_BYTES / 2) - double_setting("KMEMDOUBLE_OTHERS", 0);
}

static bool
is_on_host(int row)
{
	return row == LEDGER_PINNED || row == LEDGER_MANAGED || row == LEDGER_REGISTERED;
}

static bool
has_room_locked(int row, uint64_t bytes)
{
	uint64_t capacity = double_capacity();

	return row < LEDGER_DEVICE ||
	       (bytes <= capacity && double_live_bytes(row) + double_pool_kept[row] + bytes <= capacity);
}

int
double_allocate(int row, uint64_t *addr, uint64_t bytes, int context)
{
	uint64_t room_bytes = is_on_host(row) ? (bytes + 4095) & ~UINT64_C(4095) : (bytes + 511) & ~UINT64_C(511);
	struct block *block = NULL;
	void *note;

	if (double_setting("KMEMDOUBLE_RESULT", UINT64_MAX) != UINT64_MAX)
		return (int)double_setting("KMEMDOUBLE_RESULT", 0);
	if (!double_is_initialized)
		return CUDA_ABI_NOT_INITIALIZED;
	if (double_context() == 0)
		return INVALID_CONTEXT;
	if (double_setting("KMEMDOUBLE_CARELESS", 0) != 0 && (addr == NULL || bytes > DEVICE_RANGE_BYTES)) {
		if (addr != NULL)
			*addr = UINT64_C(0x7e0000000000);
		return CUDA_ABI_SUCCESS;
	}
	if (addr == NULL || bytes == 0)
		return INVALID_VALUE;
	note = malloc(48);
	pthread_mutex_lock(&double_mutex);
	double_allocations++;
	if (double_allocations != double_setting("KMEMDOUBLE_FAIL_NTH", 0) && has_room_locked(row, bytes))
		block = is_on_host(row) ? give_host_locked(row, *addr, room_bytes) : give_device_locked(row, room_bytes);
	if (block == NULL) {
		double_ledger->rows[row].refused_count++;
		pthread_mutex_unlock(&double_mutex);
		free(note);
		return CUDA_ABI_OUT_OF_MEMORY;
	}
	*addr = block->addr;
	*block = (struct block){ block->addr, room_bytes, bytes, note, row, context, true };
	double_account_locked(row, bytes);
	pthread_mutex_unlock(&double_mutex);
	return CUDA_ABI_SUCCESS;
}

static struct block *
find_live_locked(uint64_t addr, int row)
{
	for (int i = 0; i < block_count; i++) {
		bool is_meant = row < 0 ? blocks[i].row != LEDGER_PINNED && blocks[i].row != LEDGER_REGISTERED
		                        : blocks[i].row == row;

		if (blocks[i].is_live && blocks[i].addr == addr && is_meant)
			return &blocks[i];
	}
	return NULL;
}

static void
end_locked(struct block *block)
{
	double_account_freed_locked(block->row, block->bytes);
	block->is_live = false;
	newest_free = (int)(block - blocks);
	if (!is_on_host(block->row))
		return;
	if (block->row != LEDGER_REGISTERED) {
		munmap((void *)block->addr, block->room_bytes);
		double_ledger->inner_bytes -= block->room_bytes;
	}
	*block = (struct block){ 0 };
}

/* KMEMDOUBLE_UNLOADING: from this release on CUDA is gone, and says so. */
int
double_release(uint64_t addr, int row)
{
	int result = CUDA_ABI_SUCCESS;
	struct block *block;
	void *note;

	if (addr == 0)
		return row >= 0 ? INVALID_VALUE : CUDA_ABI_SUCCESS;
	pthread_mutex_lock(&double_mutex);
	block = find_live_locked(addr, row);
	if (block == NULL || ++double_releases == double_setting("KMEMDOUBLE_FAIL_FREE_NTH", 0)) {
		pthread_mutex_unlock(&double_mutex);
		return block == NULL ? INVALID_VALUE : ILLEGAL_ADDRESS;
	}
	if (double_releases >= double_setting("KMEMDOUBLE_UNLOADING", UINT64_MAX))
		result = CUDA_ABI_UNLOADING;
	note = block->note;
	end_locked(block);
	pthread_mutex_unlock(&double_mutex);
	free(note);
	return result;
}

bool
double_block(uint64_t addr, struct block *found)
{
	bool is_known = false;

	pthread_mutex_lock(&double_mutex);
	for (int i = 0; i < block_count && !is_known; i++) {
		is_known = blocks[i].is_live && blocks[i].addr == addr;
		*found = blocks[i];
	}
	pthread_mutex_unlock(&double_mutex);
	return is_known;
}

void
double_context_ended(int context)
{
	pthread_mutex_lock(&double_mutex);
	for (int i = 0; i < block_count; i++) {
		if (!blocks[i].is_live || blocks[i].context != context)
			continue;
		free(blocks[i].note);
		end_locked(&blocks[i]);
	}
	double_opened_ended_locked(context);
	pthread_mutex_unlock(&double_mutex);
}

/* ---- start ---- */

int
cuInit(unsigned flags)
{
	uint64_t failure = double_setting("KMEMDOUBLE_INIT", 0);

	double_is_initialized = failure == 0;
	return failure != 0 ? (int)failure : flags == 0 ? CUDA_ABI_SUCCESS : INVALID_VALUE;
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
	return ordinal >= 0 && ordinal < (int)double_setting("KMEMDOUBLE_DEVICES", 1) ? CUDA_ABI_SUCCESS : INVALID_DEVICE;
}

/* ---- lookup ---- */

static int
unknown_function(void)
{
	return NOT_SUPPORTED;
}

#define FOUND(exported, asked, version, per_thread) { asked, version, per_thread, (void *)exported },
#define FOUND_ROW(exported, parameters, asked, version, per_thread) FOUND(exported, asked, version, per_thread)
#ifdef DOUBLE_DRIVER_11
#define cuGetProcAddress_v2 cuGetProcAddress
#endif
static const struct {
	const char *name;
	int version;
	bool is_per_thread;
	void *function;
} functions[] = {
	FOUND(cuDriverGetVersion, "cuDriverGetVersion", 2020, 0) FOUND(cuDeviceGetCount, "cuDeviceGetCount", 2000, 0)
		FOUND(cuDeviceGet, "cuDeviceGet", 2000, 0) FOUND(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0)
			FOUND(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 0) FOUND(cuStreamCreate, "cuStreamCreate", 2000, 0)
				FOUND(cuCtxGetDevice, "cuCtxGetDevice", 2000, 0) FOUND(cuMemAlloc, "cuMemAlloc", 2000, 0)
					FOUND(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 0)
						FOUND(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, 0)
							FOUND(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, 0)
								FOUND(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, 0)
									FOUND(double_mem_alloc_newer, "cuMemAlloc", NEWER_VERSION, 0)
										CUDA_ABI_DRIVER_FUNCTIONS(FOUND_ROW)
};
#undef cuGetProcAddress_v2

static int
look_up(const char *name, void **function, int version, unsigned long long flags, int *status, const void *caller)
{
	int best = -1;

	if (name == NULL || function == NULL)
		return INVALID_VALUE;
	double_ledger->lookups++;
	if (is_shim(caller))
		double_ledger->lookups_by_shim++;
	for (int i = 0; i < (int)(sizeof(functions) / sizeof(functions[0])); i++) {
		bool wants_other_twin = functions[i].is_per_thread && (flags & CUDA_ABI_PER_THREAD_STREAM) == 0;

		bool is_there = functions[i].version != NEWER_VERSION || double_setting("KMEMDOUBLE_NEWER", 0) != 0;

		if (is_there && strcmp(functions[i].name, name) == 0 && functions[i].version <= version && !wants_other_twin &&
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
