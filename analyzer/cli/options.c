/*
 * options.c - what did the person ask for?
 *
 * When failing  one line that names the command, the option and what it wants.
 */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/terminal.h"
#include "kmem_words.h"

#define DEFAULT_ABSOLUTE_BYTES (UINT64_C(1) << 20)
#define DEFAULT_RELATIVE_PPM 50000

static bool
parse_count(const char *text, uint64_t *count)
{
	char *end;
	unsigned long long value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end != '\0')
		return false;
	*count = errno == ERANGE ? UINT64_MAX : value; // more than there can be is all
	return true;
}

bool
options_parse_percent(const char *text, uint32_t *ppm)
{
	const char *end = text + strspn(text, "0123456789.");
	char *number_end;
	double value = strtod(text, &number_end);

	if (!isdigit((unsigned char)text[0]) || number_end != end) // no sign, no exponent, no hexadecimal
		return false;
	while (*end == ' ')
		end++;
	if (*end == '%')
		end++;
	if (*end != '\0' || value > 1000)
		return false;
	*ppm = (uint32_t)(value * 10000 + 0.5);
	return true;
}

/* "2s", "500ms"; at most an hour. */
static bool
parse_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ms", 1000000 }, { "s", 1000000000 } };
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 7)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text + digits, units[i].name) == 0) {
			*ns = strtoull(text, NULL, 10) * units[i].ns;
			return *ns != 0 && *ns <= UINT64_C(3600) * 1000000000;
		}
	}
	return false;
}

enum option_kind {
	KIND_FLAG,
	KIND_TEXT,
	KIND_PATH,
	KIND_COUNT,
	KIND_KEEP, // a count, not 0
	KIND_RUNS, // a count, or all
	KIND_SIZE,
	KIND_PERCENT,
	KIND_GUARD,
	KIND_GUARD_ACTION,
	KIND_SNAPSHOTS,
	KIND_SAMPLE,
	KIND_COLOR,
	KIND_TIME, // in ns, not 0
};

static const struct option_row {
	const char *name;
	char letter; // 0 = none
	enum option_kind kind;
	size_t offset;      // in struct options
	const char *value;  // in the help; NULL = takes none
	const char *wanted; // in the message about a bad value
	const char *help;
} rows[OPTION_COUNT] = {
#define FLAG(id, name, letter, member, help) \
	{ name, letter, KIND_FLAG, offsetof(struct options, member), NULL, "", help },
#define WITH(id, name, letter, kind, member, value, wanted, help) \
	{ name, letter, KIND_##kind, offsetof(struct options, member), value, wanted, help },
	OPTION_ROWS(FLAG, WITH)
#undef FLAG
#undef WITH
};

/* The values from which a person can choose, where they are known; for completion. */
static const char *
choices_of(enum option_id id)
{
	static const struct choices {
		enum option_id id;
		const char *words;
	} choices[] = {
		{ OPTION_COLOR, "auto always never" },
		{ OPTION_GUARD_ACTION, "note interrupt raise exec:" },
		{ OPTION_VALUE, "peak live leaked allocated" },
		{ OPTION_BY, "line function" },
	};

	const struct choices *known = FIRST(choice, choices, COUNT_OF(choices), choice->id == id);

	return known != NULL ? known->words : NULL;
}

static bool
take_value(const struct option_row *row, struct options *options, const char *value)
{
	void *member = (char *)options + row->offset;
	uint64_t count;

	switch (row->kind) {
	case KIND_FLAG:
		*(bool *)member = true;
		return true;
	case KIND_TEXT:
		*(const char **)member = value;
		return value[0] != '\0';
	case KIND_PATH:
		*(const char **)member = value;
		return value[0] != '\0' && value[0] != '-'; // the path was forgotten: what comes next was taken for it
	case KIND_RUNS:
		*(uint64_t *)member = UINT64_MAX;
		return strcmp(value, "all") == 0 || (parse_count(value, member) && *(uint64_t *)member != 0);
	case KIND_COUNT:
		return parse_count(value, member);
	case KIND_KEEP:
		return parse_count(value, member) && *(uint64_t *)member != 0;
	case KIND_SIZE:
		return kmem_parse_size(value, member);
	case KIND_PERCENT:
		return options_parse_percent(value, member);
	case KIND_GUARD:
		*(const char **)member = value;
		return kmem_parse_guard(value, &(struct kmem_guard_setting){ 0 });
	case KIND_GUARD_ACTION:
		*(const char **)member = value;
		return kmem_parse_guard_action(value, &(enum kmem_guard_action){ 0 }, &(const char *){ NULL });
	case KIND_SNAPSHOTS:
		*(const char **)member = value;
		return parse_count(value, &count) && count >= 2 && count <= KMEM_SNAPSHOTS_EVEN;
	case KIND_SAMPLE:
		*(const char **)member = value;
		return kmem_parse_sample(value, &count);
	case KIND_TIME:
		return parse_time(value, member);
	case KIND_COLOR:
		*(const char **)member = value;
		return terminal_color_of(value, &(enum terminal_color){ TERMINAL_COLOR_AUTO });
	}
	return false;
}

static bool
refuse(const struct command *command, const char *argument, struct fail *fail)
{
	return fail_set(fail, EXIT_USAGE, "%s: %s: see kmemshim %s --help", command->name, argument, command->name);
}

/* Turns getopt's result into one line of ours. */
static bool
refuse_option(const struct command *command, char **arguments, int result, struct fail *fail)
{
	char text[256];
	const char *given = arguments[optind - 1];

	if (result == ':')
		(void)snprintf(text, sizeof(text), "%.200s needs a value", given);
	else if (optopt > 0 && optopt < 256)
		(void)snprintf(text, sizeof(text), "unknown option -%c", optopt);
	else if (optopt != 0)
		(void)snprintf(text, sizeof(text), "%.200s takes no value", given);
	else
		(void)snprintf(text, sizeof(text), "unknown option %.200s", given);
	return refuse(command, text, fail);
}

static bool
check_arguments(const struct command *command, const struct options *options, struct fail *fail)
{
	if (options->command_line != NULL && options->argument_count != 0)
		return fail_set(fail, EXIT_USAGE, "%s: \"%s\": give captures, or a program behind --, not both", command->name,
		                options->arguments[0]);
	if (options->argument_count < command->arguments_min && !options->wants_init && options->command_line == NULL)
		return fail_set(fail, EXIT_USAGE, "%s: an argument is missing: usage: kmemshim %s %s", command->name,
		                command->name, command->arguments);
	return command->arguments_max < 0 || options->argument_count <= command->arguments_max ||
	       fail_set(fail, EXIT_USAGE, "%s: unexpected argument \"%s\": usage: kmemshim %s %s", command->name,
	                options->arguments[command->arguments_max], command->name, command->arguments);
}

/* The place of the "--" behind which a program begins; count = there is none. */
static int
program_begins(const struct command *command, int count, char **arguments)
{
	int at = 1;

	while (at < count && (!command->takes_program || strcmp(arguments[at], "--") != 0))
		at++;
	return at;
}

bool
options_parse(const struct command *command, int count, char **arguments, struct options *options, struct fail *fail)
{
	struct option longs[OPTION_COUNT + 1];
	char shorts[2 + 2 * OPTION_COUNT + 1];
	size_t long_count = 0;
	size_t short_count = 0;
	int result;

	if (command->is_launcher)
		shorts[short_count++] = '+'; // what follows the program's name is the program's
	shorts[short_count++] = ':';
	for (int id = 0; id < OPTION_COUNT; id++) {
		if (id != OPTION_HELP && (command->options & OPTION_BIT(id)) == 0)
			continue;
		longs[long_count++] = (struct option){
			.name = rows[id].name,
			.has_arg = rows[id].value != NULL ? required_argument : no_argument,
			.val = 256 + id,
		};
		if (rows[id].letter == 0)
			continue;
		shorts[short_count++] = rows[id].letter;
		if (rows[id].value != NULL)
			shorts[short_count++] = ':';
	}
	longs[long_count] = (struct option){ .name = NULL };
	shorts[short_count] = '\0';

	*options = (struct options){
		.command = command,
		.top = UINT64_MAX,
		.absolute_bytes = DEFAULT_ABSOLUTE_BYTES,
		.relative_ppm = DEFAULT_RELATIVE_PPM,
	};
	options->retries = UINT64_MAX;
	if (program_begins(command, count, arguments) < count) {
		options->command_line = arguments + program_begins(command, count, arguments) + 1;
		count = program_begins(command, count, arguments);
		if (options->command_line[0] == NULL)
			return fail_set(fail, EXIT_USAGE, "%s: there is no program behind --", command->name);
	}
	opterr = 0;
	optind = 0;
	while ((result = getopt_long(count, arguments, shorts, longs, NULL)) != -1) {
		int id = result - 256;

		for (int i = 0; i < OPTION_COUNT && result < 256; i++) {
			if (rows[i].letter == result)
				id = i;
		}
		if (result == '?' || result == ':')
			return refuse_option(command, arguments, result, fail);
		const char *value = optarg != NULL ? optarg : "";

		if (rows[id].value != NULL && options_has(options, (enum option_id)id))
			return fail_set(fail, EXIT_USAGE, "%s: --%s was given twice", command->name, rows[id].name);
		options->given |= OPTION_BIT(id);
		if (!take_value(&rows[id], options, value))
			return fail_set(fail, EXIT_USAGE, "%s: --%s \"%s\": expected %s", command->name, rows[id].name, value,
			                rows[id].wanted);
	}
	options->option_words = arguments + 1; // getopt put them before the others
	options->option_word_count = optind - 1 - (optind > 1 && strcmp(arguments[optind - 1], "--") == 0);
	options->argument_count = count - optind;
	options->arguments = arguments + optind;
	return options->wants_help || check_arguments(command, options, fail);
}

bool
options_text(const struct command *command, enum option_id id, struct option_text *text)
{
	const char *value = command->words[id].value != NULL ? command->words[id].value : rows[id].value;
	const char *help = command->words[id].help != NULL ? command->words[id].help : rows[id].help;

	*text = (struct option_text){ .name = rows[id].name,
		                          .letter = rows[id].letter,
		                          .value = value,
		                          .choices = command->choices[id] != NULL ? command->choices[id] : choices_of(id),
		                          .is_path = value != NULL && (strcmp(value, "FILE") == 0 ||
		                                                       strcmp(value, "DIR") == 0 || strcmp(value, "PATH") == 0),
		                          .help = help };
	return id == OPTION_HELP || (command->options & OPTION_BIT(id)) != 0;
}

void
options_help(const struct command *command, FILE *stream)
{
	(void)fprintf(stream, "usage: kmemshim %s%s%s%s\n\n%c%s.\n\n%s\n", command->name,
	              command->options != 0 ? " [OPTIONS]" : "", command->arguments[0] != '\0' ? " " : "",
	              command->arguments, toupper((unsigned char)command->summary[0]), command->summary + 1,
	              command->details);
	EACH_OPTION_OF(command, text)
	{
		char name[40];

		(void)snprintf(name, sizeof(name), "%s%c%s--%s%s%s", text.letter != 0 ? "-" : "   ",
		               text.letter != 0 ? text.letter : ' ', text.letter != 0 ? ", " : "", text.name,
		               text.value != NULL ? " " : "", text.value != NULL ? text.value : "");
		(void)fprintf(stream, "  %-23s  %s\n", name, text.help);
	}
}
