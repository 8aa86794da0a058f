/*
 * model_types.c - what kinds of Python objects are alive at a site?
 *
 * When failing  a type without a name is left out; the reader's damages say why.
 */
#include <assert.h>

#include "capture/capture_copy.h"
#include "model/model_build.h"

void
model_type_add(struct model_type types[MODEL_TYPES_MAX], unsigned *type_count, const char *name, uint64_t count)
{
	struct model_type added = { name, count };
	unsigned at = 0;

	while (at < *type_count && types[at].name != name)
		at++;
	if (at < *type_count)
		added.count += types[at].count;
	else if (*type_count < MODEL_TYPES_MAX)
		(*type_count)++;
	else if (types[--at].count >= count)
		return;
	for (; at > 0 && types[at - 1].count < added.count; at--)
		types[at] = types[at - 1];
	types[at] = added;
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
		struct model_type *types = (struct model_type *)site->types;

		if (types == NULL)
			site->types = types = text_pool_room(build->pool, MODEL_TYPES_MAX * sizeof(*types));
		model_type_add(types, &site->type_count, text_pool_add(build->pool, name, name_bytes), stored->count);
	}
}
