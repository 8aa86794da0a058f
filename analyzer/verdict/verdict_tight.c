/*
 * verdict_tight.c - how much did a process hold at most, how much of it was never touched, and would a little more have been too much?
 *
 * When failing  it cannot; what no heartbeat saw is not told.
 */
#include <string.h>

#include "base/units.h"
#include "verdict/verdict_tell.h"

#define LOOK_LATE_NS UINT64_C(100000000) // who looked so shortly before the end looked at its end
#define TIGHT_PERCENT 80                 // of the limit; less is room enough

/* By all that lives under the limit, where that is known. */
static uint64_t
used_bytes(const struct kmem_heartbeat *beat)
{
	return beat->cgroup_bytes != 0 ? beat->cgroup_bytes : beat->resident_bytes;
}

/* Of the process with the highest peak: what it held, and all that was in memory of it, filled the limit. NULL = never seen. */
static const struct kmem_heartbeat *
fullest(const struct verdict_facts *facts)
{
	const struct model_process *process = facts->peak_process;
	const struct kmem_heartbeat *found = NULL;

	for (size_t i = 0; i < process->heartbeat_count; i++) {
		const struct kmem_heartbeat *beat = &process->heartbeats[i];
		uint64_t tight_bytes = beat->limit_bytes / 100 * TIGHT_PERCENT;

		/* Memory that was not touched fills nothing, nor do pages of files, which the kernel takes back. */
		if (beat->limit_bytes != 0 && beat->live_bytes >= tight_bytes && beat->resident_bytes >= tight_bytes &&
		    (found == NULL || used_bytes(beat) > used_bytes(found)))
			found = beat;
	}
	return found;
}

void
verdict_tell_tight(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct kmem_heartbeat *beat = fullest(facts);
	char used[UNITS_TEXT_BYTES];
	char limit[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];

	if (beat != NULL)
		say(verdict, " At one look %s of the %s's %s were in use (%s).", units_bytes(used_bytes(beat), used),
		    beat->limit_bytes < facts->peak_process->identity->machine_bytes ? "container" : "machine",
		    units_bytes(beat->limit_bytes, limit),
		    units_share(verdict_share(used_bytes(beat), beat->limit_bytes), share));
}

bool
verdict_advise_tight(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_peak;
	char place[PLACE_TEXT_BYTES];
	char word[VERDICT_WORD_BYTES];

	if (fullest(facts) == NULL || top->site_count == 0)
		return false;
	say_next(verdict, "little room was left: hold less at once (most was %s %s), or give the program more memory",
	         verdict_where_word(facts, top, word), verdict_line_text(top, place));
	return true;
}

uint64_t
verdict_peak_of(const struct model_process *process)
{
	uint64_t most = process->peak_bytes > process->live_bytes ? process->peak_bytes : process->live_bytes;

	for (size_t i = 0; i < process->heartbeat_count; i++) {
		if (process->heartbeats[i].live_bytes > most)
			most = process->heartbeats[i].live_bytes;
	}
	return most;
}

uint64_t
verdict_untouched_bytes(const struct model_process *process, const struct model_domain *domain)
{
	const struct kmem_resident *look = process->resident;
	unsigned part = strcmp(domain->name, "mmap") == 0 ? KMEM_RESIDENT_MMAP : KMEM_RESIDENT_PYTHON_ARENA;

	if (domain->untouched_bytes != 0)
		return domain->untouched_bytes;
	if (look == NULL || (part != KMEM_RESIDENT_MMAP && strcmp(domain->name, "python/arena") != 0) ||
	    (!process->is_finalizing && look->monotonic_ns + LOOK_LATE_NS < verdict_ended_ns(process)) ||
	    look->part_bytes[part] >= domain->live_bytes)
		return 0;
	return domain->live_bytes - look->part_bytes[part];
}
