/*
 * capture_holders.c - reads and writes looks at who holds what (see capture_holders.h).
 */
#include "capture/capture_holders.h"

#include <unistd.h>

#include "base/memory.h"
#include "kmem_words.h"

#define PLACES 2u
#define CHUNKS (PLACES * KMEM_HOLDERS_BYTES / KMEM_CHUNK_BYTES)

static uint32_t
checksum_of(const struct kmem_holders *look)
{
	return kmem_checksum(KMEM_CHECKSUM_START, (const char *)look + sizeof(look->checksum),
	                     sizeof(*look) - sizeof(look->checksum));
}

static bool
is_empty(const struct kmem_holders *look)
{
	const unsigned char *bytes = (const unsigned char *)look;
	size_t i = 0;

	while (i < sizeof(*look) && bytes[i] == 0)
		i++;
	return i == sizeof(*look);
}

const struct kmem_holders *
capture_holders_newest(struct capture *capture)
{
	const struct capture_section *section = &capture->sections[KMEM_SECTION_HOLDERS];
	const struct kmem_holders *looks = (const struct kmem_holders *)(const void *)section->bytes;
	const struct kmem_holders *newest = NULL;

	for (size_t i = 0; i < PLACES && (i + 1) * sizeof(*looks) <= section->size_bytes; i++) {
		const struct kmem_holders *look = &looks[i];

		if (is_empty(look))
			continue;
		if (look->checksum != checksum_of(look) || look->text_bytes > sizeof(look->text))
			capture_damaged(
				capture, "section \"holders\": the checksum of look %zu is wrong: who held the memory then is left out",
				i);
		else if (newest == NULL || look->sequence > newest->sequence)
			newest = look;
	}
	return newest;
}

/* The byte in the file at which the section begins; 0 = there is none. Its chunks were made at once, so they lie side by side. */
static uint64_t
place_of(int fd)
{
	const size_t bytes = KMEM_CHUNKS_MAX * sizeof(struct kmem_chunk);
	OWNED struct kmem_chunk *directory = memory_zeroed(KMEM_CHUNKS_MAX, sizeof(*directory));
	uint32_t first = 0;
	uint32_t count = 0;

	if (pread(fd, directory, bytes, KMEM_DIRECTORY_OFFSET) == (ssize_t)bytes) {
		while (first < KMEM_CHUNKS_MAX && directory[first].section != KMEM_SECTION_HOLDERS)
			first++;
		while (first + count < KMEM_CHUNKS_MAX && count < CHUNKS &&
		       directory[first + count].section == KMEM_SECTION_HOLDERS &&
		       directory[first + count].inverted == (uint8_t)~KMEM_SECTION_HOLDERS)
			count++;
	}
	return count == CHUNKS ? KMEM_HEAD_BYTES + first * (uint64_t)KMEM_CHUNK_BYTES : 0;
}

bool
capture_holders_write(int fd, struct kmem_holders *look)
{
	uint64_t place = place_of(fd);

	if (place == 0)
		return false;
	look->checksum = checksum_of(look);
	place += (look->sequence % PLACES) * sizeof(*look);
	return pwrite(fd, look, sizeof(*look), (off_t)place) == (ssize_t)sizeof(*look);
}
