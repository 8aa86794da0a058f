/*
 * symbol_type.h - a type of C or C++, as debug information has it; of a text pool.
 */
#ifndef SYMBOL_TYPE_H
#define SYMBOL_TYPE_H

#include <stdbool.h>

#define SYMBOL_MEMBER_BYTES 96 // of a member's name; longer ones are cut

struct symbol_type;

/* NULL is no type. */
bool symbol_type_is(const struct symbol_type *left, const struct symbol_type *right);

/* Of a node of a map, a set, a hash table or a list of the C++ library; such a type leads to itself. */
bool symbol_type_is_node(const struct symbol_type *type);

#endif
