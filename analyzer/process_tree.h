/*
 * process_tree.h - which captures belong together, and who started whom?
 *
 * Called by   model.c; commands that watch a running program (process_tree_is_alive).
 * Safe from   one thread.
 * When failing  one line in `fail`: a missing path is a usage error, a folder in which nothing can be read a bad capture.
 *             Single files that cannot be read are lines in `damages`.
 */
#ifndef PROCESS_TREE_H
#define PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "fail.h"
#include "model.h"

#define PROCESS_TREE_DEFAULT_FOLDER "kmemshim.out"

struct capture_list {
	size_t count;
	char **paths;                 // of one session: its first process first, then by start
	size_t damage_count;
	char **damages;               // files of the folder that cannot be read
};

/*
 * The files that this argument means: one file; the newest session of a folder; without an argument (NULL), that of
 * ./kmemshim.out. On success the list is the caller's, for capture_list_free().
 */
bool process_tree_list(const char *capture, bool is_salvage, struct capture_list *list, struct fail *fail);
void capture_list_free(struct capture_list *list);

/* Does the process run now, on this machine? Same pid, same start, same boot. */
bool process_tree_is_alive(const struct kmem_identity *identity);

/* Sets `parent` of every process: by pid and, since pids are used again, by start. */
void process_tree_link(struct model_process *processes, size_t count);

#endif
