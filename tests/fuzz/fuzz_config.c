/*
 * fuzz_config.c - can any configuration, or file of suppressions, crash or hang `kmemshim check`?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is the file, as .kmemshim.yml and as suppressions of LeakSanitizer; its
 * first and second half are a pattern and a text.
 */
#include "fuzz.h"

#include <fcntl.h>

#include "base/regular_file.h"
#include "gate/config.h"
#include "gate/pattern.h"

static void
read_both(const char *path)
{
	struct fail fail = { .text = "" };
	struct config *config = config_read(path, "2026-11-23", &fail);

	if (config == NULL) {
		if (fail.code != EXIT_USAGE)
			abort();
		fuzz_check_refusal(fail.text);
		return;
	}
	for (size_t i = 0; i < config->budget_count; i++) {
		if (config->budgets[i].name[0] == '\0')
			abort();
	}
	(void)config_suppressed_by(config, "train.py:41 epoch");
	fail.text[0] = '\0';
	OWNED_FILE int file = open(path, O_RDONLY);
	if (!config_add_lsan(config, path, file, &fail))
		fuzz_check_refusal(fail.text);
	config_free(config);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char path[64];
	int fd = fuzz_file(data, bytes, path);
	char *pattern = strndup((const char *)data, bytes / 2);
	char *text = strndup((const char *)data + bytes / 2, bytes - bytes / 2);

	read_both(path);
	(void)close(fd);
	(void)pattern_fits(pattern, text);
	if (strchr(pattern, '*') == NULL && strchr(pattern, '^') == NULL && strchr(pattern, '$') == NULL &&
	    pattern_fits(pattern, text) != (strstr(text, pattern) != NULL))
		abort();
	free(pattern);
	free(text);
	return 0;
}

static void
write_seeds(const char *folder)
{
	static const char whole[] = "budgets:\n"
								"  total: {peak: 500 MiB, live: +5 %, per_step: 1 KiB}\n"
								"  domains:\n"
								"    cuda:0:\n"
								"      peak: +1 MiB\n"
								"  lines:\n"
								"    \"train.py:*\":\n"
								"      live: 0\n"
								"suppressions:\n"
								"  - {leak: libfoo.so, reason: known, expires: 2030-12-31}\n"
								"run: {min_steps: 6, too_short: skip}\n"
								"tolerance: {absolute: 1 MiB, relative: 5 %}\n";
	static const char lsan[] = "# known\nleak:libfoo.so\nleak:^start*end$\n";
	char *template = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&template, &bytes);

	if (stream == NULL)
		abort();
	config_template(stream);
	if (fclose(stream) != 0)
		abort();
	write_seed(folder, "template", template, bytes);
	write_seed(folder, "whole", whole, sizeof(whole) - 1);
	write_seed(folder, "lsan", lsan, sizeof(lsan) - 1);
	free(template);
}
