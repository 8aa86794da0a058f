/*
 * render_doctor.c - findings of the doctor as text and as JSON.
 *
 * When failing  errors stay in the stream.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/json_fields.h"
#include "base/memory.h"
#include "doctor/doctor.h"

#define DOCTOR_SCHEMA 1

static const char *const level_names[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_PROBLEM] = "problem", NULL
};
static_assert(sizeof(level_names) / sizeof(level_names[0]) == DOCTOR_PROBLEM + 2, "each has a name, and the end");

/* A finding, and all of them, as JSON has them. */
struct row {
	const char *level;
	const char *where;
	const char *what;
	const char *next;
};
struct rows {
	size_t finding_count;
	struct row *findings;
};

#define OWNER struct row
static const struct json_field finding_fields[] = {
	JSON_FIELD(level,
	           "problem: the program, or a kernel, is not recorded, or not whole. note: it is recorded; worth knowing.",
	           .values = level_names),
	JSON_FIELD(where, "What was examined: a file, a folder, a limit, a variable."),
	JSON_FIELD(what, "What was found."),
	JSON_FIELD(next, "What to do; \"\" = nothing."),
};
static JSON_OBJECT_OF(finding, NULL, "One thing that was examined.");
#undef OWNER

#define OWNER struct rows
static const struct json_field doctor_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = DOCTOR_SCHEMA),
	JSON_LIST("findings", findings, finding_count, finding, "In the order of the checks."),
};
JSON_OBJECT_OF(doctor, NULL, "What `kmemshim doctor --json` prints.");
#undef OWNER

void
doctor_render_text(const struct doctor *doctor, FILE *stream)
{
	for (size_t i = 0; i < doctor->count; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		(void)fprintf(stream, "%-8s %s: %s%s%s\n", level_names[finding->level], finding->where, finding->what,
		              finding->next[0] != '\0' ? ": " : "", finding->next);
	}
}

void
doctor_render_json(const struct doctor *doctor, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 2 };
	struct rows rows = { doctor->count, memory_zeroed(doctor->count, sizeof(struct row)) };

	for (size_t i = 0; i < doctor->count; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		rows.findings[i] = (struct row){ level_names[finding->level], finding->where, finding->what, finding->next };
	}
	json_object_write(&json, NULL, &doctor_object, &rows);
	free(rows.findings);
}
