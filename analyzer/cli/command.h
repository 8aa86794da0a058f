/*
 * command.h - what is a command of kmemshim?
 *
 * Each cmd_*.c ends in one constant of this type; main.c lists them.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>

#include "base/fail.h"
#include "cli/options.h"

struct command {
	const char *name;
	const char *arguments; // in the usage line: "[CAPTURE]"
	const char *summary;   // in the list of commands
	const char *details;   // in its own help; "" = none
	unsigned options;      // OPTION_BIT() of those that it takes
	int arguments_min;
	int arguments_max; // -1 = any number
	bool is_launcher;  // options end at the first argument
	/* *status: the exit status when nothing failed. */
	bool (*run)(const struct options *options, int *status, struct fail *fail);
};

extern const struct command command_run;
extern const struct command command_report;
extern const struct command command_why;
extern const struct command command_peak;
extern const struct command command_leaks;
extern const struct command command_sites;
extern const struct command command_baseline;
extern const struct command command_check;
extern const struct command command_doctor;
extern const struct command command_schema;

#endif
