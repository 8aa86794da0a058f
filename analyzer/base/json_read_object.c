/*
 * json_read_object.c - a struct from JSON, by the table of fields from which it was written (see json_read.h).
 */
/* Two names of jansson's are those of fields, too. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_NULL JANSSON_NULL
#include "base/json_read.h"
#undef JSON_OBJECT
#undef JSON_NULL

#include <string.h>

#include "base/json_fields.h"
#include "base/text_clean.h"
#include "base/text_pool.h"

#define ENTRIES_MAX 4096u // of an array: more is not ours

static const char *
read_text(const json_t *from, const struct json_field *field, struct text_pool *pool)
{
	const char *text = json_string_value(from) != NULL ? json_string_value(from) : "";
	size_t i = 0;

	if (field->values == NULL)
		return text_cleaned(memcpy(text_pool_room(pool, strlen(text) + 1), text, strlen(text)));
	while (field->values[i] != NULL && strcmp(field->values[i], text) != 0)
		i++;
	return field->values[i];
}

/* Behind the last one: it is none of them. */
static unsigned
read_enum(const json_t *from, const struct json_field *field)
{
	const char *text = json_string_value(from) != NULL ? json_string_value(from) : "";
	unsigned number = 0;

	while (field->value_of(number) != NULL && strcmp(field->value_of(number), text) != 0)
		number++;
	return number;
}

static void
read_array(const json_t *from, const struct json_field *field, struct text_pool *pool, void *owner)
{
	size_t count = json_array_size(from) < ENTRIES_MAX ? json_array_size(from) : ENTRIES_MAX;
	char *array = text_pool_room(pool, count * field->object->bytes);

	for (size_t i = 0; i < count; i++)
		json_read_object(json_array_get(from, i), field->object, pool, array + i * field->object->bytes);
	*(void **)((char *)owner + field->offset) = array;
	*(size_t *)((char *)owner + field->count_offset) = count;
}

void
json_read_object(const json_t *from, const struct json_object *object, struct text_pool *pool, void *owner)
{
	for (const struct json_field *field = object->fields; field < object->fields + object->field_count; field++) {
		void *member = (char *)owner + field->offset;
		const json_t *value = json_object_get(from, field->name);
		json_int_t number = json_integer_value(value) > 0 ? json_integer_value(value) : 0;

		if (field->kind == JSON_U64)
			*(uint64_t *)member = (uint64_t)number;
		else if (field->kind == JSON_U32)
			*(uint32_t *)member = (uint32_t)number;
		else if (field->kind == JSON_BOOL)
			*(bool *)member = json_is_true(value);
		else if (field->kind == JSON_TEXT)
			*(const char **)member = read_text(value, field, pool);
		else if (field->kind == JSON_ENUM)
			*(unsigned *)member = read_enum(value, field);
		else if (field->kind == JSON_OBJECTS)
			read_array(value, field, pool, owner);
	}
}
