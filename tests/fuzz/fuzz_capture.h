/*
 * fuzz_capture.h - an input as a capture. Included once by each fuzzer that reads captures.
 *
 * Captures are large and sealed by checksums that no fuzzer guesses, so an input is a list of changes to an example capture. Its first
 * byte says what is done with them:
 *
 *   bit 0  make the checksums of all records right again     bit 3  the capture was closed cleanly
 *   bit 1  make head and chunk checksums right again         bit 4  cut the file where the next three bytes say
 *   bit 2  salvage                                           bit 5  no example: the rest of the input is the file
 *
 * and each change is: region (head, domains, directory, chunk 0 ..., lines in memory), 16-bit place, length, bytes.
 */
#ifndef FUZZ_CAPTURE_H
#define FUZZ_CAPTURE_H

#include "fuzz.h"

#include "../unit/analyzer/capture_builder.h"
#include "kmem_words.h"

enum {
	FUZZ_SEAL_RECORDS = 1,
	FUZZ_SEAL_HEAD = 2,
	FUZZ_SALVAGE = 4,
	FUZZ_CLOSED = 8,
	FUZZ_CUT = 16,
	FUZZ_RAW = 32,
};

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t
take(struct input *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->at++;
}

/* Where changes go: the places of a capture that mean something are few. */
static size_t
region_start(uint8_t region)
{
	static const size_t starts[] = {
		0,
		offsetof(struct kmem_header, state),
		KMEM_DOMAINS_OFFSET,
		KMEM_HEARTBEATS_OFFSET,
		KMEM_DIRECTORY_OFFSET,
		KMEM_HEAD_BYTES,
		KMEM_HEAD_BYTES + KMEM_CHUNK_BYTES,
		KMEM_HEAD_BYTES + 2 * KMEM_CHUNK_BYTES,
		KMEM_RESIDENT_LINES_OFFSET,
	};

	return starts[region % (sizeof(starts) / sizeof(starts[0]))];
}

/* The example's records stand one behind the other, from the start of its chunk 2. */
static void
seal_records(unsigned char *file, size_t bytes)
{
	size_t at = KMEM_HEAD_BYTES + 2 * KMEM_CHUNK_BYTES;

	while (at + sizeof(struct kmem_record) <= bytes) {
		struct kmem_record *record = (struct kmem_record *)(void *)(file + at);

		if (record->bytes < sizeof(*record) || record->bytes > bytes - at)
			break;
		record->checksum = kmem_record_checksum(record, record->type == KMEM_RECORD_MODULE &&
		                                                        record->bytes >= sizeof(struct kmem_module)
		                                                    ? offsetof(struct kmem_module, unloaded)
		                                                    : 0);
		at += (record->bytes + 7) / 8 * 8;
	}
}

/* The capture that an input makes; owned by the caller. */
static unsigned char *
fuzz_capture(const uint8_t *data, size_t bytes, size_t *length)
{
	struct input input = { data, bytes };
	uint8_t what = take(&input);
	size_t file_bytes;

	if ((what & FUZZ_RAW) != 0) {
		unsigned char *raw = malloc(input.left + 1);

		memcpy(raw, input.at, input.left);
		*length = input.left;
		return raw;
	}

	unsigned char *file = capture_builder_example(
		(what & FUZZ_CLOSED) != 0 ? KMEM_STATE_CLEAN_EXIT : KMEM_STATE_RUNNING, &file_bytes);

	*length = file_bytes;
	if ((what & FUZZ_CUT) != 0) {
		*length = take(&input);
		*length = (*length << 16 | (size_t)take(&input) << 8) | take(&input);
		*length %= file_bytes + 1;
	}
	while (input.left > 3) {
		size_t at = region_start(take(&input));

		at += (size_t)take(&input) << 8;
		at += take(&input);
		for (uint8_t left = take(&input) % 32; left > 0 && input.left > 0 && at < file_bytes; left--)
			file[at++] = take(&input);
	}
	if ((what & FUZZ_SEAL_RECORDS) != 0)
		seal_records(file, file_bytes);
	if ((what & FUZZ_SEAL_HEAD) != 0)
		capture_builder_reseal(file, file_bytes);
	return file;
}

/* One change of a 32-bit number. */
static size_t
change(uint8_t *to, uint8_t region, size_t place, uint32_t value)
{
	to[0] = region;
	to[1] = (uint8_t)(place >> 8);
	to[2] = (uint8_t)place;
	to[3] = sizeof(value);
	memcpy(to + 4, &value, sizeof(value));
	return 4 + sizeof(value);
}

#endif
