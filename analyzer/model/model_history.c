/*
 * model_history.c - what did a process hold over time?
 *
 * Python's objects lie in arenas: at a point, the arenas hold what was counted for them less the objects, as everywhere in the model
 * (capture_arenas.c). The last point is what was live when the process ended; it is added where the capture has none.
 *
 * When failing  as if there was no such point.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "capture/capture_history.h"
#include "base/amount.h"
#include "model/model_build.h"
#include "model/model_load.h"

/* relaxed: a private copy that nobody changes */
#define COPY_OF(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* The figures of a capture's domains, which are in the order of its own table. */
static void
take_domains(const struct build *build, const struct domain_rows *rows, const int64_t bytes[KMEM_DOMAINS_MAX],
             uint64_t sample_bytes, struct model_point *to)
{
	int64_t objects = sample_bytes != 0 ? bytes[KMEM_DOMAIN_PYTHON_OBJECT] : 0;

	to->domain_bytes = text_pool_room(build->pool, build->domain_count * sizeof(uint64_t));
	to->domain_count = build->domain_count;
	memset(to->domain_bytes, 0, build->domain_count * sizeof(uint64_t));
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		int64_t own = i == KMEM_DOMAIN_PYTHON_ARENA ? bytes[i] - objects : bytes[i];

		if (rows->index[i] == DOMAIN_NONE)
			continue;
		to->domain_bytes[rows->index[i]] += amount_not_negative(own);
		if (kmem_domain_is_private(i) || i == KMEM_DOMAIN_SHARED)
			to->live_bytes += amount_not_negative(own);
	}
}

static struct model_point
point_of(const struct build *build, const struct domain_rows *rows, const struct kmem_history_point *from,
         uint64_t sample_bytes, const uint32_t *sites)
{
	struct model_point to = { .monotonic_ns = from->monotonic_ns,
		                      .resident_bytes = from->resident_bytes,
		                      .limit_bytes = from->limit_bytes != 0 ? from->limit_bytes : UINT64_MAX,
		                      .volume_bytes = from->volume_bytes,
		                      .step = from->step };
	int64_t bytes[KMEM_DOMAINS_MAX] = { 0 };
	struct model_point_site *held = text_pool_room(build->pool, from->site_count * sizeof(*held));

	for (unsigned i = 0; i < from->domain_count; i++)
		bytes[from->domains[i]] = from->domain_bytes[i];
	take_domains(build, rows, bytes, sample_bytes, &to);

	uint64_t objects = sample_bytes != 0 ? amount_not_negative(bytes[KMEM_DOMAIN_PYTHON_OBJECT]) : 0;

	for (unsigned i = 0; i < from->site_count; i++) {
		uint32_t site = sites[from->sites[i] - 1];
		uint64_t site_bytes = (uint64_t)from->site_bytes[i];

		if (site != 0 && build->sites[site - 1].is_rest_of_arenas) { // of all arenas together
			uint64_t less = site_bytes < objects ? site_bytes : objects;

			site_bytes -= less;
			objects -= less;
		}
		if (site != 0)
			held[to.site_count++] = (struct model_point_site){ site - 1, site_bytes };
	}
	to.sites = held;
	return to;
}

/* ---- the end ---- */

ORDER_OF(compare_held, struct model_point_site, order_numbers(b->bytes, a->bytes))

/* All sites of the capture that hold anything. */
static void
take_sites(const struct build *build, struct capture *capture, const uint32_t *sites, struct model_point *to)
{
	OWNED int64_t *sums = memory_zeroed(build->site_count + 1, sizeof(*sums));
	OWNED struct model_point_site *held = memory_zeroed(build->site_count + 1, sizeof(*held));
	size_t count = 0;

	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site(capture, i);

		if (sites[i] != 0)
			sums[sites[i] - 1] += (int64_t)(COPY_OF(site->allocated_bytes) - COPY_OF(site->freed_bytes));
	}
	for (size_t i = 0; i < build->site_count; i++) {
		if (sums[i] > 0)
			held[count++] = (struct model_point_site){ (uint32_t)i, (uint64_t)sums[i] };
	}
	SORT(held, count, compare_held);
	to->site_count = count;
	to->sites = text_pool_room(build->pool, count * sizeof(*held));
	memcpy((void *)(uintptr_t)to->sites, held, count * sizeof(*held));
}

/* What is live in the capture at the moment that the model shows: its end, or the moment to which it was set back. */
static struct model_point
last_point(const struct build *build, struct capture *capture, const struct domain_rows *rows, const uint32_t *sites,
           const struct model_point *before)
{
	struct model_point to = *before;
	int64_t bytes[KMEM_DOMAINS_MAX] = { 0 };

	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++)
		bytes[i] = (int64_t)(rows->sums[i].allocated_bytes - rows->sums[i].freed_bytes);
	to.is_end = true;
	to.live_bytes = 0;
	take_domains(build, rows, bytes, 0, &to); // arenas are less by objects already
	take_sites(build, capture, sites, &to);
	return to;
}

void
model_add_history(struct build *build, struct capture *capture, const struct domain_rows *rows, const uint32_t *sites)
{
	struct model_process *process = &build->processes[build->process_count - 1];
	const struct kmem_heartbeat *last = model_last_beat(process);
	size_t count;
	OWNED struct kmem_history_point *from = capture_history(capture, process->is_alive, &count);
	struct model_point *points;

	if (count == 0)
		return;
	points = text_pool_room(build->pool, (count + 1) * sizeof(*points));
	for (size_t i = 0; i < count; i++)
		points[i] = point_of(build, rows, &from[i], (uint32_t)COPY_OF(capture->header->python_sample_bytes), sites);
	process->points = points;
	process->point_count = count;
	if (process->is_at_exit || build->options->at != NULL || build->options->is_at_guard ||
	    process->state == KMEM_STATE_CLEAN_EXIT)
		return;
	points[count] = last_point(build, capture, rows, sites, &points[count - 1]);
	if (last != NULL && last->monotonic_ns > points[count].monotonic_ns) {
		points[count].resident_bytes = last->resident_bytes;
		points[count].limit_bytes = last->limit_bytes;
	}

	uint64_t end_ns = model_ended_ns(process) ?: model_last_seen_ns(process);

	if (end_ns > points[count].monotonic_ns)
		points[count].monotonic_ns = end_ns;
	process->point_count++;
}
