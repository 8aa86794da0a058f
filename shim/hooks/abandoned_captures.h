/*
 * abandoned_captures.h - which captures of small children could their processes not remove themselves?
 *
 * A child that never held 1 MiB leaves no capture. A child that gave up its rights (another user, seccomp) cannot remove its capture any
 * more: it says so in a page that it shares with its parents, and the first of them that forks or ends removes it. Nothing in the page
 * is a path: by writing there, a process can have captures of this session's own program removed, nothing else.
 *
 * Safe from   prepare and remove: one thread of each process; add: any.
 * When full   the capture stays, and says how the child ended.
 */
#ifndef ABANDONED_CAPTURES_H
#define ABANDONED_CAPTURES_H

#include "kmem_format.h"

void abandoned_captures_prepare(void); // before a fork; what the child adds is seen here
void abandoned_captures_add(const struct kmem_identity *child);

/* `own`: of this process, which was forked from the same program as those children. */
void abandoned_captures_remove(const char *folder, const struct kmem_identity *own);

#endif
