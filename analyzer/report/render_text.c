/*
 * render_text.c - what stands around the tables: what happened, how much in all, what is missing.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/amount.h"
#include "base/document.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/paragraph.h"
#include "base/place.h"
#include "base/units.h"
#include "report/render.h"
#include "report/report.h"

#define PROCESSES_SHOWN 12
#define INDENTS_MAX 6
#define NEXT_INDENT 6
#define BAR_MOST 72                 // columns
#define OLD_NS UINT64_C(1000000000) // of a sample
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
		                              verdict->cause == VERDICT_RUNNING ? "it was last seen" : "the end");
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

#define SAMPLE_LABEL "Sample: "
#define SAMPLE_TEXT                                                                                                          \
	"of the heap one block for each %s is recorded, on average: figures with ≈ are estimates, and a line with fewer than " \
	"16 recorded blocks is not named"

size_t
render_headline(const struct report *report, size_t columns, const char *bold, const char *off, FILE *stream)
{
	const struct report_verdict *verdict = &report->verdict;
	size_t lines = paragraph_put(stream, columns, verdict->headline, 0, 0);

	if (verdict->next[0] != '\0') {
		(void)fprintf(stream, "%sNext:%s ", bold, off);
		lines += paragraph_put(stream, columns, verdict->next, NEXT_INDENT, NEXT_INDENT);
	}
	if (report->heap_sample_bytes != 0)
		lines += paragraph_put(stream, columns,
		                       TEXT(240, SAMPLE_LABEL SAMPLE_TEXT, UNITS_BYTES(report->heap_sample_bytes)), 0,
		                       NEXT_INDENT);
	return lines + put_bar(report, columns, stream);
}

void
render_verdict(const struct report *report, struct document *document)
{
	OWNED char *bar = NULL;
	FILE *stream = memory_stream(&bar, NULL);

	document_add(document, DOCUMENT_PARAGRAPH, NULL, "%s", report->verdict.headline);
	if (report->verdict.next[0] != '\0')
		document_add(document, DOCUMENT_PARAGRAPH, "Next: ", "%s", report->verdict.next);
	if (report->heap_sample_bytes != 0)
		document_add(document, DOCUMENT_PARAGRAPH, SAMPLE_LABEL, SAMPLE_TEXT, UNITS_BYTES(report->heap_sample_bytes));
	(void)put_bar(report, PAGE_COLUMNS, stream);
	memory_stream_close(stream);
	for (char *rest = bar, *line; (line = strsep(&rest, "\n")) != NULL && rest != NULL;)
		document_add(document, DOCUMENT_LINE, NULL, "%s", line);
	if (report->verdict.evidence[0] != '\0')
		document_add(document, DOCUMENT_PARAGRAPH, "Evidence: ", "%s", report->verdict.evidence);
}

static const char *
count_text(const struct report_domain *domain, uint64_t count, char text[UNITS_TEXT_BYTES])
{
	bool is_exact = domain->estimate.error_bytes == 0 || domain->estimate.is_rest_of_arenas;

	return units_count(is_exact ? count : units_rounded(count, 3), text);
}

static const char *
remarks_of(const struct report_domain *domain, char text[256])
{
	uint64_t error_bytes = domain->estimate.error_bytes;
	bool has_rest = domain->estimate.is_rest_of_arenas;

	text[0] = '\0';
	if (error_bytes > domain->of.live_bytes)
		memory_text_add(text, 256, ", live: at most %s, estimated", UNITS_BYTES(domain->of.live_bytes + error_bytes));
	else if (error_bytes != 0)
		memory_text_add(text, 256, ", ±%s, estimated", UNITS_BYTES(error_bytes));
	if (has_rest)
		memory_text_add(text, 256, ", without python/object");
	if (domain->of.returned_bytes != 0)
		memory_text_add(text, 256, ", %s returned by madvise", UNITS_BYTES(domain->of.returned_bytes));
	const char *in_memory = render_in_memory_text(domain->of.untouched_bytes, domain->of.live_bytes, (char[64]){ 0 });

	if (!has_rest && in_memory[0] != '\0')
		memory_text_add(text, 256, ", %s", in_memory);
	if (domain->of.inherited_bytes != 0)
		memory_text_add(text, 256, ", +%s inherited", UNITS_BYTES(domain->of.inherited_bytes));
	return text[0] != '\0' ? text + strlen(", ") : text;
}

/* "700 MiB tensors, 1.2 MiB libfast.so": what a device holds. */
static const char *
parts_text(const struct device_parts *parts, char text[512])
{
	text[0] = '\0';
	EACH (part, parts->parts, parts->part_count)
		memory_text_add(text, 512, "%s%s %s", text[0] != '\0' ? ", " : "", UNITS_BYTES(part->live_bytes), part->name);
	return text;
}

enum kind { MEMORY, DEVICES, ADDRESS_SPACE };

static void
add_domains(const struct report *report, enum kind kind, struct document *document)
{
#define COLUMNS(of)                                                                                         \
	{                                                                                                       \
		{ (of), -16, 0 }, { "peak", 9, 0 }, { "live", 11, 0 }, { "allocated", 12, 0 }, { "blocks", 12, 0 }, \
			{ "calls", 13, 0 }, { "", -1, 0 },                                                              \
	}
	static const struct document_column columns[][8] = { COLUMNS("Memory"), COLUMNS("Devices"),
		                                                 COLUMNS("Address space") };

	document_table(document, NULL, columns[kind]);
	EACH (domain, report->domains, report->domain_count) {
		if (kind != (domain->is_address_space ? ADDRESS_SPACE
		             : domain->is_device      ? DEVICES
		                                      : MEMORY) ||
		    !report_has_domain(report, domain->of.name))
			continue;
		DOCUMENT_ROW(document, TEXT(PLACE_TEXT_BYTES, "  %s", domain->of.name), UNITS_BYTES(domain->of.peak_bytes),
		             UNITS_BYTES(domain->of.live_bytes), UNITS_BYTES(domain->of.allocated_bytes),
		             count_text(domain, domain->of.live_count, UNITS_ROOM),
		             count_text(domain, domain->of.allocated_count, UNITS_ROOM), remarks_of(domain, (char[256]){ 0 }));
		if (domain->parts.part_count != 0)
			document_add(document, DOCUMENT_LINE, NULL, "    live: %s", parts_text(&domain->parts, (char[512]){ 0 }));
	}
}

/* A part of the resident set: what it is. Of the recorder its own parts; where events were lost for lack of room, their blocks are elsewhere. */
static const char *
meaning_of(const struct report_process *process, unsigned part, char text[512])
{
	const char *before = ": ";

	memory_text_in(text, 512, "%s", report_resident_meaning(part));
	for (unsigned n = 1; n <= KMEM_OWN_PARTS && part == KMEM_RESIDENT_OWN; n++) {
		unsigned own = n % KMEM_OWN_PARTS; // the library comes last

		if (report_own_name(own) == NULL || process->of.own_bytes[own] == 0)
			continue;
		memory_text_add(text, 512, "%s%s %s", before, report_own_name(own), UNITS_BYTES(process->of.own_bytes[own]));
		before = ", ";
	}
	if (part == KMEM_RESIDENT_OTHER && process->of.losses[KMEM_LOST_EVENTS] != 0)
		memory_text_add(text, 512, ", or blocks that were not recorded (see Losses)");
	return text;
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
static const char *
resident_caption(const struct report_process *most, bool is_alone, char text[256])
{
	bool is_old = most->resident_age_ns >= AGE_SHOWN_NS;
	const char *seen = UNITS_BYTES(most->resident_bytes);

	memory_text_in(text, 256, "Resident set");
	if (!is_alone)
		memory_text_add(text, 256, " of process %" PRIu32 " alone", most->pid);
	if (is_old)
		memory_text_add(text, 256, ", sampled %.1f s before ", (double)most->resident_age_ns / 1e9);
	else
		memory_text_add(text, 256, " at ");
	memory_text_add(text, 256, most->is_end_known ? "exit" : is_old ? "it was last seen, with " : "the last sample");
	if (is_old && (!most->is_end_known || differs(most->resident_bytes, most->resident_sampled_bytes)))
		memory_text_add(text, 256, "%s%s", most->is_end_known ? "; it was last seen with " : "", seen);
	return text;
}

/* The rows add up. */
static void
add_resident(const struct report *report, struct document *document)
{
	static const struct document_column columns[] = {
		{ "", -16, 0 }, { "", 9, 0 }, { "", -1, DOCUMENT_WRAPPED }, { .title = NULL }
	};
	const struct report_process *most = most_resident(report);

	if (most == NULL)
		return;
	document_table(document, resident_caption(most, report->process_count == 1, (char[256]){ 0 }), columns);
	for (unsigned n = 1; n <= KMEM_RESIDENT_PARTS; n++) {
		unsigned part = n % KMEM_RESIDENT_PARTS; // what is not attributed comes last

		if (report_resident_name(part) != NULL && (most->resident_parts[part] != 0 || part == KMEM_RESIDENT_OTHER))
			DOCUMENT_ROW(document, TEXT(64, "  %s", report_resident_name(part)),
			             UNITS_BYTES(most->resident_parts[part]), meaning_of(most, part, (char[512]){ 0 }));
	}
	DOCUMENT_ROW(document, "  total", UNITS_BYTES(most->resident_sampled_bytes), "");
}

/* Of several processes the figures above are sums: how much of that was there at the same time? */
static void
add_together(const struct report *report, struct document *document)
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
	document_add(document, DOCUMENT_PARAGRAPH, NULL, "  %s", text);
}

static void
add_process(const struct report_process *process, size_t depth, struct document *document)
{
	int indent = 2 * (int)(depth < INDENTS_MAX ? depth : INDENTS_MAX);
	bool is_heir = process->of.inherited_bytes >= COPIES_SHOWN_BYTES;
	const char *copied = process->of.copied_bytes >= COPIES_SHOWN_BYTES
	                         ? TEXT(UNITS_TEXT_BYTES, ">= %.20s", UNITS_BYTES(process->of.copied_bytes))
	                     : !process->is_copied_known ? "not known"
	                                                 : "none seen";

	DOCUMENT_ROW(document, TEXT(64, "  %*s%.*s", indent, "", 27 - indent, process->of.name),
	             TEXT(16, "%" PRIu32, process->pid), report_state_name(process->state),
	             UNITS_BYTES(process->peak_bytes), UNITS_BYTES(process->of.live_bytes),
	             is_heir ? UNITS_BYTES(process->of.inherited_bytes) : "", is_heir ? copied : "");
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
add_children(const struct report *report, const bool *is_shown, int parent, size_t depth, struct document *document)
{
	for (size_t i = 0; i < report->process_count; i++) {
		if (report->processes[i].of.parent != parent)
			continue;
		if (is_shown[i])
			add_process(&report->processes[i], depth, document);
		add_children(report, is_shown, (int)i, depth + is_shown[i], document);
	}
}

static void
add_processes(const struct report *report, struct document *document)
{
	static const struct document_column columns[] = {
		{ "Processes", -30, 0 }, { "pid", 8, 0 },        { "state", -14, 0 }, { "peak", 11, 0 },
		{ "live", 11, 0 },       { "inherited", 11, 0 }, { "copied", 13, 0 }, { .title = NULL },
	};

	if (report->process_count < 2)
		return;
	OWNED bool *is_shown = choose_processes(report);

	document_table(document, NULL, columns);
	add_children(report, is_shown, -1, 0, document);
	if (report->process_count > PROCESSES_SHOWN)
		document_add(document, DOCUMENT_LINE, NULL, "  ... %s more, none larger",
		             UNITS_COUNT(report->process_count - PROCESSES_SHOWN));
}

void
render_totals(const struct report *report, struct document *document)
{
	add_domains(report, MEMORY, document);
	add_domains(report, DEVICES, document);
	add_together(report, document);
	add_domains(report, ADDRESS_SPACE, document);
	if (report->domain != NULL) // what follows is of all domains
		return;
	add_processes(report, document);
	add_resident(report, document);
}

/* "cuda:0 then: 3.0 MiB free of 64.0 MiB; held: 48.0 MiB tensors, ..." */
static void
add_composition(const struct report_request *request, struct document *document)
{
	char text[1024] = "";

	if (request->of.total_bytes != 0)
		TEXT_ADD(text, ", %s free of %s", UNITS_BYTES(request->of.free_bytes), UNITS_BYTES(request->of.total_bytes));
	if (request->parts.part_count != 0)
		TEXT_ADD(text, "%s%s", text[0] != '\0' ? "; " : ", ", parts_text(&request->parts, (char[512]){ 0 }));
	if (request->of.pool_kept_bytes != 0)
		TEXT_ADD(text, ", %s kept by the driver's pools (cudaMallocAsync)", UNITS_BYTES(request->of.pool_kept_bytes));
	if (request->untracked_bytes != 0)
		TEXT_ADD(text, ", %s not tracked (contexts, kernels, other processes)", UNITS_BYTES(request->untracked_bytes));
	if (text[0] == '\0')
		return;
	if (request->pinned_bytes != 0)
		TEXT_ADD(text, "; %s pinned on the host", UNITS_BYTES(request->pinned_bytes));
	document_add(document, DOCUMENT_PARAGRAPH, NULL, "%11s%s then: %s", "",
	             request->device != NULL ? request->device : "the host", text + strlen(", "));
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
add_requests(const struct report *report, struct document *document)
{
	static const struct document_column columns[] = {
		{ "", 9, 0 }, { "", -9, 0 }, { "", -10, 0 }, { "", -1, 0 }, { .title = NULL }
	};
	const struct report_request *told = NULL; // the last one that nobody went on from
	uint64_t count = SUM_OF(process, report->processes, report->process_count, process->of.failed_count);
	uint64_t times = 1;
	bool is_any = false;

	EACH (request, report->requests, report->request_count) {
		bool has_domain = report_has_domain(report, request->domain);

		is_any = is_any || has_domain;
		told = has_domain && request->state != REFUSAL_RECOVERED && request->is_composed ? request : told;
	}
	if (!is_any && (count == 0 || report->domain != NULL))
		return;
	const char *of = TEXT(128, ": %sthe last %zu of %s", report->domain != NULL ? "of " : "", report->request_count,
	                      UNITS_COUNT(count));

	document_table(document, TEXT(160, "Refused requests%s", count > report->request_count ? of : ""), columns);
	EACH (request, report->requests, report->request_count) {
		bool is_last = request + 1 == report->requests + report->request_count;

		if (!report_has_domain(report, request->domain))
			continue;
		if (request != told && !is_last && is_again(request + 1, request)) {
			times++;
			continue;
		}
		DOCUMENT_ROW(document, UNITS_BYTES(request->of.bytes), request->domain, refusal_state_name(request->state),
		             TEXT(PLACE_TEXT_BYTES + 64, "at %s%s", report_place_text(&request->where, PLACE_ROOM),
		                  times > 1 ? TEXT(64, ", %s times", UNITS_COUNT(times)) : ""));
		times = 1;
		if (request == told)
			add_composition(request, document);
	}
}

#define PEAK_ERROR \
	"peaks may be off by up to %s, because threads add up small events first: KMEMSHIM_EXACT_PEAK=1 is exact"

static void
add_losses(const struct report *report, bool is_serious, const char *caption, struct document *document)
{
	static const struct document_column columns[] = { { "", 13, 0 }, { "", -1, DOCUMENT_WRAPPED }, { .title = NULL } };

	document_table(document, caption, columns);
	for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++) {
		if (report_loss_meaning(i, 1) != NULL && report->losses[i] != 0 && report_loss_is_serious(i) == is_serious)
			DOCUMENT_ROW(document,
			             i == KMEM_LOST_EVENT_BYTES ? UNITS_BYTES(report->losses[i]) : UNITS_COUNT(report->losses[i]),
			             report_loss_meaning(i, report->losses[i]));
	}
}

void
render_losses(const struct report *report, struct document *document)
{
	add_losses(report, true, "Losses: figures above are incomplete", document);
}

void
render_peak_error(const struct report *report, struct document *document)
{
	if (report->peak_error_bytes != 0)
		document_add(document, DOCUMENT_LINE, NULL, PEAK_ERROR, UNITS_BYTES(report->peak_error_bytes));
}

const char *
render_summed(const struct report *report, char text[64])
{
	return report->process_count > 1
	           ? memory_text_in(text, 64, ", summed over %s processes", UNITS_COUNT(report->process_count))
	           : "";
}

const char *
render_what(const struct report *report)
{
	return report->domain != NULL ? report->domain : "the host's memory";
}

void
render_left_devices(bool has_devices, struct document *document)
{
	if (has_devices)
		document_add(document, DOCUMENT_LINE, NULL, "Memory of devices is not in these figures: give --domain cuda");
}

void
render_peaks_apart(const struct report *report, uint64_t peak_bytes, struct document *document)
{
	if (report_peaks_are_apart(report, peak_bytes))
		document_add(document, DOCUMENT_LINE, NULL,
		             "(kinds of memory had their peaks at different moments: the most at once was about %s)",
		             UNITS_BYTES(report->processes[0].peak_bytes));
}

static bool
is_much(uint64_t untouched_bytes, uint64_t shown_bytes)
{
	return untouched_bytes >= UNTOUCHED_SHOWN_BYTES && untouched_bytes >= shown_bytes / UNTOUCHED_PART;
}

const char *
render_in_memory_text(uint64_t untouched_bytes, uint64_t shown_bytes, char text[64])
{
	return is_much(untouched_bytes, shown_bytes)
	           ? memory_text_in(text, 64, "%s of it in memory", UNITS_BYTES(amount_less(shown_bytes, untouched_bytes)))
	           : "";
}

bool
render_in_memory(uint64_t untouched_bytes, uint64_t shown_bytes, struct document *document)
{
	const char *text = render_in_memory_text(untouched_bytes, shown_bytes, (char[64]){ 0 });

	if (text[0] != '\0')
		document_add(document, DOCUMENT_BELOW, NULL, "%s", text);
	return text[0] != '\0';
}

void
render_untouched(uint64_t untouched_bytes, uint64_t held_bytes, struct document *document)
{
	if (is_much(untouched_bytes, held_bytes))
		document_add(document, DOCUMENT_LINE, NULL, "%s more was asked for and not touched",
		             UNITS_BYTES(untouched_bytes));
}

/* Which recording this page is of, and of when. */
static void
add_capture(const struct report *report, struct document *document)
{
	const struct report_process *first = &report->processes[0];
	time_t seconds = (time_t)(first->start_realtime_ns / 1000000000);
	char when[32] = "";
	struct tm parts;

	if (localtime_r(&seconds, &parts) != NULL)
		(void)strftime(when, sizeof(when), ", recorded %Y-%m-%d %H:%M", &parts);
	document_add(document, DOCUMENT_LINE, NULL, "Capture: %s%s%s", first->of.path,
	             report->process_count > 1 ? TEXT(64, " and %s more", UNITS_COUNT(report->process_count - 1)) : "",
	             when);
}

__attribute__((format(printf, 2, 3))) static void
add_note(struct document *document, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	OWNED char *text = memory_vprinted(format, values);
	va_end(values);
	DOCUMENT_ROW(document, "", text);
}

/* What a reader may want to know, and misses nothing without. */
static void
add_notes(const struct report *report, struct document *document)
{
	const char *later = TEXT(64, "; %s was allocated later", UNITS_BYTES(report->after_exit_bytes));

	add_losses(report, false, "Notes", document);
	if (report->verify_checked != 0)
		add_note(document, "%s %s verified, %s differed", UNITS_COUNT(report->verify_checked),
		         report->verify_checked == 1 ? "stack was" : "stacks were", UNITS_COUNT(report->verify_mismatched));
	if (report->peak_error_bytes != 0)
		add_note(document, PEAK_ERROR, UNITS_BYTES(report->peak_error_bytes));
	if (report->is_finalizing)
		add_note(document, "live figures are from the moment when Python began to shut down");
	if (report->is_at_exit)
		add_note(document,
		         "live figures are from the moment when the program began to exit, before handlers and destructors%s",
		         report->after_exit_bytes >= TRIFLE_AFTER_EXIT ? later : "");
	EACH (domain, report->domains, report->domain_count) {
		if (domain->of.is_at_refusal && report_has_domain(report, domain->of.name))
			add_note(document,
			         "live figures of %s are from the moment when it refused the request that ended the program",
			         domain->of.name);
	}
	EACH (damage, report->damages, report->damage_count)
		add_note(document, "%s", *damage);
	EACH (process, report->processes, report->process_count) {
		EACH (note, process->of.notes, process->of.note_count)
			add_note(document, "%" PRIu32 ": %s", process->pid, *note);
	}
}

void
render_remarks(const struct report *report, struct document *document)
{
	add_requests(report, document);
	render_losses(report, document);
	if (!report_has_losses(report, true))
		document_add(document, DOCUMENT_LINE, NULL, "Losses: %s",
		             report->is_damaged ? "the damaged parts (see Notes)" : "none");
	add_notes(report, document);
	if (report->process_count != 0)
		add_capture(report, document);
}
