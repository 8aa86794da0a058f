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

/* What an option's value is, by its kind. */
#define OPTION_TYPE_TEXT const char *
#define OPTION_TYPE_PATH const char *
#define OPTION_TYPE_GUARD const char *
#define OPTION_TYPE_GUARD_ACTION const char *
#define OPTION_TYPE_SNAPSHOTS const char *
#define OPTION_TYPE_SAMPLE const char *
#define OPTION_TYPE_COLOR const char *
#define OPTION_TYPE_COUNT uint64_t
#define OPTION_TYPE_KEEP uint64_t
#define OPTION_TYPE_RUNS uint64_t
#define OPTION_TYPE_SIZE uint64_t
#define OPTION_TYPE_TIME uint64_t
#define OPTION_TYPE_PERCENT uint32_t

/* One member for each row of option_rows.h. Not given: false, NULL or 0, but for those that options_parse() begins with. */
#define OPTION_FLAG_MEMBER(id, name, letter, member, help) bool member;
#define OPTION_VALUE_MEMBER(id, name, letter, kind, member, ...) OPTION_TYPE_##kind member;

struct options {
	const struct command *command;
	int *status;    // out: the exit status when nothing fails; EXIT_OK before
	uint64_t given; // OPTION_BIT() of each
	OPTION_ROWS(OPTION_FLAG_MEMBER, OPTION_VALUE_MEMBER)
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
