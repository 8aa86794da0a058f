/*
 * path_join.h - a name that was written relative to a folder, from the root on.
 *
 * Context     No state: the caller gives the room.
 */
#ifndef PATH_JOIN_H
#define PATH_JOIN_H

#define PATH_JOIN_BYTES 4096

/*
 * "/work" and "../src/./app.c" are "/src/app.c": without "." and "..", which compilers write as they were told, so that equal files
 * have equal names. Symbolic links are not looked at. The name itself when it has no folder ("<built-in>"), the folder is not
 * known ("", or relative), or both do not fit.
 */
const char *path_join(const char *folder, const char *name, char path[PATH_JOIN_BYTES]);

#endif
