/*
 * export_stacks.c - call sites with their stacks: folded stacks, and speedscope's profiles.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json_write.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "export/export.h"
#include "verdict/words.h"

/* ---- folded ---- */

/* A ';' parts frames, and a line ends the stack. */
static void
put_frame(const char *text, FILE *stream)
{
	for (; *text != '\0'; text++)
		(void)fputc(*text == ';' ? ':' : *text, stream);
}

/* The domain stands first: a stack may have memory of several kinds. */
void
export_folded(const struct report *report, const struct export_value *value, FILE *stream)
{
	char text[PLACE_TEXT_BYTES];

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);

		export_progress(stream, i, report->site_total);

		if (!export_is_memory(report, site.of.domain) || value->of(&site.of) == 0)
			continue;
		put_frame(site.domain, stream);
		if (site.of.frame_count == 0)
			(void)fputs(";unknown place", stream);
		for (uint32_t n = site.of.frame_count; n > 0; n--) {
			(void)fputc(';', stream);
			put_frame(verdict_frame_text(site.of.frames[n - 1], text), stream);
		}
		(void)fprintf(stream, " %" PRIu64 "\n", value->of(&site.of));
	}
}

/* ---- speedscope ---- */

/* The sites of a domain of memory: they are gone through for each value three times, and each takes time. */
struct domain_sites {
	size_t domain;
	size_t *numbers;
	size_t count;
};

static void
gather_sites(const struct report *report, size_t domain, struct domain_sites *sites)
{
	*sites = (struct domain_sites){ .domain = domain };
	if (!export_is_memory(report, (unsigned)domain))
		return;
	sites->numbers = memory_zeroed(report->site_total, sizeof(*sites->numbers));
	for (size_t i = 0; i < report->site_total; i++) {
		if (report_site(report, i).of.domain == domain)
			sites->numbers[sites->count++] = i;
	}
}

/* One profile for a domain and a value; nothing where there is none. */
static void
put_profile(struct json_write *json, const struct report *report, const struct domain_sites *sites,
            const struct export_value *value, struct number **frames)
{
	uint64_t total = 0;
	char name[128];

	for (size_t i = 0; i < sites->count; i++) {
		struct report_site site = report_site(report, sites->numbers[i]);

		total += value->of(&site.of);
	}
	if (total == 0)
		return;
	(void)snprintf(name, sizeof(name), "%s: %s", report->domains[sites->domain].of.name, value->meaning);
	JSON_IN (json, NULL, '{') {
		json_write_text(json, "type", "sampled");
		json_write_text(json, "name", name);
		json_write_text(json, "unit", "bytes");
		json_write_number(json, "startValue", 0);
		json_write_number(json, "endValue", total);
		JSON_IN (json, "samples", '[') {
			for (size_t i = 0; i < sites->count; i++) {
				struct report_site site = report_site(report, sites->numbers[i]);

				export_progress(json->stream, i, sites->count);
				if (value->of(&site.of) == 0)
					continue;
				JSON_IN (json, NULL, '[') {
					for (uint32_t n = site.of.frame_count; n > 0; n--) {
						json_write_number(
							json, NULL,
							numbers_of(frames, &site.of.frames[n - 1], sizeof(site.of.frames[0]), NULL)->number);
					}
				}
			}
		}
		JSON_IN (json, "weights", '[') {
			for (size_t i = 0; i < sites->count; i++) {
				struct report_site site = report_site(report, sites->numbers[i]);

				if (value->of(&site.of) != 0)
					json_write_number(json, NULL, value->of(&site.of));
			}
		}
	}
}

void
export_speedscope(const struct report *report, const struct export_value *value, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 3 };
	struct number *frames = NULL;
	char text[PLACE_TEXT_BYTES];

	(void)value; // all of them
	JSON_IN (&json, NULL, '{') {
		json_write_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
		json_write_text(&json, "exporter", "kmemshim");
		json_write_text(&json, "name", report->process_count != 0 ? report->processes[0].of.name : "");
		JSON_IN (&json, "profiles", '[') {
			for (size_t domain = 0; domain < report->domain_count; domain++) {
				struct domain_sites sites;

				gather_sites(report, domain, &sites);
				for (const struct export_value *each = export_values; each->name != NULL; each++)
					put_profile(&json, report, &sites, each, &frames);
				free(sites.numbers);
			}
		}
		JSON_IN (&json, "shared", '{') {
			JSON_IN (&json, "frames", '[') {
				for (const struct number *at = frames; at != NULL; at = at->hh.next) {
					const struct model_frame *frame = *(const struct model_frame *const *)(const void *)at->key;

					JSON_IN (&json, NULL, '{') {
						json_write_text(&json, "name", verdict_frame_text(frame, text));
						if (frame->file[0] != '\0')
							json_write_text(&json, "file", frame->file);
						if (frame->line != 0)
							json_write_number(&json, "line", frame->line);
					}
				}
			}
		}
	}
	numbers_free(&frames);
	(void)fputc('\n', stream);
}
