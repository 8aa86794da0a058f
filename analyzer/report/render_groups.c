/*
 * render_groups.c - what functions, files, modules, packages or threads held: "pandas holds 3.1 GiB, of which 2.2 in merge".
 *
 * Each site is in one group, so the groups add up to what the report's lines do; all domains together, without devices and address
 * space. Rows are ordered by what is in memory.
 *
 * When failing  errors stay in the stream.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/units.h"
#include "report/grouping.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/findings.h"

#define PARTS_SHOWN 3
#define PART_OF_GROUP 20 // a part with less is not named
#define TRIFLE_PART 1000 // groups with less of all are summed up, the first excepted

struct figures {
	uint64_t shown_bytes;     // rows are ordered by it; with what is not in memory
	uint64_t untouched_bytes; // of these
	uint64_t peak_bytes;
	uint64_t live_bytes;
	uint64_t leaking_bytes;
	uint64_t live_count;
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	bool is_estimated;
};

struct part {
	char *name;
	uint64_t bytes;
	UT_hash_handle hh;
};

struct group {
	char *name;
	bool is_last; // what imports left, and the like: nobody's doing
	struct figures held;
	struct part *parts; // uthash
	UT_hash_handle hh;
};

/* ---- columns ---- */

struct column {
	const char *title;
	int width;
	size_t of; // in struct figures
	bool is_count;
};

struct view {
	const char *ranking;
	uint64_t (*shown)(const struct model_site *site);
	struct column columns[4]; // the second one is behind the share
};

#define FIGURE(member) offsetof(struct figures, member)

static uint64_t
leaking_bytes(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_LEAK ? site->live_bytes : 0;
}

static const struct view views[] = {
	{ "peak",
	  model_site_peak,
	  { { "peak", 9, FIGURE(peak_bytes), false },
	    { "live", 10, FIGURE(live_bytes), false },
	    { "blocks", 10, FIGURE(live_count), true } } },
	{ "leaks",
	  model_site_live,
	  { { "live", 9, FIGURE(live_bytes), false },
	    { "leaking", 10, FIGURE(leaking_bytes), false },
	    { "blocks", 10, FIGURE(live_count), true } } },
	{ "sites",
	  model_site_live,
	  { { "live", 9, FIGURE(live_bytes), false },
	    { "blocks", 10, FIGURE(live_count), true },
	    { "allocated", 11, FIGURE(allocated_bytes), false },
	    { "calls", 12, FIGURE(allocated_count), true } } },
};

/* ---- gathering ---- */

static struct group *
group_of(struct group **groups, const char *name)
{
	struct group *found;

	if (HASH_TEXT_MADE(*groups, name, name, found))
		found->is_last = strcmp(name, GROUPING_IMPORTS) == 0;
	return found;
}

static void
add_part(struct group *group, const char *name, uint64_t bytes)
{
	struct part *found;

	if (name[0] == '\0' || bytes == 0)
		return;
	(void)HASH_TEXT_MADE(group->parts, name, name, found);
	found->bytes += bytes;
}

static void
add(struct figures *to, const struct report_site *site, uint64_t shown)
{
	to->shown_bytes += shown;
	to->untouched_bytes += site->of.untouched_bytes < shown ? site->of.untouched_bytes : shown;
	to->peak_bytes += site->of.peak_bytes;
	to->live_bytes += site->of.live_bytes;
	to->leaking_bytes += leaking_bytes(&site->of);
	to->live_count += site->of.live_count;
	to->allocated_bytes += site->of.allocated_bytes;
	to->allocated_count += site->of.allocated_count;
	to->is_estimated = to->is_estimated || (site->estimate.is_estimated && site->of.allocated_bytes != 0);
}

static struct group *
gather(const struct report *report, const struct view *view, enum grouping grouping, struct figures *sum,
       bool *has_devices)
{
	struct group *groups = NULL;
	char name[PLACE_TEXT_BYTES];
	char part[PLACE_TEXT_BYTES];

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);
		uint64_t shown = view->shown(&site.of);

		if (!report_sums_up(report, site.of.domain)) {
			*has_devices = *has_devices || (report->domain == NULL && report->domains[site.of.domain].is_device);
			continue;
		}
		grouping_of_site(grouping, &site, name, part);

		struct group *group = group_of(&groups, name);

		add(&group->held, &site, shown);
		add(sum, &site, shown);
		add_part(group, part, shown);
	}
	return groups;
}

static uint64_t
in_memory(const struct figures *held)
{
	return held->shown_bytes - held->untouched_bytes;
}

ORDER_OF_POINTERS(compare_groups, struct group,
	order_numbers(a->is_last, b->is_last) ?: order_numbers(in_memory(&b->held), in_memory(&a->held))
	?: order_numbers(b->held.allocated_bytes, a->held.allocated_bytes) ?: strcmp(a->name, b->name))

static int
compare_parts(const struct part *a, const struct part *b)
{
	return order_numbers(b->bytes, a->bytes) ?: strcmp(a->name, b->name);
}

/* ---- text ---- */

static void
put_figures(const struct view *view, const struct figures *held, const struct figures *sum, FILE *stream)
{
	char text[UNITS_TEXT_BYTES + 4];

	for (size_t i = 0; i < 4 && view->columns[i].title != NULL; i++) {
		const struct column *column = &view->columns[i];
		uint64_t value = *(const uint64_t *)((const char *)held + column->of);

		(void)snprintf(text, sizeof(text), "%s%s", held->is_estimated && !column->is_count ? "≈" : "",
		               column->is_count ? UNITS_COUNT_OF(value, held->is_estimated) : UNITS_BYTES(value));
		(void)fprintf(stream, "%s%*s", i == 0 ? "" : " ", // wide ones do not run into each other
		              column->width - (i != 0) + (held->is_estimated ? (int)strlen("≈") - 1 : 0), text);
		if (i == 0)
			(void)fprintf(stream, "%7s", UNITS_SHARE(verdict_share(in_memory(held), in_memory(sum))));
	}
}

static void
put_heading(const struct report *report, const struct view *view, enum grouping grouping, const struct figures *sum,
            FILE *stream)
{
	(void)fprintf(stream, "%s, by %s: %s of %s", report->heading, grouping_name(grouping),
	              UNITS_BYTES(sum->shown_bytes), report->domain != NULL ? report->domain : "the host's memory");
	if (report->process_count > 1)
		(void)fprintf(stream, ", summed over %zu processes", report->process_count);
	(void)fputc('\n', stream);
	for (size_t i = 0; i < 4 && view->columns[i].title != NULL; i++)
		(void)fprintf(stream, "%*s%s", view->columns[i].width, view->columns[i].title, i == 0 ? "  share" : "");
	(void)fprintf(stream, "  %s\n", grouping_name(grouping));
}

static void
put_group(const struct view *view, struct group *group, const struct figures *sum, FILE *stream)
{
	size_t shown = 0;

	put_figures(view, &group->held, sum, stream);
	(void)fprintf(stream, "  %s\n", group->name);
	if (render_tells_untouched(group->held.untouched_bytes, group->held.shown_bytes))
		(void)fprintf(stream, "%20s%s of it in memory\n", "", UNITS_BYTES(in_memory(&group->held)));
	HASH_SRT(hh, group->parts, compare_parts);
	for (const struct part *part = group->parts; part != NULL && shown < PARTS_SHOWN; part = part->hh.next, shown++) {
		if (part->bytes < group->held.shown_bytes / PART_OF_GROUP || part->bytes == 0)
			break;
		(void)fprintf(stream, "%20s%9s in %s\n", "", UNITS_BYTES(part->bytes), part->name);
	}
}

static void
free_group(struct group *group)
{
	HASH_FREE(group->parts, HASH_NAME_FREE);
	free(group->name);
	free(group);
}

static void
put_rest(uint64_t rest_bytes, size_t rest_count, FILE *stream)
{
	if (rest_count != 0)
		(void)fprintf(stream, "%9s%7s  in %zu other%s\n", UNITS_BYTES(rest_bytes), "", rest_count, UNITS_S(rest_count));
}

/* The rows, then one line for the groups without a row. */
static void
put_rows(const struct view *view, struct group *const *rows, size_t count, uint64_t top, const struct figures *sum,
         FILE *stream)
{
	bool is_of_calls = strcmp(view->ranking, "sites") == 0;
	uint64_t rest_bytes = 0;
	size_t rest_count = 0;
	size_t shown = 0;

	for (size_t i = 0; i < count; i++) {
		const struct figures *held = &rows[i]->held;
		bool is_trifle = shown != 0 && !is_of_calls && held->shown_bytes < sum->shown_bytes / TRIFLE_PART;

		if (held->shown_bytes == 0 && !is_of_calls)
			continue;
		if (!rows[i]->is_last && (shown >= top || is_trifle)) {
			rest_bytes += held->shown_bytes;
			rest_count++;
			continue;
		}
		if (rows[i]->is_last) { // what nobody wrote stands below the rest
			put_rest(rest_bytes, rest_count, stream);
			rest_count = 0;
		}
		put_group(view, rows[i], sum, stream);
		shown++;
	}
	put_rest(rest_bytes, rest_count, stream);
	if (count == 0)
		(void)fprintf(stream, "%9s  nothing was allocated\n", "");
}

void
render_groups(const struct report *report, enum grouping grouping, uint64_t top, FILE *stream)
{
	const struct view *view = views;
	struct figures sum = { .shown_bytes = 0 };
	bool has_devices = false;
	size_t count = 0;

	while (strcmp(view->ranking, report->ranking) != 0)
		view++;

	struct group *groups = gather(report, view, grouping, &sum, &has_devices);
	OWNED struct group **rows = memory_zeroed(HASH_COUNT(groups), sizeof(struct group *));

	for (struct group *group = groups; group != NULL; group = group->hh.next)
		rows[count++] = group;
	SORT(rows, count, compare_groups);
	put_heading(report, view, grouping, &sum, stream);
	put_rows(view, rows, count, top, &sum, stream);
	if (render_tells_untouched(sum.untouched_bytes, sum.shown_bytes))
		(void)fputs("Order and shares count only what is in memory.\n", stream);
	if (sum.is_estimated)
		(void)fputs("≈ estimated in part, from a sample of small Python objects; see docs/report.md\n", stream);
	if (has_devices)
		(void)fputs("Memory of devices is not in these figures: give --domain cuda\n", stream);
	HASH_FREE(groups, free_group);
}
