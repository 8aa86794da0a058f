/*
 * capture_marks.h - which moments were named, and which steps were made?
 *
 * Context     while the capture is opened.
 * Context     the program may still be writing: what it writes at the moment is left out.
 * When failing  as if there was no such mark, and a line in the capture's `damages` says why.
 */
#ifndef CAPTURE_MARKS_H
#define CAPTURE_MARKS_H

#include "capture/capture.h"
#include "kmem_format.h"

/* Marks that are whole, into `marks`, oldest first. `before` is an earlier reading of the head: what differs was being written. */
void capture_marks_settle(struct capture *capture, const unsigned char *before);

/* The head's part about steps. */
const struct kmem_steps *capture_steps(const struct capture *capture);

#endif
