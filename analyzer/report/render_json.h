/*
 * render_json.h - what do the rows of the report's JSON share?
 *
 * render_json.c           the whole, its verdict, totals, losses, guard, refused requests
 * render_json_processes.c a process, its memory, steps, marks and points in time
 * render_json_lines.c     a line of code, a site, a frame
 * render_efforts.c        what recording did
 */
#ifndef RENDER_JSON_H
#define RENDER_JSON_H

#include "base/json_fields.h"
#include "report/render.h"
#include "report/report.h"

/* Is there a value? Asked of a member of the owner. */
#define JSON_KNOWN(name, condition)               \
	static bool name(const void *owner)           \
	{                                             \
		return ((const OWNER *)owner)->condition; \
	}

/* A member of the model's struct that the owner has as `of`. */
#define JSON_OF(member, meaning_, ...) JSON_FIELD_AS(#member, of.member, meaning_, __VA_ARGS__)

#define RELATION                                                                                                    \
	JSON_FIELD_OF(                                                                                                  \
		JSON_ENUM, "relation", relation,                                                                            \
		"Left out unless the thread had no Python frames and this one is another thread's. while: the user's line " \
		"at which a Python thread was seen last. started by: where the thread was created, or given this work.",    \
		.without = JSON_LEFT_OUT, .value_of = report_relation)

#define WHERE(meaning_) JSON_PART("where", where, place, meaning_)

#define ESTIMATE                                                                                                                                                             \
	JSON_FIELD_AS(                                                                                                                                                           \
		"is_estimated", estimate.is_estimated,                                                                                                                               \
		"Bytes are estimates: small Python objects (domain python/object; their counts are, too), what they leave of arenas (python/arena), or a library's own allocator."), \
		JSON_FIELD_AS(                                                                                                                                                       \
			"error_bytes", estimate.error_bytes,                                                                                                                             \
			"In 95 of 100 cases live_bytes is right to within this. null = exact, or the error is not known.",                                                               \
			.without = JSON_NULL),                                                                                                                                           \
		JSON_FIELD_AS("peak_error_bytes", estimate.peak_error_bytes, "The same of peak_bytes.", .without = JSON_NULL)

#define EFFORTS(member, meaning_) JSON_FIELD_OF(JSON_OBJECT, "recording", member, meaning_, .object = &efforts_object)
#define LOSSES(member, meaning_) JSON_FIELD_OF(JSON_OBJECT, "losses", member, meaning_, .object = &losses_object)

extern const struct json_object place_object;
extern const struct json_object losses_object;
extern const struct json_object efforts_object;
extern const struct json_object process_object;
extern const struct json_object line_object;
extern const struct json_object site_object;

/* A frame stands in many stacks: it is made once. One with a relation stands in few, and elsewhere without it. */
struct frame_text;
struct frame_texts {
	struct frame_text *texts; // uthash
	uint64_t bytes_left;      // for frames of further sites
};
void render_json_free(struct frame_texts *texts);

/* Write these rows. owner: the report; json->context: struct frame_texts. */
void render_json_lines(struct json_write *json, const void *owner);
void render_json_sites(struct json_write *json, const void *owner);

#endif
