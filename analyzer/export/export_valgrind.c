/*
 * export_valgrind.c - the formats of valgrind's tools: DHAT's for dh_view.html, massif's for ms_print.
 *
 * Both show stacks from the innermost frame outwards. Our outermost group is the domain. What they show and the capture does not know
 * (lifetimes, blocks at the peak) is left out, or 0 where a number must stand.
 *
 * When failing  errors stay in the stream.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/items.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/order.h"
#include "base/units.h"
#include "export/export.h"
#include "verdict/words.h"

#define UNKNOWN "unknown place"

/* ---- moments ---- */

struct moments {
	uint64_t peak_ns; // since the start: when a look saw most live bytes
	uint64_t end_ns;
};

static struct moments
moments_of(const struct report *report)
{
	uint64_t began_ns = report->process_count != 0 ? report->processes[0].of.identity->start_monotonic_ns : 0;
	struct moments found = { 0, 0 };
	uint64_t most = 0;

	for (size_t i = 0; i < report->process_count; i++) {
		const struct model_process *process = &report->processes[i].of;
		uint64_t end_ns = process->ended_monotonic_ns;

		EACH (beat, process->heartbeats, process->heartbeat_count) {
			end_ns = beat->monotonic_ns > end_ns ? beat->monotonic_ns : end_ns;
			if (beat->live_bytes >= most && beat->monotonic_ns > began_ns) {
				most = beat->live_bytes;
				found.peak_ns = beat->monotonic_ns - began_ns;
			}
		}
		if (end_ns > began_ns && end_ns - began_ns > found.end_ns)
			found.end_ns = end_ns - began_ns;
	}
	return found;
}

/* ---- stacks, as trees from the domain inwards to outwards ---- */

struct node_key {
	const void *parent;
	const char *text; // equal texts are one pointer
};
struct node {
	struct node_key key;
	struct node *first_child;
	struct node *next;
	uint64_t bytes;
	uint64_t own_bytes; // of stacks that end here
	UT_hash_handle hh;
};
struct stacks {
	struct number *words;
	struct node *nodes;
	struct node root;
};

static void
free_stacks(struct stacks *stacks)
{
	HASH_FREE(stacks->nodes, free);
	numbers_free(&stacks->words);
}

/* ---- DHAT ---- */

/* One stack of texts: sites that differ in nothing that is shown are one. */
struct point {
	uint32_t *frames; // numbers of words, from 1
	uint32_t frame_count;
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	uint64_t peak_bytes;
	uint64_t live_bytes;
	uint64_t live_count;
	UT_hash_handle hh;
};

static struct point *
gather_points(const struct report *report, struct stacks *stacks)
{
	struct point *points = NULL;
	char text[PLACE_TEXT_BYTES];

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);
		uint32_t count = site.of.frame_count;
		struct point *point;

		if (!export_is_memory(report, site.of.domain))
			continue;
		OWNED uint32_t *frames = memory_zeroed((size_t)count + 2, sizeof(*frames));

		frames[0] = 1 + numbers_of_text(&stacks->words, site.domain);
		frames[1] = 1 + numbers_of_text(&stacks->words, UNKNOWN);
		for (uint32_t n = 0; n < count; n++) {
			frames[n + 1] = 1 + numbers_of_text(&stacks->words, verdict_frame_text(site.of.frames[n], text));
		}
		count = count != 0 ? count + 1 : 2;

		size_t bytes = count * sizeof(*frames);

		HASH_FIND(hh, points, frames, bytes, point);
		if (point == NULL) {
			point = memory_zeroed(1, sizeof(*point));
			point->frames = memory_zeroed(count, sizeof(*frames));
			memcpy(point->frames, frames, bytes);
			point->frame_count = count;
			HASH_ADD_KEYPTR(hh, points, point->frames, bytes, point);
		}
		point->allocated_bytes += site.of.allocated_bytes;
		point->allocated_count += site.of.allocated_count;
		point->peak_bytes += site.of.peak_bytes;
		point->live_bytes += site.of.live_bytes;
		point->live_count += site.of.live_count;
	}
	return points;
}

/*
 * tl (lifetimes) is not known and left out: the viewer says NaN. gbk (blocks at the peak) is not known, and 0. mb is what is known to have
 * been live at least.
 */
static void
put_point(struct json_write *json, const struct point *point)
{
	bool is_peak_larger = point->peak_bytes > point->live_bytes;

	JSON_IN (json, NULL, '{') {
		json_write_number(json, "tb", point->allocated_bytes);
		json_write_number(json, "tbk", point->allocated_count);
		json_write_number(json, "mb", is_peak_larger ? point->peak_bytes : point->live_bytes);
		json_write_number(json, "mbk", is_peak_larger ? 0 : point->live_count);
		json_write_number(json, "gb", point->peak_bytes);
		json_write_number(json, "gbk", 0);
		json_write_number(json, "eb", point->live_bytes);
		json_write_number(json, "ebk", point->live_count);
		JSON_IN (json, "fs", '[') {
			for (uint32_t i = 0; i < point->frame_count; i++)
				json_write_number(json, NULL, point->frames[i]);
		}
	}
}

void
export_dhat(const struct report *report, const struct export_value *value, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 2 };
	struct stacks stacks = { .words = NULL };
	struct point *points = gather_points(report, &stacks);
	const struct report_process *first = report->process_count != 0 ? &report->processes[0] : NULL;
	struct moments moments = moments_of(report);
	struct point *next;

	(void)value; // all of them
	JSON_IN (&json, NULL, '{') {
		json_write_number(&json, "dhatFileVersion", 2);
		json_write_text(&json, "mode", "kmemshim");
		json_write_text(&json, "verb", "Allocated");
		json_write_bool(&json, "bklt", true);
		json_write_bool(&json, "bkacc", false);
		json_write_text(&json, "tu", "µs");
		json_write_text(&json, "Mtu", "s");
		json_write_number(&json, "tuth", 0);
		json_write_text(&json, "cmd", first != NULL ? first->command : "");
		json_write_number(&json, "pid", first != NULL ? first->pid : 0);
		json_write_number(&json, "te", moments.end_ns / 1000);
		json_write_number(&json, "tg", moments.peak_ns / 1000);
		JSON_IN (&json, "pps", '[') {
			for (struct point *point = points; point != NULL; point = next) {
				next = point->hh.next;
				put_point(&json, point);
				HASH_DEL(points, point);
				free(point->frames);
				free(point);
			}
		}
		JSON_IN (&json, "ftbl", '[') {
			json_write_text(&json, NULL, "[root]");
			for (const struct number *word = stacks.words; word != NULL; word = word->hh.next)
				json_write_text(&json, NULL, word->key);
		}
	}
	free_stacks(&stacks);
}

/* ---- massif ---- */

#define THRESHOLD_PART 100 // of a snapshot: what holds less is summed up, as massif does by default

static struct node *
child_of(struct stacks *stacks, struct node *parent, const char *text)
{
	const struct node_key key = { parent, numbers_of(&stacks->words, text, strlen(text) + 1, NULL)->key };
	struct node *found;

	if (HASH_MADE(stacks->nodes, key, key, found)) {
		found->next = parent->first_child;
		parent->first_child = found;
	}
	return found;
}

static void
grow_tree(const struct report *report, uint64_t (*bytes_of)(const struct model_site *site), struct stacks *stacks)
{
	char text[PLACE_TEXT_BYTES];

	for (size_t i = 0; i < report->site_total; i++) {
		struct report_site site = report_site(report, i);
		uint64_t bytes = bytes_of(&site.of);
		struct node *node = &stacks->root;

		if (bytes == 0 || !report_sums_up(report, site.of.domain))
			continue;
		node->bytes += bytes;
		node = child_of(stacks, node, site.domain);
		node->bytes += bytes;
		for (uint32_t n = 0; n < site.of.frame_count; n++) {
			node = child_of(stacks, node, verdict_frame_text(site.of.frames[n], text));
			node->bytes += bytes;
		}
		node->own_bytes += bytes;
	}
}

ORDER_OF_POINTERS(compare_nodes, struct node, order_numbers(b->bytes, a->bytes) ?: strcmp(a->key.text, b->key.text))

/* "n2: 14000 text": how many children follow, those below the threshold as one. */
static void
put_node(const struct node *node, const char *text, unsigned depth, uint64_t threshold, FILE *stream)
{
	OWNED const struct node **children = NULL;
	size_t count = 0;
	size_t shown = 0;
	uint64_t small_bytes = 0;
	size_t small_count = 0;

	for (const struct node *child = node->first_child; child != NULL; child = child->next) {
		*MEMORY_NEXT(children, count) = child;
	}
	SORT(children, count, compare_nodes);
	while (shown < count && children[shown]->bytes >= threshold)
		shown++;
	for (size_t i = shown; i < count; i++, small_count++)
		small_bytes += children[i]->bytes;
	if (node->own_bytes != 0 && count != 0) { // other stacks go on from where this one ends
		small_bytes += node->own_bytes;
		small_count++;
	}
	(void)fprintf(stream, "%*sn%zu: %" PRIu64 " %s\n", (int)depth, "", shown + (small_count != 0), node->bytes, text);
	for (size_t i = 0; i < shown; i++)
		put_node(children[i], children[i]->key.text, depth + 1, threshold, stream);
	if (small_count != 0)
		(void)fprintf(stream,
		              "%*sn0: %" PRIu64 " in %zu place%s, below massif's threshold (%.2f%%), or where the stack ends\n",
		              (int)depth + 1, "", small_bytes, small_count, UNITS_S(small_count), 100.0 / THRESHOLD_PART);
}

static void
put_snapshot(unsigned *number, uint64_t ns, uint64_t bytes, const char *tree, FILE *stream)
{
	(void)fprintf(stream,
	              "#-----------\nsnapshot=%u\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
	              "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
	              (*number)++, ns / 1000000, bytes, tree);
}

static void
put_detailed(const struct report *report, unsigned *number, uint64_t ns, const struct export_value *value,
             const char *tree, FILE *stream)
{
	struct stacks stacks = { .words = NULL };

	grow_tree(report, value->of, &stacks);
	put_snapshot(number, ns, stacks.root.bytes, tree, stream);
	put_node(&stacks.root, value->meaning, 0, stacks.root.bytes / THRESHOLD_PART, stream);
	free_stacks(&stacks);
}

/* Looks at one process between two moments; of several nobody knows what they held together. */
static void
put_looks(const struct report *report, unsigned *number, uint64_t from_ns, uint64_t until_ns, FILE *stream)
{
	const struct model_process *process = &report->processes[0].of;
	uint64_t began_ns = process->identity->start_monotonic_ns;

	if (report->process_count != 1 || report->domain != NULL)
		return;
	EACH (beat, process->heartbeats, process->heartbeat_count) {
		uint64_t ns = beat->monotonic_ns > began_ns ? beat->monotonic_ns - began_ns : 0;

		if (ns > from_ns && ns < until_ns)
			put_snapshot(number, ns, beat->live_bytes, "empty", stream);
	}
}

void
export_massif(const struct report *report, const struct export_value *value, FILE *stream)
{
	struct moments moments = moments_of(report);
	unsigned number = 0;
	char command[4096] = "";

	(void)value; // the peak, and the end
	if (report->process_count != 0)
		(void)snprintf(command, sizeof(command), "%s", report->processes[0].command);
	for (char *at = command; *at != '\0'; at++)
		*at = *at == '\n' ? ' ' : *at;
	(void)fprintf(stream, "desc: (kmemshim)\ncmd: %s\ntime_unit: ms\n", command);
	put_snapshot(&number, 0, 0, "empty", stream);
	if (report->process_count != 0)
		put_looks(report, &number, 0, moments.peak_ns, stream);
	put_detailed(report, &number, moments.peak_ns, export_value_find("peak"), "peak", stream);
	if (report->process_count != 0)
		put_looks(report, &number, moments.peak_ns, moments.end_ns, stream);
	put_detailed(report, &number, moments.end_ns, export_value_find("live"), "detailed", stream);
}
