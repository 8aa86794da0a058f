/*
 * symbolizer_names.h - which function of an ELF file's table of symbols is at an address?
 *
 * When failing  a file without symbols has no names.
 */
#ifndef SYMBOLIZER_NAMES_H
#define SYMBOLIZER_NAMES_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

struct symbolizer_names;

/* The gate is shut, as for symbolizer_names_find(). */
struct symbolizer_names *symbolizer_names_new(Dwfl_Module *module);
void symbolizer_names_free(struct symbolizer_names *names);

/*
 * address  as libdwfl has it: with its bias
 * returns  as it is in the file; NULL: none is there
 */
const char *symbolizer_names_find(struct symbolizer_names *names, uint64_t address);

#endif
