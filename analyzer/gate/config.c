/*
 * config.c - reads .kmemshim.yml, and suppressions of LeakSanitizer.
 *
 * Tables say which names there are, and who takes their values. A node is looked at in one place alone, where its line is known.
 *
 * When failing  see config.h.
 */
#include "gate/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/regular_file.h"
#include "base/text_start.h"
#include "base/yaml_read.h"
#include "gate/pattern.h"
#include "kmem_words.h"

#define SIZE_WANTED "a size with its unit, such as 500 MiB, or more than the baseline, such as +10 MiB or +5 %"

struct reading {
	struct yaml_file yaml;
	struct config *config;
	const char *today;
	struct fail *fail;
};

/* One name of a mapping, and the function that takes its value. */
struct member {
	const char *name;
	bool (*take)(struct reading *reading, const yaml_node_t *value, void *to);
	size_t offset; // in what `to` points to
};

static const char *
keep(const struct reading *reading, const char *text)
{
	return text_pool_add_text(reading->config->texts, text);
}

/* "a, b or c" */
static const char *
list_names(const struct member *members, size_t count, char names[256])
{
	names[0] = '\0';
	for (size_t i = 0; i < count; i++)
		memory_text_add(names, 256, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", members[i].name);
	return names;
}

static bool
take_members(struct reading *reading, const yaml_node_t *node, const struct member *members, size_t count, void *to)
{
	char names[256];

	if (yaml_read_is_empty(node))
		return true;
	if (node->type != YAML_MAPPING_NODE)
		return yaml_read_wrong(&reading->yaml, node, reading->fail, "expected %s, each with a colon",
		                       list_names(members, count, names));
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_read_node(&reading->yaml, pair->key);
		const char *name = yaml_read_text(key);
		const struct member *member = members;

		while (member < members + count && strcmp(member->name, name) != 0)
			member++;
		if (member == members + count)
			return yaml_read_wrong(&reading->yaml, key, reading->fail, "unknown name \"%s\": expected %s", name,
			                       list_names(members, count, names));
		if (!member->take(reading, yaml_read_node(&reading->yaml, pair->value), (char *)to + member->offset))
			return false;
	}
	return true;
}
#define TAKE(reading, node, members, to) \
	take_members(reading, node, members, sizeof(members) / sizeof((members)[0]), to)

static bool
is_wrong(struct reading *reading, const yaml_node_t *node, const char *wanted)
{
	const char *text = yaml_read_text(node);

	if (text == NULL)
		return yaml_read_wrong(&reading->yaml, node, reading->fail, "expected %s", wanted);
	return yaml_read_wrong(&reading->yaml, node, reading->fail, "\"%s\": expected %s", text, wanted);
}

/* "5 %", "2.5%" */
static bool
parse_share(const char *text, uint32_t *ppm)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;
	double value = strtod(text, &end);

	if (!isdigit((unsigned char)text[0]) || end != text + digits || value > 1000)
		return false;
	while (*end == ' ')
		end++;
	*ppm = (uint32_t)(value * 10000 + 0.5);
	return strcmp(end, "%") == 0;
}

/* With its unit; 0 needs none. */
static bool
parse_bytes(const char *text, uint64_t *bytes)
{
	return kmem_parse_size(text, bytes) && (*bytes == 0 || !isdigit((unsigned char)text[strlen(text) - 1]));
}

static bool
take_amount(struct reading *reading, const yaml_node_t *value, void *to)
{
	struct config_amount *amount = to;
	const char *text = yaml_read_text(value);
	uint64_t number;

	if (text == NULL || text[0] == '\0')
		return is_wrong(reading, value, SIZE_WANTED);
	amount->is_growth = *text == '+';
	amount->is_given = true;
	amount->line = value->start_mark.line + 1;
	text += amount->is_growth;
	amount->is_share = parse_share(text, &amount->ppm);
	if (amount->is_share && !amount->is_growth)
		return yaml_read_wrong(&reading->yaml, value, reading->fail,
		                       "\"%s\": a percentage is of the baseline, so it needs a plus: +%s", text, text);
	if (amount->is_share || parse_bytes(text, &amount->bytes))
		return true;
	if (kmem_parse_size(text, &number))
		return yaml_read_wrong(&reading->yaml, value, reading->fail, "\"%s\" has no unit: expected %s", text,
		                       SIZE_WANTED);
	return is_wrong(reading, value, SIZE_WANTED);
}

static bool
take_bytes_of_step(struct reading *reading, const yaml_node_t *value, void *to)
{
	struct config_amount *amount = to;

	if (!take_amount(reading, value, to))
		return false;
	return !amount->is_growth ||
	       is_wrong(reading, value, "a size with its unit, such as 1 KiB: the baseline knows no steps");
}

static bool
take_budget(struct reading *reading, const yaml_node_t *node, enum config_scope scope, const char *name, size_t line)
{
#define AMOUNT(figure) offsetof(struct config_budget, amounts) + (figure) * sizeof(struct config_amount)
	static const struct member members[] = {
		{ "peak", take_amount, AMOUNT(CONFIG_PEAK) },
		{ "live", take_amount, AMOUNT(CONFIG_LIVE) },
		{ "per_step", take_bytes_of_step, AMOUNT(CONFIG_PER_STEP) },
	};
#undef AMOUNT
	struct config *config = reading->config;
	struct config_budget budget = { .scope = scope, .name = keep(reading, name), .line = line };

	if (yaml_read_is_empty(node))
		return is_wrong(reading, node, "peak, live or per_step below it");
	if (!TAKE(reading, node, members, &budget))
		return false;
	*MEMORY_NEXT(config->budgets, config->budget_count) = budget;
	return true;
}

static bool
take_total(struct reading *reading, const yaml_node_t *value, void *to)
{
	(void)to;
	return take_budget(reading, value, CONFIG_TOTAL, "total", value->start_mark.line + 1);
}

/* A mapping whose names are the user's: each has a budget. */
static bool
take_named(struct reading *reading, const yaml_node_t *node, enum config_scope scope, const char *wanted)
{
	if (yaml_read_is_empty(node))
		return true;
	if (node->type != YAML_MAPPING_NODE)
		return is_wrong(reading, node, wanted);
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_read_node(&reading->yaml, pair->key);
		const char *name = yaml_read_text(key);

		if (name[0] == '\0')
			return is_wrong(reading, key, wanted);
		if (!take_budget(reading, yaml_read_node(&reading->yaml, pair->value), scope, name, key->start_mark.line + 1))
			return false;
	}
	return true;
}

static bool
take_domains(struct reading *reading, const yaml_node_t *value, void *to)
{
	(void)to;
	return take_named(reading, value, CONFIG_DOMAIN, "names of domains, each with a colon, such as heap:");
}

static bool
take_lines(struct reading *reading, const yaml_node_t *value, void *to)
{
	(void)to;
	return take_named(reading, value, CONFIG_LINES, "patterns of lines, each with a colon, such as \"train.py:\":");
}

static bool
take_budgets(struct reading *reading, const yaml_node_t *value, void *to)
{
	static const struct member members[] = {
		{ "total", take_total, 0 },
		{ "domains", take_domains, 0 },
		{ "lines", take_lines, 0 },
	};

	return TAKE(reading, value, members, to);
}

static bool
take_text(struct reading *reading, const yaml_node_t *value, void *to)
{
	const char *text = yaml_read_text(value);

	if (text == NULL || text[0] == '\0')
		return is_wrong(reading, value, "a text");
	*(const char **)to = keep(reading, text);
	return true;
}

static bool
is_date(const char *text)
{
	static const char shape[] = "dddd-dd-dd";

	if (strlen(text) != strlen(shape))
		return false;
	for (size_t i = 0; shape[i] != '\0'; i++) {
		if (shape[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != shape[i])
			return false;
	}

	int month = atoi(text + 5);
	int day = atoi(text + 8);

	return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool
take_date(struct reading *reading, const yaml_node_t *value, void *to)
{
	const char *text = yaml_read_text(value);

	return (text != NULL && is_date(text) && take_text(reading, value, to)) ||
	       is_wrong(reading, value, "a day, such as 2030-12-31");
}

static bool
add_suppression(struct reading *reading, const yaml_node_t *node)
{
	static const struct member members[] = {
		{ "leak", take_text, offsetof(struct config_suppression, pattern) },
		{ "reason", take_text, offsetof(struct config_suppression, reason) },
		{ "expires", take_date, offsetof(struct config_suppression, expires) },
	};
	struct config *config = reading->config;
	struct config_suppression row = {
		.reason = "", .expires = "", .path = config->path, .line = node->start_mark.line + 1
	};

	if (!TAKE(reading, node, members, &row))
		return false;
	if (row.pattern == NULL)
		return yaml_read_wrong(&reading->yaml, node, reading->fail, "a suppression needs a pattern: leak: PATTERN");
	if (row.reason[0] == '\0')
		return yaml_read_wrong(&reading->yaml, node, reading->fail, "a suppression needs a reason: reason: TEXT");
	row.is_expired = row.expires[0] != '\0' && strcmp(reading->today, row.expires) > 0;
	*MEMORY_NEXT(config->suppressions, config->suppression_count) = row;
	return true;
}

static bool
take_list(struct reading *reading, const yaml_node_t *node, const char *wanted,
          bool (*add)(struct reading *reading, const yaml_node_t *item))
{
	if (yaml_read_is_empty(node))
		return true;
	if (node->type != YAML_SEQUENCE_NODE)
		return is_wrong(reading, node, wanted);
	for (const yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		if (!add(reading, yaml_read_node(&reading->yaml, *item)))
			return false;
	}
	return true;
}

static bool
take_suppressions(struct reading *reading, const yaml_node_t *value, void *to)
{
	(void)to;
	return take_list(reading, value, "a list: each begins with - leak: PATTERN", add_suppression);
}

/* A path is relative to the configuration's folder. */
static bool
add_file(struct reading *reading, const yaml_node_t *item)
{
	const char *name = yaml_read_text(item);
	const char *slash = strrchr(reading->config->path, '/');

	if (name == NULL || name[0] == '\0')
		return is_wrong(reading, item, "the name of a file");
	const char *folder = TEXT(PATH_MAX, "%.*s", slash != NULL ? (int)(slash - reading->config->path) + 1 : 0,
	                          reading->config->path);
	const char *path = TEXT(PATH_MAX, "%s%s", name[0] != '/' ? folder : "", name);
	OWNED_FILE int file = regular_file_open(path, O_RDONLY, NULL);
	if (file < 0)
		return fail_set(reading->fail, EXIT_USAGE, "%s: %s", path, regular_file_why(errno));
	if (!regular_file_is_below(file, folder))
		return yaml_read_wrong(&reading->yaml, item, reading->fail, "%s lies outside of the folder of this file", name);
	return config_add_lsan(reading->config, keep(reading, path), file, reading->fail);
}

static bool
take_files(struct reading *reading, const yaml_node_t *value, void *to)
{
	(void)to;
	return take_list(reading, value, "a list of files", add_file);
}

static bool
take_number(struct reading *reading, const yaml_node_t *value, void *to)
{
	const char *text = yaml_read_text(value);

	if (text == NULL || text[0] == '\0' || strspn(text, "0123456789") != strlen(text) || strlen(text) > 9)
		return is_wrong(reading, value, "a number");
	*(uint64_t *)to = strtoull(text, NULL, 10);
	return true;
}

static bool
take_policy(struct reading *reading, const yaml_node_t *value, void *to)
{
	static const char *const names[] = { "fail", "pass", "skip" }; // enum config_policy
	const char *text = yaml_read_text(value);

	for (size_t i = 0; text != NULL && i < COUNT_OF(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*(enum config_policy *)to = (enum config_policy)i;
			return true;
		}
	}
	return is_wrong(reading, value, "fail, pass or skip");
}

static bool
take_run(struct reading *reading, const yaml_node_t *value, void *to)
{
	static const struct member members[] = {
		{ "min_steps", take_number, offsetof(struct config, min_steps) },
		{ "too_short", take_policy, offsetof(struct config, too_short) },
		{ "unmatched", take_policy, offsetof(struct config, unmatched) },
		{ "retries", take_number, offsetof(struct config, retries) },
	};

	return TAKE(reading, value, members, to);
}

static bool
take_absolute(struct reading *reading, const yaml_node_t *value, void *to)
{
	struct config *config = to;
	const char *text = yaml_read_text(value);

	config->has_absolute = text != NULL && parse_bytes(text, &config->absolute_bytes);
	return config->has_absolute || is_wrong(reading, value, "a size with its unit, such as 1 MiB");
}

static bool
take_relative(struct reading *reading, const yaml_node_t *value, void *to)
{
	struct config *config = to;
	const char *text = yaml_read_text(value);

	config->has_relative = text != NULL && parse_share(text, &config->relative_ppm);
	return config->has_relative || is_wrong(reading, value, "a percentage, such as 5 %");
}

static bool
take_tolerance(struct reading *reading, const yaml_node_t *value, void *to)
{
	static const struct member members[] = {
		{ "absolute", take_absolute, 0 },
		{ "relative", take_relative, 0 },
	};

	return TAKE(reading, value, members, to);
}

static bool
take_all(struct reading *reading)
{
	static const struct member members[] = {
		{ "budgets", take_budgets, 0 },         { "suppressions", take_suppressions, 0 },
		{ "suppression_files", take_files, 0 }, { "run", take_run, 0 },
		{ "tolerance", take_tolerance, 0 },
	};
	const yaml_node_t *root = yaml_read_root(&reading->yaml);

	return root == NULL || TAKE(reading, root, members, reading->config);
}

static struct config *
config_new(const char *path)
{
	struct config *config = memory_zeroed(1, sizeof(*config));

	config->texts = text_pool_new();
	config->path = text_pool_add_text(config->texts, path);
	config->min_steps = CONFIG_MIN_STEPS;
	config->too_short = CONFIG_FAIL;
	config->unmatched = CONFIG_PASS;
	config->retries = CONFIG_RETRIES;
	return config;
}

struct config *
config_read(const char *path, const char *today, struct fail *fail)
{
	const char *wanted = path != NULL ? path : CONFIG_FILE_DEFAULT;
	int file = regular_file_open(wanted, O_RDONLY, NULL);
	struct reading reading = { .today = today, .fail = fail };

	if (file < 0 && path == NULL && errno == ENOENT)
		return config_new("");
	if (file < 0)
		(void)fail_set(fail, EXIT_USAGE, "%s: %s: kmemshim check --init writes one", wanted, regular_file_why(errno));
	else if (path == NULL && !regular_file_is_below(file, ""))
		(void)fail_set(fail, EXIT_USAGE, "%s: leads out of this folder: name the file with --config", wanted);
	else
		reading.config = config_new(wanted);
	if (reading.config == NULL)
		return regular_file_close(&file), NULL;
	bool is_done = yaml_read_file(file, reading.config->path, &reading.yaml, fail) && take_all(&reading);

	yaml_read_free(&reading.yaml);
	if (is_done)
		return reading.config;
	config_free(reading.config);
	return NULL;
}

void
config_free(struct config *config)
{
	if (config == NULL)
		return;
	free(config->budgets);
	free(config->suppressions);
	text_pool_free(config->texts);
	free(config);
}

/* The line without blanks at both ends; "" for a comment. */
static char *
trimmed(char *line)
{
	line += strspn(line, " \t");

	size_t length = strlen(line);

	while (length > 0 && isspace((unsigned char)line[length - 1]))
		line[--length] = '\0';
	return *line == '#' ? line + length : line;
}

static bool
add_lsan_line(struct config *config, const char *path, size_t number, char *line, struct fail *fail)
{
	const char *text = trimmed(line);

	if (text[0] == '\0')
		return true;
	if (!text_starts(text, "leak:") || text[strlen("leak:")] == '\0')
		return fail_set(fail, EXIT_USAGE, "%s:%zu:1: expected leak:PATTERN", path, number);
	*MEMORY_NEXT(config->suppressions, config->suppression_count) = (struct config_suppression){
		.pattern = text_pool_add_text(config->texts, text + strlen("leak:")),
		.reason = "",
		.expires = "",
		.path = path,
		.line = number,
	};
	return true;
}

bool
config_add_lsan(struct config *config, const char *path, int file, struct fail *fail)
{
	OWNED char *text = memory_zeroed(YAML_READ_BYTES_MAX + 1, 1);
	ssize_t bytes = pread(file, text, YAML_READ_BYTES_MAX + 1 - config->lsan_bytes, 0);
	char *rest = text;

	if (bytes < 0 || (config->lsan_bytes += (size_t)bytes) > YAML_READ_BYTES_MAX)
		return fail_set(fail, EXIT_USAGE, "%s: %s", path,
		                bytes < 0 ? strerror(errno) : "the files of suppressions have more than 64 KiB in all");
	for (size_t number = 1; rest != NULL; number++) {
		if (!add_lsan_line(config, path, number, strsep(&rest, "\n"), fail))
			return false;
	}
	return true;
}

bool
config_has_steps(const struct config *config)
{
	return ANY(budget, config->budgets, config->budget_count, budget->amounts[CONFIG_PER_STEP].is_given);
}

size_t
config_suppressed_by(const struct config *config, const char *text)
{
	const struct config_suppression *found = FIRST(row, config->suppressions, config->suppression_count,
	                                               !row->is_expired && pattern_fits(row->pattern, text));

	return found != NULL ? (size_t)(found - config->suppressions) : SIZE_MAX;
}
