/*
 * fuzz_top.c - can any capture crash, hang or bloat `kmemshim top --once`?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is a capture: see fuzz_capture.h.
 */
#include "fuzz_capture.h"

#include "cli/options.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char path[64];
	int status = 0;
	struct fail fail = { .text = "" };
	const struct options options = { .status = &status,
		                             .is_salvage = bytes != 0 && (data[0] & FUZZ_SALVAGE) != 0,
		                             .is_once = true,
		                             .argument_count = 1,
		                             .arguments = (char *[]){ path } };
	size_t length;
	unsigned char *file = fuzz_capture(data, bytes, &length);
	int fd = fuzz_file(file, length, path);

	free(file);
	fuzz_print_nothing();
	if (!cmd_top(&options, &fail))
		fuzz_check_refusal(fail.text);
	(void)close(fd);
	return 0;
}

static void
write_seeds(const char *folder)
{
	uint8_t seed[32] = { FUZZ_SEAL_RECORDS };

	write_seed(folder, "peak", seed, 1 + change(seed + 1, 2, offsetof(struct kmem_domain_row, peak.high), 1));
	seed[0] = FUZZ_SALVAGE | FUZZ_CLOSED | FUZZ_SEAL_RECORDS | FUZZ_SEAL_HEAD;
	write_seed(folder, "site", seed, 1 + change(seed + 1, 5, offsetof(struct kmem_site, peak), UINT32_MAX));
}
