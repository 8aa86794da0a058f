/*
 * program_elf.h - what do a program's dynamic symbols and the libraries that it names say about recording it?
 *
 * When failing  a file that elfutils cannot read has nothing to say.
 */
#ifndef PROGRAM_ELF_H
#define PROGRAM_ELF_H

#include <stdbool.h>

struct program_elf {
	const char *allocator;        // a sentence: the program defines malloc itself; NULL = it does not
	bool needs_address_sanitizer; // by a shared library
	bool is_python;
};

/* file: of an executable with a dynamic loader; stays open. */
void program_elf_read(int file, struct program_elf *elf);

#endif
