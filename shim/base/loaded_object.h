/*
 * loaded_object.h - which ELF object is mapped at this address, and what of it can be read?
 *
 * Safe from   any hook, any signal handler: _dl_find_object() (glibc 2.35 and later) takes no lock and
 *             allocates nothing; nor does what stands for it before (see loader_list.h).
 * When failing  false.
 */
#ifndef LOADED_OBJECT_H
#define LOADED_OBJECT_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/loader_list.h"

bool loaded_object_find(uint64_t pc, struct loaded_object *object);

/* The object of a handle of dlopen(): glibc's is its node. False: it is something else, such as RTLD_NEXT, or cannot be read. */
bool loaded_object_of_handle(void *handle, struct loaded_object *object);

/* Is that object still what begins there? */
bool loaded_object_is_there(const struct link_map *link_map, uint64_t start_addr);

/* To be called after dlclose() of that one: was it unloaded? */
bool loaded_object_was_closed(const struct loaded_object *object);

/* To be called after something was unloaded. */
void loaded_object_unloaded(void);

/* Program headers as mapped, or NULL when they are not in the first page of the object. */
const Elf64_Phdr *loaded_object_headers(const struct loaded_object *object, unsigned *count);

/*
 * The readable bytes around `addr`: adjacent readable segments together. Without program headers it is
 * the whole mapped range. False when `addr` is in no readable segment.
 */
bool loaded_object_readable(const struct loaded_object *object, uint64_t addr, uint64_t *low, uint64_t *high);

#endif
