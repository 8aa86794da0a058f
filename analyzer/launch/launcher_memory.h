/*
 * launcher_memory.h - keeps the captures of a launch in memory while their programs run: see capture_memory.h.
 *
 * Not chosen  where a death takes the memory with it: in a container whose processes are killed all at once (memory.oom.group), or with
 *             little room in /dev/shm. There captures lie on their disk, exact too, and an event can wait for it.
 *
 * Context     the launcher's process; its only state is the captures that it holds open, so that they stay when somebody removes
 *             their names (logind does it when a user logs out).
 */
#ifndef LAUNCHER_MEMORY_H
#define LAUNCHER_MEMORY_H

#include <stdbool.h>

/* Why captures of this folder cannot lie in memory, for a person; NULL: they can, or need not, for the folder is in memory itself. */
const char *launcher_memory_why_not(const char *folder);

/* folder: of the captures. Returns what the program is to get in KMEMSHIM_MEMORY; NULL = nothing. */
const char *launcher_memory_begin(const char *folder);

/*
 * To be called often while the program runs: takes hold of new captures, and copies those of processes that have ended. is_ending: the
 * program was asked to end, and all of its container may be killed soon: copies those of running processes, too.
 */
void launcher_memory_look(bool is_ending);

/* The file of a capture that lies in memory, of this name, for reading and writing; -1 = there is none. */
int launcher_memory_open(const char *name);

/* The program has ended. Of processes that go on without us the captures stay in memory. */
void launcher_memory_end(void);

#endif
