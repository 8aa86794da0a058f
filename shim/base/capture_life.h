/*
 * capture_life.h - how the capture file comes and goes. Only lifecycle.c, hooks_signal.c and hooks_sandbox.c call these.
 *
 * Safe from   open, identified, close, remove, forked: one thread, tracking off. The growth lock: around fork.
 */
#ifndef CAPTURE_LIFE_H
#define CAPTURE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"

/*
 * Creates FOLDER/NAME.kmem (FOLDER too, NAME with -2, -3, ... when taken; mode 0600). False, after one message, when
 * that cannot be had; recording then goes on in private memory.
 */
bool capture_file_open(const char *folder, const char *name);

/*
 * Instead: all is kept in memory, until capture_file_make() makes a file of it; false, and that is over, where there can be none. For a
 * process of which little may ever be to be told. One thread, and what it records goes on in between.
 */
bool capture_file_put_off(void);
bool capture_file_is_put_off(void);
bool capture_file_make(const char *folder, const char *name);

/* header->identity is complete: checksums it (F4). */
void capture_file_identified(void);

/* How it ended: stored in the file at once, so that it is told even when sealing is not possible any more. */
void capture_file_mark(enum kmem_state state, int exit_code, uint64_t now_ns);

/* The end: late writers are cut off, everything is sealed by checksums (F5). After capture_file_mark(). */
void capture_file_close(void);

/* In a child that was forked out of a hook: what that hook still writes must not reach the parent's file. */
void capture_file_privatize(void);

/* Deletes the file of this process, if there is one already; the mappings stay usable. Another one of the same name and contents takes its place, where possible. */
bool capture_file_remove(void);
void capture_file_restore(void);

/*
 * The file was cut while it is mapped, or its disk fails: a touch of it is SIGBUS. Is this address in it? Puts private zeroed memory
 * in its place, for what is under way in other threads, and says so once; nothing more is recorded (false: that memory cannot be
 * had). For a signal handler.
 */
bool capture_file_holds(const void *addr);
bool capture_file_abandon(void);

/* Room for what may be recorded after the program has taken the right to open files from itself (hooks_sandbox.c). */
void capture_file_make_room(void);

/* Held around fork, so that the child does not inherit a growth that nobody finishes. */
void capture_file_growth_lock(void);
void capture_file_growth_unlock(void);

/* In a forked child: lets go of the parent's file; an empty private stand-in until capture_file_open(). */
void capture_file_forked(void);

#endif
