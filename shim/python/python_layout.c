/*
 * python_layout.c - the offsets of CPython 3.8 to 3.15, and the check that they fit.
 *
 * Source: computed with each version's internal headers for x86-64; the fields are the same on aarch64
 * except those of `_PyRuntime` before 3.13 (its locks are larger there).
 *
 * Not chosen  offsets found by disassembling getters: works until the compiler changes its mind.
 */
#include "python/python_layout.h"

#include "base/diag.h"
#include "python/python_memory.h"

/* ---- runs of fields that several rows share ---- */

/* Objects, of builds with a global interpreter lock and of those without. */
#define OBJECTS                                                                                     \
	.object_type = 8, .object_size = 16, .bytes_data = 32, .string_length = 16, .string_state = 32, \
	.string_kind_shift = 2
#define OBJECTS_FREE_THREADED                                                                              \
	.is_free_threaded = true, .object_type = 24, .object_size = 32, .bytes_data = 48, .string_length = 32, \
	.string_state = 48
#define STRINGS_TO_3_11 .string_size = 80, .string_ascii_data = 48, .string_data = 72
#define STRINGS_FROM_3_12 .string_size = 64, .string_ascii_data = 40, .string_data = 56
#define STRINGS_FREE_THREADED .string_size = 80, .string_ascii_data = 56, .string_data = 72

/* 3.8 to 3.10: frames are objects. */
#define FRAMES_3_8                                                                                               \
	.code_size = 176, .runtime_finalizing = 16, .runtime_interpreters = 32, .tstate_frame = 24,                  \
	.tstate_thread_id = 176, .frame_previous = 24, .frame_code = 32, .frame_globals = 48, .code_first_line = 40, \
	.code_file = 104, .code_name = 112, .code_line_table = 120, .code_bytecode = 48, OBJECTS, STRINGS_TO_3_11
#define LAYOUT_3_8                                                                                                   \
	.chain = PYTHON_CHAIN_OBJECTS, .instruction = PYTHON_INSTRUCTION_BYTES, .frame_size = 368, .generator_size = 96, \
	.frame_instruction = 104, FRAMES_3_8

/* From 3.12 on. What is behind the code object's first fields moves with each version. */
#define FRAMES_3_12                                                                                           \
	.instruction = PYTHON_INSTRUCTION_POINTER, .frame_previous = 8, .frame_code = 0, .frame_instruction = 56, \
	.frame_globals = 24, .has_shaped_keys = true, .has_lock_for_each_interpreter = true,                      \
	.type_managed_flags = PYTHON_TYPE_MANAGED_DICT | PYTHON_TYPE_MANAGED_WEAKREFS
#define CODE_3_12                                                                                                  \
	.code_first_line = 68, .code_file = 112, .code_name = 120, .code_qualified_name = 128, .code_line_table = 136, \
	OBJECTS, STRINGS_FROM_3_12
#define CODE_3_13_FREE_THREADED                                                                                    \
	.code_first_line = 84, .code_file = 128, .code_name = 136, .code_qualified_name = 144, .code_line_table = 152, \
	OBJECTS_FREE_THREADED, STRINGS_FREE_THREADED

/* From 3.13 on: the thread state leads to the frame. */
#define FRAMES_3_13 .chain = PYTHON_CHAIN_SHIM, .tstate_frame = 72, FRAMES_3_12
#define FRAMES_3_14 .code_tag_mask = 7, .has_free_list_in_head = true, FRAMES_3_13
#define LAYOUT_3_14                                                                                             \
	.code_size = 208, .frame_size = 152, .generator_size = 152, .frame_owner = 74, .code_first_traceable = 192, \
	.code_bytecode = 208, FRAMES_3_14, CODE_3_12
#define LAYOUT_3_14_FREE_THREADED                                                                               \
	.code_size = 232, .frame_size = 168, .generator_size = 168, .frame_owner = 78, .frame_copy = 72,            \
	.code_first_traceable = 208, .code_bytecode = 232, .code_copies = 224, .string_kind_shift = 8, FRAMES_3_14, \
	CODE_3_13_FREE_THREADED

static const struct python_layout layouts[] = {
	{ .version = 0x0308, LAYOUT_3_8 },
	{ .version = 0x0309, LAYOUT_3_8 },
	{
		.version = 0x030a,
		.chain = PYTHON_CHAIN_OBJECTS_CFRAME,
		.instruction = PYTHON_INSTRUCTION_UNITS,
		.frame_size = 360,
		.generator_size = 88,
		.tstate_cframe = 48,
		.cframe_previous = 8,
		.frame_instruction = 96,
		FRAMES_3_8,
	},
	{
		.version = 0x030b,
		.chain = PYTHON_CHAIN_CFRAME_ENTRY,
		.instruction = PYTHON_INSTRUCTION_POINTER,
		.has_shaped_keys = true,
		.type_managed_flags = PYTHON_TYPE_MANAGED_DICT,
		.code_size = 184,
		.frame_size = 120,
		.generator_size = 152,
		.runtime_finalizing = 24,
		.runtime_interpreters = 40,
		.tstate_cframe = 56,
		.tstate_thread_id = 152,
		.cframe_frame = 8,
		.cframe_previous = 16,
		.frame_previous = 48,
		.frame_code = 32,
		.frame_instruction = 56,
		.frame_owner = 69,
		.frame_is_entry = 68,
		.frame_globals = 8,
		.code_first_line = 72,
		.code_file = 112,
		.code_name = 120,
		.code_qualified_name = 128,
		.code_line_table = 136,
		.code_first_traceable = 168,
		.code_bytecode = 184,
		OBJECTS,
		STRINGS_TO_3_11,
	},
	{
		.version = 0x030c,
		.chain = PYTHON_CHAIN_CFRAME_SHIM,
		.code_size = 192,
		.frame_size = 120,
		.generator_size = 144,
		.runtime_finalizing = 24,
		.runtime_interpreters = 40,
		.tstate_cframe = 56,
		.cframe_frame = 0,
		.cframe_previous = 8,
		.frame_owner = 70,
		.code_first_traceable = 176,
		.code_bytecode = 192,
		FRAMES_3_12,
		CODE_3_12,
	},
	{
		.version = 0x030d,
		.debug_words = 1,
		.code_size = 200,
		.frame_size = 136,
		.generator_size = 144,
		.runtime_finalizing = 608,
		.runtime_interpreters = 632,
		.frame_owner = 70,
		.code_first_traceable = 184,
		.code_bytecode = 200,
		FRAMES_3_13,
		CODE_3_12,
	},
	{
		.version = 0x030d,
		.debug_words = 1,
		.code_size = 216,
		.frame_size = 152,
		.generator_size = 160,
		.runtime_finalizing = 608,
		.runtime_interpreters = 632,
		.frame_owner = 70,
		.code_first_traceable = 200,
		.code_bytecode = 216,
		.string_kind_shift = 2,
		FRAMES_3_13,
		CODE_3_13_FREE_THREADED,
	},
	{ .version = 0x030e, .debug_words = 2, .runtime_finalizing = 784, .runtime_interpreters = 808, LAYOUT_3_14 },
	{ .version = 0x030e,
	  .debug_words = 2,
	  .runtime_finalizing = 784,
	  .runtime_interpreters = 808,
	  LAYOUT_3_14_FREE_THREADED },
	{ .version = 0x030f, .debug_words = 3, .runtime_finalizing = 912, .runtime_interpreters = 936, LAYOUT_3_14 },
	{ .version = 0x030f,
	  .debug_words = 3,
	  .runtime_finalizing = 912,
	  .runtime_interpreters = 936,
	  LAYOUT_3_14_FREE_THREADED },
};

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

const struct python_layout *
python_layout_find(uint32_t version_hex, bool is_free_threaded)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version_hex >> 16 && layouts[i].is_free_threaded == is_free_threaded)
			return &layouts[i];
	return NULL;
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
