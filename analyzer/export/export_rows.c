/*
 * export_rows.c - lines of code as rows for a database, and as metrics.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/json_write.h"
#include "export/export.h"

#define METRIC_LINES 20 // each is a time series of its own

/* ---- ndjson ---- */

struct export_run
export_run_of(const struct report *report)
{
	struct export_run run = { .session = report->session,
		                      .program = "",
		                      .cause = verdict_cause_name(report->verdict.cause),
		                      .verdict = report->verdict.text,
		                      .process_count = report->process_count };
	const struct kmem_identity *identity;

	if (report->process_count == 0)
		return run;
	run.program = report->processes[0].of.name;
	run.start_realtime_ns = report->processes[0].start_realtime_ns;
	identity = report->processes[0].of.identity;
	if (identity->boot_id[0] == '\0' || strcmp(identity->boot_id, verdict_now()->boot_id) != 0)
		return run;
	if (gethostname(run.host, sizeof(run.host) - 1) != 0)
		run.host[0] = '\0';
	(void)git_revision_find(identity->directory, run.start_realtime_ns, run.revision);
	return run;
}

void
export_rows_of(const struct report *report, const struct export_run *run, FILE *stream)
{
	const struct report_process *process = report->process_count != 0 ? &report->processes[0] : NULL;

	for (size_t i = 0; i < report->line_count; i++) {
		struct report_line line = report_line_figures(report, i);
		struct json_write json = { .stream = stream, .inline_depth = 0 };

		export_progress(stream, i, report->line_count);
		if (!export_is_memory(report, line.of.domain))
			continue;
		json_write_open(&json, NULL, '{');
		json_write_text(&json, "session", run->session);
		json_write_text(&json, "program", run->program);
		json_write_number(&json, "start_realtime_ns", run->start_realtime_ns);
		json_write_text(&json, "host", run->host);
		json_write_text(&json, "git_revision", run->revision);
		json_write_number(&json, "process_count", run->process_count);
		json_write_text(&json, "cause", run->cause);
		json_write_text(&json, "verdict", run->verdict);
		json_write_number(&json, "pid", process != NULL ? process->pid : 0);
		json_write_number(&json, "parent_pid", process != NULL ? process->parent_pid : 0);
		json_write_text(&json, "process", process != NULL ? process->of.name : "");
		json_write_text(&json, "state", report_state_name(process != NULL ? process->state : REPORT_UNKNOWN));
		json_write_text(&json, "domain", line.domain);
		json_write_text(&json, "file", line.where.file);
		json_write_number(&json, "line", line.where.line);
		json_write_text(&json, "function", line.where.function);
		json_write_text(&json, "module", line.where.module);
		json_write_text(&json, "relation", model_relation_name(line.where.relation));
		json_write_bool(&json, "is_import", line.of.is_import);
		json_write_number(&json, "peak_bytes", line.of.peak_bytes);
		json_write_number(&json, "live_bytes", line.of.live_bytes);
		json_write_number(&json, "live_count", line.of.live_count);
		json_write_number(&json, "nonresident_bytes", line.of.untouched_bytes);
		json_write_number(&json, "allocated_bytes", line.of.allocated_bytes);
		json_write_number(&json, "allocated_count", line.of.allocated_count);
		json_write_bool(&json, "is_estimated", line.estimate.is_estimated);
		json_write_number(&json, "error_bytes", line.estimate.error_bytes);
		json_write_number(&json, "peak_error_bytes", line.estimate.peak_error_bytes);
		json_write_number(&json, "samples", line.estimate.samples);
		json_write_text(&json, "leak_class", model_leak_name(line.of.leak));
		json_write_number(&json, "generations_alive", line.of.telling->generations_alive);
		json_write_number(&json, "generations_total", line.of.telling->generations_total);
		json_write_close(&json, '}'); // ends the line
	}
}

void
export_rows(const struct report *report, const struct export_value *value, FILE *stream)
{
	const struct export_run run = export_run_of(report);

	(void)value; // all of them
	export_rows_of(report, &run, stream);
}

/* ---- OpenMetrics ---- */

static void
put_label(const char *name, const char *text, FILE *stream)
{
	(void)fprintf(stream, "%s=\"", name);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			(void)fprintf(stream, "\\%c", *text);
		else if (*text == '\n')
			(void)fputs("\\n", stream);
		else
			(void)fputc(*text, stream);
	}
	(void)fputc('"', stream);
}

static void
put_family(const char *name, const char *type, const char *help, FILE *stream)
{
	(void)fprintf(stream, "# TYPE kmemshim_%s %s\n# UNIT kmemshim_%s bytes\n# HELP kmemshim_%s %s\n", name, type, name,
	              name, help);
}

static void
put_lines(const struct report *report, FILE *stream)
{
	size_t shown = 0;

	put_family("line_live_bytes", "gauge", "Live bytes of the lines of code that held most at the peak.", stream);
	for (size_t i = 0; i < report->line_count && shown < METRIC_LINES; i++) {
		struct report_line line = report_line(report, i);

		if (!export_is_memory(report, line.of.domain) || line.of.is_import)
			continue;
		(void)fputs("kmemshim_line_live_bytes{", stream);
		put_label("domain", line.domain, stream);
		(void)fputc(',', stream);
		put_label("place", report_place_text(&line.where, PLACE_ROOM), stream);
		(void)fprintf(stream, "} %" PRIu64 "\n", line.of.live_bytes);
		shown++;
	}
}

/* A process that replaced itself by exec has a capture for each program. Two series of the same labels are an error. */
static unsigned
times_before(const struct report *report, size_t index)
{
	const struct report_process *process = &report->processes[index];

	return (unsigned)SUM_OF(before, report->processes, index,
	                        before->pid == process->pid && strcmp(before->of.name, process->of.name) == 0);
}

void
export_metrics(const struct report *report, const struct export_value *value, FILE *stream)
{
	static const struct {
		const char *name;
		const char *type;
		const char *suffix; // of a counter's sample
		const char *help;
		size_t offset; // in struct model_domain
	} families[] = {
		{ "live_bytes", "gauge", "", "Live bytes by domain.", offsetof(struct model_domain, live_bytes) },
		{ "peak_bytes", "gauge", "", "Live bytes by domain when they were highest.",
		  offsetof(struct model_domain, peak_bytes) },
		{ "allocated_bytes", "counter", "_total", "Bytes allocated since the start, by domain.",
		  offsetof(struct model_domain, allocated_bytes) },
	};

	(void)value; // all of them
	for (size_t i = 0; i < COUNT_OF(families); i++) {
		put_family(families[i].name, families[i].type, families[i].help, stream);
		for (size_t domain = 0; domain < report->domain_count; domain++) {
			if (!export_is_memory(report, (unsigned)domain))
				continue;
			(void)fprintf(stream, "kmemshim_%s%s{", families[i].name, families[i].suffix);
			put_label("domain", report->domains[domain].of.name, stream);
			(void)fprintf(stream, "} %" PRIu64 "\n",
			              *(const uint64_t *)((const char *)&report->domains[domain].of + families[i].offset));
		}
	}
	put_family("process_peak_bytes", "gauge", "The most that a process held.", stream);
	for (size_t i = 0; i < report->process_count; i++) {
		unsigned times = times_before(report, i);

		(void)fprintf(stream, "kmemshim_process_peak_bytes{pid=\"%" PRIu32 "\",", report->processes[i].pid);
		put_label("name", report->processes[i].of.name, stream);
		if (times != 0)
			(void)fprintf(stream, ",again=\"%u\"", times);
		(void)fprintf(stream, "} %" PRIu64 "\n", report->processes[i].peak_bytes);
	}
	put_lines(report, stream);
	(void)fputs("# EOF\n", stream);
}
