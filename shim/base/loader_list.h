/*
 * loader_list.h - which object of the loader's list defines this symbol; and which is mapped at this address, where the loader has no
 * _dl_find_object()?
 *
 * The list of objects that the loader keeps for debuggers is read, without the loader's lock: its owner may wait for one of ours. Objects
 * in name spaces of their own (dlmopen) are not on it.
 *
 * Safe from   any hook, any signal handler: no lock, no allocation. Asks the kernel whether a node can be read.
 * When full   the list is read for each address: slower, and right.
 * When failing  false: the address is in no object, or an object says nothing of itself that can be read.
 */
#ifndef LOADER_LIST_H
#define LOADER_LIST_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct loaded_object {
	uint64_t start_addr;             // of the mapped range
	uint64_t end_addr;               // first byte after it
	uint64_t eh_frame_header_addr;   // PT_GNU_EH_FRAME, 0 = the object has none
	const struct link_map *link_map; // the loader's own; valid while the object stays loaded
};

bool loader_list_find(uint64_t pc, struct loaded_object *object);

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
