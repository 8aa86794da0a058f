/*
 * main.c - kmemshim: which command, and what is its exit status?
 *
 * The one place that prints errors: one line on stderr that begins with the program's name.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/options.h"
#include "version.h"

static void
print_help(FILE *stream)
{
	(void)fputs("usage: kmemshim COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	            "Says why a process died of memory, and which line of code held it.\n\n",
	            stream);
	for (const struct command *command = commands; command->name != NULL; command++)
		(void)fprintf(stream, "  %-9s %-24s %s\n", command->name, command->arguments, command->summary);
	(void)fputs("\n  kmemshim COMMAND --help   options of a command\n"
	            "  kmemshim --version\n\n"
	            "Start with:  kmemshim run -- python train.py\n",
	            stream);
}

static int
report_failure(const struct fail *fail)
{
	progress_end();
	(void)fprintf(stderr, "kmemshim: %s%s\n", fail->text, fail->needs_time ? ": allow more with --stop" : "");
	return (int)fail->code;
}

static int
finish(int status)
{
	struct fail fail;

	return output_finish(&fail) ? status : report_failure(&fail);
}

static int
run_command(const struct command *command, int count, char **arguments)
{
	struct options options;
	struct fail fail = { 0 };
	int status = EXIT_OK;

	if (!options_parse(command, count, arguments, &options, &fail))
		return report_failure(&fail);
	if (options.wants_help) {
		options_help(command, stdout);
		return finish(EXIT_OK);
	}
	options.status = &status;
	/*
	 * A write tells when a reader went away (`| head`); the signal would end this command. The launcher's program would inherit both.
	 */
	if (!command->is_launcher) {
		(void)signal(SIGPIPE, SIG_IGN);
		if (options.command_line == NULL) // else it runs a program of the user's, which would inherit it
			memory_die_first();
	}
	return command->run(&options, &fail) ? status : report_failure(&fail);
}

int
main(int count, char **arguments)
{
	struct fail fail;

	if (count < 2) {
		(void)fail_set(&fail, EXIT_USAGE, "no command given: see kmemshim --help");
		return report_failure(&fail);
	}
	if (strcmp(arguments[1], "--version") == 0) {
		(void)printf("kmemshim %s\n", KMEMSHIM_VERSION_TEXT);
		return finish(EXIT_OK);
	}
	if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0 || strcmp(arguments[1], "help") == 0) {
		print_help(stdout);
		return finish(EXIT_OK);
	}
	if (command_find(arguments[1]) != NULL)
		return run_command(command_find(arguments[1]), count - 1, arguments + 1);

	const struct command *like = command_like(arguments[1]);

	if (like != NULL)
		(void)fail_set(&fail, EXIT_USAGE, "unknown command \"%s\": did you mean %s?", arguments[1], like->name);
	else
		(void)fail_set(&fail, EXIT_USAGE, "unknown command \"%s\": see kmemshim --help", arguments[1]);
	return report_failure(&fail);
}
