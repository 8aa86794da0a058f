/*
 * python_lines.h - which instruction stands for all instructions of its source line?
 *
 * A line of Python is many instructions, and each that allocates would be a call site of its own. The first one of the line
 * speaks for all: the reader of the capture decodes the same line from it.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook, any thread; no lock, no allocation.
 * When full   older answers make room: costs time only.
 */
#ifndef PYTHON_LINES_H
#define PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The smallest offset of an instruction of this code that is on the same line.
 *
 * code_index  of the code object's struct kmem_code in RECORDS
 * offset      of the instruction, in bytes
 * returns     the offset itself when it has no line, or when the table is damaged before it
 */
uint32_t python_lines_first(uint32_t code_index, uint32_t offset);

/* The same, read from a line table; python_version as in struct kmem_code. */
uint32_t python_lines_read(uint32_t python_version, const uint8_t *table, size_t table_bytes, uint32_t offset);

/* In a forked child, single-threaded: its records have other indexes. */
void python_lines_forked(void);

#endif
