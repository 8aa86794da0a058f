/*
 * yaml_read.h - reads a YAML file: the one door to libyaml.
 *
 * Each node knows its line and column, so that what is wrong in a file can be told with its place, also what no parser finds.
 *
 * When failing  one line with the place in the file. A name that comes twice in a mapping is an error: one of the two would be lost.
 */
#ifndef YAML_READ_H
#define YAML_READ_H

#include <stdbool.h>
#include <yaml.h>

#include "base/fail.h"

/* All of them must be small: configuration is written by people. */
#define YAML_READ_BYTES_MAX (64u << 10)

struct yaml_file {
	const char *path; // the caller's
	yaml_document_t document;
	bool has_document;
};

/*
 * file      a descriptor, is closed in any case
 * path      of it, for messages; must live as long as the result
 * returns   false and *fail (EXIT_USAGE) when it is not one YAML document
 */
bool yaml_read_file(int file, const char *path, struct yaml_file *yaml, struct fail *fail);
void yaml_read_free(struct yaml_file *yaml);

/* NULL: the file is empty. */
yaml_node_t *yaml_read_root(struct yaml_file *yaml);
yaml_node_t *yaml_read_node(struct yaml_file *yaml, int index);

/* NULL: it is no text. Nothing and "~" are "". */
const char *yaml_read_text(const yaml_node_t *node);

/* Nothing was written there, or "~". */
bool yaml_read_is_empty(const yaml_node_t *node);

/* Fills `fail` with "PATH:LINE:COLUMN: " and the text; returns false. */
bool yaml_read_wrong(const struct yaml_file *yaml, const yaml_node_t *node, struct fail *fail, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
