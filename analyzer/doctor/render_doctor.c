/*
 * render_doctor.c - findings of the doctor as text and as JSON.
 *
 * When failing  errors stay in the stream.
 */
#include <stddef.h>

#include "base/items.h"
#include "base/json_fields.h"
#include "doctor/doctor.h"

#define DOCTOR_SCHEMA 1

static NAMES_OF(level_name, [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_PROBLEM] = "problem")

#define OWNER struct doctor_finding
static const struct json_field finding_fields[] = {
	JSON_FIELD_OF(
		JSON_ENUM, "level", level,
		"problem: the program, or a kernel, is not recorded, or not whole. note: it is recorded; worth knowing.",
		.value_of = level_name),
	JSON_FIELD_OF(JSON_TEXT, "where", where, "What was examined: a file, a folder, a limit, a variable."),
	JSON_FIELD_OF(JSON_TEXT, "what", what, "What was found."),
	JSON_FIELD_OF(JSON_TEXT, "next", next, "What to do; \"\" = nothing."),
};
static JSON_OBJECT_OF(finding, NULL, "One thing that was examined.");
#undef OWNER

#define OWNER struct doctor
static const struct json_field doctor_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = DOCTOR_SCHEMA),
	JSON_LIST("findings", findings, count, finding, "In the order of the checks."),
};
JSON_OBJECT_OF(doctor, NULL, "What `kmemshim doctor --json` prints.");
#undef OWNER

void
doctor_render_text(const struct doctor *doctor, FILE *stream)
{
	EACH (finding, doctor->findings, doctor->count)
		(void)fprintf(stream, "%-8s %s: %s%s%s\n", level_name(finding->level), finding->where, finding->what,
		              finding->next[0] != '\0' ? ": " : "", finding->next);
}

void
doctor_render_json(const struct doctor *doctor, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 2 };

	json_object_write(&json, NULL, &doctor_object, doctor);
}
