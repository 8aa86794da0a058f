/*
 * fuzz_line_tables.c - can any line table crash, hang or divide the recorder and the reader?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is: which format, the offset of an instruction (three bytes), the
 * first line (four), then the table. The recorder's two ways of looking for the first instruction of a line must agree, and the reader
 * must see the same line there, or the recorder would have merged two lines.
 */
#include "fuzz.h"

#include "../../shim/python/python_lines.h"
#include "kmem_format.h"
#include "symbols/python_text.h"

void *capture_file_at(uint32_t section, uint32_t index); // the recorder's, for the record that is tried

#define HEAD_BYTES 8

static const uint32_t versions[] = { 0x0308, 0x0309, 0x030a, 0x030b, 0x030c, 0x030d };
static struct kmem_code *tried;

void *
capture_file_at(uint32_t section, uint32_t index)
{
	return tried;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes < HEAD_BYTES)
		return 0;

	uint32_t version = versions[data[0] % (sizeof(versions) / sizeof(versions[0]))];
	uint32_t offset = data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16;
	uint32_t table_bytes = (uint32_t)(bytes - HEAD_BYTES);
	uint32_t first_line;
	uint8_t *table = malloc(table_bytes + 1); // of its own: what is read behind it is seen

	memcpy(&first_line, data + 4, 4);
	memcpy(table, data + HEAD_BYTES, table_bytes);
	table = realloc(table, table_bytes != 0 ? table_bytes : 1);
	tried = malloc(sizeof(*tried) + table_bytes);
	*tried = (struct kmem_code){ .python_version = version, .first_line = first_line, .line_table_bytes = table_bytes };
	memcpy(tried + 1, table, table_bytes);

	uint32_t first = python_lines_read(version, table, table_bytes, offset);

	python_lines_forked(); // nothing of the last input is remembered
	if (first > offset || python_lines_first(1, offset) != first || python_lines_first(1, offset) != first)
		abort();
	if (python_text_line(version, first_line, table, table_bytes, first) !=
	    python_text_line(version, first_line, table, table_bytes, offset))
		abort();
	free(tried);
	free(table);
	return 0;
}

static void
write_seeds(const char *folder)
{
	static const struct {
		const char *name;
		uint8_t input[32];
		size_t bytes;
	} seeds[] = {
		{ "lnotab", { 0, 9, 0, 0, 1, 0, 0, 0, 6, 1, 6, 0xff, 255, 0, 8, 127 }, 16 },
		{ "ranges", { 2, 9, 0, 0, 1, 0, 0, 0, 6, 1, 6, 0x80, 8, 0xfe }, 14 },
		{ "locations", { 3, 9, 0, 0, 1, 0, 0, 0, 0xd3, 0, 1, 0xe8, 4, 0xf7, 0x42, 1, 0, 0, 0, 0xf8, 0xff }, 21 },
		{ "no_end", { 4, 200, 0, 0, 255, 255, 255, 127, 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f }, 14 },
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		write_seed(folder, seeds[i].name, seeds[i].input, seeds[i].bytes);

	/* Long enough to be read as a whole by the recorder, and damaged at its end: asked for the damaged entry. */
	uint8_t damaged[HEAD_BYTES + 300] = { 3, 149 * 8 % 256, 149 * 8 / 256, 0, 1 };

	for (size_t at = HEAD_BYTES; at + 2 < sizeof(damaged); at += 2)
		damaged[at] = 0x83;
	damaged[sizeof(damaged) - 2] = 0xeb;
	damaged[sizeof(damaged) - 1] = 0x7f;
	write_seed(folder, "damaged_end", damaged, sizeof(damaged));
}
