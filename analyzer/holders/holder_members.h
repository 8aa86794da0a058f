/*
 * holder_members.h - what are the types and the members on a way through objects of C and C++ called?
 *
 * From a variable, or from an object with a table of virtual functions, along pointers: by the symbols of such tables and by debug
 * information. Needs no memory of the process, which may go on.
 *
 * When failing  no name; for an object with virtual functions the offset.
 */
#ifndef HOLDER_MEMBERS_H
#define HOLDER_MEMBERS_H

#include "holders/process_modules.h"

/*
 * address, is_thread_local  as symbolizer_variable() wants them
 * member                    out: ".entries"; "" = not known, or the whole variable
 * leads                     out: the type of what the word points to; NULL = not known
 */
void holder_member_of_variable(struct process_modules *modules, struct process_module *module, uint64_t address,
                               bool is_thread_local, uint64_t offset, char member[SYMBOL_MEMBER_BYTES],
                               const struct symbol_type **leads);

/* The same for a member of something of this type; NULL = not known. */
void holder_member_of_type(const struct symbol_type *type, uint64_t offset, char member[SYMBOL_MEMBER_BYTES],
                           const struct symbol_type **leads);

/*
 * The text behind a root, with names where its marks are: "block (c10::TensorImpl) of a.cc:4 f .storage". The caller frees it.
 *
 * leads  the type of what the root's word points to; NULL = not known
 */
char *holder_words_told(struct process_modules *modules, const char *text, const struct symbol_type *leads);

#endif
