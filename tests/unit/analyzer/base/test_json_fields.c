/*
 * test_json_fields.c - are documents and schema what the rows of a table say?
 */
#include "test.h"

#include "base/json_fields.h"
#include "base/memory.h"

struct part {
	const char *name;
	bool is_there;
};

struct thing {
	uint64_t key;
	uint64_t bytes;
	int status;
	const char *state;
	const char *label;
	bool is_rare;
	struct part part;
	const struct part *parts;
	size_t part_count;
	const char *const *notes;
	size_t note_count;
	uint64_t counters[3];
};

static const char *const states[] = { "good", "bad", NULL };

static const char *
counter_name(unsigned number)
{
	static const char *const names[] = { "first", NULL, "third" };

	return names[number];
}

static bool
is_there(const void *owner)
{
	return ((const struct part *)owner)->is_there;
}

static bool
has_status(const void *owner)
{
	return ((const struct thing *)owner)->status >= 0;
}

#define OWNER struct part
static const struct json_field part_fields[] = {
	JSON_FIELD(name, "Its name."),
};
static JSON_OBJECT_OF(part, is_there, "A part.");
#undef OWNER

#define OWNER struct thing
static const struct json_field thing_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "", .version = 7),
	JSON_FIELD_OF(JSON_KEY, "key", key, ""),
	JSON_FIELD(bytes, "Bytes.", .without = JSON_LEFT_OUT),
	JSON_FIELD(status, "", .without = JSON_NULL, .is_known = has_status),
	JSON_FIELD(state, "", .without = JSON_NULL, .values = states),
	JSON_FIELD_AS("name", label, ""),
	JSON_FIELD(is_rare, "", .without = JSON_LEFT_OUT),
	JSON_PART("part", part, part, ""),
	JSON_LIST("parts", parts, part_count, part, ""),
	JSON_FIELD_OF(JSON_TEXTS, "notes", notes, "", .count_offset = offsetof(OWNER, note_count)),
	JSON_FIELD_OF(JSON_COUNTERS, "counters", counters, "", .counters = 3, .name_of = counter_name),
};
static JSON_OBJECT_OF(thing, NULL, "A thing.");
#undef OWNER

static char *
document_of(const struct thing *thing)
{
	char *text = NULL;
	size_t length = 0;
	struct json_write json = { .stream = open_memstream(&text, &length) };

	json_object_write(&json, NULL, &thing_object, thing);
	assert_int_equal(fclose(json.stream), 0);
	return text;
}

TEST(every_kind_of_field_is_written)
{
	static const struct part parts[] = { { "a", true }, { "b", true } };
	static const char *const notes[] = { "one", "two" };
	const struct thing thing = {
		.key = 0xabc,
		.bytes = 5,
		.state = "bad",
		.label = "it",
		.is_rare = true,
		.part = { "c", true },
		.parts = parts,
		.part_count = 2,
		.notes = notes,
		.note_count = 2,
		.counters = { 1, 2, 3 },
	};
	OWNED char *text = document_of(&thing);

	assert_string_equal(
		text, "{\"schema\": 7, \"key\": \"0000000000000abc\", \"bytes\": 5, \"status\": 0, \"state\": \"bad\", "
			  "\"name\": \"it\", \"is_rare\": true, \"part\": {\"name\": \"c\"}, "
			  "\"parts\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"notes\": [\"one\", \"two\"], "
			  "\"counters\": {\"first\": 1, \"third\": 3}}\n");
}

TEST(a_field_without_a_value_is_null_or_left_out)
{
	const struct thing thing = { .status = -1, .state = "", .label = "" };
	OWNED char *text = document_of(&thing);

	assert_string_equal(
		text, "{\"schema\": 7, \"key\": \"0000000000000000\", \"status\": null, \"state\": null, \"name\": \"\", "
			  "\"part\": null, \"parts\": [], \"notes\": [], \"counters\": {\"first\": 0, \"third\": 0}}\n");
}

TEST(the_schema_has_the_same_fields)
{
	static const char *const wanted[] = {
		"\"required\": [\"schema\", \"key\", \"status\", \"state\", \"name\", \"part\", \"parts\", \"notes\", \"counters\"]",
		"\"schema\": {\"const\": 7}",
		"\"key\": {\"type\": \"string\", \"pattern\": \"^[0-9a-f]{16}$\"}",
		"\"bytes\": {\"type\": \"integer\", \"minimum\": 1, \"description\": \"Bytes.\"}",
		"\"status\": {\"type\": [\"integer\", \"null\"]}",
		"\"state\": {\"enum\": [\"good\", \"bad\", null]}",
		"\"name\": {\"type\": \"string\"}",
		"\"is_rare\": {\"type\": \"boolean\"}",
		"\"part\": {\"oneOf\": [{\"type\": \"null\"}, {\"$ref\": \"#/$defs/part\"}]}",
		"\"parts\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/part\"}}",
		"\"notes\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}",
		"\"counters\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"integer\", \"minimum\": 0}}",
	};
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	json_schema_write(&thing_object, stream);
	assert_int_equal(fclose(stream), 0);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (strstr(text, wanted[i]) == NULL)
			fail_msg("%s is not in %s", wanted[i], text);
	}
	assert_null(strstr(strstr(text, "\"part\": {\n") + 1, "\"part\": {\n")); // once, though it is used twice
	free(text);
}

RUN_TESTS(NULL, NULL)
