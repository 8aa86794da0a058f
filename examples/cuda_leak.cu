// expect: leaks cuda:0 where=cuda_leak.cu:25 live_count=2000 live_bytes=2048000
/*
 * cuda_leak.cu - one device buffer per step is forgotten.
 *
 * Each step takes a scratch buffer, which it gives back, and a buffer for its loss, which it does not. nvcc links
 * the CUDA runtime statically unless told otherwise (-cudart shared); the report is the same.
 */
#include <cstdio>
#include <cuda_runtime_api.h>

constexpr int steps = 2000;
constexpr size_t loss_bytes = 1024;
constexpr size_t scratch_bytes = 65536;

static bool
run_step(void)
{
	void *scratch;
	void *loss;

	if (cudaMalloc(&scratch, scratch_bytes) != cudaSuccess)
		return false;
	if (cudaFree(scratch) != cudaSuccess)
		return false;
	return cudaMalloc(&loss, loss_bytes) == cudaSuccess; // and the loss is forgotten
}

int
main(void)
{
	for (int step = 0; step < steps; step++) {
		if (!run_step()) {
			std::printf("step %d: %s\n", step, cudaGetErrorString(cudaGetLastError()));
			return 1;
		}
	}
	std::printf("%d steps\n", steps);
	return 0;
}
