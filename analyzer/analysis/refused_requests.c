/*
 * refused_requests.c - what became of the requests that were refused (see refused_requests.h)?
 *
 * When failing  it cannot.
 */
#include "analysis/refused_requests.h"

#include "analysis/device_parts.h"
#include "base/items.h"
#include "kmem_words.h"

// refusals closer to each other count as one: an allocator tries once more, in smaller pieces
#define REFUSED_REQUESTS_APART_NS UINT64_C(1000000000)
#define WENT_ON_LEAST_BYTES (UINT64_C(16) << 20) // printing an error takes less, with all that is imported for it
#define WENT_ON_MOST_BYTES \
	(UINT64_C(64) << 20) // a program that was given so much, or a thousandth of what was refused, goes on
// what a thread is given between an error that nothing catches and the end of Python: 1 MiB was measured; less is not recorded
#define ERROR_BYTES (UINT64_C(4) << 20)
#define END_AFTER_REFUSAL_NS UINT64_C(5000000000) // a program that handles the error lives longer than this

NAMES_OF(
	refusal_state_name, [REFUSAL_FATAL] = "fatal", [REFUSAL_PENDING] = "pending", [REFUSAL_RECOVERED] = "recovered")

static bool
is_soon_after(const struct model_failed *later, const struct model_failed *earlier)
{
	return later->process == earlier->process && later->monotonic_ns >= earlier->monotonic_ns &&
	       later->monotonic_ns - earlier->monotonic_ns <= REFUSED_REQUESTS_APART_NS;
}

static bool
is_tensors(const struct model *model, const struct model_failed *failed)
{
	return model->domains[failed->domain].id.kind == DOMAIN_TENSORS;
}

/* PyTorch gives up on a tensor after the driver refused the memory for it; NULL: it did not. */
static const struct model_failed *
given_up_for(const struct model *model, const struct model_failed *failed)
{
	return !is_tensors(model, failed)
	           ? FIRST(other, model->failed, model->failed_count,
	                   is_tensors(model, other) && is_soon_after(other, failed) && other->thread == failed->thread &&
	                       device_parts_device(model, other->domain) == failed->domain)
	           : NULL;
}

static bool
is_last_of_process(const struct model *model, const struct model_failed *failed)
{
	return !ANY(other, model->failed, model->failed_count,
	            other->process == failed->process &&
	                other->monotonic_ns > failed->monotonic_ns + REFUSED_REQUESTS_APART_NS);
}

/*
 * Between the two it made tensors, and was refused something like that again: it had gone on from the first. What an error path
 * asks for is little.
 */
static bool
has_gone_on(const struct model *model, const struct model_failed *failed)
{
	return is_tensors(model, failed) &&
	       ANY(later, model->failed, model->failed_count,
	           later->process == failed->process && later->domain == failed->domain &&
	               later->monotonic_ns >= failed->monotonic_ns && later->events_before > failed->events_before &&
	               later->bytes >= failed->bytes / 2);
}

/* Half of it: the smaller try was met, or enough else. */
static bool
went_on(const struct model_failed *failed)
{
	uint64_t enough = failed->bytes / 2;

	if (enough < WENT_ON_LEAST_BYTES)
		enough = WENT_ON_LEAST_BYTES;
	return failed->got_bytes >= (enough < WENT_ON_MOST_BYTES ? enough : WENT_ON_MOST_BYTES);
}

/* Of one that nobody saw end, tensors are asked for until then: the last heartbeat is not far from it. */
static uint64_t
ended_about(const struct model *model, const struct model_failed *failed)
{
	const struct model_process *process = &model->processes[failed->process];
	uint64_t ended = model_ended_ns(process);

	if (ended != 0 || !is_tensors(model, failed) || process->heartbeat_count == 0)
		return ended;
	ended = model_last_seen_ns(process);
	return ended > failed->monotonic_ns ? ended : failed->monotonic_ns;
}

enum refusal_state
refusal_state(const struct model *model, const struct verdict_now *now, const struct model_failed *failed)
{
	const struct model_failed *tensor = given_up_for(model, failed);
	const struct model_process *process = &model->processes[failed->process];
	enum verdict_end end = verdict_end_of(process, now);
	uint64_t ended = ended_about(model, failed);

	if (failed->outcome == KMEM_FAILED_GOT_ENOUGH)
		return REFUSAL_RECOVERED;
	if (tensor != NULL)
		return refusal_state(model, now, tensor);
	/* PyTorch does not ask for less by itself: what it got then was another tensor. */
	if (failed->outcome == KMEM_FAILED_GOT_LESS && !is_tensors(model, failed))
		return REFUSAL_RECOVERED;
	if (has_gone_on(model, failed) || went_on(failed))
		return REFUSAL_RECOVERED;
	if (end == VERDICT_END_RUNNING)
		return failed->had_success_after ? REFUSAL_RECOVERED : REFUSAL_PENDING;
	if (end == VERDICT_END_OK)
		return REFUSAL_RECOVERED;
	if (!failed->had_success_after)
		return REFUSAL_FATAL;
	/* Writing the error's message allocates too: ending right after it is no recovery. */
	if (end != VERDICT_END_ELSEWHERE && is_last_of_process(model, failed) && ended >= failed->monotonic_ns &&
	    ended - failed->monotonic_ns < END_AFTER_REFUSAL_NS)
		return REFUSAL_FATAL;
	/* Nobody saw when it ended, but it was given no more than an exception takes, and was not seen at work much later. */
	if (end == VERDICT_END_GONE && ended == 0 && is_last_of_process(model, failed) && failed->is_got_known &&
	    failed->got_bytes < ERROR_BYTES && model_last_seen_ns(process) < failed->monotonic_ns + END_AFTER_REFUSAL_NS)
		return REFUSAL_FATAL;
	return REFUSAL_RECOVERED;
}

/* It ended with it, or runs and has done nothing since PyTorch gave up: a driver may be asked again, of PyTorch's exception nothing comes. */
static bool
is_fatal(const struct model *model, const struct verdict_now *now, const struct model_failed *failed)
{
	enum refusal_state state = refusal_state(model, now, failed);

	return state == REFUSAL_FATAL || (state == REFUSAL_PENDING && is_tensors(model, failed));
}

/* Which of two that were refused shortly before the last one began what ended with it? */
static bool
is_rather(const struct model_failed *failed, const struct model_failed *found, const struct model_failed *last)
{
	bool are_small = failed->bytes < KMEM_ERROR_PATH_BYTES && found->bytes < KMEM_ERROR_PATH_BYTES;

	if (failed->bytes == found->bytes || (are_small && last->bytes < KMEM_ERROR_PATH_BYTES))
		return failed->monotonic_ns < found->monotonic_ns;
	return failed->bytes > found->bytes && last->bytes < KMEM_ERROR_PATH_BYTES;
}

/*
 * What was asked for when memory first ran out: the last fatal request, or the first of those as large shortly before it in the
 * same kind of memory. An error path asks for little and is refused as well: from so little, the largest of them, and of those that all
 * asked for little the first. From more than that it is not, for a larger one before it may have been caught.
 */
const struct model_failed *
refusal_of_end(const struct model *model, const struct verdict_now *now, unsigned process)
{
	const struct model_failed *last = NULL, *found;

	EACH (failed, model->failed, model->failed_count) {
		if (failed->process == process && is_fatal(model, now, failed) &&
		    (last == NULL || failed->monotonic_ns >= last->monotonic_ns))
			last = failed;
	}
	found = last;
	for (size_t i = 0; last != NULL && i < model->failed_count; i++) {
		const struct model_failed *failed = &model->failed[i];

		if (!is_soon_after(last, failed) || !is_fatal(model, now, failed))
			continue;
		/* PyTorch gave up on a tensor: that is what the program asked for, not the memory that it wanted for it. */
		if (is_tensors(model, failed))
			return failed;
		if (is_rather(failed, found, last) && domain_is_driver(model->domains[failed->domain].id.kind) ==
		                                          domain_is_driver(model->domains[last->domain].id.kind))
			found = failed;
	}
	return found;
}

/* ---- devices as they were ---- */

/* The driver was asked for the tensor's memory right before: what it said then is about the tensor, too. */
static void
pair_memory(struct model *model)
{
	EACH (tensor, model->failed, model->failed_count) {
		for (size_t k = 0; k < model->failed_count && is_tensors(model, tensor); k++) {
			const struct model_failed *driver = &model->failed[k];

			if (driver->total_bytes == 0 || !is_soon_after(tensor, driver) ||
			    driver->domain != device_parts_device(model, tensor->domain))
				continue;
			tensor->free_bytes = driver->free_bytes; // of several the last: they are in order of time
			tensor->total_bytes = driver->total_bytes;
			tensor->pool_kept_bytes = driver->pool_kept_bytes;
		}
	}
}

static uint64_t
held_in(const struct model_failed *failed, unsigned domain)
{
	return domain < failed->domain_count ? failed->domain_bytes[domain] : 0;
}

/* What fills a device is in tensors, where they are recorded. */
static uint64_t
filling_bytes(const struct model *model, const struct model_failed *failed, unsigned device)
{
	const struct model_domain *tensors = device_parts_tensors(model, device);

	return held_in(failed, tensors != NULL ? (unsigned)(tensors - model->domains) : device);
}

static void
move(uint64_t *live, uint64_t then, uint64_t end)
{
	*live = *live + then > end ? *live + then - end : 0;
}

static void
restore_site(struct model *model, const struct model_held *held)
{
	struct model_site *site = &model->sites[held->site - model->sites];
	struct model_domain *domain = &model->domains[site->domain];

	if (held->live_bytes != held->end_bytes || held->live_count != held->end_count)
		domain->is_at_refusal = true;
	move(&site->live_bytes, held->live_bytes, held->end_bytes);
	if (site->most_live_bytes < held->live_bytes)
		site->most_live_bytes = held->live_bytes;
	move(&site->live_count, held->live_count, held->end_count);
	move(&domain->live_bytes, held->live_bytes, held->end_bytes);
	move(&domain->together_live_bytes, held->live_bytes, held->end_bytes);
	move(&domain->freed_bytes, held->end_bytes, held->live_bytes);
	move(&domain->live_count, held->live_count, held->end_count);
	move(&domain->freed_count, held->end_count, held->live_count);
	if (!held->has_generations)
		return;
	site->generations_alive = held->generations_alive;
	site->generations_total = held->generations_total;
	site->recent_alive = held->recent_alive;
	site->recent_total = held->recent_total;
	site->survivors = held->survivors;
	site->ticks.now = 0;
	site->bytes_per_generation = site->generations_alive != 0 ? site->live_bytes / site->generations_alive : 0;
}

/* The moment at which the process held most on the device, of several the last: then the cache was given back. */
static void
restore(struct model *model, const struct verdict_now *now, unsigned process, unsigned device)
{
	const struct model_failed *chosen = NULL;

	EACH (failed, model->failed, model->failed_count) {
		if (failed->process == process && failed->has_held && device_parts_device(model, failed->domain) == device &&
		    is_fatal(model, now, failed) &&
		    (chosen == NULL || filling_bytes(model, failed, device) >= filling_bytes(model, chosen, device)))
			chosen = failed;
	}
	for (size_t i = 0; chosen != NULL && i < chosen->held_count; i++) {
		if (device_parts_device(model, chosen->held[i].site->domain) == device)
			restore_site(model, &chosen->held[i]);
	}
}

void
refused_requests_settle(struct model *model, const struct verdict_now *now)
{
	pair_memory(model);
	for (unsigned process = 0; process < model->process_count; process++) {
		if (verdict_end_of(&model->processes[process], now) == VERDICT_END_RUNNING)
			continue;
		for (unsigned device = 0; device < model->domain_count; device++) {
			if (model->domains[device].id.kind == DOMAIN_DEVICE)
				restore(model, now, process, device);
		}
	}
}
