/*
 * phrases.c - how is a finding said?
 *
 * A template (template.h) for each cause of an end, and for each kind of finding; what a template cannot say has a function. Numbers carry
 * units, and a conclusion what it rests on. "Live" is what was allocated and not freed; "in memory" is what occupies physical memory; a line
 * is where memory was allocated, not where the mistake is.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/refused_requests.h"
#include "base/items.h"
#include "base/text_start.h"
#include "base/units.h"
#include "verdict/advice_rows.h"
#include "verdict/template.h"
#include "verdict/words.h"

#define STOPS_WITHIN_NS UINT64_C(3000000000) // Python does, where it can at all
#define SAMPLES_BYTES 128

/* ---- how it ended ---- */

#define UNPROVEN "[{!proof} ({confidence})]"
#define PROVEN "|[ {Sure}: {proof}.]"

static const char *const endings[] = {
	[VERDICT_NOT_CLOSED] = "{who} was recorded on another machine, or before this one was restarted: how it ended is not known.",
	[VERDICT_RESTARTED] = "{who} ended with the machine, which started anew within {dark} s of its last sign of life ({confidence}).| "
						  "Whether it was restarted, crashed or lost power is not known.",
	[VERDICT_RUNNING] = "{who}{end}{with}.",
	[VERDICT_EXITED] = "{who}{end}.",
	[VERDICT_EXEC_REPLACED] = "{who}{end} that left no capture.",
	[VERDICT_CHILD_KILLED] = "{who}{end}, but [{?kills}meanwhile the kernel killed {kills} of its container]"
							 "[{!kills}the kernel killed {killed_children}] for lack of memory. {lost}| {Sure}[: {proof}].",
	[VERDICT_CONTAINER_LIMIT] = "{who} was killed by the kernel because the [{!owner}container's ]memory limit[ of {limit}][ of {owner}] was "
								"reached{with}" UNPROVEN "." PROVEN,
	[VERDICT_MACHINE_MEMORY] = "{who} was killed[{?kill_named} by the kernel because the machine ran out of memory]"
							   "[{!kill_named}, and meanwhile the kernel killed {machine_kills} on this machine for lack of memory]"
							   "[{!kill_named}{!machine_kills} when the machine was almost out of memory]{with}" UNPROVEN
							   "." PROVEN "[{!kill_named}{?machine_kills} Which ones is not counted.]",
	[VERDICT_SHM_FULL] = "{who} was ended by SIGBUS{with}: it touched shared memory while /dev/shm ({shm}) was full.| "
						 "{Sure}: shared mappings of that size were live.",
	[VERDICT_DEVICE_MEMORY] = "{who}{end}, likely because a request {wanted} was refused by the driver.",
	[VERDICT_REQUEST_REFUSED] = "{who}[{?memory_error} ended by MemoryError (status 1)][{!memory_error}{end}] after a request {wanted} was "
								"refused[{?guard_refused} by its guard].[{?caught} Whether it ended because of that is not known.]| {Sure}: "
								"[{!caught}nothing shows that it went on after that[{?end_unseen}, but nobody saw how it ended]]"
								"[{?caught}[the same thread was given {got} afterwards][{?got}{?other_status}, and ]"
								"[{?other_status}an uncaught error ends Python with status 1]].",
	[VERDICT_LOW_MEMORY_DAEMON] = "{who}[ was killed by {daemon}, a daemon that ends programs when memory is low][{!daemon}{end}]{with}" UNPROVEN
								  "."
								  "[{!daemon} The machine was almost out of memory: a low-memory daemon may have sent it.]" PROVEN
								  "[{!daemon}{?no_kill} The kernel's counters show no kill.]",
	[VERDICT_TIME_UP] = "{who}[{?signalled}{end}[{with}]: its limit of processor time was used up (RLIMIT_CPU, ulimit -t)]"
						"[{!signalled} was ended by timeout[{with}]: its exit status says that the time was up ({confidence})].",
	[VERDICT_FILE_LIMIT] = "{who}{end}{with}: it wrote more to a file than its limit allows (RLIMIT_FSIZE, ulimit -f).",
	[VERDICT_STACK_OVERFLOW] = "{who}{end}{with}: its stack was full, often by a recursion without an end. It was not killed for memory.| "
							   "{Sure}: it could not reach an address right at the end of its stack.",
	[VERDICT_ABORTED] = "{who}{end}{with}: it called abort(). It was not killed for memory[{!refused_earlier}, and no request was refused].| "
						"Programs abort after a failed assertion, a block that was freed twice, or a conflict of libraries.",
	[VERDICT_HARDWARE] = "{who}{end}{with}: the kernel's log says that the hardware failed under it ({confidence}). "
						 "It was not killed for lack of memory.",
	[VERDICT_CRASHED] = "{who}{end}{with}: it crashed. It was not killed for memory.",
	[VERDICT_SIGNAL] = "{who}{end}[{?by_guard}, which its guard sent]{with}.[{!by_guard}{?no_kill} A program or a person sent it: the kernel "
					   "counted no kill for memory.][{!by_guard}{!no_kill} It is not known who sent it.]",
	[VERDICT_FAILED] = "{who}{end}{with}: it ended by itself[{!refused_earlier}, and no request was refused]."
					   "[ {refused_earlier} refused earlier, but the program recovered.]",
	[VERDICT_GONE] = "{who}{end}{with}, and [{?descendant}only its parent][{!descendant}nobody] saw how.| It was killed, it crashed, or it called "
					 "the kernel's exit_group itself, as programs in Go do. The machine was not restarted.",
};

static void
say_ending(const struct told *told)
{
	enum verdict_cause cause = told->verdict->cause;
	bool is_cause_told = told->facts->asked.name == NULL || cause == VERDICT_CONTAINER_LIMIT ||
	                     cause == VERDICT_MACHINE_MEMORY;

	say_template(told, is_cause_told ? endings[cause] : "{who}{end}.");
}

/* What was done when it passed its guard. */
static const char *
guard_action(const struct told *told, const struct kmem_guard_passing *guard)
{
	bool is_done = guard->outcome == KMEM_GUARD_DONE;

	switch (guard->action) {
	case KMEM_GUARD_INTERRUPT:
		return !is_done ? ": it was to get SIGINT, which it ignores"
		       : told->finding->process->cells_since_guard.count != 0
		           ? ": the cell got SIGINT and stopped, and others ran"
		           : ": it got SIGINT";
	case KMEM_GUARD_RAISE:
		return guard->request_bytes != 0 ? ": the request was refused" : ": large requests were refused from then on";
	case KMEM_GUARD_EXEC:
		return is_done ? ": the launcher was told to run its command" : ": nobody was there to run the command";
	default:
		return "";
	}
}

/* Though its guard was to prevent that; "" = it was not killed, or cells ran after those that were stopped. */
static const char *
guard_kill(const struct told *told, const struct kmem_guard_passing *guard, uint64_t until_end_ns)
{
	const struct verdict *verdict = told->verdict;
	bool is_interrupted = guard->action == KMEM_GUARD_INTERRUPT && guard->outcome == KMEM_GUARD_DONE;

	if ((verdict->cause != VERDICT_CONTAINER_LIMIT && verdict->cause != VERDICT_MACHINE_MEMORY) ||
	    verdict->confidence < VERDICT_LIKELY ||
	    (is_interrupted && told->finding->process->cells_since_guard.count != 0))
		return "";
	return is_interrupted && until_end_ns > STOPS_WITHIN_NS
	           ? ". The kill came later: it went on, or was in a call into C, which cannot be interrupted"
	       : is_interrupted && told->facts->process->python_version != 0
	           ? ", but the kill came before Python could stop (a call into C cannot be interrupted)"
	       : guard->action == KMEM_GUARD_NOTE ? ", and the kill followed"
	                                          : ", but the kill came all the same";
}

static void
say_guard(const struct told *told)
{
	const struct model_process *process = told->finding->process;
	const struct kmem_guard_passing *guard = &process->guard;
	const struct model_cells_since *since = &process->cells_since_guard;
	struct verdict *verdict = told->verdict;
	uint64_t end_ns = model_ended_ns(process) ?: model_last_seen_ns(process);
	uint64_t until_end_ns = end_ns > guard->monotonic_ns ? end_ns - guard->monotonic_ns : 0;

	say(verdict, " It passed its guard (%s of %s)", UNITS_BYTES(guard->guard_bytes), UNITS_BYTES(guard->limit_bytes));
	if (until_end_ns != 0)
		say(verdict, " %.1f s before %s", (double)until_end_ns / 1e9,
		    model_ended_ns(process) != 0 ? "its end" : "the last look at it");
	if (process != told->facts->process)
		say(verdict, " (%s)", verdict_process_text(process, PLACE_ROOM));
	say(verdict, "%s%s.", guard_action(told, guard), guard_kill(told, guard, until_end_ns));
	verdict->rank = RANK_EVIDENCE;
	say(verdict, " When it passed its guard");
	if (guard->number > 1)
		say(verdict, " for the %" PRIu32 "%s time", guard->number,
		    guard->number == 2   ? "nd"
		    : guard->number == 3 ? "rd"
		                         : "th");
	say(verdict, ", %s was in use", UNITS_BYTES(guard->used_bytes));
	if (guard->request_bytes != 0)
		say(verdict, ", and a request was for %s more", UNITS_BYTES(guard->request_bytes));
	say(verdict, ".");
	if (guard->action != KMEM_GUARD_INTERRUPT || since->count == 0)
		return;
	say(verdict, " %u other cell%s began after that; the last one was", since->count, plural(since->count, "s"));
	if (since->number != 0)
		say(verdict, " In[%" PRIu32 "]", since->number);
	say(verdict, since->command[0] != '\0' ? " (%s)" : "%s", since->command);
	if (end_ns > since->began_ns)
		say(verdict, ", %.1f s before the end", (double)(end_ns - since->began_ns) / 1e9);
	say(verdict, ".");
}

/* ---- who holds a line ---- */

/* Which of the samples the first way is of, as a subject or an object: "they", "20 of 32 samples of them", "all 10 samples (of 32) that could be followed in time". */
static const char *
samples_text(const struct holders_line *held, bool is_subject, char text[SAMPLES_BYTES])
{
	const struct holders_way *way = &held->ways[0];
	uint64_t unfinished = SUM_OF(other, held->ways, held->way_count,
	                             other->kind == HOLDERS_UNFINISHED ? other->samples : 0);
	uint64_t followed = held->samples - (unfinished < held->samples ? unfinished : 0);

	if (way->samples == held->samples)
		return is_subject ? "they" : "them";
	if (unfinished == 0 || way->kind == HOLDERS_UNFINISHED)
		return memory_text_in(text, SAMPLES_BYTES, "%" PRIu64 " of %" PRIu64 " samples of them", way->samples,
		                      held->samples);
	if (way->samples == followed)
		return memory_text_in(text, SAMPLES_BYTES,
		                      "%s%" PRIu64 " samples (of %" PRIu64 ") that could be followed in time",
		                      is_subject ? "all " : "", followed, held->samples);
	return memory_text_in(text, SAMPLES_BYTES,
	                      "%" PRIu64 " of the %" PRIu64 " samples (of %" PRIu64 ") that could be followed in time",
	                      way->samples, followed, held->samples);
}

static void
say_holder_way(const struct told *told)
{
	struct verdict *verdict = told->verdict;
	const struct holders_line *held = verdict_holders_of(told->facts, &told->finding->line);
	const struct holders_way *way = &held->ways[0];
	const char *most = samples_text(held, true, (char[SAMPLES_BYTES]){ 0 });
	const char *to_most = samples_text(held, false, (char[SAMPLES_BYTES]){ 0 });
	const char *text = verdict_way_short(way, VERDICT_WAY_ROOM);

	say(verdict, model_holders_look(told->facts->model, held)->leak_bytes != 0 ? " When the launcher looked, "
	                                                                           : " When the guard was passed, ");
	if (way->kind == HOLDERS_UNFINISHED)
		say(verdict, "there was no time to find what holds %s.", to_most);
	else if (model_holders_are_circles(way))
		say(verdict, "%s were in circles of objects, which the garbage collector (gc) %s%s.", most,
		    way->uncollected[0] != '\0' ? "cannot free: it does not see " : "frees", way->uncollected);
	else if (way->kind == HOLDERS_LOST && way->text[0] != '\0')
		say(verdict, "only lost blocks led to %s any more: %s.", to_most, text);
	else if (way->kind == HOLDERS_LOST)
		say(verdict, "no pointer led to %s any more.", to_most);
	else if (way->kind == HOLDERS_UNSEEN)
		say(verdict, "%s were held by something that was not found: %s.", most, text);
	else if (way->kind == HOLDERS_UNREAD)
		say(verdict, "nothing that was read led to %s.", to_most);
	else
		say(verdict, "%s were held%s by %s.", most, way->kind == HOLDERS_PERHAPS ? ", perhaps," : "", text);
}

/* ---- children ---- */

static void
say_copies(const struct told *told)
{
	const struct verdict_facts *facts = told->facts;
	struct verdict *verdict = told->verdict;
	const struct verdict_copies *copies = &facts->copies;

	say_template(told, " {copying} copied at least {bytes} of what {copied_parent} had built.|");
	for (size_t i = 0; i < copies->built_count; i++) {
		const struct verdict_built *built = &copies->built[i];
		const struct rank_line line = {
			.where = built->site->where, .largest = built->site, .domain = built->site->domain, .site_count = 1
		};

		say(verdict, "%s%s %s %s", i == 0 ? " What it had built before it forked: " : "; ", UNITS_BYTES(built->bytes),
		    verdict_where_word(facts, &line, VERDICT_WORD_ROOM), verdict_line_text(&line, PLACE_ROOM));
		if (built->copied_bytes != 0)
			say(verdict, ", of which %s copied about %s (± %s)", copies->child_count == 1 ? "it" : "one",
			    UNITS_BYTES(built->copied_bytes), UNITS_BYTES(built->copied_error_bytes));
	}
	say_template(
		told,
		"[{?built}.][{?python_child} Reading a Python object writes its reference count, and a page that is written to is copied.]"
		"[{!python_child} A page that is written to after the fork is copied.]");
}

/* ---- one domain ---- */

static void
say_domain(const struct told *told)
{
	const struct verdict_facts *facts = told->facts;
	struct verdict *verdict = told->verdict;
	const struct model_domain *domain = told->finding->domain;
	size_t processes = facts->model->process_count;
	bool is_at_peak = domain->live_bytes == domain->peak_bytes;
	const char *now = facts->end == VERDICT_END_RUNNING ? "now, or " : "";
	const char *name = TEXT(PLACE_TEXT_BYTES, "of %s%s", domain->name,
	                        domain_is_address_space(domain->id.kind) ? " (address space, not memory)" : "");
	const char *live = UNITS_BYTES(domain->live_bytes);
	const char *peak = UNITS_BYTES(domain->peak_bytes);

	if (domain->peak_bytes == 0) {
		say(verdict, " Nothing %s was held.", name);
	} else if (processes == 1 || domain->holder_count == 1) {
		if (processes == 1)
			say(verdict, " The process held %s %s %s", live, name,
			    domain->is_at_refusal               ? "when the request that ended it was refused"
			    : facts->end == VERDICT_END_RUNNING ? "just now"
			    : facts->process->is_at_exit        ? "when it began to exit"
			    : facts->process->is_finalizing     ? "when Python began to shut down"
			                                        : "at the end");
		else
			say(verdict, " One of its %zu processes held %s %s %sat its end", processes, live, name, now);
		say(verdict, is_at_peak ? ", its peak." : ", %s at its peak.", peak);
	} else {
		say(verdict, domain->holder_count < processes ? " %zu of its" : " Its", domain->holder_count);
		say(verdict, " %zu processes held, in sum, %s %s %sat their ends", processes, live, name, now);
		say(verdict, is_at_peak ? ", which were their peaks" : " and %s at their peaks", peak);
		if (domain->together_live_bytes < domain->live_bytes || domain->concurrent_peak_bytes < domain->peak_bytes)
			say(verdict, "; at the same time at most %s and %s", UNITS_BYTES(domain->together_live_bytes),
			    UNITS_BYTES(domain->concurrent_peak_bytes));
		say(verdict, ".");
	}
}

/* "3 requests for it were refused: 1 fatal, 2 recovered; the largest was for 30.0 MiB at train.py:41 step." */
static void
say_refused_requests(const struct told *told)
{
	const struct verdict_facts *facts = told->facts;
	const struct model *model = facts->model;
	struct verdict *verdict = told->verdict;
	const struct model_failed *largest = NULL;
	uint64_t all_count = SUM_OF(process, model->processes, model->process_count, process->failed_count);
	size_t counts[REFUSAL_STATES] = { 0 };
	size_t count = 0;

	EACH (failed, model->failed, model->failed_count) {
		if (!rank_domain_matches(model->domains[failed->domain].name, facts->asked.name))
			continue;
		count++;
		counts[refusal_state(model, facts->now, failed)]++;
		if (largest == NULL || failed->bytes >= largest->bytes) // a tensor comes after what the driver was asked for it
			largest = failed;
	}
	say(verdict, " %s request%s for it %s refused", count != 0 ? UNITS_COUNT(count) : "No", count > 1 ? "s" : "",
	    count > 1 ? "were" : "was");
	if (all_count > model->failed_count)
		say(verdict, " among the last %zu of %s", model->failed_count, UNITS_COUNT(all_count));
	for (enum refusal_state state = 0, said = 0; state < REFUSAL_STATES; state++) {
		if (counts[state] != 0)
			say(verdict, "%s %zu %s", said++ == 0 ? ":" : ",", counts[state], refusal_state_name(state));
	}
	if (largest != NULL)
		say(verdict, "; %s %s", count == 1 ? "it was" : "the largest was",
		    verdict_wanted_text(model, largest, VERDICT_STEPS_ROOM));
	say(verdict, ".");
}

/* ---- all of them ---- */

#define LINE_OF_ALL                                                                                       \
	" Summed over all its processes, {bytes} [of the {whole} of {line_domain} that they held {at_ends} ]" \
	"was [{arena_words}][{!arena_words}allocated at {where}][, {in_processes}][{?shared_line}, each mapping counted in each process that has it]."
#define PART_OF "{bytes} of {live_whole} ({share}{error}) was "
#define DOMAIN_PART "{bytes} of {domain_whole} ({share}{error}) was "
#define MAY_GROW \
	" may be a leak: none of its {generations_total} generations (stretches of the run) was released, but they are too few to tell."
#define GENERATIONS "| At {where} {generations}.[ {built_once}]"
#define IN_MEMORY_THEN "Of the {whole} in memory [{look_age}][{!look_age}at the last sample], {bytes} ({share}) was "

static const struct {
	const char *text; // NULL: `say`
	void (*say)(const struct told *told);
} phrases[] = {
	[FINDING_ENDING] = { .say = say_ending },
	[FINDING_LOG] = { .text = " The log of {log_writer} says: \"{log}\".[{?log_by_name} This line fits by name and time. Its numbers of processes are those of the host.][{?log_of_thread} This line fits by name and time: the number in it is of a thread.][ The log has crashes of programs of this name at {crash_places} "
	                          "different places: such crashes suggest broken memory of the machine.]" },
	[FINDING_GUARD] = { .say = say_guard },
	[FINDING_FORECAST] = { .text = " At [{?running}this][{!running}that] rate ({a_minute} a minute) the limit of {forecast_limit} "
	                               "[{?running}is][{!running}would have been] reached {forecast_in}[, after about {forecast_steps} more]." },
	[FINDING_SWAP] = { .text = " {bytes} of the machine's {whole} of swap was in use too: such a machine is very slow." },
	[FINDING_USAGE] = { .text = "[{?charged} At the last sample {bytes} of the container's {whole} was in use ({share}).]"
	                            "[{!charged}{?whole} At the last sample {rest} of the machine's {whole} was still available.]"
	                            "[{!whole} At the last sample it occupied {bytes}.]" },
	[FINDING_KERNEL_KILLS] = { .text = " Meanwhile the kernel killed [{?kill_counted}{kills} of its container][{!kill_counted}{machine_kills} on this machine] "
	                                   "for lack of memory[{?kill_counted} ({proof})]." },
	[FINDING_FAR_FROM_LIMITS] = { .text = "[{?accumulates} Memory was far from the limits.][{!accumulates} Nothing here points at memory.]" },
	[FINDING_SHELL_STATUS] = { .text = " Such a status says that signal {shell_signal} ended the program, which handled it, or one that it ran, as a shell tells; "
	                                   "how that one ended is not recorded here." },
	[FINDING_THREAD_REFUSED] = { .text = " {note}: the system allows no more threads, or there was no room for its stack." },
	[FINDING_PROCESS_REFUSED] = { .text = " {note}: the system allows no more processes, or it had no memory for another one." },
	[FINDING_FILES_FULL] = { .text = " {note}." },
	[FINDING_CUDA_NOT_STARTED] = { .text = " {note}." },
	[FINDING_OTHER_CONTAINER] = { .text = " It ran in another container than this command: from here it may still run unseen." },
	[FINDING_NO_KILL] = { .text = " The kernel counted no kill for memory in its cgroup." },
	[FINDING_NO_ALLOCATION] = { .text = " No allocation of it was seen." },
	[FINDING_ADDRESS_LIMIT] = { .text = "[ The limit was {space_limit}.]"
	                                    "[{!space_limit}{?strict_overcommit} This machine refuses what it cannot back with memory (vm.overcommit_memory is 2).]"
	                                    "[{!space_limit}{!strict_overcommit} What was asked for is more than the machine has ({machine}).]" },
	[FINDING_LITTLE_HELD] = { .text = " No more than {bytes} was live then." },
	[FINDING_PARTS] = { .text = "[{!freed}{!lines_first} {bytes} of the {whole} in memory ({share}) was {part}[{?written_first}, mapped at {files_line}].]|[{!written_first} Most of the files were mapped at {files_line}.]"
	                            "[ Most of what was there before the fork was {builder_line}.]"
	                            "[ {stacks_count} of the threads whose stacks were there were started at {stacks_line}.]"
	                            "[{!stacks_line}{?lines_released} Most of what lines held at the last sample was released afterwards.]" },
	[FINDING_FREED] = { .text = " Freed memory was not given back: {freed_when}only about {used} ({used_share}) of the {whole} that malloc[ of {freed_process}] "
	                            "had in memory was in use.|"
	                            "[ {sparse} lies in pages that are kept by a few live blocks each[, most of them allocated at {where}], until these are freed.]"
	                            "[ malloc_trim(0) gives back [{?freed_later}at least ]{empty}: pages without any block.][ With {threads} threads MALLOC_ARENA_MAX=2 lets malloc keep less.]" },
	[FINDING_LIVE] = { .text = " {moment} {bytes} was live[{?in_all} in all][{?on_host} on the host]"
	                           "[, [{filled}]{in_memory} of it in memory[{!filled}{!end_sampled} at the last sample]]"
	                           "[ in the {live_count} processes at work then][{!live_count}{?several} in {live_process}].|"
	                           "[{?live_count} {live_process_bytes} of what was live[{?in_memory} and in memory] was in {live_process}.]" },
	[FINDING_IMPORTS] = { .text = "[{?after_line} Another {bytes} ({share})][{!after_line} {bytes} of {live_whole} ({share})] was left by imports." },
	[FINDING_LINE] = { .text = " " PART_OF
	                           "{how} {where}[, through {entered}][, about as much in each of {copies} processes]." },
	[FINDING_LINE_OF_ALL] = { .text = LINE_OF_ALL },
	[FINDING_PEAK_LINE_OF_ALL] = { .text = LINE_OF_ALL },
	[FINDING_ACCUMULATES] = { .text = " It {growth}.[ Only {growing} of it grows.]" GENERATIONS "[ {kept_steps}.]" },
	[FINDING_MAY_ACCUMULATE] = { .text = " It" MAY_GROW },
	[FINDING_FILLING] = { .text = " It keeps its blocks, but adds fewer and fewer, as a cache that fills: it seems to end at about {whole}." },
	[FINDING_BACKLOG] = { .text = "[{?unsent} It is a backlog: what was written waits in a transport of asyncio until the other side reads it.]"
	                              "[{!unsent} Its blocks are released late, or fewer than it takes: a backlog, such as a queue that is drained too slowly.]" },
	[FINDING_HOLDER] = { .say = say_holder_way },
	[FINDING_NOT_LOOKED] = { .text = " What holds the blocks of {where} was not looked at before the end[{?look_killed}: the look was killed, too]." },
	[FINDING_NEXT_LINE] = { .text = " Another {bytes} ({share}{error}) was allocated at [{?same_line}the same line in {line_domain}][{!same_line}{where}]"
	                                "{next_growth}." },
	[FINDING_LAST_TAKER] = { .text = " {where} ({bytes}) was the last to take much: before it, {before_last} was live." },
	[FINDING_SHARED_LINE] = { .text = " {bytes} of its shared memory ({share}) was allocated at {where}." },
	[FINDING_UNTOUCHED] = { .text = " Of the {whole} of {line_domain} that {where} asked for, {filled}[{!filled}only ]{rest} [{?running}is][{!running}was] in memory"
	                                "[{!filled}{!end_sampled} then]." },
	[FINDING_BESIDE] = { .text = "[{?several} In {process}, blocks][{!several} Blocks] of {where} ({bytes}) {beside_growth}[{?top_leaks} too]." },
	[FINDING_BESIDE_ARENAS] = { .text = " Larger blocks of {where} ({bytes}) look like a leak too, perhaps of the same objects." },
	[FINDING_OVER_LIMIT] = { .text = " More was live than the limit because not all of it was in memory: it was not touched yet, "
	                                 "[{?several_live}swapped out, or of a process that had just ended][{!several_live}or swapped out]." },
	[FINDING_PEAK] = { .text = "[{?own_peak}{?peak_within} It had at most {peak_most} in memory, up to {bytes} of it {peak_kind}.]"
	                           "[{?own_peak}{!peak_within}[ It had at most {peak_most} in memory.] It held at most {bytes} {peak_kind}"
	                           "[, {peak_touched} of it touched].]"
	                           "[{!own_peak} Of its processes, {peak_process} had the highest peak: {bytes}[ in all, {peak_part} of it in {peak_domain}]"
	                           "[{!peak_part} of {peak_domain}].]" },
	[FINDING_PEAK_IN_IMPORT] = { .text = " The peak came while it imported {peak_import}[; at the end it had {some}]." },
	[FINDING_LITTLE_AT_END] = { .text = " At the end it had {bytes}." },
	[FINDING_PEAK_LINE] = { .text = " At the peak {bytes}[ ({of_peak}[{error}])] was [{arena_words}]"
	                                "[{!arena_words}allocated at {where}[, through {entered}]]." },
	[FINDING_PEAK_IMPORTS] = { .text = " {bytes} of the {whole} ({share}) was left by imports." },
	[FINDING_LITTLE_ROOM] = { .text = " At one sample {bytes} of the {room_of}'s {whole} was in use ({share})." },
	[FINDING_RECOVERED] = { .text = " {refusals} refused, and the program went on; [{?single}{!unlisted}it][{!single}{!unlisted}the largest][{?unlisted}the largest that is known] "
	                                "was for {bytes} in {domain}[ at {where}]." },
	[FINDING_RELEASED_AT_EXIT] = { .text = " Exit handlers or destructors released {bytes} of {where}, which was held until the end." },
	[FINDING_LOST_CHILDREN] = { .text = " {lost}[ The first to show no more activity (an idle process shows none) was {first_lost}.] Only its parent knows how"
	                                    "[{?many}; a pool that closes sends SIGTERM]." },
	[FINDING_COPIES] = { .say = say_copies },
	[FINDING_PINNED] = { .text = " In addition, {whole} of the host's memory was pinned by the GPU's driver. {bytes} of it was allocated at {where}." },
	[FINDING_PINNED_ROUNDED] = { .text = " {bytes} of it is in blocks of powers of two: PyTorch rounds pinned memory up, to as much as twice of what was "
	                                     "asked for." },
	[FINDING_DEVICE_FULL] = { .text = " The device then had {bytes} free of {whole}." },
	[FINDING_DEVICE_HELD] = { .text = " {device_holder} held [{?device}{bytes} of {device_name}][{!device}nothing there]"
	                                  "[{?device} (the one that was refused {refused_held} then)][, {tensors} of it tensors]." },
	[FINDING_DEVICE_LINE] = { .text = " {bytes} of that ({share}) was allocated at {where}." },
	[FINDING_DEVICE_ACCUMULATES] = { .text = " It looks like a leak[{!together}: {pace}].|"
	                                         "[ {together} lines grow together, by {round} a round ({rounds} rounds), as when a loss tensor is kept: it keeps "
	                                         "its whole graph alive.] At {where} {generations}." },
	[FINDING_DEVICE_CACHE] = { .text = " Frameworks keep a cache between tensors and the driver: lines shown are where the cache grew." },
	[FINDING_DEVICE_KEPT] = { .text = " {bytes} of the tensors were those of an earlier step, which was refused memory as well: often the traceback of its "
	                                  "exception keeps them." },
	[FINDING_DEVICE_POOLS] = { .text = " Another {bytes} lay unused in the driver's pools (cudaMallocAsync)"
	                                   "[{?pools_enough}: enough for the request, with what was free]." },
	[FINDING_DEVICE_OTHERS] = { .text = " {bytes} of what is in use there is not this program's: other processes, contexts, kernels." },
	[FINDING_DEVICE_PREALLOCATED] = { .text = " {blocks}[{?whole}, {share} of the device], as when a framework takes its memory in advance." },
	[FINDING_DEVICE_FRAGMENTED] = { .text = " PyTorch's cache held another {bytes} there, in pieces that were too small.|"
	                                        "[ Between the pieces lie tensors that live long: {lasting}.]" },
	[FINDING_DEVICE_RETRIED] = { .text = " {retried} earlier requests were met only after memory was given back: the device had been nearly full for longer." },
	[FINDING_DEVICE_REFUSED] = { .text = " Its last request on the device, {wanted}, was refused." },
	[FINDING_DOMAIN] = { .say = say_domain },
	[FINDING_DOMAIN_PARTS] = { .text = " That is {device_parts}." },
	[FINDING_DOMAIN_IN_MEMORY] = { .text = " {bytes} of it was in memory[{?peak} at the peak]." },
	[FINDING_DOMAIN_IMPORTS] = { .text = " " DOMAIN_PART "left by imports." },
	[FINDING_DOMAIN_LINE] = { .text = " " DOMAIN_PART
	                                  "[{arena_words}][{!arena_words}allocated at {where}][{?peak} at the peak]." },
	[FINDING_DOMAIN_ACCUMULATES] = { .text = "[{?told} It looks][{!told} What is allocated at {where} looks] like a leak[{?built_once}, or it is a one-time load]: {bytes} of it."
	                                         "[ {count} more [{?single}line looks like a leak too][{!single}lines look like leaks too].]" GENERATIONS },
	[FINDING_DOMAIN_MAY_ACCUMULATE] = { .text = "[{?told} It][{!told} What is allocated at {where}]" MAY_GROW },
	[FINDING_DOMAIN_STEADY] = { .text = " No line of it is known to leak." },
	[FINDING_MORE_DOMAINS] = { .text = " {count} more {more_than_asked}[{!single}s] held no more." },
	[FINDING_REFUSED_REQUESTS] = { .say = say_refused_requests },
	[FINDING_LIBRARIES] = { .text = " " IN_MEMORY_THEN "code and data of the program and its libraries." },
	[FINDING_MAPPED_FILES] = { .text = " " IN_MEMORY_THEN
	                                   "pages of files and shared memory. Most of the files were mapped at {where}." },
	[FINDING_RECORDER] = { .text = " " IN_MEMORY_THEN "the recorder's own." },
	[FINDING_DAMAGE] = { .text = " The capture is damaged: figures cover only what is intact, and may be too low." },
	[FINDING_UNLISTED] = { .text = " {bytes} of what was live belongs to no line: its records are lost." },
	[FINDING_UNRECORDED] = { .text = " There was no room to record allocations of {bytes} in all: the figures of lines may be too low." },
	[FINDING_ELSEWHERE] = { .text = " There was no room for the stacks of {bytes} of what was held: it is counted at callers or at an unknown place." },
	[FINDING_HIDDEN_HEAP] = { .text = " The heap is missing in these figures: another malloc stands before the recorder's (see the notes)." },
};
_Static_assert(COUNT_OF(phrases) == FINDINGS, "each kind has one");

static const struct {
	const char *name; // in JSON
	enum verdict_rank rank;
} kinds[] = {
#define KIND_ROW(kind, name, rank) { name, RANK_##rank },
	FINDING_KINDS(KIND_ROW)
};

const char *
finding_name(unsigned kind)
{
	return kind < FINDINGS ? kinds[kind].name : NULL;
}

static bool
is_headline(const struct verdict_facts *facts, const struct verdict *verdict, const struct finding *finding)
{
	enum verdict_rank rank = kinds[finding->kind].rank;
	bool is_about_domain = facts->asked.name != NULL ||
	                       ANY(other, verdict->findings, verdict->finding_count, other->kind == FINDING_DEVICE_REFUSED);

	bool is_peak_the_story = !verdict->has_ended_well &&
	                         !ANY(other, verdict->findings, verdict->finding_count, other->kind == FINDING_LIVE);

	if (finding->kind == FINDING_HOLDER && is_holder_known(facts, &finding->line))
		return false; // what to do next names it
	return rank == RANK_HEADLINE || (rank == RANK_HEADLINE_IF_PEAK && is_peak_the_story) ||
	       (rank == RANK_HEADLINE_IF_NO_BAR && !verdict->has_bar) ||
	       (rank == RANK_HEADLINE_IF_ASKED && is_about_domain);
}

void
verdict_say(const struct verdict_facts *facts, struct verdict *verdict)
{
	EACH (finding, verdict->findings, verdict->finding_count) {
		const struct told told = { facts, finding, verdict };

		verdict->rank = is_headline(facts, verdict, finding) ? RANK_HEADLINE : RANK_EVIDENCE;
		if (phrases[finding->kind].say != NULL)
			(phrases[finding->kind].say)(&told);
		else
			say_template(&told, phrases[finding->kind].text);
	}
	verdict->rank = RANK_EVIDENCE; // of what else is said
}

const char *
ending_template(enum verdict_cause cause)
{
	return cause < COUNT_OF(endings) ? endings[cause] : NULL;
}

const char *
phrase_template(enum finding_kind kind)
{
	return kind >= COUNT_OF(phrases) ? NULL : phrases[kind].say != NULL ? "" : phrases[kind].text;
}
