/*
 * verdict_children.c - how is told of child processes that did not end by themselves, when their parent did?
 *
 * When failing  it cannot; long texts are cut.
 */
#include <inttypes.h>

#include "base/units.h"
#include "verdict/verdict_tell.h"

#define WORTH_BYTES (UINT64_C(1) << 20) // less is not said of a child
#define BEAT_NS UINT64_C(1000000000)    // a process at work is seen every so often

/* A worker that died early is told from those that its pool ended, if they were at work after it. */
void
verdict_children_gather(const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model_process *first = NULL;
	uint64_t next_ns = UINT64_MAX; // of all but the first

	for (size_t i = 1; i < facts->model->process_count && facts->lost_count > 1; i++) {
		const struct model_process *process = &facts->model->processes[i];
		uint64_t seen_ns = verdict_last_seen_ns(process);

		if (verdict_end_of(process, now) != VERDICT_END_GONE)
			continue;
		if (first == NULL || seen_ns < verdict_last_seen_ns(first)) {
			next_ns = first != NULL ? verdict_last_seen_ns(first) : UINT64_MAX;
			first = process;
		} else if (seen_ns < next_ns) {
			next_ns = seen_ns;
		}
	}
	if (first != NULL && verdict_last_seen_ns(first) != 0 && next_ns != UINT64_MAX &&
	    next_ns - verdict_last_seen_ns(first) >= BEAT_NS)
		facts->first_lost = first;
}

/* "31 MiB", with what it copied of its parent's. */
static void
say_heft(const struct model_process *process, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];
	bool is_copied_unknown = process->copied_bytes < WORTH_BYTES && process->inherited_bytes >= WORTH_BYTES &&
	                         process->private_dirty_bytes == 0;
	bool was_higher = verdict_peak_of(process) / 2 > process->live_bytes && verdict_peak_of(process) >= WORTH_BYTES;

	say(verdict, "%s", units_bytes(process->live_bytes, bytes));
	if (was_higher)
		say(verdict, " (%s at its peak%s", units_bytes(verdict_peak_of(process), bytes),
		    is_copied_unknown ? "; " : ")");
	if (process->copied_bytes >= WORTH_BYTES)
		say(verdict, " and had copied at least %s of its parent's", units_bytes(process->copied_bytes, bytes));
	if (is_copied_unknown)
		say(verdict, "%show much it copied of its parent's %s is not known)", was_higher ? "" : " (",
		    units_bytes(process->inherited_bytes, bytes));
}

static void
say_first_lost(const struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t ended_ns = verdict_ended_ns(facts->process);
	uint64_t seen_ns = verdict_last_seen_ns(facts->first_lost);
	char bytes[UNITS_TEXT_BYTES];

	say(verdict, ". The first that was seen at work no more (who idles is not seen) was ");
	verdict_say_process(facts->first_lost, verdict);
	if (ended_ns > seen_ns)
		say(verdict, ", %.1f s before the end", (double)(ended_ns - seen_ns) / 1e9);
	say(verdict, "; it held %s", units_bytes(facts->first_lost->live_bytes, bytes));
}

void
verdict_say_lost(const struct verdict_facts *facts, struct verdict *verdict)
{
	char sum[UNITS_TEXT_BYTES];

	if (facts->lost_child == NULL || facts->lost_child == facts->process)
		return;
	if (facts->lost_count == 1)
		say(verdict, " One child process was ended by a signal or crashed: ");
	else
		say(verdict, " %zu child processes were ended by a signal or crashed, and held %s in sum; the largest, ",
		    facts->lost_count, units_bytes(facts->lost_bytes, sum));
	verdict_say_process(facts->lost_child, verdict);
	say(verdict, ", held ");
	say_heft(facts->lost_child, verdict);
	if (facts->first_lost != NULL)
		say_first_lost(facts, verdict);
	say(verdict, ". Which signal%s only %s parent knows; a pool that closes sends SIGTERM.",
	    facts->lost_count == 1 ? " it was" : "s those were", facts->lost_count == 1 ? "its" : "their");
}

void
verdict_tell_child_killed(const struct verdict_facts *facts, struct verdict *verdict)
{
	char sum[UNITS_TEXT_BYTES];

	verdict_say_ending(facts, verdict);
	say(verdict,
	    ", but in its time the kernel killed %" PRIu64
	    " process%s of its container for lack of memory (%s: the cgroup's "
	    "oom_kill counter rose from %" PRIu64 " to %" PRIu64 "%s), and ",
	    facts->cgroup_kills, facts->cgroup_kills == 1 ? "" : "es", verdict->confidence, facts->cgroup_kills_before,
	    facts->cgroup_kills_before + facts->cgroup_kills, facts->counters_are_late ? ", read after the fact" : "");
	if (facts->lost_count == 1)
		say(verdict, "its child process ");
	else
		say(verdict, "%zu of its child processes ended without a clean exit, and held %s in sum; the largest, ",
		    facts->lost_count, units_bytes(facts->lost_bytes, sum));
	verdict_say_process(facts->lost_child, verdict);
	say(verdict, facts->lost_count == 1 ? " ended without a clean exit. It held " : ", held ");
	say_heft(facts->lost_child, verdict);
	say(verdict, ".");
	verdict_say_peak(facts, false, verdict);
}
