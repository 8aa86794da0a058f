/*
 * json_fields.c - documents and schema from one table of fields (see json_fields.h).
 *
 * When failing  errors stay in the stream.
 */
#include "base/json_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"

#define OBJECTS_MAX 64 // kinds of objects in one schema
#define NOT_INLINE 1000

/* --- documents --------------------------------------------------------------------------------------------------- */

static const void *
member_of(const struct json_field *field, const void *owner)
{
	const void *member = (const char *)owner + field->offset;

	return field->is_pointer ? *(const void *const *)member : member;
}

static size_t
count_of(const struct json_field *field, const void *owner)
{
	const void *count = (const char *)owner + field->count_offset;

	return field->is_count_short ? *(const unsigned *)count : *(const size_t *)count;
}

static bool
has_value(const struct json_field *field, const void *owner)
{
	const void *member = (const char *)owner + field->offset;

	if (field->is_known != NULL)
		return field->is_known(owner);
	switch (field->kind) {
	case JSON_U64:
		return *(const uint64_t *)member != 0;
	case JSON_U32:
		return *(const uint32_t *)member != 0;
	case JSON_INT:
		return *(const int *)member != 0;
	case JSON_BOOL:
		return *(const bool *)member;
	case JSON_TEXT:
		return *(const char *const *)member != NULL && (*(const char *const *)member)[0] != '\0';
	case JSON_ENUM:
		return field->value_of(*(const unsigned *)member) != NULL;
	default:
		member = member_of(field, owner);
		return member != NULL &&
		       (field->object == NULL || field->object->is_known == NULL || field->object->is_known(member));
	}
}

static void
put_counters(struct json_write *json, const struct json_field *field, const uint64_t *numbers)
{
	json_write_open(json, field->name, '{');
	for (unsigned i = 0; i < field->counters; i++) {
		if (field->name_of(i) != NULL)
			json_write_number(json, field->name_of(i), numbers[i]);
	}
	json_write_close(json, '}');
}

static void
put_array(struct json_write *json, const struct json_field *field, const void *member, size_t count)
{
	json_write_open(json, field->name, '[');
	for (size_t i = 0; i < count; i++) {
		if (field->kind == JSON_TEXTS)
			json_write_text(json, NULL, (*(const char *const *const *)member)[i]);
		else if (field->kind == JSON_NUMBERS)
			json_write_number(json, NULL, (*(const uint64_t *const *)member)[i]);
		else
			json_object_write(json, NULL, field->object, (const char *)member + i * field->object->bytes);
	}
	json_write_close(json, ']');
}

static void
put_field(struct json_write *json, const struct json_field *field, const void *owner)
{
	const char *name = field->name;
	const void *member = member_of(field, owner);
	char key[17];

	switch (field->kind) {
	case JSON_U64:
		json_write_number(json, name, *(const uint64_t *)member);
		break;
	case JSON_U32:
		json_write_number(json, name, *(const uint32_t *)member);
		break;
	case JSON_INT:
		json_write_signed(json, name, *(const int *)member);
		break;
	case JSON_I64:
		json_write_signed(json, name, *(const int64_t *)member);
		break;
	case JSON_BOOL:
		json_write_bool(json, name, *(const bool *)member);
		break;
	case JSON_TEXT:
		json_write_text(json, name, *(const char *const *)member);
		break;
	case JSON_ENUM:
		json_write_text(json, name, field->value_of(*(const unsigned *)member));
		break;
	case JSON_KEY:
		(void)snprintf(key, sizeof(key), "%016" PRIx64, *(const uint64_t *)member);
		json_write_text(json, name, key);
		break;
	case JSON_VERSION:
		json_write_number(json, name, field->version);
		break;
	case JSON_OBJECT:
		json_object_write(json, name, field->object, member);
		break;
	case JSON_OBJECTS:
	case JSON_TEXTS:
	case JSON_NUMBERS:
		put_array(json, field, member, count_of(field, owner));
		break;
	case JSON_COUNTERS:
		put_counters(json, field, member);
		break;
	case JSON_ROWS:
	case JSON_MAP:
		json_write_open(json, name, field->kind == JSON_MAP ? '{' : '[');
		field->put(json, owner);
		json_write_close(json, field->kind == JSON_MAP ? '}' : ']');
		break;
	}
}

void
json_object_write(struct json_write *json, const char *name, const struct json_object *object, const void *owner)
{
	json_write_open(json, name, '{');
	for (const struct json_field *field = object->fields; field < object->fields + object->field_count; field++) {
		if (field->without == JSON_ALWAYS || has_value(field, owner))
			put_field(json, field, owner);
		else if (field->without == JSON_NULL)
			json_write_null(json, field->name);
	}
	json_write_close(json, '}');
}

/* --- schema ------------------------------------------------------------------------------------------------------ */

static void
put_type(struct json_write *json, const char *type, bool may_be_null)
{
	if (!may_be_null) {
		json_write_text(json, "type", type);
		return;
	}
	json_write_open(json, "type", '[');
	json_write_text(json, NULL, type);
	json_write_text(json, NULL, "null");
	json_write_close(json, ']');
}

static void
put_reference(struct json_write *json, const char *name, const struct json_object *object)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "#/$defs/%s", object->name);
	if (name != NULL)
		json_write_open(json, name, '{');
	json_write_text(json, "$ref", path);
	if (name != NULL)
		json_write_close(json, '}');
}

static void
put_text_type(struct json_write *json, const struct json_field *field)
{
	const char *value;

	if (field->values == NULL && field->value_of == NULL) {
		put_type(json, "string", field->without == JSON_NULL);
		return;
	}
	json_write_open(json, "enum", '[');
	for (unsigned i = field->values == NULL && field->value_of(0) == NULL; // which may stand for none
	     (value = field->values != NULL ? field->values[i] : field->value_of(i)) != NULL; i++)
		json_write_text(json, NULL, value);
	if (field->without == JSON_NULL)
		json_write_null(json, NULL);
	json_write_close(json, ']');
}

static void
put_object_type(struct json_write *json, const struct json_field *field)
{
	if (field->without != JSON_NULL) {
		put_reference(json, NULL, field->object);
		return;
	}
	json_write_open(json, "oneOf", '[');
	json_write_open(json, NULL, '{');
	json_write_text(json, "type", "null");
	json_write_close(json, '}');
	json_write_open(json, NULL, '{');
	put_reference(json, NULL, field->object);
	json_write_close(json, '}');
	json_write_close(json, ']');
}

/* Texts or counts, in an array or in an object. */
static void
put_plain_items(struct json_write *json, bool is_object, bool is_count)
{
	json_write_text(json, "type", is_object ? "object" : "array");
	json_write_open(json, is_object ? "additionalProperties" : "items", '{');
	json_write_text(json, "type", is_count ? "integer" : "string");
	if (is_count)
		json_write_number(json, "minimum", 0);
	json_write_close(json, '}');
}

/* One field on one line: files compare well. */
static void
put_field_schema(struct json_write *json, const struct json_field *field)
{
	bool may_be_null = field->without == JSON_NULL;

	json->inline_depth = json->depth;
	json_write_open(json, field->name, '{');
	switch (field->kind) {
	case JSON_U64:
	case JSON_U32:
		put_type(json, "integer", may_be_null);
		json_write_number(json, "minimum", field->without == JSON_LEFT_OUT);
		break;
	case JSON_INT:
	case JSON_I64:
		put_type(json, "integer", may_be_null);
		break;
	case JSON_BOOL:
		put_type(json, "boolean", may_be_null);
		break;
	case JSON_TEXT:
	case JSON_ENUM:
		put_text_type(json, field);
		break;
	case JSON_KEY:
		put_type(json, "string", may_be_null);
		json_write_text(json, "pattern", "^[0-9a-f]{16}$");
		break;
	case JSON_VERSION:
		json_write_number(json, "const", field->version);
		break;
	case JSON_OBJECT:
		put_object_type(json, field);
		break;
	case JSON_OBJECTS:
	case JSON_ROWS:
		json_write_text(json, "type", "array");
		put_reference(json, "items", field->object);
		break;
	case JSON_TEXTS:
	case JSON_NUMBERS:
	case JSON_COUNTERS:
		put_plain_items(json, field->kind == JSON_COUNTERS, field->kind != JSON_TEXTS);
		break;
	case JSON_MAP:
		json_write_text(json, "type", "object");
		put_reference(json, "additionalProperties", field->object);
		break;
	}
	if (field->meaning[0] != '\0')
		json_write_text(json, "description", field->meaning);
	json_write_close(json, '}');
	json->inline_depth = NOT_INLINE;
}

static void
put_object_schema(struct json_write *json, const struct json_object *object)
{
	json_write_text(json, "description", object->meaning);
	json_write_text(json, "type", "object");
	json_write_bool(json, "additionalProperties", false);
	json->inline_depth = json->depth;
	json_write_open(json, "required", '[');
	for (const struct json_field *field = object->fields; field < object->fields + object->field_count; field++) {
		if (field->without != JSON_LEFT_OUT)
			json_write_text(json, NULL, field->name);
	}
	json_write_close(json, ']');
	json->inline_depth = NOT_INLINE;
	json_write_open(json, "properties", '{');
	for (const struct json_field *field = object->fields; field < object->fields + object->field_count; field++)
		put_field_schema(json, field);
	json_write_close(json, '}');
}

/* Those that the object refers to, each once, in the order in which they are met. */
static void
collect_objects(const struct json_object *object, const struct json_object *found[OBJECTS_MAX], size_t *count)
{
	for (const struct json_field *field = object->fields; field < object->fields + object->field_count; field++) {
		bool is_new = field->object != NULL;

		for (size_t i = 0; i < *count; i++)
			is_new = is_new && found[i] != field->object;
		if (!is_new)
			continue;
		assert(*count < OBJECTS_MAX);
		found[(*count)++] = field->object;
		collect_objects(field->object, found, count);
	}
}

void
json_schema_write(const struct json_object *root, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = NOT_INLINE };
	const struct json_object *found[OBJECTS_MAX];
	size_t count = 0;

	assert(root->fields[0].kind == JSON_VERSION);
	collect_objects(root, found, &count);
	json_write_open(&json, NULL, '{');
	json_write_text(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_write_text(&json, "$id", TEXT(100, "https://kmemshim.invalid/%s.schema.json", root->name));
	json_write_text(&json, "title", TEXT(100, "kmemshim %s, schema %u", root->name, root->fields[0].version));
	put_object_schema(&json, root);
	json_write_open(&json, "$defs", '{');
	for (size_t i = 0; i < count; i++) {
		json_write_open(&json, found[i]->name, '{');
		put_object_schema(&json, found[i]);
		json_write_close(&json, '}');
	}
	json_write_close(&json, '}');
	json_write_close(&json, '}');
}
