/*
 * page_data.c - what a page knows, as JSON.
 *
 * Small, for a capture may have 100,000 sites: each text is written once and named by its number, and stacks are a tree of which each node
 * is a parent and a frame. Rows are arrays; page.js has the names of their columns in the same order.
 *
 * When failing  errors stay in the stream.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/items.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/place.h"
#include "base/progress.h"
#include "page/page.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/words.h"

#define DATA_VERSION 1
#define SOURCE_LINES_MAX 5000 // of a file
#define NO_NODE UINT32_MAX

/* ---- numbers for texts, frames, nodes ---- */

struct node_key {
	uint32_t parent; // NO_NODE: none
	uint32_t frame;
};

struct numbers {
	struct number *texts;
	struct number *frames; // by struct model_frame *
	struct number *nodes;  // by struct node_key
};

static uint32_t
text_number(struct numbers *numbers, const char *text)
{
	return numbers_of_text(&numbers->texts, text);
}

/* ---- parts ---- */

static void
put_number(struct json_write *json, uint64_t number)
{
	json_write_number(json, NULL, number);
}

/* Of a row, one after the other. */
#define PUT_NUMBERS(json, ...)                                                                               \
	EACH (number_of_row, ((const uint64_t[]){ __VA_ARGS__ }), COUNT_OF(((const uint64_t[]){ __VA_ARGS__ }))) \
	put_number(json, *number_of_row)

static void
put_limit(struct json_write *json, const char *name, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		json_write_null(json, name);
	else
		json_write_number(json, name, bytes);
}

static void
put_verdict(struct json_write *json, const struct report *report)
{
	const struct report_verdict *verdict = &report->verdict;

	JSON_IN (json, "verdict", '{') {
		json_write_text(json, "cause", verdict_cause_name(verdict->cause));
		json_write_text(json, "confidence", verdict_confidence_name(verdict->confidence));
		json_write_text(json, "next", verdict->next);
		json_write_bool(json, "has_ended_well", verdict->has_ended_well);
		json_write_text(json, "headline", verdict->headline);
		json_write_text(json, "evidence", verdict->evidence);
		JSON_IN (json, "bar", '[') {
			EACH (part, verdict->bar, verdict->bar_count) {
				JSON_IN (json, NULL, '[') {
					json_write_text(json, NULL, part->name);
					PUT_NUMBERS(json, part->bytes, part->bar);
				}
			}
		}
	}
}

/* What was free of the device, and how large it is, where a request that ended the program was refused: the figures are of that moment. */
static void
put_device_room(struct json_write *json, const struct report *report, const struct model_domain *device)
{
	const struct model_failed *last = NULL;

	EACH (request, report->requests, report->request_count) {
		if (request->state == REFUSAL_FATAL && request->of.total_bytes != 0 && request->device != NULL &&
		    strcmp(request->device, device->name) == 0)
			last = &request->of;
	}
	PUT_NUMBERS(json, last != NULL ? last->free_bytes : 0, last != NULL ? last->total_bytes : 0);
}

static void
put_domains(struct json_write *json, const struct report *report)
{
	JSON_IN (json, "domains", '[') {
		EACH (domain, report->domains, report->domain_count) {
			JSON_IN (json, NULL, '[') {
				json_write_text(json, NULL, domain->of.name);
				json_write_bool(json, NULL, domain->is_device);
				json_write_bool(json, NULL, domain->is_address_space);
				PUT_NUMBERS(json, domain->of.peak_bytes, domain->of.live_bytes, domain->of.allocated_bytes);
				JSON_IN (json, NULL, '[') {
					for (size_t j = 0; j < domain->parts.part_count; j++) {
						json_write_text(json, NULL, domain->parts.parts[j].name);
						put_number(json, domain->parts.parts[j].live_bytes);
					}
				}
				put_device_room(json, report, &domain->of);
			}
		}
	}
}

/* Times are milliseconds since the first process began. */
static void
put_beats(struct json_write *json, const struct report_process *process, uint64_t began_ns)
{
	JSON_IN (json, "beats", '[') {
		EACH (beat, process->of.heartbeats, process->of.heartbeat_count) {
			JSON_IN (json, NULL, '[') {
				PUT_NUMBERS(json, beat->monotonic_ns > began_ns ? (beat->monotonic_ns - began_ns) / 1000000 : 0,
				            beat->live_bytes, beat->resident_bytes, beat->cgroup_bytes);
				put_limit(json, NULL, beat->limit_bytes);
			}
		}
	}
}

/* Is its memory part of the host's sum, of devices', or of neither: address space, and what lies in memory of another domain? */
enum stacked { STACKED_NOT, STACKED_HOST, STACKED_DEVICE };
static enum stacked
stacked_of(enum domain_kind kind)
{
	switch (kind) {
	case DOMAIN_HEAP:
	case DOMAIN_HEAP_SAMPLE:
	case DOMAIN_MMAP:
	case DOMAIN_SHARED:
	case DOMAIN_PYTHON_ARENA:
	case DOMAIN_PYTHON_OBJECT:
	case DOMAIN_LIBRARY:
		return STACKED_HOST;
	case DOMAIN_DEVICE:
	case DOMAIN_PINNED:
	case DOMAIN_MANAGED:
		return STACKED_DEVICE;
	default:
		return STACKED_NOT;
	}
}

static void
put_timeline_lines(struct json_write *json, const struct report_timeline *timeline, struct numbers *numbers)
{
	JSON_IN (json, "lines", '[') {
		EACH (line, timeline->lines, timeline->line_count) {
			const struct report_place *where = &line->where;

			JSON_IN (json, NULL, '[') {
				put_number(json, line->domain_index);
				put_number(json, text_number(numbers, report_place_text(where, PLACE_ROOM)));
				json_write_bool(json, NULL, line->is_import);
				put_number(json, text_number(numbers, line->import != NULL ? line->import : ""));
				put_number(json, text_number(numbers, where->file));
				put_number(json, where->line);
			}
		}
	}
}

/* Times are microseconds since the first process began. Of a point: time, resident set, limit, live bytes, end, steps; domains; lines. */
static void
put_timeline(struct json_write *json, const struct report *report, const struct report_process *process,
             uint64_t began_ns, struct numbers *numbers)
{
	const struct report_timeline *timeline = &process->timeline;

	JSON_IN (json, "timeline", '{') {
		JSON_IN (json, "domains", '[') {
			for (size_t i = 0; i < timeline->domain_count; i++) {
				PUT_NUMBERS(json, timeline->domains[i], stacked_of(report->domains[timeline->domains[i]].of.id.kind));
			}
		}
		put_timeline_lines(json, timeline, numbers);
		JSON_IN (json, "points", '[') {
			EACH (point, timeline->points, timeline->point_count) {
				uint64_t ns = point->of.monotonic_ns;

				JSON_IN (json, NULL, '[') {
					PUT_NUMBERS(json, ns > began_ns ? (ns - began_ns) / 1000 : 0, point->of.resident_bytes);
					put_limit(json, NULL, point->of.limit_bytes);
					PUT_NUMBERS(json, point->of.live_bytes, point->of.is_end, point->of.step);
					for (size_t k = 0; k < point->domain_count; k++)
						put_number(json, point->domain_bytes[k]);
					for (size_t k = 0; k < point->line_count; k++)
						put_number(json, point->line_bytes[k]);
				}
			}
		}
	}
	JSON_IN (json, "marks", '[') {
		EACH (mark, process->marks, process->of.mark_count) {
			JSON_IN (json, NULL, '[') {
				put_number(json, mark->of.monotonic_ns > began_ns ? (mark->of.monotonic_ns - began_ns) / 1000 : 0);
				json_write_text(json, NULL, report_mark_kind(mark->of.kind));
				put_number(json, text_number(numbers, mark->of.name));
				json_write_bool(json, NULL, mark->of.is_snapshot);
				put_number(json, mark->of.live_bytes);
			}
		}
	}
}

static void
put_processes(struct json_write *json, const struct report *report, struct numbers *numbers)
{
	uint64_t began_ns = report->process_count != 0 ? report->processes[0].of.identity->start_monotonic_ns : 0;

	JSON_IN (json, "processes", '[') {
		EACH (process, report->processes, report->process_count) {
			JSON_IN (json, NULL, '{') {
				json_write_text(json, "name", process->of.name);
				json_write_number(json, "pid", process->pid);
				json_write_signed(json, "parent", process->of.parent);
				json_write_text(json, "state", report_state_name(process->state));
				json_write_number(json, "peak", process->peak_bytes);
				json_write_number(json, "live", process->of.live_bytes);
				json_write_number(json, "inherited", process->of.inherited_bytes);
				json_write_number(json, "copied", process->of.copied_bytes);
				json_write_number(json, "most_in_memory", process->max_resident_bytes);
				json_write_number(json, "machine", process->machine_bytes);
				put_limit(json, "limit", process->limit_bytes);
				json_write_signed(json, "signal", process->signal);
				put_beats(json, process, began_ns);
				put_timeline(json, report, process, began_ns, numbers);
			}
		}
	}
}

/* The files of the user's that are put in, each once. */
struct source_files {
	bool *is_there; // by the number of the name
	size_t room;
	size_t *lines; // one of each: its file is the next
	size_t count;
};

/* The number of the line's text; none where its whole file is there, which has it. */
#define IN_ITS_FILE UINT32_MAX
static uint32_t
source_number(const struct report *report, size_t line, const struct report_place *where,
              const struct page_options *options, struct source_files *files, struct numbers *numbers)
{
	struct report_source source;
	uint32_t file;

	if (!options->has_source || !report_line_source(report, line, &source))
		return text_number(numbers, options->has_source ? where->source : "");
	file = text_number(numbers, source.file);
	bool *is_there = MEMORY_AT(files->is_there, files->room, file);

	if (!*is_there) {
		*is_there = true;
		*MEMORY_NEXT(files->lines, files->count) = line;
	}
	if (where->line <= source.text.line_count && where->line <= SOURCE_LINES_MAX)
		return IN_ITS_FILE;
	return text_number(numbers, where->source);
}

/* A digit for each cell. */
static uint32_t
survivors_text(const struct model_survivors *survivors, struct numbers *numbers)
{
	char text[SURVIVOR_CELLS + 1];

	for (unsigned i = 0; i < survivors->count; i++)
		text[i] = (char)('0' + survivors->cells[i]);
	text[survivors->count] = '\0';
	return text_number(numbers, text);
}

enum line_flags { LINE_IMPORT = 1, LINE_ESTIMATE = 2, LINE_DEVICE = 4, LINE_SPACE = 8, LINE_ONCE = 16 };

/* Each in one sentence, and then its steps from the root to the block. */
static void
put_ways(struct json_write *json, const struct report_line *line, struct numbers *numbers)
{
	JSON_IN (json, NULL, '[') {
		EACH (way, line->ways, line->way_count) {
			OWNED char *sentence = model_way_sentence(way, line->held_samples);

			JSON_IN (json, NULL, '[') {
				put_number(json, text_number(numbers, sentence != NULL ? sentence : ""));
				for (size_t i = 0; i < way->step_count && way->step_count > 1; i++) {
					OWNED char *step = model_way_words(way, i, 1, false);

					put_number(json, text_number(numbers, step));
				}
			}
		}
	}
}

static void
put_lines(struct json_write *json, const struct report *report, const struct page_options *options,
          struct source_files *files, struct numbers *numbers)
{
	JSON_IN (json, "lines", '[') {
		for (size_t i = 0; i < report->line_count; i++) {
			struct report_line line = report_line(report, i);
			const struct report_place *where = &line.where;

			JSON_IN (json, NULL, '[') {
				PUT_NUMBERS(json, line.of.domain, line.of.peak_bytes, line.of.live_bytes, line.of.untouched_bytes,
				            line.of.allocated_bytes, line.of.live_count);
				put_number(json, text_number(numbers, model_leak_name(line.of.leak)));
				PUT_NUMBERS(json, line.of.telling->generations_alive, line.of.telling->generations_total);
				put_number(json, survivors_text(&line.of.telling->survivors, numbers));
				PUT_NUMBERS(json, line.estimate.error_bytes,
				            (line.of.is_import ? LINE_IMPORT : 0u) | (line.estimate.is_estimated ? LINE_ESTIMATE : 0u) |
				                (line.is_device ? LINE_DEVICE : 0u) | (line.is_address_space ? LINE_SPACE : 0u) |
				                (line.may_be_built_once ? LINE_ONCE : 0u));
				put_number(json, text_number(numbers, report_place_text(where, PLACE_ROOM)));
				put_number(json, text_number(numbers, where->file));
				put_number(json, where->line);
				json_write_signed(json, NULL,
				                  (int64_t)(int32_t)source_number(report, i, where, options, files, numbers));
				put_ways(json, &line, numbers);
			}
		}
	}
}

/* The tree begins at the outermost frame; without the `inner` frames of the inner end. */
static uint32_t
stack_of(const struct report_site *site, uint32_t inner, struct numbers *numbers)
{
	uint32_t node = NO_NODE;

	for (uint32_t i = site->of.frame_count; i > inner; i--) {
		const struct node_key key = {
			node, numbers_of(&numbers->frames, &site->of.frames[i - 1], sizeof(site->of.frames[0]), NULL)->number
		};

		node = numbers_of(&numbers->nodes, &key, sizeof(key), NULL)->number;
	}
	return node;
}

/*
 * Of what its domain has: sites with less of everything are drawn without their inner frames, all below one caller as one. Beyond so many
 * callers the rest is one without a stack.
 */
#define TRIFLE_PART 20000
#define TRIFLE_CALLERS 10000
#define TRIFLE_FRAMES 8 // from the outer end

static bool
is_trifle(const struct report *report, const struct report_site *site)
{
	const struct model_domain *domain = &report->domains[site->of.domain].of;

	return site->of.peak_bytes < domain->peak_bytes / TRIFLE_PART &&
	       site->of.live_bytes < domain->live_bytes / TRIFLE_PART &&
	       site->of.allocated_bytes < domain->allocated_bytes / TRIFLE_PART && site->of.leak != MODEL_LEAK_LEAK;
}

static void
put_site(struct json_write *json, const struct model_site *site, bool is_import, uint32_t node)
{
	JSON_IN (json, NULL, '[') {
		PUT_NUMBERS(json, site->domain, site->peak_bytes, site->live_bytes, site->allocated_bytes,
		            (is_import ? 1u : 0u) | (site->leak == MODEL_LEAK_LEAK ? 2u : 0u), site->process);
		json_write_signed(json, NULL, (int64_t)(int32_t)node); // -1 = none
	}
}

struct trifle_key {
	uint32_t process;
	uint32_t domain;
	uint32_t node;
	uint32_t is_import;
};

struct trifles {
	struct trifle_key key;
	struct model_site sum;
	UT_hash_handle hh;
};

static void
add_trifle(struct trifles **trifles, const struct report_site *site, struct numbers *numbers)
{
	uint32_t frames = site->of.frame_count;
	uint32_t inner = frames > TRIFLE_FRAMES ? frames - TRIFLE_FRAMES : 1;
	struct trifle_key key = {
		.process = site->of.process, .domain = site->of.domain, .node = NO_NODE, .is_import = site->import[0] != '\0'
	};
	struct trifles *found;

	if (HASH_COUNT(*trifles) < TRIFLE_CALLERS && key.is_import == 0)
		key.node = stack_of(site, inner, numbers);
	if (HASH_MADE(*trifles, key, key, found)) {
		found->sum.domain = site->of.domain;
		found->sum.process = site->of.process;
	}
	found->sum.peak_bytes += site->of.peak_bytes;
	found->sum.live_bytes += site->of.live_bytes;
	found->sum.allocated_bytes += site->of.allocated_bytes;
}

static void
put_sites(struct json_write *json, const struct report *report, struct numbers *numbers)
{
	struct trifles *trifles = NULL;

	JSON_IN (json, "sites", '[') {
		for (size_t i = 0; i < report->site_total; i++) {
			struct report_site site = report_site(report, i);

			progress_show("writing the page", i, report->site_total);
			if (is_trifle(report, &site))
				add_trifle(&trifles, &site, numbers);
			else
				put_site(json, &site.of, site.import[0] != '\0', stack_of(&site, 0, numbers));
		}
		for (const struct trifles *sum = trifles; sum != NULL; sum = sum->hh.next) {
			if (sum->sum.allocated_bytes != 0)
				put_site(json, &sum->sum, sum->key.is_import != 0, sum->key.node);
		}
	}
	HASH_FREE(trifles, free);
}

static void
put_frames(struct json_write *json, struct numbers *numbers)
{
	JSON_IN (json, "nodes", '[') {
		for (const struct number *node = numbers->nodes; node != NULL; node = node->hh.next) {
			const struct node_key *key = (const void *)node->key;

			json_write_signed(json, NULL, (int64_t)(int32_t)key->parent);
			put_number(json, key->frame);
		}
	}
	JSON_IN (json, "frames", '[') {
		for (const struct number *at = numbers->frames; at != NULL; at = at->hh.next) {
			const struct model_frame *frame = *(const struct model_frame *const *)(const void *)at->key;

			JSON_IN (json, NULL, '[') {
				put_number(json, text_number(numbers, verdict_frame_text(frame, PLACE_ROOM)));
				put_number(json, text_number(numbers, frame->file));
				put_number(json, frame->line);
				put_number(json, text_number(numbers, frame->module));
				put_number(json, (frame->is_user ? 1u : 0u) | (frame->kind == MODEL_FRAME_PYTHON ? 2u : 0u));
			}
		}
	}
}

static void
put_texts(struct json_write *json, const struct numbers *numbers)
{
	JSON_IN (json, "texts", '[') {
		for (const struct number *text = numbers->texts; text != NULL; text = text->hh.next)
			json_write_text(json, NULL, text->key);
	}
}

static void
put_sources(struct json_write *json, const struct report *report, const struct source_files *files,
            struct numbers *numbers)
{
	JSON_IN (json, "sources", '[') {
		for (size_t i = 0; i < files->count; i++) {
			struct report_source source;

			if (!report_line_source(report, files->lines[i], &source))
				continue;
			JSON_IN (json, NULL, '{') {
				json_write_number(json, "file", text_number(numbers, source.file));
				JSON_IN (json, "lines", '[') {
					for (uint32_t line = 0; line < source.text.line_count && line < SOURCE_LINES_MAX; line++) {
						put_number(json, source.text.indents[line]);
						json_write_text(json, NULL, source.text.lines[line]);
					}
				}
			}
		}
	}
}

static void
put_losses(struct json_write *json, const struct report *report)
{
	JSON_IN (json, "losses", '[') {
		for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++) {
			const char *meaning = report->losses[i] != 0 ? report_loss_meaning(i, report->losses[i]) : NULL;

			if (meaning == NULL)
				continue;
			JSON_IN (json, NULL, '[') {
				put_number(json, report->losses[i]);
				json_write_text(json, NULL, meaning);
				json_write_bool(json, NULL, report_loss_is_serious(i));
			}
		}
	}
	JSON_IN (json, "damages", '[') {
		for (size_t i = 0; i < report->damage_count; i++)
			json_write_text(json, NULL, report->damages[i]);
	}
}

void
page_data_write(const struct report *report, const struct page_options *options, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 1, .is_dense = true };
	struct numbers numbers = { .texts = NULL };
	struct source_files files = { .count = 0 };

	JSON_IN (&json, NULL, '{') {
		json_write_number(&json, "version", DATA_VERSION);
		json_write_text(&json, "capture", report->argument);
		json_write_number(&json, "began_ms",
		                  report->process_count != 0 ? report->processes[0].start_realtime_ns / 1000000 : 0);
		put_verdict(&json, report);
		put_domains(&json, report);
		put_processes(&json, report, &numbers);
		put_lines(&json, report, options, &files, &numbers);
		put_sites(&json, report, &numbers);
		if (options->has_source)
			put_sources(&json, report, &files, &numbers);
		put_frames(&json, &numbers);
		put_losses(&json, report);
		put_texts(&json, &numbers);
	}
	free(files.is_there);
	free(files.lines);
	numbers_free(&numbers.texts);
	numbers_free(&numbers.frames);
	numbers_free(&numbers.nodes);
}
