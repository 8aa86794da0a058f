/*
 * options.c - what did the person ask for?
 *
 * When failing  one line that names the command, the option and what it wants.
 */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

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
options_parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "kmgt";
	char *end;
	unsigned long long value;
	unsigned shift = 0;
	const char *unit;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	while (*end == ' ')
		end++;
	unit = *end != '\0' ? strchr(units, tolower((unsigned char)*end)) : NULL;
	if (unit != NULL) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end == 'B' || *end == 'b')
		end++;
	if (*end != '\0' || errno == ERANGE || value > UINT64_MAX >> shift)
		return false;
	*bytes = (uint64_t)value << shift;
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

static bool
take_help(struct options *options, const char *value)
{
	(void)value;
	options->wants_help = true;
	return true;
}

static bool
take_json(struct options *options, const char *value)
{
	(void)value;
	options->is_json = true;
	return true;
}

static bool
take_top(struct options *options, const char *value)
{
	options->has_top = true;
	return parse_count(value, &options->top);
}

static bool
take_domain(struct options *options, const char *value)
{
	options->domain = value;
	return value[0] != '\0';
}

static bool
take_native(struct options *options, const char *value)
{
	(void)value;
	options->is_native = true;
	return true;
}

static bool
take_salvage(struct options *options, const char *value)
{
	(void)value;
	options->is_salvage = true;
	return true;
}

static bool
take_sysroot(struct options *options, const char *value)
{
	options->sysroot = value;
	return value[0] != '\0';
}

static bool
take_project(struct options *options, const char *value)
{
	options->project = value;
	return value[0] != '\0';
}

static bool
take_wrappers(struct options *options, const char *value)
{
	options->wrappers = value;
	return value[0] != '\0';
}

static bool
take_output(struct options *options, const char *value)
{
	options->output = value;
	return value[0] != '\0' && value[0] != '-'; // the path was forgotten: what comes next was taken for it
}

static bool
take_python_objects(struct options *options, const char *value)
{
	(void)value;
	options->wants_python_objects = true;
	return true;
}

static bool
take_system_allocators(struct options *options, const char *value)
{
	(void)value;
	options->wants_system_allocators = true;
	return true;
}

static bool
take_baseline(struct options *options, const char *value)
{
	options->baseline = value;
	return value[0] != '\0';
}

static bool
take_absolute(struct options *options, const char *value)
{
	options->has_absolute = true;
	return options_parse_size(value, &options->absolute_bytes);
}

static bool
take_relative(struct options *options, const char *value)
{
	options->has_relative = true;
	return options_parse_percent(value, &options->relative_ppm);
}

static bool
take_format(struct options *options, const char *value)
{
	options->formats = value;
	return value[0] != '\0';
}

static bool
take_runs(struct options *options, const char *value)
{
	if (strcmp(value, "all") != 0)
		return parse_count(value, &options->runs) && options->runs != 0;
	options->runs = UINT64_MAX;
	return true;
}

static bool
take_program(struct options *options, const char *value)
{
	options->program = strcmp(value, "any") == 0 ? "*" : value;
	return value[0] != '\0';
}

static const struct option_row {
	const char *name;
	char letter;        // 0 = none
	const char *value;  // in the help; NULL = takes none
	const char *wanted; // in the message about a bad value
	const char *help;
	bool (*take)(struct options *options, const char *value);
} rows[OPTION_COUNT] = {
	[OPTION_HELP] = { "help", 'h', NULL, "", "this text", take_help },
	[OPTION_JSON] = { "json", 0, NULL, "", "JSON, of reports by report.schema.json with all rows unless --top",
	                  take_json },
	[OPTION_TOP] = { "top", 0, "N", "a number of rows (0 or more)",
	                 "at most N rows, each a line of code; text shows 10 otherwise, 5 on a page", take_top },
	[OPTION_DOMAIN] = { "domain", 0, "D", "a domain", "only this domain: heap, mmap, cuda:0, or cuda for all devices",
	                    take_domain },
	[OPTION_NATIVE] = { "native", 0, NULL, "", "show native frames in stacks as well", take_native },
	[OPTION_SALVAGE] = { "salvage", 0, NULL, "", "read what is intact of a damaged capture", take_salvage },
	[OPTION_SYSROOT] = { "sysroot", 0, "DIR", "a folder", "look for programs and libraries below DIR", take_sysroot },
	[OPTION_PROJECT] = { "project", 0, "DIR", "a folder", "only code below DIR is the user's own", take_project },
	[OPTION_WRAPPERS] = { "wrappers", 0, "NAMES", "names of functions, separated by commas",
	                      "functions that only pass on memory: their callers are the lines; also KMEMSHIM_WRAPPERS",
	                      take_wrappers },
	[OPTION_OUTPUT] = { "output", 'o', "PATH", "a path; one that begins with - is written ./-", "where to write",
	                    take_output },
	[OPTION_PYTHON_OBJECTS] = { "python-objects", 0, NULL, "", "record small Python objects one by one",
	                            take_python_objects },
	[OPTION_SYSTEM_ALLOCATORS] = { "system-allocators", 0, NULL, "",
	                               "libraries that can take memory from malloc do so; jemalloc in Rust gives freed pages back at once",
	                               take_system_allocators },
	[OPTION_BASELINE] = { "baseline", 0, "FILE", "a file", "what to compare with", take_baseline },
	[OPTION_ABSOLUTE] = { "abs", 0, "SIZE", "a size such as 1MiB", "growth that is no regression; 1MiB otherwise",
	                      take_absolute },
	[OPTION_RELATIVE] = { "rel", 0, "PCT", "a percentage such as 5%",
	                      "the same as a share of the baseline; 5% otherwise, the larger counts", take_relative },
	[OPTION_RUNS] = { "runs", 0, "N", "a number of runs (1 or more), or all",
	                  "of each folder the newest N sessions, or all", take_runs },
	[OPTION_PROGRAM] = { "program", 0, "NAME", "a program's name",
	                     "runs of NAME, which may have * and ?, or of any program", take_program },
	[OPTION_FORMAT] = { "format", 0, "LIST", "formats", "text, junit, junit=FILE, separated by commas", take_format },
};

static bool
refuse(const struct command *command, const char *argument, struct fail *fail)
{
	return fail_set(fail, EXIT_USAGE, "%s: %s: kmemshim %s --help lists the options", command->name, argument,
	                command->name);
}

static bool
take_option(const struct command *command, int id, struct options *options, struct fail *fail)
{
	if (!rows[id].take(options, optarg != NULL ? optarg : ""))
		return fail_set(fail, EXIT_USAGE, "%s: --%s \"%s\": not %s", command->name, rows[id].name,
		                optarg != NULL ? optarg : "", rows[id].wanted);
	return true;
}

/* getopt's way of saying what was wrong, as one line of ours. */
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
	if (options->argument_count < command->arguments_min)
		return fail_set(fail, EXIT_USAGE, "%s: nothing to work on: usage: kmemshim %s %s", command->name, command->name,
		                command->arguments);
	if (command->arguments_max >= 0 && options->argument_count > command->arguments_max)
		return fail_set(fail, EXIT_USAGE, "%s: \"%s\" is one argument too many: usage: kmemshim %s %s", command->name,
		                options->arguments[command->arguments_max], command->name, command->arguments);
	return true;
}

bool
options_parse(const struct command *command, int count, char **arguments, struct options *options, struct fail *fail)
{
	struct option longs[OPTION_COUNT + 1];
	char shorts[2 + 2 * OPTION_COUNT + 1];
	size_t long_count = 0;
	size_t short_count = 0;
	unsigned given = 0; // OPTION_BIT() of each
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

	*options = (struct options){ .top = UINT64_MAX };
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
		if (rows[id].value != NULL && (given & OPTION_BIT(id)) != 0)
			return fail_set(fail, EXIT_USAGE, "%s: --%s is given twice: it takes one value", command->name,
			                rows[id].name);
		given |= OPTION_BIT(id);
		if (!take_option(command, id, options, fail))
			return false;
	}
	options->argument_count = count - optind;
	options->arguments = arguments + optind;
	return options->wants_help || check_arguments(command, options, fail);
}

void
options_help(const struct command *command, FILE *stream)
{
	(void)fprintf(stream, "usage: kmemshim %s [OPTIONS] %s\n\n%s\n%s%s\n", command->name, command->arguments,
	              command->summary, command->details[0] != '\0' ? "\n" : "", command->details);
	for (int id = 0; id < OPTION_COUNT; id++) {
		char name[32];

		if (id != OPTION_HELP && (command->options & OPTION_BIT(id)) == 0)
			continue;
		(void)snprintf(name, sizeof(name), "%s%c%s--%s%s%s", rows[id].letter != 0 ? "-" : "   ",
		               rows[id].letter != 0 ? rows[id].letter : ' ', rows[id].letter != 0 ? ", " : "", rows[id].name,
		               rows[id].value != NULL ? " " : "", rows[id].value != NULL ? rows[id].value : "");
		(void)fprintf(stream, "  %-20s %s\n", name, rows[id].help);
	}
}
