/*
 * fuzz.h - what all fuzzers share: their entry points, first inputs, and an input as a file. Included once by each.
 *
 * --write-seeds FOLDER, alone on the command line, writes the first inputs and ends.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argument_count, char ***arguments);

static void write_seeds(const char *folder); // the fuzzer's own: calls write_seed()

static inline void
write_seed(const char *folder, const char *name, const void *data, size_t bytes)
{
	char path[4096];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wb");
	if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
		abort();
}

int
LLVMFuzzerInitialize(int *argument_count, char ***arguments)
{
	if (*argument_count == 3 && strcmp((*arguments)[1], "--write-seeds") == 0) {
		write_seeds((*arguments)[2]);
		exit(0);
	}
	return 0;
}

/* The input as a file in memory, and its name; to be closed. */
static inline int
fuzz_file(const void *data, size_t bytes, char path[static 64])
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* What a command says of an input is for nobody; a sanitizer writes past this. */
static inline void
fuzz_print_nothing(void)
{
	static FILE *nothing;

	if (nothing == NULL && (nothing = fopen("/dev/null", "w")) == NULL)
		abort();
	stdout = nothing;
}

/* A file is refused by one line that says why. */
static inline void
fuzz_check_refusal(const char *text)
{
	if (text[0] == '\0' || strchr(text, '\n') != NULL)
		abort();
}

#endif
