/*
 * render_text.c - what stands around the tables: what happened, how much in all, what is missing.
 *
 * When failing  errors stay in the stream. All texts are cleaned of control characters here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "report/paragraph.h"
#include "report/render.h"
#include "report/report.h"

#define PROCESSES_SHOWN 12
#define INDENTS_MAX 6
#define NEXT_INDENT 6
#define EVIDENCE_INDENT 10
#define BAR_MOST 72                 // columns
#define OLD_NS UINT64_C(1000000000) // of a sample
#define MEANING_COLUMN 27           // of the table of the resident set
#define TRIFLE_AFTER_EXIT (UINT64_C(1) << 20)
#define AGE_SHOWN_NS UINT64_C(100000000)
#define UNTOUCHED_SHOWN_BYTES (UINT64_C(1) << 20)
#define UNTOUCHED_PART 10 // of what is shown
#define DIFFERENT_PART 8
#define COPIES_SHOWN_BYTES (UINT64_C(1) << 20)

static const char *const fills[] = {
	[VERDICT_BAR_LINES] = "█", [VERDICT_BAR_FREED] = "▓",   [VERDICT_BAR_LIBRARIES] = "▒",
	[VERDICT_BAR_FILES] = "=", [VERDICT_BAR_FORK] = "~",    [VERDICT_BAR_OTHERS] = "+",
	[VERDICT_BAR_LATER] = "^", [VERDICT_BAR_UNKNOWN] = "?", [VERDICT_BAR_RECORDER] = "░",
};

/* Below the bar, what is what; a name stays with its part. Returns how many lines it takes. */
static size_t
put_bar_names(const struct report *report, uint64_t whole_bytes, size_t columns, FILE *stream)
{
	const struct report_verdict *verdict = &report->verdict;
	uint64_t age_ns = verdict->memory != NULL ? verdict->memory->of.age_ns : 0;
	size_t column = (size_t)fprintf(stream, "  %s:", UNITS_BYTES(whole_bytes));
	size_t lines = 1;

	for (size_t i = 0; i < verdict->bar_count + (age_ns >= OLD_NS); i++) {
		const struct verdict_part *part = &verdict->bar[i];
		const char *text = i < verdict->bar_count
		                       ? TEXT(128, "%s %s %s%s", fills[part->bar], part->name, UNITS_BYTES(part->bytes),
		                              i + 1 < verdict->bar_count ? "," : "")
		                       : TEXT(128, "(%.1f s before %s)", (double)age_ns / 1e9,
		                              strcmp(verdict->cause, "running") == 0 ? "it was last seen" : "the end");
		size_t width = text_columns(text, strlen(text));
		bool is_new = column + 1 + width > columns;

		(void)fprintf(stream, "%s%s", is_new ? "\n  " : " ", text);
		lines += is_new;
		column = (is_new ? 2 : column + 1) + width;
	}
	(void)fputc('\n', stream);
	return lines;
}

/* One bar of all parts. Returns how many lines it takes. */
static size_t
put_bar(const struct report *report, size_t columns, FILE *stream)
{
	const struct report_verdict *verdict = &report->verdict;
	uint64_t whole_bytes = SUM_OF(part, verdict->bar, verdict->bar_count, part->bytes);
	size_t width = columns - 4 < BAR_MOST ? columns - 4 : BAR_MOST;
	uint64_t told_bytes = 0;
	size_t at = 0;

	if (whole_bytes == 0)
		return 0;
	(void)fputs("  ", stream);
	EACH (part, verdict->bar, verdict->bar_count) {
		told_bytes += part->bytes;
		for (; at < (size_t)((double)told_bytes / (double)whole_bytes * (double)width + 0.5); at++)
			(void)fputs(fills[part->bar], stream);
	}
	(void)fputc('\n', stream);
	return 1 + put_bar_names(report, whole_bytes, columns, stream);
}

size_t
render_headline(const struct report *report, size_t columns, const char *bold, const char *off, FILE *stream)
{
	const struct report_verdict *verdict = &report->verdict;
	size_t lines = paragraph_put(stream, columns, verdict->headline, 0, 0);

	if (verdict->next[0] != '\0') {
		(void)fprintf(stream, "%sNext:%s ", bold, off);
		lines += paragraph_put(stream, columns, verdict->next, NEXT_INDENT, NEXT_INDENT);
	}
	return lines + put_bar(report, columns, stream);
}

void
render_text_verdict(const struct report *report, FILE *stream)
{
	(void)render_headline(report, PAGE_COLUMNS, "", "", stream);
	if (report->verdict.evidence[0] != '\0') {
		(void)fputs("Evidence: ", stream);
		paragraph_put(stream, PAGE_COLUMNS, report->verdict.evidence, EVIDENCE_INDENT, EVIDENCE_INDENT);
	}
}

static const char *
count_text(const struct report_domain *domain, uint64_t count, char text[UNITS_TEXT_BYTES])
{
	bool is_exact = domain->estimate.error_bytes == 0 || domain->estimate.is_rest_of_arenas;

	return units_count(is_exact ? count : units_rounded(count, 3), text);
}

static void
put_domains(const struct report *report, const char *heading, bool is_device, bool is_address_space, FILE *stream)
{
	bool is_first = true;

	EACH (domain, report->domains, report->domain_count) {
		if (domain->is_device != is_device || domain->is_address_space != is_address_space ||
		    !report_has_domain(report, domain->of.name))
			continue;
		if (is_first)
			(void)fprintf(stream, "%-16s%9s%11s%12s%12s%13s\n", heading, "peak", "live", "allocated", "blocks",
			              "calls");
		is_first = false;
		(void)fprintf(stream, "  %-14s%9s%11s%12s %11s %12s", domain->of.name, UNITS_BYTES(domain->of.peak_bytes),
		              UNITS_BYTES(domain->of.live_bytes), UNITS_BYTES(domain->of.allocated_bytes),
		              count_text(domain, domain->of.live_count, UNITS_ROOM),
		              count_text(domain, domain->of.allocated_count, UNITS_ROOM));
		if (domain->estimate.error_bytes > domain->of.live_bytes)
			(void)fprintf(stream, "  live: at most %s, estimated",
			              UNITS_BYTES(domain->of.live_bytes + domain->estimate.error_bytes));
		else if (domain->estimate.error_bytes != 0)
			(void)fprintf(stream, "  ±%s, estimated", UNITS_BYTES(domain->estimate.error_bytes));
		if (domain->estimate.is_rest_of_arenas)
			(void)fprintf(stream, "%s without python/object", domain->estimate.error_bytes != 0 ? "," : " ");
		if (domain->of.returned_bytes != 0)
			(void)fprintf(stream, "  %s returned by madvise", UNITS_BYTES(domain->of.returned_bytes));
		if (!domain->estimate.is_rest_of_arenas &&
		    render_tells_untouched(domain->of.untouched_bytes, domain->of.live_bytes))
			(void)fprintf(stream, "  %s of it not in memory", UNITS_BYTES(domain->of.untouched_bytes));
		if (domain->of.inherited_bytes != 0)
			(void)fprintf(stream, "  +%s inherited", UNITS_BYTES(domain->of.inherited_bytes));
		(void)fputc('\n', stream);
		for (size_t j = 0; j < domain->parts.part_count; j++)
			(void)fprintf(stream, "%s%s %s%s", j == 0 ? "    live: " : ", ",
			              UNITS_BYTES(domain->parts.parts[j].live_bytes), domain->parts.parts[j].name,
			              j + 1 == domain->parts.part_count ? "\n" : "");
	}
}

/* What the recorder itself holds, by part as far as that is known; ends the line. */
static void
put_own(const uint64_t own_bytes[KMEM_OWN_PARTS], FILE *stream)
{
	const char *before = ": ";
	char *text = TEXT(512, "%s", report_resident_meaning(KMEM_RESIDENT_OWN));

	for (unsigned n = 1; n <= KMEM_OWN_PARTS; n++) {
		unsigned part = n % KMEM_OWN_PARTS; // the library comes last

		if (report_own_name(part) == NULL || own_bytes[part] == 0)
			continue;
		memory_text_add(text, 512, "%s%s %s", before, report_own_name(part), UNITS_BYTES(own_bytes[part]));
		before = ", ";
	}
	paragraph_put(stream, PAGE_COLUMNS, text, MEANING_COLUMN, MEANING_COLUMN);
}

/* What is mapped by others. Where events were lost for lack of room, their mappings are among it. */
static void
put_others(const struct report_process *process, FILE *stream)
{
	paragraph_put(
		stream, PAGE_COLUMNS,
		TEXT(256, "%s%s", report_resident_meaning(KMEM_RESIDENT_OTHER),
	         process->of.losses[KMEM_LOST_EVENTS] != 0 ? ", or blocks that were not recorded (see Losses)" : ""),
		MEANING_COLUMN, MEANING_COLUMN);
}

/* So different that one of the two must be of another time. */
static bool
differs(uint64_t seen_bytes, uint64_t sampled_bytes)
{
	uint64_t off_bytes = seen_bytes > sampled_bytes ? seen_bytes - sampled_bytes : sampled_bytes - seen_bytes;

	return seen_bytes != 0 && off_bytes > sampled_bytes / DIFFERENT_PART;
}

/* The process that has most; NULL: nobody looked. */
static const struct report_process *
most_resident(const struct report *report)
{
	const struct report_process *most = NULL;

	EACH (process, report->processes, report->process_count) {
		if (process->resident_parts != NULL &&
		    (most == NULL || process->resident_sampled_bytes > most->resident_sampled_bytes))
			most = process;
	}
	return most;
}

/* Which process the table is about, and which moment. */
static void
put_resident_heading(const struct report_process *most, bool is_alone, FILE *stream)
{
	bool is_old = most->resident_age_ns >= AGE_SHOWN_NS;

	(void)fputs("Resident set", stream);
	if (!is_alone)
		(void)fprintf(stream, " of process %" PRIu32 " alone", most->pid);
	if (!is_old)
		(void)fputs(most->is_end_known ? " at exit" : " at the last sample", stream);
	else
		(void)fprintf(stream, ", sampled %.1f s before %s", (double)most->resident_age_ns / 1e9,
		              most->is_end_known ? "exit" : "it was last seen, with ");
	if (is_old && !most->is_end_known)
		(void)fputs(UNITS_BYTES(most->resident_bytes), stream);
	else if (is_old && differs(most->resident_bytes, most->resident_sampled_bytes))
		(void)fprintf(stream, "; it was last seen with %s", UNITS_BYTES(most->resident_bytes));
	(void)fputc('\n', stream);
}

/* The rows add up. */
static void
put_resident(const struct report *report, FILE *stream)
{
	const struct report_process *most = most_resident(report);

	if (most == NULL)
		return;
	put_resident_heading(most, report->process_count == 1, stream);
	for (unsigned n = 1; n <= KMEM_RESIDENT_PARTS; n++) {
		unsigned part = n % KMEM_RESIDENT_PARTS; // what is not attributed comes last

		if (report_resident_name(part) == NULL || (most->resident_parts[part] == 0 && part != KMEM_RESIDENT_OTHER))
			continue;
		(void)fprintf(stream, "  %-14s%9s%s", report_resident_name(part), UNITS_BYTES(most->resident_parts[part]),
		              report_resident_meaning(part)[0] != '\0' ? "  " : "");
		if (part == KMEM_RESIDENT_OWN)
			put_own(most->of.own_bytes, stream);
		else if (part == KMEM_RESIDENT_OTHER)
			put_others(most, stream);
		else
			(void)fprintf(stream, "%s\n", report_resident_meaning(part));
	}
	(void)fprintf(stream, "  %-14s%9s\n", "total", UNITS_BYTES(most->resident_sampled_bytes));
}

/* Of several processes the figures above are sums: how much of that was there at the same time? */
static void
put_together(const struct report *report, FILE *stream)
{
	char text[1024] = "";
	bool is_first = true;

	if (report->process_count < 2 || !ANY(domain, report->domains, report->domain_count,
	                                      !domain->is_address_space && report_has_domain(report, domain->of.name)))
		return;
	TEXT_ADD(text, "sums over %s processes", UNITS_COUNT(report->process_count));
	EACH (domain, report->domains, report->domain_count) {
		if (domain->is_address_space || !report_has_domain(report, domain->of.name) ||
		    (domain->of.concurrent_peak_bytes >= domain->of.peak_bytes / 100 * 99 &&
		     domain->of.together_live_bytes >= domain->of.live_bytes / 100 * 99))
			continue;
		TEXT_ADD(text, "%s%s %s peak, %s live", is_first ? "; highest at the same time: " : "; ", domain->of.name,
		         UNITS_BYTES(domain->of.concurrent_peak_bytes), UNITS_BYTES(domain->of.together_live_bytes));
		is_first = false;
	}
	if (is_first && report->domain == NULL && report->unknown_end_count != 0)
		TEXT_ADD(text, " that may have run at the same time (the end of %s is not known)",
		         UNITS_COUNT(report->unknown_end_count));
	else if (is_first && report->domain == NULL)
		TEXT_ADD(text, " that ran at the same time");
	(void)fputs("  ", stream);
	paragraph_put(stream, PAGE_COLUMNS, text, 4, 2);
}

static void
put_process(const struct report_process *process, size_t depth, FILE *stream)
{
	depth = depth < INDENTS_MAX ? depth : INDENTS_MAX;
	const char *name = text_cleaned(TEXT(64, "%*s%.*s", (int)(2 * depth), "", (int)(27 - 2 * depth), process->of.name));

	(void)fprintf(stream, "  %-28s%8" PRIu32 "  %-14s%11s%11s", name, process->pid, process->state,
	              UNITS_BYTES(process->peak_bytes), UNITS_BYTES(process->of.live_bytes));
	if (process->of.inherited_bytes >= COPIES_SHOWN_BYTES)
		(void)fprintf(stream, "%11s%13s", UNITS_BYTES(process->of.inherited_bytes),
		              process->of.copied_bytes >= COPIES_SHOWN_BYTES
		                  ? TEXT(UNITS_TEXT_BYTES, ">= %.20s", UNITS_BYTES(process->of.copied_bytes))
		              : !process->is_copied_known ? "not known"
		                                          : "none seen");
	(void)fputc('\n', stream);
}

/* What it held at most, or copied. */
static uint64_t
most_bytes(const struct report_process *process)
{
	uint64_t held = process->peak_bytes > process->of.live_bytes ? process->peak_bytes : process->of.live_bytes;

	return held > process->of.copied_bytes ? held : process->of.copied_bytes;
}

ORDER_OF_POINTERS(compare_by_most, struct report_process,
                  order_numbers(most_bytes(b), most_bytes(a)) ?: (a < b ? -1 : 1))

/* The first one, and of the others the largest. For free(). */
static bool *
choose_processes(const struct report *report)
{
	OWNED const struct report_process **order = memory_zeroed(report->process_count, sizeof(*order));
	bool *is_shown = memory_zeroed(report->process_count, sizeof(*is_shown));

	for (size_t i = 0; i < report->process_count; i++)
		order[i] = &report->processes[i];
	SORT(order + 1, report->process_count - 1, compare_by_most);
	for (size_t i = 0; i < report->process_count && i < PROCESSES_SHOWN; i++)
		is_shown[order[i] - report->processes] = true;
	return is_shown;
}

/* Children below their parents, as far as these are shown. A parent began before its children: no rings. */
static void
put_children(const struct report *report, const bool *is_shown, int parent, size_t depth, FILE *stream)
{
	for (size_t i = 0; i < report->process_count; i++) {
		if (report->processes[i].of.parent != parent)
			continue;
		if (is_shown[i])
			put_process(&report->processes[i], depth, stream);
		put_children(report, is_shown, (int)i, depth + is_shown[i], stream);
	}
}

static void
put_processes(const struct report *report, FILE *stream)
{
	if (report->process_count < 2)
		return;
	OWNED bool *is_shown = choose_processes(report);
	bool has_heirs = ANY(process, report->processes, report->process_count,
	                     is_shown[process - report->processes] && process->of.inherited_bytes >= COPIES_SHOWN_BYTES);

	(void)fprintf(stream, "%-30s%8s  %-14s%11s%11s%s\n", "Processes", "pid", "state", "peak", "live",
	              has_heirs ? "  inherited       copied" : "");

	put_children(report, is_shown, -1, 0, stream);
	if (report->process_count > PROCESSES_SHOWN)
		(void)fprintf(stream, "  ... %s more, none larger\n", UNITS_COUNT(report->process_count - PROCESSES_SHOWN));
}

void
render_text_totals(const struct report *report, FILE *stream)
{
	put_domains(report, "Memory", false, false, stream);
	put_domains(report, "Devices", true, false, stream);
	put_together(report, stream);
	put_domains(report, "Address space", false, true, stream);
	if (report->domain != NULL) // what follows is of all domains
		return;
	put_processes(report, stream);
	put_resident(report, stream);
}

/* "cuda:0 then: 3.0 MiB free of 64.0 MiB; held: 48.0 MiB tensors, ..." */
static void
put_composition(const struct report_request *request, FILE *stream)
{
	const char *device = request->device != NULL ? request->device : "the host";
	char text[512] = "";

	if (request->of.total_bytes != 0)
		TEXT_ADD(text, "%s free of %s", UNITS_BYTES(request->of.free_bytes), UNITS_BYTES(request->of.total_bytes));
	for (size_t i = 0; i < request->parts.part_count; i++)
		TEXT_ADD(text, "%s%s %s",
		         text[0] == '\0' ? ""
		         : i == 0        ? "; "
		                         : ", ",
		         UNITS_BYTES(request->parts.parts[i].live_bytes), request->parts.parts[i].name);
	if (request->of.pool_kept_bytes != 0)
		TEXT_ADD(text, "%s%s kept by the driver's pools (cudaMallocAsync)", text[0] != '\0' ? ", " : "",
		         UNITS_BYTES(request->of.pool_kept_bytes));
	if (request->untracked_bytes != 0)
		TEXT_ADD(text, "%s%s not tracked (contexts, kernels, other processes)", text[0] != '\0' ? ", " : "",
		         UNITS_BYTES(request->untracked_bytes));
	if (text[0] == '\0')
		return;
	if (request->pinned_bytes != 0)
		TEXT_ADD(text, "; %s pinned on the host", UNITS_BYTES(request->pinned_bytes));
	(void)fprintf(stream, "%11s%s then: ", "", device);
	paragraph_put(stream, PAGE_COLUMNS, text, 13, 11 + strlen(device) + 7);
}

/* Tries of one allocator are one row. */
static bool
is_again(const struct report_request *request, const struct report_request *earlier)
{
	return request->of.bytes == earlier->of.bytes && request->domain == earlier->domain &&
	       request->state == earlier->state && request->pid == earlier->pid &&
	       request->where.line == earlier->where.line && request->where.file == earlier->where.file;
}

static void
put_requests(const struct report *report, FILE *stream)
{
	const struct report_request *told = NULL; // the last one that nobody went on from
	uint64_t count = SUM_OF(process, report->processes, report->process_count, process->of.failed_count);
	uint64_t times = 1;
	int width = 9; // of the names of domains
	bool is_any = false;

	for (size_t i = 0; i < report->request_count; i++) {
		if (!report_has_domain(report, report->requests[i].domain))
			continue;
		is_any = true;
		if (!report->requests[i].is_recovered && report->requests[i].is_composed)
			told = &report->requests[i];
		if ((int)strlen(report->requests[i].domain) > width)
			width = (int)strlen(report->requests[i].domain);
	}
	if (!is_any && (count == 0 || report->domain != NULL))
		return;
	if (count > report->request_count)
		(void)fprintf(stream, "Refused requests: %sthe last %zu of %s\n", report->domain != NULL ? "of " : "",
		              report->request_count, UNITS_COUNT(count));
	else
		(void)fputs("Refused requests\n", stream);
	for (size_t i = 0; i < report->request_count; i++) {
		const struct report_request *request = &report->requests[i];

		if (!report_has_domain(report, request->domain))
			continue;
		if (request != told && i + 1 < report->request_count && is_again(request + 1, request)) {
			times++;
			continue;
		}
		(void)fprintf(stream, "%9s  %-*s %-10s at %s", UNITS_BYTES(request->of.bytes), width, request->domain,
		              request->state, report_place_text(&request->where, PLACE_ROOM));
		if (times > 1)
			(void)fprintf(stream, ", %s times", UNITS_COUNT(times));
		times = 1;
		(void)fputc('\n', stream);
		if (request == told)
			put_composition(request, stream);
	}
}

static void
put_losses(const struct report *report, bool is_serious, FILE *stream)
{
	for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++) {
		if (report_loss_meaning(i, 1) == NULL || report->losses[i] == 0 || report_loss_is_serious(i) != is_serious)
			continue;
		(void)fprintf(stream, "%13s  ",
		              i == KMEM_LOST_EVENT_BYTES ? UNITS_BYTES(report->losses[i]) : UNITS_COUNT(report->losses[i]));
		paragraph_put(stream, PAGE_COLUMNS, report_loss_meaning(i, report->losses[i]), 15, 15);
	}
}

static bool
has_notes(const struct report *report)
{
	return ANY(process, report->processes, report->process_count, process->of.note_count != 0) ||
	       ANY(domain, report->domains, report->domain_count,
	           domain->of.is_at_refusal && report_has_domain(report, domain->of.name)) ||
	       report->verify_checked != 0 || report->peak_error_bytes != 0 || report->is_finalizing ||
	       report->is_at_exit || report->damage_count != 0 || report_has_losses(report, false);
}

void
render_text_losses(const struct report *report, FILE *stream)
{
	if (!report_has_losses(report, true))
		return;
	(void)fputs("Losses: figures above are incomplete\n", stream);
	put_losses(report, true, stream);
}

static void
put_peak_error(const struct report *report, const char *peaks, FILE *stream)
{
	if (report->peak_error_bytes != 0)
		(void)fprintf(
			stream,
			"%s may be off by up to %s, because threads add up small events first: KMEMSHIM_EXACT_PEAK=1 is exact\n",
			peaks, UNITS_BYTES(report->peak_error_bytes));
}

void
render_text_peak_error(const struct report *report, FILE *stream)
{
	put_peak_error(report, "Peaks", stream);
}

void
render_peaks_apart(const struct report *report, uint64_t peak_bytes, FILE *stream)
{
	if (report_peaks_are_apart(report, peak_bytes))
		(void)fprintf(stream, "(kinds of memory had their peaks at different moments: the most at once was about %s)\n",
		              UNITS_BYTES(report->processes[0].peak_bytes));
}

bool
render_tells_untouched(uint64_t untouched_bytes, uint64_t shown_bytes)
{
	return untouched_bytes >= UNTOUCHED_SHOWN_BYTES && untouched_bytes >= shown_bytes / UNTOUCHED_PART;
}

void
render_untouched(uint64_t untouched_bytes, uint64_t shown_bytes, FILE *stream)
{
	if (render_tells_untouched(untouched_bytes, shown_bytes))
		(void)fprintf(stream, "%s was asked for and not touched: it is not in these figures\n",
		              UNITS_BYTES(untouched_bytes));
}

/* Which recording this page is of, and of when. */
static void
put_capture(const struct report *report, FILE *stream)
{
	const struct report_process *first = &report->processes[0];
	time_t seconds = (time_t)(first->start_realtime_ns / 1000000000);
	OWNED char *path = text_cleaned(memory_text(first->of.path));
	char when[32] = "";
	struct tm parts;

	if (localtime_r(&seconds, &parts) != NULL)
		(void)strftime(when, sizeof(when), ", recorded %Y-%m-%d %H:%M", &parts);
	(void)fprintf(stream, "Capture: %s", path);
	if (report->process_count > 1)
		(void)fprintf(stream, " and %s more", UNITS_COUNT(report->process_count - 1));
	(void)fprintf(stream, "%s\n", when);
}

static void
put_notes(const struct report *report, FILE *stream)
{
	(void)fputs("Notes\n", stream);
	put_losses(report, false, stream);
	if (report->verify_checked != 0)
		(void)fprintf(stream, "  %s %s verified, %s differed\n", UNITS_COUNT(report->verify_checked),
		              report->verify_checked == 1 ? "stack was" : "stacks were",
		              UNITS_COUNT(report->verify_mismatched));
	put_peak_error(report, "  peaks", stream);
	if (report->is_finalizing)
		(void)fputs("  live figures are from the moment when Python began to shut down\n", stream);
	if (report->is_at_exit)
		(void)fputs(
			"  live figures are from the moment when the program began to exit, before handlers and destructors",
			stream);
	if (report->is_at_exit)
		(void)fprintf(stream, report->after_exit_bytes >= TRIFLE_AFTER_EXIT ? "; %s was\n  allocated later\n" : "\n",
		              UNITS_BYTES(report->after_exit_bytes));
	for (size_t i = 0; i < report->domain_count; i++) {
		if (report->domains[i].of.is_at_refusal && report_has_domain(report, report->domains[i].of.name))
			(void)fprintf(
				stream, "  live figures of %s are from the moment when it refused the request that ended the program\n",
				report->domains[i].of.name);
	}
	for (size_t i = 0; i < report->damage_count; i++) {
		(void)fputs("  ", stream);
		paragraph_put(stream, PAGE_COLUMNS, report->damages[i], 4, 2);
	}
	for (size_t i = 0; i < report->process_count; i++) {
		for (size_t j = 0; j < report->processes[i].of.note_count; j++) {
			(void)fprintf(stream, "  %" PRIu32 ": ", report->processes[i].pid);
			paragraph_put(stream, PAGE_COLUMNS, report->processes[i].of.notes[j], 4, 10);
		}
	}
}

void
render_text_remarks(const struct report *report, FILE *stream)
{
	put_requests(report, stream);
	if (report_has_losses(report, true))
		render_text_losses(report, stream);
	else
		(void)fputs(report->is_damaged ? "Losses: the damaged parts (see Notes)\n" : "Losses: none\n", stream);
	if (has_notes(report))
		put_notes(report, stream);
	if (report->process_count != 0)
		put_capture(report, stream);
}
