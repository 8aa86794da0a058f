/*
 * render_tree.c - who called what that held it, from the outermost frame inwards.
 *
 * Of a stack with Python's frames only these are shown; with is_native all. Left out are frames of libraries that only pass memory on,
 * because the frames around them hold the same, and what frame_rules_is_machinery() names. With has_all nothing is left out. Nodes below
 * one caller that would read the same are one row. Small ones are summed up. By function, file, module or package neighbouring frames of
 * one group are one node; by thread the threads stand outermost.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "analysis/rank.h"
#include "base/amount.h"
#include "base/document.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/text_pool.h"
#include "base/units.h"
#include "model/frame_rules.h"
#include "report/grouping.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/words.h"

#define SHOWN_PART 100 // of all: a node with less is summed up
#define SAME_PART 50   // a child that lacks less than this of its parent holds the same
#define DEPTH_MAX 40   // levels that are shown

struct node_key {
	const void *parent;
	const void *frame; // report_frame's identity
};

struct node {
	struct node_key key;
	struct node *parent;
	struct node *first_child;
	struct node *next; // child of the same parent
	struct report_frame frame;
	const char *label; // of what frames were put together; NULL = a frame as it is
	bool is_kept;      // shown also where it only passes memory on
	uint64_t bytes;
	UT_hash_handle hh;
};

struct tree {
	const struct tree_options *options;
	struct text_pool *labels;
	struct node *nodes; // uthash
	struct node root;
	uint64_t import_bytes;
	uint64_t untouched_bytes; // in no figure
};

static struct node *
child_of(struct tree *tree, struct node *parent, const void *identity)
{
	const struct node_key key = { parent, identity };
	struct node *found;

	if (HASH_MADE(tree->nodes, key, key, found)) {
		found->parent = parent;
		found->next = parent->first_child;
		parent->first_child = found;
	}
	return found;
}

/* The group's node below this one; this one itself where its frame is of the same group. */
static struct node *
enter_group(struct tree *tree, struct node *node, const char *text)
{
	const char *label = text_pool_add_text(tree->labels, text); // equal texts are one pointer

	if (node->label == label)
		return node;
	node = child_of(tree, node, label);
	node->label = label;
	node->is_kept = tree->options->grouping != GROUPING_FUNCTION;
	return node;
}

static bool
has_python(const struct report_site *site)
{
	return ANY(frame, site->of.frames, site->of.frame_count, (*frame)->kind == MODEL_FRAME_PYTHON);
}

/* Do native frames count? Half of a module or a package is native code. */
static bool
has_native_frames(const struct tree *tree, const struct report_site *site)
{
	enum grouping grouping = tree->options->grouping;

	return tree->options->is_native || grouping == GROUPING_MODULE || grouping == GROUPING_PACKAGE || !has_python(site);
}

/* Is the frame of machinery, for which nobody looks? */
static bool
is_hidden(const struct model_site *site, uint32_t number)
{
	return frame_rules_is_machinery(site->frames[number], number > 0 ? site->frames[number - 1] : NULL);
}

/* Adds the stack's frames below the node, from outside inwards. is_whole: with the hidden ones. Returns the innermost node. */
static struct node *
add_frames(struct tree *tree, struct node *node, const struct report_site *site, uint64_t bytes, bool is_whole)
{
	bool is_native = has_native_frames(tree, site);
	enum grouping grouping = tree->options->grouping;
	bool is_by_frame = grouping == GROUPING_LINE || grouping == GROUPING_THREAD;
	char text[PLACE_TEXT_BYTES];

	for (uint32_t i = site->of.frame_count; i > 0; i--) {
		struct report_frame frame = report_frame(site, i - 1);
		struct node *outer = node;

		if ((!is_native && frame.of.kind != MODEL_FRAME_PYTHON) || (!is_whole && is_hidden(&site->of, i - 1)))
			continue;
		if (is_by_frame)
			node = child_of(tree, node, frame.identity);
		else if (grouping_of_frame(grouping, &frame, text))
			node = enter_group(tree, node, text);
		if (node == outer)
			continue;
		node->frame = frame;
		node->is_kept = node->is_kept || tree->options->has_all;
		node->bytes += bytes;
	}
	return node;
}

static void
add_site(struct tree *tree, const struct report_site *site, uint64_t bytes)
{
	struct node *node = &tree->root;
	char text[PLACE_TEXT_BYTES];

	node->bytes += bytes;
	if (tree->options->grouping == GROUPING_THREAD) {
		grouping_thread(site, text);
		node = enter_group(tree, node, text);
		node->bytes += bytes;
	}

	struct node *outer = node;

	node = add_frames(tree, outer, site, bytes, tree->options->has_all);
	if (node == outer) // it has hidden frames alone: they are better than no row
		(void)add_frames(tree, outer, site, bytes, true);
}

/* The node that is shown in its place: inwards as long as a library's frame only passes memory on. */
static const struct node *
inwards(const struct node *node)
{
	for (;;) {
		const struct node *same = NULL;

		for (const struct node *child = node->first_child; child != NULL; child = child->next) {
			if (child->bytes + node->bytes / SAME_PART >= node->bytes)
				same = child;
		}
		if (same == NULL || node->frame.of.is_user || node->is_kept)
			return node;
		node = same;
	}
}

static void
add_line(uint64_t bytes, uint64_t all_bytes, const char *branch, const char *text, struct document *document)
{
	OWNED char *place = memory_printed("%s%s", branch, text);

	DOCUMENT_ROW(document, UNITS_BYTES_IN(units_column_of(all_bytes), bytes),
	             UNITS_SHARE(verdict_share(bytes, all_bytes)), place);
}

/* Nodes that read the same: several addresses of one line, or nodes that were left with the same line after folding. */
struct row {
	char *text;
	const struct node **nodes;
	size_t count;
	uint64_t bytes;
	UT_hash_handle hh;
};

static void
add_to_row(struct row **rows, const struct node *node)
{
	const struct model_frame *frame = &node->frame.of;
	const char *text = node->label;
	char place[PLACE_TEXT_BYTES];
	struct row *found;

	if (text == NULL)
		text = verdict_frame_text(frame, place);
	(void)HASH_TEXT_MADE(*rows, text, text, found);
	*MEMORY_NEXT(found->nodes, found->count) = node;
	found->bytes += node->bytes;
}

static int
compare_rows(const struct row *a, const struct row *b)
{
	return order_numbers(b->bytes, a->bytes)
	           ?: order_numbers(a->nodes[0]->frame.of.line, b->nodes[0]->frame.of.line) ?: strcmp(a->text, b->text);
}

/* All that these nodes called, the largest first; each for free_row(). */
static struct row *
rows_below(const struct node *const *parents, size_t count)
{
	struct row *rows = NULL;

	for (size_t i = 0; i < count; i++) {
		for (const struct node *child = parents[i]->first_child; child != NULL; child = child->next)
			add_to_row(&rows, inwards(child));
	}
	HASH_SORT(rows, compare_rows);
	return rows;
}

static void
free_row(struct row *row)
{
	free(row->text);
	free(row->nodes);
	free(row);
}

static void
add_below(const struct node *const *parents, size_t count, uint64_t all_bytes, const char *before, unsigned depth,
          struct document *document)
{
	struct row *rows = rows_below(parents, count);
	size_t shown = 0;
	size_t left = 0;
	uint64_t rest_bytes = 0;
	char branch[8 * DEPTH_MAX + 16];
	char text[PLACE_TEXT_BYTES];

	for (const struct row *row = rows; row != NULL; row = row->hh.next) {
		bool is_shown = row->bytes >= all_bytes / SHOWN_PART && row->bytes != 0;

		shown += is_shown;
		left += !is_shown;
		rest_bytes += is_shown ? 0 : row->bytes;
	}
	bool has_rest = shown != 0 && rest_bytes >= all_bytes / SHOWN_PART && rest_bytes != 0;

	for (const struct row *row = rows; shown != 0 && depth < DEPTH_MAX; row = row->hh.next) {
		bool is_last = --shown == 0 && !has_rest;

		(void)snprintf(branch, sizeof(branch), "%s%s", before, depth == 0 ? "" : is_last ? "└─ " : "├─ ");
		add_line(row->bytes, all_bytes, branch, row->text, document);
		(void)snprintf(branch, sizeof(branch), "%s%s", before, depth == 0 ? "" : is_last ? "   " : "│  ");
		add_below(row->nodes, row->count, all_bytes, branch, depth + 1, document);
	}
	if (has_rest && depth < DEPTH_MAX) {
		(void)snprintf(branch, sizeof(branch), "%s%s", before, depth == 0 ? "" : "└─ ");
		(void)snprintf(text, sizeof(text), "%zu smaller", left);
		add_line(rest_bytes, all_bytes, branch, text, document);
	}
	HASH_FREE(rows, free_row);
}

void
render_tree(const struct report *report, const struct tree_options *options, struct document *document)
{
	static const struct document_column columns[] = { { "", 9, 0 }, { "", 7, 0 }, { "", -1, 0 }, { .title = NULL } };
	struct tree tree = { .options = options, .labels = text_pool_new() };
	bool has_devices = false;

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);
		uint64_t asked_bytes = options->bytes_of(&site.of);
		uint64_t bytes = amount_less(asked_bytes, options->is_of_all_time ? 0 : site.of.untouched_bytes);

		has_devices = has_devices ||
		              (bytes != 0 && report->domain == NULL && report->domains[site.of.domain].is_device);
		if (!report_sums_up(report, site.of.domain))
			continue;
		tree.untouched_bytes += asked_bytes - bytes;
		if (bytes == 0)
			continue;
		if (site.import[0] != '\0' || (!options->has_all && !options->is_native && rank_is_import(&site.of)))
			tree.import_bytes += bytes;
		else
			add_site(&tree, &site, bytes);
	}

	uint64_t all_bytes = tree.root.bytes + tree.import_bytes;

	document_add(document, DOCUMENT_HEADING, NULL, "%s%s%s: %s of %s", options->heading,
	             options->grouping != GROUPING_LINE ? ", by " : "",
	             options->grouping != GROUPING_LINE ? grouping_name(options->grouping) : "", UNITS_BYTES(all_bytes),
	             render_what(report));
	render_peaks_apart(report, options->is_peak ? all_bytes : 0, document);
	render_untouched(tree.untouched_bytes, all_bytes, document);
	document_table(document, NULL, columns);
	add_below((const struct node *const[]){ &tree.root }, 1, all_bytes, "", 0, document);
	if (tree.import_bytes != 0)
		add_line(tree.import_bytes, all_bytes, "", GROUPING_IMPORTS, document);
	render_left_devices(has_devices, document);
	HASH_FREE(tree.nodes, free);
	text_pool_free(tree.labels);
}
