/*
 * test_python_code.c - one record per content, one content per living address.
 */
#include "test.h"

#include <pthread.h>

#include "base/settings.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "python/python_code.h"
#include "python/python_fakes.h"

#define NO_NAME "<name lost: no room in the capture>"

static struct python_interpreter python;

static const struct kmem_code *
record_of(struct python_code code)
{
	assert_true(code.is_found);
	return capture_file_at(KMEM_SECTION_RECORDS, code.index);
}

static bool
says(const struct kmem_code *record, const char *file, const char *name, uint32_t line)
{
	const char *text = (const char *)(record + 1);

	return record->file_bytes == strlen(file) && memcmp(text, file, strlen(file)) == 0 &&
	       record->function_bytes == strlen(name) && memcmp(text + strlen(file), name, strlen(name)) == 0 &&
	       record->first_line == line;
}

SETUP(fresh_tables)
{
	python = fake_interpreter();
	python_code_forked();
}

/* C5: complete and sealed, and what it says is what the object says. */
TEST(c5_a_record_says_what_the_code_says)
{
	struct fake_code fake;
	uint64_t addr = fake_code_make(&fake, "/data/user/train.py", "Model.fit", 42, "table");
	struct python_code code = python_code_find(&python, addr);
	const struct kmem_code *record = record_of(code);

	assert_int_equal(record->record.type, KMEM_RECORD_CODE);
	assert_int_not_equal(record->record.checksum, 0);
	assert_int_equal(record->record.bytes, sizeof(*record) + 19 + 9 + 5);
	assert_int_equal(record->python_version, 0x030b);
	assert_true(says(record, "/data/user/train.py", "Model.fit", 42));
	assert_int_equal(record->line_table_bytes, 5);
	assert_memory_equal((const char *)(record + 1) + 19 + 9, "table", 5);
	assert_int_equal(code.flags, 0);
	assert_int_equal(python_code_find(&python, addr).index, code.index);
}

/* C1: with more objects than words, every address still leads to its own record. */
TEST(c1_no_address_leads_to_anothers_record)
{
	enum { COUNT = 30000 };
	struct fake_code *fakes = calloc(COUNT, sizeof(*fakes));
	char name[32];

	assert_non_null(fakes);
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < COUNT; i++) {
			snprintf(name, sizeof(name), "function_%u", i);
			if (round == 0)
				fake_code_make(&fakes[i], "/x.py", name, i, "t");
			if (!says(record_of(python_code_find(&python, (uint64_t)fakes[i].code)), "/x.py", name, i))
				fail_msg("round %u: %s is misnamed", round, name);
		}
	free(fakes);
}

/* C6: also with more objects than words, each death of an object that was looked up is counted, and no other one. */
TEST(c6_deaths_of_what_was_remembered_are_counted)
{
	enum { COUNT = 40000 };
	struct fake_code *fakes = calloc(COUNT, sizeof(*fakes));
	struct fake_code other;
	char name[32];

	assert_non_null(fakes);
	python_code_forked();
	uint64_t before = python_code_deaths();
	for (uint32_t i = 0; i < 1000; i++)
		python_code_forget(fake_code_make(&fakes[i], "/x.py", "f", i, "t"));
	assert_int_equal(python_code_deaths(), before);
	python_code_is_remembered((uint64_t)fake_code_make(&other, "/x.py", "f", 1, "t"));
	python_code_forget((uint64_t)other.code);
	assert_int_equal(python_code_deaths(), before + 1);

	python_code_forked();
	before = python_code_deaths();
	for (uint32_t i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		(void)python_code_find(&python, fake_code_make(&fakes[i], "/x.py", name, i, "t"));
	}
	for (uint32_t i = 0; i < COUNT; i++)
		python_code_forget((uint64_t)fakes[i].code);
	assert_int_equal(python_code_deaths(), before + COUNT);
	free(fakes);
}

/* C2 and C3: after the death of the object its address means nothing. */
TEST(c3_a_reused_address_gets_its_new_name)
{
	struct fake_code fake;
	char name[32];

	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "life_%u", i);

		uint64_t addr = fake_code_make(&fake, "/x.py", name, 1, "t");

		assert_true(says(record_of(python_code_find(&python, addr)), "/x.py", name, 1));
		assert_true(says(record_of(python_code_find(&python, addr)), "/x.py", name, 1));
		python_code_forget(addr);
	}
}

/* The other half of the proof: without the death the old name stays. */
TEST(c3_only_the_death_ends_a_name)
{
	struct fake_code fake;
	uint64_t addr = fake_code_make(&fake, "/x.py", "first", 1, "t");

	python_code_find(&python, addr);
	fake_code_make(&fake, "/x.py", "second", 1, "t");
	assert_true(says(record_of(python_code_find(&python, addr)), "/x.py", "first", 1));
	python_code_forget(addr);
	assert_true(says(record_of(python_code_find(&python, addr)), "/x.py", "second", 1));
}

/* C4: the same content is the same record, and every part of it counts. */
TEST(c4_same_content_same_record)
{
	static const struct {
		const char *file, *name;
		uint32_t line;
		const char *table;
	} kinds[] = {
		{ "/x.py", "f", 1, "t" }, { "/y.py", "f", 1, "t" }, { "/x.py", "g", 1, "t" }, { "/x.py", "f", 2, "t" },
		{ "/x.py", "f", 1, "u" }, { "/x.pyf", "", 1, "t" }, { "/x.py", "", 1, "ft" }, { "", "", 0, "" },
	};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
	struct fake_code fakes[2];
	uint32_t index[KINDS];

	for (uint32_t i = 0; i < KINDS; i++) {
		uint64_t first = fake_code_make(&fakes[0], kinds[i].file, kinds[i].name, kinds[i].line, kinds[i].table);
		uint64_t second = fake_code_make(&fakes[1], kinds[i].file, kinds[i].name, kinds[i].line, kinds[i].table);

		index[i] = python_code_find(&python, first).index;

		uint64_t used = capture_file_header()->used_bytes[KMEM_SECTION_RECORDS];

		assert_int_equal(python_code_find(&python, second).index, index[i]);
		assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_RECORDS], used);
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(index[j], index[i]);
		python_code_forget(first);
		python_code_forget(second);
	}
}

TEST(flags_come_from_the_texts)
{
	static const struct {
		const char *file, *name;
		uint16_t flags;
	} rows[] = {
		{ "/data/u/x.py", "<module>", KMEM_CODE_MODULE_BODY },
		{ "/data/u/x.py", "<module>x", 0 },
		{ "/v/lib/python3.11/json/decoder.py", "f", KMEM_CODE_LIBRARY },
		{ "/usr/lib64/python3.9/re.py", "f", KMEM_CODE_LIBRARY },
		{ "/usr/lib/python3/dist-packages/n.py", "f", KMEM_CODE_LIBRARY },
		{ "/data/u/lib/python3/x.py", "f", 0 },
		{ "site-packages/x.py", "f", 0 },
		{ "C:/site-packages/x.py", "f", KMEM_CODE_LIBRARY },
		{ "<frozen importlib._bootstrap>", "f", KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB },
		{ "<frozen os>", "<module>", KMEM_CODE_LIBRARY | KMEM_CODE_MODULE_BODY },
		{ "x<frozen os>", "f", 0 },
		{ "<froze", "f", 0 },
		{ "", "", 0 },
	};
	struct fake_code fake;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t addr = fake_code_make(&fake, rows[i].file, rows[i].name, 1, "t");

		for (int again = 0; again < 2; again++) { // by content, then by address
			struct python_code code = python_code_find(&python, addr);

			if (code.flags != rows[i].flags || record_of(code)->record.flags != rows[i].flags)
				fail_msg("%s %s: %u", rows[i].file, rows[i].name, code.flags);
		}
		python_code_forget(addr);
	}
}

TEST(unreadable_texts_are_empty)
{
	struct fake_code fake;
	uint64_t addr = fake_code_make(&fake, "/x.py", "f", 7, "t");

	fake_put(fake.code, 112, 0);
	fake_put(fake.code, 128, 0xdddddddddddddddd);
	fake_put(fake.code, 136, 1);

	const struct kmem_code *record = record_of(python_code_find(&python, addr));

	assert_true(says(record, "", "", 7));
	assert_int_equal(record->line_table_bytes, 0);
}

TEST(a_long_line_table_is_cut)
{
	enum { BYTES = (1 << 20) + 5 };
	struct fake_code fake;
	char *table = calloc(1, BYTES + 64);
	uint64_t addr = fake_code_make(&fake, "/x.py", "f", 1, "t");

	assert_non_null(table);
	fake_bytes(table, "", 0);
	fake_put(table, 16, BYTES);
	fake_put(fake.code, 136, (uint64_t)table);

	struct python_code code = python_code_find(&python, addr);

	assert_int_equal(record_of(code)->line_table_bytes, 1 << 20);
	assert_int_equal(code.flags, KMEM_CODE_CUT_TEXT);
	free(table);
}

TEST(a_forked_child_stores_again)
{
	struct fake_code fake;
	uint64_t addr = fake_code_make(&fake, "/x.py", "f", 1, "t");
	uint32_t before = python_code_find(&python, addr).index;

	python_code_forked();
	assert_int_not_equal(python_code_find(&python, addr).index, before);
}

/* The capture is as large as it may be: what a function is called is kept, on which lines it is not. */
TEST(beyond_the_limit_a_name_is_kept_without_its_lines)
{
	struct fake_code fake;
	uint64_t lost_before = capture_file_header()->losses[KMEM_LOST_PYTHON_TEXT];
	uint64_t addr = fake_code_make(&fake, "/x.py", "first", 7, "t");

	settings.capture_max = capture_file_header()->chunk_count * KMEM_CHUNK_BYTES;
	for (unsigned i = 0; i < 2; i++) { // the same content at the same place again
		const struct kmem_code *record = record_of(python_code_find(&python, addr));

		assert_true(says(record, "/x.py", "first", 7));
		assert_int_equal(record->line_table_bytes, 0);
		assert_int_equal(record->record.flags, KMEM_CODE_CUT_TEXT);
		python_code_forget(addr);
	}
	uint64_t used = capture_file_header()->used_bytes[KMEM_SECTION_RECORDS];

	assert_true(says(record_of(python_code_find(&python, addr)), "/x.py", "first", 7));
	assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_RECORDS], used);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_PYTHON_TEXT] - lost_before, 3);
	python_code_forget(addr);
	settings.capture_max /= 2; // and an eighth more
	assert_true(
		says(record_of(python_code_find(&python, fake_code_make(&fake, "/x.py", "second", 7, "t"))), NO_NAME, "", 0));
	settings.capture_max = 0;
}

/* Last: fills the table of contents. What does not fit is counted and gets the common record. */
TEST(a_full_table_names_the_rest_unknown)
{
	enum { WORDS = (1u << 17) + (1u << 13), COUNT = WORDS + 10000 };
	struct fake_code fake;
	uint64_t lost_before = capture_file_header()->losses[KMEM_LOST_PYTHON_TEXT];
	uint64_t unknown = 0;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < COUNT; i++) {
		uint64_t addr = fake_code_make(&fake, "/x.py", "f", i, "t");
		const struct kmem_code *record = record_of(python_code_find(&python, addr));

		if (says(record, NO_NAME, "", 0))
			unknown++;
		else if (!says(record, "/x.py", "f", i))
			fail_msg("%u is misnamed", i);
		lost += record->line_table_bytes == 0;
		python_code_forget(addr);
	}
	assert_true(unknown >= COUNT - WORDS);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_PYTHON_TEXT] - lost_before, lost);
}

RUN_TESTS(fresh_tables, NULL)
