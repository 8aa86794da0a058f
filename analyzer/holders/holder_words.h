/*
 * holder_words.h - the names on the way from a root to a block (see holder_ways.h).
 *
 * What Python knows was read before; symbols and debug information name roots, C++ types and members. Needs no memory of the process, which
 * may go on.
 *
 * When failing  no name; for an object with virtual functions the offset.
 */
#ifndef HOLDER_WORDS_H
#define HOLDER_WORDS_H

#include <stdbool.h>

#include "holders/holder_search.h"
#include "holders/holder_ways.h"
#include "holders/stack_locals.h"

/* Fills in steps and text. is_private: without keys of dictionaries. texts: where they live. */
void holder_words(const struct holder_search *search, struct stack_locals *locals, bool is_private,
                  struct text_pool *texts, struct holder_way *way);

#endif
