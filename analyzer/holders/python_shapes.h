/*
 * python_shapes.h - where do objects of this CPython keep what they hold?
 *
 * One row of offsets per minor version. The recorder's own table (shim/python/python_layout.c) has what a walk of frames needs; here is
 * what is needed beyond that for dictionaries, frames seen from outside, generators and the allocator of small objects. Offsets are
 * bytes on x86-64.
 */
#ifndef PYTHON_SHAPES_H
#define PYTHON_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

/* How a thread state leads to its innermost frame. */
enum python_frames {
	PYTHON_FRAMES_OBJECTS, // tstate -> frame object
	PYTHON_FRAMES_CFRAME,  // tstate -> cframe -> frame
	PYTHON_FRAMES_STATE,   // tstate -> frame
};

/* Where an instance with a managed dictionary has its attributes. */
enum python_attributes {
	PYTHON_ATTRIBUTES_DICT,   // in a dictionary of its own alone
	PYTHON_ATTRIBUTES_VALUES, // values at -32, dictionary at -24
	PYTHON_ATTRIBUTES_TAGGED, // at -24 the dictionary, or values with the lowest bit set
	PYTHON_ATTRIBUTES_INLINE, // behind the object, or a dictionary at -24
};

struct python_shape {
	uint16_t version;     // 0x030b for 3.11
	uint8_t frames;       // enum python_frames
	uint8_t attributes;   // enum python_attributes
	bool has_shaped_keys; // keys of a dictionary say their kind
	bool has_tagged_int;  // the size of an int stands in a tag
	uint32_t pool_bytes;  // of the allocator of small objects
	uint16_t runtime_interpreters;
	uint16_t interpreter_threads; // 0 = looked for
	uint16_t state_frame;         // or cframe
	uint16_t cframe_frame;
	uint16_t frame_code;
	uint16_t frame_previous;
	uint16_t frame_object; // 0 = the frame is one
	uint16_t frame_locals;
	uint16_t frame_function;  // from 3.11 on
	uint16_t frame_names;     // of a class body or a module
	uint16_t frame_inline;    // in a frame object: the frame itself; 0 = as above
	uint16_t generator_frame; // 0 = it has a frame object
	uint16_t code_file;       // the name follows, then the qualified name from 3.11 on
	uint16_t code_first_line;
	uint16_t code_stack_size;
	uint16_t
		code_local_names; // from 3.11 on all names; before: those of variables, and the tuples of cells and free ones follow
	uint16_t tuple_items;
	uint16_t string_ascii; // where the text begins
	uint16_t string_data;
};

/* NULL = none for this PY_VERSION_HEX. */
const struct python_shape *python_shape_find(uint32_t version_hex);

/* The name of a member of a type of C; "" = the member keeps nothing alive. NULL = not known. */
const char *python_shape_member(const struct python_shape *shape, const char *type, bool is_exception, uint64_t offset);

#endif
