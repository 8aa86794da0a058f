/*
 * cmd_runs.h - which runs do the RUN arguments of baseline and check mean?
 *
 * A file is one run; a folder is the newest of its sessions, as many as are wanted. All must be of one program, or of programs that
 * --program allows.
 */
#ifndef CMD_RUNS_H
#define CMD_RUNS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"
#include "cli/options.h"
#include "gate/baseline.h"
#include "verdict/verdict.h"

/* Runs of a program that the command made itself. */
struct cmd_recorded {
	char folder[PATH_MAX];
	size_t count;
	char (*sessions)[40];
};

struct cmd_runs {
	/* Called with each run before it is added; false and *fail filled: it cannot be used. */
	bool (*judge)(void *context, const char *path, const struct verdict *verdict, struct fail *fail);
	void *context;
	const struct baseline *wanted;       // the program that the runs must be of; NULL = that of the first run
	const char *wanted_path;             // for the message
	const struct config *config;         // whose suppressions are looked for; NULL = none
	const struct cmd_recorded *recorded; // the runs are these, and not those of the arguments; NULL = they are
	uint64_t newest;                     // of a folder so many sessions, when --runs does not say
};

/*
 * Records one more run of the command behind "--". Its standard output goes to standard error, because the result is written to ours.
 * Its exit status is left to the reader of the capture.
 *
 * folder   NULL = as `kmemshim run` has it
 * rounds   what "{n}" in a word stands for
 * returns  false and *fail (EXIT_CAPTURE): it could not be started, or left no capture
 */
bool cmd_runs_record(struct cmd_recorded *recorded, const char *folder, uint64_t rounds, const struct options *options,
                     struct fail *fail);

#define CMD_RUNS_ROUNDS 100
bool cmd_runs_has_rounds(const struct options *options); // "{n}" is in a word

/* Are the runs of the baseline's program, or of one that --program allows? */
bool cmd_runs_is_of(const struct baseline *before, const char *before_path, const struct baseline *measured,
                    const struct options *options, struct fail *fail);

/* NULL and *fail filled when a run cannot be read, is refused, or is of another program (EXIT_USAGE). */
struct baseline *cmd_runs_measure(const struct cmd_runs *runs, const struct options *options, struct fail *fail);

/*
 * Narrows both to the domain that --domain names or, without it, to the baseline's domain. before: NULL = there is none. False and *fail
 * (EXIT_USAGE): the runs have no such domain, or the baseline is of another one.
 */
bool cmd_runs_narrow(struct baseline *measured, struct baseline *before, const struct options *options,
                     struct fail *fail);

#endif
