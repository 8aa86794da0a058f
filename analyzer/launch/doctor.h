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
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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
	size_t room;
	char shim[PATH_MAX];    // "" = not found
	char folder[PATH_MAX];  // absolute; "" = cannot be written
	char present[PATH_MAX]; // of `folder` and those above it the deepest that was there before the checks
};

void doctor_add(struct doctor *doctor, enum doctor_level level, const char *where, const char *next, const char *what,
                ...) __attribute__((format(printf, 5, 6)));
void doctor_free(struct doctor *doctor);

/* The library, the folder of captures and what lies below it, limits, the environment. Fills shim and folder, which it makes. */
void doctor_check_place(struct doctor *doctor, const char *folder, bool is_named);

/* Removes what was made for the checks. After all of them. */
void doctor_leave_place(const struct doctor *doctor);

/* The program and its libraries. arguments: NULL-terminated. */
void doctor_check_program(struct doctor *doctor, char *const *arguments);

/*
 * Records something that does nothing: the program when it is a Python, else /bin/true. After the other checks.
 *
 * arguments  NULL-terminated; its first may be NULL
 */
void doctor_try(struct doctor *doctor, char *const *arguments);

/* render_doctor.c: findings, and what the JSON of them is like. */
void doctor_render_text(const struct doctor *doctor, FILE *stream);
void doctor_render_json(const struct doctor *doctor, FILE *stream);
void doctor_render_schema(FILE *stream);

#endif
