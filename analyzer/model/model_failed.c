/*
 * model_failed.c - what was refused, and what did devices hold then?
 *
 * When failing  a request whose domain is unknown is left out and told; so is what was held, when it is damaged.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/amount.h"
#include "capture/capture_copy.h"
#include "kmem_words.h"
#include "model/model_build.h"

/* One site among what was held, put together from its records. */
struct held_sum {
	uint64_t site;       // index in build.sites + 1
	uint64_t live_bytes; // these four modulo 2^64: of some records less than 0
	uint64_t live_count;
	uint64_t kept_bytes;
	uint64_t end_bytes;
	uint64_t end_count;
	bool has_blocks; // generations of one of its records were counted
	bool has_copies; // and were written down
	struct generation_sums generations;
};

struct held_sums {
	size_t count;
	struct held_sum *sums; // as many as there are entries, at most
	uint32_t *places;      // for each of build.sites + 1: index in `sums` + 1; 0 = none
};

static struct held_sum *
find_sum(struct held_sums *held, uint64_t site, bool may_add)
{
	if (held->places[site] != 0)
		return &held->sums[held->places[site] - 1];
	if (!may_add)
		return NULL;
	held->sums[held->count] = (struct held_sum){ .site = site, .generations.first_generation = UINT8_MAX };
	held->places[site] = (uint32_t)++held->count;
	return &held->sums[held->count - 1];
}

static void
add_records(struct held_sums *held, const struct capture *capture, const struct kmem_device_snapshot *stored,
            const uint32_t *sites, size_t site_count)
{
	for (unsigned i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX; i++) {
		const struct kmem_snapshot_site *holding = &stored->sites[i];

		if (holding->site == 0 || holding->site > site_count || sites[holding->site - 1] == 0)
			continue;

		struct held_sum *sum = find_sum(held, sites[holding->site - 1], true);

		sum->live_bytes += (uint64_t)holding->live_bytes;
		sum->live_count += (uint64_t)(int64_t)holding->live_count;
		sum->kept_bytes += holding->kept_bytes;
	}
	for (unsigned i = 0; i < KMEM_DEVICE_SNAPSHOT_GENERATIONS; i++) {
		uint32_t record = COPY_OF(stored->generations[i].site);
		struct held_sum *sum = record != 0 && record <= site_count ? find_sum(held, sites[record - 1], false) : NULL;

		if (sum == NULL)
			continue;
		sum->has_copies = true;
		model_generations_add(capture, &stored->generations[i], &sum->generations);
	}
}

/* Adds what the same sites hold at the end of this capture. */
static void
add_end(struct held_sums *held, struct capture *capture, const uint32_t *sites, size_t site_count)
{
	for (size_t i = 0; i < site_count; i++) {
		const struct kmem_site *record = capture_site(capture, i);
		struct held_sum *sum = find_sum(held, sites[i], false); // 0, of what is left out, has none

		if (sum == NULL)
			continue;
		sum->end_bytes += COPY_OF(record->allocated_bytes) - COPY_OF(record->freed_bytes);
		sum->end_count += COPY_OF(record->allocated_count) - COPY_OF(record->freed_count);
		sum->generations.allocated_count += COPY_OF(record->allocated_count);
		sum->has_blocks = sum->has_blocks || COPY_OF(record->generations) != 0;
		if (record->first_generation < sum->generations.first_generation)
			sum->generations.first_generation = record->first_generation;
	}
}

static void
keep_held(struct build *build, const struct held_sums *held, const struct kmem_header *header, uint32_t clock,
          struct build_failed *to)
{
	struct model_held *kept = text_pool_room(build->pool, held->count * sizeof(*kept));

	to->held_sites = text_pool_room(build->pool, held->count * sizeof(*to->held_sites));
	for (size_t i = 0; i < held->count; i++) {
		const struct held_sum *sum = &held->sums[i];
		uint64_t live_count = amount_not_negative((int64_t)sum->live_count);
		struct generation_counts counts = model_generations_count(&sum->generations, header, clock, live_count);

		to->held_sites[i] = sum->site;
		kept[i] = (struct model_held){
			.live_bytes = amount_not_negative((int64_t)sum->live_bytes),
			.live_count = live_count,
			.end_bytes = amount_not_negative((int64_t)sum->end_bytes),
			.end_count = amount_not_negative((int64_t)sum->end_count),
			.kept_bytes = sum->kept_bytes,
			.has_generations = sum->has_copies || !sum->has_blocks,
			.generations_alive = counts.alive,
			.generations_total = counts.total,
			.recent_alive = counts.recent_alive,
			.recent_total = counts.recent_total,
			.survivors = counts.survivors,
		};
	}
	to->failed.held = kept;
	to->failed.held_count = held->count;
}

static size_t
snapshot_site_count(const struct kmem_device_snapshot *stored)
{
	size_t count = 0;

	for (unsigned i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX; i++)
		count += stored->sites[i].site != 0;
	return count;
}

static void
add_held(struct build *build, struct capture *capture, const struct domain_rows *rows, const uint32_t *sites,
         const struct kmem_failed *failed, struct build_failed *to)
{
	bool is_written = !capture->was_closed && !capture_is_final(capture);
	const struct kmem_device_snapshot *stored = capture_held_record(capture, failed->device_snapshot,
	                                                                KMEM_RECORD_DEVICE_SNAPSHOT, is_written);
	struct held_sums held = { 0 };
	uint64_t *bytes;

	if (stored == NULL || stored->sequence != COPY_OF(failed->sequence))
		return;
	bytes = text_pool_room(build->pool, build->domain_count * sizeof(*bytes));
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		if (rows->index[i] != DOMAIN_NONE)
			bytes[rows->index[i]] = amount_not_negative(stored->live_bytes[i]);
	}
	held.sums = memory_zeroed(snapshot_site_count(stored), sizeof(*held.sums));
	held.places = memory_zeroed(build->site_count + 1, sizeof(*held.places));
	add_records(&held, capture, stored, sites, capture_site_count(capture));
	add_end(&held, capture, sites, capture_site_count(capture));
	keep_held(build, &held, capture->header, stored->clock, to);
	free(held.sums);
	free(held.places);
	to->failed.has_held = true;
	to->failed.domain_count = build->domain_count;
	to->failed.domain_bytes = bytes;
}

/* About how much the thread was given after a refusal of host memory. Its slot may be another thread's by now: that one went on, too. */
static uint64_t
got_since(struct capture *capture, const struct kmem_failed *failed)
{
	uint64_t before_bytes = (uint64_t)failed->thread << 20, bytes = 0;

	if ((failed->flags & KMEM_FAILED_SLOT_KNOWN) == 0)
		return 0;
	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site(capture, i);

		if (site->slot == failed->pool_kept && kmem_domain_is_private(site->domain))
			bytes += COPY_OF(site->allocated_bytes);
	}
	return bytes > before_bytes ? bytes - before_bytes : 0;
}

void
model_add_failed(struct build *build, struct capture *capture, const struct domain_rows *rows, const uint32_t *sites)
{
	struct model_process *process = &build->processes[build->process_count - 1];
	size_t site_count = capture_site_count(capture);

	process->failed_count = COPY_OF(capture->header->failed_count); // not all have a place in the ring
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		const struct kmem_failed *stored = &capture->header->failed[i];
		bool has_domain = stored->domain < KMEM_DOMAINS_MAX && rows->index[stored->domain] != DOMAIN_NONE;
		bool has_slot = (stored->flags & KMEM_FAILED_SLOT_KNOWN) != 0;
		bool has_memory = (stored->flags & KMEM_FAILED_MEMORY_KNOWN) != 0 && stored->free_bytes <= stored->total_bytes;
		struct build_failed *failed;

		if (COPY_OF(stored->sequence) == 0)
			continue;
		if (COPY_OF(stored->sequence) > process->failed_count)
			process->failed_count = COPY_OF(stored->sequence);
		if (!has_domain) {
			capture_damaged(capture, "section \"head\": a refused request belongs to domain %u, which is not in use",
			                stored->domain);
			continue;
		}
		failed = MEMORY_NEXT(build->failed, build->failed_count);
		*failed = (struct build_failed){
			.site = build->refused_arenas[i] != 0                        ? build->refused_arenas[i]
			        : stored->site != 0 && stored->site <= site_count ? sites[stored->site - 1]
			                                                          : 0,
			.failed = {
				.bytes = stored->bytes,
				.domain = rows->index[stored->domain],
				.process = (unsigned)(build->process_count - 1),
				.monotonic_ns = stored->monotonic_ns,
				.error = stored->error,
				.is_by_guard = (stored->flags & KMEM_FAILED_BY_GUARD) != 0,
				.space_limit_bytes = kmem_rough_bytes(stored->space_limit),
				.own_space_bytes = stored->total_bytes == 0 ? stored->free_bytes : 0,
				.events_before = stored->events_before,
				/* Without all sites it is not known, and nothing is concluded from it. */
				.had_success_after = rows->sums[stored->domain].allocated_count > stored->events_before ||
				                     capture->sections[KMEM_SECTION_SITES].is_cut,
				.outcome = (enum kmem_failed_outcome)COPY_OF(stored->outcome),
				.thread = has_slot ? 0 : stored->thread,
				.got_bytes = got_since(capture, stored),
				.is_got_known = has_slot,
				.free_bytes = has_memory ? stored->free_bytes : 0,
				.total_bytes = has_memory ? stored->total_bytes : 0,
				.pool_kept_bytes = has_slot ? 0 : kmem_rough_bytes(stored->pool_kept),
			},
		};
		add_held(build, capture, rows, sites, stored, failed);
	}
}

ORDER_OF(compare_failed, struct build_failed,
         order_numbers(a->failed.monotonic_ns, b->failed.monotonic_ns)
             ?: order_numbers(a->failed.process, b->failed.process))

static const struct model_site *
site_at(const struct build *build, uint64_t index_plus_one)
{
	return index_plus_one != 0 ? &build->sites[index_plus_one - 1] : NULL;
}

void
model_take_failed(struct build *build, struct model *model)
{
	SORT(build->failed, build->failed_count, compare_failed);
	model->failed_count = build->failed_count;
	model->failed = memory_zeroed(build->failed_count, sizeof(*model->failed));
	for (size_t i = 0; i < build->failed_count; i++) {
		const struct build_failed *failed = &build->failed[i];
		struct model_held *held = text_pool_room(build->pool, failed->failed.held_count * sizeof(*held));

		model->failed[i] = failed->failed;
		model->failed[i].site = site_at(build, failed->site);
		for (size_t k = 0; k < failed->failed.held_count; k++) {
			held[k] = failed->failed.held[k];
			held[k].site = site_at(build, failed->held_sites[k]);
		}
		model->failed[i].held = held;
	}
}
