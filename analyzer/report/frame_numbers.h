/*
 * frame_numbers.h - which number has a frame, in a file that lists each frame once?
 *
 * From 0 on, in the order in which they were met.
 */
#ifndef FRAME_NUMBERS_H
#define FRAME_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

struct frame_number;

/* All 0 is an empty one. */
struct frame_numbers {
	struct frame_number *by_identity; // uthash
	struct report_frame *frames;      // by number
	size_t count;
	size_t room;
};

/* The number of an equal frame, or the next one: then `count` is larger than before. */
uint32_t frame_numbers_of(struct frame_numbers *numbers, const struct report_frame *frame);

void frame_numbers_free(struct frame_numbers *numbers);

#endif
