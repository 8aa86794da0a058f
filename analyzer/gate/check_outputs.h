/*
 * check_outputs.h - in which formats can the result of a check be written, and where does each go?
 *
 * One row for each. A renderer writes to a stream and leaves its errors there.
 */
#ifndef CHECK_OUTPUTS_H
#define CHECK_OUTPUTS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/fail.h"
#include "gate/check.h"

struct check_output {
	const char *name;
	void (*render)(const struct check *check, FILE *stream);
	const char *environment; // the file's name where none is given; NULL, or not set: standard output
	bool is_appended;        // others write into the same file
};

extern const struct check_output check_outputs[];
extern const size_t check_output_count;

/*
 * Writes every output of a list "NAME,NAME=FILE". False and *fail (EXIT_USAGE): a name is not known, or a file cannot be written.
 *
 * check  NULL = the names are only looked up, so that a typing error is found before the captures are read
 */
bool check_outputs_write(const struct check *check, const char *list, struct fail *fail);

void render_check_github(const struct check *check, FILE *stream);
void render_check_gitlab(const struct check *check, FILE *stream);
void render_check_junit(const struct check *check, FILE *stream);
void render_check_markdown(const struct check *check, FILE *stream);
void render_check_sarif(const struct check *check, FILE *stream);
void render_check_text(const struct check *check, FILE *stream);

#endif
