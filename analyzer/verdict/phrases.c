/*
 * phrases.c - how is a finding said?
 *
 * One row per kind of finding: its name and the function that writes its one or two sentences. Numbers carry units, a conclusion
 * carries its confidence and what it rests on, a line is where memory "was allocated". "Live" is what was allocated and not freed;
 * "in memory" is what occupies physical memory.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text_clean.h"
#include "base/units.h"
#include "model/model_library.h"
#include "analysis/failed_requests.h"

#define EXPLAINING_PART 3 // of what was in memory: a line with less does not explain it
#define TOLD_PART 20      // of what was in memory: smaller parts are summed up
#define TOLD_MAX 3
#define OLD_PART 8 // memory differs by that much: the sample was of another time
#define OLD_NS UINT64_C(1000000000)
#define WORTH_BYTES (UINT64_C(1) << 20) // less is not said of a child
#define ROUNDS_MIN 6                    // lines that ran less often do not tell the pace

void
say(struct verdict *verdict, const char *format, ...)
{
	size_t used = strlen(verdict->text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(verdict->text + used, sizeof(verdict->text) - used, format, arguments);
	va_end(arguments);
}

void
say_next(struct verdict *verdict, const char *format, ...)
{
	size_t used = strlen(verdict->next);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(verdict->next + used, sizeof(verdict->next) - used, format, arguments);
	va_end(arguments);
}

/* ---- words that sentences share ---- */

const char *
verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES])
{
	if (line->where == NULL)
		return place_text("", 0, "", "", 0, text);
	(void)place_text(line->where->file, line->where->line, line->where->function, line->where->module,
	                 line->where->module_offset, text);
	return place_related(line->largest != NULL ? model_relation_name(line->largest->where_relation) : "", text);
}

const char *
verdict_where_word(const struct verdict_facts *facts, const struct rank_line *line, char text[VERDICT_WORD_BYTES])
{
	const struct model_runtime *runtime = line->largest != NULL ? model_runtime_of(facts->model, line->largest) : NULL;
	char name[64];

	if (runtime != NULL) {
		(void)snprintf(text, VERDICT_WORD_BYTES, "in the heap of %s, which grew at", runtime->name);
		return text;
	}
	if (line->largest == NULL || line->largest->library == NULL)
		return verdict_is_arena(facts, line) ? "in" : "allocated at";
	(void)snprintf(name, sizeof(name), "%s", line->largest->library);
	(void)text_clean(name, strlen(name));
	(void)snprintf(text, VERDICT_WORD_BYTES, "in the own allocator of %s, which grew (an estimate) at", name);
	return text;
}

/* Appends the text, in which {bytes}, {whole}, {rest} (of the whole), {share} and {where} stand for the finding's. */
static void
say_finding(const struct finding *finding, const char *text, struct verdict *verdict)
{
	char value[PLACE_TEXT_BYTES];

	while (*text != '\0') {
		size_t plain = strcspn(text, "{");

		say(verdict, "%.*s", (int)plain, text);
		text += plain;
		if (strncmp(text, "{bytes}", 7) == 0)
			(void)units_bytes(finding->bytes, value);
		else if (strncmp(text, "{whole}", 7) == 0)
			(void)units_bytes(finding->whole_bytes, value);
		else if (strncmp(text, "{rest}", 6) == 0)
			(void)units_bytes(finding->whole_bytes - finding->bytes, value);
		else if (strncmp(text, "{share}", 7) == 0)
			(void)units_share(verdict_share(finding->bytes, finding->whole_bytes), value);
		else if (strncmp(text, "{where}", 7) == 0)
			(void)verdict_line_text(&finding->line, value);
		else
			return;
		text += strcspn(text, "}") + 1;
		say(verdict, "%s", value);
	}
}

static void
say_process(const struct model_process *process, struct verdict *verdict)
{
	char name[PLACE_TEXT_BYTES];

	(void)snprintf(name, sizeof(name), "%s", process->name);
	(void)text_clean(name, strlen(name));
	say(verdict, "%s (pid %" PRIu32 ")", name, process->identity->pid);
}

static void
say_who(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->is_descendant)
		say(verdict, "A child process, ");
	say_process(facts->process, verdict);
	if (facts->is_descendant)
		say(verdict, ",");
}

/* "train.py (pid 7) exited with status 1" */
static void
say_end(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	if (facts->end == VERDICT_END_SIGNAL)
		say(verdict, " was ended by signal %d (SIG%s)", facts->signal,
		    sigabbrev_np(facts->signal) != NULL ? sigabbrev_np(facts->signal) : "?");
	else if (facts->end == VERDICT_END_FAILED)
		say(verdict, " exited with status %d", facts->exit_code);
	else if (facts->process->state == KMEM_STATE_EXEC_REPLACED)
		say(verdict, " was replaced by another program (exec)");
	else if (facts->end == VERDICT_END_OK)
		say(verdict, facts->exit_code == 0 ? " exited normally, with status 0" : " exited by itself");
	else
		say(verdict, facts->end == VERDICT_END_RUNNING ? " is still running" : " ended without a clean exit");
}

/* "for 2 MiB in heap at train.py:41 epoch" */
static void
say_wanted(const struct model *model, const struct model_failed *refused, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, "for %s in %s", units_bytes(refused->bytes, bytes), model->domains[refused->domain].name);
	if (refused->site != NULL && refused->site->where != NULL) {
		struct rank_line line = { .where = refused->site->where, .largest = refused->site };

		say(verdict, " at %s", verdict_line_text(&line, place));
	}
}

static void
say_refusal(const struct verdict_facts *facts, struct verdict *verdict)
{
	say(verdict, "a request ");
	say_wanted(facts->model, facts->refused, verdict);
	say(verdict, " was refused");
}

static void
say_counter(const struct verdict_facts *facts, struct verdict *verdict)
{
	say(verdict, "the cgroup's oom_kill counter rose from %" PRIu64 " to %" PRIu64 "%s", facts->cgroup_kills_before,
	    facts->cgroup_kills_before + facts->cgroup_kills, facts->counters_are_late ? ", read after the fact" : "");
}

/* " (certain: the counter rose)." */
static void
say_confidence(const struct verdict_facts *facts, struct verdict *verdict)
{
	say(verdict, " (%s", verdict_confidence_name(verdict->confidence));
	if (facts->cgroup_kills != 0) {
		say(verdict, ": ");
		say_counter(facts, verdict);
	}
	say(verdict, ").");
}

static const char *
plural(uint64_t count, const char *many)
{
	return count == 1 ? "" : many;
}

/* ", or it is a one-time load ..." */
static const char *
if_built_once(const struct rank_line *line)
{
	return rank_may_be_built_once(line->telling) ? ", or it is a one-time load (little else was allocated meanwhile)"
	                                             : "";
}

/* It is known that there was none. */
static bool
is_no_kill_counted(const struct verdict_facts *facts)
{
	return facts->is_kill_counted ? facts->cgroup_kills == 0 : facts->is_machine_counted && facts->machine_kills == 0;
}

/* ---- how each cause of death is told ---- */

static void
end_not_closed(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	say(verdict, " was not closed, and this is another boot of the machine, or another machine: how it ended is "
	             "not known.");
}

static void
end_plain(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, ".");
}

static void
end_replaced(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, " that left no capture.");
}

/* "31 MiB", with what it copied of its parent's. */
static void
say_heft(const struct model_process *process, struct verdict *verdict)
{
	uint64_t peak_bytes = verdict_peak_of(process);
	char bytes[UNITS_TEXT_BYTES];
	bool is_copied_unknown = process->copied_bytes < WORTH_BYTES && process->inherited_bytes >= WORTH_BYTES &&
	                         process->private_dirty_bytes == 0;

	say(verdict, "%s", units_bytes(process->live_bytes, bytes));
	if (peak_bytes / 2 > process->live_bytes && peak_bytes >= WORTH_BYTES)
		say(verdict, " (%s at its peak)", units_bytes(peak_bytes, bytes));
	if (process->copied_bytes >= WORTH_BYTES)
		say(verdict, " and had copied at least %s of its parent's", units_bytes(process->copied_bytes, bytes));
	say(verdict, ".");
	if (is_copied_unknown)
		say(verdict, " It is not known how much it copied of its parent's %s.",
		    units_bytes(process->inherited_bytes, bytes));
}

static void
end_child_killed(const struct verdict_facts *facts, struct verdict *verdict)
{
	char sum[UNITS_TEXT_BYTES];

	say_end(facts, verdict);
	say(verdict, ", but the kernel killed %" PRIu64 " process%s of its container for lack of memory meanwhile",
	    facts->cgroup_kills, plural(facts->cgroup_kills, "es"));
	say_confidence(facts, verdict);
	if (facts->lost_count == 1)
		say(verdict, " Its child process ");
	else
		say(verdict, " %zu of its child processes ended without a clean exit; they held %s in sum. The largest, ",
		    facts->lost_count, units_bytes(facts->lost_bytes, sum));
	say_process(facts->lost_child, verdict);
	say(verdict, facts->lost_count == 1 ? " ended without a clean exit. It held " : ", held ");
	say_heft(facts->lost_child, verdict);
}

static void
end_container_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	char limit[UNITS_TEXT_BYTES];

	say_who(facts, verdict);
	say(verdict, " was killed by the kernel because the container's memory limit ");
	if (facts->limit_bytes != UINT64_MAX)
		say(verdict, "of %s ", units_bytes(facts->limit_bytes, limit));
	say(verdict, "was reached");
	say_confidence(facts, verdict);
}

static void
end_machine_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	if (facts->cgroup_kills != 0) {
		say(verdict, " was killed by the kernel because the machine ran out of memory");
		say_confidence(facts, verdict);
	} else if (facts->machine_kills != 0) {
		say(verdict,
		    " was killed, and the kernel killed %" PRIu64 " process%s on this machine for lack of memory "
		    "meanwhile (%s: which ones is not counted).",
		    facts->machine_kills, plural(facts->machine_kills, "es"), verdict_confidence_name(verdict->confidence));
	} else {
		say(verdict, " was killed when the machine was almost out of memory");
		say_confidence(facts, verdict);
	}
}

static void
end_shm_full(const struct verdict_facts *facts, struct verdict *verdict)
{
	char size[UNITS_TEXT_BYTES];

	say_who(facts, verdict);
	say(verdict,
	    " was ended by SIGBUS, which a program gets when it touches shared memory and /dev/shm (%s) is full (%s: "
	    "shared mappings of that size were live).",
	    units_bytes(facts->process->identity->shm_bytes, size), verdict_confidence_name(verdict->confidence));
}

static void
end_device_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, " after ");
	say_refusal(facts, verdict);
	say(verdict, " by the driver (%s).", verdict_confidence_name(verdict->confidence));
}

static void
end_request_refused(const struct verdict_facts *facts, struct verdict *verdict)
{
	const char *confidence = verdict_confidence_name(verdict->confidence);
	bool was_given_more = verdict_was_given_more(facts);
	char bytes[UNITS_TEXT_BYTES];

	say_end(facts, verdict);
	say(verdict, " after ");
	say_refusal(facts, verdict);
	if (!verdict_was_perhaps_caught(facts)) {
		say(verdict, " (%s: nothing shows that it went on from there).", confidence);
		return;
	}
	say(verdict, ". It is not known whether it ended because of that (%s: ", confidence);
	if (was_given_more)
		say(verdict, "the same thread was given %s after it", units_bytes(facts->refused->got_bytes, bytes));
	if (verdict_is_other_status(facts))
		say(verdict, "%san error that nothing catches ends Python with status 1", was_given_more ? ", and " : "");
	say(verdict, ").");
}

static void
end_low_memory_daemon(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, ". %she machine was almost out of memory, so a low-memory daemon may have sent it (%s).",
	    is_no_kill_counted(facts) ? "The kernel's counters do not show a kill, but t" : "T",
	    verdict_confidence_name(verdict->confidence));
}

static void
end_crashed(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, ": it crashed or aborted, it was not killed for memory.");
}

static void
end_signal(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict,
	    is_no_kill_counted(facts)
	        ? ", sent by a program or a person (which is not known): the kernel counted no kill for memory here."
	        : ". It is not known who sent it.");
}

static void
end_failed(const struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t refused = facts->process->failed_count;
	char count[UNITS_TEXT_BYTES];

	say_end(facts, verdict);
	if (refused == 0)
		say(verdict, ": it ended by itself, and no allocation had failed.");
	else
		say(verdict, ": it ended by itself. %s allocation%s had failed earlier, but the program recovered.",
		    units_count(refused, count), plural(refused, "s"));
}

static void
end_gone(const struct verdict_facts *facts, struct verdict *verdict)
{
	const char *confidence = verdict_confidence_name(verdict->confidence);

	say_who(facts, verdict);
	if (verdict_was_time_up(&facts->model->processes[0], facts->cgroup_kills))
		say(verdict, " was ended by timeout: its exit status says that the time was up (%s).", confidence);
	else
		say(verdict,
		    " is gone without a clean-exit mark, and the machine was not restarted: it was killed or crashed (%s). The "
		    "signal is not known, because %s waited for it.",
		    confidence, facts->is_descendant ? "only its parent" : "nobody");
}

static void (*const endings[])(const struct verdict_facts *facts, struct verdict *verdict) = {
	[VERDICT_NOT_CLOSED] = end_not_closed,
	[VERDICT_RUNNING] = end_plain,
	[VERDICT_EXEC_REPLACED] = end_replaced,
	[VERDICT_CHILD_KILLED] = end_child_killed,
	[VERDICT_EXITED] = end_plain,
	[VERDICT_CONTAINER_LIMIT] = end_container_limit,
	[VERDICT_MACHINE_MEMORY] = end_machine_memory,
	[VERDICT_SHM_FULL] = end_shm_full,
	[VERDICT_DEVICE_MEMORY] = end_device_memory,
	[VERDICT_REQUEST_REFUSED] = end_request_refused,
	[VERDICT_LOW_MEMORY_DAEMON] = end_low_memory_daemon,
	[VERDICT_CRASHED] = end_crashed,
	[VERDICT_SIGNAL] = end_signal,
	[VERDICT_FAILED] = end_failed,
	[VERDICT_GONE] = end_gone,
};
static_assert(sizeof(endings) / sizeof(endings[0]) == VERDICT_NO_PROCESS, "each cause has its words");

/* ---- one function per kind of finding ---- */

#define PHRASE(name_) \
	static void name_(const struct verdict_facts *facts, const struct finding *finding, struct verdict *verdict)
PHRASE(say_ending)
{
	bool is_of_memory = verdict->cause == VERDICT_CONTAINER_LIMIT || verdict->cause == VERDICT_MACHINE_MEMORY;

	(void)finding;
	(facts->asked.name == NULL || is_of_memory ? endings[verdict->cause] : end_plain)(facts, verdict);
}

PHRASE(say_usage)
{
	if (facts->charged_bytes != 0 && facts->limit_bytes != UINT64_MAX)
		say_finding(finding, " At the last sample {bytes} of the container's {whole} were in use ({share}).", verdict);
	else if (finding->whole_bytes != 0)
		say_finding(finding, " At the last sample {rest} of the machine's {whole} were still available.", verdict);
	else
		say_finding(finding, " At the last sample it occupied {bytes}.", verdict);
}

PHRASE(say_kernel_kills)
{
	uint64_t kills = facts->is_kill_counted ? facts->cgroup_kills : facts->machine_kills;

	(void)finding;
	say(verdict, " Meanwhile the kernel killed %" PRIu64 " process%s %s for lack of memory", kills, plural(kills, "es"),
	    facts->is_kill_counted ? "of its container" : "on this machine");
	if (facts->is_kill_counted) {
		say(verdict, " (");
		say_counter(facts, verdict);
		say(verdict, ")");
	}
	say(verdict, ".");
}

PHRASE(say_far_from_limits)
{
	(void)finding;
	say(verdict,
	    verdict_is_accumulating(facts) ? " Memory was far from the limits." : " Nothing here points at memory.");
}

PHRASE(say_shell_status)
{
	(void)finding;
	say(verdict,
	    " A shell gives this status when a program that it ran was ended by signal %d; how that one "
	    "ended is not recorded here.",
	    facts->exit_code - 128);
}

static void
say_own_space(const struct verdict_facts *facts, uint64_t limit_bytes, struct verdict *verdict)
{
	uint64_t own_bytes = facts->refused->own_space_bytes;
	char bytes[UNITS_TEXT_BYTES];

	if (own_bytes >= limit_bytes)
		say(verdict, ". Recording had reserved %s of addresses: without it the request might have been met",
		    units_bytes(own_bytes, bytes));
	else
		say(verdict, ", of which recording takes %s", own_bytes != 0 ? units_bytes(own_bytes, bytes) : "a part");
}

PHRASE(say_address_limit)
{
	const struct kmem_identity *identity = facts->process->identity;
	const struct kmem_limit *limit = verdict_address_limit(facts);
	uint64_t then_bytes = facts->refused->space_limit_bytes;
	char bytes[UNITS_TEXT_BYTES];

	(void)finding;
	if (limit != NULL) {
		bool is_space = limit->kind == KMEM_LIMIT_ADDRESS_SPACE;

		say(verdict, " Its %s is limited to %s (ulimit -%s)", is_space ? "address space" : "data segment",
		    units_bytes(limit->bytes, bytes), is_space ? "v" : "d");
		if (is_space)
			say_own_space(facts, limit->bytes, verdict);
		say(verdict, ".");
	} else if (then_bytes != 0) {
		say(verdict, " It had limited its address space to %s (setrlimit, RLIMIT_AS)", units_bytes(then_bytes, bytes));
		say_own_space(facts, then_bytes, verdict);
		say(verdict, ".");
	} else if (identity->overcommit_mode == 2) {
		say(verdict, " This machine refuses what it cannot back with memory (vm.overcommit_memory is 2).");
	} else {
		say(verdict, " That is more than the machine has (%s).", units_bytes(identity->machine_bytes, bytes));
	}
}

PHRASE(say_parts)
{
	const struct verdict_memory *memory = &facts->memory;
	uint64_t rest_bytes = 0;
	char bytes[UNITS_TEXT_BYTES];

	(void)finding;
	(void)units_bytes(memory->bytes, bytes);
	if (memory->is_of_container)
		say(verdict, " Of the %s that the container had in use at the last sample", bytes);
	else
		say(verdict, " Of the %s that %s in memory at the last %s", bytes,
		    facts->live_count > 1 ? "its processes had" : "it had", memory->later_bytes != 0 ? "heartbeat" : "sample");
	for (size_t i = 0; i < memory->part_count; i++) {
		if (i >= TOLD_MAX || (i != 0 && memory->parts[i].bytes < memory->bytes / TOLD_PART)) {
			rest_bytes += memory->parts[i].bytes;
			continue;
		}
		say(verdict, "%s %s was %s", i == 0 ? "," : ";", units_bytes(memory->parts[i].bytes, bytes),
		    memory->parts[i].name);
	}
	if (rest_bytes != 0)
		say(verdict, "; %s was the rest", units_bytes(rest_bytes, bytes));
	say(verdict, ".");
	/* Also where the sample is of another time than what is told beside it. */
	if (memory->age_ns >= OLD_NS && memory->later_bytes >= memory->sample_bytes / OLD_PART)
		say(verdict, " That sample was taken %.1f s before the end, when %s was in memory.",
		    (double)memory->age_ns / 1e9, units_bytes(memory->process_bytes - memory->later_bytes, bytes));
	/* Lines are told as they are at the end: of what was there at the sample that may be the smaller part. */
	if (facts->live_bytes < memory->lines_bytes / 2 && memory->lines_bytes >= memory->bytes / EXPLAINING_PART)
		say(verdict, " Most of what lines held then was released afterwards.");
	else if (facts->top_live.site_count != 0)
		say(verdict, " No line holds a third of it.");
}

/* The line comes early: its few blocks are what to look for. */
PHRASE(say_freed)
{
	const struct verdict_freed *freed = &facts->memory.freed;
	uint64_t used_bytes = freed->heap_bytes > freed->freed_bytes ? freed->heap_bytes - freed->freed_bytes : 0;
	char bytes[UNITS_TEXT_BYTES];
	char whole[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, " Freed memory was not given back (fragmentation): ");
	if (freed->is_later)
		say(verdict, "at the last heartbeat ");
	else if (freed->age_ns >= OLD_NS && facts->end != VERDICT_END_RUNNING)
		say(verdict, "%.1f s before the end ", (double)freed->age_ns / 1e9);
	say(verdict, "malloc ");
	if (facts->model->process_count > 1) {
		say(verdict, "of ");
		say_process(freed->process, verdict);
		say(verdict, " ");
	}
	say(verdict, "had %s in memory, but only about %s of it (%s) was in use.", units_bytes(finding->whole_bytes, whole),
	    units_bytes(used_bytes, bytes), units_share(verdict_share(used_bytes, finding->whole_bytes), share));
	if (verdict_sparse_of(freed) != 0 && finding->line.site_count != 0)
		say(verdict, " A few blocks, most of them allocated at %s, keep %s in memory until they are freed.",
		    verdict_line_text(&finding->line, place), units_bytes(freed->sparse_bytes, bytes));
	else if (verdict_sparse_of(freed) != 0)
		say(verdict, " A few blocks keep %s in memory until they are freed.", units_bytes(freed->sparse_bytes, bytes));
	if (freed->empty_bytes >= freed->freed_bytes / 10 && freed->empty_bytes != 0)
		say(verdict, " malloc_trim(0) gives back %s%s: pages without any block.", freed->is_later ? "at least " : "",
		    units_bytes(freed->empty_bytes, bytes));
}

/* "When it died", "At the end": the moment of what was live. */
static const char *
moment(const struct verdict_facts *facts, const struct verdict *verdict)
{
	switch (verdict->cause) {
	case VERDICT_NOT_CLOSED:
		return "When recording stopped";
	case VERDICT_RUNNING:
		return "Just now";
	case VERDICT_REQUEST_REFUSED:
		return "Then";
	case VERDICT_GONE:
		return "When it ended";
	case VERDICT_EXITED:
	case VERDICT_FAILED:
		return facts->live_process->is_at_exit      ? "When it began to exit"
		       : facts->live_process->is_finalizing ? "When Python began to shut down"
		                                            : "At the end";
	default:
		return "When it died";
	}
}

PHRASE(say_live)
{
	char total[UNITS_TEXT_BYTES];
	char held[UNITS_TEXT_BYTES];

	say(verdict, " %s %s was live", moment(facts, verdict), units_bytes(finding->bytes, total));
	if (verdict_is_in_memory_told(facts))
		say(verdict, ", %s of it in memory", units_bytes(facts->live_bytes, held));
	if (facts->live_count > 1)
		say(verdict, " in the %zu processes that were at work then, %s of it in ", facts->live_count,
		    units_bytes(facts->live_process_bytes, held));
	else if (facts->model->process_count > 1)
		say(verdict, " in ");
	else if (facts->refused == NULL && (facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED) &&
	         facts->peak_domain != NULL && facts->live_bytes > facts->peak_bytes)
		// the peak that was told before is one domain's
		say(verdict, " in all%s", verdict_has_device(facts) ? " on the host" : "");
	if (facts->model->process_count > 1)
		say_process(facts->live_process, verdict);
	say(verdict, ".");
}

/* "401 MiB of it (82 %) was " */
static void
say_part(const struct verdict_facts *facts, const struct finding *finding, struct verdict *verdict)
{
	say_finding(finding,
	            facts->live_count > 1              ? " {bytes} of all that ({share}) was "
	            : verdict_is_in_memory_told(facts) ? " {bytes} of that ({share}) was "
	                                               : " {bytes} of it ({share}) was ",
	            verdict);
}

PHRASE(say_imports)
{
	if (finding->is_after_line)
		say_finding(finding, " Another {bytes} ({share}) was ", verdict);
	else
		say_part(facts, finding, verdict);
	say(verdict, "left by imports.");
}

PHRASE(say_line)
{
	char word[VERDICT_WORD_BYTES];

	say_part(facts, finding, verdict);
	say(verdict, "%s", verdict_where_word(facts, &finding->line, word));
	say_finding(finding, " {where}.", verdict);
}

/* Of processes that may have run one after the other a line's figures are sums, of its domain's sum. */
PHRASE(say_line_of_all)
{
	bool is_peak = finding->kind == FINDING_PEAK_LINE_OF_ALL;
	uint32_t processes = is_peak ? facts->top_peak_processes : facts->top_live_processes;
	const char *when = is_peak                             ? "at their peaks"
	                   : facts->end == VERDICT_END_RUNNING ? "now, or at their ends"
	                                                       : "at their ends";
	char held[UNITS_TEXT_BYTES];
	char whole[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, " Summed over all its processes, %s ", units_bytes(finding->bytes, held));
	if (verdict_is_arena(facts, &finding->line))
		say(verdict, "was in arenas of small Python objects, without what imports left there, %s", when);
	else
		say(verdict, "of the %s of %s that they held %s was allocated at %s", units_bytes(finding->whole_bytes, whole),
		    facts->model->domains[finding->line.domain].name, when, verdict_line_text(&finding->line, place));
	if (processes > 1)
		say(verdict, ", in %" PRIu32 " of them", processes);
	say(verdict, ".");
}

PHRASE(say_accumulates)
{
	const struct rank_line *line = &finding->line;
	bool is_part = line->leaking_bytes < line->live_bytes / 10 * 9; // that grows
	char held[UNITS_TEXT_BYTES];

	(void)facts;
	say(verdict, " It accumulates%s: ", if_built_once(line));
	if (is_part)
		say(verdict, "%s in ", units_bytes(line->leaking_bytes, held));
	say(verdict, "blocks");
	say(verdict, " from %" PRIu32 " of %" PRIu32 " generations are still alive.", line->telling->generations_alive,
	    line->telling->generations_total);
}

PHRASE(say_may_accumulate)
{
	bool is_told = finding->is_told || finding->kind == FINDING_MAY_ACCUMULATE;

	(void)facts;
	say_finding(finding, is_told ? " It" : " What is allocated at {where}", verdict);
	say(verdict, " may accumulate: none of its %" PRIu32 " generations was released, but they are too few to tell.",
	    finding->line.telling->generations_total);
}

PHRASE(say_next_line)
{
	bool does_grow = finding->line.leak == MODEL_LEAK_LEAK;
	char place[PLACE_TEXT_BYTES];
	char top[PLACE_TEXT_BYTES];

	if (strcmp(verdict_line_text(&finding->line, place), verdict_line_text(&facts->top_live, top)) == 0) {
		say_finding(finding, " Another {bytes} ({share}) was allocated at the same line in ", verdict);
		say(verdict, "%s", facts->model->domains[finding->line.domain].name);
	} else {
		say_finding(finding, " Another {bytes} ({share}) was allocated at {where}", verdict);
	}
	say(verdict, "%s.",
	    !does_grow                                ? ""
	    : facts->top_live.leak == MODEL_LEAK_LEAK ? ", which accumulates too"
	                                              : ", which accumulates");
}

PHRASE(say_untouched)
{
	say_finding(finding,
	            facts->end == VERDICT_END_RUNNING
	                ? " Of the {whole} that {where} asked for, only {rest} is in memory."
	                : " Of the {whole} that {where} asked for, only {rest} was in memory.",
	            verdict);
}

PHRASE(say_over_limit)
{
	(void)finding;
	say(verdict, " More was live than the limit because not all of it was in memory: it was not touched yet%s",
	    facts->live_count > 1 ? ", swapped out, or of a process that had just ended." : ", or swapped out.");
}

/* ---- the peak ---- */

PHRASE(say_peak)
{
	const char *domain = facts->peak_domain != NULL ? facts->peak_domain->name : NULL;
	char peak[UNITS_TEXT_BYTES];

	if (facts->peak_process == facts->process) {
		say(verdict, " The peak of its %s was %s", domain != NULL ? domain : "memory",
		    units_bytes(finding->bytes, peak));
		if (domain != NULL && verdict_tells_in_memory(facts->peak_bytes, facts->peak_untouched_bytes))
			say(verdict, ", %s of it in memory", units_bytes(facts->peak_bytes, peak));
	} else {
		say(verdict, " Of its processes, ");
		say_process(facts->peak_process, verdict);
		say(verdict, " had the highest peak: %s", units_bytes(finding->bytes, peak));
		if (domain != NULL && finding->bytes != facts->peak_bytes)
			say(verdict, " in all, %s of it in %s", units_bytes(facts->peak_bytes, peak), domain);
		else if (domain != NULL)
			say(verdict, " of %s", domain);
	}
	say(verdict, ".");
}

PHRASE(say_peak_line)
{
	if (verdict_is_arena(facts, &finding->line))
		say(verdict, " It held small Python objects.");
	else
		say_finding(finding,
		            verdict_tells_in_memory(facts->peak_bytes, facts->peak_untouched_bytes)
		                ? " {bytes} of that ({share}) was allocated at {where}."
		                : " {bytes} of it ({share}) was allocated at {where}.",
		            verdict);
}

PHRASE(say_little_room)
{
	bool is_container = finding->whole_bytes < facts->peak_process->identity->machine_bytes;

	say_finding(finding,
	            is_container ? " At one sample {bytes} of the container's {whole} were in use ({share})."
	                         : " At one sample {bytes} of the machine's {whole} were in use ({share}).",
	            verdict);
}

PHRASE(say_released)
{
	(void)facts;
	say_finding(finding,
	            finding->is_told
	                ? " Exit handlers or destructors released {bytes} of it."
	                : " {bytes} of {where} was held until then, and released by exit handlers or destructors.",
	            verdict);
}

/* ---- children ---- */

/* Not the story, but worth a note: a pool ends its workers so. */
PHRASE(say_lost)
{
	bool is_one = facts->lost_count == 1;
	char bytes[UNITS_TEXT_BYTES];

	if (is_one)
		say(verdict, " One child process was ended by a signal or crashed: ");
	else
		say(verdict, " %zu child processes were ended by a signal or crashed, and held %s in sum. The largest, ",
		    facts->lost_count, units_bytes(finding->bytes, bytes));
	say_process(facts->lost_child, verdict);
	say(verdict, is_one ? ". It held " : ", held ");
	say_heft(facts->lost_child, verdict);
	if (facts->first_lost != NULL) {
		uint64_t ended_ns = verdict_ended_ns(facts->process);
		uint64_t seen_ns = verdict_last_seen_ns(facts->first_lost);

		say(verdict, " The first to show no more activity (an idle process shows none) was ");
		say_process(facts->first_lost, verdict);
		if (ended_ns > seen_ns)
			say(verdict, ", %.1f s before the end", (double)(ended_ns - seen_ns) / 1e9);
		say(verdict, "; it held %s.", units_bytes(facts->first_lost->live_bytes, bytes));
	}
	say(verdict, " Only %s parent knows the signal%s; a pool that closes sends SIGTERM.", is_one ? "its" : "their",
	    is_one ? "" : "s");
}

PHRASE(say_copies)
{
	const struct verdict_copies *copies = &facts->copies;
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];
	char word[VERDICT_WORD_BYTES];

	if (copies->child_count == 1)
		say(verdict, " One child process");
	else
		say(verdict, " %zu child processes", copies->child_count);
	say(verdict, " copied at least %s, in whole pages, of what ", units_bytes(finding->bytes, bytes));
	say_process(copies->parent, verdict);
	say(verdict, " had built before it forked");
	for (size_t i = 0; i < copies->built_count; i++) {
		const struct verdict_built *built = &copies->built[i];
		const struct rank_line line = {
			.where = built->site->where, .largest = built->site, .domain = built->site->domain, .site_count = 1
		};

		say(verdict, "%s%s %s %s", i == 0 ? " (" : "; ", units_bytes(built->bytes, bytes),
		    verdict_where_word(facts, &line, word), verdict_line_text(&line, place));
	}
	say(verdict, "%s%s", copies->built_count != 0 ? ")" : "",
	    copies->child->python_version != 0
	        ? ": reading a Python object writes its reference count, and a page that is written to is copied."
	        : ": a page that is written to after the fork is copied.");
}

/* ---- devices ---- */

PHRASE(say_device_held)
{
	const struct device_parts *parts = &facts->device;
	const char *holder = facts->model->process_count == 1 ? "The process" : "Its processes, summed,";
	char held[UNITS_TEXT_BYTES];

	if (parts->device == NULL) {
		say(verdict, " %s held nothing there.", holder);
		return;
	}
	say(verdict, " %s held %s ", holder, units_bytes(finding->bytes, held));
	if (parts->tensors != NULL)
		say(verdict, "of %s", parts->device->name);
	else
		say(verdict, "there");
	/* Of several processes the figures are sums: the one that was refused need not be the one that filled the device. */
	if (facts->model->process_count > 1 && facts->refused->has_held)
		say(verdict, " (the one that was refused %s then)", units_bytes(facts->refused_held_bytes, held));
	if (parts->tensors != NULL)
		say(verdict, ", %s of it tensors", units_bytes(parts->tensor_bytes, held));
	say(verdict, ".");
}

PHRASE(say_device_accumulates)
{
	const struct rank_line *top = &finding->line;
	char bytes[UNITS_TEXT_BYTES];
	char rounds[UNITS_TEXT_BYTES];

	say(verdict, " It accumulates: blocks from %" PRIu32 " of %" PRIu32 " generations are still alive",
	    top->telling->generations_alive, top->telling->generations_total);
	if (facts->growing_count > 1 && facts->growing_rounds != 0)
		say(verdict,
		    ". %zu lines grow together, by %s a round (%s rounds): keeping a loss tensor keeps its whole graph alive.",
		    facts->growing_count, units_bytes(finding->bytes / facts->growing_rounds, bytes),
		    units_count(facts->growing_rounds, rounds));
	else if (top->live_count >= ROUNDS_MIN)
		say(verdict, ", %s %s (%s blocks).", units_bytes(top->live_bytes / top->live_count, bytes),
		    top->allocated_count / 5 <= top->live_count / 4 ? "each time it runs" : "each",
		    units_count(top->live_count, rounds));
	else
		say(verdict, ".");
}

PHRASE(say_device_pools)
{
	say_finding(finding,
	            verdict_is_kept_by_pools(facts)
	                ? " Another {bytes} lay unused in the driver's pools (cudaMallocAsync): "
	                  "enough for the request, with what was free."
	                : " Another {bytes} lay unused in the driver's pools (cudaMallocAsync).",
	            verdict);
}

PHRASE(say_device_preallocated)
{
	(void)facts;
	if (finding->line.live_count == 1)
		say(verdict, " That is one block");
	else
		say(verdict, " Those are %" PRIu64 " blocks", finding->line.live_count);
	say_finding(finding,
	            finding->whole_bytes != 0 ? ", {share} of the device, as when a framework takes its memory in advance."
	                                      : ", as when a framework takes its memory in advance.",
	            verdict);
}

PHRASE(say_device_retried)
{
	(void)finding;
	say(verdict,
	    " %zu earlier requests were met only after others were given up: the device had been nearly full for longer.",
	    facts->retried_count);
}

PHRASE(say_device_refused)
{
	(void)finding;
	say(verdict, " Last, ");
	say_refusal(facts, verdict);
	say(verdict, ", and nothing was done there since.");
}

/* ---- one domain ---- */

PHRASE(say_domain)
{
	const struct model_domain *domain = finding->domain;
	size_t processes = facts->model->process_count;
	bool is_at_peak = domain->live_bytes == domain->peak_bytes;
	const char *now = facts->end == VERDICT_END_RUNNING ? "now, or " : "";
	char live[UNITS_TEXT_BYTES];
	char peak[UNITS_TEXT_BYTES];

	say(verdict, " Of %s%s ", domain->name,
	    domain_is_address_space(domain->id.kind) ? " (address space, not memory)" : "");
	if (domain->peak_bytes == 0) {
		say(verdict, "nothing was held.");
		return;
	}
	(void)units_bytes(domain->live_bytes, live);
	(void)units_bytes(domain->peak_bytes, peak);
	if (processes == 1 || domain->holder_count == 1) {
		if (processes == 1)
			say(verdict, "it held %s %s", live,
			    domain->is_at_refusal               ? "when the request that ended it was refused"
			    : facts->end == VERDICT_END_RUNNING ? "just now"
			    : facts->process->is_at_exit        ? "when it began to exit"
			    : facts->process->is_finalizing     ? "when Python began to shut down"
			                                        : "at the end");
		else
			say(verdict, "one of its %zu processes held %s %sat its end", processes, live, now);
		say(verdict, is_at_peak ? ", its peak." : ", %s at its peak.", peak);
		return;
	}
	if (domain->holder_count < processes)
		say(verdict, "%zu of ", domain->holder_count);
	say(verdict, "its %zu processes held, in sum, %s %sat their ends", processes, live, now);
	say(verdict, is_at_peak ? ", which were their peaks" : " and %s at their peaks", peak);
	if (domain->together_live_bytes < domain->live_bytes || domain->concurrent_peak_bytes < domain->peak_bytes)
		say(verdict, "; at the same time at most %s and %s", units_bytes(domain->together_live_bytes, live),
		    units_bytes(domain->concurrent_peak_bytes, peak));
	say(verdict, ".");
}

PHRASE(say_domain_parts)
{
	struct device_parts parts;
	char bytes[UNITS_TEXT_BYTES];

	if (!device_parts_of(facts->model, (unsigned)(finding->domain - facts->model->domains), NULL, &parts))
		return;
	for (size_t i = 0; i < parts.part_count; i++)
		say(verdict, "%s%s %s", i == 0 ? " That is " : ", ", units_bytes(parts.parts[i].live_bytes, bytes),
		    parts.parts[i].name);
	say(verdict, ".");
}

PHRASE(say_domain_in_memory)
{
	(void)facts;
	say_finding(finding,
	            finding->is_peak ? " {bytes} of it was in memory at the peak." : " {bytes} of it was in memory.",
	            verdict);
}

/* "306 MiB of it (82 %) was " */
static void
say_domain_part(const struct finding *finding, struct verdict *verdict)
{
	uint64_t all_bytes = finding->is_peak ? finding->domain->peak_bytes : finding->domain->live_bytes;

	say_finding(finding,
	            finding->domain->id.kind == DOMAIN_TENSORS ? " {bytes} of the tensors ({share}) was "
	            : finding->whole_bytes != all_bytes        ? " {bytes} of that ({share}) was " // which is in memory
	                                                       : " {bytes} of it ({share}) was ",
	            verdict);
}

PHRASE(say_domain_imports)
{
	(void)facts;
	say_domain_part(finding, verdict);
	say(verdict, "left by imports.");
}

PHRASE(say_domain_line)
{
	if (verdict_is_arena(facts, &finding->line)) {
		say(verdict, " %s is arenas of small Python objects, of which no line is known.",
		    finding->is_told ? "The rest" : "It");
		return;
	}
	if (finding->is_peak && finding->whole_bytes == finding->domain->peak_bytes)
		say(verdict, facts->model->process_count > 1 ? " At the peaks" : " At the peak");
	say_domain_part(finding, verdict);
	say_finding(finding, "allocated at {where}.", verdict);
}

PHRASE(say_domain_accumulates)
{
	const struct rank_line *line = &finding->line;
	char count[UNITS_TEXT_BYTES];

	(void)facts;
	say_finding(finding, finding->is_told ? " It" : " What is allocated at {where}", verdict);
	say(verdict, " accumulates%s: ", if_built_once(line));
	say_finding(finding, "{bytes} in blocks", verdict);
	say(verdict, " from %" PRIu32 " of %" PRIu32 " generations are still alive", line->telling->generations_alive,
	    line->telling->generations_total);
	if (finding->count != 0)
		say(verdict, "; %s more line%s", units_count(finding->count, count),
		    finding->count == 1 ? " accumulates" : "s accumulate");
	say(verdict, ".");
}

PHRASE(say_more_domains)
{
	say(verdict, " %" PRIu64 " more %s%s held %s.", finding->count, facts->asked.name != NULL ? "domain" : "device",
	    plural(finding->count, "s"),
	    finding->as_large_count == 0                ? "less"
	    : finding->as_large_count == finding->count ? "as much"
	                                                : "as much or less");
}

/* "3 requests for it were refused: 1 fatal, 2 recovered; the largest was for 30.0 MiB at train.py:41 step." */
PHRASE(say_refused_requests)
{
	const struct model *model = facts->model;
	const struct model_failed *largest = NULL;
	uint64_t all_count = 0;
	size_t counts[REFUSAL_STATES] = { 0 };
	size_t count = 0;
	char text[UNITS_TEXT_BYTES];

	(void)finding;
	for (size_t i = 0; i < model->process_count; i++)
		all_count += model->processes[i].failed_count;
	for (size_t i = 0; i < model->failed_count; i++) {
		const struct model_failed *failed = &model->failed[i];

		if (!rank_domain_matches(model->domains[failed->domain].name, facts->asked.name))
			continue;
		count++;
		counts[refusal_state(model, facts->now, failed)]++;
		if (largest == NULL || failed->bytes >= largest->bytes) // a tensor comes after what the driver was asked for it
			largest = failed;
	}
	(void)snprintf(text, sizeof(text), count != 0 ? "%zu" : "No", count);
	say(verdict, " %s request%s for it %s refused", text, count > 1 ? "s" : "", count > 1 ? "were" : "was");
	if (all_count > model->failed_count)
		say(verdict, " among the last %zu of %s", model->failed_count, units_count(all_count, text));
	for (enum refusal_state state = 0, told = 0; state < REFUSAL_STATES; state++) {
		if (counts[state] != 0)
			say(verdict, "%s %zu %s", told++ == 0 ? ":" : ",", counts[state], refusal_state_name(state));
	}
	if (largest != NULL) {
		say(verdict, "; %s ", count == 1 ? "it was" : "the largest was");
		say_wanted(model, largest, verdict);
	}
	say(verdict, ".");
}

/* ---- what the figures leave out ---- */

/* ---- all of them ---- */

static const struct phrase {
	const char *name; // in JSON
	const char *text; // as say_finding() takes it; NULL: `say` writes it
	void (*say)(const struct verdict_facts *facts, const struct finding *finding, struct verdict *verdict);
} phrases[] = {
	[FINDING_ENDING] = { "ending", .say = say_ending },
	[FINDING_USAGE] = { "usage", .say = say_usage },
	[FINDING_KERNEL_KILLS] = { "kernel-kills", .say = say_kernel_kills },
	[FINDING_FAR_FROM_LIMITS] = { "far-from-limits", .say = say_far_from_limits },
	[FINDING_SHELL_STATUS] = { "shell-status", .say = say_shell_status },
	[FINDING_OTHER_CONTAINER] = { "other-container",
	                              .text = " It ran in another container than this command: from here it may still run unseen." },
	[FINDING_NO_KILL] = { "no-kill", .text = " The kernel counted no kill for memory in its cgroup." },
	[FINDING_NO_ALLOCATION] = { "no-allocation", .text = " No allocation of it was seen." },
	[FINDING_ADDRESS_LIMIT] = { "address-limit", .say = say_address_limit },
	[FINDING_LITTLE_HELD] = { "little-held", .text = " No more than {bytes} was live then." },
	[FINDING_PARTS] = { "parts-in-memory", .say = say_parts },
	[FINDING_FREED] = { "freed-not-returned", .say = say_freed },
	[FINDING_LIVE] = { "live", .say = say_live },
	[FINDING_IMPORTS] = { "imports", .say = say_imports },
	[FINDING_LINE] = { "line", .say = say_line },
	[FINDING_LINE_OF_ALL] = { "line-of-all-processes", .say = say_line_of_all },
	[FINDING_ACCUMULATES] = { "accumulates", .say = say_accumulates },
	[FINDING_MAY_ACCUMULATE] = { "may-accumulate", .say = say_may_accumulate },
	[FINDING_NEXT_LINE] = { "next-line", .say = say_next_line },
	[FINDING_UNTOUCHED] = { "untouched", .say = say_untouched },
	[FINDING_BESIDE_ARENAS] = { "accumulates-beside-arenas",
	                            .text = " Larger blocks of {where} ({bytes}) accumulate too, perhaps of the same objects." },
	[FINDING_OVER_LIMIT] = { "more-live-than-limit", .say = say_over_limit },
	[FINDING_PEAK] = { "peak", .say = say_peak },
	[FINDING_PEAK_LINE] = { "peak-line", .say = say_peak_line },
	[FINDING_PEAK_LINE_OF_ALL] = { "peak-line-of-all-processes", .say = say_line_of_all },
	[FINDING_PEAK_IMPORTS] = { "peak-imports", .text = " {bytes} of it ({share}) was left by imports." },
	[FINDING_LITTLE_ROOM] = { "little-room", .say = say_little_room },
	[FINDING_RELEASED_AT_EXIT] = { "released-at-exit", .say = say_released },
	[FINDING_LOST_CHILDREN] = { "lost-children", .say = say_lost },
	[FINDING_COPIES] = { "copied-after-fork", .say = say_copies },
	[FINDING_PINNED] = { "pinned",
	                     .text = " In addition, {whole} of the host's memory was pinned by the GPU's driver. {bytes} of it was allocated at {where}." },
	[FINDING_PINNED_ROUNDED] = { "pinned-rounded-up",
	                             .text = " {bytes} of it is in blocks of powers of two: PyTorch rounds pinned memory up, to as much as twice of what was asked for." },
	[FINDING_DEVICE_FULL] = { "device-free", .text = " The device then had {bytes} free of {whole}." },
	[FINDING_DEVICE_HELD] = { "device-held", .say = say_device_held },
	[FINDING_DEVICE_LINE] = { "device-line", .text = " {bytes} of that ({share}) was allocated at {where}." },
	[FINDING_DEVICE_ACCUMULATES] = { "device-accumulates", .say = say_device_accumulates },
	[FINDING_DEVICE_CACHE] = { "device-cache-unknown",
	                           .text = " Frameworks keep a cache between tensors and the driver: lines shown are where the cache grew." },
	[FINDING_DEVICE_KEPT] = { "device-kept-by-exception",
	                          .text = " {bytes} of the tensors were those of an earlier step, which was refused memory as well: often the traceback of its exception keeps them." },
	[FINDING_DEVICE_POOLS] = { "device-pools", .say = say_device_pools },
	[FINDING_DEVICE_OTHERS] = { "device-other-users",
	                            .text = " {bytes} of what is in use there is not this program's: other processes, contexts, kernels." },
	[FINDING_DEVICE_PREALLOCATED] = { "device-preallocated", .say = say_device_preallocated },
	[FINDING_DEVICE_FRAGMENTED] = { "device-fragmented",
	                                .text = " PyTorch's cache held another {bytes} there, more than was asked for, but in pieces that were too small." },
	[FINDING_DEVICE_RETRIED] = { "device-retried", .say = say_device_retried },
	[FINDING_DEVICE_REFUSED] = { "device-refused", .say = say_device_refused },
	[FINDING_DOMAIN] = { "domain", .say = say_domain },
	[FINDING_DOMAIN_PARTS] = { "domain-parts", .say = say_domain_parts },
	[FINDING_DOMAIN_IN_MEMORY] = { "domain-in-memory", .say = say_domain_in_memory },
	[FINDING_DOMAIN_IMPORTS] = { "domain-imports", .say = say_domain_imports },
	[FINDING_DOMAIN_LINE] = { "domain-line", .say = say_domain_line },
	[FINDING_DOMAIN_ACCUMULATES] = { "domain-accumulates", .say = say_domain_accumulates },
	[FINDING_DOMAIN_MAY_ACCUMULATE] = { "domain-may-accumulate", .say = say_may_accumulate },
	[FINDING_DOMAIN_STEADY] = { "domain-steady", .text = " No line of it is known to accumulate." },
	[FINDING_MORE_DOMAINS] = { "more-domains", .say = say_more_domains },
	[FINDING_REFUSED_REQUESTS] = { "refused-requests", .say = say_refused_requests },
	[FINDING_DAMAGE] = { "damaged",
	                     .text = " The capture is damaged: figures cover only what is intact, and may be too low." },
	[FINDING_UNLISTED] = { "unlisted", .text = " {bytes} of what was live belongs to no line: its records are lost." },
	[FINDING_UNRECORDED] = { "unrecorded",
	                         .text = " There was no room to record allocations of {bytes} in all: the figures of lines may be far too low." },
	[FINDING_ELSEWHERE] = { "without-stacks",
	                        .text = " There was no room for the stacks of {bytes} of what was held: it is counted at callers or at an unknown place." },
	[FINDING_HIDDEN_HEAP] = { "hidden-heap",
	                          .text = " The heap is missing in these figures: another malloc stands before the recorder's (see the notes)." },
};
static_assert(sizeof(phrases) / sizeof(phrases[0]) == FINDINGS, "each kind of finding has a row");

const char *
finding_name(enum finding_kind kind)
{
	return phrases[kind].name;
}

void
verdict_say(const struct verdict_facts *facts, struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->finding_count; i++) {
		const struct finding *finding = &verdict->findings[i];
		const struct phrase *phrase = &phrases[finding->kind];

		if (phrase->say != NULL)
			phrase->say(facts, finding, verdict);
		else
			say_finding(finding, phrase->text, verdict);
	}
}
