/*
 * json_fields.h - what does a JSON object of ours consist of? One row per field; documents and schema are made from the rows.
 *
 * A table of rows describes a struct: which member, its name, what it means, what it is when nobody knows it. json_object_write() walks
 * the rows with a struct, json_schema_write() walks them alone, json_read_object() with what was written. So a field has one place, and the
 * schema says what is written.
 *
 *     #define OWNER struct report_leak
 *     static const struct json_field leak_fields[] = {
 *         JSON_FIELD(generations_alive, "Generations of which blocks are still live."),
 *     };
 *     static JSON_OBJECT_OF(leak, NULL, "Does it accumulate?");
 *     #undef OWNER
 *
 * When failing  errors stay in the stream.
 */
#ifndef JSON_FIELDS_H
#define JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json_write.h"

enum json_kind {
	JSON_U64,
	JSON_U32,
	JSON_INT,
	JSON_I64,
	JSON_BOOL,
	JSON_TEXT,
	JSON_ENUM,     // its text is value_of() its number
	JSON_KEY,      // a uint64_t as 16 hexadecimal digits
	JSON_VERSION,  // no member: the constant `version`
	JSON_OBJECT,   // a struct of `object` at this place
	JSON_OBJECTS,  // `count` of them there, or behind a pointer
	JSON_TEXTS,    // const char *const *, `count`
	JSON_NUMBERS,  // uint64_t *, `count`
	JSON_COUNTERS, // uint64_t[] or a pointer to one; an object whose members name_of() names
	JSON_ROWS,     // put() writes an array of `object`
	JSON_MAP,      // put() writes an object whose members are `object`, by names that are data
};

/* What a field is without a value: an empty text, a number without a text, false, 0 (of numbers with a `without` only), NULL, or what is_known() says. */
enum json_without {
	JSON_ALWAYS, // it always has one
	JSON_NULL,
	JSON_LEFT_OUT,
};

struct json_object;

struct json_field {
	const char *name;
	const char *meaning;
	enum json_kind kind;
	enum json_without without;
	size_t offset;
	bool is_pointer;     // JSON_OBJECT, JSON_OBJECTS, JSON_COUNTERS: the member points to it
	size_t count_offset; // JSON_OBJECTS, JSON_TEXTS, JSON_NUMBERS: of a size_t, or of an unsigned with is_count_short
	bool is_count_short;
	unsigned version; // JSON_VERSION
	const struct json_object *object;
	const char *(*name_of)(unsigned number); // JSON_COUNTERS; NULL = no such counter
	unsigned counters;                       // JSON_COUNTERS: numbers are below this
	const char *const *values;               // of a text that is one of these; the last is NULL
	const char *(*value_of)(
		unsigned number);                // the same by number; NULL behind the last, and of 0 where it stands for none
	bool (*is_known)(const void *owner); // NULL = the value tells, or its object does
	void (*put)(struct json_write *json, const void *owner);
};

struct json_object {
	const char *name; // in the schema's $defs
	const char *meaning;
	const struct json_field *fields;
	size_t field_count;
	size_t bytes;                        // of the struct
	bool (*is_known)(const void *owner); // NULL = always
};

#define JSON_KIND_OF(member) \
	_Generic(((OWNER *)0)->member, uint64_t: JSON_U64, uint32_t: JSON_U32, int: JSON_INT, int64_t: JSON_I64, bool: JSON_BOOL, const char *: JSON_TEXT)

/* A member of OWNER by its own name; what follows the meaning are further members of struct json_field. */
#define JSON_FIELD(member, meaning_, ...) JSON_FIELD_AS(#member, member, meaning_, __VA_ARGS__)
#define JSON_FIELD_AS(name_, member, meaning_, ...)                                                              \
	{                                                                                                            \
		.name = (name_), .meaning = (meaning_), .kind = JSON_KIND_OF(member), .offset = offsetof(OWNER, member), \
		__VA_ARGS__                                                                                              \
	}
/* The same of a kind that the member's type does not tell. */
#define JSON_FIELD_OF(kind_, name_, member, meaning_, ...)                                                      \
	{                                                                                                           \
		.name = (name_), .meaning = (meaning_), .kind = (kind_), .offset = offsetof(OWNER, member), __VA_ARGS__ \
	}
/* `count` of them, in an array or behind a pointer. */
#define JSON_LIST(name_, member, count, object_, meaning_)                                          \
	JSON_FIELD_OF(JSON_OBJECTS, name_, member, meaning_, .object = &object_##_object,               \
	              .is_pointer = __builtin_types_compatible_p(__typeof__(((OWNER *)0)->member),      \
	                                                         __typeof__(&((OWNER *)0)->member[0])), \
	              .count_offset = offsetof(OWNER, count),                                           \
	              .is_count_short = sizeof(((OWNER *)0)->count) == sizeof(unsigned))
/* One of them; null where its is_known() says so. */
#define JSON_PART(name_, member, object_, meaning_, ...) \
	JSON_FIELD_OF(JSON_OBJECT, name_, member, meaning_, .object = &object_##_object, .without = JSON_NULL, __VA_ARGS__)
/* A field of the owner as a whole. */
#define JSON_FIELD_WHOLE(kind_, name_, meaning_, ...)                        \
	{                                                                        \
		.name = (name_), .meaning = (meaning_), .kind = (kind_), __VA_ARGS__ \
	}

/* OWNER's object, of the rows NAME_fields. is_known: NULL, or whether a struct is there at all. */
#define JSON_OBJECT_OF(name_, is_known_, meaning_)                                                             \
	const struct json_object name_##_object = { #name_, meaning_, JSON_ROWS_OF(name_##_fields), sizeof(OWNER), \
		                                        is_known_ }
#define JSON_ROWS_OF(fields) fields, sizeof(fields) / sizeof(fields[0])

/* name: as in json_write.h. owner: the struct that the rows describe. */
void json_object_write(struct json_write *json, const char *name, const struct json_object *object, const void *owner);

/* The JSON schema of documents whose outermost value is `root`, of which the first field is the version. */
void json_schema_write(const struct json_object *root, FILE *stream);

#endif
