/*
 * frame.h - one function on a stack, in words: which, in which file, at which line.
 *
 * Strings are valid UTF-8, owned by the model, never NULL.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum model_frame_kind { MODEL_FRAME_NATIVE, MODEL_FRAME_PYTHON };

struct model_frame {
	enum model_frame_kind kind;
	const char *function;    // demangled, without arguments for C++; "" when unknown
	const char *file;        // source file, or a model_cell's; "" when unknown
	uint32_t line;           // 0 = unknown
	uint32_t first_line;     // Python: of the function; 0 = unknown
	const char *module;      // base name of the ELF object, or of the Python file; "" when unknown
	const char *module_path; // full path of the ELF object; "" for Python
	const char *absence;     // native: why the module gives no names; NULL = it is as it was recorded, or not known
	uint64_t module_offset;  // address relative to the module (native), 0 for Python
	bool is_user;            // the user's own code: not the standard library, site-packages, the interpreter, a system
							 // library or an allocator
	uint32_t cell_count;     // Python: so many cells have the line, each the one before a little changed; 0 = one
	uint64_t built_ns;       // native: when the module's file was written, CLOCK_REALTIME; 0 = unknown
	bool is_importlib;       // Python: part of the import system
	bool is_library;         // Python: of a library or the import system, as the recorder saw it
	bool is_repeated;        // native: it called itself, and further frames of it were left out behind this one
	bool is_trusted;         // a capture of a trusted owner names it (owner.h): its source file may be read
};

#endif
