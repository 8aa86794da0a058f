/*
 * render_json.c - the report as JSON, schema 1, described in report.schema.json.
 *
 * When failing  errors stay in the stream.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/json_write.h"
#include "base/memory.h"
#include "report/render.h"
#include "report/report.h"

#define SITES_INLINE_DEPTH 2 // one site is one line

/* Left out where the frame is on the stack itself. */
static void
put_relation(struct json_write *json, const char *relation)
{
	if (relation[0] != '\0')
		json_write_text(json, "relation", relation);
}

/* Only of what has no name. */
static void
put_offset(struct json_write *json, uint64_t offset)
{
	if (offset != 0)
		json_write_number(json, "offset", offset);
}

static void
put_text_or_null(struct json_write *json, const char *name, const char *text)
{
	if (text[0] != '\0')
		json_write_text(json, name, text);
	else
		json_write_null(json, name);
}

static void
put_place(struct json_write *json, const char *name, const struct report_place *place)
{
	if (!place->is_known) {
		json_write_null(json, name);
		return;
	}
	json_write_open(json, name, '{');
	json_write_text(json, "file", place->file);
	json_write_number(json, "line", place->line);
	json_write_text(json, "function", place->function);
	json_write_text(json, "module", place->module);
	put_offset(json, place->offset);
	put_relation(json, place->relation);
	put_text_or_null(json, "source", place->source);
	json_write_bool(json, "is_source_changed", place->is_source_changed);
	json_write_close(json, '}');
}

static void
put_leak(struct json_write *json, const struct report_leak *leak)
{
	json_write_open(json, "leak", '{');
	json_write_text(json, "class", leak->class_name);
	json_write_number(json, "generations_alive", leak->generations_alive);
	json_write_number(json, "generations_total", leak->generations_total);
	json_write_number(json, "bytes_per_generation", leak->bytes_per_generation);
	json_write_close(json, '}');
}

static void
put_in_memory(struct json_write *json, const struct report_in_memory *in_memory)
{
	json_write_number(json, "untouched_bytes", in_memory->untouched_bytes);
	json_write_number(json, "large_bytes", in_memory->large_bytes);
	json_write_number(json, "large_resident_bytes", in_memory->large_resident_bytes);
	json_write_number(json, "pinned_bytes", in_memory->pinned_bytes);
}

static void
put_memory(struct json_write *json, const struct report_memory *memory)
{
	if (memory == NULL) {
		json_write_null(json, "memory");
		return;
	}
	json_write_open(json, "memory", '{');
	json_write_number(json, "bytes", memory->bytes);
	json_write_number(json, "sampled_bytes", memory->sample_bytes);
	json_write_number(json, "age_ns", memory->age_ns);
	json_write_number(json, "freed_kept_bytes", memory->kept_bytes);
	json_write_number(json, "freed_empty_bytes", memory->kept_empty_bytes);
	if (memory->kept_bytes == 0) {
		json_write_null(json, "fragmentation");
	} else {
		json_write_open(json, "fragmentation", '{');
		json_write_number(json, "pid", memory->fragmented_pid);
		json_write_open(json, "pinned_by", '[');
		for (size_t i = 0; i < memory->pinning_count; i++) {
			json_write_open(json, NULL, '{');
			put_place(json, "where", &memory->pinning[i].where);
			json_write_number(json, "pinned_bytes", memory->pinning[i].pinned_bytes);
			json_write_close(json, '}');
		}
		json_write_close(json, ']');
		json_write_close(json, '}');
	}
	json_write_open(json, "parts", '[');
	for (size_t i = 0; i < memory->part_count; i++) {
		json_write_open(json, NULL, '{');
		json_write_text(json, "name", memory->parts[i].name);
		json_write_number(json, "bytes", memory->parts[i].bytes);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
	json_write_close(json, '}');
}

static void
put_verdict(struct json_write *json, const struct report_verdict *verdict)
{
	json_write_open(json, "verdict", '{');
	json_write_text(json, "cause", verdict->cause);
	json_write_text(json, "confidence", verdict->confidence);
	json_write_text(json, "text", verdict->text);
	json_write_text(json, "next", verdict->next);
	put_memory(json, verdict->memory);
	json_write_number(json, "untouched_bytes", verdict->untouched_bytes);
	if (verdict->domain != NULL)
		json_write_text(json, "domain", verdict->domain);
	json_write_close(json, '}');
}

static void
put_parts(struct json_write *json, const struct device_part *parts, size_t count)
{
	json_write_open(json, "parts", '[');
	for (size_t i = 0; i < count; i++) {
		json_write_open(json, NULL, '{');
		json_write_text(json, "name", parts[i].name);
		json_write_number(json, "live_bytes", parts[i].live_bytes);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
}

static void
put_totals(struct json_write *json, const struct report *report)
{
	json_write_open(json, "totals", '{');
	for (size_t i = 0; i < report->domain_count; i++) {
		const struct report_domain *domain = &report->domains[i];

		json_write_open(json, domain->name, '{');
		json_write_number(json, "live_bytes", domain->live_bytes);
		json_write_number(json, "live_count", domain->live_count);
		json_write_number(json, "peak_bytes", domain->peak_bytes);
		json_write_number(json, "allocated_bytes", domain->allocated_bytes);
		json_write_number(json, "allocated_count", domain->allocated_count);
		json_write_number(json, "freed_bytes", domain->freed_bytes);
		json_write_number(json, "freed_count", domain->freed_count);
		json_write_number(json, "inherited_bytes", domain->inherited_bytes);
		json_write_number(json, "concurrent_peak_bytes", domain->concurrent_peak_bytes);
		json_write_number(json, "together_live_bytes", domain->together_live_bytes);
		json_write_number(json, "peak_resident_bytes", domain->peak_resident_bytes);
		json_write_number(json, "untouched_bytes", domain->untouched_bytes);
		json_write_number(json, "returned_bytes", domain->returned_bytes);
		json_write_number(json, "lost_events", report->losses[KMEM_LOST_EVENTS]);
		json_write_number(json, "lost_event_bytes", report->losses[KMEM_LOST_EVENT_BYTES]);
		json_write_number(json, "lost_sites", domain->lost_sites);
		json_write_number(json, "lost_stacks", domain->lost_stacks);
		json_write_bool(json, "is_at_refusal", domain->is_at_refusal);
		put_parts(json, domain->parts, domain->part_count);
		json_write_close(json, '}');
	}
	json_write_close(json, '}');
}

static void
put_losses(struct json_write *json, const uint64_t losses[KMEM_LOSS_COUNT])
{
	json_write_open(json, "losses", '{');
	for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++) {
		if (report_loss_name(i) != NULL)
			json_write_number(json, report_loss_name(i), losses[i]);
	}
	json_write_close(json, '}');
}

static void
put_heap_sample(struct json_write *json, const struct report_heap_pages *look)
{
	if (look->sampled_pages == 0) {
		json_write_null(json, "heap_pages");
		return;
	}
	json_write_open(json, "heap_pages", '{');
	json_write_number(json, "sampled_pages", look->sampled_pages);
	json_write_number(json, "bytes", look->bytes);
	json_write_number(json, "empty_bytes", look->empty_bytes);
	json_write_number(json, "sparse_bytes", look->sparse_bytes);
	json_write_number(json, "sparse_live_bytes", look->sparse_live_bytes);
	json_write_close(json, '}');
}

static void
put_resident(struct json_write *json, const struct report_process *process)
{
	if (process->resident_parts == NULL) {
		json_write_null(json, "resident");
		return;
	}
	json_write_open(json, "resident", '{');
	json_write_number(json, "bytes", process->resident_sampled_bytes);
	json_write_number(json, "age_ns", process->resident_age_ns);
	json_write_open(json, "parts", '{');
	for (unsigned i = 0; i < KMEM_RESIDENT_PARTS; i++) {
		if (report_resident_name(i) != NULL)
			json_write_number(json, report_resident_name(i), process->resident_parts[i]);
	}
	json_write_close(json, '}');
	json_write_open(json, "kmemshim", '{');
	for (unsigned i = 0; i < KMEM_OWN_PARTS; i++) {
		if (report_own_name(i) != NULL)
			json_write_number(json, report_own_name(i), process->own_bytes[i]);
	}
	json_write_close(json, '}');
	put_heap_sample(json, &process->heap_pages);
	json_write_close(json, '}');
}

static void
put_fragmentation(struct json_write *json, const struct report_fragmentation *from)
{
	if (from->freed_bytes == 0) {
		json_write_null(json, "fragmentation");
		return;
	}
	json_write_open(json, "fragmentation", '{');
	json_write_number(json, "freed_bytes", from->freed_bytes);
	json_write_number(json, "live_bytes", from->live_bytes);
	json_write_number(json, "heap_bytes", from->heap_bytes);
	json_write_number(json, "resident_bytes", from->resident_bytes);
	json_write_number(json, "share_ppm", (uint64_t)((double)from->freed_bytes / (double)from->resident_bytes * 1e6));
	json_write_number(json, "empty_bytes", from->empty_bytes);
	json_write_number(json, "sparse_bytes", from->sparse_bytes);
	json_write_number(json, "sparse_live_bytes", from->sparse_live_bytes);
	json_write_bool(json, "is_after_last_sample", from->is_later);
	json_write_close(json, '}');
}

static void
put_process(struct json_write *json, const struct report_process *process)
{
	json_write_open(json, NULL, '{');
	json_write_number(json, "pid", process->pid);
	json_write_number(json, "parent_pid", process->parent_pid);
	json_write_text(json, "path", process->path);
	json_write_text(json, "name", process->name);
	json_write_text(json, "command", process->command);
	json_write_text(json, "directory", process->directory);
	json_write_text(json, "state", process->state);
	if (process->exit_status >= 0)
		json_write_signed(json, "exit_status", process->exit_status);
	else
		json_write_null(json, "exit_status");
	if (process->signal != 0)
		json_write_signed(json, "signal", process->signal);
	else
		json_write_null(json, "signal");
	put_text_or_null(json, "python_version", process->python_version);
	json_write_text(json, "tool_version", process->tool_version);
	json_write_number(json, "start_realtime_ns", process->start_realtime_ns);
	json_write_number(json, "live_bytes", process->live_bytes);
	json_write_number(json, "peak_bytes", process->peak_bytes);
	json_write_number(json, "allocated_bytes", process->allocated_bytes);
	json_write_number(json, "refused_count", process->refused_count);
	json_write_number(json, "inherited_bytes", process->inherited_bytes);
	json_write_number(json, "copied_bytes", process->copied_bytes);
	json_write_bool(json, "is_copied_known", !process->is_copied_unknown);
	json_write_open(json, "built", '[');
	for (size_t i = 0; i < process->built_count; i++) {
		char key[17];

		(void)snprintf(key, sizeof(key), "%016" PRIx64, process->built[i].key);
		json_write_open(json, NULL, '{');
		json_write_text(json, "key", key);
		json_write_number(json, "live_bytes", process->built[i].live_bytes);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
	json_write_number(json, "resident_bytes", process->resident_bytes);
	put_resident(json, process);
	put_fragmentation(json, &process->fragmentation);
	if (process->limit_bytes != UINT64_MAX)
		json_write_number(json, "limit_bytes", process->limit_bytes);
	else
		json_write_null(json, "limit_bytes");
	put_losses(json, process->losses);
	json_write_open(json, "notes", '[');
	for (size_t i = 0; i < process->note_count; i++)
		json_write_text(json, NULL, process->notes[i]);
	json_write_close(json, ']');
	json_write_close(json, '}');
}

static void
put_number_or_null(struct json_write *json, const char *name, bool is_known, uint64_t number)
{
	if (is_known)
		json_write_number(json, name, number);
	else
		json_write_null(json, name);
}

/* What the device was made of when it refused. */
static void
put_composition(struct json_write *json, const struct report_request *request)
{
	if (!request->is_composed) {
		json_write_null(json, "held");
		return;
	}
	json_write_open(json, "held", '{');
	json_write_number(json, "live_bytes", request->live_bytes);
	json_write_number(json, "tensor_bytes", request->tensor_bytes);
	put_parts(json, request->parts, request->part_count);
	json_write_number(json, "pool_kept_bytes", request->pool_kept_bytes);
	put_number_or_null(json, "untracked_bytes", request->total_bytes != 0, request->untracked_bytes);
	json_write_number(json, "pinned_bytes", request->pinned_bytes);
	json_write_number(json, "managed_bytes", request->managed_bytes);
	json_write_open(json, "lines", '[');
	for (size_t i = 0; i < request->holder_count; i++) {
		const struct report_holder *holder = &request->holders[i];

		json_write_open(json, NULL, '{');
		json_write_text(json, "domain", holder->domain);
		json_write_number(json, "live_bytes", holder->live_bytes);
		json_write_number(json, "live_count", holder->live_count);
		put_place(json, "where", &holder->where);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
	json_write_close(json, '}');
}

static void
put_requests(struct json_write *json, const struct report *report)
{
	json_write_open(json, "failed_requests", '[');
	for (size_t i = 0; i < report->request_count; i++) {
		const struct report_request *request = &report->requests[i];

		json_write_open(json, NULL, '{');
		json_write_number(json, "bytes", request->bytes);
		json_write_text(json, "domain", request->domain);
		json_write_text(json, "state", request->state);
		json_write_signed(json, "error", request->error);
		json_write_number(json, "pid", request->pid);
		put_place(json, "where", &request->where);
		put_text_or_null(json, "device", request->device != NULL ? request->device : "");
		put_number_or_null(json, "free_bytes", request->total_bytes != 0, request->free_bytes);
		put_number_or_null(json, "total_bytes", request->total_bytes != 0, request->total_bytes);
		put_composition(json, request);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
}

static void
put_types(struct json_write *json, const struct report_type *types, unsigned count)
{
	json_write_open(json, "types", '[');
	for (unsigned i = 0; i < count; i++) {
		json_write_open(json, NULL, '{');
		json_write_text(json, "name", types[i].name);
		json_write_number(json, "count", types[i].count);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
}

static void
put_lines(struct json_write *json, const struct report *report)
{
	json_write_open(json, "lines", '[');
	for (size_t i = 0; i < report->line_count; i++) {
		struct report_line line = report_line(report, i);

		json_write_open(json, NULL, '{');
		json_write_text(json, "domain", line.domain);
		json_write_number(json, "live_bytes", line.live_bytes);
		json_write_number(json, "live_count", line.live_count);
		json_write_number(json, "released_at_exit_bytes", line.released_bytes);
		json_write_number(json, "peak_bytes", line.peak_bytes);
		json_write_number(json, "allocated_bytes", line.allocated_bytes);
		json_write_number(json, "allocated_count", line.allocated_count);
		put_in_memory(json, &line.in_memory);
		put_text_or_null(json, "library", line.library);
		put_leak(json, &line.leak);
		json_write_number(json, "leaking_bytes", line.leaking_bytes);
		json_write_bool(json, "may_be_built_once", line.may_be_built_once);
		put_place(json, "where", &line.where);
		put_text_or_null(json, "import", line.import);
		put_types(json, line.types, line.type_count);
		json_write_number(json, "first_site", line.first_site);
		json_write_number(json, "site_count", line.site_count);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
}

static void
encode_frame(struct json_write *json, const struct report_frame *frame)
{
	json_write_open(json, NULL, '{');
	json_write_text(json, "kind", frame->kind);
	json_write_text(json, "function", frame->function);
	json_write_text(json, "file", frame->file);
	json_write_number(json, "line", frame->line);
	json_write_text(json, "module", frame->module);
	put_offset(json, frame->offset);
	put_relation(json, frame->relation);
	if (frame->is_repeated)
		json_write_bool(json, "is_repeated", true);
	json_write_close(json, '}');
}

/* A frame stands in many stacks: it is made once. One with a relation stands in few, and elsewhere without it. */
struct frame_text {
	const void *identity;
	char *text;
	size_t bytes;
	UT_hash_handle hh;
};

struct frame_texts {
	struct frame_text *texts; // uthash
	uint64_t bytes_left;      // for frames of further sites
};

static const struct frame_text *
find_frame_text(struct frame_texts *texts, const struct report_frame *frame)
{
	struct frame_text *found;
	struct json_write json = { .inline_depth = 0, .depth = 1 };

	HASH_FIND_PTR(texts->texts, &frame->identity, found);
	if (found != NULL)
		return found;
	found = memory_zeroed(1, sizeof(*found));
	found->identity = frame->identity;
	json.stream = open_memstream(&found->text, &found->bytes);
	if (json.stream == NULL)
		memory_exhausted();
	encode_frame(&json, frame);
	if (fclose(json.stream) != 0)
		memory_exhausted();
	HASH_ADD_PTR(texts->texts, identity, found);
	return found;
}

static void
free_frame_texts(struct frame_texts *texts)
{
	struct frame_text *text;
	struct frame_text *next;

	HASH_ITER(hh, texts->texts, text, next)
	{
		HASH_DEL(texts->texts, text);
		free(text->text);
		free(text);
	}
}

/* All frames of a site, or none when the room for frames is used up. */
static void
put_frames(struct json_write *json, const struct report_site *site, struct frame_texts *texts)
{
	uint32_t count = texts->bytes_left != 0 ? site->frame_count : 0;

	json_write_number(json, "frames_omitted", (uint64_t)site->frames_omitted + site->frame_count - count);
	json_write_number(json, "frames_before_gap", count != 0 ? site->frames_before_gap : 0);
	json_write_open(json, "frames", '[');
	for (uint32_t i = 0; i < count; i++) {
		struct report_frame frame = report_frame(site, i);

		if (frame.relation[0] != '\0') {
			encode_frame(json, &frame);
			continue;
		}
		const struct frame_text *text = find_frame_text(texts, &frame);

		json_write_raw(json, text->text, text->bytes);
		texts->bytes_left -= text->bytes < texts->bytes_left ? text->bytes : texts->bytes_left;
	}
	json_write_close(json, ']');
}

static void
put_site(struct json_write *json, const struct report_site *site, struct frame_texts *texts)
{
	char key[17];

	(void)snprintf(key, sizeof(key), "%016" PRIx64, site->key);
	json_write_open(json, NULL, '{');
	json_write_text(json, "key", key);
	json_write_text(json, "domain", site->domain);
	json_write_number(json, "live_bytes", site->live_bytes);
	json_write_number(json, "live_count", site->live_count);
	json_write_number(json, "released_at_exit_bytes", site->released_bytes);
	json_write_number(json, "peak_bytes", site->peak_bytes);
	json_write_number(json, "allocated_bytes", site->allocated_bytes);
	json_write_number(json, "allocated_count", site->allocated_count);
	put_in_memory(json, &site->in_memory);
	put_text_or_null(json, "library", site->library);
	put_leak(json, &site->leak);
	put_place(json, "where", &site->where);
	put_text_or_null(json, "import", site->import);
	json_write_number(json, "process_count", site->process_count);
	put_types(json, site->types, site->type_count);
	put_text_or_null(json, "lost", site->lost);
	json_write_bool(json, "is_python_only", site->is_python_only);
	put_frames(json, site, texts);
	json_write_close(json, '}');
}

void
render_json(const struct report *report, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = SITES_INLINE_DEPTH };
	struct frame_texts texts = { .bytes_left = report->frames_bytes };

	json_write_open(&json, NULL, '{');
	json_write_number(&json, "schema", REPORT_SCHEMA);
	json_write_text(&json, "session", report->session);
	json_write_text(&json, "ranking", report->ranking);
	put_verdict(&json, &report->verdict);
	put_totals(&json, report);
	put_losses(&json, report->losses);
	json_write_number(&json, "peak_error_bytes", report->peak_error_bytes);
	json_write_bool(&json, "is_finalizing", report->is_finalizing);
	json_write_bool(&json, "is_at_exit", report->is_at_exit);
	json_write_open(&json, "verify", '{');
	json_write_number(&json, "checked", report->verify_checked);
	json_write_number(&json, "mismatched", report->verify_mismatched);
	json_write_close(&json, '}');
	json_write_open(&json, "processes", '[');
	for (size_t i = 0; i < report->process_count; i++)
		put_process(&json, &report->processes[i]);
	json_write_close(&json, ']');
	put_requests(&json, report);
	json_write_open(&json, "damages", '[');
	for (size_t i = 0; i < report->damage_count; i++)
		json_write_text(&json, NULL, report->damages[i]);
	json_write_close(&json, ']');
	json_write_number(&json, "line_total", report->line_total);
	put_lines(&json, report);
	json_write_number(&json, "site_total", report->site_total);
	json_write_open(&json, "sites", '[');
	for (size_t i = 0; i < report->site_count; i++) {
		struct report_site site = report_site(report, i);

		put_site(&json, &site, &texts);
	}
	free_frame_texts(&texts);
	json_write_close(&json, ']');
	json_write_close(&json, '}');
}
