/*
 * workload_parts.h - what the files of the workloads share.
 */
#ifndef WORKLOAD_PARTS_H
#define WORKLOAD_PARTS_H

#include <stdio.h>
#include <stdlib.h>

#include "workload.h"

#define MUST(call)                                                                       \
	do {                                                                                 \
		int must_result = (call);                                                        \
		if (must_result != 0) {                                                          \
			fprintf(stderr, "%s:%d: %s = %d\n", __FILE__, __LINE__, #call, must_result); \
			exit(2);                                                                     \
		}                                                                                \
	} while (0)

#pragma GCC visibility push(hidden)
extern const struct cuda_api *api; // of this run

void workload_physical(void);
void workload_in_threads(size_t count, void *(*run)(void *)); // at most 8; they get 1, 2, ...
void workload_physical_threads(void);
void workload_imports(void);
void workload_imports_reset(void);
void workload_imports_threads(void);
void workload_imported_handles(void);
#pragma GCC visibility pop

#endif
