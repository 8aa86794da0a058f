/*
 * site_lines.h - of which line of code is a block with this record?
 *
 * Lines are as in every report: where the user's own code asked for the block. Only lines of the heap are lines here and, where they are
 * wanted, those of small Python objects: the objects of their sample are blocks, too, which stand for others. These are lines of their
 * own: the same code may ask for a table and for the objects in it, which are held in different ways.
 */
#ifndef SITE_LINES_H
#define SITE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/place.h"
#include "model/model.h"

struct site_line {
	const struct model_site *site; // the first of them; NULL of number 0
	uint64_t live_bytes;           // as the capture has it
	uint64_t memory_bytes;         // of these, in memory: what was never touched fills nothing
	uint64_t live_count;
	bool is_estimated;       // small Python objects: a sample is all that is known
	uint64_t imported_bytes; // of these: what a module keeps that was imported
};

struct site_lines {
	size_t count;
	struct site_line *lines; // number 0: blocks of records that are not known
	size_t record_count;
	uint32_t *of_record; // index + 1 of a struct kmem_site -> number of a line
	uint64_t sample_bytes;
};

/* model: of one capture, with its records. It must outlive the lines. */
void site_lines_make(const struct model *model, bool has_objects, struct site_lines *lines);
void site_lines_free(struct site_lines *lines);

uint32_t site_lines_of(const struct site_lines *lines, uint32_t record);
/* Is most of it kept by modules that were imported? */
bool site_lines_is_of_import(const struct site_lines *lines, uint32_t number);
/* For how many bytes of its line a block stands. */
uint64_t site_lines_bytes_for(const struct site_lines *lines, uint32_t record, uint64_t block_bytes);
const char *site_lines_text(const struct site_line *line, char text[PLACE_TEXT_BYTES]);

#endif
