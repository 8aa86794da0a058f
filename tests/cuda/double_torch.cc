/*
 * double_torch.cc - PyTorch's two libraries, as far as device memory goes.
 *
 * Without DOUBLE_ALLOCATOR: libc10.so, which is told of blocks, in one of the three forms that PyTorch had (DOUBLE_FORM
 * 0, 1, 2: 1.6, 1.10, 2.x). It counts what it was told: whatever stands in front of it must pass it on.
 * With it: libc10_cuda.so, a caching allocator over cudaMalloc: segments of 2 MiB, or as large as the request; blocks in
 * multiples of 512 bytes; one request after the other, under a mutex.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#ifndef DOUBLE_FORM
#define DOUBLE_FORM 2
#endif

namespace c10
{
struct Device {
	int8_t type, index;
};
#if DOUBLE_FORM == 0
#define REPORT(addr, bytes, allocated, reserved, device) reportMemoryUsageToProfiler(addr, bytes, device)
#define REFUSE(bytes, allocated, reserved, device) \
	reportOutOfMemoryToProfiler(int64_t(bytes), int64_t(allocated), int64_t(reserved), device)
void reportMemoryUsageToProfiler(void *addr, int64_t bytes, Device device);
void reportOutOfMemoryToProfiler(int64_t bytes, int64_t allocated, int64_t reserved, Device device);
#elif DOUBLE_FORM == 1
#define REPORT(addr, bytes, allocated, reserved, device) \
	reportMemoryUsageToProfiler(addr, bytes, int64_t(allocated), int64_t(reserved), device)
#define REFUSE(bytes, allocated, reserved, device) \
	reportOutOfMemoryToProfiler(size_t(bytes), size_t(allocated), size_t(reserved), device)
void reportMemoryUsageToProfiler(void *addr, int64_t bytes, int64_t allocated, int64_t reserved, Device device);
void reportOutOfMemoryToProfiler(size_t bytes, size_t allocated, size_t reserved, Device device);
#else
#define REPORT(addr, bytes, allocated, reserved, device) \
	reportMemoryUsageToProfiler(addr, bytes, size_t(allocated), size_t(reserved), device)
#define REFUSE(bytes, allocated, reserved, device) \
	reportOutOfMemoryToProfiler(int64_t(bytes), size_t(allocated), size_t(reserved), device)
void reportMemoryUsageToProfiler(void *addr, int64_t bytes, size_t allocated, size_t reserved, Device device);
void reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated, size_t reserved, Device device);
#endif
} // namespace c10

#ifndef DOUBLE_ALLOCATOR

static long reports, failed_requests;
static int64_t told_bytes;

extern "C" void
c10_told(long *blocks, int64_t *bytes, long *refused)
{
	*blocks = reports;
	*bytes = told_bytes;
	*refused = failed_requests;
}

namespace c10
{
#if DOUBLE_FORM == 0
void
reportMemoryUsageToProfiler(void *, int64_t bytes, Device)
#elif DOUBLE_FORM == 1
void
reportMemoryUsageToProfiler(void *, int64_t bytes, int64_t, int64_t, Device)
#else
void
reportMemoryUsageToProfiler(void *, int64_t bytes, size_t, size_t, Device)
#endif
{
	reports++;
	told_bytes += bytes;
}

#if DOUBLE_FORM == 1
void
reportOutOfMemoryToProfiler(size_t, size_t, size_t, Device)
#elif DOUBLE_FORM == 0
void
reportOutOfMemoryToProfiler(int64_t, int64_t, int64_t, Device)
#else
void
reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device)
#endif
{
	failed_requests++;
}
} // namespace c10

#else

extern "C" int cudaMalloc(void **addr, size_t bytes);
extern "C" int cudaHostAlloc(void **addr, size_t bytes, unsigned flags);
extern "C" int cudaSetDevice(int device);

#ifndef DOUBLE_DEVICE
#define DOUBLE_DEVICE 1 // c10::DeviceType::CUDA
#endif

static std::mutex mutex;
static const size_t SEGMENT = 2 << 20, ROUND = 512;
static const int BLOCKS = 8192;
static struct Block {
	char *addr;
	size_t bytes;
	int device;
	bool is_free;
} blocks[BLOCKS]; // those of a segment follow each other; kept for ever, split and never joined
static int block_count;
static size_t allocated_bytes, reserved_bytes;

static Block *
take(size_t bytes, int device)
{
	for (int i = 0; i < block_count; i++) {
		if (!blocks[i].is_free || blocks[i].bytes < bytes || blocks[i].device != device)
			continue;
		if (blocks[i].bytes > bytes && block_count < BLOCKS) {
			blocks[block_count++] = { blocks[i].addr + bytes, blocks[i].bytes - bytes, device, true };
			blocks[i].bytes = bytes;
		}
		return &blocks[i];
	}
	return nullptr;
}

extern "C" void *
c10_cuda_allocate(size_t bytes, int device)
{
	std::lock_guard<std::mutex> guard(mutex);
	size_t room = (bytes + ROUND - 1) / ROUND * ROUND, segment = room > SEGMENT ? room : SEGMENT;
	Block *block = take(room, device);
	void *addr;

	if (block == nullptr && block_count < BLOCKS && cudaSetDevice(device) == 0 && cudaMalloc(&addr, segment) == 0) {
		blocks[block_count++] = { static_cast<char *>(addr), segment, device, true };
		reserved_bytes += segment;
		block = take(room, device);
	}
	c10::Device where = { DOUBLE_DEVICE, static_cast<int8_t>(device) };
	if (block == nullptr) {
		c10::REFUSE(bytes, allocated_bytes, reserved_bytes, where);
		return nullptr;
	}
	block->is_free = false;
	allocated_bytes += block->bytes;
	c10::REPORT(DOUBLE_FORM == 0 ? static_cast<void *>(block) : block->addr, static_cast<int64_t>(block->bytes),
	            allocated_bytes, reserved_bytes, where);
	return block->addr;
}

extern "C" void
c10_cuda_release(void *addr)
{
	std::lock_guard<std::mutex> guard(mutex);

	for (int i = 0; i < block_count; i++) {
		if (blocks[i].addr != addr || blocks[i].is_free)
			continue;
		c10::Device where = { DOUBLE_DEVICE, static_cast<int8_t>(blocks[i].device) };
		blocks[i].is_free = true;
		allocated_bytes -= blocks[i].bytes;
		c10::REPORT(DOUBLE_FORM == 0 ? static_cast<void *>(&blocks[i]) : addr, -static_cast<int64_t>(blocks[i].bytes),
		            allocated_bytes, reserved_bytes, where);
		return;
	}
}

/* As PyTorch's allocator of pinned memory does: in powers of two. */
extern "C" void *
c10_cuda_pin(size_t bytes)
{
	size_t room = 1;
	void *addr;

	while (room < bytes)
		room *= 2;
	return cudaHostAlloc(&addr, room, 0) == 0 ? addr : nullptr;
}

/* For measuring: as many blocks as that, one after the other. */
extern "C" void
c10_cuda_churn(int count, size_t bytes, int device)
{
	for (int i = 0; i < count; i++)
		c10_cuda_release(c10_cuda_allocate(bytes, device));
}

#endif
