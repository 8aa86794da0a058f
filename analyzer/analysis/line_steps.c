/*
 * line_steps.c - how much of a line that accumulates was kept in each step, and in an hour (see line_steps.h)?
 */
#include "analysis/line_steps.h"

#define STEPS_MIN 6u // fewer say nothing
#define HOUR_NS UINT64_C(3600000000000)
#define RATE_NS UINT64_C(60000000000) // of less nobody can say what an hour brings

static uint64_t
last_seen_ns(const struct model_process *process)
{
	return process->ended_monotonic_ns ?: model_last_seen_ns(process);
}

struct line_steps
line_steps_of(const struct model *model, const struct rank_line *line)
{
	const struct model_site *site = line->telling;
	const struct model_process *process = &model->processes[site->process];
	uint64_t began_ns = process->identity->start_monotonic_ns + site->first_ms * 1000000;
	uint64_t ns = last_seen_ns(process) > began_ns ? last_seen_ns(process) - began_ns : 0;
	bool is_loop = process->steps.source == KMEM_STEPS_LOOP;
	/* A library's allocator takes memory for many rounds at once. */
	bool is_of_many = site->library != NULL || domain_is_address_space(model->domains[site->domain].id.kind);
	bool is_one = !is_of_many && site->live_count * 4 >= site->steps * 3 && site->live_count * 3 <= site->steps * 4;

	if (site->steps < STEPS_MIN || site->process_count != 1 || line->leaking_bytes == 0 || (is_loop && !is_one))
		return (struct line_steps){ .count = 0 };
	return (struct line_steps){
		/* Blocks are counted, rounds of a loop are estimated. */
		.count = is_loop ? site->live_count : site->steps,
		.bytes = is_one ? site->live_bytes / site->live_count : line->leaking_bytes / site->steps,
		.bytes_per_hour = ns >= RATE_NS ? (uint64_t)((double)line->leaking_bytes * (double)HOUR_NS / (double)ns) : 0,
		.is_one_block = is_one,
		/* A loop's stack may change while it runs (rank_leaks.c): what its line keeps has an earlier site then. */
		.since_ms = is_loop && line->live_bytes * 4 >= site->live_bytes * 5 ? site->first_ms : 0,
		.from = &process->steps,
	};
}
