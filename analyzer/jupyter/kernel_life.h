/*
 * kernel_life.h - where are the captures of a notebook kernel kept, and how did its previous life end?
 *
 * A kernel that dies is started again by the notebook's server, with the same connection file. Each start is a life. It has a folder
 * of its own below $XDG_STATE_HOME/kmemshim/kernels, named after its start:
 *
 *   *.kmem          captures
 *   life.json       which kernel it is and how it ended; locked as long as its launcher lives
 *   cells.jsonl     the text of each cell that was run, written by the extension
 *   verdict.txt     of a death: what the report says
 *   told            of a death: the extension has shown it
 *
 * When failing  one line in `fail`; the kernel must start all the same.
 */
#ifndef KERNEL_LIFE_H
#define KERNEL_LIFE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"

struct kernel_life {
	int file; // life.json, open and locked; -1 = there is no such life
	char folder[PATH_MAX];
	char connection[PATH_MAX]; // the connection file: what a kernel and its successor have in common; "" = unknown
	char notebook[PATH_MAX];   // "" = the server did not say
	char started[32];          // UTC, as in 2026-11-23T08:15:30Z
};

/* How a life ended. */
struct kernel_end {
	bool is_death;     // neither shut down nor restarted by its user
	int exit_status;   // -1 = by a signal, or not known
	int signal;        // 0 = none, or not known
	const char *cause; // as in the report; "" = not known
};

/* The folder of all lives: the default where `wanted` is NULL. Makes nothing. Refuses one that other users can change. */
bool kernel_life_home(const char *wanted, char home[PATH_MAX], struct fail *fail);
/* Is it there now? Afterwards `home` is a name that nobody else can change: what is read or removed is found by that one. */
bool kernel_life_is_there(char home[PATH_MAX], struct fail *fail);

/*
 * Begins a life: makes its folder, writes and locks life.json.
 *
 * arguments  of the kernel: the connection file is found in them
 */
bool kernel_life_begin(struct kernel_life *life, char home[PATH_MAX], char *const *arguments, struct fail *fail);

/* Writes down how it ended, and lets go of it. */
void kernel_life_end(struct kernel_life *life, const struct kernel_end *end);

enum kernel_past {
	KERNEL_PAST_NONE,    // no earlier death, or it has been shown
	KERNEL_PAST_DEATH,   // it died, and that has not been shown
	KERNEL_PAST_UNKNOWN, // its launcher was killed too: only its captures can tell
};

/* What is before this life of the same kernel, past lives that ended well. One whose end is unknown is opened for kernel_life_end(). */
enum kernel_past kernel_life_previous(const struct kernel_life *life, const char *home, struct kernel_life *previous);

/*
 * Removes the oldest lives, so that `keep` are left. Those that still run and `spared` stay; and of deaths that are still to be told as
 * many more.
 */
void kernel_life_prune(const char *home, size_t keep, const char *spared);

/*
 * The life that a person means who names none: the newest, or, where that one runs and the same kernel died before, that death.
 *
 * folder    out
 */
bool kernel_life_newest(const char *home, char folder[PATH_MAX], struct fail *fail);

#endif
