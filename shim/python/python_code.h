/*
 * python_code.h - which record of the capture describes this code object?
 *
 * At first sight of a code object its file, function, first line and line table are copied into one struct
 * kmem_code; from then on its address leads to that record, until the object dies. The same code made again
 * (a notebook cell that runs twice, exec in a loop) is found by its content and gets the record it had.
 *
 * Context     inside the reentry guard (find), from the code type's dealloc slot (forget).
 * Safe from   any hook, any thread; no lock, no allocation.
 * When full   a record without the lines, then one that stands for all code without one; KMEM_LOST_PYTHON_TEXT for both.
 */
#ifndef PYTHON_CODE_H
#define PYTHON_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_layout.h"

struct python_code {
	uint32_t index;   // of its struct kmem_code in RECORDS (units of 8 bytes)
	uint16_t flags;   // enum kmem_code_flags
	bool is_found;    // false: the capture has no room at all
	bool is_new_cell; // code of a notebook's cell that was not known by its address
};

/* code_addr: a code object that something keeps alive during the call: here, a frame of this thread. */
struct python_code python_code_find(const struct python_interpreter *python, uint64_t code_addr);

/*
 * Is it the body of a module that somebody runs as a program? Not the interpreter's own modules, and not what is typed in or piped in. The
 * object is alive.
 */
bool python_code_is_program(const struct python_interpreter *python, uint64_t code_addr);

/* The object at this address is about to be freed. Before its memory is. */
void python_code_forget(uint64_t code_addr);

/* Something is remembered of a code object that was not looked up: its death is to be counted. */
void python_code_is_remembered(uint64_t code_addr);

/*
 * How many code objects have died of which anything was remembered, forks counted in; a few more. What was learned about a living one
 * holds until this number changes: one that dies is counted before its memory is freed. Not counted are those of which nothing was
 * learned: of a thread that evaluates expressions in a loop nearly all.
 */
uint64_t python_code_deaths(void);

/* In a forked child, single-threaded: its own capture has no records yet. */
void python_code_forked(void);

#endif
