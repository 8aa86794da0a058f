/*
 * python_layout.c - the check that the offsets of a row fit, and the interpreter's own in place of them.
 */
#include "python/python_layout.h"

#include "base/diag.h"
#include "python/python_memory.h"

/*
 * Which 64-bit word of `_Py_DebugOffsets` holds which offset: fixed within a minor version. The words in
 * front are a magic, the version and whether the build is free-threaded.
 */
#define DEBUG_COOKIE "xdebugpy"
#define DEBUG_COLUMNS 3u
enum debug_word { DEBUG_WORD_COOKIE, DEBUG_WORD_VERSION, DEBUG_WORD_FREE_THREADED };

struct slot {
	uint16_t field; // offset in struct python_layout
	// in 3.13, 3.14, 3.15: python_layout.debug_words says which, counted from 1; 0 = in none
	uint8_t word[DEBUG_COLUMNS];
};

#define SLOT(name, ...)                                                        \
	{                                                                          \
		.field = offsetof(struct python_layout, name), .word = { __VA_ARGS__ } \
	}

static const struct slot slots[] = {
	SLOT(runtime_finalizing, 4, 4, 4), SLOT(runtime_interpreters, 5, 5, 5),   SLOT(tstate_frame, 23, 26, 26),
	SLOT(frame_previous, 29, 32, 40),  SLOT(frame_code, 30, 33, 41),          SLOT(frame_instruction, 31, 34, 42),
	SLOT(frame_owner, 33, 36, 44),     SLOT(frame_copy, 0, 38, 46),           SLOT(code_file, 35, 40, 48),
	SLOT(code_name, 36, 41, 49),       SLOT(code_qualified_name, 37, 42, 50), SLOT(code_line_table, 38, 43, 51),
	SLOT(code_first_line, 39, 44, 52), SLOT(code_bytecode, 43, 48, 56),       SLOT(code_copies, 0, 49, 57),
	SLOT(object_type, 45, 51, 59),     SLOT(object_size, 65, 75, 87),         SLOT(bytes_data, 66, 76, 88),
	SLOT(string_state, 68, 78, 90),    SLOT(string_length, 69, 79, 91),       SLOT(string_ascii_data, 70, 80, 92),
};

static bool
has_cookie(const uint64_t *debug_offsets)
{
	return memcmp(&debug_offsets[DEBUG_WORD_COOKIE], DEBUG_COOKIE, sizeof(uint64_t)) == 0;
}

bool
python_layout_is_free_threaded(uint32_t version_hex, const uint64_t *debug_offsets)
{
	const struct python_layout *row = python_layout_find(version_hex, false);

	return row != NULL && row->debug_words != 0 && has_cookie(debug_offsets) &&
	       debug_offsets[DEBUG_WORD_FREE_THREADED] != 0;
}

bool
python_layout_check(const struct python_layout *layout, const struct python_types *types, char *why, size_t why_size)
{
	const struct {
		const char *name;
		uint64_t type;
		uint16_t basic_size;
	} rows[] = {
		{ "code", types->code, layout->code_size },
		{ "frame", types->frame, layout->frame_size },
		{ "generator", types->generator, layout->generator_size },
		{ "str", types->string, layout->string_size },
		{ "bytes", types->bytes, layout->bytes_data + 1u }, // one terminator
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (python_memory_u64(rows[i].type + layout->object_type) != types->type) {
			diag_format(why, why_size, "the type of type %s is not type", rows[i].name);
			return false;
		}

		uint64_t name = python_memory_u64(rows[i].type + PYTHON_TYPE_NAME(layout));
		uint64_t basic_size = python_memory_u64(rows[i].type + PYTHON_TYPE_BASIC_SIZE(layout));

		if (basic_size != rows[i].basic_size) {
			diag_format(why, why_size, "type %s has %lu bytes, %u expected", rows[i].name, (unsigned long)basic_size,
			            (unsigned)rows[i].basic_size);
			return false;
		}
		if (name < PYTHON_MEMORY_LOWEST || name >> KMEM_ADDRESS_BITS != 0 ||
		    strcmp((const char *)name, rows[i].name) != 0) {
			diag_format(why, why_size, "type %s does not have its name", rows[i].name);
			return false;
		}
	}
	return true;
}

bool
python_layout_refine(struct python_layout *layout, const uint64_t *debug_offsets, uint32_t version_hex, char *why,
                     size_t why_size)
{
	if (layout->debug_words == 0)
		return true;
	if (layout->debug_words > DEBUG_COLUMNS) {
		diag_format(why, why_size, "the words of its %s are not known", DEBUG_COOKIE);
		return false;
	}

	if (!has_cookie(debug_offsets)) {
		diag_format(why, why_size, "_PyRuntime does not begin with %s", DEBUG_COOKIE);
		return false;
	}
	if (debug_offsets[DEBUG_WORD_VERSION] != version_hex) {
		diag_format(why, why_size, "its table of offsets is of version %lx, Py_Version is %x",
		            (unsigned long)debug_offsets[DEBUG_WORD_VERSION], version_hex);
		return false;
	}

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		unsigned word = slots[i].word[layout->debug_words - 1];
		uint16_t *field = (uint16_t *)((char *)layout + slots[i].field);

		if (word == 0)
			continue;

		uint64_t offset = debug_offsets[word];

		if (offset > 4095) { // no field is that far in
			diag_format(why, why_size, "word %u of its table of offsets is %lu", word, (unsigned long)offset);
			return false;
		}
		*field = (uint16_t)offset;
	}
	return true;
}
