/*
 * facts_children.c - which child processes were lost, and which copied what their parent had built?
 *
 * When failing  what cannot be known is marked so; no conclusion is drawn here.
 */

#include "verdict/facts.h"

#include "base/memory.h"

#define BEAT_NS UINT64_C(1000000000)             // a process at work is seen every so often
#define WORTH_TELLING_BYTES (UINT64_C(16) << 20) // of one process; below, its own small allocations blur the figure

/* A worker that died early is told from those that its pool ended, if they were at work after it. */
void
verdict_children_gather(const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model_process *first = NULL;
	uint64_t next_ns = UINT64_MAX; // of all but the first

	for (size_t i = 1; i < facts->model->process_count && facts->lost_count > 1; i++) {
		const struct model_process *process = &facts->model->processes[i];
		uint64_t seen_ns = model_last_seen_ns(process);

		if (verdict_end_of(process, now) != VERDICT_END_GONE)
			continue;
		if (first == NULL || seen_ns < model_last_seen_ns(first)) {
			next_ns = first != NULL ? model_last_seen_ns(first) : UINT64_MAX;
			first = process;
		} else if (seen_ns < next_ns) {
			next_ns = seen_ns;
		}
	}
	if (first != NULL && model_last_seen_ns(first) != 0 && next_ns != UINT64_MAX &&
	    next_ns - model_last_seen_ns(first) >= BEAT_NS)
		facts->first_lost = first;
}

static const struct model_process *
parent_of(const struct model *model, const struct model_process *process)
{
	return process->parent >= 0 ? &model->processes[process->parent] : NULL;
}

/* A child of a child may have inherited most from further up. */
static const struct model_process *
builders_child(const struct model *model, const struct model_process *child)
{
	for (size_t steps = 0; steps < model->process_count; steps++) {
		const struct model_process *parent = parent_of(model, child);

		if (parent == NULL || parent->inherited_bytes <= child->inherited_bytes || parent_of(model, parent) == NULL)
			break;
		child = parent;
	}
	return child;
}

/* What the lines are put in order by: what was copied of them, where that is known of most of what was. */
static uint64_t
weight_of(const struct verdict_built *built, bool is_by_copies)
{
	return is_by_copies ? built->copied_bytes : built->bytes;
}

/* The lines that held most of it; what imports left behind nobody reads on purpose. */
static void
find_lines(const struct model_process *child, struct verdict_copies *copies)
{
	struct verdict_built sums[KMEM_INHERITED_SITES_MAX];
	size_t count = 0;
	uint64_t copied_bytes = 0;

	for (size_t i = 0; i < child->built_count && count < KMEM_INHERITED_SITES_MAX; i++) {
		const struct model_site *site = child->built[i].site;
		size_t place = 0;

		if (rank_is_import(site) || site->where == NULL)
			continue;
		while (place < count && rank_compare_places(sums[place].site, site) != 0)
			place++;
		if (place == count)
			sums[count++] = (struct verdict_built){ .site = site };
		sums[place].bytes += child->built[i].live_bytes;
		sums[place].copied_bytes += child->built[i].copied_bytes;
		sums[place].copied_error_bytes += child->built[i].copied_error_bytes;
		copied_bytes += child->built[i].copied_bytes;
	}

	bool is_by_copies = copied_bytes > child->copied_bytes / 2;

	for (size_t i = 0; i < VERDICT_BUILT_MAX; i++) {
		size_t most = 0;

		for (size_t j = 1; j < count; j++) {
			if (weight_of(&sums[j], is_by_copies) > weight_of(&sums[most], is_by_copies))
				most = j;
		}
		if (count == 0 || weight_of(&sums[most], is_by_copies) == 0 ||
		    (i != 0 && weight_of(&sums[most], is_by_copies) < weight_of(&copies->built[0], is_by_copies) / 8))
			break;
		copies->built[copies->built_count++] = sums[most];
		sums[most].bytes = sums[most].copied_bytes = 0;
	}
}

struct verdict_built
verdict_built_most(const struct model *model, const struct model_process *child)
{
	struct verdict_copies found = { .built_count = 0 };
	size_t most = 0;

	find_lines(builders_child(model, child), &found);
	for (size_t i = 1; i < found.built_count; i++)
		most = found.built[i].bytes > found.built[most].bytes ? i : most;
	return found.built[most];
}

void
verdict_copies_gather(const struct model *model, struct verdict_copies *copies)
{
	OWNED uint64_t *values = memory_zeroed(model->process_count, sizeof(*values));
	const struct model_process *most = NULL;

	*copies = (struct verdict_copies){ .child_count = 0 };
	for (size_t i = 0; i < model->process_count; i++) {
		const struct model_process *process = &model->processes[i];

		if (process->copied_bytes >= WORTH_TELLING_BYTES && parent_of(model, process) != NULL &&
		    (most == NULL || process->copied_bytes > most->copied_bytes))
			most = process;
	}
	for (size_t i = 0; i < model->process_count && most != NULL; i++) {
		const struct model_process *process = &model->processes[i];

		if (process->parent != most->parent || process->copied_bytes < WORTH_TELLING_BYTES)
			continue;
		values[i] = process->copied_bytes;
		copies->child_count++;
	}
	if (most != NULL) {
		copies->child = most;
		copies->parent = parent_of(model, builders_child(model, most));
		copies->bytes = model_together(model->processes, model->process_count, values);
		find_lines(builders_child(model, most), copies);
	}
}
