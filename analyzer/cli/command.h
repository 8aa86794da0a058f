/*
 * command.h - what is a command of kmemshim, and which options does it take?
 *
 * commands.c has one row for each, with all that its help says.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"
#include "cli/option_rows.h"

struct options;
struct question;

enum option_id {
#define OPTION_NUMBER(id, ...) OPTION_##id,
	OPTION_ROWS(OPTION_NUMBER, OPTION_NUMBER) OPTION_COUNT,
#undef OPTION_NUMBER
};
#define OPTION_BIT(id) (UINT64_C(1) << (id))

struct command {
	const char *name;
	const char *arguments; // in the usage line: "[CAPTURE]"
	const char *summary;   // in the list of commands
	const char *details;   // in its own help
	uint64_t options;      // OPTION_BIT() of those that it takes
	struct {
		const char *value;
		const char *help;
	} words[OPTION_COUNT];             // of options that mean something else here; NULL = as everywhere
	const char *choices[OPTION_COUNT]; // values for completion, with blanks between them; NULL = as everywhere
	int arguments_min;
	int arguments_max;               // -1 = any number
	bool is_launcher;                // options end at the first argument
	bool takes_program;              // instead of arguments: "-- CMD"
	const struct question *question; // of those that read a capture; else NULL
	bool (*run)(const struct options *options, struct fail *fail);
};

/* In the order of the help; the last one has no name. */
extern const struct command commands[];

/* NULL = there is none of that name. */
const struct command *command_find(const char *name);

/* Of which `text` may be a misspelling; NULL = of none. */
const struct command *command_like(const char *text);

/* What they do, each in its cmd_*.c. */
bool cmd_run(const struct options *options, struct fail *fail);
bool cmd_report(const struct options *options, struct fail *fail); // every command that has a question
bool cmd_baseline(const struct options *options, struct fail *fail);
bool cmd_check(const struct options *options, struct fail *fail);
bool cmd_diff(const struct options *options, struct fail *fail);
bool cmd_export(const struct options *options, struct fail *fail);
bool cmd_top(const struct options *options, struct fail *fail);
bool cmd_jupyter(const struct options *options, struct fail *fail);
bool cmd_clean(const struct options *options, struct fail *fail);
bool cmd_mark(const struct options *options, struct fail *fail); // and snapshot
bool cmd_holders(const struct options *options, struct fail *fail);
bool cmd_lost(const struct options *options, struct fail *fail);
bool cmd_doctor(const struct options *options, struct fail *fail);
bool cmd_completion(const struct options *options, struct fail *fail);
bool cmd_manual(const struct options *options, struct fail *fail);
bool cmd_schema(const struct options *options, struct fail *fail);

#endif
