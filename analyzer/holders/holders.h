/*
 * holders.h - what keeps the blocks of the largest lines alive, in a program that runs?
 *
 * When failing  false and one line in `fail`; the program goes on.
 */
#ifndef HOLDERS_H
#define HOLDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"
#include "model/model_holders.h"
#include "model/model_load.h"

#define HOLDERS_LINES_MAX 10u
#define HOLDERS_SAMPLES 32u // of each line

/* stop_ns: for how long the program may stand still. top: lines, at most HOLDERS_LINES_MAX. The capture in options is filled in here. */
bool holders_find(const char *pid, struct model_options *options, uint64_t stop_ns, uint64_t top,
                  struct holders *holders, struct fail *fail);
/* The same for a process that has a core. Its capture is in the options. */
bool holders_find_in_core(const char *core, struct model_options *options, uint64_t stop_ns, uint64_t top,
                          struct holders *holders, struct fail *fail);
/* The same for a model that was loaded with its records. */
bool holders_find_in(const char *pid, const struct model *model, uint64_t stop_ns, uint64_t top,
                     struct holders *holders, struct fail *fail);

/* The last look that the capture has, at any of its processes. False: there is none. holders: is freed with model_holders_free(). */
bool holders_stored(struct model_options *options, uint64_t top, struct holders *holders, struct fail *fail);

/*
 * holders_keep.c: looks at a process, and writes what was found into its capture, or why nothing was.
 *
 * leak_limit_bytes  0 = the process has passed its guard: looks once for each doubling of what it has allocated in all. Else it looks
 *                   only where a line is a leak, or has kept all that it allocated, and holds more than an eighth of this limit, and once
 *                   for each doubling of what is live in all
 * stop_ns           0 = 3 s where there is such a line, else 1 s
 */
void holders_keep(const char *pid, uint64_t leak_limit_bytes, uint64_t stop_ns);

/* render_holders.c */
void holders_render_text(const struct holders *holders, FILE *stream);
void holders_render_json(const struct holders *holders, FILE *stream);

#endif
