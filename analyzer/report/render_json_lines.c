/*
 * render_json_lines.c - lines of code, their sites and frames in the JSON of the report: one row per field (see render_json.h).
 *
 * When failing  errors stay in the stream.
 */
#include <stdlib.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/memory.h"
#include "report/render_json.h"

#define OWNER struct model_site
static const struct json_field leak_fields[] = {
	JSON_FIELD_OF(
		JSON_ENUM, "class", leak,
		"none: holds nothing. steady: holds something, does not accumulate. too-short: too few generations to judge. backlog: released late or in bursts, or less than it took. filling: keeps its blocks, but adds fewer and fewer, as a cache that fills. leak: still holds blocks from nearly every generation. swept: it accumulated until the peak, then was released, and the program ended. import: left behind by importing a library.",
		.value_of = model_leak_name),
	JSON_FIELD(generations_alive, "Generations (ticks of allocated bytes or blocks) of which blocks are still live."),
	JSON_FIELD(generations_total, "Generations since the site first allocated."),
	JSON_FIELD(bytes_per_generation, "Live bytes per generation that is still alive; 0 without generations."),
	JSON_FIELD(steps,
	           "Steps of the process that holds most of it since the site first allocated, about; null = not known.",
	           .without = JSON_NULL),
};
static JSON_OBJECT_OF(leak, NULL, "Does it accumulate? Judged by surviving generations.");
#undef OWNER

#define OWNER struct model_tally
static const struct json_field type_fields[] = {
	JSON_FIELD(name, ""),
	JSON_FIELD(count, ""),
};
static JSON_OBJECT_OF(type, NULL, "Python objects of one type.");
#undef OWNER

#define SAMPLES                                                                                                    \
	JSON_FIELD_AS(                                                                                                 \
		"samples", estimate.samples,                                                                               \
		"Of domain python/object: live objects that were sampled, from which live_bytes is estimated; else null.", \
		.without = JSON_NULL)

/* What a line and a site have in common. */
#define HELD                                                                                                                                                                        \
	JSON_OF(live_bytes, "Requested bytes of blocks that were not released."),                                                                                                       \
		JSON_OF(live_count, "Number of those blocks."),                                                                                                                             \
		JSON_FIELD_AS("released_at_exit_bytes", of.released_bytes,                                                                                                                  \
	                  "How much of live_bytes was released after the program began to exit."),                                                                                      \
		JSON_OF(peak_bytes, "Requested bytes held here at the moment of the domain's peak, of each process its own."),                                                              \
		JSON_OF(allocated_bytes, "Sum of all requested bytes, released or not."),                                                                                                   \
		JSON_OF(allocated_count, "Number of allocations."),                                                                                                                         \
		JSON_FIELD_AS(                                                                                                                                                              \
			"nonresident_bytes", of.untouched_bytes,                                                                                                                                \
			"Of live_bytes, not in memory when the resident set was sampled last (never touched, given back, or swapped out). The rest counts as memory; rows are ordered by it."), \
		JSON_FIELD_AS(                                                                                                                                                              \
			"large_bytes", of.large_bytes,                                                                                                                                          \
			"Blocks of 1 MiB and more, mappings of 64 KiB and more, and smaller blocks where most are untouched, that were live at that sample."),                                  \
		JSON_FIELD_AS("large_resident_bytes", of.large_resident_bytes, "Of these, in memory."),                                                                                     \
		JSON_FIELD_AS(                                                                                                                                                              \
			"sparse_page_bytes", of.pinned_bytes,                                                                                                                                   \
			"Estimate, at that sample: pages of malloc that are less than half full and that its blocks keep; a page is shared out among the sites in it."),                        \
		JSON_FIELD_AS(                                                                                                                                                              \
			"library", estimate.library,                                                                                                                                            \
			"Of domain library: whose own allocator grew here; what it holds is an estimate. null = another domain.",                                                               \
			.without = JSON_NULL),                                                                                                                                                  \
		ESTIMATE, SAMPLES
#define IMPORT                                                                                                                                  \
	JSON_FIELD(                                                                                                                                 \
		import,                                                                                                                                 \
		"What importing this top-level module left behind, whichever line imported it; null = not from an import, or its module is not known.", \
		.without = JSON_NULL)
#define TYPES(member, count, ...)                                                                                                                                               \
	JSON_FIELD_OF(                                                                                                                                                              \
		JSON_OBJECTS, "types", member,                                                                                                                                          \
		"Python objects that were alive at the last sample, estimated, the most frequent type first, 4 at most; empty when they were not recorded one by one, or hold little.", \
		.object = &type_object, .count_offset = offsetof(OWNER, count), .is_count_short = true, __VA_ARGS__)

#define OWNER struct line_growth
JSON_KNOWN(is_growth_known, is_known)

static const struct json_field growth_fields[] = {
	JSON_FIELD_OF(
		JSON_ENUM, "pace", pace,
		"What stays of each quarter of what was allocated since it began. even: about as much. faster: more and more. bursts: anything else.",
		.value_of = report_line_pace),
	JSON_FIELD(since_ms, "When it began to hold memory, since the start of its process, about."),
	JSON_FIELD(bytes, "What it holds."),
	JSON_FIELD(whole_bytes, "What all lines of the process hold more than then; at least as much."),
};
static JSON_OBJECT_OF(growth, is_growth_known,
                      "Since when a line grows, how, and what part of its process's growth it is.");
#undef OWNER

#define OWNER struct line_steps
JSON_KNOWN(are_steps_known, count != 0)

static const struct json_field kept_in_steps_fields[] = {
	JSON_FIELD(count, "Steps of the process since the line began; of a loop, whose rounds are estimated, its blocks."),
	JSON_FIELD(bytes, "What it kept in each, as far as it grows."),
	JSON_FIELD(is_one_block, "One block in each, about; bytes are those of one."),
	JSON_FIELD(bytes_per_hour, "null = the run was too short to tell: less than a minute.", .without = JSON_NULL),
};
static JSON_OBJECT_OF(kept_in_steps, are_steps_known, "What a line that accumulates kept in each step.");
#undef OWNER

#define OWNER struct report_release
static const struct json_field release_fields[] = {
	WHERE("The line that released them."),
	JSON_FIELD(count, "Watched blocks that it released."),
};
static JSON_OBJECT_OF(release, NULL, "Who releases blocks of a line.");
#undef OWNER

#define OWNER struct report_kept
JSON_KNOWN(is_kept_known, through.is_known)

static const struct json_field kept_fields[] = {
	JSON_PART("through", through, place, "The caller."),
	JSON_FIELD(live_count, "Blocks that were allocated through it and are alive."),
	JSON_FIELD(allocated_count, "All that were allocated through it."),
	JSON_FIELD(other_live_count, "The same of all other callers."),
	JSON_FIELD(other_allocated_count, ""),
};
static JSON_OBJECT_OF(kept, is_kept_known,
                      "The one caller whose blocks stay. Next to nothing is left of the blocks of other callers.");
#undef OWNER

#define OWNER struct report_line
static const struct json_field line_fields[] = {
	JSON_FIELD(domain, "Domain."),
	HELD,
	JSON_FIELD_OF(JSON_OBJECT, "leak", of.telling,
	              "Class of the line: the most telling of its sites; generations of its largest site of that class.",
	              .object = &leak_object, .is_pointer = true),
	JSON_OF(leaking_bytes, "Live bytes of those of its sites that are of class leak."),
	JSON_OF(
		swept_bytes,
		"Of class swept, and of a data set that went the same way: bytes that the line held at its peak, about, by the last sample before it was released. Else 0."),
	JSON_FIELD_AS(
		"may_be_one_time_load", may_be_built_once,
		"Of class leak, but half of all that was allocated since it began is its own, or an import runs it: it may be a data set that was loaded once."),
	WHERE("The line; null when unknown."),
	IMPORT,
	TYPES(types, type_count),
	JSON_FIELD(
		watched_releases,
		"From a sample: blocks of the line that were watched and released, before the program began to exit; 0 = not known."),
	JSON_FIELD(
		temporary_of,
		"The same, as far as the capture had room; 0 = not known, as of small Python objects, of what other threads release, or with KMEMSHIM_NATIVE=all."),
	JSON_FIELD(temporary_releases, "Of these, released before their thread allocated again."),
	JSON_LIST("released_by", releases, release_count, release,
	          "The lines that released them, the most frequent first, 8 at most."),
	JSON_PART("growth", growth, growth,
	          "Of classes leak and backlog; null = not known: several processes, or the process has not grown since."),
	JSON_FIELD(filled_bytes,
	           "Of class filling: at so many bytes it seems to end, if it goes on as before; null = of another class.",
	           .without = JSON_NULL),
	JSON_PART(
		"kept_in_steps", kept_in_steps, kept_in_steps,
		"Of class leak; null = not known: several processes, no steps, or rounds of a loop that its blocks do not confirm."),
	JSON_PART(
		"grows_with", grows_with, place,
		"A line before it in the ranking that leaks together with it: as many blocks, made by the same call; null = there is none."),
	JSON_PART("kept", kept, kept,
	          "Of lines that accumulate: the one caller whose blocks stay; null = there is no such caller."),
	JSON_LIST(
		"held_by", ways, way_count, model_way,
		"How its blocks were held when the guard was passed, or when a line was a leak that held much, those of most samples first; [] = nobody looked."),
	JSON_OF(first_site, "Place of its first site in the ranking, from 0."),
	JSON_OF(site_count, "How many sites it is the sum of; they follow each other in the ranking."),
};
JSON_OBJECT_OF(line, NULL, "One line of code in one domain.");
#undef OWNER

#define OWNER struct report_frame
static const char *
frame_kind(unsigned kind)
{
	return kind == MODEL_FRAME_NATIVE ? "native" : kind == MODEL_FRAME_PYTHON ? "python" : NULL;
}

static const struct json_field frame_fields[] = {
	JSON_FIELD_OF(JSON_ENUM, "kind", of.kind, "Frame of the interpreter or of the machine.", .value_of = frame_kind),
	JSON_OF(function, "\"\" when unknown."),
	JSON_OF(file, "\"\" when unknown."),
	JSON_OF(line, "0 when unknown."),
	JSON_OF(module, "Base name of the ELF object or of the Python file; \"\" when unknown."),
	JSON_FIELD(offset, "As in a place.", .without = JSON_LEFT_OUT),
	RELATION,
	JSON_OF(
		is_repeated,
		"Only there when true. Native code: the function called itself; further frames of it, between this frame and the next, are not stored.",
		.without = JSON_LEFT_OUT),
};
static JSON_OBJECT_OF(frame, NULL, "One frame.");
#undef OWNER

static void put_frames(struct json_write *json, const void *owner);

#define OWNER struct report_site
static const struct json_field site_fields[] = {
	JSON_FIELD_OF(
		JSON_KEY, "key", of.key,
		"Stable across rebuilds, machines and edits elsewhere. The first 12 digits come from names alone; the last 4 tell sites apart that share those."),
	JSON_FIELD(domain, "Domain."),
	HELD,
	JSON_FIELD_OF(JSON_OBJECT, "leak", of, "Class of the site.", .object = &leak_object),
	WHERE(
		"Innermost frame of the user's own code (not the standard library, not site-packages, not an allocator); failing that the innermost that has a name; null when unknown."),
	IMPORT,
	JSON_OF(process_count, "Number of processes in which it was seen."),
	TYPES(of.types, of.type_count, .is_pointer = true),
	JSON_FIELD_OF(JSON_ENUM, "frames_missing", lost, "Why there are no frames; null = there are.", .without = JSON_NULL,
	              .value_of = report_lost_name),
	JSON_FIELD(
		is_python_only,
		"Python frames only: native ones were not recorded, for the site held little when its blocks came (KMEMSHIM_NATIVE=to-python records them always)."),
	JSON_FIELD_AS(
		"frames_omitted", of.omitted,
		"Frames left out of a long stack; where these are the outermost (frames_before_gap is the number of frames), at least so many. Without --top the frames of all sites are at most 512 MiB of text: from then on a site has none in frames[] and their number here."),
	JSON_OF(frames_before_gap, "How many of frames[] stand before the gap."),
	JSON_FIELD_WHOLE(JSON_ROWS, "frames", "Innermost first.", .object = &frame_object, .put = put_frames),
};
JSON_OBJECT_OF(site, NULL, "One call site: one stack in one domain.");
#undef OWNER

struct frame_text {
	const void *identity;
	char *text;
	size_t bytes;
	UT_hash_handle hh;
};

static const struct frame_text *
find_frame_text(struct frame_texts *texts, const struct report_frame *frame)
{
	struct frame_text *found;
	struct json_write json = { .inline_depth = 0, .depth = 1 };

	if (!HASH_MADE(texts->texts, identity, frame->identity, found))
		return found;
	json.stream = memory_stream(&found->text, &found->bytes);
	json_object_write(&json, NULL, &frame_object, frame);
	memory_stream_close(json.stream);
	return found;
}

void
render_json_free(struct frame_texts *texts)
{
	HASH_FREE(texts->texts, HASH_TEXT_FREE);
}

static void
put_frames(struct json_write *json, const void *owner)
{
	const struct report_site *site = owner;
	struct frame_texts *texts = json->context;

	for (uint32_t i = 0; i < site->of.frame_count; i++) {
		struct report_frame frame = report_frame(site, i);

		if (frame.relation != MODEL_RELATION_OWN) {
			json_object_write(json, NULL, &frame_object, &frame);
			continue;
		}
		const struct frame_text *text = find_frame_text(texts, &frame);

		json_write_raw(json, text->text, text->bytes);
		texts->bytes_left -= text->bytes < texts->bytes_left ? text->bytes : texts->bytes_left;
	}
}

/* All frames of a site, or none when the room for frames is used up. */
void
render_json_sites(struct json_write *json, const void *owner)
{
	const struct report *report = owner;
	const struct frame_texts *texts = json->context;

	for (size_t i = 0; i < report->site_count; i++) {
		struct report_site site = report_site(report, i);

		if (texts->bytes_left == 0) {
			site.of.omitted += site.of.frame_count;
			site.of.frame_count = site.of.frames_before_gap = 0;
		}
		json_object_write(json, NULL, &site_object, &site);
	}
}

void
render_json_lines(struct json_write *json, const void *owner)
{
	const struct report *report = owner;

	for (size_t i = 0; i < report->line_count; i++) {
		struct report_line line = report_line(report, i);

		json_object_write(json, NULL, &line_object, &line);
	}
}
