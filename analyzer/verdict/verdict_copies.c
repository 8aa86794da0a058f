/*
 * verdict_copies.c - which processes copied what their parent had built, and how is it said?
 *
 * When failing  no copies: nothing is said.
 */
#include <stdlib.h>

#include "analysis/rank.h"
#include "base/memory.h"
#include "base/units.h"
#include "verdict/verdict_tell.h"

#define WORTH_TELLING_BYTES (UINT64_C(16) << 20) // of one process; below, its own small allocations blur the figure

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

/* The lines that held most of it; what imports left behind nobody reads on purpose. */
static void
find_lines(const struct model_process *child, struct verdict_copies *copies)
{
	struct verdict_built sums[KMEM_INHERITED_SITES_MAX];
	size_t count = 0;

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
	}
	for (size_t i = 0; i < VERDICT_BUILT_MAX; i++) {
		size_t most = 0;

		for (size_t j = 1; j < count; j++) {
			if (sums[j].bytes > sums[most].bytes)
				most = j;
		}
		if (count == 0 || sums[most].bytes == 0 || (i != 0 && sums[most].bytes < copies->built[0].bytes / 8))
			break;
		copies->built[copies->built_count++] = sums[most];
		sums[most].bytes = 0;
	}
}

void
verdict_copies_gather(const struct model *model, struct verdict_copies *copies)
{
	uint64_t *values = memory_zeroed(model->process_count, sizeof(*values));
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
	free(values);
}

static void
say_built(const struct verdict_facts *facts, struct verdict *verdict)
{
	for (size_t i = 0; i < facts->copies.built_count; i++) {
		const struct verdict_built *built = &facts->copies.built[i];
		const struct rank_line line = {
			.where = built->site->where, .largest = built->site, .domain = built->site->domain, .site_count = 1
		};
		char place[PLACE_TEXT_BYTES];
		char held[UNITS_TEXT_BYTES];
		char word[VERDICT_WORD_BYTES];

		say(verdict, "%s%s %s %s", i == 0 ? " (" : "; ", units_bytes(built->bytes, held),
		    verdict_where_word(facts, &line, word), verdict_line_text(&line, place));
	}
	if (facts->copies.built_count != 0)
		say(verdict, ")");
}

void
verdict_tell_copies(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_copies *copies = &facts->copies;
	char copied[UNITS_TEXT_BYTES];

	if (copies->child_count == 0)
		return;
	if (copies->child_count == 1)
		say(verdict, " One child process");
	else
		say(verdict, " %zu child processes", copies->child_count);
	say(verdict, " copied at least %s, in whole pages, of what ", units_bytes(copies->bytes, copied));
	verdict_say_process(copies->parent, verdict);
	say(verdict, " had built before it forked");
	say_built(facts, verdict);
	say(verdict, copies->child->python_version != 0
	                 ? ": reading a Python object writes its reference count, and a page that is written to is copied."
	                 : ": a page that is written to after the fork is copied.");
}
