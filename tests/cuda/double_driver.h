/*
 * double_driver.h - what the files of the driver double share. Hidden: the library shows only the driver's names.
 */
#ifndef DOUBLE_DRIVER_H
#define DOUBLE_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../shim/gpu/cuda_abi.h"
#include "double_ledger.h"

#define DEVICE_RANGE_BYTES (UINT64_C(1) << 36)

enum {
	INVALID_VALUE = 1,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	NOT_FOUND = 500,
	ILLEGAL_ADDRESS = 700,
	NOT_SUPPORTED = 801
};

/* The driver's names that the shim does not know. */
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **handle, int device);
int cuCtxSetCurrent(void *handle);
int cuStreamCreate(void **stream, unsigned flags);
int cuGreenCtxCreate(void **green, void *resources, int device, unsigned flags);
int cuCtxFromGreenCtx(void **handle, void *green);
int cuMemAlloc(unsigned *addr, unsigned bytes);
int cuMemAddressReserve(cuda_device_addr *addr, size_t bytes, size_t alignment, cuda_device_addr wanted,
                        unsigned long long flags);
int cuGetExportTable(const void **table, const void *id);

#pragma GCC visibility push(hidden)
int double_mem_alloc_newer(cuda_device_addr *addr, size_t bytes, unsigned flags);
extern pthread_mutex_t double_mutex; // over all below
extern struct ledger *double_ledger;
extern bool double_is_initialized;
extern uint64_t double_pool_kept[LEDGER_ROWS];       // by the pools of that row, for what they are asked next
extern uint64_t double_allocations, double_releases; // how many were asked for, for KMEMDOUBLE_FAIL_*

struct block {
	uint64_t addr;
	uint64_t room_bytes; // rounded
	uint64_t bytes;
	void *note;  // the driver has bookkeeping in the program's heap
	int row;     // of the ledger
	int context; // with which it ends; 0 = none, -1 - n = none, of pool n
	bool is_live;
};

uint64_t double_setting(const char *name, uint64_t otherwise);
void double_asked(const void *caller); // a function that changes nothing
uint64_t double_live_bytes(int row);
uint64_t double_capacity(void);                      // of a device, for us
void double_account_locked(int row, uint64_t bytes); // given out
void double_account_freed_locked(int row, uint64_t bytes);
/* The result of an entry point. addr is the caller's out parameter; of a registration it says where. */
int double_allocate(int row, uint64_t *addr, uint64_t bytes, int context);
int double_release(uint64_t addr, int row); // row: what it must be, -1 = what is on a device
bool double_block(uint64_t addr, struct block *found);
bool double_opened(uint64_t addr, struct block *found); // the same of what others gave out
void double_opened_ended_locked(int context);
void double_context_ended(int context);
int double_context(void); // of this thread: device + 1 of a primary one, more of others, 0 = none
int double_context_device(void);
int double_stream_device(const void *stream);
#pragma GCC visibility pop

#endif
