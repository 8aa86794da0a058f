/*
 * module_map.h - which ELF objects do the stacks of this capture lead into?
 *
 * Safe from   module_map_note_pc, module_map_is_over: any hook; no allocation; a few system calls and a lock (wait_lock.h) the first
 *             time a module is seen.
 * When full, or the lock cannot be had   KMEM_LOST_MODULES, once for each module that finds no room; the report shows such frames as
 *             plain addresses.
 *
 * Invariants, tested by number in tests/unit/shim/unwind/test_native_stack.c:
 *   M1  a module is recorded once between two unloads of it, whoever races.
 *   M2  at any moment of module_version at most one recorded module covers an address.
 */
#ifndef MODULE_MAP_H
#define MODULE_MAP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes sure that the module of this address is in the capture; an address in no module is ignored. To be
 * called before the stack's module_version is read: it may discover that another module was there
 * before and raise it.
 */
void module_map_note_pc(uint64_t pc);

/* Does one of these words of a stack that was stored at `version` lead into code that another library has replaced since? */
bool module_map_is_over(uint32_t version, const uint64_t *frames, uint32_t count);

/* In a forked child, after its own capture was opened: that one has no modules yet. */
void module_map_forked(void);

/*
 * After the loader unloaded something, or may have: closes the records of what is gone. Voids the unwind rules where there was one, or
 * something else was unloaded. Returns whether it did.
 */
bool module_map_unloaded_check(bool was_unloaded);

#endif
