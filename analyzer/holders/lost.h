/*
 * lost.h - which lines of a running program asked for blocks that nothing leads to any more?
 *
 * When failing  false and one line in `fail`; the program goes on.
 */
#ifndef LOST_H
#define LOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"
#include "holders/reachability.h"
#include "model/model_load.h"

struct lost_line {
	const char *place; // as a person reads it
	const char *file;
	const char *function;
	uint32_t line; // 0 = unknown
	struct reach_count counts[REACH_COUNT];
};

static inline uint64_t
lost_bytes(const struct lost_line *line)
{
	return line->counts[REACH_DIRECTLY_LOST].bytes + line->counts[REACH_INDIRECTLY_LOST].bytes;
}

static inline uint64_t
lost_blocks(const struct lost_line *line)
{
	return line->counts[REACH_DIRECTLY_LOST].blocks + line->counts[REACH_INDIRECTLY_LOST].blocks;
}

struct lost {
	struct text_pool *texts; // of its lines
	uint32_t pid;
	uint64_t stopped_us; // for how long the program stood still
	uint64_t read_bytes; // of its memory
	struct lost_line all;
	size_t line_count;
	struct lost_line *lines; // those that lost most first
};

/* options: of the model; its capture is filled in here. stop_ns: for how long the program may stand still. */
bool lost_find(const char *pid, struct model_options *options, uint64_t stop_ns, struct lost *lost, struct fail *fail);
/*
 * The same for a program that is started here, when it is about to end. It is recorded: LD_PRELOAD is set.
 *
 * status  out, its end as waitpid() tells it; -1 = it was not started
 */
bool lost_at_exit(char *const *arguments, struct model_options *options, uint64_t stop_ns, struct lost *lost,
                  int *status, struct fail *fail);
void lost_free(struct lost *lost);

/* render_lost.c. top: rows of the table at most. */
void lost_render_text(const struct lost *lost, uint64_t top, FILE *stream);
void lost_render_json(const struct lost *lost, uint64_t top, FILE *stream);
extern const struct json_object lost_object;

#endif
