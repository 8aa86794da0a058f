/*
 * capture_disk.h - the capture as a file in a folder: made, found again, given room, removed.
 *
 * Safe from   any hook: system calls only; one thread at a time (the growth lock).
 * When failing  false or -1, and errno says why.
 */
#ifndef CAPTURE_DISK_H
#define CAPTURE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"

/* Does the folder, or the link in its place, belong to a user who is neither this one nor root? False where there is none. */
bool capture_disk_is_anothers(const char *folder, uint32_t *owner);

/*
 * A new file FOLDER/NAME.kmem of `bytes`, mode 0600 whatever the umask: never through a link, never over something that exists
 * (NAME-2, NAME-3, ... then). Makes the folder, which others cannot write. Returns a descriptor; nothing is left behind on failure.
 * With KMEMSHIM_MEMORY the file lies in that folder, where a store never waits for a disk, and what has its name in FOLDER is a link to it.
 * The launcher copies it to FOLDER when the process has ended.
 */
int capture_disk_create(const char *folder, const char *name, size_t bytes);
int capture_disk_create_again(size_t bytes); // one of the same name, after capture_disk_remove()

/*
 * The same file again, by its path. ESTALE when something else has taken its place, or somebody cut it to less than `bytes`; ENOENT
 * when it is gone. A descriptor kept open instead would be closed by daemons, and its number could then belong to a file of
 * the program.
 */
int capture_disk_open(uint64_t bytes);
bool capture_disk_is_there(void);

/*
 * Disk blocks for [offset, offset + bytes) at the end of the file, so that touching the mapping can never be SIGBUS for want of
 * room. On failure what was had of them is given back.
 */
bool capture_disk_extend(int fd, uint64_t offset, size_t bytes);

/* Best effort: the file becomes another user's. */
void capture_disk_hand_over(uint32_t user);

/* Only what is ours: a file of the same name that somebody else put there stays. */
bool capture_disk_remove(void);

/* Of another process, which had it under this name. True: it is gone. */
bool capture_disk_remove_other(const char *folder, const char *name);

/* In the folder. */
const char *capture_disk_path(void);

/* Of a capture with so many chunks. */
static inline uint64_t
capture_disk_bytes(uint32_t chunk_count)
{
	return KMEM_HEAD_BYTES + (uint64_t)chunk_count * KMEM_CHUNK_BYTES;
}

/* Will it be the same next time? No descriptor, no permission just now: another try may do. */
bool capture_disk_is_final(int error);

/* On stderr: there is no capture, by errno. */
void capture_disk_tell_of_folder(const char *folder);

#endif
