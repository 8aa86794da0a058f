/*
 * double_hip.c - a libamdhip64.so.6 of our own: two devices, each with the capacity of HIPDOUBLE_CAPACITY bytes, and what is alive of
 * each kind, for the program to print. Programs with one thread.
 */
#include <stdlib.h>

#include "../../shim/hip_abi.h"

int hipSetDevice(int device);
unsigned long long hip_double_live(int kind);
enum { DEVICES = 2, PINNED = DEVICES, MANAGED, REGISTERED, KINDS, BLOCKS = 4096 };

static struct block {
	void *addr;
	int kind;
	size_t bytes;
} blocks[BLOCKS];
static unsigned long long live[KINDS];
static int current;

static size_t
capacity(void)
{
	const char *text = getenv("HIPDOUBLE_CAPACITY");

	return text != NULL ? strtoull(text, NULL, 10) : 1ull << 40;
}

static int
take(void **addr, int kind, size_t bytes, void *given)
{
	if (addr == NULL)
		return 1; // hipErrorInvalidValue
	*addr = NULL;
	if (kind < DEVICES && bytes > capacity() - live[kind])
		return CUDA_ABI_OUT_OF_MEMORY;
	for (int i = 0; bytes != 0 && i < BLOCKS; i++) {
		if (blocks[i].addr != NULL)
			continue;
		*addr = given != NULL ? given : malloc(1);
		blocks[i] = (struct block){ *addr, kind, bytes };
		live[kind] += bytes;
		return CUDA_ABI_SUCCESS;
	}
	return bytes == 0 ? CUDA_ABI_SUCCESS : CUDA_ABI_OUT_OF_MEMORY;
}

static int
give_back(void *addr, int first_kind, int last_kind)
{
	for (int i = 0; addr != NULL && i < BLOCKS; i++) {
		if (blocks[i].addr != addr || blocks[i].kind < first_kind || blocks[i].kind > last_kind)
			continue;
		live[blocks[i].kind] -= blocks[i].bytes;
		if (blocks[i].kind != REGISTERED)
			free(addr);
		blocks[i].addr = NULL;
		return CUDA_ABI_SUCCESS;
	}
	return addr == NULL ? CUDA_ABI_SUCCESS : 1;
}

static int
give_back_device(void *addr)
{
	return give_back(addr, 0, DEVICES - 1) == CUDA_ABI_SUCCESS ? CUDA_ABI_SUCCESS : give_back(addr, MANAGED, MANAGED);
}

unsigned long long hip_double_live(int kind) { return live[kind]; }
int hipSetDevice(int device) { current = device; return CUDA_ABI_SUCCESS; }

/* A thread's first question may take memory. */
int
hipGetDevice(int *device)
{
	void *volatile taken = malloc(24);

	free(taken);
	*device = current;
	return CUDA_ABI_SUCCESS;
}

int
hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	*total_bytes = capacity();
	*free_bytes = *total_bytes - live[current];
	return CUDA_ABI_SUCCESS;
}

int hipMalloc(void **addr, size_t bytes) { return take(addr, current, bytes, NULL); }
int hipExtMallocWithFlags(void **addr, size_t bytes, unsigned flags) { (void)flags; return hipMalloc(addr, bytes); } // and so is ours
int hipMallocManaged(void **addr, size_t bytes, unsigned flags) { (void)flags; return take(addr, MANAGED, bytes, NULL); }
int hipMallocAsync(void **addr, size_t bytes, void *stream) { (void)stream; return take(addr, current, bytes, NULL); }
int hipHostMalloc(void **addr, size_t bytes, unsigned flags) { (void)flags; return take(addr, PINNED, bytes, NULL); }
int hipMallocHost(void **addr, size_t bytes) { return hipHostMalloc(addr, bytes, 0); }
int hipHostRegister(void *addr, size_t bytes, unsigned flags) { (void)flags; return take(&(void *){ NULL }, REGISTERED, bytes, addr); }
int hipHostUnregister(void *addr) { return give_back(addr, REGISTERED, REGISTERED); }
int hipFree(void *addr) { return give_back_device(addr); }
int hipFreeAsync(void *addr, void *stream) { (void)stream; return give_back_device(addr); }
int hipFreeArray(void *addr) { return give_back_device(addr); }
int hipHostFree(void *addr) { return give_back(addr, PINNED, PINNED); }

int
hipMallocPitch(void **addr, size_t *pitch_bytes, size_t width_bytes, size_t height)
{
	*pitch_bytes = (width_bytes + 255) / 256 * 256;
	return take(addr, current, *pitch_bytes * height, NULL);
}

int
hipMallocArray(void **addr, const struct cuda_channels *channels, size_t width, size_t height, unsigned flags)
{
	(void)flags;
	return take(addr, current, width * (height + (height == 0)) * (size_t)channels->bits[0] / 8, NULL);
}

int
hipDeviceReset(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		if (blocks[i].addr != NULL && blocks[i].kind == current)
			(void)give_back(blocks[i].addr, current, current);
	}
	return CUDA_ABI_SUCCESS;
}
