/*
 * progress.h - is it still at work? One line on a terminal for what takes over a second.
 *
 * "kmemshim: reading captures: 12 of 160". Written to standard error where that is a terminal, at most ten times a second, and taken
 * away before anything else is written. Elsewhere nothing is written.
 *
 * Context     it has state: there is one terminal.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stddef.h>

/* From now on: for commands that read, write and end. One that draws on the terminal itself leaves it. */
void progress_allow(void);

/* total: 0 = nobody knows how much there is. The text must be short. Cheap enough for inner loops. */
void progress_show(const char *what, size_t done, size_t total);

/* Takes the line away. Whoever writes to a terminal after progress_show() calls it first. */
void progress_end(void);

/* The same, and nothing is shown from now on: the terminal is a screen. */
void progress_stop(void);

#endif
