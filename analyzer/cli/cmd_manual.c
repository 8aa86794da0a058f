/*
 * cmd_manual.c - kmemshim manual: the manual page, from the same tables as the help.
 */
#include <ctype.h>
#include <stdio.h>

#include "base/output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "version.h"

/* Plain text: nothing in it is a request of troff's, and line breaks of the help are not kept. */
static void
put(const char *text)
{
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '\\')
			(void)fputs("\\e", stdout);
		else if (*at == '-')
			(void)fputs("\\-", stdout);
		else if ((*at == '.' || *at == '\'') && (at == text || at[-1] == '\n'))
			(void)printf("\\&%c", *at);
		else if (*at == '\n' && at[1] == '\0')
			break;
		else
			(void)putchar(*at);
	}
}

static void
put_option(const struct option_text *text)
{
	(void)fputs(".TP\n", stdout);
	if (text->letter != 0)
		(void)printf("\\fB\\-%c\\fR, ", text->letter);
	(void)fputs("\\fB\\-\\-", stdout);
	put(text->name);
	(void)fputs("\\fR", stdout);
	if (text->value != NULL)
		(void)printf(" \\fI%s\\fR", text->value);
	(void)putchar('\n');
	(void)putchar(toupper((unsigned char)text->help[0]));
	put(text->help + 1);
	(void)fputs(".\n", stdout);
}

static void
put_command(const struct command *command)
{
	(void)printf(".SS \"kmemshim %s%s%s\"\n%c", command->name, command->arguments[0] != '\0' ? " " : "",
	             command->arguments, toupper((unsigned char)command->summary[0]));
	put(command->summary + 1);
	(void)fputs(".\n.PP\n", stdout);
	put(command->details);
	(void)putchar('\n');
	EACH_OPTION_OF(command, text)
	{
		if (text_id != OPTION_HELP)
			put_option(&text);
	}
}

bool
cmd_manual(const struct options *options, struct fail *fail)
{
	(void)options;
	(void)printf(".TH KMEMSHIM 1 \"\" \"kmemshim %s\" \"User Commands\"\n", KMEMSHIM_VERSION_TEXT);
	(void)fputs(
		".SH NAME\nkmemshim \\- say why a process died of memory, and which line of code held it\n"
		".SH SYNOPSIS\n.B kmemshim\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"
		".SH DESCRIPTION\n"
		"A preloaded library records, for each line of code, the memory that it holds: of the host and of GPUs.\n"
		"What it records is in a file that outlives the process, also when the kernel kills it.\n"
		"The commands read that file. Start with:\n.PP\n.RS\nkmemshim run \\-\\- python train.py\n.RE\n"
		".PP\nEach command has an option \\fB\\-h\\fR, \\fB\\-\\-help\\fR.\n"
		".SH COMMANDS\n",
		stdout);
	for (const struct command *command = commands; command->name != NULL; command++)
		put_command(command);
	(void)fputs(
		".SH EXIT STATUS\n"
		"0: it was done. 1: a check found something worse, the doctor a problem. 2: wrong options. 3: a capture or file that\n"
		"cannot be read. 4: the program that was to be checked was killed or failed. 77: there was nothing to check.\n"
		"Of \\fBkmemshim run\\fR: that of the program, or 128 + n when signal n ended it; 126 or 127 when it cannot be run.\n"
		".SH ENVIRONMENT\nThe variables KMEMSHIM_* are in docs/settings.md of the source.\n"
		".SH FILES\n.TP\n\\&./kmemshim.out\nFolder for captures, where no other one is given.\n",
		stdout);
	return output_finish(fail);
}
