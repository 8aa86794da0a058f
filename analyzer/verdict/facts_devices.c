/*
 * facts_devices.c - what filled a device that had no more memory?
 *
 * When failing  what cannot be known is marked so; no conclusion is drawn here.
 */

#include "verdict/facts.h"

#include <string.h>

#include "analysis/refused_requests.h"
#include "base/items.h"
#include "base/text_start.h"

#define FRAGMENTED_PART 8 // of what PyTorch took: as much must lie idle before fragmentation is to blame
#define KEPT_PART 8       // of the tensors: as much must be left of an earlier refusal
#define LASTING_PART 64   // of the tensors: smaller lines are not told
#define CHURN 4           // allocations for each block that is alive: tensors of a step, not weights
#define ROUNDS_MIN 6      // lines that ran less often do not tell the pace
#define PREALLOCATED_BLOCKS 3
#define ROUNDED_BYTES (UINT64_C(1) << 20) // smaller powers of two are what programs ask for themselves

uint64_t
verdict_untracked_bytes(const struct verdict_facts *facts)
{
	uint64_t used = facts->refused->total_bytes - facts->refused->free_bytes;

	uint64_t known = facts->device.live_bytes + facts->refused->pool_kept_bytes;

	return used > known ? used - known : 0;
}

bool
verdict_tells_pace(const struct rank_line *line)
{
	return line->live_count >= ROUNDS_MIN;
}

static void
gather_growth(struct verdict_facts *facts, const struct ranked *ranked)
{
	EACH (line, ranked->lines, ranked->line_count) {
		if (line->leak != MODEL_LEAK_LEAK)
			continue;
		facts->growing_count++;
		facts->growing_bytes += line->leaking_bytes;
		if (verdict_tells_pace(line) && (facts->growing_rounds == 0 || line->live_count < facts->growing_rounds))
			facts->growing_rounds = line->live_count;
	}
}

/* What asked for it: a line of a framework says more than the user's line that called it, where an optimizer's state is made, too. */
static const struct model_frame *
innermost_python(const struct model_site *site)
{
	const struct model_frame *const *found = FIRST(frame, site->frames, site->frame_count,
	                                               (*frame)->kind == MODEL_FRAME_PYTHON);

	return found != NULL ? *found : site->where;
}

/* Does its line make tensors and give them back, again and again? Those that it holds belong to a step, and are no weights. */
static bool
is_of_steps(const struct model *model, const struct model_held *held)
{
	const struct model_frame *line = innermost_python(held->site);
	uint64_t allocated_count = 0;

	for (size_t i = 0; i < model->site_count; i++) { // equal frames are one object
		if (model->sites[i].domain == held->site->domain && innermost_python(&model->sites[i]) == line)
			allocated_count += model->sites[i].allocated_count;
	}
	return held->site->leak != MODEL_LEAK_LEAK && allocated_count >= CHURN * held->live_count;
}

/* Of what was alive when PyTorch gave up before, and still was when it did so last: what a step alone needs. */
static void
gather_kept(struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	const struct model_failed *last = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < model->failed_count; i++) {
		if (&model->processes[model->failed[i].process] == facts->process && model->failed[i].has_held &&
		    model->domains[model->failed[i].domain].id.kind == DOMAIN_TENSORS)
			last = &model->failed[i];
	}
	for (size_t i = 0; last != NULL && i < last->held_count; i++) {
		const struct model_held *held = &last->held[i];

		if (held->kept_bytes != 0 && held->site->domain == last->domain && is_of_steps(model, held))
			bytes += held->kept_bytes;
	}
	if (last != NULL && bytes >= last->domain_bytes[last->domain] / KEPT_PART)
		facts->kept_bytes = bytes;
}

/* begins: of the names of its libraries, NULL behind the last. */
static bool
is_of_library(const struct model_site *site, const char *const *begins)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		for (const char *const *begin = begins; *begin != NULL; begin++) {
			if (text_starts(site->frames[i]->module, *begin))
				return true;
		}
	}
	return false;
}

static bool
is_of_pytorch(const struct model_site *site)
{
	static const char *const begins[] = { "libtorch", "libc10", NULL };

	return is_of_library(site, begins);
}

bool
verdict_has_tensors(const struct model *model)
{
	static const char *const begins[] = { "libtorch", "libc10", "libtensorflow", "libjax", "xla_extension", NULL };
	static const char *const imports[] = { "torch", "tensorflow", "jax" };

	EACH (site, model->sites, model->site_count) {
		enum domain_kind kind = model->domains[site->domain].id.kind;

		for (size_t j = 0; j < COUNT_OF(imports); j++) {
			if (site->import != NULL && strcmp(site->import, imports[j]) == 0)
				return true;
		}
		if (kind == DOMAIN_DEVICE || kind == DOMAIN_TENSORS || is_of_library(site, begins))
			return true;
	}
	return false;
}

static void
gather_pinned(struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	const char *domain = "";

	EACH (site, model->sites, model->site_count) {
		uint64_t block = site->live_count != 0 ? site->live_bytes / site->live_count : 0;

		if (model->domains[site->domain].id.kind != DOMAIN_PINNED)
			continue;
		domain = model->domains[site->domain].name;
		facts->pinned_bytes += site->live_bytes;
		if (block >= ROUNDED_BYTES && (block & (block - 1)) == 0 && is_of_pytorch(site))
			facts->rounded_bytes += site->live_bytes;
	}
	if (facts->pinned_bytes == 0)
		return;

	struct ranked *ranked = rank_run(facts->finished, &rank_sites, domain);

	facts->top_pinned = ranked->lines[0];
	rank_free(ranked);
}

/* Lines whose tensors live long: between them lie the pieces that are free. */
static void
gather_lasting(struct verdict_facts *facts, const struct ranked *ranked)
{
	for (size_t i = 0; i < ranked->line_count && facts->lasting_count < VERDICT_LASTING_MAX; i++) {
		const struct rank_line *line = &ranked->lines[i];

		if (line->live_count != 0 && line->live_bytes >= facts->device.tensor_bytes / LASTING_PART &&
		    line->allocated_count < CHURN * line->live_count)
			facts->lasting[facts->lasting_count++] = *line;
	}
}

/* What was alive on the device that had no more. */
static void
gather_refused(const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	struct device_parts then;

	if (facts->refused == NULL)
		return;

	unsigned device = device_parts_device(model, facts->refused->domain);

	for (size_t i = 0; i < model->failed_count; i++)
		facts->retried_count += model->failed[i].process == facts->refused->process &&
		                        model->failed[i].outcome == KMEM_FAILED_GOT_ENOUGH &&
		                        refusal_state(model, now, &model->failed[i]) == REFUSAL_RECOVERED;
	if (device_parts_of(model, device, facts->refused, &then))
		facts->refused_held_bytes = then.live_bytes;
	if (!device_parts_of(model, device, NULL, &facts->device)) {
		facts->device.device = NULL;
		return;
	}

	struct ranked *ranked = rank_run(facts->finished, &rank_sites,
	                                 facts->device.tensors != NULL ? facts->device.tensors->name
	                                                               : facts->device.device->name);
	if (ranked->line_count != 0 && ranked->lines[0].live_bytes != 0)
		facts->top_device = ranked->lines[0];
	gather_growth(facts, ranked);
	if (facts->device.tensors != NULL)
		gather_lasting(facts, ranked);
	rank_free(ranked);
}

void
verdict_device_gather(const struct verdict_now *now, struct verdict_facts *facts)
{
	gather_refused(now, facts);
	gather_kept(facts);
	gather_pinned(facts);
}

bool
verdict_is_held_by_others(const struct verdict_facts *facts)
{
	return facts->refused->total_bytes != 0 && verdict_untracked_bytes(facts) > facts->refused->total_bytes / 2 &&
	       verdict_untracked_bytes(facts) > facts->device.live_bytes;
}

/* What pools keep for what they are asked next would have been enough. */
bool
verdict_is_kept_by_pools(const struct verdict_facts *facts)
{
	return facts->refused->pool_kept_bytes != 0 &&
	       facts->refused->pool_kept_bytes + facts->refused->free_bytes >= facts->refused->bytes;
}

bool
verdict_does_device_grow(const struct verdict_facts *facts)
{
	return facts->top_device.leak == MODEL_LEAK_LEAK;
}

bool
verdict_is_device_growth_the_story(const struct verdict_facts *facts)
{
	return verdict_does_device_grow(facts) && facts->growing_bytes >= facts->device.live_bytes / 3 * 2;
}

bool
verdict_is_device_fragmented(const struct verdict_facts *facts)
{
	return facts->device.tensors != NULL && facts->device.cache_bytes >= facts->refused->bytes &&
	       facts->device.cache_bytes >= facts->device.live_bytes / FRAGMENTED_PART;
}

/* A few blocks that are most of the device. */
bool
verdict_is_preallocated(const struct verdict_facts *facts)
{
	const struct rank_line *top = &facts->top_device;
	uint64_t whole = facts->refused->total_bytes != 0 ? facts->refused->total_bytes : facts->device.live_bytes;

	return top->site_count != 0 && top->live_count <= PREALLOCATED_BLOCKS && top->live_bytes >= whole / 10 * 7;
}

bool
verdict_has_device(const struct verdict_facts *facts)
{
	return ANY(domain, facts->model->domains, facts->model->domain_count,
	           domain_is_driver(domain->id.kind) && domain->peak_bytes != 0);
}
