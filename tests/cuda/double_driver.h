/*
 * double_driver.h - what the two files of the driver double share. Hidden: the library shows only the driver's names.
 */
#ifndef DOUBLE_DRIVER_H
#define DOUBLE_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../shim/cuda_abi.h"
#include "double_ledger.h"

#define DEVICE_RANGE_BYTES (UINT64_C(1) << 36)

enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, NOT_SUPPORTED = 801 };

#pragma GCC visibility push(hidden)
extern pthread_mutex_t double_mutex;        // over all below
extern struct ledger *double_ledger;
extern bool double_is_initialized;
extern uint64_t double_allocations, double_releases; // how many were asked for, for KMEMDOUBLE_FAIL_*

uint64_t double_setting(const char *name, uint64_t otherwise);
uint64_t double_live_bytes(int row);
uint64_t double_capacity(void); // of a device, for us
#pragma GCC visibility pop

#endif
