/*
 * render_tree.c - who called what that held it, from the outermost frame inwards.
 *
 * Shown are Python's frames where a stack has some, else native ones; with is_native all. Frames of libraries between two that hold the
 * same are left out: they only pass memory on. What is small is summed up. By function, file, module or package neighbouring frames of
 * one are one node; by thread the threads stand outermost.
 *
 * When failing  errors stay in the stream. All texts are cleaned of control characters by place_text().
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/units.h"
#include "report/grouping.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/findings.h"

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

struct label {
	char *text;
	UT_hash_handle hh;
};

struct tree {
	const struct tree_look *look;
	struct label *labels; // uthash
	struct node *nodes;   // uthash
	struct node root;
	uint64_t import_bytes;
};

static struct node *
child_of(struct tree *tree, struct node *parent, const void *identity)
{
	const struct node_key key = { parent, identity };
	struct node *found;

	HASH_FIND(hh, tree->nodes, &key, sizeof(key), found);
	if (found == NULL) {
		found = memory_zeroed(1, sizeof(*found));
		found->key = key;
		found->parent = parent;
		found->next = parent->first_child;
		parent->first_child = found;
		HASH_ADD(hh, tree->nodes, key, sizeof(key), found);
	}
	return found;
}

/* Equal texts are one pointer. */
static const char *
label_of(struct tree *tree, const char *text)
{
	struct label *found;

	HASH_FIND_STR(tree->labels, text, found);
	if (found == NULL) {
		found = memory_zeroed(1, sizeof(*found));
		found->text = memory_text(text);
		HASH_ADD_KEYPTR(hh, tree->labels, found->text, strlen(found->text), found);
	}
	return found->text;
}

/* The group's node below; the same one where what called is of the group, too. */
static struct node *
enter_group(struct tree *tree, struct node *node, const char *text)
{
	const char *label = label_of(tree, text);

	if (node->label == label)
		return node;
	node = child_of(tree, node, label);
	node->label = label;
	node->is_kept = tree->look->grouping != GROUPING_FUNCTION;
	return node;
}

static bool
has_python(const struct report_site *site)
{
	for (uint32_t i = 0; i < site->of.frame_count; i++) {
		if (site->of.frames[i]->kind == MODEL_FRAME_PYTHON)
			return true;
	}
	return false;
}

/* Which frames count? Of modules and packages native code is half. */
static bool
has_native_frames(const struct tree *tree, const struct report_site *site)
{
	enum grouping grouping = tree->look->grouping;

	return tree->look->is_native || grouping == GROUPING_MODULE || grouping == GROUPING_PACKAGE || !has_python(site);
}

static void
add_site(struct tree *tree, const struct report_site *site, uint64_t bytes)
{
	bool is_native = has_native_frames(tree, site);
	enum grouping grouping = tree->look->grouping;
	bool is_by_frame = grouping == GROUPING_LINE || grouping == GROUPING_THREAD;
	struct node *node = &tree->root;
	char text[PLACE_TEXT_BYTES];

	node->bytes += bytes;
	if (grouping == GROUPING_THREAD) {
		grouping_thread(site, text);
		node = enter_group(tree, node, text);
		node->bytes += bytes;
	}
	for (uint32_t i = site->of.frame_count; i > 0; i--) {
		struct report_frame frame = report_frame(site, i - 1);
		struct node *outer = node;

		if (!is_native && frame.of.kind != MODEL_FRAME_PYTHON)
			continue;
		if (is_by_frame)
			node = child_of(tree, node, frame.identity);
		else if (grouping_of_frame(grouping, &frame, text))
			node = enter_group(tree, node, text);
		if (node == outer)
			continue;
		node->frame = frame;
		node->bytes += bytes;
	}
}

static int
compare_nodes(const void *left, const void *right)
{
	const struct node *a = *(const struct node *const *)left;
	const struct node *b = *(const struct node *const *)right;

	return order_numbers(b->bytes, a->bytes) ?: order_numbers(a->frame.of.line, b->frame.of.line)
	           ?: strcmp(a->label != NULL ? a->label : "", b->label != NULL ? b->label : "");
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
put_row(uint64_t bytes, uint64_t all_bytes, const char *branch, const char *text, FILE *stream)
{
	char figure[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];

	(void)fprintf(stream, "%9s%7s  %s%s\n", units_bytes(bytes, figure),
	              units_share(verdict_share(bytes, all_bytes), share), branch, text);
}

static void
put_children(const struct node *parent, uint64_t all_bytes, const char *before, unsigned depth, FILE *stream)
{
	const struct node **children = NULL;
	size_t room = 0;
	size_t count = 0;
	size_t shown = 0;
	uint64_t rest_bytes = 0;
	char branch[8 * DEPTH_MAX + 16];
	char text[PLACE_TEXT_BYTES];

	for (const struct node *child = parent->first_child; child != NULL; child = child->next) {
		children = memory_grown(children, &room, count + 1, sizeof(*children));
		children[count++] = child;
	}
	if (count != 0)
		qsort(children, count, sizeof(const struct node *), compare_nodes);
	while (shown < count && children[shown]->bytes >= all_bytes / SHOWN_PART && children[shown]->bytes != 0)
		shown++;
	for (size_t i = shown; i < count; i++)
		rest_bytes += children[i]->bytes;
	bool has_rest = shown != 0 && rest_bytes >= all_bytes / SHOWN_PART && rest_bytes != 0;

	for (size_t i = 0; i < shown && depth < DEPTH_MAX; i++) {
		const struct node *node = inwards(children[i]);
		const struct model_frame *frame = &node->frame.of;
		bool is_last = i + 1 == shown && !has_rest;

		(void)snprintf(branch, sizeof(branch), "%s%s", before, depth == 0 ? "" : is_last ? "└─ " : "├─ ");
		if (node->label == NULL)
			(void)place_text(frame->file, frame->line, frame->function, frame->module, node->frame.offset, text);
		put_row(node->bytes, all_bytes, branch, node->label != NULL ? node->label : text, stream);
		(void)snprintf(branch, sizeof(branch), "%s%s", before, depth == 0 ? "" : is_last ? "   " : "│  ");
		put_children(node, all_bytes, branch, depth + 1, stream);
	}
	if (has_rest && depth < DEPTH_MAX) {
		(void)snprintf(branch, sizeof(branch), "%s%s", before, depth == 0 ? "" : "└─ ");
		(void)snprintf(text, sizeof(text), "%zu smaller", count - shown);
		put_row(rest_bytes, all_bytes, branch, text, stream);
	}
	free(children);
}

void
render_tree(const struct report *report, const struct tree_look *look, FILE *stream)
{
	struct tree tree = { .look = look };
	struct node *node;
	struct node *next;
	struct label *label;
	struct label *next_label;
	char figure[UNITS_TEXT_BYTES];
	uint64_t all_bytes;

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);
		uint64_t bytes = look->bytes_of(&site.of);

		if (bytes == 0 || !report_sums_up(report, site.of.domain))
			continue;
		if (site.import[0] != '\0')
			tree.import_bytes += bytes;
		else
			add_site(&tree, &site, bytes);
	}
	all_bytes = tree.root.bytes + tree.import_bytes;
	(void)fprintf(stream, "%s%s%s: %s of %s\n", look->heading, look->grouping != GROUPING_LINE ? ", by " : "",
	              look->grouping != GROUPING_LINE ? grouping_name(look->grouping) : "", units_bytes(all_bytes, figure),
	              report->domain != NULL ? report->domain : "the host's memory");
	put_children(&tree.root, all_bytes, "", 0, stream);
	if (tree.import_bytes != 0)
		put_row(tree.import_bytes, all_bytes, "", "left by imports and the interpreter", stream);
	HASH_ITER(hh, tree.nodes, node, next)
	{
		HASH_DEL(tree.nodes, node);
		free(node);
	}
	HASH_ITER(hh, tree.labels, label, next_label)
	{
		HASH_DEL(tree.labels, label);
		free(label->text);
		free(label);
	}
}
