/*
 * holders.h - what keeps the blocks of the largest lines alive, in a program that runs?
 *
 * When failing  false and one line in `fail`; the program goes on.
 */
#ifndef HOLDERS_H
#define HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"
#include "model/model_load.h"

#define HOLDERS_LINES_MAX 10u
#define HOLDERS_SAMPLES 32u // of each line

struct holders_way {
	const char *kind; // "held", "perhaps", "lost", "unseen", "unread", "unfinished"
	const char
		*text; // held: from the root to the block; lost: what leads there; unseen: the object with too many references
	uint64_t samples;      // of the line's that it is the way of
	const char *container; // type of the one with most items on the way; "" = none
	uint64_t items;
	const char *grown_at; // where its storage was asked for; "" = not known
};

struct holders_line {
	const char *place;
	const char *file;
	const char *function;
	uint32_t line; // 0 = unknown
	uint64_t bytes;
	uint64_t blocks;
	bool is_estimated; // both: small Python objects are among them
	uint64_t samples;
	size_t way_count;
	struct holders_way *ways; // those of most samples first
};

struct holders {
	uint32_t pid;
	uint64_t stopped_us;
	uint64_t read_bytes;
	uint64_t left_out_bytes; // of blocks that hold no pointers
	uint64_t shared_bytes;   // with other processes: not read
	uint32_t passes;
	bool is_unfinished;
	const char *python; // why its objects are not known by name; "" = they are, or there is none
	size_t line_count;
	struct holders_line *lines; // the largest first
};

/* options: of the model; its capture is filled in here. stop_ns: for how long the program may stand still. top: lines, at most HOLDERS_LINES_MAX. */
bool holders_find(const char *pid, struct model_options *options, uint64_t stop_ns, uint64_t top,
                  struct holders *holders, struct fail *fail);
void holders_free(struct holders *holders);

/* render_holders.c */
void holders_render_text(const struct holders *holders, FILE *stream);
void holders_render_json(const struct holders *holders, FILE *stream);
void holders_render_schema(FILE *stream);

#endif
