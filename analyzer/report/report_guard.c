/*
 * report_guard.c - what is told of a process that passed its guard (see report.h)?
 *
 * When failing  it cannot.
 */
#include <stdlib.h>

#include "base/items.h"
#include "report/report_build.h"

/* enum kmem_limit_kind, from 1 */
NAMES_OF(report_guard_limit, "cgroup", "machine", "address-space")

/* in the order of enum kmem_guard_action */
NAMES_OF(report_guard_action, "note", "interrupt", "raise", "exec")

/* A session that a program opened by itself is named after its own start; a launcher's is older. */
static bool
is_without_launcher(const struct kmem_identity *identity)
{
	return identity->is_first != 0 && strtoull(identity->session, NULL, 16) == identity->start_realtime_ns / 1000;
}

static const char *
why_nobody_looked(const struct model_process *process)
{
	if (process->holders != NULL && process->holders->leak_bytes == 0)
		return process->holders->why[0] != '\0' ? process->holders->why : NULL;
	return process->guard.action == KMEM_GUARD_NOTE && is_without_launcher(process->identity)
	           ? "kmemshim run looks when the guard is passed, LD_PRELOAD alone does not"
	           : NULL;
}

void
report_guard_build(struct report *report, const struct model *model, const struct verdict *verdict)
{
	const struct model_process *process = verdict_guard_passer(model, verdict->process);
	const struct kmem_guard_passing *passing = process != NULL ? &process->guard : NULL;

	if (passing == NULL)
		return;
	uint64_t end_ns = model_ended_ns(process) ?: model_last_seen_ns(process);

	report->guard = (struct report_guard){
		.of = *passing,
		.pid = process->identity->pid,
		.limit = report_guard_limit(passing->limit_kind - 1) ?: "machine",
		.action = report_guard_action(passing->action),
		.is_action_in_vain = passing->outcome != KMEM_GUARD_DONE,
		.look = process->holders != NULL && process->holders->leak_bytes == 0 ? process->holders : NULL,
		.no_look = why_nobody_looked(process),
		.before_end_ns = end_ns > passing->monotonic_ns ? end_ns - passing->monotonic_ns : 0,
	};
}

void
report_tell_guard(struct report *report, struct report *then)
{
	struct report_guard *guard = &report->guard;

	report->then = then;
	for (size_t i = 0; i < then->line_total; i++) {
		struct report_line line = report_line_figures(then, i);

		if (line.is_address_space || line.is_device)
			continue;
		guard->live_bytes += line.of.live_bytes;
		if (line.of.is_import || line.of.live_bytes == 0 || guard->line_count == REPORT_GUARD_LINES_MAX)
			continue;
		line = report_line(then, i);
		guard->lines[guard->line_count++] = (struct report_holder){
			.domain = line.domain,
			.is_estimated = line.estimate.is_estimated,
			.live_bytes = line.of.live_bytes,
			.live_count = line.of.live_count,
			.where = line.where,
			.held_samples = line.held_samples,
			.way = line.way_count != 0 ? &line.ways[0] : NULL,
		};
	}
}
