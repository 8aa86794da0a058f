/*
 * holder_words.h - the way from a root to a block, in words (see holder_ways.h).
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

/*
 * "static variable `cache` of server -> block (c10::TensorImpl) of a.cc:4 f .storage". The caller frees it.
 *
 * is_private  keys of dictionaries are left out
 * is_key      so is what differs from sample to sample: ways with one key are one
 */
char *holder_words(const struct holder_search *search, struct stack_locals *locals, const struct holder_way *way,
                   bool is_private, bool is_key);

#endif
