/*
 * model_wrappers.c - is the line that a person would see only the program's own malloc?
 *
 * Programs have functions through which all memory goes (zmalloc, an arena, a factory). Such a line is right and says nothing. A wrapper
 * is known by its use: it is the innermost function of the user's, more than CALLERS_MIN different lines of the user's call it, it holds
 * more than half of a domain, and one caller has a third of it. The callers then become the lines. Where each of them has little, as cells
 * of a notebook that call one helper, the function is what they have in common. Names that are known beforehand are in frame_rules.c.
 *
 * Context     when the sites have their keys.
 * When failing  it cannot.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "model/model_build.h"

#define CALLERS_MIN 8
#define EXPLAINING_PART 3 // of what the function holds
#define LAYERS_MAX 3      // a function around a function around malloc

struct entry {
	struct model_site *site;
	const struct model_frame *caller; // NULL: no further code of the user's
};

/* By function; inside, by the place of the caller. */
static int
compare_entries(const void *a, const void *b)
{
	const struct entry *left = a;
	const struct entry *right = b;
	int order = model_compare_functions(left->site->where, right->site->where);

	if (order != 0 || left->caller == right->caller)
		return order;
	if (left->caller == NULL || right->caller == NULL)
		return left->caller == NULL ? -1 : 1;
	/* Without lines two calls from one function are one place: addresses change from build to build. */
	order = order_numbers(left->caller->line, right->caller->line);
	order = order ?: order_texts(left->caller->file, right->caller->file);
	return order ?: order_texts(left->caller->function, right->caller->function);
}

/* At the end, and at the peak. */
static uint64_t
weight(const struct model_site *site)
{
	return site->live_bytes + site->peak_bytes;
}

/* Does the function, of which these are all sites, hold most of some domain, do many lines call it, and does one of them explain that? */
static bool
is_wrapper(const struct entry *entries, size_t count, const uint64_t *sums, size_t domain_count)
{
	OWNED uint64_t *own = memory_zeroed(domain_count, sizeof(*own));
	OWNED uint64_t *most = memory_zeroed(domain_count, sizeof(*most)); // of one caller
	OWNED uint64_t *its = memory_zeroed(domain_count, sizeof(*its));
	size_t callers = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned domain = entries[i].site->domain;

		if (i == 0 || compare_entries(&entries[i - 1], &entries[i]) != 0) {
			callers += entries[i].caller != NULL;
			memset(its, 0, domain_count * sizeof(*its));
		}
		own[domain] += weight(entries[i].site);
		its[domain] += entries[i].caller != NULL ? weight(entries[i].site) : 0;
		most[domain] = its[domain] > most[domain] ? its[domain] : most[domain];
	}
	for (size_t i = 0; i < domain_count && callers > CALLERS_MIN; i++) {
		if (own[i] > sums[i] / 2 && most[i] >= own[i] / EXPLAINING_PART)
			return true;
	}
	return false;
}

static size_t
collect(struct model_site *sites, size_t count, struct entry *entries)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct model_frame *where = sites[i].where;

		if (where == NULL || !where->is_user || where->function[0] == '\0' || where->function[0] == '<' ||
		    sites[i].where_relation != MODEL_RELATION_OWN || (sites[i].live_bytes == 0 && sites[i].peak_bytes == 0))
			continue;
		entries[found++] = (struct entry){ &sites[i], model_caller_of(&sites[i]) };
	}
	return found;
}

static bool
skip_a_layer(struct entry *entries, size_t count, const uint64_t *sums, size_t domain_count)
{
	bool was_any = false;

	SORT(entries, count, compare_entries);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1;
		     end < count && model_compare_functions(entries[first].site->where, entries[end].site->where) == 0;)
			end++;
		if (!is_wrapper(entries + first, end - first, sums, domain_count))
			continue;
		was_any = true;
		for (size_t i = first; i < end; i++) {
			if (entries[i].caller != NULL)
				entries[i].site->where = entries[i].caller;
		}
	}
	return was_any;
}

void
model_wrappers_skip(struct model_site *sites, size_t count, size_t domain_count)
{
	OWNED struct entry *entries = memory_zeroed(count, sizeof(*entries));
	OWNED uint64_t *sums = memory_zeroed(domain_count, sizeof(*sums));

	for (size_t i = 0; i < count; i++)
		sums[sites[i].domain] += weight(&sites[i]);
	for (unsigned layer = 0; layer < LAYERS_MAX; layer++) {
		if (!skip_a_layer(entries, collect(sites, count, entries), sums, domain_count))
			break;
	}
}
