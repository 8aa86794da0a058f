/*
 * cell_texts.h - which text did a notebook's cell have, as its extension wrote it down beside the captures?
 *
 * cells.jsonl has one object a line: {"file": name by which it was compiled, "execution_count": 12, "text": its lines}. A text that
 * was there before is "". The recorder reads most texts from the interpreter's memory; this file has those that were not there.
 *
 * When failing  a line that cannot be read is left out and counted.
 */
#ifndef CELL_TEXTS_H
#define CELL_TEXTS_H

#include <stdint.h>

#include "base/fail.h"

/* number: 0 = not known. text: UTF-8, "" = not known. Both texts are gone after the call. */
typedef void cell_text_taker(void *owner, const char *file, uint32_t number, const char *text);

/*
 * Takes every line, in the order of the runs. No file is no failure.
 *
 * capture_path  a capture in the same folder
 * returns       false when something was left out: `fail` has one line about it
 */
bool cell_texts_read(const char *capture_path, cell_text_taker *take, void *owner, struct fail *fail);

#endif
