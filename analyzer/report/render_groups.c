/*
 * render_groups.c - what functions, files, modules, packages or threads held: "pandas holds 3.1 GiB, of which 2.2 in merge".
 *
 * Each site is in one group, so the groups add up to what the report's lines do; all domains together, without devices and address
 * space. As there, rows are in the order of what is in memory.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/amount.h"
#include "base/document.h"
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
	uint64_t shown_bytes;     // of the moment that the view shows
	uint64_t untouched_bytes; // of these, not in memory: rows are ordered and shared by the rest
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

struct view {
	uint64_t (*asked)(const struct model_site *site);
	struct document_column columns[7];
};

static const struct view views[] = {
	[RANK_PEAK] = { model_site_peak,
	                { { "peak", 9, 0 }, { "share", 7, 0 }, { "live", 10, 0 }, { "blocks", 10, 0 }, { "", -1, 0 } } },
	[RANK_LEAKS] = { model_site_live,
	                 { { "live", 9, 0 },
	                   { "share", 7, 0 },
	                   { "leaking", 10, 0 },
	                   { "blocks", 10, 0 },
	                   { "", -1, 0 } } },
	[RANK_SITES] = { model_site_live,
	                 { { "live", 9, 0 },
	                   { "share", 7, 0 },
	                   { "blocks", 10, 0 },
	                   { "allocated", 11, 0 },
	                   { "calls", 12, 0 },
	                   { "", -1, 0 } } },
};

static void
add_figures(const struct view *view, const struct figures *held, const char *share, const char *name,
            struct document *document)
{
	bool is_of_peak = view == &views[RANK_PEAK];
	const char *live = UNITS_BYTES_OF(held->live_bytes, held->is_estimated);
	const char *blocks = UNITS_COUNT_OF(held->live_count, held->is_estimated);

	if (view == &views[RANK_SITES])
		DOCUMENT_ROW(document, live, share, blocks, UNITS_BYTES_OF(held->allocated_bytes, held->is_estimated),
		             UNITS_COUNT_OF(held->allocated_count, held->is_estimated), name);
	else
		DOCUMENT_ROW(document, is_of_peak ? UNITS_BYTES_OF(held->peak_bytes, held->is_estimated) : live, share,
		             is_of_peak ? live : UNITS_BYTES_OF(held->leaking_bytes, held->is_estimated), blocks, name);
}

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
add(struct figures *to, const struct report_site *site, uint64_t asked)
{
	to->shown_bytes += asked;
	to->untouched_bytes += amount_lesser(asked, site->of.untouched_bytes);
	to->peak_bytes += site->of.peak_bytes;
	to->live_bytes += site->of.live_bytes;
	to->leaking_bytes += site->of.leak == MODEL_LEAK_LEAK ? site->of.live_bytes : 0;
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
		uint64_t asked = view->asked(&site.of);

		if (!report_sums_up(report, site.of.domain)) {
			*has_devices = *has_devices || (report->domain == NULL && report->domains[site.of.domain].is_device);
			continue;
		}
		grouping_of_site(grouping, &site, name, part);

		struct group *group = group_of(&groups, name);

		add(&group->held, &site, asked);
		add(sum, &site, asked);
		add_part(group, part, asked);
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

/* ---- rows ---- */

static void
add_group(const struct view *view, struct group *group, const struct figures *sum, struct document *document)
{
	size_t shown = 0;

	add_figures(view, &group->held, UNITS_SHARE(verdict_share(in_memory(&group->held), in_memory(sum))), group->name,
	            document);
	(void)render_in_memory(group->held.untouched_bytes, group->held.shown_bytes, document);
	HASH_SRT(hh, group->parts, compare_parts);
	for (const struct part *part = group->parts; part != NULL && shown < PARTS_SHOWN; part = part->hh.next, shown++) {
		if (part->bytes < group->held.shown_bytes / PART_OF_GROUP || part->bytes == 0)
			break;
		document_add(document, DOCUMENT_LINE, NULL, "%20s%9s in %s", "", UNITS_BYTES(part->bytes), part->name);
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
add_rest(uint64_t rest_bytes, size_t rest_count, struct document *document)
{
	if (rest_count != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%9s%7s  in %zu other%s", UNITS_BYTES(rest_bytes), "", rest_count,
		             UNITS_S(rest_count));
}

/* The rows, then one line for the groups without a row. */
static void
add_rows(const struct view *view, struct group *const *rows, size_t count, uint64_t top, const struct figures *sum,
         struct document *document)
{
	bool is_of_calls = view == &views[RANK_SITES];
	uint64_t rest_bytes = 0;
	size_t rest_count = 0;
	size_t shown = 0;

	document_table(document, NULL, view->columns);
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
			add_rest(rest_bytes, rest_count, document);
			rest_count = 0;
		}
		add_group(view, rows[i], sum, document);
		shown++;
	}
	add_rest(rest_bytes, rest_count, document);
	if (count == 0)
		document_add(document, DOCUMENT_LINE, NULL, "%9s  nothing was allocated", "");
}

void
render_groups(const struct report *report, enum grouping grouping, uint64_t top, struct document *document)
{
	const struct view *view = &views[report->ranking];
	struct figures sum = { .shown_bytes = 0 };
	bool has_devices = false;
	size_t count = 0;

	struct group *groups = gather(report, view, grouping, &sum, &has_devices);
	OWNED struct group **rows = memory_zeroed(HASH_COUNT(groups), sizeof(struct group *));

	for (struct group *group = groups; group != NULL; group = group->hh.next)
		rows[count++] = group;
	SORT(rows, count, compare_groups);
	document_add(document, DOCUMENT_HEADING, NULL, "%s, by %s: %s of %s%s", report->heading, grouping_name(grouping),
	             UNITS_BYTES(in_memory(&sum)), render_what(report), render_summed(report, RENDER_SUMMED_ROOM));
	render_untouched(sum.untouched_bytes, in_memory(&sum), document);
	add_rows(view, rows, count, top, &sum, document);
	if (sum.is_estimated)
		document_add(document, DOCUMENT_LINE, NULL, "≈ estimated in part, from a sample; see docs/report.md");
	render_left_devices(has_devices, document);
	HASH_FREE(groups, free_group);
}
