/*
 * test_python_lines.c - one offset speaks for a line, and answers are remembered without being mixed up.
 *
 * That the tables are understood as interpreter and reader understand them is tested in tests/python.
 */
#include "test.h"

#include "capture/capture_file.h"
#include "python/python_code.h"
#include "python/python_fakes.h"
#include "python/python_lines.h"
#include "random.h"

#define V38 0x0308u
#define V310 0x030au
#define V311 0x030bu

struct row {
	const char *name;
	uint32_t version;
	const char *table;
	size_t bytes;
	uint32_t offset;
	uint32_t first;
};

#define TABLE(text) text, sizeof(text) - 1

static const struct row rows[] = {
	{ "no table", V311, TABLE(""), 8, 0 },
	{ "3.8: before the first step", V38, TABLE("\x06\x01"), 4, 0 },
	{ "3.8: the second line", V38, TABLE("\x06\x01"), 6, 6 },
	{ "3.8: far behind the last step", V38, TABLE("\x06\x01"), 900, 6 },
	{ "3.8: back on the first line", V38, TABLE("\x06\x01\x04\xff"), 12, 0 },
	{ "3.8: a big step of lines in two", V38, TABLE("\x06\x7f\x00\x05\x04\x00\x02\x01"), 10, 6 },
	{ "3.8: a big step of bytes in two", V38, TABLE("\xff\x00\x05\x01"), 258, 0 },
	{ "3.8: lines at once", V38, TABLE("\x00\x05\x04\xfb\x04\x05"), 10, 0 },
	{ "3.8: half a pair", V38, TABLE("\x06\x01\x04"), 20, 6 },
	{ "3.10: the second range", V310, TABLE("\x04\x00\x04\x01"), 6, 4 },
	{ "3.10: the same line again", V310, TABLE("\x04\x00\x04\x01\x04\xff"), 8, 0 },
	{ "3.10: empty ranges are not first", V310, TABLE("\x04\x00\x00\x01\x04\x01\x04\xff\x04\x01"), 12, 4 },
	{ "3.10: no line", V310, TABLE("\x04\x00\x04\x80\x04\x00"), 6, 6 },
	{ "3.10: after no line", V310, TABLE("\x04\x00\x04\x80\x04\x00"), 8, 0 },
	{ "3.10: beyond the end", V310, TABLE("\x04\x00"), 4, 4 },
	{ "3.11: in an entry", V311, TABLE("\x83\x00\x83\x00"), 14, 0 },
	{ "3.11: next line", V311, TABLE("\x83\x00\xdb\x00\x00"), 10, 8 },
	{ "3.11: back by a long form", V311, TABLE("\x83\x00\xdb\x00\x00\xf0\x03\x00\x01\x01"), 16, 0 },
	{ "3.11: no location", V311, TABLE("\x83\x00\xf9\x83\x00"), 10, 10 },
	{ "3.11: after no location", V311, TABLE("\x83\x00\xf9\x83\x00"), 12, 0 },
	{ "3.11: beyond the end", V311, TABLE("\x83\x00"), 8, 8 },
	{ "3.11: no entry begins here", V311, TABLE("\x03\x00"), 2, 2 },
	{ "3.11: a number that never ends", V311, TABLE("\x83\x00\xeb\x7f\x7f\x7f\x7f\x7f\x7f\x7f"), 10, 10 },
};

TEST(each_line_has_one_offset)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t first = python_lines_read(rows[i].version, (const uint8_t *)rows[i].table, rows[i].bytes,
		                                   rows[i].offset);

		if (first != rows[i].first)
			fail_msg("%s: %u, not %u", rows[i].name, first, rows[i].first);
	}
}

/* A record whose line table puts two instructions of `units` on each line. */
static uint32_t
make_record(uint32_t number, uint32_t units)
{
	static struct python_interpreter python;
	struct fake_code fake;
	char name[32];
	char table[32] = "";

	python = fake_interpreter();
	snprintf(name, sizeof(name), "lines_%u", number);
	for (uint32_t i = 0; i < units / 2; i++)
		memcpy(table + 3 * i, "\xd9\x01\x01", 4); // two units, one line further
	python_code_forget((uint64_t)fake.code);      // the one before it, at the same address
	return python_code_find(&python, fake_code_make(&fake, "/x.py", name, 1, table)).index;
}

/* L1, L2: with more questions than room each one still gets its own answer. */
TEST(l1_no_question_gets_anothers_answer)
{
	enum { RECORDS = 9000, UNITS = 20 };
	static uint32_t index[RECORDS];

	for (uint32_t i = 0; i < RECORDS; i++)
		index[i] = make_record(i, UNITS - i % 2 * 10);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < RECORDS; i++)
			for (uint32_t offset = 0; offset < 2 * UNITS; offset += 2) {
				bool is_inside = offset < 2 * (UNITS - i % 2 * 10);

				assert_int_equal(python_lines_first(index[i], offset), is_inside ? offset & ~3u : offset);
			}
}

/* L2: an answer is remembered; a forked child, whose records are others, does not have it. */
TEST(l2_answers_are_remembered_until_the_fork)
{
	uint32_t index = make_record(100000, 8);
	struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, index);
	uint8_t *table = (uint8_t *)(code + 1) + code->file_bytes + code->function_bytes;

	assert_int_equal(python_lines_first(index, 6), 4);
	table[3] = 0x81; // on the line before
	assert_int_equal(python_lines_first(index, 6), 4);
	python_lines_forked();
	assert_int_equal(python_lines_first(index, 6), 0);
}

/* L3, and what does not fit into a word: far and odd offsets are read each time. */
TEST(l3_offsets_that_are_not_remembered)
{
	uint32_t index = make_record(200000, 8);

	assert_int_equal(python_lines_first(index, 0), 0);
	assert_int_equal(python_lines_first(index, 7), 4);
	assert_int_equal(python_lines_first(index, 6), 4);
	assert_int_equal(python_lines_first(index, 1u << 21), 1u << 21);
	assert_int_equal(python_lines_first(index, (1u << 20) + 2), (1u << 20) + 2);
	assert_int_equal(python_lines_first(index, 2), 0);
}

/* A record with a long table of random lines, some of them more than once. */
static uint32_t
make_long_record(uint64_t *random, uint32_t version, uint32_t entries)
{
	uint32_t index;
	struct kmem_code *code = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*code) + entries * 3, &index);
	uint8_t *table = (uint8_t *)(code + 1);
	uint32_t at = 0;

	for (uint32_t i = 0; i < entries; i++) {
		int delta = (int)random_below(random, 7) - 2;

		if (version == V311) { // one code unit or more; lines by the form without columns, or none
			table[at++] = (uint8_t)((random_below(random, 20) == 0 ? 0xf8 : 0xe8) | random_below(random, 8));
			if (table[at - 1] < 0xf8)
				table[at++] = (uint8_t)(delta < 0 ? -delta << 1 | 1 : delta << 1);
		} else {
			table[at++] = (uint8_t)(2 * random_below(random, 5));
			table[at++] = (uint8_t)delta;
		}
	}
	code->python_version = version;
	code->line_table_bytes = at;
	return index;
}

/* Long tables are read once; the answers are those of the direct way. */
TEST(long_tables_give_the_same_answers)
{
	enum { RECORDS = 30 };
	static const uint32_t versions[] = { V38, V310, V311 };
	uint64_t random = random_seed();
	uint32_t index[RECORDS];

	python_lines_forked();
	for (unsigned i = 0; i < RECORDS; i++)
		index[i] = make_long_record(&random, versions[i % 3], 200 + 300 * i + (i % 10 == 9) * 9000);
	for (unsigned k = 0; k < 60000; k++) {
		unsigned i = (unsigned)random_below(&random, k % 1000 < 900 ? 6 : RECORDS); // some come again, all come
		const struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, index[i]);
		uint32_t offset = (uint32_t)random_below(&random, 20 * code->line_table_bytes) & ~1u;

		assert_int_equal(
			python_lines_first(index[i], offset),
			python_lines_read(code->python_version, (const uint8_t *)(code + 1), code->line_table_bytes, offset));
	}
}

RUN_TESTS(NULL, NULL)
