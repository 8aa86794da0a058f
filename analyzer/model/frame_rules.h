/*
 * frame_rules.h - whose code is this frame, and which frame of a stack does a person want to see first?
 *
 * Safe from   anywhere; no state.
 */
#ifndef FRAME_RULES_H
#define FRAME_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/frame.h"

struct frame_rules {
	const char *project;          // only code below this folder is the user's own; NULL = by rule
	const char *project_as_given; // the same with its symbolic links; NULL = none
	const char *wrappers;  // more functions that pass on what an allocator gives: "pool_get,arena_*"; NULL = none
	const char *directory; // where the program started: relative file names begin here; "" = unknown
};

/* Is this file of Python's, by its name, not the user's? */
bool frame_rules_is_library(const char *file);

/* Sets is_user. `is_library`: the recorder saw that a Python file is not the user's. */
void frame_rules_judge(const struct frame_rules *rules, struct model_frame *frame, bool is_library);

/*
 * Does every native stack end so: "_start", "start_thread", with or without the C library's symbols?
 *
 * inner  the frame that it called; NULL = none
 */
bool frame_rules_is_start_up(const struct model_frame *frame, const struct model_frame *inner);

/*
 * Does it only carry out what other code asks for: start-up, constructors that the loader calls, the interpreter from its main() to the
 * first line, the import system, allocators, templates of the standard library? Such frames make a tree of callers longer and say
 * nothing.
 */
bool frame_rules_is_machinery(const struct model_frame *frame, const struct model_frame *inner);

/*
 * Innermost frame of the user's own code. In a stack with Python frames a native frame counts only with file and line.
 * Without user code the innermost Python frame outside the import system, then any Python frame, then the innermost named
 * native frame outside allocators; NULL when there is none.
 *
 * is_started_by_program  a program started the process: what it was given to run (`python -c`) nobody has typed, and nobody can open
 */
const struct model_frame *frame_rules_where(const struct model_frame *const *frames, uint32_t count,
                                            bool is_started_by_program);

/*
 * Which top-level module was being imported ("torch"): of the outermost module body between the allocation and the user's code, or
 * of the extension module. False, and "", when the stack does not say.
 */
#define FRAME_RULES_NAME_BYTES 64
bool frame_rules_import(const struct model_frame *const *frames, uint32_t count, char name[FRAME_RULES_NAME_BYTES]);

enum frame_origin {
	FRAME_ORIGIN_USER,    // the user's own
	FRAME_ORIGIN_PACKAGE, // an installed Python package, with its native code
	FRAME_ORIGIN_STANDARD_LIBRARY,
	FRAME_ORIGIN_LIBRARY, // a shared object of no Python package
	FRAME_ORIGIN_RUNTIME, // interpreter, allocators, libc, import system: they only do what others ask
};
/* name: "pandas", "json", "libxml2.so.2"; "" of the others. */
enum frame_origin frame_rules_origin(const struct model_frame *frame, char name[FRAME_RULES_NAME_BYTES]);

#endif
