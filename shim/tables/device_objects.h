/*
 * device_objects.h - device memory without an address: who still holds it, handles or mappings?
 *
 * cuMemCreate() gives a handle to physical memory. It lives as long as a handle or a mapping refers to it: PyTorch's expandable
 * segments release the handle once it is mapped, NCCL retains and releases handles of other people's memory.
 *
 * Context     inside the reentry guard.
 * Safe from   any thread: no lock, no allocation. Tested in tests/unit/shim/tables/test_device_objects.c.
 * When full   create says so, at once; calls about handles that have no object do nothing.
 *
 * Invariants:
 *   O1  an object's word is 0 (free), or has DEVICE_OBJECT_LIVE set with the number of its handles and of all its references.
 *   O2  who drops the last reference owns the object, until it says what became of it.
 *   O3  a mapping refers to the object, not to the handle: the driver may give the handle out again while the mapping is there.
 */
#ifndef DEVICE_OBJECTS_H
#define DEVICE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tables/address_table.h"

#define DEVICE_OBJECTS_MAX 65536u // 128 GiB in pieces of 2 MiB
#define DEVICE_OBJECTS_NO_OWNER 0xffff

/* A reference that was dropped before the driver was asked. */
struct device_drop {
	uint32_t object; // index + 1; 0 = none of ours
	bool was_last_handle;
	bool is_dead;               // it was the last reference of all
	bool is_imported;           // of another process: made without a site
	uint16_t owner;             // with was_last_handle
	struct address_block block; // with is_dead
};

/*
 * owner     with which the handle ends, if it is not released before; DEVICE_OBJECTS_NO_OWNER
 * *old      site != 0: the handle stood for memory whose release was not seen
 * returns   false: no room
 */
bool device_objects_create(uint64_t handle, struct address_block block, unsigned owner, struct address_block *old);
bool device_objects_retain(uint64_t handle); // false: it stands for none of ours
/* The driver gave out a handle for what is mapped at `addr`: one that is known, or one for memory whose handles were all released. */
void device_objects_retain_mapped(uint64_t handle, uint64_t addr);
/* True: of memory that was imported. *unseen: what was mapped there, and unmapped without our knowing; the caller's, as above. */
bool device_objects_mapped(uint64_t addr, uint64_t bytes, uint64_t handle, struct device_drop *unseen);

/* Before the driver releases a handle; then one of the other two. */
struct device_drop device_objects_release(uint64_t handle);
void device_objects_released(struct device_drop drop); // the driver has done it
void device_objects_not_released(struct device_drop drop, uint64_t handle);

/*
 * After the driver unmapped a range: the next of the mappings in it. *addr moves on. Its is_dead object is the caller's, who
 * calls device_objects_released(). False: there are no more.
 */
bool device_objects_unmapped(uint64_t *addr, uint64_t end, struct device_drop *drop);

/* The next handle that ended with its owner. The same as above for *drop. False: there are no more. */
bool device_objects_ended(uint64_t *cursor, unsigned owner, struct device_drop *drop);

void device_objects_clear(void); // forked child: one thread

#endif
