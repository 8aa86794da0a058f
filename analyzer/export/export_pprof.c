/*
 * export_pprof.c - a profile for `go tool pprof` (pprof.proto), written by protobuf-c and packed by zlib.
 *
 * A sample is a call site: blocks and bytes that are live, that were allocated in all, and bytes at the peak; labels say which domain,
 * process and leak class. A location is a frame.
 *
 * When failing  errors stay in the stream. Without memory the command ends with a message (memory.h).
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <pprof.pb-c.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text_pool.h"
#include "export/export.h"
#include "verdict/words.h"

#define GZIP_WINDOW (15 + 16) // the largest, with the head and foot of gzip
#define CHUNK_BYTES 65536

struct list {
	void **items;
	size_t count;
};

struct profile {
	struct text_pool *pool; // of all messages
	struct number *texts;
	struct number *functions;
	struct number *frames;
	struct list strings;
	struct list function_list;
	struct list location_list;
	struct list sample_list;
};

static void
append(struct list *list, void *item)
{
	*MEMORY_NEXT(list->items, list->count) = item;
}

#define MESSAGE(Type, name)                                                       \
	static Pprof__##Type *new_##name(struct profile *profile)                     \
	{                                                                             \
		Pprof__##Type *message = text_pool_room(profile->pool, sizeof(*message)); \
                                                                                  \
		pprof__##name##__init(message);                                           \
		return message;                                                           \
	}
MESSAGE(ValueType, value_type)
MESSAGE(Sample, sample)
MESSAGE(Label, label)
MESSAGE(Mapping, mapping)
MESSAGE(Location, location)
MESSAGE(Line, line)
MESSAGE(Function, function)

static int64_t
text(struct profile *profile, const char *text)
{
	bool is_new;
	const struct number *found = numbers_of(&profile->texts, text, strlen(text) + 1, &is_new);

	if (is_new)
		append(&profile->strings, (void *)(uintptr_t)found->key);
	return (int64_t)found->number;
}

static uint64_t
function_of(struct profile *profile, const struct model_frame *frame)
{
	char room[PLACE_TEXT_BYTES];
	bool is_named = frame->function[0] != '\0';
	const char *name = is_named ? frame->function : verdict_frame_text(frame, room);
	const int64_t key[] = { text(profile, name), text(profile, frame->file) };
	Pprof__Function *made;
	bool is_new;
	uint64_t id = 1 + numbers_of(&profile->functions, key, sizeof(key), &is_new)->number;

	if (!is_new)
		return id;
	made = new_function(profile);
	made->id = id;
	made->name = made->system_name = key[0];
	made->filename = text(profile, frame->file[0] != '\0' ? frame->file : frame->module);
	made->start_line = frame->first_line;
	append(&profile->function_list, made);
	return id;
}

static uint64_t
location_of(struct profile *profile, const struct model_frame *frame)
{
	bool is_new;
	uint64_t id = 1 + // 0 is none
	              numbers_of(&profile->frames, &frame, sizeof(frame), &is_new)->number;
	Pprof__Location *made;

	if (!is_new)
		return id;
	made = new_location(profile);
	made->id = id;
	made->mapping_id = 1;
	made->n_line = 1;
	made->line = text_pool_room(profile->pool, sizeof(*made->line));
	made->line[0] = new_line(profile);
	made->line[0]->function_id = function_of(profile, frame);
	made->line[0]->line = frame->line;
	append(&profile->location_list, made);
	return id;
}

static Pprof__Label *
label(struct profile *profile, const char *key, const char *value)
{
	Pprof__Label *made = new_label(profile);

	made->key = text(profile, key);
	made->str = text(profile, value);
	return made;
}

/* Of several processes the stack was seen in, the sum alone is known. */
static const char *
process_text(const struct report *report, const struct report_site *site, char words[PLACE_TEXT_BYTES])
{
	const struct report_process *process = &report->processes[site->of.process];

	if (site->of.process_count > 1)
		(void)snprintf(words, PLACE_TEXT_BYTES, "%u processes", site->of.process_count);
	else
		(void)snprintf(words, PLACE_TEXT_BYTES, "%u %.200s", (unsigned)process->pid, process->of.name);
	return words;
}

static const char *const value_types[][2] = {
	{ "alloc_objects", "count" }, { "alloc_space", "bytes" }, { "peak_space", "bytes" },
	{ "inuse_objects", "count" }, { "inuse_space", "bytes" }, // the last one is shown unless another one is asked for
};
#define VALUES (sizeof(value_types) / sizeof(value_types[0]))
#define LABELS 3

static void
add_sample(struct profile *profile, const struct report *report, const struct report_site *site)
{
	static const struct model_frame unknown = { .function = "unknown place", .file = "", .module = "" };
	Pprof__Sample *made = new_sample(profile);
	const uint64_t values[VALUES] = { site->of.allocated_count, site->of.allocated_bytes, site->of.peak_bytes,
		                              site->of.live_count, site->of.live_bytes };
	char words[PLACE_TEXT_BYTES];

	made->n_location_id = site->of.frame_count != 0 ? site->of.frame_count : 1;
	made->location_id = text_pool_room(profile->pool, made->n_location_id * sizeof(*made->location_id));
	for (uint32_t i = 0; i < site->of.frame_count; i++) {
		made->location_id[i] = location_of(profile, site->of.frames[i]);
	}
	if (site->of.frame_count == 0)
		made->location_id[0] = location_of(profile, &unknown);
	made->n_value = VALUES;
	made->value = text_pool_room(profile->pool, VALUES * sizeof(*made->value));
	for (size_t i = 0; i < VALUES; i++)
		made->value[i] = (int64_t)values[i];
	made->n_label = LABELS;
	made->label = text_pool_room(profile->pool, LABELS * sizeof(*made->label));
	made->label[0] = label(profile, "domain", site->domain);
	made->label[1] = label(profile, "process", process_text(report, site, words));
	made->label[2] = label(profile, "leak_class", model_leak_name(site->of.leak));
	append(&profile->sample_list, made);
}

static Pprof__ValueType *
value_type(struct profile *profile, size_t number)
{
	Pprof__ValueType *made = new_value_type(profile);

	made->type = text(profile, value_types[number][0]);
	made->unit = text(profile, value_types[number][1]);
	return made;
}

/* ---- writing ---- */

static void
put_packed(const uint8_t *bytes, size_t count, FILE *stream)
{
	uint8_t packed[CHUNK_BYTES];
	z_stream zip = { .next_in = (Bytef *)(uintptr_t)bytes };
	int result;

	if (deflateInit2(&zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		memory_exhausted();
	do {
		size_t left = count - (size_t)(zip.next_in - bytes);

		zip.avail_in = left < CHUNK_BYTES ? (uInt)left : CHUNK_BYTES;
		do {
			zip.next_out = packed;
			zip.avail_out = sizeof(packed);
			result = deflate(&zip, left <= CHUNK_BYTES ? Z_FINISH : Z_NO_FLUSH);
			(void)fwrite(packed, 1, sizeof(packed) - zip.avail_out, stream);
		} while (zip.avail_out == 0);
	} while (result != Z_STREAM_END);
	(void)deflateEnd(&zip);
}

static void
put_profile(struct profile *profile, const struct report *report, FILE *stream)
{
	Pprof__Profile whole = PPROF__PROFILE__INIT;
	Pprof__ValueType *types[VALUES];
	Pprof__Mapping *mapping = new_mapping(profile);
	const struct report_process *first = report->process_count != 0 ? &report->processes[0] : NULL;

	for (size_t i = 0; i < VALUES; i++)
		types[i] = value_type(profile, i);
	mapping->id = 1;
	mapping->filename = text(profile, first != NULL ? first->of.name : "");
	mapping->has_functions = mapping->has_filenames = mapping->has_line_numbers = mapping->has_inline_frames = true;

	int64_t comment = text(profile, TEXT(PLACE_TEXT_BYTES, "kmemshim, session %.80s: %.80s", report->session,
	                                     verdict_cause_name(report->verdict.cause)));
	whole.n_sample_type = VALUES;
	whole.sample_type = types;
	whole.period_type = types[VALUES - 1];
	whole.period = 1;
	whole.default_sample_type = types[VALUES - 1]->type;
	whole.n_mapping = 1;
	whole.mapping = &mapping;
	whole.n_comment = 1;
	whole.comment = &comment;
	whole.time_nanos = first != NULL ? (int64_t)first->start_realtime_ns : 0;
	whole.n_sample = profile->sample_list.count;
	whole.sample = (Pprof__Sample **)profile->sample_list.items;
	whole.n_location = profile->location_list.count;
	whole.location = (Pprof__Location **)profile->location_list.items;
	whole.n_function = profile->function_list.count;
	whole.function = (Pprof__Function **)profile->function_list.items;
	whole.n_string_table = profile->strings.count;
	whole.string_table = (char **)profile->strings.items;

	size_t bytes = pprof__profile__get_packed_size(&whole);
	OWNED uint8_t *packed = memory_zeroed(bytes, 1);

	(void)pprof__profile__pack(&whole, packed);
	put_packed(packed, bytes, stream);
}

void
export_pprof(const struct report *report, const struct export_value *value, FILE *stream)
{
	struct profile profile = { .pool = text_pool_new() };

	(void)value;              // all of them
	(void)text(&profile, ""); // number 0
	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);

		export_progress(stream, i, report->site_total);

		if (export_is_memory(report, site.of.domain))
			add_sample(&profile, report, &site);
	}
	put_profile(&profile, report, stream);
	numbers_free(&profile.texts);
	numbers_free(&profile.functions);
	numbers_free(&profile.frames);
	free(profile.strings.items);
	free(profile.function_list.items);
	free(profile.location_list.items);
	free(profile.sample_list.items);
	text_pool_free(profile.pool);
}
