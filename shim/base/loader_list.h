/*
 * loader_list.h - which objects are loaded; which of them defines this symbol; and which is mapped at this address, where the loader has
 * no _dl_find_object()?
 *
 * The list of objects that the loader keeps for debuggers is read as it stands, without the loader's lock: its owner may wait for one of
 * ours, and a fork copies it as it is: a child would wait for a thread that it does not have. So nothing here or elsewhere calls
 * dl_iterate_phdr() or dladdr(). Objects in name spaces of their own (dlmopen) are not on the list.
 *
 * Safe from   any hook, any signal handler, a forked child: no lock, no allocation. What may be unloaded meanwhile is read through the kernel.
 * When full   the list is read for each address: slower, and right.
 * When failing  false: the address is in no object, or an object says nothing of itself that can be read.
 */
#ifndef LOADER_LIST_H
#define LOADER_LIST_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checked_memory.h"
#include "base/elf_symbols.h"

struct loaded_object {
	uint64_t start_addr;             // of the mapped range
	uint64_t end_addr;               // first byte after it
	uint64_t eh_frame_header_addr;   // PT_GNU_EH_FRAME, 0 = the object has none
	const struct link_map *link_map; // the loader's own; valid while the object stays loaded
};

/* What is loaded now stays: before the first hook has returned. Later calls change nothing. */
void loader_list_start(void);

/* A visit of each object on the list, in its order. */
struct loader_walk {
	const struct link_map *node; // of the object that is visited. Compared, and read only where the object stays
	struct elf_object
		elf;            // with the window below where the object may be unloaded meanwhile; the kernel's has no symbols
	uint64_t path_addr; // for elf_symbols_copy_text()
	bool stays;
	bool is_whole; // the list was read to its end
	/* loader_list.c's own: */
	const struct link_map *next;
	uint64_t kernels_addr;
	unsigned count;
	struct checked_window window;
};

/* Of the walk and the object, while there is one: for (loader_walk_begin(&walk); loader_walk_next(&walk);) */
void loader_walk_begin(struct loader_walk *walk);
bool loader_walk_next(struct loader_walk *walk);

bool loader_list_find(uint64_t pc, struct loaded_object *object);

/* A node of the list, which may have been freed since. False: it cannot be read. */
bool loader_list_read(const struct link_map *at, struct link_map *node);

/* To be called after that object was closed, and perhaps unloaded, before its next look-up. */
void loader_list_closed(const struct link_map *at);

/* To be called after objects were unloaded, before the next look-up of theirs. */
void loader_list_unloaded(void);

/*
 * The first definition of the symbol from this object of a list on: the order of the look-up, as far as the object is in it. NULL: there is
 * none. Of objects that may not be unloaded meanwhile.
 */
void *loader_list_symbol(const struct link_map *at, const char *name);

/* How many objects may be remembered; tests have less. */
#define LOADER_LIST_ROOM 512u
extern uint32_t loader_list_room;

#endif
