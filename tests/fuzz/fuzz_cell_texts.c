/*
 * fuzz_cell_texts.c - can any cells.jsonl crash or hang what reads it, or make it lose a cell without a word?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is the file. What it hands out is text that ends, with a number that
 * fits; each line is a cell, or counted in the one line of the refusal. Read again it is the same.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "capture/cell_texts.h"

struct seen {
	uint64_t count;
	uint64_t sum; // of all that was handed out
};

static void
add(struct seen *seen, const char *text)
{
	for (; *text != '\0'; text++)
		seen->sum = seen->sum * 31 + (unsigned char)*text;
}

static void
take(void *owner, const struct cell_text *cell)
{
	struct seen *seen = owner;

	seen->count++;
	seen->sum += cell->number + cell->began_ns;
	add(seen, cell->file);
	add(seen, cell->text);
}

static bool
read_all(const char *capture, struct seen *seen, struct fail *fail)
{
	*seen = (struct seen){ 0 };
	*fail = (struct fail){ .text = "" };
	return cell_texts_read(capture, take, seen, fail);
}

static uint64_t
lines_of(const uint8_t *data, size_t bytes)
{
	uint64_t lines = bytes != 0 && data[bytes - 1] != '\n';

	for (size_t i = 0; i < bytes; i++)
		lines += data[i] == '\n';
	return lines;
}

/* Of "...:7: is not a cell: left out, and 3 further lines". */
static uint64_t
left_out(const char *text)
{
	static const char words[] = "left out, and ";
	const char *at = strstr(text, words);

	if (at == NULL)
		abort();
	return strtoull(at + strlen(words), NULL, 10) + 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static char folder[] = "/tmp/kmemshim-fuzz-XXXXXX"; // once: the reader opens a name beside a capture
	static char path[sizeof(folder) + 20];
	static char capture[sizeof(folder) + 20];
	struct seen first;
	struct seen second;
	struct fail fail;

	if (path[0] == '\0') {
		if (mkdtemp(folder) == NULL)
			abort();
		(void)snprintf(path, sizeof(path), "%s/cells.jsonl", folder);
		(void)snprintf(capture, sizeof(capture), "%s/x.kmem", folder);
	}
	FILE *file = fopen(path, "wb");
	if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
		abort();
	bool is_whole = read_all(capture, &first, &fail);
	if (!is_whole) {
		fuzz_check_refusal(fail.text);
		if (fail.code != EXIT_CAPTURE)
			abort();
	}
	if (first.count + (is_whole ? 0 : left_out(fail.text)) != lines_of(data, bytes))
		abort();
	if (read_all(capture, &second, &fail) != is_whole || second.count != first.count || second.sum != first.sum)
		abort();
	(void)unlink(path);
	(void)rmdir(folder);
	(void)mkdir(folder, 0700);
	return 0;
}

#define CELL(file, number, text) "{\"file\": \"" file "\", \"execution_count\": " number ", \"text\": \"" text "\"}\n"

static void
write_seeds(const char *folder)
{
	static const struct {
		const char *name, *text;
	} seeds[] = {
		{ "two", CELL("/tmp/ipykernel_7/123.py", "1", "x = 1") CELL("/tmp/ipykernel_7/124.py", "2", "") },
		{ "escapes", CELL("a\\u00e9\\ud83d\\ude00", "12", "f(\\\"x\\\")\\n\\ty\\u0000z") },
		{ "numbers", CELL("a", "-1", "") CELL("a", "4294967295", "") CELL("a", "4294967296", "") CELL("a", "1e3", "") },
		{ "bad_lines", "\n{}\n[]\nnull\n{\"file\": 1}\n" CELL("a", "1", "b") "{\"file\": \"a\", \"exec" },
		{ "deep", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n{\"text\": {\"text\": {}}}" },
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		write_seed(folder, seeds[i].name, seeds[i].text, strlen(seeds[i].text));
	write_seed(folder, "zero", "a\0b\n\xff\xfe\n", 7);
}
