/*
 * cmd_completion.c - kmemshim completion SHELL: what completes commands, options and their values, from the same tables as the help.
 */
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/options.h"

#define WORDS_BYTES 128

/* Text inside single quotes; other characters with a meaning there are escaped by a backslash. */
static void
put_quoted(const char *text, const char *quote, const char *escaped)
{
	for (; *text != '\0' && *text != '\n'; text++) {
		if (*text == '\'')
			(void)fputs(quote, stdout);
		else
			(void)printf("%s%c", strchr(escaped, *text) != NULL ? "\\" : "", *text);
	}
}

static void
put_commands(void)
{
	for (const struct command *command = commands; command->name != NULL; command++)
		(void)printf("%s%s", command == commands ? "" : " ", command->name);
}

/* The words "a b c", where the help shows the one argument as "[a|b|c]" or "a|b|c"; false: it is something else. */
static bool
argument_words(const struct command *command, char words[WORDS_BYTES])
{
	size_t length = 0;

	for (const char *text = command->arguments; *text != '\0' && length + 1 < WORDS_BYTES; text++) {
		if (*text == '[' || *text == ']')
			continue;
		if (*text != '|' && (*text < 'a' || *text > 'z'))
			return false;
		words[length++] = *text == '|' ? ' ' : *text;
	}
	words[length] = '\0';
	return length != 0;
}

/* The argument of a command: one of a few words, a command, or a file. */
static void
bash_argument(const struct command *command)
{
	char words[WORDS_BYTES];

	if (argument_words(command, words))
		(void)printf("\t\t%s) COMPREPLY=($(compgen -W '%s' -- \"$current\")) ;;\n", command->name, words);
	else if (command->is_launcher)
		(void)printf("\t\t%s) COMPREPLY=($(compgen -c -f -- \"$current\")) ;;\n", command->name);
}

static void
bash_options(const struct command *command)
{
	(void)printf("\t%s) words='", command->name);
	EACH_OPTION_OF(command, text)
	(void)printf("%s--%s", text_id == 0 ? "" : " ", text.name);
	(void)fputs("' ;;\n", stdout);
}

static void
bash_values(const struct command *command)
{
	EACH_OPTION_OF(command, text)
	{
		if (text.value == NULL)
			continue;
		(void)printf("\t%s:--%s) ", command->name, text.name);
		if (text.choices != NULL)
			(void)printf("COMPREPLY=($(compgen -W '%s' -- \"$current\"));", text.choices);
		else if (text.is_path)
			(void)fputs("COMPREPLY=($(compgen -f -- \"$current\"));", stdout);
		(void)fputs(" return ;;\n", stdout);
	}
}

/* Words behind the program's name are completed as that program's, where bash-completion is installed. */
static void
bash(void)
{
	(void)fputs("_kmemshim()\n{\n"
	            "\tlocal current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words= i\n"
	            "\tCOMPREPLY=()\n"
	            "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '",
	            stdout);
	put_commands();
	(void)fputs(" --help --version' -- \"$current\"))\n\t\treturn\n\tfi\n", stdout);
	(void)fputs("\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	            "\t\tif [[ ${COMP_WORDS[i]} == -- ]] && declare -F _command_offset >/dev/null; then\n"
	            "\t\t\t_command_offset $((i + 1))\n\t\t\treturn\n\t\tfi\n\tdone\n"
	            "\tcase $command:${COMP_WORDS[COMP_CWORD - 1]} in\n",
	            stdout);
	for (const struct command *command = commands; command->name != NULL; command++)
		bash_values(command);
	(void)fputs("\tesac\n\tif [[ $current != -* ]]; then\n\t\tcase $command in\n", stdout);
	for (const struct command *command = commands; command->name != NULL; command++)
		bash_argument(command);
	(void)fputs("\t\t*) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n\t\tesac\n\t\treturn\n\tfi\n\tcase $command in\n",
	            stdout);
	for (const struct command *command = commands; command->name != NULL; command++)
		bash_options(command);
	(void)fputs("\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n"
	            "complete -o filenames -F _kmemshim kmemshim\n",
	            stdout);
}

static void
zsh_option(const struct option_text *text)
{
	(void)printf(" \\\n\t\t'--%s[", text->name);
	put_quoted(text->help, "'\\''", "[]:\\");
	(void)putchar(']');
	if (text->choices != NULL)
		(void)printf(":%s:(%s)", text->value, text->choices);
	else if (text->value != NULL)
		(void)printf(":%s:%s", text->value, text->is_path ? "_files" : " ");
	(void)putchar('\'');
}

static void
zsh_argument(const struct command *command)
{
	char words[WORDS_BYTES];

	if (argument_words(command, words))
		(void)printf(" \\\n\t\t'1:word:(%s)' ;;\n", words);
	else
		(void)printf(" \\\n\t\t'%s' ;;\n", command->is_launcher ? "*::command:_normal" : "*:file:_files");
}

/* For a file in $fpath, or to be sourced. */
static void
zsh(void)
{
	(void)fputs("#compdef kmemshim\n_kmemshim()\n{\n\tlocal -a commands\n\tcommands=(\n", stdout);
	for (const struct command *command = commands; command->name != NULL; command++) {
		(void)printf("\t\t'%s:", command->name);
		put_quoted(command->summary, "'\\''", ":\\");
		(void)fputs("'\n", stdout);
	}
	(void)fputs("\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	            "\tshift words\n\t((CURRENT--))\n\tcase $words[1] in\n",
	            stdout);
	for (const struct command *command = commands; command->name != NULL; command++) {
		(void)printf("\t%s) _arguments -s", command->name);
		EACH_OPTION_OF(command, text)
		zsh_option(&text);
		zsh_argument(command);
	}
	(void)fputs(
		"\tesac\n}\nif [[ $funcstack[1] == _kmemshim ]]; then\n\t_kmemshim \"$@\"\nelse\n\tcompdef _kmemshim kmemshim\nfi\n",
		stdout);
}

static void
fish_option(const struct command *command, const struct option_text *text)
{
	(void)printf("complete -c kmemshim -n '__fish_seen_subcommand_from %s' -l %s", command->name, text->name);
	if (text->letter != 0)
		(void)printf(" -s %c", text->letter);
	if (text->value != NULL)
		(void)fputs(text->is_path ? " -r -F" : " -x", stdout);
	if (text->choices != NULL)
		(void)printf(" -a '%s'", text->choices);
	(void)fputs(" -d '", stdout);
	put_quoted(text->help, "\\'", "\\");
	(void)fputs("'\n", stdout);
}

/* fish completes files where nothing else is said. */
static void
fish_argument(const struct command *command)
{
	char words[WORDS_BYTES];

	if (argument_words(command, words))
		(void)printf("complete -c kmemshim -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", command->name, words);
	else if (command->is_launcher)
		(void)printf(
			"complete -c kmemshim -n '__fish_seen_subcommand_from %s' -a '(__fish_complete_subcommand --fcs-skip=2)'\n",
			command->name);
}

static void
fish(void)
{
	for (const struct command *command = commands; command->name != NULL; command++) {
		(void)printf("complete -c kmemshim -n __fish_use_subcommand -f -a %s -d '", command->name);
		put_quoted(command->summary, "\\'", "\\");
		(void)fputs("'\n", stdout);
		fish_argument(command);
		EACH_OPTION_OF(command, text)
		fish_option(command, &text);
	}
}

bool
cmd_completion(const struct options *options, struct fail *fail)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

	const __typeof__(shells[0]) *wanted = FIRST(shell, shells, COUNT_OF(shells),
	                                            strcmp(options->arguments[0], shell->name) == 0);

	if (wanted == NULL)
		return fail_set(fail, EXIT_USAGE, "completion: %s: there are bash, zsh and fish", options->arguments[0]);
	wanted->print();
	return output_finish(fail);
}
