/*
 * export.c - which formats are there (see export.h)?
 */
#include "export/export.h"

#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/progress.h"

static uint64_t
leaked_of(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_LEAK ? site->live_bytes : 0;
}

static uint64_t
allocated_of(const struct model_site *site)
{
	return site->allocated_bytes;
}

const struct export_value export_values[] = {
	{ "peak", "live at the peak", "Held at the peak", model_site_peak },
	{ "live", "live at the end", "Held at the end", model_site_live },
	{ "leaked", "leaking at the end", "Held by leaks", leaked_of },
	{ "allocated", "allocated in all", "Allocated in all", allocated_of },
	{ .name = NULL },
};

static const struct export_format formats[] = {
	{ "folded", true, false, false, export_folded },          // stacks for flamegraph.pl, inferno, speedscope
	{ "speedscope", false, false, false, export_speedscope }, // a profile for https://www.speedscope.app
	{ "pprof", false, true, false, export_pprof },            // a profile for go tool pprof, gzipped
	{ "dhat", false, false, false, export_dhat },             // for dh_view.html of valgrind
	{ "massif", false, false, false, export_massif },         // for ms_print of valgrind, and massif-visualizer
	{ "ndjson", false, false, true, export_rows }, // a JSON object for each line of code and process, for databases
	{ "openmetrics", false, false, false, export_metrics }, // totals and the largest lines, for Prometheus
	{ "html", false, false, false, NULL },                  // the page of kmemshim report --html, which page/ writes
};

const struct export_value *
export_value_find(const char *name)
{
	return FIRST(value, export_values, COUNT_OF(export_values) - 1, strcmp(value->name, name) == 0);
}

const struct export_format *
export_format_find(const char *name)
{
	return FIRST(format, formats, COUNT_OF(formats), strcmp(format->name, name) == 0);
}

const char *
export_format_names(char text[128])
{
	text[0] = '\0';
	EACH (format, formats, COUNT_OF(formats))
		memory_text_add(text, 128, "%s%s", format != formats ? ", " : "", format->name);
	return text;
}

bool
export_is_memory(const struct report *report, unsigned domain)
{
	return !report->domains[domain].is_address_space && report_has_domain(report, report->domains[domain].of.name);
}

void
export_progress(FILE *stream, size_t done, size_t total)
{
	if (isatty(fileno(stream)) != 1)
		progress_show("writing", done, total);
}
