/*
 * model_types.c - what kinds of Python objects are alive at a site?
 *
 * When failing  a type without a name is left out; the reader's damages say why.
 */
#include <assert.h>

#include "capture/capture_copy.h"
#include "model/model_build.h"

void
model_tally_add(struct model_tally *tallies, unsigned *tally_count, unsigned most, const void *of, uint64_t count)
{
	struct model_tally added = { .of = of, .count = count };
	unsigned at = 0;

	while (at < *tally_count && tallies[at].of != of)
		at++;
	if (at < *tally_count)
		added.count += tallies[at].count;
	else if (*tally_count < most)
		(*tally_count)++;
	else if (tallies[--at].count >= count)
		return;
	for (; at > 0 && tallies[at - 1].count < added.count; at--)
		tallies[at] = tallies[at - 1];
	tallies[at] = added;
}

void
model_add_types(struct build *build, struct capture *capture, const uint32_t *sites)
{
	uint32_t count = (uint32_t)COPY_OF(capture->header->object_count_total); // once of twice
	size_t site_count = capture_site_count(capture);

	assert(count <= KMEM_OBJECT_CENSUS_MAX); // capture_head.c
	for (uint32_t i = 0; i < count; i++) {
		const struct kmem_object_count *stored = &capture->header->object_census[i];
		const char *name;
		uint32_t name_bytes;

		if (stored->site == 0 || stored->site > site_count) {
			capture_damaged(capture, "section \"head\": objects of site %u, but there are only %zu sites: left out",
			                stored->site, site_count);
			continue;
		}
		if (sites[stored->site - 1] == 0 || !capture_type_name(capture, stored->type, &name, &name_bytes))
			continue;
		struct model_site *site = &build->sites[sites[stored->site - 1] - 1];
		struct model_tally *types = (struct model_tally *)site->types;

		if (types == NULL)
			site->types = types = text_pool_room(build->pool, MODEL_TYPES_MAX * sizeof(*types));
		model_tally_add(types, &site->type_count, MODEL_TYPES_MAX, text_pool_add(build->pool, name, name_bytes),
		                stored->count);
	}
}
