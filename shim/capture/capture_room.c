/* capture_room.c - see capture_room.h. */
#include "capture/capture_room.h"

#include "base/raw_sys.h"

#define FRONT_BYTES ((size_t)4096)

size_t
capture_room_bytes(enum kmem_section kind)
{
	static const size_t wanted[KMEM_SECTION_COUNT] = {
		[KMEM_SECTION_SITES] = (size_t)128 << 20,
		[KMEM_SECTION_GENERATIONS] = (size_t)128 << 20,
		[KMEM_SECTION_RECORDS] = (size_t)256 << 20,
	};
	size_t most = raw_reserve_max();
	size_t bytes = wanted[kind] < most ? wanted[kind] : most - most % KMEM_CHUNK_BYTES;

	return bytes < KMEM_CHUNK_BYTES ? KMEM_CHUNK_BYTES : bytes;
}

char *
capture_room_reserve(size_t bytes)
{
	char *front = raw_reserve(KMEM_OWN_CAPTURE, FRONT_BYTES + bytes, PROT_NONE);

	if (front == NULL)
		return NULL;
	if (raw_syscall(SYS_mprotect, front, FRONT_BYTES, PROT_READ | PROT_WRITE) == 0)
		return front + FRONT_BYTES;
	raw_unreserve(front, FRONT_BYTES + bytes);
	return NULL;
}
