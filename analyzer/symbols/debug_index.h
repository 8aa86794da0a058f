/*
 * debug_index.h - which entry of the debug information is this variable, or the class of this name?
 *
 * One walk over it. Each question returns false when nothing is found, or when more than one thing may be meant: classes in
 * namespaces without a name that are there twice.
 */
#ifndef DEBUG_INDEX_H
#define DEBUG_INDEX_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/symbolizer_dwarf.h"

struct debug_index;

/* dwarf: where the units are, which must outlive it. */
struct debug_index *debug_index_new(struct symbolizer_dwarf *dwarf);
void debug_index_free(struct debug_index *index);

bool debug_index_variable(const struct debug_index *index, uint64_t address, bool is_thread_local, Dwarf_Die *die);
bool debug_index_class(const struct debug_index *index, const char *name, Dwarf_Die *die);

/* A class that is declared at *die, and defined elsewhere: by its whole name. */
bool debug_index_definition(const struct debug_index *index, Dwarf_Die *die);

#endif
