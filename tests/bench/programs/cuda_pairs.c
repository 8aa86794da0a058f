/*
 * cuda_pairs.c - pairs of cudaMalloc and cudaFree over the doubles of tests/cuda.
 *
 * The double's driver takes and gives back a block of the heap in each pair, as drivers do: what recording that costs is in here, too.
 *
 *   cuda_pairs PAIRS BYTES
 *
 * Context     Prints what steady.h says. Exit status 1 when the double refuses.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../../../shim/gpu/cuda_abi.h"
#include "steady.h"

int cudaSetDevice(int device);

static int
run(uint64_t pairs, size_t bytes)
{
	void *addr;
	int result = 0;

	for (uint64_t i = 0; i < pairs && result == 0; i++) {
		result = cudaMalloc(&addr, bytes);
		if (result == 0)
			result = cudaFree(addr);
	}
	return result;
}

int
main(int argc, char **argv)
{
	uint64_t pairs = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
	size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : 4096;
	struct steady_time start, end;

	// the double looks for settings in each call: what a recorder has in the environment must not count
	(void)clearenv();
	if (cudaSetDevice(0) != 0 || run(pairs / 4 + 1, bytes) != 0)
		return 1;
	start = steady_now();
	if (run(pairs, bytes) != 0)
		return 1;
	end = steady_now();
	steady_report(start, end, pairs);
	return 0;
}
