/*
 * fuzz_diff.c - can any two captures crash, hang or bloat `kmemshim diff`?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is how it is shown, and then two captures, of one half each: see
 * fuzz_capture.h.
 */
#include "fuzz_capture.h"

#include "cli/options.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char paths[2][64];
	int files[2];
	int status = 0;
	struct fail fail = { .text = "" };

	if (bytes == 0)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		const size_t half = (bytes - 1) / 2;
		size_t length;
		unsigned char *file = fuzz_capture(data + 1 + i * half, i == 0 ? half : bytes - 1 - half, &length);

		files[i] = fuzz_file(file, length, paths[i]);
		free(file);
	}

	const struct options options = { .status = &status,
		                             .is_salvage = (data[0] & 1) != 0,
		                             .is_json = (data[0] & 6) == 2,
		                             .is_markdown = (data[0] & 6) == 4,
		                             .by = (data[0] & 8) != 0 ? "function" : NULL,
		                             .argument_count = 2,
		                             .arguments = (char *[]){ paths[0], paths[1] } };

	fuzz_print_nothing();
	if (!cmd_diff(&options, &fail))
		fuzz_check_refusal(fail.text);
	(void)close(files[0]);
	(void)close(files[1]);
	return 0;
}

static void
write_seeds(const char *folder)
{
	static const uint8_t hows[] = { 1, 3, 5, 9 };

	for (uint8_t i = 0; i < sizeof(hows); i++) {
		uint8_t seed[19] = { hows[i], FUZZ_SEAL_RECORDS };

		(void)change(seed + 2, 5, offsetof(struct kmem_site, allocated_bytes), 1u << (20 + i));
		seed[10] = FUZZ_SEAL_RECORDS;
		(void)change(seed + 11, 5, offsetof(struct kmem_site, freed_bytes), 1u << i);
		write_seed(folder, (char[]){ (char)('a' + i), '\0' }, seed, sizeof(seed));
	}
}
