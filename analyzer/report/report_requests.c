/*
 * report_requests.c - what was refused, and what was the device made of at that moment?
 *
 * When failing  it cannot; what nobody wrote down is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/device_parts.h"
#include "analysis/rank.h"
#include "base/memory.h"
#include "report/report_build.h"
#include "analysis/failed_requests.h"

static int
compare_places(const void *left, const void *right)
{
	return rank_compare_places((*(const struct model_held *const *)left)->site,
	                           (*(const struct model_held *const *)right)->site);
}

/* Keeps the largest. */
static void
add_holder(const struct report_rows *rows, struct report_request *request, const char *domain,
           const struct model_held *line)
{
	size_t place = request->holder_count;

	while (place > 0 && request->holders[place - 1].live_bytes < line->live_bytes)
		place--;
	if (place == REPORT_HOLDERS_MAX || line->live_bytes == 0)
		return;
	if (request->holder_count < REPORT_HOLDERS_MAX)
		request->holder_count++;
	memmove(&request->holders[place + 1], &request->holders[place],
	        (request->holder_count - 1 - place) * sizeof(request->holders[0]));
	request->holders[place] = (struct report_holder){ domain, line->live_bytes, line->live_count,
		                                              report_place_of(rows, line->site) };
}

/* The lines that held most of the domain. */
static void
add_holders(const struct report *report, const struct model *model, const struct model_failed *failed, unsigned domain,
            struct report_request *request)
{
	const struct model_held **held = memory_zeroed(failed->held_count, sizeof(*held));
	struct model_held line = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < failed->held_count; i++) {
		if (failed->held[i].site->domain == domain)
			held[count++] = &failed->held[i];
	}
	qsort(held, count, sizeof(*held), compare_places);
	for (size_t i = 0; i < count; i++) {
		if (i != 0 && rank_compare_places(held[i - 1]->site, held[i]->site) != 0) {
			add_holder(report->rows, request, model->domains[domain].name, &line);
			line = (struct model_held){ 0 };
		}
		line.site = held[i]->site;
		line.live_bytes += held[i]->live_bytes;
		line.live_count += held[i]->live_count;
	}
	if (count != 0)
		add_holder(report->rows, request, model->domains[domain].name, &line);
	free(held);
}

static uint64_t
held_in(const struct model *model, const struct model_failed *failed, enum domain_kind kind)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < failed->domain_count; i++)
		bytes += model->domains[i].id.kind == kind ? failed->domain_bytes[i] : 0;
	return bytes;
}

static void
compose(const struct report *report, const struct model *model, const struct model_failed *failed,
        struct report_request *request)
{
	unsigned device = device_parts_device(model, failed->domain);
	struct device_parts parts;
	uint64_t used_bytes = failed->total_bytes - failed->free_bytes;

	if (!domain_is_driver(model->domains[failed->domain].id.kind))
		return;
	if (model->domains[device].id.kind == DOMAIN_DEVICE)
		request->device = model->domains[device].name;
	request->free_bytes = failed->free_bytes;
	request->total_bytes = failed->total_bytes;
	if (!failed->has_held)
		return;
	request->is_composed = true;
	request->pinned_bytes = held_in(model, failed, DOMAIN_PINNED);
	request->managed_bytes = held_in(model, failed, DOMAIN_MANAGED);
	if (device_parts_of(model, device, failed, &parts)) {
		request->live_bytes = parts.live_bytes;
		request->tensor_bytes = parts.tensor_bytes;
		request->part_count = parts.part_count;
		memcpy(request->parts, parts.parts, sizeof(parts.parts));
		add_holders(report, model, failed,
		            parts.tensor_bytes != 0 ? (unsigned)(parts.tensors - model->domains) : device, request);
	}
	request->pool_kept_bytes = failed->pool_kept_bytes;
	if (used_bytes > request->live_bytes + request->pool_kept_bytes)
		request->untracked_bytes = used_bytes - request->live_bytes - request->pool_kept_bytes;
}

void
report_build_requests(struct report *report, const struct model *model)
{
	report->request_count = model->failed_count;
	report->requests = memory_zeroed(model->failed_count, sizeof(*report->requests));
	for (size_t i = 0; i < model->failed_count; i++) {
		const struct model_failed *failed = &model->failed[i];

		report->requests[i] = (struct report_request){
			.bytes = failed->bytes,
			.domain = model->domains[failed->domain].name,
			.state = refusal_state_name(refusal_state(model, verdict_now(), failed)),
			.error = failed->error,
			.pid = model->processes[failed->process].identity->pid,
			.where = report_place_of(report->rows, failed->site),
		};
		compose(report, model, failed, &report->requests[i]);
	}
}
