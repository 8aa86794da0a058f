/*
 * cmd_run.h - what running a program and running a notebook's kernel have in common.
 */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/options.h"
#include "launch/launcher.h"
#include "launch/program.h"

/* Verdict and tables of what was recorded. cause: out, as in the report; unchanged when it fails; NULL = not asked. */
bool cmd_run_summarise(const struct options *options, const struct launch *launch, FILE *stream, const char **cause,
                       struct fail *fail);

void cmd_run_say_nothing_recorded(const struct launch *launch, const struct program *program, FILE *stream);
void cmd_run_say_not_started(const struct launch *launch, const struct program *program);

/* The exit status that a shell would return. */
int cmd_run_status(const struct launch *launch);

/* run --kernel. launch: filled with what the options say. */
bool cmd_run_kernel(const struct options *options, struct launch *launch, struct fail *fail);

#endif
