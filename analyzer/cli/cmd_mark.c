/*
 * cmd_mark.c - kmemshim mark, kmemshim snapshot: a running program is asked to name this moment.
 */
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "launch/ask_process.h"

bool
cmd_mark(const struct options *options, struct fail *fail)
{
	const char *command = options->command->name;
	bool is_snapshot = strcmp(command, "snapshot") == 0;
	const char *pid = options->arguments[0];
	const char *name = options->argument_count > 1 ? options->arguments[1] : "";
	bool is_done;

	if (!is_snapshot && name[0] == '\0')
		return fail_set(fail, EXIT_USAGE, "mark: the name is empty: give one, such as \"epoch 3\"");
	if (!ask_process(command, pid, is_snapshot ? ASK_SNAPSHOT : ASK_MARK, name, &is_done, fail))
		return false;
	if (!is_done)
		(void)fprintf(stderr, "kmemshim: process %s has not allocated since: it makes the %s when it does\n", pid,
		              command);
	return output_finish(fail);
}
