/*
 * rank.c - grouping of sites into lines and their order; which ranking decides what is rank_*.c.
 *
 * When failing  it cannot.
 */
#include "analysis/rank.h"

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text_start.h"

#define NAME_LOST "<name lost" // the file of a Python function without room for its name
#define ELSEWHERE_WORTH_BYTES (UINT64_C(1) << 20)

bool
rank_domain_matches(const char *name, const char *wanted)
{
	if (wanted == NULL)
		return true;

	size_t length = strlen(wanted);

	return strncmp(name, wanted, length) == 0 && (name[length] == '\0' || name[length] == '/' || name[length] == ':');
}

uint64_t
rank_live_in_memory(const struct model_site *site)
{
	return site->live_bytes > site->untouched_bytes ? site->live_bytes - site->untouched_bytes : 0;
}

uint64_t
rank_peak_in_memory(const struct model_site *site)
{
	return site->peak_bytes > site->untouched_bytes ? site->peak_bytes - site->untouched_bytes : 0;
}

static bool
has_lost_names(const struct model_site *site)
{
	return ANY(frame, site->frames, site->frame_count, text_starts((*frame)->file, NAME_LOST));
}

bool
rank_is_elsewhere(const struct model *model, const struct model_site *site)
{
	const uint64_t *losses = model->processes[site->process].losses;

	if (rank_is_import(site)) // that it is one is known
		return false;
	if ((site->stack_flags & KMEM_STACK_MERGED) != 0)
		return true;
	return losses[KMEM_LOST_GROWTH] != 0 && losses[KMEM_LOST_PYTHON_TEXT] != 0 &&
	       ((site->stack_flags & KMEM_STACK_ARENA) != 0 || has_lost_names(site));
}

uint64_t
rank_elsewhere_bytes(const struct model *model, const struct model_domain *domain)
{
	uint64_t live_bytes = 0;
	uint64_t peak_bytes = 0;

	EACH (site, model->sites, model->site_count) {
		const struct model_domain *own = &model->domains[site->domain];

		if ((domain != NULL ? own != domain : domain_is_address_space(own->id.kind)) || !rank_is_elsewhere(model, site))
			continue;
		live_bytes += site->live_bytes;
		peak_bytes += site->peak_bytes;
	}
	return live_bytes > peak_bytes ? live_bytes : peak_bytes;
}

uint64_t
rank_elsewhere_worth_bytes(const struct model *model)
{
	uint64_t bytes = rank_elsewhere_bytes(model, NULL);
	uint64_t peak_bytes = SUM_OF(process, model->processes, model->process_count, process->peak_bytes);

	return bytes >= ELSEWHERE_WORTH_BYTES && bytes >= peak_bytes / 16 ? bytes : 0;
}

int
rank_compare_places(const struct model_site *left, const struct model_site *right)
{
	const struct model_frame *a = left->where;
	const struct model_frame *b = right->where;
	int order = order_numbers(left->domain, right->domain);

	order = order ?: order_numbers(left->where_relation, right->where_relation);

	if (order != 0 || a == b)
		return order;
	if (a == NULL || b == NULL)
		return a == NULL ? -1 : 1;
	order = order_numbers(a->line, b->line) ?: order_texts(a->file, b->file) ?: order_texts(a->function, b->function);
	if (order == 0 && a->file[0] == '\0')
		order = order_texts(a->module, b->module);
	/* Without file and function two addresses are two places. */
	if (order == 0 && a->file[0] == '\0' && a->function[0] == '\0')
		order = order_numbers(a->module_offset, b->module_offset);
	return order;
}

int
rank_compare_lines(const struct model_site *left, bool is_left_import, const struct model_site *right,
                   bool is_right_import)
{
	if (!is_left_import || !is_right_import)
		return is_left_import - is_right_import ?: rank_compare_places(left, right);
	return order_texts(left->import, right->import)
	           ?: left->import[0] != '\0' ? order_numbers(left->domain, right->domain)
	                                      : rank_compare_places(left, right);
}

int
rank_compare_functions(const struct model_site *left, const struct model_site *right)
{
	return order_texts(left->where->file, right->where->file)
	           ?: order_texts(left->where->function, right->where->function);
}

uint64_t
rank_held_at(const struct model *model, const struct model_point *point, const struct model_site *line)
{
	return SUM_OF(held, point->sites, point->site_count,
	              rank_compare_places(&model->sites[held->site], line) == 0 ? held->bytes : 0);
}

struct entry {
	const struct model_site *site;
	uint64_t place; // place_order(): what rank_compare_places() compares first, so that most frames need not be read
	uint64_t bytes;
	unsigned tier;
	bool is_import;
	struct rank_line *line;
};

/* Domain, relation, known or not, line: two places whose numbers differ are in this order. */
static uint64_t
place_order(const struct model_site *site)
{
	uint64_t line = site->where != NULL ? (UINT64_C(1) << 32) + site->where->line : 0;

	return (uint64_t)site->domain << 40 | (uint64_t)site->where_relation << 33 | line;
}

ORDER_OF(compare_by_place, struct entry,
         (a->is_import || b->is_import ? 0 : order_numbers(a->place, b->place))
             ?: rank_compare_lines(a->site, a->is_import, b->site, b->is_import))

ORDER_OF(compare_lines, struct rank_line,
	order_numbers(a->tier, b->tier) ?: order_numbers(b->score_bytes, a->score_bytes)
	?: order_numbers(b->live_bytes, a->live_bytes) ?: order_numbers(b->allocated_bytes, a->allocated_bytes))

/* Of one line. */
ORDER_OF(compare_sites, struct entry,
	order_numbers(a->tier, b->tier) ?: order_numbers(b->bytes, a->bytes)
	?: order_numbers(b->site->live_bytes, a->site->live_bytes)
	?: order_numbers(b->site->allocated_bytes, a->site->allocated_bytes) ?: order_numbers(a->site->key, b->site->key))

/* Sites of a line stay together: when two lines tie, the places decide. */
ORDER_OF(compare_by_rank, struct entry,
	a->line == b->line ? compare_sites(a, b) : compare_lines(a->line, b->line) ?: compare_by_place(a, b))

static void
line_add(struct rank_line *line, const struct entry *entry)
{
	const struct model_site *site = entry->site;

	if (line->site_count == 0 || entry->tier < line->tier) {
		line->tier = entry->tier;
		line->score_bytes = 0;
	}
	if (entry->tier == line->tier)
		line->score_bytes += entry->bytes;
	if (line->site_count == 0 || model_leak_is_more_telling(site->leak, line->leak))
		line->leak = site->leak;
	line->is_import = entry->is_import;
	line->swept_bytes += site->swept_bytes;
	if (site->leak == MODEL_LEAK_LEAK) {
		line->leaking_bytes += site->live_bytes;
		line->leaking_untouched_bytes += site->untouched_bytes;
	}
	line->untouched_bytes += site->untouched_bytes;
	line->peak_untouched_bytes += site->peak_bytes - rank_peak_in_memory(site);
	line->large_bytes += site->large_bytes;
	line->large_resident_bytes += site->large_resident_bytes;
	line->pinned_bytes += site->pinned_bytes;
	line->live_bytes += site->live_bytes;
	line->released_bytes += site->released_bytes;
	line->live_count += site->live_count;
	line->samples += site->samples;
	line->peak_bytes += site->peak_bytes;
	line->allocated_bytes += site->allocated_bytes;
	line->allocated_count += site->allocated_count;
	line->site_count++;
}

static size_t
collect(const struct model *model, const struct ranking *ranking, const char *domain, struct entry *entries)
{
	size_t count = 0;

	EACH (site, model->sites, model->site_count) {
		if (!rank_domain_matches(model->domains[site->domain].name, domain))
			continue;
		entries[count++] = (struct entry){
			.site = site,
			.place = place_order(site),
			.bytes = ranking->bytes(site),
			.tier = ranking->tier(model, site),
			.is_import = rank_is_import(site),
		};
	}
	return count;
}

/* Sums sites into lines; entries come in order of places. Returns the number of lines. */
static size_t
group(struct entry *entries, size_t count, struct rank_line *lines)
{
	size_t line_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (i == 0 || compare_by_place(&entries[i - 1], &entries[i]) != 0)
			line_count++;
		entries[i].line = &lines[line_count - 1];
		line_add(entries[i].line, &entries[i]);
	}
	return line_count;
}

/* Of a sample of the heap: what a line's few samples say may be another line's. */
static bool
has_too_few_samples(const struct model *model, const struct entry *entry)
{
	return model->domains[entry->site->domain].id.kind == DOMAIN_HEAP_SAMPLE &&
	       entry->line->score_bytes / RANK_SAMPLES_MIN < model->heap_sample_bytes;
}

struct ranked *
rank_run(struct finished_model finished, const struct ranking *ranking, const char *domain)
{
	const struct model *model = finished.model;
	struct ranked *ranked = memory_zeroed(1, sizeof(*ranked));
	OWNED struct entry *entries = memory_zeroed(model->site_count, sizeof(*entries));
	OWNED struct rank_line *unordered = NULL;

	ranked->site_count = collect(model, ranking, domain, entries);
	SORT(entries, ranked->site_count, compare_by_place);
	unordered = memory_zeroed(ranked->site_count, sizeof(*unordered));
	ranked->line_count = group(entries, ranked->site_count, unordered);
	EACH (entry, entries, ranked->site_count)
		entry->line->tier |= has_too_few_samples(model, entry) ? RANK_TIER_FEW : 0;
	SORT(entries, ranked->site_count, compare_by_rank);

	ranked->lines = memory_zeroed(ranked->line_count, sizeof(*ranked->lines));
	ranked->sites = memory_zeroed(ranked->site_count, sizeof(*ranked->sites));
	for (size_t i = ranked->site_count; i-- > 0;) {
		ranked->sites[i] = entries[i].site;
		if (entries[i].site->leak == entries[i].line->leak)
			entries[i].line->telling = entries[i].site;
	}
	for (size_t i = 0, line = 0; i < ranked->site_count; i += ranked->lines[line++].site_count) {
		ranked->lines[line] = *entries[i].line;
		ranked->lines[line].where = entries[i].site->where;
		ranked->lines[line].domain = entries[i].site->domain;
		ranked->lines[line].sample_bytes = model_sample_bytes(model, model->domains[entries[i].site->domain].id.kind);
		if ((ranked->lines[line].tier & RANK_TIER_FEW) != 0 && ranked->lines[line].leak != MODEL_LEAK_NONE &&
		    ranked->lines[line].leak != MODEL_LEAK_IMPORT)
			ranked->lines[line].leak = MODEL_LEAK_TOO_SHORT;
		ranked->lines[line].largest = entries[i].site;
		ranked->lines[line].first_site = i;
	}
	return ranked;
}

NAMES_OF(rank_name, [RANK_PEAK] = "peak", [RANK_LEAKS] = "leaks", [RANK_SITES] = "sites")

void
rank_free(struct ranked *ranked)
{
	if (ranked == NULL)
		return;
	free(ranked->lines);
	free(ranked->sites);
	free(ranked);
}
