/*
 * process_tree.h - which captures belong together, and who started whom?
 *
 * Safe from   one thread.
 * When failing  one line in `fail`: a missing path is a usage error, a folder in which nothing can be read a bad capture.
 *             Single files that cannot be read are lines in `damages`.
 */
#ifndef PROCESS_TREE_H
#define PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"
#include "model/model.h"

#define PROCESS_TREE_DEFAULT_FOLDER "kmemshim.out"

struct capture_list {
	size_t count;
	char **paths;         // of one session: its first process first, then by start
	size_t session_count; // of the folder; of a file 1
	size_t damage_count;
	char **damages; // files of the folder that cannot be read
};

struct session_list {
	size_t count;
	char **names;
};

/*
 * The files that this argument means: one file; a session of a folder, or of the kmemshim.out in a folder without
 * captures; without an argument (NULL), of ./kmemshim.out. session: NULL = the newest. On success the list is the caller's, for capture_list_free().
 */
bool process_tree_list(const char *capture, const char *session, bool is_salvage, struct capture_list *list,
                       struct fail *fail);
void capture_list_free(struct capture_list *list);

/* The sessions that this argument means, the newest last: all of a folder; of a file its one, as NULL. For session_list_free(). */
bool process_tree_sessions(const char *capture, bool is_salvage, struct session_list *sessions, struct fail *fail);
void session_list_free(struct session_list *sessions);

/*
 * Does the process run now, on this machine? Same pid, same start, same boot. Of a container (a namespace of pids that is not ours)
 * only what runs in one below ours is seen.
 */
bool process_tree_is_alive(const struct kmem_identity *identity);
bool process_tree_is_hidden(const struct kmem_identity *identity);

/* Sets `parent` of every process: by pid and, since pids are used again, by start. */
void process_tree_link(struct model_process *processes, size_t count);

#endif
