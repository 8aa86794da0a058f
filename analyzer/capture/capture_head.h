/*
 * capture_head.h - is the head of a capture sound, and where does it say that the rest is?
 *
 * Context     the program may still be writing.
 * When failing  what cannot be read without is refused, unless it is salvaged; the rest is told and taken as missing.
 */
#ifndef CAPTURE_HEAD_H
#define CAPTURE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/capture.h"

/* What never changes after the start (F4): is this a capture, one of ours, and whose? `bytes` of the head were read. */
bool capture_head_check_fixed(struct capture *capture, size_t bytes, struct fail *fail);

/* Is the program done with the file? It then has checksums (F5), or was stopped while it made them. */
bool capture_head_is_closed(const struct capture *capture);

/* The seal of the head (F5). *wants_again: it may be in the making; asked for unless this is the last attempt. */
bool capture_head_check_closed(struct capture *capture, bool is_last_attempt, bool *wants_again, struct fail *fail);

/*
 * Of a head that does not say that the program is done: the state says so before the first chunk is sealed, so that no later
 * reading than `before` has an older state.
 */
bool capture_head_check_open(struct capture *capture, const unsigned char *before, struct fail *fail);

/* Places of the capture's file that hold something, and how many of them there are. */
const struct kmem_chunk *capture_head_directory(const struct capture *capture);
bool capture_head_chunks(struct capture *capture, uint32_t *chunk_count, struct fail *fail);

/*
 * Words that lead somewhere or decide something (F6), refused requests and counts of live objects (F7): what is damaged is told, and
 * 0 afterwards. Heartbeats: those that are whole, into `heartbeats`. `before` is an earlier reading of the head: what
 * differs from it was being written.
 */
void capture_head_settle(struct capture *capture, const unsigned char *before);

#endif
