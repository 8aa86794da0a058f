/*
 * holder_roots.h - what is a root called that Python does not name?
 *
 * It is named by the symbols of the library that it lies in. Needs no memory of the process but copies made before: the process may go
 * on.
 */
#ifndef HOLDER_ROOTS_H
#define HOLDER_ROOTS_H

#include "holders/holder_search.h"
#include "holders/holder_ways.h"
#include "holders/process_modules.h"
#include "holders/stack_locals.h"

/* Copies what is needed to name this way's root. The process stands still. */
void holder_root_copy(const struct holder_search *search, const struct holder_way *way, struct stack_locals *locals);

/* A variable, a stack, a mapping. leads: out, the type of what the root's word points to; NULL = not known */
struct way_step holder_root_step(const struct holder_search *search, const struct holder_way *way,
                                 struct stack_locals *locals, struct text_pool *texts,
                                 const struct symbol_type **leads);

#endif
