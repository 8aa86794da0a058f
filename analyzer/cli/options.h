/*
 * options.h - what did the person ask for?
 *
 * One table of all options; a command names those that it takes. So an option means the same everywhere.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"

struct command;

enum option_id {
	OPTION_HELP,
	OPTION_JSON,
	OPTION_TOP,
	OPTION_DOMAIN,
	OPTION_NATIVE,
	OPTION_SALVAGE,
	OPTION_SYSROOT,
	OPTION_PROJECT,
	OPTION_WRAPPERS,
	OPTION_OUTPUT,
	OPTION_PYTHON_OBJECTS,
	OPTION_SYSTEM_ALLOCATORS,
	OPTION_BASELINE,
	OPTION_ABSOLUTE,
	OPTION_RELATIVE,
	OPTION_FORMAT,
	OPTION_RUNS,
	OPTION_PROGRAM,
	OPTION_COUNT,
};
#define OPTION_BIT(id) (1u << (id))
/* What every command that reads a capture takes. */
#define OPTIONS_OF_READERS \
	(OPTION_BIT(OPTION_SALVAGE) | OPTION_BIT(OPTION_SYSROOT) | OPTION_BIT(OPTION_PROJECT) | OPTION_BIT(OPTION_WRAPPERS))
#define OPTIONS_OF_TABLES                                                                                \
	(OPTIONS_OF_READERS | OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_TOP) | OPTION_BIT(OPTION_DOMAIN) | \
	 OPTION_BIT(OPTION_NATIVE))

struct options {
	bool wants_help;
	bool is_json;
	bool has_top;
	uint64_t top;       // with has_top
	const char *domain; // NULL = all
	bool is_native;
	bool is_salvage;
	const char *sysroot;  // NULL = none
	const char *project;  // NULL = by rule
	const char *wrappers; // NULL = none
	const char *output;   // -o: a file or a folder, by command; NULL = not given
	bool wants_python_objects;
	bool wants_system_allocators;
	const char *baseline;
	bool has_absolute;
	uint64_t absolute_bytes;
	bool has_relative;
	uint32_t relative_ppm;
	const char *formats; // NULL = text
	uint64_t runs;       // of each folder the newest so many sessions; 0 = not given
	const char *program; // a pattern of names; NULL = as the baseline says
	int argument_count;
	char **arguments; // what is no option
};

/* arguments[0] is the command's name. False and *fail (EXIT_USAGE) for anything that the command does not take. */
bool options_parse(const struct command *command, int count, char **arguments, struct options *options,
                   struct fail *fail);

/* Usage, details and options of one command. */
void options_help(const struct command *command, FILE *stream);

/* "64k", "1 MiB", "2G", "100": powers of two, case and a following "iB" or "B" do not matter. *bytes untouched when
 * it is none, or does not fit. */
bool options_parse_size(const char *text, uint64_t *bytes);

/* "5", "5%", "2.5 %": at most 1000 %, three decimals at most. */
bool options_parse_percent(const char *text, uint32_t *ppm);

#endif
