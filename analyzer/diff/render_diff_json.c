/*
 * render_diff_json.c - what changed, as JSON: one row per field. `schema diff` says the same rows.
 *
 * When failing  errors stay in the stream.
 */
#include <stddef.h>

#include "base/items.h"
#include "base/json_fields.h"
#include "diff/diff.h"
#include "report/report.h"

#define ROWS_INLINE_DEPTH 2 // one row is one line

static NAMES_OF(by_name, [DIFF_BY_LINE] = "line", [DIFF_BY_FUNCTION] = "function")

#define OWNER struct diff_domain
static const struct json_field domain_fields[] = {
	JSON_FIELD_AS("domain", name, "heap, mmap, cuda:0, ..."),
	JSON_FIELD_AS("live_bytes", held.live_bytes, "At the end."),
	JSON_FIELD_AS("peak_bytes", held.peak_bytes, "Its own peak."),
	JSON_FIELD_AS("nonresident_bytes", held.untouched_bytes, "Of live_bytes, not in memory, as in the report."),
};
static JSON_OBJECT_OF(domain, NULL, "What one domain held.");
#undef OWNER

#define OWNER struct diff_side
static const struct json_field side_fields[] = {
	JSON_FIELD(path, "As it was given."),
	JSON_FIELD(program, "Of its first process: the executable, or an interpreter's script."),
	JSON_FIELD(pid, "Of its first process."),
	JSON_FIELD(python_version, "null = no interpreter.", .without = JSON_NULL),
	JSON_FIELD_OF(JSON_ENUM, "cause", cause, "Of its end, as in the report.", .value_of = verdict_cause_name),
	JSON_LIST("domains", domains, domain_count, domain, ""),
};
static JSON_OBJECT_OF(side, NULL, "One of the two that are compared.");
#undef OWNER

#define OWNER struct diff_figures
static const struct json_field figures_fields[] = {
	JSON_FIELD(live_bytes, "At the end."),
	JSON_FIELD(peak_bytes, "When its domain was at its peak."),
	JSON_FIELD(leaking_bytes, "Of live_bytes, at call sites of class leak."),
	JSON_FIELD_AS("nonresident_bytes", untouched_bytes, "Of live_bytes, not in memory, as in the report."),
};
static JSON_OBJECT_OF(figures, NULL, "What a line or a function held; all 0 where it is not there.");
#undef OWNER

#define OWNER struct diff_row
static const struct json_field row_fields[] = {
	JSON_FIELD_OF(JSON_ENUM, "state", state,
	              "new: it is not in the old one. gone: it is not in the new one. same: no figure changed.",
	              .value_of = diff_state_name),
	JSON_FIELD(domain, "heap, mmap, cuda:0, ..."),
	JSON_FIELD(where, "The line or the function as texts write it; of the new one where it is there."),
	JSON_FIELD(was, "The same of the old one, when it is something else; null.", .without = JSON_NULL),
	JSON_FIELD(file, "Source file as it was recorded; \"\" when unknown."),
	JSON_FIELD(line, "Line, from 1; of a function, that which holds most; 0 when unknown."),
	JSON_FIELD_OF(
		JSON_KEY, "key", key,
		"Of the function in this domain: the same in all builds, folders and versions (docs/diff.md), and for all its lines."),
	JSON_FIELD(line_count, "Lines that it is the sum of: 1, unless it is a function."),
	JSON_FIELD_OF(JSON_OBJECT, "old", then, "", .object = &figures_object),
	JSON_FIELD_OF(JSON_OBJECT, "new", now, "", .object = &figures_object),
	JSON_FIELD_AS("live_change_bytes", live_change, "New less old."),
	JSON_FIELD_AS("peak_change_bytes", peak_change, "New less old."),
	JSON_FIELD_AS("leaking_change_bytes", leaking_change, "New less old."),
	JSON_FIELD(live_error_bytes, "How far live_change_bytes may be off, in 95 of 100 cases; 0 = exact, or not known."),
	JSON_FIELD(peak_error_bytes, "The same of peak_change_bytes."),
	JSON_FIELD(is_within_error, "Both changes are no larger than that: perhaps there is none."),
	JSON_FIELD(is_address_space, "reserved, file: no memory."),
};
static JSON_OBJECT_OF(row, NULL, "A line or a function in one domain.");
#undef OWNER

#define OWNER struct diff
static const struct json_field diff_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = DIFF_SCHEMA),
	JSON_FIELD_OF(JSON_ENUM, "by", by, "What a row is.", .value_of = by_name),
	JSON_FIELD_OF(JSON_TEXT, "summary", headline, "One sentence: what changed most, and where the rest is."),
	JSON_FIELD_OF(JSON_OBJECT, "old", before, "", .object = &side_object, .is_pointer = true),
	JSON_FIELD_OF(JSON_OBJECT, "new", after, "", .object = &side_object, .is_pointer = true),
	JSON_FIELD_OF(JSON_TEXTS, "notes", notes, "What a reader must know of the comparison, one line each.",
	              .count_offset = offsetof(OWNER, note_count)),
	JSON_FIELD(row_total, "Number of all rows; rows[] has fewer with --top."),
	JSON_LIST(
		"rows", rows, row_count, row,
		"changed, new, gone, same; in each, memory before address space, changes within the error of their estimates last, and what changed most first."),
};
JSON_OBJECT_OF(
	diff, NULL,
	"What `kmemshim diff --json` prints. Bytes are requested bytes; numbers are integers; texts are UTF-8. A field that goes away or means something else comes with a new schema number.");
#undef OWNER

void
render_diff_json(const struct diff *diff, uint64_t top, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = ROWS_INLINE_DEPTH };
	struct diff shown = *diff;

	if (top < shown.row_count)
		shown.row_count = (size_t)top;
	json_object_write(&json, NULL, &diff_object, &shown);
}
