/*
 * hooks_new.h - C++'s operator new and delete.
 */
#ifndef HOOKS_NEW_H
#define HOOKS_NEW_H

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"

/* All forms alike: bytes, up to two more arguments (size, alignment, nothrow), and the real function. */
typedef void *hooks_new_ask_function(size_t bytes, uintptr_t second, uintptr_t third);
typedef void hooks_new_drop_function(void *addr, uintptr_t second, uintptr_t third);

/* hooks_malloc.c: recorded here, because the real function is an allocator's and need not call malloc or free. */
void *hooks_new_ask(size_t bytes, uintptr_t second, uintptr_t third, hooks_new_ask_function *real) ASSEMBLY_CALLS;
void hooks_new_drop(void *addr, uintptr_t second, uintptr_t third, hooks_new_drop_function *real) ASSEMBLY_CALLS;
/* hooks_malloc.c: where no library defines it. A program that checks whether the function exists finds it. */
void *hooks_new_ask_nobody(size_t bytes) ASSEMBLY_CALLS;
void hooks_new_drop_nobody(void *addr) ASSEMBLY_CALLS;
/* hooks_malloc.c: the unwinder passes hooks_new_call(). */
int hooks_new_personality(int version, int actions, uint64_t exception_class, void *exception,
                          void *context) ASSEMBLY_CALLS;

/* Calls the real function. An exception may pass: of our frames below this one only the guard must be left. */
void *hooks_new_call(size_t bytes, uintptr_t second, uintptr_t third, hooks_new_ask_function *real) ASSEMBLY_CALLS;

/* After something was unloaded. */
void hooks_new_unloaded(void);

#endif
