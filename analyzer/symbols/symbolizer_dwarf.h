/*
 * symbolizer_dwarf.h - which source line, and which inlined functions, are at this address?
 *
 * When failing  fewer frames; damaged debug information is the same as none.
 */
#ifndef SYMBOLIZER_DWARF_H
#define SYMBOLIZER_DWARF_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLIZER_INLINES_MAX 32 // kept of one address
#define SYMBOLIZER_SCOPES_MAX 256

struct symbolizer_dwarf;

struct dwarf_place {
	const char *linkage_name; // NULL: none; owned by the debug information
	const char *name;         // NULL: unknown
	const char *file;         // as it was compiled; NULL: unknown
	uint32_t line;            // 0 = unknown
};

/* dwarf: stays the caller's and must outlive the result. */
struct symbolizer_dwarf *symbolizer_dwarf_new(Dwarf *dwarf);
void symbolizer_dwarf_free(struct symbolizer_dwarf *index);

/* Where the functions, variables and types of unit `at` are; false: there is no such unit. */
bool symbolizer_dwarf_unit(struct symbolizer_dwarf *index, size_t at, Dwarf_Die *body);

/* Did elfutils not find a split unit (-gsplit-dwarf) that was asked for? Packages of them (.dwp) it reads since 0.191. */
bool symbolizer_dwarf_lacks_split(const struct symbolizer_dwarf *index);

/* Is there more of it than is read of any file? What was left out has no names. */
bool symbolizer_dwarf_is_cut(const struct symbolizer_dwarf *index);

/*
 * Places innermost first; 0 when nothing is known of the address. The last one is the function itself. folder: out, when there are
 * places: where relative files begin; "" = unknown.
 */
size_t symbolizer_dwarf_find(struct symbolizer_dwarf *index, uint64_t address,
                             struct dwarf_place places[SYMBOLIZER_INLINES_MAX], const char **folder);

/* The function at this address, and the blocks and inlined functions in it that are around the address, from outside inwards; 0 = not known. */
size_t symbolizer_dwarf_scopes(struct symbolizer_dwarf *index, uint64_t address,
                               Dwarf_Die scopes[SYMBOLIZER_SCOPES_MAX]);

#endif
