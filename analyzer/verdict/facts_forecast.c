/*
 * facts_forecast.c - at this rate, when is the limit reached (see facts.h)?
 *
 * From the last heartbeats of the process, and only where a line accumulates: the resident set must have grown in each quarter of the
 * time that they cover, by much the same. What a program loads when it starts is left out: the first fifth of its life. Of one that a
 * signal ended, the rate alone: it may have been the limit.
 */
#include "analysis/line_steps.h"
#include "verdict/facts.h"

#define SECOND_NS UINT64_C(1000000000)
#define WINDOW_NS (30 * SECOND_NS) // less says nothing
#define START_UP_PART 5
#define QUARTERS 4
#define STEPS_MIN 6
#define EVEN 3 // a quarter may have so many times the mean, or a so manyth of it
#define WORTH_BYTES (UINT64_C(1) << 20)
#define MOST_MINUTES (UINT64_C(7) * 24 * 60) // nobody knows what is in a week

/* Between two beats it grows evenly. */
static double
resident_at(const struct model_process *process, uint64_t at_ns)
{
	const struct kmem_heartbeat *beats = process->heartbeats;
	size_t next = 1;

	while (next + 1 < process->heartbeat_count && beats[next].monotonic_ns < at_ns)
		next++;
	const struct kmem_heartbeat *before = &beats[next - 1];
	const struct kmem_heartbeat *after = &beats[next];
	double share = after->monotonic_ns > before->monotonic_ns ? ((double)at_ns - (double)before->monotonic_ns) /
	                                                                (double)(after->monotonic_ns - before->monotonic_ns)
	                                                          : 1;

	return (double)before->resident_bytes + share * ((double)after->resident_bytes - (double)before->resident_bytes);
}

void
verdict_forecast_gather(struct verdict_facts *facts)
{
	const struct model_process *process = facts->process;
	size_t count = process->heartbeat_count;

	bool is_foreseen = facts->end == VERDICT_END_RUNNING || facts->end == VERDICT_END_OK;

	if (count < 2 * QUARTERS || (!is_foreseen && facts->end != VERDICT_END_SIGNAL && facts->end != VERDICT_END_GONE) ||
	    facts->leaking_bytes < WORTH_BYTES)
		return;
	const struct kmem_heartbeat *last = &process->heartbeats[count - 1];
	uint64_t start_ns = process->identity->start_monotonic_ns;
	uint64_t life_ns = last->monotonic_ns > start_ns ? last->monotonic_ns - start_ns : 0;
	uint64_t from_ns = start_ns + life_ns / START_UP_PART;
	uint64_t used_bytes = verdict_used_bytes(last);

	if (from_ns < process->heartbeats[0].monotonic_ns)
		from_ns = process->heartbeats[0].monotonic_ns;
	if (last->monotonic_ns < from_ns + WINDOW_NS)
		return;
	uint64_t window_ns = last->monotonic_ns - from_ns;
	double grown = resident_at(process, last->monotonic_ns) - resident_at(process, from_ns);

	if (grown < (double)WORTH_BYTES)
		return;
	for (unsigned i = 0; i < QUARTERS; i++) {
		double part = resident_at(process, from_ns + window_ns / QUARTERS * (i + 1)) -
		              resident_at(process, from_ns + window_ns / QUARTERS * i);

		if (part * EVEN < grown / QUARTERS || part > grown / QUARTERS * EVEN)
			return;
	}
	double rate = grown / (double)window_ns * 60e9;

	if (!is_foreseen)
		facts->pace_bytes = (uint64_t)rate;
	if (!is_foreseen || last->limit_bytes == UINT64_MAX || used_bytes >= last->limit_bytes)
		return;
	double minutes = (double)(last->limit_bytes - used_bytes) / rate;

	if (minutes > (double)MOST_MINUTES)
		return;
	const struct model_steps *steps = &process->steps;
	uint64_t stepping_ns = last->monotonic_ns > steps->began_ns ? last->monotonic_ns - steps->began_ns : 0;
	/* Most rounds of a quick loop are missed: they count where the blocks that are kept confirm them. */
	bool is_exact = steps->source == KMEM_STEPS_PROGRAM || steps->source == KMEM_STEPS_CELLS;
	bool is_confirmed = !is_exact && facts->most_leaking.telling != NULL &&
	                    &facts->model->processes[facts->most_leaking.telling->process] == process &&
	                    line_steps_of(facts->model, &facts->most_leaking).count != 0;
	bool has_steps = (is_exact || is_confirmed) && steps->count >= STEPS_MIN && stepping_ns != 0;

	facts->forecast = (struct verdict_forecast){
		.bytes_per_minute = (uint64_t)rate,
		.minutes = (uint64_t)(minutes + 0.5),
		.steps_source = steps->source,
		.steps = has_steps ? (uint64_t)(minutes * 60e9 * (double)steps->count / (double)stepping_ns) : 0,
		.used_bytes = used_bytes,
		.limit_bytes = last->limit_bytes
	};
}
