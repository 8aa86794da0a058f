/* yaml_read.c - see yaml_read.h. */
#include "base/yaml_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/regular_file.h"

#define DEPTH_MAX 32

yaml_node_t *
yaml_read_node(struct yaml_file *yaml, int index)
{
	return yaml_document_get_node(&yaml->document, index);
}

yaml_node_t *
yaml_read_root(struct yaml_file *yaml)
{
	return yaml->has_document ? yaml_document_get_root_node(&yaml->document) : NULL;
}

const char *
yaml_read_text(const yaml_node_t *node)
{
	if (node->type != YAML_SCALAR_NODE || strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
		return NULL; // a zero inside
	return yaml_read_is_empty(node) ? "" : (const char *)node->data.scalar.value;
}

bool
yaml_read_is_empty(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (node->data.scalar.length == 0 || strcmp((const char *)node->data.scalar.value, "~") == 0);
}

bool
yaml_read_wrong(const struct yaml_file *yaml, const yaml_node_t *node, struct fail *fail, const char *format, ...)
{
	char text[512];
	va_list values;

	va_start(values, format);
	(void)vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	return fail_set(fail, EXIT_USAGE, "%s:%zu:%zu: %s", yaml->path, node->start_mark.line + 1,
	                node->start_mark.column + 1, text);
}

struct name {
	char *text;
	size_t line;
	UT_hash_handle hh;
};

static void
free_name(struct name *name)
{
	free(name->text);
	free(name);
}

static bool
has_no_name_twice(struct yaml_file *yaml, const yaml_node_t *mapping, struct fail *fail)
{
	const yaml_node_pair_t *end = mapping->data.mapping.pairs.top;
	struct name *names = NULL;
	bool is_right = true;

	for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < end && is_right; pair++) {
		const yaml_node_t *key = yaml_read_node(yaml, pair->key);
		const char *text = yaml_read_text(key);
		struct name *name;

		if (text == NULL)
			is_right = yaml_read_wrong(yaml, key, fail, "a name is expected here");
		else if (HASH_TEXT_MADE(names, text, text, name))
			name->line = key->start_mark.line + 1;
		else
			is_right = yaml_read_wrong(yaml, key, fail, "\"%s\" is there twice: the first one is in line %zu", text,
			                           name->line);
	}
	HASH_FREE(names, free_name);
	return is_right;
}

static bool
have_no_name_twice(struct yaml_file *yaml, struct fail *fail)
{
	const yaml_node_t *node;

	for (int i = 1; (node = yaml_read_node(yaml, i)) != NULL; i++) {
		if (node->type == YAML_MAPPING_NODE && !has_no_name_twice(yaml, node, fail))
			return false;
	}
	return true;
}

static bool
refuse(const yaml_parser_t *parser, const char *path, struct fail *fail)
{
	const yaml_mark_t *mark = &parser->problem_mark;

	if (parser->error == YAML_READER_ERROR) // bytes that are no text: it knows the offset alone
		return fail_set(fail, EXIT_USAGE, "%s: byte %zu: is not YAML: %s", path, parser->problem_offset,
		                parser->problem);
	return fail_set(fail, EXIT_USAGE, "%s:%zu:%zu: is not YAML: %s", path, mark->line + 1, mark->column + 1,
	                parser->problem != NULL ? parser->problem : "no memory");
}

/* A second document would be read by nobody. */
static bool
is_alone(yaml_parser_t *parser, const char *path, struct fail *fail)
{
	yaml_document_t next;
	size_t line;

	if (yaml_parser_load(parser, &next) == 0)
		return refuse(parser, path, fail);

	bool is_end = yaml_document_get_root_node(&next) == NULL;

	line = next.start_mark.line;
	yaml_document_delete(&next);
	return is_end || fail_set(fail, EXIT_USAGE, "%s:%zu:1: a second document begins here: one is read", path, line + 1);
}

/* Parts in parts cost the parser more for each level: it is asked event by event first. What is no YAML load() tells. */
static bool
is_flat(const unsigned char *text, size_t bytes)
{
	yaml_parser_t parser;
	int depth = 0;
	bool is_end = yaml_parser_initialize(&parser) == 0;

	yaml_parser_set_input_string(&parser, text, bytes);
	while (!is_end && depth <= DEPTH_MAX) {
		yaml_event_t event;

		if (yaml_parser_parse(&parser, &event) == 0)
			break;
		depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
		depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
		is_end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return depth <= DEPTH_MAX;
}

static bool
load(const unsigned char *text, size_t bytes, struct yaml_file *yaml, struct fail *fail)
{
	yaml_parser_t parser;

	if (bytes > YAML_READ_BYTES_MAX)
		return fail_set(fail, EXIT_USAGE, "%s: has more than %u bytes: is this a configuration?", yaml->path,
		                YAML_READ_BYTES_MAX);
	if (!is_flat(text, bytes))
		return fail_set(fail, EXIT_USAGE, "%s: has more than %d levels: is this a configuration?", yaml->path,
		                DEPTH_MAX);
	if (yaml_parser_initialize(&parser) == 0)
		return fail_set(fail, EXIT_USAGE, "%s: no memory", yaml->path);
	yaml_parser_set_input_string(&parser, text, bytes);

	bool is_done = yaml_parser_load(&parser, &yaml->document) != 0 || refuse(&parser, yaml->path, fail);

	yaml->has_document = is_done;
	is_done = is_done && (yaml_read_root(yaml) == NULL || is_alone(&parser, yaml->path, fail)) &&
	          have_no_name_twice(yaml, fail);
	yaml_parser_delete(&parser);
	return is_done;
}

bool
yaml_read_file(int file, const char *path, struct yaml_file *yaml, struct fail *fail)
{
	OWNED unsigned char *text = memory_zeroed(YAML_READ_BYTES_MAX + 1, 1);
	OWNED_STREAM FILE *stream = fdopen(file, "r");
	bool is_done = false;

	*yaml = (struct yaml_file){ .path = path };
	if (stream == NULL)
		(void)close(file);
	else
		is_done = load(text, fread(text, 1, YAML_READ_BYTES_MAX + 1, stream), yaml, fail);
	if (stream == NULL || ferror(stream) != 0)
		is_done = fail_set(fail, EXIT_USAGE, "%s: %s", path, strerror(errno));
	if (!is_done)
		yaml_read_free(yaml);
	return is_done;
}

void
yaml_read_free(struct yaml_file *yaml)
{
	if (yaml->has_document)
		yaml_document_delete(&yaml->document);
	yaml->has_document = false;
}
