/*
 * elf_symbols.h - does this mapped object define that symbol?
 *
 * Reads the dynamic symbol table as it is mapped, so that a hook can ask, which must not call the loader. What is not exported
 * may still be a section of the file.
 *
 * Safe from   any hook: no lock, no allocation. An object that may be unloaded meanwhile needs a window.
 * When failing  nothing is found; also of an object without a table of hashes.
 */
#ifndef ELF_SYMBOLS_H
#define ELF_SYMBOLS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checked_window;

/* A mapped object. */
struct elf_object {
	uint64_t load_bias;    // address in memory - address in the file
	uint64_t dynamic_addr; // of its dynamic section; 0 = none
	struct checked_window
		*window; // NULL = it stays mapped; else all is read through it, so that what is gone is only not found
};

/* Program headers as they are mapped at the start of an object, or NULL when they are not in its first page. */
const Elf64_Phdr *elf_symbols_headers(uint64_t start_addr, uint64_t bytes, unsigned *count);

/* A symbol that the object defines itself. Of several versions the one that a program of today is linked with. False: it does not. */
bool elf_symbols_find(const struct elf_object *object, const char *name, Elf64_Sym *symbol);

/* Its address; 0 = none. */
uint64_t elf_symbols_addr(const struct elf_object *object, const char *name);

/* Is that what the object calls itself (DT_SONAME)? */
bool elf_symbols_is_called(const struct elf_object *object, const char *name);

/* The text of its nth entry with that tag (DT_NEEDED), or NULL. Of an object that stays mapped. */
const char *elf_symbols_text(const struct elf_object *object, Elf64_Sxword tag, unsigned nth);

/* Copies a text of the object's or of what describes it, with its end. False: it is not there any more, or is longer than that. */
bool elf_symbols_copy_text(const struct elf_object *object, uint64_t addr, char *text, size_t bytes);

/* Has the file a section of that name? Reads the file, which costs a few system calls; false also when that cannot be told. */
bool elf_symbols_file_has_section(const char *path, const char *name);

#endif
