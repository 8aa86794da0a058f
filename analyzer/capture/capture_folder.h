/*
 * capture_folder.h - which files does a CAPTURE argument mean, and which sessions are in a folder?
 *
 * When failing  one line in `fail`: a missing path is a usage error, a folder in which nothing can be read a bad capture.
 *             Single files that cannot be read are lines in `damages`.
 */
#ifndef CAPTURE_FOLDER_H
#define CAPTURE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"

#define CAPTURE_FOLDER_DEFAULT "kmemshim.out"

struct capture_list {
	size_t count;
	char **paths;         // of one session: its first process first, then by start
	size_t session_count; // of the folder; of a file 1
	size_t damage_count;
	char **damages;        // files of the folder that cannot be read
	size_t damages_unsaid; // beyond these, of which the last one says how many
};

struct session_list {
	size_t count;
	char **names;
};

/*
 * The files that this argument means: one file; a session of a folder, or of the kmemshim.out in a folder without
 * captures; without an argument (NULL), of ./kmemshim.out. session: NULL = the newest. On success the list is the caller's, for capture_list_free().
 */
bool capture_folder_list(const char *capture, const char *session, bool is_salvage, struct capture_list *list,
                         struct fail *fail);
void capture_list_free(struct capture_list *list);

/* The sessions that this argument means, the newest last: all of a folder; of a file its one, as NULL. For session_list_free(). */
bool capture_folder_sessions(const char *capture, bool is_salvage, struct session_list *sessions, struct fail *fail);
/* The newest session of that folder of which a process runs, for free(); NULL = none, or it is a file, or cannot be read. */
char *capture_folder_running(const char *capture, bool is_salvage);
void session_list_free(struct session_list *sessions);

#endif
