/* cell_texts.c - see cell_texts.h. */
#include "capture/cell_texts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_read.h"
#include "base/memory.h"
#include "base/regular_file.h"

#define FILE_NAME "cells.jsonl"
#define FILE_BYTES_MAX (16 << 20) // the extension stops at half of it

static bool
take_line(const char *line, size_t bytes, cell_text_taker *take, void *owner)
{
	json_t *root = json_read_text(line, bytes);
	const char *file = json_string_value(json_object_get(root, "file"));
	const char *text = json_string_value(json_object_get(root, "text"));
	json_int_t number = json_integer_value(json_object_get(root, "execution_count"));
	json_int_t began_ns = json_integer_value(json_object_get(root, "began_ns"));
	bool is_cell = file != NULL && text != NULL && number >= 0 && number <= UINT32_MAX && began_ns >= 0;

	if (is_cell)
		take(owner, &(struct cell_text){ file, (uint32_t)number, (uint64_t)began_ns, text });
	json_decref(root);
	return is_cell;
}

bool
cell_texts_read(const char *capture_path, cell_text_taker *take, void *owner, struct fail *fail)
{
	const char *slash = strrchr(capture_path, '/');
	struct stat status;
	OWNED_STREAM FILE *stream = NULL;
	OWNED char *line = NULL;
	size_t room = 0;
	ssize_t length;
	unsigned number = 0;
	unsigned bad_count = 0;
	unsigned first_bad = 0;

	const char *path = TEXT(PATH_MAX, "%.*s" FILE_NAME, slash != NULL ? (int)(slash + 1 - capture_path) : 0,
	                        capture_path);

	int file = regular_file_open(path, O_RDONLY | O_NOFOLLOW, &status);

	if (file < 0 && errno == ENOENT)
		return true;
	if (file < 0)
		return fail_set(fail, EXIT_CAPTURE, "%s: %s: texts of cells may be missing", path, regular_file_why(errno));
	if (status.st_size > FILE_BYTES_MAX || (stream = fdopen(file, "r")) == NULL) {
		(void)close(file);
		return fail_set(fail, EXIT_CAPTURE, "%s: is too large: texts of cells may be missing", path);
	}
	while ((length = getline(&line, &room, stream)) >= 0) {
		number++;
		if (take_line(line, (size_t)length, take, owner))
			continue;
		first_bad = bad_count++ == 0 ? number : first_bad;
	}
	return bad_count == 0 || fail_set(fail, EXIT_CAPTURE, "%s:%u: is not a cell: left out, and %u further lines", path,
	                                  first_bad, bad_count - 1);
}
