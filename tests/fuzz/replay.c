/*
 * replay.c - does each input that a fuzzer kept still pass?
 *
 * Stands in the place of libFuzzer (gcc has none): runs each file of the folders on the command line once. `make test` does that under
 * the address and undefined sanitizers; `make fuzz` searches for new inputs.
 *
 * When failing  the process ends as under libFuzzer, by abort() or the sanitizer's report; the last name printed is the input's.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_BYTES_MAX (1u << 20)

/* tests/fuzz/fuzz.h */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argument_count, char ***arguments);

static void
replay_file(const char *path)
{
	uint8_t *data = malloc(INPUT_BYTES_MAX); // a block of its own: the sanitizer sees what is read behind the input
	FILE *file = fopen(path, "rb");

	if (data == NULL || file == NULL)
		abort();
	size_t bytes = fread(data, 1, INPUT_BYTES_MAX, file);
	uint8_t *exact = realloc(data, bytes != 0 ? bytes : 1);
	if (exact == NULL || fclose(file) != 0)
		abort();
	(void)fprintf(stderr, "%s\n", path);
	(void)LLVMFuzzerTestOneInput(exact, bytes);
	free(exact);
}

int
main(int argument_count, char **arguments)
{
	unsigned count = 0;

	(void)LLVMFuzzerInitialize(&argument_count, &arguments);
	for (int i = 1; i < argument_count; i++) {
		DIR *folder = opendir(arguments[i]);

		if (folder == NULL)
			abort();
		for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
			char path[4096];

			if (entry->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", arguments[i], entry->d_name);
			replay_file(path);
			count++;
		}
		(void)closedir(folder);
	}
	(void)printf("%u inputs\n", count);
	return count == 0; // a folder without inputs tries nothing
}
