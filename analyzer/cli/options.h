/*
 * options.h - what did the person ask for?
 *
 * One table of all options: name, kind of value, where it goes. A command names those that it takes.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"
#include "cli/command.h"

struct options {
	const struct command *command;
	uint64_t given; // OPTION_BIT() of each
	bool wants_help;
	bool is_json;
	uint64_t top;       // UINT64_MAX = not given
	const char *domain; // NULL = all
	bool is_native;
	bool is_salvage;
	const char *sysroot;  // NULL = none
	const char *project;  // NULL = by rule
	const char *wrappers; // NULL = none
	const char *output;   // -o: a file or a folder, by command; NULL = not given
	const char *html;     // NULL = as text
	bool has_no_source;
	const char *value; // of stacks; NULL = peak
	bool is_quiet;
	const char *color; // valid for terminal_color_of(); NULL = auto
	bool wants_python_objects;
	bool wants_system_allocators;
	bool is_kernel; // of a notebook
	uint64_t keep;  // lives of kernels; only where it was given
	const char *wrap;
	const char *name;
	bool is_for_user;
	bool is_in_environment;
	const char *prefix; // of an environment
	bool is_forced;
	bool has_no_guard;
	bool is_removed;
	const char *baseline;
	uint64_t absolute_bytes;
	uint32_t relative_ppm;
	const char *formats; // NULL = text
	uint64_t runs;       // of each folder the newest so many sessions; 0 = not given
	const char *program; // a pattern of names, or any; NULL = as the baseline says
	const char *guard;   // valid for kmem_parse_guard(); NULL = as the environment says
	const char *since;   // a snapshot whose figures are taken off; NULL = none
	const char *at;      // a snapshot: "epoch 3", "#7"; NULL = the end
	bool is_of_phase;
	const char *snapshots;    // 2 to 32; NULL = as the environment says
	const char *guard_action; // the same, kmem_parse_guard_action()
	const char *by;           // "line" or "function", or something wrong; NULL = not given
	bool is_markdown;
	bool has_all;       // nothing is left out
	const char *config; // of check; NULL = the one that is here
	bool wants_init;
	bool is_once;
	bool is_at_exit;
	const char *core;
	const char *status_for; // whose exit statuses are wanted; NULL = as documented
	bool is_any_platform;
	uint64_t retries;      // UINT64_MAX = not given
	bool has_no_holders;   // nobody looks who holds what when the guard is passed
	uint64_t stop_ns;      // for how long a program may stand still; 0 = not given
	uint64_t rounds;       // what "{n}" stands for; 0 = not given
	int option_word_count; // of the command line, without its arguments
	char **option_words;
	int argument_count;
	char **arguments;    // what is no option
	char **command_line; // what stands behind "--", where the command takes that; NULL = nothing
};

static inline bool
options_has(const struct options *options, enum option_id id)
{
	return (options->given & OPTION_BIT(id)) != 0;
}

static inline uint64_t
options_top(const struct options *options, uint64_t otherwise)
{
	return options_has(options, OPTION_TOP) ? options->top : otherwise;
}

static inline uint64_t
options_stop_ns(const struct options *options, uint64_t otherwise)
{
	return options_has(options, OPTION_STOP) ? options->stop_ns : otherwise;
}

/* arguments[0] is the command's name. False and *fail (EXIT_USAGE) for anything that the command does not take. */
bool options_parse(const struct command *command, int count, char **arguments, struct options *options,
                   struct fail *fail);

/* What the help of a command says of one option. */
struct option_text {
	const char *name;    // without its dashes
	char letter;         // 0 = none
	const char *value;   // NULL = takes none
	const char *choices; // words with blanks between them; NULL = any value
	bool is_path;
	const char *help;
};

/* False: the command does not take it. */
bool options_text(const struct command *command, enum option_id id, struct option_text *text);

/* Each option that the command takes, as `text`. */
#define EACH_OPTION_OF(command, text)                                                               \
	for (int text##_id = 0; text##_id < OPTION_COUNT; text##_id++)                                  \
		for (struct option_text text,                                                               \
		     *text##_next = options_text(command, (enum option_id)text##_id, &text) ? &text : NULL; \
		     text##_next != NULL; text##_next = NULL)

void options_help(const struct command *command, FILE *stream);

/* "5", "5%", "2.5 %": at most 1000 %, three decimals at most. */
bool options_parse_percent(const char *text, uint32_t *ppm);

#endif
