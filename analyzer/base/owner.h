/*
 * owner.h - whose file is this, and may what it says be believed?
 *
 * A capture is written by the program that it tells of, or by anybody who can write files of that kind. Those of the user who reads, and of
 * root, are theirs or nobody's trick; one of another user may name any file as a source, and any moment as its start.
 */
#ifndef OWNER_H
#define OWNER_H

#include <stdbool.h>
#include <sys/stat.h>

#define OWNER_TEXT_BYTES 80
#define OWNER_ROOM ((char[OWNER_TEXT_BYTES]){ 0 }) // as PLACE_ROOM

/* Of the user who runs this command, or of root. */
bool owner_is_trusted(uid_t owner);

/* "user alice", "user 1234" where the number has no name. */
const char *owner_text(uid_t owner, char text[OWNER_TEXT_BYTES]);

/* open(), which follows no link on the way, or at its end, that somebody has made who is not trusted: then -1 and ELOOP. */
int owner_open(const char *path, int flags, mode_t mode);
#define OWNER_WHY(error) \
	((error) == ELOOP ? "a link on the way is another user's, or leads in a circle" : strerror(error))

/*
 * Does this folder belong to somebody who is not trusted, or is it a link that such a one has made? False as well where there is none.
 *
 * owner     out: who
 */
bool owner_is_anothers(const char *folder, uid_t *owner);

/*
 * May only trusted users change what lies in this folder, and what its path leads to? The user's own group counts as the user: on many
 * systems it has no other members. A folder on the way may be one in which each may remove only what is theirs, as /tmp is.
 *
 * real      without links; changed meanwhile. False: up to the folder that is at fault.
 */
bool owner_is_alone(char *real);

#endif
