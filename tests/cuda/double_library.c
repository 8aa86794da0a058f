/*
 * double_library.c - a library that takes device memory for itself, under the name of each of those that do: cuBLAS, cuDNN, NCCL, XLA.
 */
#include <stddef.h>

int cudaMalloc(void **addr, size_t bytes);
int cudaFree(void *addr);
void *library_take(size_t bytes);
void library_give_back(void *addr);

void *
library_take(size_t bytes)
{
	void *addr;

	return cudaMalloc(&addr, bytes) == 0 ? addr : NULL;
}

void
library_give_back(void *addr)
{
	(void)cudaFree(addr);
}
