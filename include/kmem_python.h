/*
 * kmem_python.h - where does CPython 3.8 to 3.15 keep what is read from it?
 *
 * One row of offsets per minor version, two from 3.13 on: builds without a global lock have larger objects. Debug builds have the rows of
 * release builds. The recorder reads its own interpreter (shim/python/), the analyzer another process's (analyzer/holders/).
 *
 * Source: computed with each version's internal headers for x86-64; the fields are the same on aarch64
 * except those of `_PyRuntime` before 3.13 (its locks are larger there).
 *
 * Not chosen  offsets found by disassembling getters: works until the compiler changes its mind.
 */
#ifndef KMEM_PYTHON_H
#define KMEM_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the low bits of the flags of a type. */
#define PYTHON_TYPE_MANAGED_WEAKREFS (1u << 3)
#define PYTHON_TYPE_MANAGED_DICT (1u << 4)

/* How the thread state leads to the innermost frame, and which C-stack address belongs to a frame. */
enum python_chain_kind {
	PYTHON_CHAIN_OBJECTS,        // tstate -> frame; no address known
	PYTHON_CHAIN_OBJECTS_CFRAME, // tstate -> frame; tstate -> cframe, one per frame
	PYTHON_CHAIN_CFRAME_ENTRY,   // tstate -> cframe -> frame; one cframe up to a frame with is_entry
	PYTHON_CHAIN_CFRAME_SHIM,    // tstate -> cframe -> frame; one shim frame per evaluator
	PYTHON_CHAIN_SHIM,           // tstate -> frame; one shim frame per evaluator
};

/* How a frame says which instruction it is at. */
enum python_instruction {
	PYTHON_INSTRUCTION_BYTES,   // int32, bytes
	PYTHON_INSTRUCTION_UNITS,   // int32, units of 2 bytes
	PYTHON_INSTRUCTION_POINTER, // address in the code object
};

/*
 * Byte offsets. In tstate_frame, tstate_cframe, frame_owner, code_qualified_name and code_copies 0 means that this
 * build has no such field; other fields of later or earlier versions are 0 and not used.
 */
struct python_layout {
	uint16_t version; // 0x030b for 3.11
	uint8_t chain;    // enum python_chain_kind
	uint8_t instruction;
	bool is_free_threaded;
	// the current thread state is this thread's; without: that of the thread which has the only lock
	bool has_lock_for_each_interpreter;
	bool has_shaped_keys;       // the keys of a dictionary say their kind and the binary logarithms of their sizes
	bool has_free_list_in_head; // a dead object's head holds the address of the next one
	uint8_t debug_words;        // which column of `_Py_DebugOffsets`' words, counted from 1; 0 = it has none
	uint8_t type_managed_flags; // flags of a type whose objects have two words in front of them

	/* tp_basicsize of the types that the check looks at. */
	uint16_t code_size;
	uint16_t frame_size;
	uint16_t generator_size;
	uint16_t string_size;

	uint16_t runtime_finalizing;
	uint16_t runtime_interpreters; // head, with main behind it
	uint16_t tstate_frame;
	uint16_t tstate_cframe;
	uint16_t tstate_thread_id; // used up to 3.11
	uint16_t cframe_frame;
	uint16_t cframe_previous;

	uint16_t frame_previous;
	uint16_t frame_code;
	uint16_t frame_instruction;
	uint16_t frame_globals;
	uint16_t frame_owner;
	uint16_t frame_is_entry; // one before frame_owner: they are read together
	uint16_t frame_copy;     // int32: which of code_copies it runs

	uint16_t code_first_line;
	uint16_t code_file;
	uint16_t code_name;
	uint16_t code_qualified_name;
	uint16_t code_line_table;
	uint16_t code_first_traceable;
	uint16_t code_bytecode; // the bytecode itself with PYTHON_INSTRUCTION_POINTER, else a bytes object
	// array of the threads' own copies of it: size, then addresses; [0] is the bytecode itself
	uint16_t code_copies;

	uint16_t object_type;
	uint16_t object_size; // ob_size of variable-sized objects
	uint16_t bytes_data;
	uint16_t string_length;
	uint16_t string_state;
	uint16_t string_ascii_data;
	uint16_t string_data; // of compact strings that are not ASCII
	/* What an analyzer needs that looks from outside. */
	uint16_t interpreter_threads; // 0 = looked for
	uint16_t frame_object;        // 0 = the frame is one
	uint16_t frame_locals;
	uint16_t frame_function;  // from 3.11 on
	uint16_t frame_names;     // of a class body or a module
	uint16_t frame_inline;    // in a frame object: the frame itself; 0 = as above
	uint16_t generator_frame; // 0 = it has a frame object
	uint16_t code_stack_size;
	uint16_t
		code_local_names; // from 3.11 on all names; before: those of variables, and the tuples of cells and free ones follow
	uint16_t tuple_items;

	uint8_t string_kind_shift; // where the bits of string_state begin that are looked at
	uint8_t code_tag_mask;     // low bits of frame_code that are not address
};

/* ---- runs of fields that several rows share ---- */

/* Objects, of builds with a global interpreter lock and of those without. */
#define LAYOUT_OBJECTS                                                                              \
	.object_type = 8, .object_size = 16, .bytes_data = 32, .string_length = 16, .string_state = 32, \
	.string_kind_shift = 2
#define LAYOUT_OBJECTS_FREE_THREADED                                                                       \
	.is_free_threaded = true, .object_type = 24, .object_size = 32, .bytes_data = 48, .string_length = 32, \
	.string_state = 48
#define STRINGS_TO_3_11 .string_size = 80, .string_ascii_data = 48, .string_data = 72
#define STRINGS_FROM_3_12 .string_size = 64, .string_ascii_data = 40, .string_data = 56
#define STRINGS_FREE_THREADED .string_size = 80, .string_ascii_data = 56, .string_data = 72

/* 3.8 to 3.10: frames are objects. */
#define FRAMES_3_8                                                                                               \
	.code_size = 176, .runtime_finalizing = 16, .runtime_interpreters = 32, .tstate_frame = 24,                  \
	.tstate_thread_id = 176, .frame_previous = 24, .frame_code = 32, .frame_globals = 48, .code_first_line = 40, \
	.code_file = 104, .code_name = 112, .code_line_table = 120, .code_bytecode = 48, .interpreter_threads = 8,   \
	.frame_names = 56, .code_local_names = 72, .tuple_items = 24, LAYOUT_OBJECTS, STRINGS_TO_3_11
#define LAYOUT_3_8                                                                                                   \
	.chain = PYTHON_CHAIN_OBJECTS, .instruction = PYTHON_INSTRUCTION_BYTES, .frame_size = 368, .generator_size = 96, \
	.frame_locals = 360, .frame_instruction = 104, FRAMES_3_8

/* What 3.11 and 3.12, 3.11 and later versions, and both builds of 3.13 have in common. */
#define FRAMES_3_11_3_12                                                                                              \
	.frame_size = 120, .runtime_finalizing = 24, .runtime_interpreters = 40, .tstate_cframe = 56, .frame_inline = 48, \
	.frame_locals = 72, .tuple_items = 24
#define CODE_NAMES_3_11 .code_file = 112, .code_name = 120, .code_qualified_name = 128, .code_line_table = 136
#define FRAMES_3_11 .instruction = PYTHON_INSTRUCTION_POINTER, .has_shaped_keys = true, .code_local_names = 96
#define RUNTIME_3_13                                                                                                 \
	.debug_words = 1, .runtime_finalizing = 608, .runtime_interpreters = 632, .frame_owner = 70, .frame_inline = 64, \
	.frame_locals = 72, .tuple_items = 24

/* From 3.12 on. What is behind the code object's first fields moves with each version. */
#define FRAMES_3_12                                                                                            \
	.frame_object = 48, .frame_function = 16, .frame_names = 40, .generator_frame = 72, .code_stack_size = 64, \
	.frame_previous = 8, .frame_code = 0, .frame_instruction = 56, .frame_globals = 24,                        \
	.has_lock_for_each_interpreter = true, FRAMES_3_11,                                                        \
	.type_managed_flags = PYTHON_TYPE_MANAGED_DICT | PYTHON_TYPE_MANAGED_WEAKREFS
#define CODE_3_12 .code_first_line = 68, CODE_NAMES_3_11, LAYOUT_OBJECTS, STRINGS_FROM_3_12
#define CODE_3_13_FREE_THREADED                                                                                    \
	.code_first_line = 84, .code_file = 128, .code_name = 136, .code_qualified_name = 144, .code_line_table = 152, \
	LAYOUT_OBJECTS_FREE_THREADED, STRINGS_FREE_THREADED

/* From 3.13 on: the thread state leads to the frame. */
#define FRAMES_3_13 .chain = PYTHON_CHAIN_SHIM, .tstate_frame = 72, FRAMES_3_12
#define FRAMES_3_14                                                                                      \
	.frame_inline = 72, .frame_locals = 80, .tuple_items = 32 /* behind its hash */, .code_tag_mask = 7, \
	.has_free_list_in_head = true, FRAMES_3_13
#define LAYOUT_3_14                                                                                             \
	.code_size = 208, .frame_size = 152, .generator_size = 152, .frame_owner = 74, .code_first_traceable = 192, \
	.code_bytecode = 208, FRAMES_3_14, CODE_3_12
#define LAYOUT_3_14_FREE_THREADED                                                                               \
	.code_size = 232, .frame_size = 168, .generator_size = 168, .frame_owner = 78, .frame_copy = 72,            \
	.code_first_traceable = 208, .code_bytecode = 232, .code_copies = 224, .string_kind_shift = 8, FRAMES_3_14, \
	CODE_3_13_FREE_THREADED

/* The row of a PY_VERSION_HEX, or NULL. */
static inline const struct python_layout *
python_layout_find(uint32_t version_hex, bool is_free_threaded)
{
	static const struct python_layout layouts[] = {
		{ .version = 0x0308, LAYOUT_3_8 },
		{ .version = 0x0309, LAYOUT_3_8 },
		{
			.version = 0x030a,
			.chain = PYTHON_CHAIN_OBJECTS_CFRAME,
			.instruction = PYTHON_INSTRUCTION_UNITS,
			.frame_size = 360,
			.frame_locals = 352,
			.generator_size = 88,
			.tstate_cframe = 48,
			.cframe_previous = 8,
			.frame_instruction = 96,
			FRAMES_3_8,
		},
		{
			.version = 0x030b,
			.chain = PYTHON_CHAIN_CFRAME_ENTRY,
			.type_managed_flags = PYTHON_TYPE_MANAGED_DICT,
			.code_size = 184,
			.generator_size = 152,
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
			.code_first_traceable = 168,
			.code_bytecode = 184,
			.interpreter_threads = 16,
			.frame_object = 40,
			.frame_names = 24,
			.generator_frame = 80,
			.code_stack_size = 68,
			LAYOUT_OBJECTS,
			STRINGS_TO_3_11,
			FRAMES_3_11_3_12,
			FRAMES_3_11,
			CODE_NAMES_3_11,
		},
		{
			.version = 0x030c,
			.chain = PYTHON_CHAIN_CFRAME_SHIM,
			.code_size = 192,
			.generator_size = 144,
			.cframe_previous = 8,
			.frame_owner = 70,
			.code_first_traceable = 176,
			.code_bytecode = 192,
			FRAMES_3_12,
			CODE_3_12,
			FRAMES_3_11_3_12,
		},
		{
			.version = 0x030d,
			.code_size = 200,
			.frame_size = 136,
			.generator_size = 144,
			.code_first_traceable = 184,
			.code_bytecode = 200,
			FRAMES_3_13,
			CODE_3_12,
			RUNTIME_3_13,
		},
		{
			.version = 0x030d,
			.code_size = 216,
			.frame_size = 152,
			.generator_size = 160,
			.code_first_traceable = 200,
			.code_bytecode = 216,
			FRAMES_3_13,
			CODE_3_13_FREE_THREADED,
			RUNTIME_3_13,
			.string_kind_shift = 2,
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

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version == version_hex >> 16 && layouts[i].is_free_threaded == is_free_threaded)
			return &layouts[i];
	}
	return NULL;
}

#endif
