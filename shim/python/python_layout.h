/*
 * python_layout.h - where does this interpreter keep what a walk needs?
 *
 * A row of kmem_python.h says it. From 3.13 on the interpreter describes itself (`_Py_DebugOffsets`, first thing
 * in `_PyRuntime`) and its own word replaces the row's. A row is used only
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

#include "kmem_python.h"

/* Inside every type object, counted from its beginning: behind the header of variable-sized objects. */
#define PYTHON_TYPE_NAME(layout) ((layout)->object_size + 8u)
#define PYTHON_TYPE_BASIC_SIZE(layout) ((layout)->object_size + 16u)
#define PYTHON_TYPE_DEALLOC(layout) ((layout)->object_size + 32u)
#define PYTHON_TYPE_FLAGS(layout) ((layout)->object_size + 152u)
#define PYTHON_TYPE_BASE(layout) ((layout)->object_size + 240u)
#define PYTHON_TYPE_DICT(layout) ((layout)->object_size + 248u)

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
