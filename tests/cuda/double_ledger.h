/*
 * double_ledger.h - what the driver double says it gave out: the oracle of test_cuda.py.
 *
 * The file named by KMEMDOUBLE_LEDGER is a mapping of struct ledger: current at any moment, so it is also there
 * after SIGKILL. Row numbers are those of the domain table in include/kmem_format.h: 5 pinned, 6 managed, 8 + n
 * device n; but 0 to 2 are the rows 56 to 58 there: registered, imported, graphs'. test_cuda.py reads it with struct.unpack; all
 * fields are 64 bits.
 */
#ifndef DOUBLE_LEDGER_H
#define DOUBLE_LEDGER_H

#include <stdint.h>

#define LEDGER_ROWS 16
#define LEDGER_REGISTERED 0
#define LEDGER_IMPORTED 1
#define LEDGER_GRAPH 2
#define LEDGER_PINNED 5
#define LEDGER_MANAGED 6
#define LEDGER_DEVICE 8

struct ledger_row {
	uint64_t allocated_bytes;
	uint64_t freed_bytes;
	uint64_t allocated_count;
	uint64_t freed_count;
	uint64_t peak_bytes;
	uint64_t refused_count; // requests answered with out of memory
};

struct ledger {
	struct ledger_row rows[LEDGER_ROWS];
	uint64_t lookups;         // calls of cuGetProcAddress and cuGetProcAddress_v2
	uint64_t lookups_by_shim; // of those, the ones that libkmemshim.so passed on
	uint64_t reused_addrs;    // allocations that got an address which was given out before
	uint64_t inner_bytes;     // mapped by the driver for itself and for host memory, still mapped
	uint64_t questions;       // of libkmemshim.so, with KMEMDOUBLE_QUESTIONS
};

#endif
