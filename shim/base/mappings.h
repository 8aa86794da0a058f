/*
 * mappings.h - what does the kernel say is mapped in this process (/proc/self/maps)?
 *
 * Safe from   any thread, any signal handler: system calls, and some hundred bytes of stack.
 * When failing  false: it cannot be read.
 */
#ifndef MAPPINGS_H
#define MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mappings_line {
	uint64_t start;
	uint64_t end;
	bool is_file_gone; // it was deleted, or another one put in its place
	char *path;        // from the root on, not terminated; as much of it as there is room for
	size_t room;
	size_t path_bytes; // `room` or more: it does not fit; 0 = it is no file
};

/*
 * Asks `visit` about each mapping in order of address, until it says true: enough.
 *
 * line      path and room are the caller's; 0: paths are not wanted. Afterwards the one that was enough; 0 and 0: none was
 * returns   the last one was seen, or it was enough
 */
bool mappings_visit(struct mappings_line *line, bool visit(const struct mappings_line *line, void *context),
                    void *context);

#endif
