/*
 * python_layout.h - where does this interpreter keep what a walk needs?
 *
 * One row of offsets per minor version of CPython, two from 3.13 on: builds without a global lock have larger
 * objects. Debug builds have the rows of release builds. From 3.13 on the interpreter describes itself
 * (`_Py_DebugOffsets`, first thing in `_PyRuntime`) and its own word replaces the row's. A row is used only
 * after the check: types that never move say their name and size, and another size means another layout.
 *
 * Context     once, when an interpreter was found.
 * Safe from   any context: reads static data of the interpreter, which need not be initialised.
 * When failing  false, and one clause that says which check failed.
 */
#ifndef PYTHON_LAYOUT_H
#define PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inside every type object, counted from its beginning: behind the header of variable-sized objects. */
#define PYTHON_TYPE_NAME(layout) ((layout)->object_size + 8u)
#define PYTHON_TYPE_BASIC_SIZE(layout) ((layout)->object_size + 16u)
#define PYTHON_TYPE_DEALLOC(layout) ((layout)->object_size + 32u)
#define PYTHON_TYPE_FLAGS(layout) ((layout)->object_size + 152u)
#define PYTHON_TYPE_BASE(layout) ((layout)->object_size + 240u)
#define PYTHON_TYPE_DICT(layout) ((layout)->object_size + 248u)

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
	uint16_t string_data;      // of compact strings that are not ASCII
	uint8_t string_kind_shift; // where the bits of string_state begin that are looked at
	uint8_t code_tag_mask;     // low bits of frame_code that are not address
};

/* The static types of one interpreter, as addresses. */
struct python_types {
	uint64_t type;
	uint64_t code;
	uint64_t frame;
	uint64_t generator;
	uint64_t string;
	uint64_t bytes;
};

/* An interpreter that can be read. */
struct python_interpreter {
	struct python_layout layout;
	struct python_types types;
	uint32_t version_hex; // PY_VERSION_HEX
};

/* Does `_PyRuntime` at this address say that there is no global lock? False before 3.13. */
bool python_layout_is_free_threaded(uint32_t version_hex, const uint64_t *debug_offsets);

/* The row of a PY_VERSION_HEX, or NULL. */
const struct python_layout *python_layout_find(uint32_t version_hex, bool is_free_threaded);

/* Is there an interpreter whose types are those of this row? `why` gets a clause when not. */
bool python_layout_check(const struct python_layout *layout, const struct python_types *types, char *why,
                         size_t why_size);

/*
 * Puts the interpreter's own offsets in place of the row's; nothing to do before 3.13.
 *
 * debug_offsets  address of `_PyRuntime`
 */
bool python_layout_refine(struct python_layout *layout, const uint64_t *debug_offsets, uint32_t version_hex, char *why,
                          size_t why_size);

#endif
