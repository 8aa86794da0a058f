/*
 * symbolizer_types.h - of which type is a variable of C or C++, and which member of it is at this offset?
 *
 * From debug information alone: variables by address, classes of C++ by name. One walk over it, at the first question.
 *
 * When failing  not known. What is not certain is not known either: classes in namespaces without a name that are there twice, what is behind a
 *               base class that a pointer leads to, members of unions.
 */
#ifndef SYMBOLIZER_TYPES_H
#define SYMBOLIZER_TYPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text_pool.h"
#include "symbols/symbol_type.h"
#include "symbols/symbolizer_dwarf.h"

struct symbolizer_types;

/* dwarf: where the units are, which must outlive it; types live in the pool. */
struct symbolizer_types *symbolizer_types_new(struct symbolizer_dwarf *dwarf, struct text_pool *pool);
void symbolizer_types_free(struct symbolizer_types *types);

/* NULL = not known. */
const struct symbol_type *symbolizer_types_variable(struct symbolizer_types *types, uint64_t address,
                                                    bool is_thread_local);
const struct symbol_type *symbolizer_types_class(struct symbolizer_types *types, const char *name);

/* Of a variable by its entry, which is one of the file's. */
const struct symbol_type *symbolizer_types_of(struct symbolizer_types *types, Dwarf_Die *variable);

/* As symbolizer_member(). */
bool symbolizer_types_member(const struct symbol_type *type, int64_t offset, char name[SYMBOL_MEMBER_BYTES],
                             const struct symbol_type **leads);

/* May the word at this offset be a pointer? False for characters and numbers, and where nobody knows. */
bool symbolizer_types_may_lead(const struct symbol_type *type, int64_t offset);

#endif
