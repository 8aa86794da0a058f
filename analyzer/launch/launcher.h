/*
 * launcher.h - runs a program with the shim preloaded and tells how it ended.
 */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fail.h"

struct launch {
	char *const *arguments;     // of the program, ends with NULL
	const char *shim;           // path of libkmemshim.so; NULL = do not preload
	const char *folder;         // absolute; NULL without a shim = the environment says it
	bool is_kernel;             // of a notebook: its server signals the whole group, and ends us by SIGKILL
	bool is_trial;              // the doctor's, who says himself what else is preloaded
	bool has_system_allocators; // libraries' own switches to malloc, where the environment says nothing
	const char *sample;         // KMEMSHIM_SAMPLE; NULL: as the environment says
	bool has_python_objects;    // KMEMSHIM_PYTHON_OBJECTS=1; false: as the environment says
	const char *guard;          // KMEMSHIM_GUARD; NULL: as the environment says
	const char *snapshots;      // KMEMSHIM_SNAPSHOTS; the same
	const char *guard_action;   // KMEMSHIM_GUARD_ACTION; the same
	/*
	 * Looks at who holds what: holders_keep(). Called when a guard is passed that is only noted, and when much is live. NULL: nobody
	 * looks.
	 */
	void (*look)(const char *pid, uint64_t leak_limit_bytes, uint64_t stop_ns);
	uint64_t look_stop_ns; // for how long the program may stand still then
	/* Filled by launcher_run(). */
	pid_t pid;
	char session[40];
	int wait_status;
	uint64_t max_resident_bytes;
	unsigned killed_looks; // of ours at the program, see launcher_guard.h
	uint64_t ended_realtime_ns;
	int start_error; // errno of execvp; 0 = it was started
	int passed_on;   // the last signal that the program got from us; 0 = none
	char capture
		[PATH_MAX]; // of the program's last image, in which it is written how the program ended; "" = it left none
};

/*
 * Finds libkmemshim.so beside this program, or in ../lib, in ../lib/x86_64-linux-gnu (the name for this processor), or in the folder
 * kmemshim/ of that; with a glibc before 2.35 first in ../lib/older-glibc.
 *
 * command   whose library is wanted, of another installation: a path without links; NULL = our own
 * path      room for PATH_MAX bytes
 * returns   false and *fail when there is none, or its path cannot be preloaded (a blank or colon in it)
 */
bool launcher_find_shim(const char *command, char *path, struct fail *fail);

/* The folder for captures: what was named, or KMEMSHIM_OUT, else ./kmemshim.out, which nobody has named. */
const char *launcher_folder(const char *named, bool *is_named);

/*
 * Makes it where it is missing, sees that it can be written, and gives its absolute path (PATH_MAX bytes). Where nobody has named it, one of
 * another user, or a link of theirs, is refused: it was put in our way.
 */
bool launcher_make_folder(const char *named, char *path, struct fail *fail);

/*
 * Starts the program and waits for it. A kernel dies when we die, or when the server does that names itself in JPY_PARENT_PID. Keys at the terminal go to the program alone; SIGINT, SIGQUIT, SIGTERM, SIGHUP,
 * SIGUSR1 and SIGUSR2 sent to us are passed on. Afterwards the first four end us, so that a report can be interrupted. False and *fail only when no process could be made.
 */
bool launcher_run(struct launch *launch, struct fail *fail);

/*
 * For launcher_run(): writes how the program ended into the newest of the captures of its images: struct kmem_launcher.
 *
 * path  out: of the capture, PATH_MAX bytes; "" when there is none
 */
void launcher_sign(const struct launch *launch, char *path);

#endif
