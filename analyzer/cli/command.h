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

struct options;
struct question;

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
	OPTION_HTML,
	OPTION_NO_SOURCE,
	OPTION_VALUE,
	OPTION_QUIET,
	OPTION_COLOR,
	OPTION_PYTHON_OBJECTS,
	OPTION_SYSTEM_ALLOCATORS,
	OPTION_BASELINE,
	OPTION_ABSOLUTE,
	OPTION_RELATIVE,
	OPTION_FORMAT,
	OPTION_RUNS,
	OPTION_PROGRAM,
	OPTION_KERNEL,
	OPTION_KEEP,
	OPTION_WRAP,
	OPTION_NAME,
	OPTION_USER,
	OPTION_SYS_PREFIX,
	OPTION_PREFIX,
	OPTION_FORCE,
	OPTION_NO_GUARD,
	OPTION_GUARD,
	OPTION_GUARD_ACTION,
	OPTION_BY,
	OPTION_MARKDOWN,
	OPTION_SNAPSHOTS,
	OPTION_AT,
	OPTION_PHASE,
	OPTION_ALL,
	OPTION_CONFIG,
	OPTION_INIT,
	OPTION_ONCE,
	OPTION_AT_EXIT,
	OPTION_CORE,
	OPTION_STATUS_FOR,
	OPTION_PLATFORM,
	OPTION_RETRIES,
	OPTION_STOP,
	OPTION_HOLDERS_STOP,
	OPTION_NO_HOLDERS,
	OPTION_ROUNDS,
	OPTION_COUNT,
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
	/* *status: EXIT_OK before; the exit status when nothing failed. */
	bool (*run)(const struct options *options, int *status, struct fail *fail);
};

/* In the order of the help; the last one has no name. */
extern const struct command commands[];

/* NULL = there is none of that name. */
const struct command *command_find(const char *name);

/* What they do, each in its cmd_*.c. */
bool cmd_run(const struct options *options, int *status, struct fail *fail);
bool cmd_report(const struct options *options, int *status, struct fail *fail); // every command that has a question
bool cmd_baseline(const struct options *options, int *status, struct fail *fail);
bool cmd_check(const struct options *options, int *status, struct fail *fail);
bool cmd_diff(const struct options *options, int *status, struct fail *fail);
bool cmd_export(const struct options *options, int *status, struct fail *fail);
bool cmd_annotate(const struct options *options, int *status, struct fail *fail);
bool cmd_top(const struct options *options, int *status, struct fail *fail);
bool cmd_waste(const struct options *options, int *status, struct fail *fail);
bool cmd_tree(const struct options *options, int *status, struct fail *fail);
bool cmd_jupyter(const struct options *options, int *status, struct fail *fail);
bool cmd_mark(const struct options *options, int *status, struct fail *fail); // and snapshot
bool cmd_holders(const struct options *options, int *status, struct fail *fail);
bool cmd_lost(const struct options *options, int *status, struct fail *fail);
bool cmd_doctor(const struct options *options, int *status, struct fail *fail);
bool cmd_completion(const struct options *options, int *status, struct fail *fail);
bool cmd_manual(const struct options *options, int *status, struct fail *fail);
bool cmd_schema(const struct options *options, int *status, struct fail *fail);

#endif
