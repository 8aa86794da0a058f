/*
 * cell_texts.h - which text did a notebook's cell have, as its extension wrote it down beside the captures?
 *
 * cells.jsonl has one object a line: {"file": name by which it was compiled, "execution_count": 12, "text": its lines, "began_ns": when
 * it began}. A long text that was there before is "". The recorder reads most texts from the interpreter's memory; this file has those
 * that were not there.
 *
 * When failing  a line that cannot be read is left out and counted.
 */
#ifndef CELL_TEXTS_H
#define CELL_TEXTS_H

#include <stdint.h>

#include "base/fail.h"

/* One run of a cell. Its texts are gone after the call. */
struct cell_text {
	const char *file;
	uint32_t number;   // 0 = not known
	uint64_t began_ns; // of the monotonic clock; 0 = not known
	const char *text;  // UTF-8, "" = not known
};

typedef void cell_text_taker(void *owner, const struct cell_text *cell);

/*
 * Takes every line, in the order of the runs. No file is no failure.
 *
 * capture_path  a capture in the same folder
 * returns       false when something was left out: `fail` has one line about it
 */
bool cell_texts_read(const char *capture_path, cell_text_taker *take, void *owner, struct fail *fail);

#endif
