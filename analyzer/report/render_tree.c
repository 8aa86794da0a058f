/*
 * render_tree.c - who called what that held it, from the outermost frame inwards.
 *
 * Shown are Python's frames where a stack has some, else native ones; with is_native all. Frames of libraries between two that hold the
 * same are left out: they only pass memory on. What is small is summed up.
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
	uint64_t bytes;
	UT_hash_handle hh;
};

struct tree {
	struct node *nodes; // uthash
	struct node root;
	uint64_t import_bytes;
};

static struct node *
child_of(struct tree *tree, struct node *parent, const struct report_frame *frame)
{
	const struct node_key key = { parent, frame->identity };
	struct node *found;

	HASH_FIND(hh, tree->nodes, &key, sizeof(key), found);
	if (found == NULL) {
		found = memory_zeroed(1, sizeof(*found));
		found->key = key;
		found->parent = parent;
		found->frame = *frame;
		found->next = parent->first_child;
		parent->first_child = found;
		HASH_ADD(hh, tree->nodes, key, sizeof(key), found);
	}
	return found;
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

static void
add_site(struct tree *tree, const struct report_site *site, uint64_t bytes, bool is_native)
{
	bool is_python_only = !is_native && has_python(site);
	struct node *node = &tree->root;

	node->bytes += bytes;
	for (uint32_t i = site->of.frame_count; i > 0; i--) {
		struct report_frame frame = report_frame(site, i - 1);

		if (is_python_only && frame.of.kind != MODEL_FRAME_PYTHON)
			continue;
		node = child_of(tree, node, &frame);
		node->bytes += bytes;
	}
}

static int
compare_nodes(const void *left, const void *right)
{
	const struct node *a = *(const struct node *const *)left;
	const struct node *b = *(const struct node *const *)right;

	return order_numbers(b->bytes, a->bytes) ?: order_numbers(a->frame.of.line, b->frame.of.line);
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
		if (same == NULL || node->frame.of.is_user)
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
		put_row(node->bytes, all_bytes, branch,
		        place_text(frame->file, frame->line, frame->function, frame->module, node->frame.offset, text), stream);
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
	struct tree tree = { .nodes = NULL };
	struct node *node;
	struct node *next;
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
			add_site(&tree, &site, bytes, look->is_native);
	}
	all_bytes = tree.root.bytes + tree.import_bytes;
	(void)fprintf(stream, "%s: %s of %s\n", look->heading, units_bytes(all_bytes, figure),
	              report->domain != NULL ? report->domain : "the host's memory");
	put_children(&tree.root, all_bytes, "", 0, stream);
	if (tree.import_bytes != 0)
		put_row(tree.import_bytes, all_bytes, "", "left by imports and the interpreter", stream);
	HASH_ITER(hh, tree.nodes, node, next)
	{
		HASH_DEL(tree.nodes, node);
		free(node);
	}
}
