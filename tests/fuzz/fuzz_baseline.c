/*
 * fuzz_baseline.c - can any baseline file crash, hang or bloat `kmemshim check`, or come back different?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is the file. What is read is compared with itself, which must fail no
 * rule, and written again; that must be read as the same.
 */
#include "fuzz.h"

#include "gate/baseline.h"
#include "gate/check_compare.h"

static struct baseline *
read_bytes(const void *data, size_t bytes)
{
	struct fail fail = { .text = "" };
	char path[64];
	int fd = fuzz_file(data, bytes, path);

	struct baseline *baseline = baseline_read(path, &fail);
	if (baseline == NULL && fail.code != EXIT_USAGE)
		abort();
	if (baseline == NULL)
		fuzz_check_refusal(fail.text);
	(void)close(fd);
	return baseline;
}

static char *
written(const struct baseline *baseline, size_t *bytes)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, bytes);

	if (stream == NULL)
		abort();
	baseline_write(baseline, stream);
	if (fclose(stream) != 0)
		abort();
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct baseline *baseline = read_bytes(data, bytes);
	size_t first_bytes;
	size_t second_bytes;

	if (baseline == NULL)
		return 0;
	char *first = written(baseline, &first_bytes);
	struct baseline *again = read_bytes(first, first_bytes);
	if (again == NULL)
		abort();
	char *second = written(again, &second_bytes);
	if (first_bytes != second_bytes || memcmp(first, second, first_bytes) != 0)
		abort();
	struct check *check = check_compare(baseline, again, (struct check_tolerance){ 0 }, NULL);
	check_free(check);
	free(first);
	free(second);
	baseline_free(baseline);
	baseline_free(again);
	return 0;
}

static void
write_seeds(const char *folder)
{
	struct baseline_domain domains[] = {
		{ .name = "heap", .live_bytes = { 1, 2, 3 }, .peak_bytes = { 4, 5, 6 } },
		{ .name = "cuda:0", .live_bytes = { 0, 0, 9 }, .peak_bytes = { 0, 0, 1u << 30 } }
	};
	struct baseline_site sites[] = {
		{ .family = 0x0123456789ab,
		  .domain = "heap",
		  .where = "train.py:41 epoch",
		  .leak = MODEL_LEAK_LEAK,
		  .run_count = 3,
		  .live_bytes = { 1, 2, 3 },
		  .peak_bytes = { 1, 2, 3 } },
		{ .family = 0x0123456789ac, .domain = "cuda:0", .where = "", .leak = MODEL_LEAK_STEADY, .run_count = 1 },
	};
	struct baseline baseline = { .run_count = 3,
		                         .program = "train.py",
		                         .python_version = "3.11.7",
		                         .domain_count = 2,
		                         .domains = domains,
		                         .site_count = 2,
		                         .sites = sites };
	size_t bytes;
	char *text = written(&baseline, &bytes);

	write_seed(folder, "whole", text, bytes);
	write_seed(folder, "cut", text, bytes / 2);
	free(text);
	baseline.domain_count = baseline.site_count = 0;
	text = written(&baseline, &bytes);
	write_seed(folder, "empty", text, bytes);
	free(text);
}
