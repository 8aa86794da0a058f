/*
 * diff_side.c - from a report to what diff_compare() takes.
 *
 * When failing  it cannot.
 */
#include "diff/diff_side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/text_pool.h"
#include "report/report.h"

#define SOURCE_WORTH_BYTES \
	(UINT64_C(64) << 10) // lines that hold less are shown without their source text: reading it takes time
#define HASH_PRIME UINT64_C(1099511628211)

uint64_t
diff_error_together(uint64_t left, uint64_t right)
{
	return left == 0 || right == 0 ? left + right : (uint64_t)hypot((double)left, (double)right);
}

void
diff_figures_add(struct diff_figures *to, const struct diff_figures *from)
{
	to->live_bytes += from->live_bytes;
	to->peak_bytes += from->peak_bytes;
	to->leaking_bytes += from->leaking_bytes;
	to->untouched_bytes += from->untouched_bytes;
	to->live_error_bytes = diff_error_together(to->live_error_bytes, from->live_error_bytes);
	to->peak_error_bytes = diff_error_together(to->peak_error_bytes, from->peak_error_bytes);
}

static uint64_t
mix(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * HASH_PRIME;
	return (hash ^ 0xff) * HASH_PRIME;
}

/* What an import left is one line a module, whoever imported it. */
static bool
is_module(const struct report_line *line)
{
	return line->of.is_import && line->import[0] != '\0';
}

static const char *
keep(struct diff_side *side, const char *text)
{
	return text_pool_add_text(side->texts, text);
}

/* The whole name: who writes it cuts what is too wide. */
static const char *
keep_place(struct diff_side *side, const struct report_line *line, bool has_number)
{
	const struct report_place *where = &line->where;

	if (is_module(line))
		return keep(side, text_cleaned(TEXT(PLACE_TEXT_BYTES, "import %s", line->import)));
	if (line->is_start_up)
		return keep(side, "interpreter start-up");

	OWNED char *place = place_whole(where->file, has_number ? where->line : 0, where->function, where->module,
	                                has_number ? where->offset : 0);

	const char *relation = model_relation_name(where->relation);
	size_t bytes = strlen(place) + strlen(relation) + sizeof(" []");
	OWNED char *whole = memory_zeroed(bytes, 1);

	(void)snprintf(whole, bytes, relation[0] != '\0' ? "%s [%s]" : "%s%s", place, relation);
	return keep(side, whole);
}

/* What tells lines apart whose functions are one: they are never paired. */
static uint64_t
apart(const struct report_line *line)
{
	uint64_t hash = mix(line->of.is_import ? 2 : 1, line->domain);

	hash = mix(hash, model_relation_name(line->where.relation));
	hash = mix(hash, line->is_start_up ? "start-up" : "");
	hash = mix(hash, line->estimate.library != NULL ? line->estimate.library : "");
	return mix(hash, line->import);
}

/* The interpreter's start is one line in each domain: its places are those of the interpreter's own source. */
static bool
join_start_up(struct diff_side *side, const struct diff_line *made)
{
	for (size_t i = side->line_count; i-- > 0;) {
		if (side->lines[i].place_key != made->place_key)
			continue;
		diff_figures_add(&side->lines[i].held, &made->held);
		return true;
	}
	return false;
}

static void
take_line(struct diff_side *side, const struct report *report, size_t number)
{
	struct report_line line = report_line_figures(report, number);
	const struct model_site *largest = line.of.largest;
	const struct model_frame *where = largest->where;
	struct diff_line *made = &side->lines[side->line_count];
	uint64_t worth = line.of.live_bytes > line.of.peak_bytes ? line.of.live_bytes : line.of.peak_bytes;
	bool has_function = !is_module(&line) && !line.is_start_up;

	if (worth == 0)
		return;
	if (worth >= SOURCE_WORTH_BYTES)
		line = report_line(report, number);
	*made = (struct diff_line){
		.where = keep_place(side, &line, true),
		.file = keep(side, line.where.file),
		.line = line.where.line,
		.domain = keep(side, line.domain),
		.domain_kind = domain_id_named(line.domain).kind,
		.place_key = apart(&line) + (has_function ? largest->place_key : 0),
		.qualified_key = apart(&line) + (has_function ? largest->qualified_key : 0),
		.position = line.where.line != 0 ? line.where.line : line.where.offset,
		.line_in_function = where != NULL && where->first_line != 0 && where->line >= where->first_line
		                        ? where->line - where->first_line + 1
		                        : 0,
		.block_bytes = line.of.allocated_count != 0 ? line.of.allocated_bytes / line.of.allocated_count : 0,
		.source = keep(side, line.where.source != NULL ? line.where.source : ""),
		.held = { line.of.live_bytes, line.of.peak_bytes, line.of.leaking_bytes, line.of.untouched_bytes,
		          line.estimate.error_bytes, line.estimate.peak_error_bytes },
	};
	made->function = keep_place(side, &line, false);
	if (has_function)
		site_key_likeness(largest, line.domain, made->likeness);
	if (!line.is_start_up || !join_start_up(side, made))
		side->line_count++;
}

static void
take_domains(struct diff_side *side, const struct report *report, const char *domain)
{
	side->domains = memory_zeroed(report->domain_count, sizeof(*side->domains));
	for (size_t i = 0; i < report->domain_count; i++) {
		const struct model_domain *from = &report->domains[i].of;

		if (rank_domain_matches(from->name, domain))
			side->domains[side->domain_count++] = (struct diff_domain){
				keep(side, from->name),
				from->id.kind,
				{ .live_bytes = from->live_bytes,
				  .peak_bytes = from->peak_bytes,
				  .untouched_bytes = from->untouched_bytes },
			};
	}
}

struct diff_side *
diff_side_new(const struct report *report, const char *path, const char *domain)
{
	struct diff_side *side = memory_zeroed(1, sizeof(*side));

	side->texts = text_pool_new();
	side->path = keep(side, path);
	side->session = keep(side, report->session);
	side->process_count = report->process_count;
	side->pid = report->processes[0].pid;
	side->program = keep(side, report->processes[0].of.name);
	side->cause = report->verdict.cause;
	side->python_version = "";
	for (size_t i = 0; i < report->process_count; i++) {
		uint32_t version = report->processes[i].of.python_version;

		if (version != 0 && side->python_version[0] == '\0')
			side->python_version = keep(side, report->processes[i].python_version);
	}
	take_domains(side, report, domain);
	side->lines = memory_zeroed(report->line_total, sizeof(*side->lines));
	for (size_t i = 0; i < report->line_total; i++) {
		if (rank_domain_matches(report_line_figures(report, i).domain, domain))
			take_line(side, report, i);
	}
	return side;
}

void
diff_side_free(struct diff_side *side)
{
	if (side == NULL)
		return;
	text_pool_free(side->texts);
	free(side->lines);
	free(side->domains);
	free(side);
}
