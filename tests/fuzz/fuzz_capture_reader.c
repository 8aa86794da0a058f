/*
 * fuzz_capture_reader.c - can any file crash, hang or bloat the way from a capture to the model?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is a capture: see fuzz_capture.h.
 */
#include "fuzz_capture.h"

#include <stdbool.h>

#include "model/model_load.h"

#define OBJECT_SITE 5ul // of the example: samples of small objects

static void
load(const void *file, size_t bytes, bool is_salvage)
{
	char path[64];
	struct fail fail = { .text = "" };
	int fd = fuzz_file(file, bytes, path);

	struct model *model = model_load(&(struct model_options){ .capture = path, .is_salvage = is_salvage }, &fail);
	if (model == NULL)
		fuzz_check_refusal(fail.text);
	model_free(model);
	(void)close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t length;
	unsigned char *file = fuzz_capture(data, bytes, &length);

	load(file, length, bytes != 0 && (data[0] & FUZZ_SALVAGE) != 0);
	free(file);
	return 0;
}

/* Where the example's stack stands that has its outer frames in another one. */
static size_t
shared_stack(void)
{
	size_t bytes;
	unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
	size_t place = 8 * (((struct kmem_site *)(void *)(file + KMEM_HEAD_BYTES))[3].stack - 1ul);

	free(file);
	return place;
}

/* Where stands what was held when the example's request was refused. */
static size_t
held(void)
{
	size_t bytes;
	unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
	size_t place = 8 * (((struct kmem_header *)(void *)file)->failed[0].device_snapshot - 1ul);

	free(file);
	return place;
}

static void
write_seeds(const char *folder)
{
	const size_t shared = shared_stack();
	const size_t device_snapshot = held();
	const struct {
		const char *name;
		uint8_t what, region;
		size_t place;
		uint32_t value;
	} seeds[] = {
		{ "sound", 0, 3, 0, 1 },
		{ "closed", FUZZ_CLOSED | FUZZ_SEAL_HEAD, 1,
		  offsetof(struct kmem_header, exit_code) - offsetof(struct kmem_header, state), 1 },
		{ "cut", FUZZ_CUT | FUZZ_SALVAGE, 4, 0, 1 },
		{ "chunk_count", FUZZ_SALVAGE, 1,
		  offsetof(struct kmem_header, chunk_count) - offsetof(struct kmem_header, state), 9 },
		{ "modules", FUZZ_SEAL_RECORDS, 1, offsetof(struct kmem_header, modules) - offsetof(struct kmem_header, state),
		  1 },
		{ "stack_index", FUZZ_SEAL_RECORDS, 5, offsetof(struct kmem_site, stack), 3 },
		{ "generations", FUZZ_SEAL_RECORDS, 6, offsetof(struct kmem_generations, births), 1 },
		{ "first_code", FUZZ_SEAL_RECORDS | FUZZ_SALVAGE, 7, offsetof(struct kmem_code, file_bytes), 3 },
		{ "own_count", FUZZ_SEAL_RECORDS, 7, shared + offsetof(struct kmem_stack, own_count), 2 },
		{ "chain", FUZZ_SEAL_RECORDS, 7, shared + offsetof(struct kmem_stack, chain), 33 },
		{ "outside", FUZZ_SEAL_RECORDS, 7, shared + offsetof(struct kmem_record, previous), 3 },
		{ "released_more", FUZZ_SEAL_RECORDS, 5, 3 * sizeof(struct kmem_site) + offsetof(struct kmem_site, freed_bytes),
		  9000 },
		{ "domain", FUZZ_SEAL_RECORDS, 5, offsetof(struct kmem_site, slot), 0x01010001 },
		{ "peak", FUZZ_SEAL_RECORDS, 2, offsetof(struct kmem_domain_row, peak.high), 1 },
		{ "cells", FUZZ_SEAL_RECORDS, 1, offsetof(struct kmem_header, cells) - offsetof(struct kmem_header, state), 1 },
		{ "held_site", FUZZ_SEAL_RECORDS, 7, device_snapshot + offsetof(struct kmem_device_snapshot, sites[1].site),
		  2 },
		{ "held_count", FUZZ_SEAL_RECORDS, 7,
		  device_snapshot + offsetof(struct kmem_device_snapshot, sites[0].live_count), UINT32_MAX },
		{ "held_generations", FUZZ_SEAL_RECORDS, 7,
		  device_snapshot + offsetof(struct kmem_device_snapshot, generations[1].site), 3 },
		{ "held_length", FUZZ_SEAL_RECORDS, 7, device_snapshot + offsetof(struct kmem_record, bytes), 100 },
		{ "held_where", FUZZ_SEAL_HEAD, 1,
		  offsetof(struct kmem_header, failed[0].device_snapshot) - offsetof(struct kmem_header, state), 1 },
		{ "in_memory_site", FUZZ_SEAL_HEAD, 8, offsetof(struct kmem_resident_lines, lines[0].site), 5 },
		{ "in_memory_more", FUZZ_SEAL_HEAD, 8, offsetof(struct kmem_resident_lines, lines[0].large_resident_bytes),
		  UINT32_MAX },
		{ "in_memory_sequence", FUZZ_SEAL_HEAD | FUZZ_CLOSED, 8, offsetof(struct kmem_resident_lines, sequence), 2 },
		{ "in_memory_empty", FUZZ_SEAL_HEAD | FUZZ_SALVAGE, 8, offsetof(struct kmem_resident_lines, heap_empty_bytes),
		  30000 },
		{ "sample_bytes", FUZZ_SEAL_HEAD, 0, offsetof(struct kmem_header, python_sample_bytes), 1 },
		{ "objects_released", FUZZ_SEAL_RECORDS, 5,
		  OBJECT_SITE * sizeof(struct kmem_site) + offsetof(struct kmem_site, freed_bytes), 8u << 20 },
		{ "objects_peak", FUZZ_SEAL_RECORDS, 5,
		  OBJECT_SITE * sizeof(struct kmem_site) + offsetof(struct kmem_site, peak), UINT32_MAX },
		{ "objects_inherited", FUZZ_SEAL_HEAD, 2,
		  KMEM_DOMAIN_PYTHON_OBJECT * sizeof(struct kmem_domain_row) +
		      offsetof(struct kmem_domain_row, inherited_bytes),
		  9u << 20 },
		{ "arenas_inherited", FUZZ_SEAL_HEAD, 2,
		  KMEM_DOMAIN_PYTHON_ARENA * sizeof(struct kmem_domain_row) + offsetof(struct kmem_domain_row, inherited_bytes),
		  UINT32_MAX },
		{ "raw", FUZZ_RAW, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		uint8_t seed[64] = { seeds[i].what };
		size_t bytes = 1 + change(seed + 1, seeds[i].region, seeds[i].place, seeds[i].value);

		if ((seeds[i].what & FUZZ_RAW) != 0) {
			memcpy(seed + 1, KMEM_MAGIC, 8);
			bytes = 17;
		}
		write_seed(folder, seeds[i].name, seed, bytes);
	}
}
