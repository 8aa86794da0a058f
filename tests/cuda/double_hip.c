/*
 * double_hip.c - a libamdhip64.so.6 of our own: two devices, each with the capacity of HIPDOUBLE_CAPACITY bytes, and what is alive of
 * each kind, for the program to print. Programs with one thread. A stream's handle is its device's number plus one.
 */
#include <stdlib.h>

#include "../../shim/gpu/hip_abi.h"

int hipSetDevice(int device);
unsigned long long hip_double_live(int kind);
enum { DEVICES = 2, PINNED = DEVICES, MANAGED, REGISTERED, IMPORTED, KINDS, BLOCKS = 4096, SHARED_BYTES = 123456 };

static struct block {
	void *addr;
	int kind;
	size_t bytes;
	int references; // handles and mappings of physical memory, or how often it was opened
	void *mapped;
} blocks[BLOCKS];
static unsigned long long live[KINDS];
static int current;

static size_t
capacity(void)
{
	const char *text = getenv("HIPDOUBLE_CAPACITY");

	return text != NULL ? strtoull(text, NULL, 10) : 1ull << 40;
}

/* No two blocks overlap: an allocator that cuts this one into pieces never meets an address of the next. Nobody reads what is there. */
static void *
place(size_t bytes)
{
	static size_t next = (size_t)0x4d << 40;
	void *addr = (void *)next;

	next += (bytes + 4095) & ~(size_t)4095;
	return addr;
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
		*addr = given != NULL ? given : place(bytes);
		blocks[i] = (struct block){ *addr, kind, bytes, 1, NULL };
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

unsigned long long
hip_double_live(int kind)
{
	return live[kind];
}
int
hipSetDevice(int device)
{
	current = device;
	return CUDA_ABI_SUCCESS;
}

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

int
hipMalloc(void **addr, size_t bytes)
{
	return take(addr, current, bytes, NULL);
}
// and so is ours
int
hipExtMallocWithFlags(void **addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return hipMalloc(addr, bytes);
}
int
hipMallocManaged(void **addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return take(addr, MANAGED, bytes, NULL);
}

int
hipMallocAsync(void **addr, size_t bytes, void *stream)
{
	return take(addr, stream != NULL ? (int)(size_t)stream - 1 : current, bytes, NULL);
}
int
hipHostMalloc(void **addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return take(addr, PINNED, bytes, NULL);
}
int
hipMallocHost(void **addr, size_t bytes)
{
	return hipHostMalloc(addr, bytes, 0);
}
int
hipHostRegister(void *addr, size_t bytes, unsigned flags)
{
	(void)flags;
	return take(&(void *){ NULL }, REGISTERED, bytes, addr);
}
int
hipHostUnregister(void *addr)
{
	return give_back(addr, REGISTERED, REGISTERED);
}
int
hipFree(void *addr)
{
	return give_back_device(addr);
}
int
hipFreeAsync(void *addr, void *stream)
{
	(void)stream;
	return give_back_device(addr);
}
int
hipFreeArray(void *addr)
{
	return give_back_device(addr);
}
int
hipHostFree(void *addr)
{
	return give_back(addr, PINNED, PINNED);
}

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

/* A thread's first question may take memory: as above. */
int
hipPointerGetAttributes(struct hip_attributes *attributes, const void *addr)
{
	for (int i = 0; addr != NULL && i < BLOCKS; i++) {
		if (blocks[i].addr != addr)
			continue;
		attributes->device = blocks[i].kind < DEVICES ? blocks[i].kind : 0;
		return CUDA_ABI_SUCCESS;
	}
	return 1;
}

int
hipMemGetAddressRange(void **start, size_t *bytes, void *addr)
{
	for (int i = 0; i < BLOCKS; i++) {
		if (addr == NULL || blocks[i].addr != addr)
			continue;
		*start = addr;
		*bytes = blocks[i].bytes;
		return CUDA_ABI_SUCCESS;
	}
	return 1;
}

/* ---- physical memory: its handle is the block's address; memory of others has a kind of its own ---- */

static struct block *
block_of(const void *handle, const void *mapped)
{
	for (int i = 0; i < BLOCKS; i++) {
		if (handle != NULL ? blocks[i].addr == handle : blocks[i].addr != NULL && blocks[i].mapped == mapped)
			return &blocks[i];
	}
	return NULL;
}

static int
let_go(struct block *block)
{
	if (block == NULL || --block->references > 0)
		return block == NULL;
	return give_back(block->addr, block->kind, block->kind);
}

int
hipMemCreate(void **handle, size_t bytes, const struct cuda_memory_place *place, unsigned long long flags)
{
	return flags != 0 || place->location_type != CUDA_LOCATION_DEVICE ? 1
	                                                                  : take(handle, place->location_id, bytes, NULL);
}

int
hipMemRelease(void *handle)
{
	return let_go(block_of(handle, NULL));
}

int
hipMemRetainAllocationHandle(void **handle, void *addr)
{
	struct block *block = block_of(NULL, addr);

	if (block == NULL)
		return 1;
	block->references++;
	*handle = block->addr;
	return CUDA_ABI_SUCCESS;
}

int
hipMemMap(void *addr, size_t bytes, size_t offset, void *handle, unsigned long long flags)
{
	struct block *block = block_of(handle, NULL);

	if (block == NULL || bytes != block->bytes || offset != 0 || flags != 0)
		return 1;
	block->references++;
	block->mapped = addr;
	live[IMPORTED] += block->kind == IMPORTED ? bytes : 0;
	return CUDA_ABI_SUCCESS;
}

int
hipMemUnmap(void *addr, size_t bytes)
{
	struct block *block = block_of(NULL, addr);

	if (block == NULL)
		return 1;
	block->mapped = NULL;
	live[IMPORTED] -= block->kind == IMPORTED ? bytes : 0;
	return let_go(block);
}

/* Alive are its mappings. */
int
hipMemImportFromShareableHandle(void **handle, void *shared, int shared_as)
{
	int result = shared_as != 1 ? 1 : take(handle, IMPORTED, SHARED_BYTES, shared);

	live[IMPORTED] -= result == CUDA_ABI_SUCCESS ? SHARED_BYTES : 0;
	return result;
}

int
hipIpcOpenMemHandle(void **addr, struct cuda_ipc_handle handle, unsigned flags)
{
	void *given = *(void **)handle.bytes;
	struct block *block = block_of(given, NULL);

	if (block == NULL)
		return flags != 1 ? 1 : take(addr, IMPORTED, SHARED_BYTES, given);
	block->references++;
	*addr = given;
	return CUDA_ABI_SUCCESS;
}

int
hipIpcCloseMemHandle(void *addr)
{
	return let_go(block_of(addr, NULL));
}
