/*
 * python_string.h - a str object as pieces of UTF-8.
 *
 * The interpreter's own encoder caches its result in the object, which allocates. Here the characters are
 * encoded piece by piece into a small buffer of the caller, so that hashing, comparing and copying a text
 * need no room for all of it.
 *
 * Safe from   any hook, while something keeps the object alive.
 * When failing  a string that is not compact, or whose header makes no sense, cannot be opened; a lone
 *             surrogate (an undecodable byte of a file name) becomes U+FFFD.
 */
#ifndef PYTHON_STRING_H
#define PYTHON_STRING_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_layout.h"

#define PYTHON_STRING_BYTES_MAX 4096 // kept of one text, whole characters
#define PYTHON_STRING_PIECE_BYTES 64

struct python_string {
	const void *characters;
	uint64_t length;     // characters
	uint64_t next;       // first one that was not given out
	uint32_t room_bytes; // left of PYTHON_STRING_BYTES_MAX
	uint8_t kind;        // bytes per character: 1, 2, 4
	bool is_ascii;
	bool was_cut; // the text was longer
};

struct python_piece {
	const uint8_t *bytes; // the string's own memory, or `buffer`
	uint32_t count;       // 0 = the end
	uint8_t buffer[PYTHON_STRING_PIECE_BYTES];
};

/* An empty string and false when there is no readable str object at `addr`. */
bool python_string_open(const struct python_interpreter *python, uint64_t addr, struct python_string *string);

void python_string_next(struct python_string *string, struct python_piece *piece);

/*
 * Of the name of a source file, goes past the folders that tell of the user and not of the code (KMEMSHIM_PRIVATE): what is left is
 * "train.py", "pkg/__init__.py", "python3.11/site-packages/numpy/core.py", "usr/lib/python3.11/json/decoder.py", "ipykernel_1/2.py".
 * Before the first piece.
 */
void python_string_leave_out_folders(struct python_string *string);

#endif
