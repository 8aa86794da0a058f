/*
 * fuzz_core.c - can any core crash, hang or bloat `kmemshim holders --core`?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. FUZZ_CORE names the folder that make_core.py has made, with the core of a small
 * program and its capture; without one nothing is tried. An input is a list of changes to the core, of 12 bytes each, undone afterwards:
 *
 *   byte 0       0 = a word of the first 64 KiB: headers and notes; 1 = any word; 2 = any word gets what another one is
 *   bytes 1, 2   page, of those in which there is anything
 *   byte 3       word of it, from an even one on
 *   bytes 4-11   what is there then; of 2: page and word
 */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "cli/options.h"

#define PAGE 4096u
#define HEAD_PAGES 16u
#define CHANGE_BYTES 12u
#define CHANGES_MAX 64u
#define STOP_NS UINT64_C(1000000000)

static char core[4096];
static char capture[4096];
static int file = -1;
static off_t *pages;
static size_t page_count;

/* Most of a core is empty. */
static void
find_pages(void)
{
	static char page[PAGE];
	struct stat status;
	const char *folder = getenv("FUZZ_CORE");

	if (folder == NULL)
		return;
	(void)snprintf(core, sizeof(core), "%s/core", folder);
	(void)snprintf(capture, sizeof(capture), "%s/capture", folder);
	file = open(core, O_RDWR | O_CLOEXEC);
	if (file < 0 || fstat(file, &status) != 0)
		return;
	pages = malloc((size_t)status.st_size / PAGE * sizeof(*pages));
	for (off_t at = 0; (at = lseek(file, at, SEEK_DATA)) >= 0 && at + PAGE <= status.st_size; at += PAGE) {
		if (pread(file, page, PAGE, at) != PAGE)
			abort();
		if (page[0] != 0 || memcmp(page, page + 1, PAGE - 1) != 0)
			pages[page_count++] = at;
	}
}

static off_t
place(const uint8_t *at, size_t count)
{
	return pages[(size_t)(at[0] << 8 | at[1]) % count] + at[2] * 16;
}

static uint64_t
exchange(off_t at, uint64_t word)
{
	uint64_t before;

	if (pread(file, &before, sizeof(before), at) != sizeof(before) ||
	    pwrite(file, &word, sizeof(word), at) != sizeof(word))
		abort();
	return before;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct {
		off_t at;
		uint64_t word;
	} before[CHANGES_MAX];
	size_t count = 0;
	int status = 0;
	struct fail fail = { .text = "" };
	struct options options = { .status = &status,
		                       .core = core,
		                       .is_json = bytes % 2 != 0,
		                       .stop_ns = STOP_NS,
		                       .given = OPTION_BIT(OPTION_STOP),
		                       .argument_count = 1,
		                       .arguments = (char *[]){ capture } };

	if (file < 0)
		find_pages();
	if (page_count < HEAD_PAGES)
		return 0;
	for (; count < CHANGES_MAX && bytes >= CHANGE_BYTES; bytes -= CHANGE_BYTES, data += CHANGE_BYTES) {
		uint64_t word;

		before[count].at = place(data + 1, data[0] % 3 == 0 ? HEAD_PAGES : page_count);
		memcpy(&word, data + 4, sizeof(word));
		if (data[0] % 3 == 2 && pread(file, &word, sizeof(word), place(data + 4, page_count)) != sizeof(word))
			abort();
		before[count].word = exchange(before[count].at, word);
		count++;
	}
	fuzz_print_nothing();
	if (!cmd_holders(&options, &fail))
		fuzz_check_refusal(fail.text);
	while (count-- > 0)
		(void)exchange(before[count].at, before[count].word);
	return 0;
}

/* Inputs of many changes: others are made of parts of them. */
static void
write_seeds(const char *folder)
{
	uint8_t seed[32 * CHANGE_BYTES];
	uint32_t chance = 1;

	for (uint8_t kind = 0; kind < 3; kind++) {
		for (size_t i = 0; i < sizeof(seed); i++) {
			chance = chance * 1664525 + 1013904223;
			seed[i] = i % CHANGE_BYTES == 0 ? kind : (uint8_t)(chance >> 24);
		}
		write_seed(folder, (char[]){ (char)('a' + kind), '\0' }, seed, sizeof(seed));
	}
	write_seed(folder, "sound", seed, 1);
}
