/*
 * capture_check.h - is this file a capture that keeps the invariants F1 to F5? For tests; reads the whole file.
 */
#ifndef CAPTURE_CHECK_H
#define CAPTURE_CHECK_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kmem_words.h"

struct capture {
	char *bytes;
	size_t size;
	bool has_holes;                    // not all of its blocks were allocated on disk
	char *section[KMEM_SECTION_COUNT]; // joined
	size_t section_bytes[KMEM_SECTION_COUNT];
};

__attribute__((format(printf, 1, 2))) static inline bool
capture_fail(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fputc('\n', stderr);
	return false;
}

static inline struct kmem_header *
capture_header(const struct capture *capture)
{
	return (struct kmem_header *)(void *)capture->bytes;
}

static inline void
capture_drop(struct capture *capture)
{
	free(capture->bytes);
	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++)
		free(capture->section[i]);
	memset(capture, 0, sizeof(*capture));
}

/* Reads and joins; false when the directory leads past the end of the file (F2). */
static inline bool
capture_read(const char *path, struct capture *capture)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(capture, 0, sizeof(*capture));
	if (fd < 0 || fstat(fd, &info) != 0)
		return capture_fail("%s: cannot be read", path);
	capture->size = (size_t)info.st_size;
	capture->has_holes = (size_t)info.st_blocks * 512 < capture->size;
	capture->bytes = malloc(capture->size + 1);
	for (size_t done = 0; done < capture->size;) {
		ssize_t got = read(fd, capture->bytes + done, capture->size - done);

		if (got <= 0)
			return capture_fail("%s: short read", path);
		done += (size_t)got;
	}
	close(fd);
	if (capture->size < KMEM_HEAD_BYTES)
		return capture_fail("%s: no whole head", path);

	const struct kmem_chunk *chunks = (const void *)(capture->bytes + KMEM_DIRECTORY_OFFSET);
	uint32_t count = capture_header(capture)->chunk_count;
	if (capture->size < KMEM_HEAD_BYTES + (size_t)count * KMEM_CHUNK_BYTES)
		return capture_fail("F2: %u chunks do not fit %zu bytes", count, capture->size);
	for (uint32_t i = 0; i < count; i++) {
		unsigned kind = chunks[i].section;

		if (kind == KMEM_SECTION_NONE || kind >= KMEM_SECTION_COUNT)
			return capture_fail("F2: chunk %u has section %u", i, kind);
		capture->section[kind] = realloc(capture->section[kind], capture->section_bytes[kind] + KMEM_CHUNK_BYTES);
		memcpy(capture->section[kind] + capture->section_bytes[kind],
		       capture->bytes + KMEM_HEAD_BYTES + (size_t)i * KMEM_CHUNK_BYTES, KMEM_CHUNK_BYTES);
		capture->section_bytes[kind] += KMEM_CHUNK_BYTES;
	}
	return true;
}

/* F3: a record that an index (not + 1, in units of 8 bytes) leads to. NULL and a message when it is not whole. */
static inline const struct kmem_record *
capture_record(const struct capture *capture, uint32_t index, uint16_t type)
{
	size_t offset = (size_t)index * 8;
	size_t size = capture->section_bytes[KMEM_SECTION_RECORDS];
	const struct kmem_record *record = (const void *)(capture->section[KMEM_SECTION_RECORDS] + offset);

	if (offset + sizeof(*record) > size || record->bytes < sizeof(*record) || record->bytes > size - offset) {
		capture_fail("F1: index %u leads nowhere", index);
		return NULL;
	}
	if (record->type != type ||
	    record->checksum !=
	        kmem_record_checksum(record, type == KMEM_RECORD_MODULE ? offsetof(struct kmem_module, unloaded) : 0)) {
		capture_fail("F3: record %u has type %u and a checksum that is not its own", index, record->type);
		return NULL;
	}
	return record;
}

/* F1: every published site has a whole stack. Returns their number, or -1. */
static inline long
capture_sites(const struct capture *capture)
{
	const struct kmem_site *sites = (const void *)capture->section[KMEM_SECTION_SITES];
	long published = 0;

	for (size_t i = 0; i < capture->section_bytes[KMEM_SECTION_SITES] / sizeof(*sites); i++) {
		uint32_t stack = sites[i].stack;

		if (stack != 0 && capture_record(capture, stack - 1, KMEM_RECORD_STACK) == NULL)
			return -1;
		published += stack != 0;
	}
	return published;
}

/* F4, once the identity was stored. */
static inline bool
capture_has_identity(const struct capture *capture)
{
	const struct kmem_header *header = capture_header(capture);

	return header->identity_checksum == kmem_identity_checksum(header) ||
	       capture_fail("F4: the identity has another checksum");
}

/* F5, all of it. */
static inline bool
capture_is_sealed(const struct capture *capture)
{
	const struct kmem_chunk *chunks = (const void *)(capture->bytes + KMEM_DIRECTORY_OFFSET);
	uint32_t sum;

	for (uint32_t i = 0; i < capture_header(capture)->chunk_count; i++) {
		sum = kmem_checksum(KMEM_CHECKSUM_START, capture->bytes + KMEM_HEAD_BYTES + (size_t)i * KMEM_CHUNK_BYTES,
		                    KMEM_CHUNK_BYTES);
		if (chunks[i].is_sealed != 1 || chunks[i].checksum != sum)
			return capture_fail("F5: chunk %u is not sealed by its checksum", i);
	}
	return capture_header(capture)->head_checksum == kmem_head_checksum(capture->bytes) ||
	       capture_fail("F5: the head has another checksum");
}

#endif
