/*
 * python_text.h - which source line is this instruction of a Python code object?
 *
 * Decodes the line table that the recorder copied, offline. Three formats: co_lnotab up to 3.9, co_linetable of 3.10,
 * location table from 3.11 on. Formats as described in CPython's Objects/lnotab_notes.txt, Objects/locations.md.
 *
 * Safe from   anywhere; no state. The table is hostile input: nothing beyond its end is read.
 * When failing  the line of the last complete entry before the damage; 0 when there is none.
 */
#ifndef PYTHON_TEXT_H
#define PYTHON_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * python_version  0x030b for 3.11: chooses the format
 * first_line      co_firstlineno
 * offset_bytes    of the instruction in the bytecode
 * returns         1 and up; an instruction that has no line of its own gets that of the code before it. 0 = unknown
 */
uint32_t python_text_line(uint32_t python_version, uint32_t first_line, const uint8_t *table, size_t table_bytes,
                          uint32_t offset_bytes);

#endif
