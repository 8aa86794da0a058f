/*
 * doctor.h - what would keep a program from being recorded here?
 *
 * Each check adds findings; the command prints them.
 *
 * When failing  a check that cannot be made is a finding.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kmem_format.h"
#include "launch/program.h"

enum doctor_level {
	DOCTOR_OK,      // as it should be
	DOCTOR_NOTE,    // recording works; worth knowing
	DOCTOR_PROBLEM, // nothing is recorded, or a large part is not
};

struct doctor_finding {
	enum doctor_level level;
	char *where;
	char *what;
	char *next; // "" = nothing to do
};

struct doctor {
	struct doctor_finding *findings; // in the order of the checks
	size_t count;
	char shim[PATH_MAX];    // "" = not found
	char folder[PATH_MAX];  // absolute; "" = cannot be written
	struct program program; // the command's; nothing is set without one
	const char *python;     // the command, or what stands behind it, when that is a Python; else NULL
	char **libraries;       // of the program, as its loader finds them; paths
	size_t library_count;
	char present[PATH_MAX]; // of `folder` and those above it the deepest that was there before the checks
};

void doctor_add(struct doctor *doctor, enum doctor_level level, const char *where, const char *next, const char *what,
                ...) __attribute__((format(printf, 5, 6)));
void doctor_free(struct doctor *doctor);

#define DOCTOR_ROOM_NEEDED (UINT64_C(64) << 20) // what captures of large programs take

/* The library, and the folder of captures with what lies below it. Fills shim and folder, which it makes. */
void doctor_check_place(struct doctor *doctor, const char *named);

/* Removes what was made for the checks. After all of them. */
void doctor_leave_place(const struct doctor *doctor);

/* ulimit. */
void doctor_check_limits(struct doctor *doctor);

/* LD_PRELOAD, /etc/ld.so.preload, and variables that are misspelt settings. */
void doctor_check_environment(struct doctor *doctor);

/* The program and its libraries, which are kept in `doctor`. arguments: NULL-terminated; must live as long. */
void doctor_check_program(struct doctor *doctor, char *const *arguments);

/* These four after doctor_check_program(). Which CUDA the program and the frameworks of its Python would use. */
void doctor_check_cuda(struct doctor *doctor);

/* Which large libraries have no debug symbols, and where they are to be had. */
void doctor_check_debug(struct doctor *doctor);

/* Records something that does nothing: the program when it is a Python, else /bin/true. */
void doctor_try(struct doctor *doctor);

/* The notebook's kernels: which are recorded. */
void doctor_check_kernels(struct doctor *doctor);

/* Limits of the cgroups, and /dev/shm. identity: as a process saw them that has just begun. Called by doctor_try(). */
void doctor_check_container(struct doctor *doctor, const struct kmem_identity *identity);

/* render_doctor.c: findings, and what the JSON of them is like. */
void doctor_render_text(const struct doctor *doctor, FILE *stream);
void doctor_render_json(const struct doctor *doctor, FILE *stream);
extern const struct json_object doctor_object;

#endif
