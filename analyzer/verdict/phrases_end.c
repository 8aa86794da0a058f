/*
 * phrases_end.c - how is it said that a program ended, and what the counters showed?
 *
 * One function per cause of death, and the findings about signals, counters and limits.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/items.h"
#include "base/text_start.h"
#include "base/units.h"
#include "verdict/limit_owner.h"
#include "verdict/words.h"

#define NATIVE_FRAMES_PART \
	64 // of stacks of Python that hold more than this part of the heap the recorder keeps native frames

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
	} else if (facts->log.kind != VERDICT_LOG_NONE || verdict->cause == VERDICT_CHILD_KILLED) {
		say(verdict, ": the system's log names it");
	}
	say(verdict, ").");
}

/* It is known that there was none. */
static bool
is_no_kill_counted(const struct verdict_facts *facts)
{
	return facts->is_kill_counted ? facts->cgroup_kills == 0 : facts->is_machine_counted && facts->machine_kills == 0;
}

/* Was that its guard? */
static bool
was_interrupted_by_guard(const struct verdict_facts *facts)
{
	return facts->signal == SIGINT && verdict_has_guard_interrupted(facts);
}

/* ---- how each cause of death is told ---- */

static void
end_not_closed(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	say(verdict, " was recorded on another machine, or before this one was restarted, and its recording was not "
	             "closed: how it ended is not known.");
}

static void
end_restarted(const struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t dark_ns = verdict_dark_ns(facts->process, facts->now);

	say_who(facts, verdict);
	say(verdict,
	    " ended with the machine, which started anew within %" PRIu64
	    " s of its last sign of life (%s). Whether it was "
	    "restarted, crashed or lost power is not known.",
	    dark_ns / UINT64_C(1000000000) + 1, verdict_confidence_name(verdict->confidence));
}

static void
end_hardware(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict,
	    ": the kernel's log says that the hardware failed under it (%s). It was not killed for lack of memory.",
	    verdict_confidence_name(verdict->confidence));
}

static void
end_plain(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, ".");
}

static void
end_exec_replaced(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, " that left no capture.");
}

static void
end_child_killed(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	if (facts->cgroup_kills != 0)
		say(verdict, ", but meanwhile the kernel killed %" PRIu64 " process%s of its container for lack of memory",
		    facts->cgroup_kills, plural(facts->cgroup_kills, "es"));
	else
		say(verdict, ", but the kernel killed %s for lack of memory",
		    facts->lost_count == 1 ? "its child process" : "at least one of its child processes");
	say_confidence(facts, verdict);
	if (facts->lost_count == 1)
		say(verdict, " Its child process ");
	else
		say(verdict, " %zu of its child processes ended without a clean exit; they held %s in sum. The largest, ",
		    facts->lost_count, UNITS_BYTES(facts->lost_bytes));
	say_process(facts->lost_child, verdict);
	say(verdict, facts->lost_count == 1 ? " ended without a clean exit. It held " : ", held ");
	say_held(facts->lost_child, verdict);
}

static void
end_container_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	char owner[LIMIT_OWNER_BYTES];
	bool is_owner_known = limit_owner_of(facts->process->identity->limit_path, owner);

	say_who(facts, verdict);
	say(verdict, " was killed by the kernel because the %smemory limit ", is_owner_known ? "" : "container's ");
	if (facts->limit_bytes != UINT64_MAX)
		say(verdict, "of %s ", UNITS_BYTES(facts->limit_bytes));
	if (is_owner_known)
		say(verdict, "of %s ", owner);
	say(verdict, "was reached");
	say_confidence(facts, verdict);
}

static void
end_machine_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	if (facts->cgroup_kills != 0 || facts->log.kind == VERDICT_LOG_MACHINE) {
		say(verdict, " was killed by the kernel because the machine ran out of memory");
		say_confidence(facts, verdict);
	} else if (facts->machine_kills != 0) {
		say(verdict,
		    " was killed, and meanwhile the kernel killed %" PRIu64 " process%s on this machine for lack of "
		    "memory (%s: which ones is not counted).",
		    facts->machine_kills, plural(facts->machine_kills, "es"), verdict_confidence_name(verdict->confidence));
	} else {
		say(verdict, " was killed when the machine was almost out of memory");
		say_confidence(facts, verdict);
	}
}

static void
end_shm_full(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	say(verdict,
	    " was ended by SIGBUS: it touched shared memory while /dev/shm (%s) was full (%s: shared mappings of that size "
	    "were live).",
	    UNITS_BYTES(facts->process->identity->shm_bytes), verdict_confidence_name(verdict->confidence));
}

static void
end_device_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, ", likely because "); // judge_device_memory() is never surer, nor less sure
	say_refusal(facts, verdict);
	say(verdict, " by the driver.");
}

/*
 * Python raises MemoryError for a request of its own. A library that is refused one raises what it likes: PyTorch a RuntimeError. Native
 * frames are recorded of stacks that hold much: of one that holds little nobody knows who asked.
 */
static bool
is_memory_error(const struct verdict_facts *facts)
{
	const struct model_site *site = facts->refused->site;

	return site != NULL && site->where != NULL && site->where->kind == MODEL_FRAME_PYTHON &&
	       site->peak_bytes > facts->process->peak_bytes / NATIVE_FRAMES_PART &&
	       !ANY(frame, site->frames, site->frame_count,
	            (*frame)->kind == MODEL_FRAME_NATIVE && !text_starts((*frame)->module, "python") &&
	                !text_starts((*frame)->module, "libpython")) &&
	       facts->end == VERDICT_END_FAILED && facts->exit_code == 1 && !verdict_was_perhaps_caught(facts);
}

static void
end_request_refused(const struct verdict_facts *facts, struct verdict *verdict)
{
	const char *confidence = verdict_confidence_name(verdict->confidence);
	bool was_given_more = verdict_was_given_more(facts);

	if (is_memory_error(facts)) {
		say_who(facts, verdict);
		say(verdict, " ended by MemoryError (status 1)");
	} else {
		say_end(facts, verdict);
	}
	say(verdict, " after ");
	say_refusal(facts, verdict);
	if (facts->refused->is_by_guard)
		say(verdict, " by its guard");
	if (!verdict_was_perhaps_caught(facts)) {
		say(verdict, " (%s: nothing shows that it went on after that%s).", confidence,
		    verdict_is_end_unseen(facts) ? ", but nobody saw how it ended" : "");
		return;
	}
	say(verdict, ". Whether it ended because of that is not known (%s: ", confidence);
	if (was_given_more)
		say(verdict, "the same thread was given %s afterwards", UNITS_BYTES(facts->refused->got_bytes));
	if (verdict_is_other_status(facts))
		say(verdict, "%san uncaught error ends Python with status 1", was_given_more ? ", and " : "");
	say(verdict, ").");
}

static void
end_low_memory_daemon(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->log.kind == VERDICT_LOG_DAEMON) {
		say_who(facts, verdict);
		say(verdict, " was killed by %s, a daemon that ends programs when memory is low", facts->log.writer);
		say_confidence(facts, verdict);
		return;
	}
	say_end(facts, verdict);
	say(verdict, ". %she machine was almost out of memory, so a low-memory daemon may have sent it (%s).",
	    is_no_kill_counted(facts) ? "The kernel's counters do not show a kill, but t" : "T",
	    verdict_confidence_name(verdict->confidence));
}

static void
end_time_up(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->end == VERDICT_END_SIGNAL) {
		say_end(facts, verdict);
		say(verdict, ": its limit of processor time was used up (RLIMIT_CPU, ulimit -t).");
		return;
	}
	say_who(facts, verdict);
	say(verdict, " was ended by timeout, whose exit status says that the time was up (%s).",
	    verdict_confidence_name(verdict->confidence));
}

static void
end_file_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, ": it wrote more to a file than its limit allows (RLIMIT_FSIZE, ulimit -f).");
}

static void
end_stack_overflow(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict,
	    ": its stack was full (%s: it could not reach an address right at the end of its stack). That is often a "
	    "recursion without an end. It was not killed for memory.",
	    verdict_confidence_name(verdict->confidence));
}

static void
end_aborted(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict,
	    ": it called abort(), as programs do after a failed assertion, a block that was freed twice, or a conflict of "
	    "libraries. It was not killed for memory%s.",
	    facts->process->failed_count == 0 ? ", and no request was refused" : "");
}

static void
end_crashed(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	say(verdict, ": it crashed. It was not killed for memory.");
}

static void
end_signal(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_end(facts, verdict);
	if (was_interrupted_by_guard(facts)) {
		say(verdict, ", which its guard sent.");
		return;
	}
	say(verdict, is_no_kill_counted(facts) ? ". A program or a person sent it: the kernel counted no kill for memory."
	                                       : ". It is not known who sent it.");
}

static void
end_failed(const struct verdict_facts *facts, struct verdict *verdict)
{
	uint64_t refused = facts->process->failed_count;

	say_end(facts, verdict);
	if (refused == 0)
		say(verdict, ": it ended by itself, and no request was refused.");
	else
		say(verdict, ": it ended by itself. %s request%s %s refused earlier, but the program recovered.",
		    UNITS_COUNT(refused), plural(refused, "s"), refused == 1 ? "was" : "were");
}

static void
end_gone(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_who(facts, verdict);
	say(verdict,
	    " ended without a clean exit, and %s saw how: it was killed, it crashed, or it called the kernel's exit_group itself, "
	    "as programs in Go do. The machine was not restarted.",
	    facts->is_descendant ? "only its parent" : "nobody");
}

#define end_running end_plain
#define end_exited end_plain

static void (*const endings[])(const struct verdict_facts *facts, struct verdict *verdict) = {
#define ENDING_ROW(cause, function, name) [VERDICT_##cause] = end_##function,
	VERDICT_CAUSE_ROWS(ENDING_ROW)
};

/* ---- the findings ---- */

PHRASE(ENDING)
{
	bool is_of_memory = verdict->cause == VERDICT_CONTAINER_LIMIT || verdict->cause == VERDICT_MACHINE_MEMORY;

	(facts->asked.name == NULL || is_of_memory ? endings[verdict->cause] : end_plain)(facts, verdict);
}

PHRASE(LOG)
{
	const struct verdict_log *log = verdict->cause == VERDICT_CHILD_KILLED ? &facts->lost_log : &facts->log;
	bool is_kernel = strcmp(log->writer, "kernel") == 0;

	say(verdict, " The log of %s says: \"%s\".", is_kernel ? "the kernel" : log->writer, log->text);
	if (log->is_by_name)
		say(verdict, " This line fits by name and time. Its numbers of processes are those of the host.");
	if (log->is_of_thread)
		say(verdict, " This line fits by name and time: the number in it is of a thread.");
	if (verdict_crashes_anywhere(facts))
		say(verdict,
		    " The log has crashes of programs of this name at %u different places. Crashes at unrelated places suggest "
		    "broken memory of the machine.",
		    facts->log.crash_places);
}

PHRASE(SWAP)
{
	say_finding(finding, " {bytes} of the machine's {whole} of swap was in use too: such a machine is very slow.",
	            verdict);
}

PHRASE(USAGE)
{
	if (facts->charged_bytes != 0 && facts->limit_bytes != UINT64_MAX)
		say_finding(finding, " At the last sample {bytes} of the container's {whole} was in use ({share}).", verdict);
	else if (finding->whole_bytes != 0)
		say_finding(finding, " At the last sample {rest} of the machine's {whole} was still available.", verdict);
	else
		say_finding(finding, " At the last sample it occupied {bytes}.", verdict);
}

#define STOPS_WITHIN_NS UINT64_C(3000000000) // Python does, where it can at all

/* A cell of a notebook that got SIGINT stopped: others ran. */
static void
say_cells_since(const struct model_cells_since *since, uint64_t end_ns, struct verdict *verdict)
{
	say(verdict, ": the cell got SIGINT and stopped. %u other%s began after that", since->count,
	    plural(since->count, "s"));
	say(verdict, since->count == 1 ? "" : ", the last one");
	if (since->number != 0)
		say(verdict, ", In[%" PRIu32 "]", since->number);
	if (since->command[0] != '\0')
		say(verdict, " (%s)", since->command);
	if (end_ns > since->began_ns)
		say(verdict, ", %.1f s before the end", (double)(end_ns - since->began_ns) / 1e9);
	say(verdict, ".");
}

/* What was done, behind what was in use. */
static void
say_guard_action(const struct verdict_facts *facts, const struct model_process *process, uint64_t until_end_ns,
                 struct verdict *verdict)
{
	const struct kmem_guard_passing *guard = &process->guard;
	const struct model_cells_since *since = &process->cells_since_guard;
	bool is_done = guard->outcome == KMEM_GUARD_DONE;
	bool is_killed = (verdict->cause == VERDICT_CONTAINER_LIMIT || verdict->cause == VERDICT_MACHINE_MEMORY) &&
	                 verdict->confidence >= VERDICT_LIKELY;

	if (guard->action == KMEM_GUARD_INTERRUPT && is_done && since->count != 0) {
		say_cells_since(since, guard->monotonic_ns + until_end_ns, verdict);
		return;
	}
	if (guard->action == KMEM_GUARD_INTERRUPT)
		say(verdict, is_done ? ": it got SIGINT" : ": it was to get SIGINT, which it ignores");
	else if (guard->action == KMEM_GUARD_RAISE)
		say(verdict,
		    guard->request_bytes != 0 ? ": the request was refused" : ": large requests were refused from then on");
	else if (guard->action == KMEM_GUARD_EXEC)
		say(verdict, is_done ? ": the launcher was told to run its command" : ": nobody was there to run the command");
	if (is_killed)
		say(verdict,
		    guard->action == KMEM_GUARD_INTERRUPT && is_done && until_end_ns > STOPS_WITHIN_NS
		        ? ". The kill came later: it went on after that, or was in a call into C, which cannot be interrupted"
		    : guard->action == KMEM_GUARD_INTERRUPT && is_done && facts->process->python_version != 0
		        ? ", but the kill came before Python could stop (only its own code can be interrupted, not a call into C)"
		    : guard->action == KMEM_GUARD_NOTE ? ", and the kill followed"
		                                       : ", but the kill came all the same");
	say(verdict, ".");
}

PHRASE(GUARD)
{
	const struct model_process *process = finding->process;
	const struct kmem_guard_passing *guard = &process->guard;
	uint64_t end_ns = model_ended_ns(process) ?: model_last_seen_ns(process);

	say(verdict, " It passed its guard (%s of %s)", UNITS_BYTES(guard->guard_bytes), UNITS_BYTES(guard->limit_bytes));
	if (end_ns > guard->monotonic_ns)
		say(verdict, " %.1f s before %s", (double)(end_ns - guard->monotonic_ns) / 1e9,
		    model_ended_ns(process) != 0 ? "its end" : "the last look at it");
	say(verdict, ", with %s in use", UNITS_BYTES(guard->used_bytes));
	if (guard->request_bytes != 0)
		say(verdict, " and a request for %s more", UNITS_BYTES(guard->request_bytes));
	if (process != facts->process) {
		say(verdict, " (");
		say_process(process, verdict);
		say(verdict, ")");
	}
	if (guard->number > 1)
		say(verdict, ", for the %" PRIu32 "%s time", guard->number,
		    guard->number == 2   ? "nd"
		    : guard->number == 3 ? "rd"
		                         : "th");
	say_guard_action(facts, process, end_ns > guard->monotonic_ns ? end_ns - guard->monotonic_ns : 0, verdict);
}

PHRASE(KERNEL_KILLS)
{
	uint64_t kills = facts->is_kill_counted ? facts->cgroup_kills : facts->machine_kills;

	say(verdict, " Meanwhile the kernel killed %" PRIu64 " process%s %s for lack of memory", kills, plural(kills, "es"),
	    facts->is_kill_counted ? "of its container" : "on this machine");
	if (facts->is_kill_counted) {
		say(verdict, " (");
		say_counter(facts, verdict);
		say(verdict, ")");
	}
	say(verdict, ".");
}

PHRASE(FAR_FROM_LIMITS)
{
	say(verdict,
	    verdict_is_accumulating(facts) ? " Memory was far from the limits." : " Nothing here points at memory.");
}

PHRASE(RECOVERED)
{
	uint64_t unlisted = verdict_unlisted_refusals(facts);
	bool is_more = unlisted != 0 && verdict_has_device(facts);

	if (finding->count == 1)
		say(verdict, " %s request was refused", is_more ? "At least one" : "One");
	else
		say(verdict, " %s%s requests were refused", is_more ? "At least " : "", UNITS_COUNT(finding->count));
	say(verdict, ", and the program went on%s for %s in %s",
	    unlisted != 0         ? "; the largest of those that are known was"
	    : finding->count == 1 ? ": it was"
	                          : "; the largest was",
	    UNITS_BYTES(finding->bytes), finding->domain->name);
	if (finding->line.site_count != 0)
		say_finding(finding, " at {where}", verdict);
	say(verdict, ".");
}

PHRASE(SHELL_STATUS)
{
	say(verdict,
	    " A shell gives this status when a program that it ran was ended by signal %d; how that one "
	    "ended is not recorded here.",
	    facts->exit_code - 128);
}

/* A note, as a sentence. */
static void
say_note(const struct verdict_facts *facts, const char *begin, struct verdict *verdict)
{
	const char *note = verdict_note_of(facts->process, begin);

	say(verdict, " %c%s", toupper((unsigned char)note[0]), note + 1);
}

PHRASE(THREAD_REFUSED)
{
	say_note(facts, KMEM_NOTE_THREAD, verdict);
	say(verdict, ": the system allows no more threads, or there was no room for its stack.");
}

PHRASE(PROCESS_REFUSED)
{
	say_note(facts, KMEM_NOTE_PROCESS, verdict);
	say(verdict, ": the system allows no more processes, or it had no memory for another one.");
}

PHRASE(FILES_FULL)
{
	say_note(facts, KMEM_NOTE_FILES, verdict);
	say(verdict, ".");
}

PHRASE(CUDA_NOT_STARTED)
{
	say_note(facts, KMEM_NOTE_CUDA, verdict);
	say(verdict, ".");
}

static void
say_own_space(const struct verdict_facts *facts, uint64_t limit_bytes, struct verdict *verdict)
{
	uint64_t own_bytes = facts->refused->own_space_bytes;

	if (own_bytes >= limit_bytes)
		say(verdict, ". The recorder had reserved %s of addresses: without it the request might have been met",
		    UNITS_BYTES(own_bytes));
	else
		say(verdict, ", of which the recorder takes %s", own_bytes != 0 ? UNITS_BYTES(own_bytes) : "a part");
}

PHRASE(ADDRESS_LIMIT)
{
	const struct kmem_identity *identity = facts->process->identity;
	const struct kmem_limit *limit = verdict_address_limit(facts);
	uint64_t then_bytes = facts->refused->space_limit_bytes;

	if (limit != NULL) {
		bool is_space = limit->kind == KMEM_LIMIT_ADDRESS_SPACE;

		say(verdict, " The limit was its %s: %s (ulimit -%s)", is_space ? "address space" : "data segment",
		    UNITS_BYTES(limit->bytes), is_space ? "v" : "d");
		if (is_space)
			say_own_space(facts, limit->bytes, verdict);
		say(verdict, ".");
	} else if (then_bytes != 0) {
		say(verdict, " The limit was its address space: the program had set it to %s (setrlimit, RLIMIT_AS)",
		    UNITS_BYTES(then_bytes));
		say_own_space(facts, then_bytes, verdict);
		say(verdict, ".");
	} else if (identity->overcommit_mode == 2) {
		say(verdict, " This machine refuses what it cannot back with memory (vm.overcommit_memory is 2).");
	} else {
		say(verdict, " What was asked for is more than the machine has (%s).", UNITS_BYTES(identity->machine_bytes));
	}
}

PHRASE_TEXT(OTHER_CONTAINER, " It ran in another container than this command: from here it may still run unseen.")
PHRASE_TEXT(NO_KILL, " The kernel counted no kill for memory in its cgroup.")
PHRASE_TEXT(NO_ALLOCATION, " No allocation of it was seen.")
PHRASE_TEXT(LITTLE_HELD, " No more than {bytes} was live then.")
