/*
 * test_python_layout.c - one row per version, and the checks that refuse what does not fit.
 */
#include "test.h"

#include "python/python_layout.h"
#include "python/python_visit.h"

static const char *const names[] = { "type", "code", "frame", "generator", "str", "bytes" };

/* Type objects that would pass for the row's own. */
struct fake_types {
	uint64_t words[6][8];
	struct python_types types;
};

static void
make_types(struct fake_types *fakes, const struct python_layout *row)
{
	const uint64_t sizes[6] = {
		0, row->code_size, row->frame_size, row->generator_size, row->string_size, row->is_free_threaded ? 49 : 33
	};

	for (unsigned i = 0; i < 6; i++) {
		memset(fakes->words[i], 0, sizeof(fakes->words[i]));
		fakes->words[i][row->object_type / 8] = (uint64_t)fakes->words[0];
		fakes->words[i][PYTHON_TYPE_NAME(row) / 8] = (uint64_t)names[i];
		fakes->words[i][PYTHON_TYPE_BASIC_SIZE(row) / 8] = sizes[i];
	}
	memcpy(&fakes->types,
	       (uint64_t[6]){ (uint64_t)fakes->words[0], (uint64_t)fakes->words[1], (uint64_t)fakes->words[2],
	                      (uint64_t)fakes->words[3], (uint64_t)fakes->words[4], (uint64_t)fakes->words[5] },
	       sizeof(fakes->types));
}

/* The i-th row: those with a global lock, then those without. NULL behind the last. */
static const struct python_layout *
row_at(unsigned i)
{
	static const uint32_t minors[] = { 8, 9, 10, 11, 12, 13, 14, 15, 13, 14, 15 };

	return i < 11 ? python_layout_find(0x03000000 | minors[i] << 16, i >= 8) : NULL;
}

TEST(versions_with_and_without_a_row)
{
	for (uint32_t minor = 0; minor < 30; minor++) {
		for (unsigned free_threaded = 0; free_threaded < 2; free_threaded++) {
			const struct python_layout *row = python_layout_find(0x03000000 | minor << 16 | 0x07f0, free_threaded);

			assert_int_equal(row != NULL, minor >= (free_threaded ? 13 : 8) && minor <= 15);
			if (row != NULL) {
				assert_int_equal(row->version, 0x0300 | minor);
				assert_int_equal(row->is_free_threaded, free_threaded);
			}
		}
	}
	assert_null(python_layout_find(0x020712f0, false));
	assert_null(python_layout_find(0x040b00f0, false));
	assert_null(python_layout_find(0, false));
}

TEST(rows_are_complete)
{
	const struct python_layout *row;

	for (unsigned which = 0; (row = row_at(which)) != NULL; which++) {
		uint32_t minor = row->version & 0xff;

		/* In every version, and never first in its struct. */
		const uint16_t fields[] = { row->code_size,         row->frame_size,         row->generator_size,
			                        row->string_size,       row->runtime_finalizing, row->runtime_interpreters,
			                        row->frame_previous,    row->frame_instruction,  row->code_first_line,
			                        row->code_file,         row->code_name,          row->code_line_table,
			                        row->code_bytecode,     row->object_type,        row->object_size,
			                        row->bytes_data,        row->string_length,      row->string_state,
			                        row->string_ascii_data, row->string_data,        row->string_kind_shift,
			                        row->frame_globals };

		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			if (fields[i] == 0)
				fail_msg("3.%u: field %zu of the list is 0", minor, i);

		/* In some: together or not at all. */
		assert_int_equal(row->frame_owner != 0, minor >= 11);

		/* What a visit takes from the kind of chain (python_visit.h). */
		assert_int_equal(python_visit_has_pointer(row->chain), row->instruction == PYTHON_INSTRUCTION_POINTER);
		assert_int_equal(python_visit_has_pointer(row->chain), row->frame_owner != 0);
		if (row->chain == PYTHON_CHAIN_CFRAME_ENTRY)
			assert_int_equal(row->frame_is_entry + 1, row->frame_owner);
		assert_int_equal(row->code_qualified_name != 0, minor >= 11);
		assert_int_equal(row->code_first_traceable != 0, minor >= 11);
		assert_int_equal(row->instruction == PYTHON_INSTRUCTION_POINTER, minor >= 11);
		assert_int_equal(row->frame_is_entry != 0, row->chain == PYTHON_CHAIN_CFRAME_ENTRY);
		assert_true(row->tstate_frame != 0 || row->tstate_cframe != 0);
		assert_int_equal(row->tstate_thread_id != 0, minor <= 11);
		assert_int_equal(row->code_copies != 0, row->is_free_threaded && minor >= 14);
		assert_int_equal(row->frame_copy != 0, row->code_copies != 0);
		assert_int_equal(row->has_shaped_keys, minor >= 11);
		assert_int_equal(row->has_lock_for_each_interpreter, minor >= 12);
		assert_int_equal(row->has_free_list_in_head, minor >= 14);
		assert_int_equal(row->debug_words != 0, minor >= 13);
		assert_int_equal(row->type_managed_flags != 0, minor >= 11);
		if (row->code_copies != 0)
			assert_int_not_equal(row->code_tag_mask, 0);
	}
}

/* Without a global lock the header of every object is 16 bytes longer; nothing else moves the fields behind it. */
TEST(rows_without_a_lock_differ_by_the_header)
{
	for (unsigned i = 8; i < 11; i++) {
		const struct python_layout *row = row_at(i);
		const struct python_layout *other = row_at(i - 3);

		assert_int_equal(row->version, other->version);
		assert_int_equal(row->object_type - other->object_type, 16);
		assert_int_equal(row->object_size - other->object_size, 16);
		assert_int_equal(row->bytes_data - other->bytes_data, 16);
		assert_int_equal(row->string_data - other->string_data, 16);
		assert_int_equal(row->string_ascii_data - other->string_ascii_data, 16);
		assert_int_equal(row->code_file - other->code_file, 16);
		assert_int_equal(row->code_line_table - other->code_line_table, 16);
		assert_int_equal(row->code_first_line - other->code_first_line, 16);
		assert_int_equal(row->code_first_traceable - other->code_first_traceable, 16);
		assert_int_equal(row->code_bytecode - other->code_bytecode, row->code_copies != 0 ? 24 : 16);
		assert_int_equal(row->code_size, row->code_bytecode);
		assert_int_equal(row->frame_instruction, other->frame_instruction);
		assert_int_equal(row->tstate_frame, other->tstate_frame);
	}
}

TEST(a_type_of_another_size_or_name_is_refused)
{
	const struct python_layout *row;

	for (unsigned which = 0; (row = row_at(which)) != NULL; which++) {
		struct fake_types fakes;
		char why[120];

		make_types(&fakes, row);
		assert_true(python_layout_check(row, &fakes.types, why, sizeof(why)));
		for (unsigned i = 1; i < 6; i++) {
			char wanted[120];

			make_types(&fakes, row);
			fakes.words[i][PYTHON_TYPE_BASIC_SIZE(row) / 8] += 8;
			assert_false(python_layout_check(row, &fakes.types, why, sizeof(why)));
			snprintf(wanted, sizeof(wanted), "type %s has %lu bytes, %lu expected", names[i],
			         (unsigned long)fakes.words[i][PYTHON_TYPE_BASIC_SIZE(row) / 8],
			         (unsigned long)fakes.words[i][PYTHON_TYPE_BASIC_SIZE(row) / 8] - 8);
			assert_string_equal(why, wanted);

			make_types(&fakes, row);
			fakes.words[i][PYTHON_TYPE_NAME(row) / 8] = (uint64_t) "other";
			assert_false(python_layout_check(row, &fakes.types, why, sizeof(why)));

			make_types(&fakes, row);
			fakes.words[i][PYTHON_TYPE_NAME(row) / 8] = 16;
			assert_false(python_layout_check(row, &fakes.types, why, sizeof(why)));

			make_types(&fakes, row);
			fakes.words[i][row->object_type / 8] += 16; // Py_TRACE_REFS shifts everything
			assert_false(python_layout_check(row, &fakes.types, why, sizeof(why)));
		}
	}
}

TEST(the_interpreters_own_offsets_win)
{
	static const uint16_t previous[] = { 1029, 1032, 1040 };
	static const uint16_t ascii_data[] = { 1070, 1080, 1092 };
	uint64_t words[128];
	char why[120];

	for (uint32_t minor = 8; minor <= 12; minor++) { // nothing is read
		struct python_layout layout = *python_layout_find(0x03000000 | minor << 16, false);

		assert_false(python_layout_is_free_threaded(0x03000000 | minor << 16, NULL));
		assert_true(python_layout_refine(&layout, NULL, 0x03000000 | minor << 16, why, sizeof(why)));
	}
	for (unsigned which = 5; which < 11; which++) {
		const struct python_layout *row = row_at(which);
		uint32_t minor = row->version & 0xff;
		uint32_t version_hex = 0x03000000 | minor << 16 | 0x01f0;
		struct python_layout layout = *row;

		for (unsigned i = 0; i < 128; i++)
			words[i] = 1000 + i;
		memcpy(&words[0], "xdebugpy", 8);
		words[1] = version_hex;
		words[2] = row->is_free_threaded;
		assert_int_equal(python_layout_is_free_threaded(version_hex, words), row->is_free_threaded);
		assert_true(python_layout_refine(&layout, words, version_hex, why, sizeof(why)));
		assert_int_equal(layout.runtime_finalizing, 1004);
		assert_int_equal(layout.runtime_interpreters, 1005);
		assert_int_equal(layout.frame_previous, previous[minor - 13]);
		assert_int_equal(layout.string_ascii_data, ascii_data[minor - 13]);
		assert_int_equal(layout.code_first_traceable, row->code_first_traceable);
		assert_int_equal(layout.code_copies, minor == 13 ? 0 : minor == 14 ? 1049 : 1057);
		assert_int_equal(layout.frame_copy, minor == 13 ? 0 : minor == 14 ? 1038 : 1046);

		layout = *row;
		words[33 + (minor == 14 ? 3 : minor == 15 ? 11 : 0)] = 1u << 20;
		assert_false(python_layout_refine(&layout, words, version_hex, why, sizeof(why)));
		assert_non_null(strstr(why, "1048576"));

		assert_false(python_layout_refine(&layout, words, version_hex + 0x100, why, sizeof(why)));
		words[0]++;
		assert_false(python_layout_is_free_threaded(version_hex, words));
		assert_false(python_layout_refine(&layout, words, version_hex, why, sizeof(why)));
		assert_string_equal(why, "_PyRuntime does not begin with xdebugpy");
	}
}

RUN_TESTS(NULL, NULL)
