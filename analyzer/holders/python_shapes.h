/*
 * python_shapes.h - where do objects of this CPython keep what they hold?
 *
 * Offsets are those of kmem_python.h; here is what follows from the version, and members of types of C.
 */
#ifndef PYTHON_SHAPES_H
#define PYTHON_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_python.h"

/* Where an instance with a managed dictionary has its attributes. */
enum python_attributes {
	PYTHON_ATTRIBUTES_DICT,   // in a dictionary of its own alone
	PYTHON_ATTRIBUTES_VALUES, // values at -32, dictionary at -24
	PYTHON_ATTRIBUTES_TAGGED, // at -24 the dictionary, or values with the lowest bit set
	PYTHON_ATTRIBUTES_INLINE, // behind the object, or a dictionary at -24
};

static inline enum python_attributes
python_shape_attributes(const struct python_layout *shape)
{
	return shape->version >= 0x030d   ? PYTHON_ATTRIBUTES_INLINE
	       : shape->version == 0x030c ? PYTHON_ATTRIBUTES_TAGGED
	       : shape->version == 0x030b ? PYTHON_ATTRIBUTES_VALUES
	                                  : PYTHON_ATTRIBUTES_DICT;
}

/* Of a pool of the allocator of small objects. */
static inline uint32_t
python_shape_pool_bytes(const struct python_layout *shape)
{
	return shape->version >= 0x030a ? 0x4000 : 0x1000;
}

/* What a member is for, where ways are told otherwise by it. */
enum python_member_role {
	PYTHON_MEMBER_OBJECT,
	PYTHON_MEMBER_BORROWED,     // it keeps nothing alive
	PYTHON_MEMBER_NAMES,        // a dictionary of attributes
	PYTHON_MEMBER_THREAD_NAMES, // that has one for each thread
	PYTHON_MEMBER_FRAME,        // of a generator
	PYTHON_MEMBER_STORAGE,      // where items are, or what says how they are
	PYTHON_MEMBER_DATA,         // the first byte of what it is for
};

struct python_member {
	uint16_t offset;
	const char *name;
	enum python_member_role role;
};

/* A member of a type of C; NULL = not known. */
const struct python_member *python_shape_member(const struct python_layout *shape, const char *type, bool is_exception,
                                                uint64_t offset);

#endif
