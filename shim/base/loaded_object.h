/*
 * loaded_object.h - which ELF object is mapped at this address, and what of it can be read?
 *
 * Safe from   any hook, any signal handler: _dl_find_object() (glibc 2.35 and later) takes no lock and
 *             allocates nothing. Nothing here is cached.
 * When failing  false. An older libc's loader refuses the library, and says which version it wants.
 */
#ifndef LOADED_OBJECT_H
#define LOADED_OBJECT_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct loaded_object {
	uint64_t start_addr;             // of the mapped range
	uint64_t end_addr;               // first byte after it
	uint64_t eh_frame_header_addr;   // PT_GNU_EH_FRAME, 0 = the object has none
	const struct link_map *link_map; // the loader's own; valid while the object stays loaded
};

bool loaded_object_find(uint64_t pc, struct loaded_object *object);

/* Program headers as mapped, or NULL when they are not in the first page of the object. */
const Elf64_Phdr *loaded_object_headers(const struct loaded_object *object, unsigned *count);

/*
 * The readable bytes around `addr`: adjacent readable segments together. Without program headers it is
 * the whole mapped range. False when `addr` is in no readable segment.
 */
bool loaded_object_readable(const struct loaded_object *object, uint64_t addr, uint64_t *low, uint64_t *high);

#endif
