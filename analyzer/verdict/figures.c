/*
 * figures.c - which figures may a template name (see template.h)?
 *
 * A figure has a condition: without it, it is empty. Those that only answer a question hold one character.
 *
 * When full  texts are cut.
 */
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "analysis/grows_with.h"
#include "base/amount.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/shell_words.h"
#include "base/text_start.h"
#include "base/units.h"
#include "verdict/advice_rows.h"
#include "verdict/limit_owner.h"
#include "verdict/template.h"
#include "verdict/words.h"

#define NAME_BYTES_MAX 300
#define NATIVE_FRAMES_PART \
	64                 // of stacks of Python that hold more than this part of the heap the recorder keeps native frames
#define FILLED_PART 16 // of what the last look saw untouched: less is an error of that look
#define CHANGED_PART 8 // of what a look saw: more came after it
#define OLD_NS UINT64_C(1000000000)

#define SECONDS(ns) ((double)(ns) / 1e9)

/* ---- helpers ---- */

#define put(text, ...) memory_text_add(text, FIGURE_BYTES, __VA_ARGS__)

/* "1 process" */
static const char *
processes_text(uint64_t count, char text[PLACE_TEXT_BYTES])
{
	return memory_text_in(text, PLACE_TEXT_BYTES, "%" PRIu64 " process%s", count, plural(count, "es"));
}

static const char *
process_text(const struct model_process *process, char text[PLACE_TEXT_BYTES])
{
	return process != NULL ? verdict_process_text(process, text)
	                       : memory_text_in(text, PLACE_TEXT_BYTES, "several processes");
}

static const struct verdict_log *
log_of(const struct told *told)
{
	return told->verdict->cause == VERDICT_CHILD_KILLED ? &told->facts->lost_log : &told->facts->log;
}

/* How it is known that the kernel killed it. */
static void
put_proof(const struct told *told, char text[FIGURE_BYTES])
{
	const struct verdict_facts *facts = told->facts;

	if (facts->cgroup_kills != 0)
		put(text, "the cgroup's oom_kill counter rose from %" PRIu64 " to %" PRIu64 "%s%s", facts->cgroup_kills_before,
		    facts->cgroup_kills_before + facts->cgroup_kills, facts->counters_are_late ? ", read after the fact" : "",
		    facts->was_look_killed ? ", without a look of kmemshim's that was killed" : "");
	else if (facts->log.kind != VERDICT_LOG_NONE || told->verdict->cause == VERDICT_CHILD_KILLED)
		put(text, "the system's log names it");
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

/* " was ended by signal 9 (SIGKILL)" */
static void
put_end(const struct told *told, char text[FIGURE_BYTES])
{
	const struct verdict_facts *facts = told->facts;

	if (facts->end == VERDICT_END_SIGNAL)
		put(text, " was ended by signal %d (SIG%s)", facts->signal, sigabbrev_np(facts->signal) ?: "?");
	else if (facts->end == VERDICT_END_FAILED)
		put(text, " exited with status %d", facts->exit_code);
	else
		put(text, "%s",
		    facts->process->state == KMEM_STATE_EXEC_REPLACED       ? " was replaced by another program (exec)"
		    : facts->end == VERDICT_END_OK && facts->exit_code == 0 ? " exited normally, with status 0"
		    : facts->end == VERDICT_END_OK                          ? " exited by itself"
		    : facts->end == VERDICT_END_RUNNING                     ? " is still running"
		                                                            : " ended without a clean exit");
}

/* The sum of the bar that follows. */
static void
put_with(const struct told *told, char text[FIGURE_BYTES])
{
	const struct verdict_facts *facts = told->facts;

	if (verdict_has_bar(facts))
		put(text, ", with %s %s", UNITS_BYTES(facts->memory.bytes),
		    facts->memory.is_of_container           ? "in use"
		    : facts->live_count > 1                 ? "in memory in all its processes"
		    : facts->live_process == facts->process ? "in memory"
		                                            : TEXT(PLACE_TEXT_BYTES + 16, "in memory in %s",
		                                                   verdict_process_text(facts->live_process, PLACE_ROOM)));
}

/* "Its child process train.py (pid 7) ended without a clean exit. It held 31 MiB." */
static void
put_lost(const struct told *told, char text[FIGURE_BYTES])
{
	const struct verdict_facts *facts = told->facts;
	const char *child = verdict_process_text(facts->lost_child, PLACE_ROOM);

	if (facts->lost_count == 1)
		put(text, "Its child process %s ended without a clean exit. It held ", child);
	else
		put(text, "%zu of its child processes ended without a clean exit; they held %s in sum. The largest, %s, held ",
		    facts->lost_count, UNITS_BYTES(facts->lost_bytes), child);
	verdict_add_held(facts->lost_child, text, FIGURE_BYTES);
}

/* The first of several, and when. */
static void
put_first_lost(const struct told *told, char text[FIGURE_BYTES])
{
	const struct model_process *first = told->facts->first_lost;
	uint64_t ended_ns = model_ended_ns(told->facts->process);

	if (first == NULL)
		return;
	put(text, "%s", verdict_process_text(first, PLACE_ROOM));
	if (ended_ns > model_last_seen_ns(first))
		put(text, ", %.1f s before the end", SECONDS(ended_ns - model_last_seen_ns(first)));
	put(text, "; it held %s", UNITS_BYTES(first->live_bytes));
}

/* A note of the recorder about another limit, as the beginning of a sentence. */
static void
put_note(const struct told *told, char text[FIGURE_BYTES])
{
	const char *note = verdict_limit_note(told->facts, told->finding->kind);

	if (note != NULL)
		put(text, "%c%s", toupper((unsigned char)note[0]), note + 1);
}

/* The limit that was in the way of a request, where one is known. */
static void
put_space_limit(const struct told *told, char text[FIGURE_BYTES])
{
	const struct kmem_limit *limit = verdict_address_limit(told->facts);
	uint64_t then_bytes = told->facts->refused->space_limit_bytes;
	uint64_t own_bytes = told->facts->refused->own_space_bytes;
	bool is_data = limit != NULL && limit->kind != KMEM_LIMIT_ADDRESS_SPACE;
	uint64_t limit_bytes = limit != NULL ? limit->bytes : then_bytes;

	if (limit_bytes == 0)
		return;
	if (limit != NULL)
		put(text, "its %s: %s (ulimit -%s)", is_data ? "data segment" : "address space", UNITS_BYTES(limit_bytes),
		    is_data ? "d" : "v");
	else
		put(text, "its address space: the program had set it to %s (setrlimit, RLIMIT_AS)", UNITS_BYTES(limit_bytes));
	if (!is_data && own_bytes >= limit_bytes)
		put(text, ". The recorder had reserved %s of addresses: without it the request might have been met",
		    UNITS_BYTES(own_bytes));
	else if (!is_data)
		put(text, ", of which the recorder takes %s", own_bytes != 0 ? UNITS_BYTES(own_bytes) : "a part");
}

/* ---- what was live ---- */

/* "At the end": the moment of what was live. */
static const char *
moment(const struct verdict_facts *facts, enum verdict_cause cause)
{
	const struct model_process *process = facts->live_process;
	const struct model_site *top = facts->top_live.largest;
	bool is_over = cause == VERDICT_EXITED || cause == VERDICT_FAILED;

	return process->moment_ns != 0                                     ? "At the snapshot"
	       : cause == VERDICT_RESTARTED || cause == VERDICT_NOT_CLOSED ? "When recording stopped"
	       : cause == VERDICT_RUNNING                                  ? "Just now"
	       : cause == VERDICT_REQUEST_REFUSED                          ? "At that moment"
	       : is_over && process->is_at_exit                            ? "When it began to exit"
	       : is_over && process->is_finalizing                         ? "When Python began to shut down"
	       : !is_over && top != NULL && top->library != NULL           ? "At the last sample" // nobody looked later
	                                                                   : "At the end";
}

/* What is put together from before and after the last look is no sample. "": it is what that look saw. */
static const char *
filled_words(const struct verdict_facts *facts)
{
	const struct model_process *process = facts->live_process;

	if (process == NULL || process->filled_bytes <= (process->filled_bytes + process->untouched_bytes) / FILLED_PART)
		return "";
	return process->is_filling_known ? "about " : "at most ";
}

/* One domain's peak is told too, and this is more. */
static bool
is_more_than_peak(const struct verdict_facts *facts)
{
	return facts->refused == NULL && (facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED) &&
	       facts->peak_domain != NULL && facts->live_bytes > facts->peak_bytes;
}

/* What of it is not memory of a line of the program: "left free in arenas of small Python objects". */
static const char *
arena_words(const struct verdict_facts *facts, const struct finding *finding)
{
	return verdict_is_rest_of_arenas(&finding->line) ? "left free in arenas of small Python objects"
	       : verdict_is_arena(facts, &finding->line) ? "in arenas of small Python objects, of which no line is known"
	                                                 : "";
}

/* "100 steps", in each of which so much was kept */
static void
put_kept_steps(const struct told *told, char text[FIGURE_BYTES])
{
	struct line_steps kept = line_steps_of(told->facts->model, &told->finding->line);

	if (kept.count != 0)
		put(text, "%s%s was kept in each of %s", kept.is_one_block ? "One block of " : "", UNITS_BYTES(kept.bytes),
		    verdict_steps_text(&kept, VERDICT_STEPS_ROOM));
}

static void
put_generations(const struct told *told, char text[FIGURE_BYTES])
{
	const struct model_site *telling = told->finding->line.telling;

	if (telling->is_growing_storage)
		put(text, "blocks that are full are replaced by larger ones, as the storage of a container that grows");
	else
		put(text, "%s from %" PRIu32 " of %" PRIu32 " generations (stretches of the run) are still %s",
		    telling->library != NULL ? "pages" : "blocks", telling->generations_alive, telling->generations_total,
		    telling->library != NULL ? "there" : "alive");
}

/* It grows with something that is no leak. */
static void
put_growth(const struct told *told, char text[FIGURE_BYTES])
{
	const struct rank_line *line = &told->finding->line;

	if (verdict_is_of_recursion(told->facts, line))
		put(text, "grows with the depth of %s, which calls itself", line->where->function);
	else if (line->telling->is_of_call)
		put(text, "grows in a call that has not returned, as a load does");
	else
		put(text, "%s",
		    told->verdict->end == VERDICT_END_OK && rank_is_of_allocator(told->facts->model, line->telling)
		        ? "may be a leak, or what it freed and its allocator keeps"
		    : rank_may_be_built_once(line->telling) ? "looks like a leak, or it is a one-time load"
		                                            : "looks like a leak");
}

static const char *
next_growth(const struct verdict_facts *facts, const struct rank_line *line)
{
	return line->leak != MODEL_LEAK_LEAK                 ? ""
	       : lines_grow_together(&facts->top_live, line) ? ", block for block with it: one thing may keep both"
	       : facts->top_live.leak == MODEL_LEAK_LEAK     ? ", which looks like a leak too"
	                                                     : ", which looks like a leak";
}

static void
put_in_processes(const struct told *told, char text[FIGURE_BYTES])
{
	const struct verdict_facts *facts = told->facts;
	bool is_peak = told->finding->kind == FINDING_PEAK_LINE_OF_ALL;
	uint32_t processes = is_peak ? facts->top_peak_processes : facts->top_live_processes;

	if (!is_peak && facts->top_live_process != NULL)
		put(text, "nearly all of it in %s", verdict_process_text(facts->top_live_process, PLACE_ROOM));
	else if (!is_peak && facts->top_live_copies != 0)
		put(text, "about as much in each of %" PRIu32 " of them", facts->top_live_copies);
	else if (processes > 1 && facts->model->domains[told->finding->line.domain].id.kind != DOMAIN_SHARED)
		put(text, "in %" PRIu32 " of them", processes);
}

/* ---- the peak ---- */

/* What a domain is to a person, behind "up to 100 MiB of it". */
static void
put_peak_kind(const struct told *told, char text[FIGURE_BYTES])
{
	static const char *const words[] = {
		[DOMAIN_HEAP] = "in its heap",
		[DOMAIN_HEAP_SAMPLE] = "in its heap",
		[DOMAIN_MMAP] = "in mappings",
		[DOMAIN_SHARED] = "in shared memory",
		[DOMAIN_PYTHON_ARENA] = "in arenas of small Python objects",
		[DOMAIN_PYTHON_OBJECT] = "in small Python objects",
		[DOMAIN_LIBRARY] = "in allocators of libraries",
	};
	const struct model_domain *domain = told->facts->peak_domain;

	if (domain == NULL)
		put(text, "at once");
	else if (domain->id.kind < COUNT_OF(words) && words[domain->id.kind] != NULL)
		put(text, "%s", words[domain->id.kind]);
	else
		put(text, "in %s", domain->name);
}

/* The most that was in memory; of several processes nobody knows it of all. */
static uint64_t
peak_most_bytes(const struct verdict_facts *facts)
{
	return facts->model->process_count == 1 ? verdict_most_resident_of(facts->process) : 0;
}

/* ---- freed memory ---- */

static uint64_t
used_bytes(const struct verdict_freed *freed)
{
	return amount_less(freed->heap_bytes, freed->freed_bytes);
}

static void
put_freed_when(const struct told *told, char text[FIGURE_BYTES])
{
	const struct verdict_freed *freed = &told->facts->memory.freed;

	if (freed->is_later)
		put(text, "at the last sample ");
	else if (freed->age_ns >= OLD_NS && told->facts->end != VERDICT_END_RUNNING)
		put(text, "%.1f s before the end ", SECONDS(freed->age_ns));
}

/* ---- devices ---- */

static void
put_pace(const struct told *told, char text[FIGURE_BYTES])
{
	const struct rank_line *top = &told->finding->line;
	bool is_each_run = top->allocated_count / 5 <= top->live_count / 4;

	if (verdict_tells_pace(top))
		put(text, is_each_run ? "it keeps %s each time it runs (%s blocks)" : "%s each (%s blocks)",
		    UNITS_BYTES(top->live_bytes / top->live_count), UNITS_COUNT(top->live_count));
}

static bool
do_grow_together(const struct verdict_facts *facts)
{
	return facts->growing_count > 1 && facts->growing_rounds != 0;
}

static void
put_lasting(const struct told *told, char text[FIGURE_BYTES])
{
	for (size_t i = 0; i < told->facts->lasting_count; i++)
		put(text, "%s%s of %s", i == 0 ? "" : " and ", UNITS_BYTES(told->facts->lasting[i].live_bytes),
		    verdict_line_text(&told->facts->lasting[i], PLACE_ROOM));
}

static void
put_device_parts(const struct told *told, char text[FIGURE_BYTES])
{
	struct device_parts parts;

	if (!device_parts_of(told->facts->model, (unsigned)(told->finding->domain - told->facts->model->domains), NULL,
	                     &parts))
		return;
	for (size_t i = 0; i < parts.part_count; i++)
		put(text, "%s%s %s", i == 0 ? "" : ", ", UNITS_BYTES(parts.parts[i].live_bytes), parts.parts[i].name);
}

/* "the tensors", "that" (which is in memory), "it" */
static const char *
domain_whole(const struct finding *finding)
{
	uint64_t all_bytes = finding->is_peak ? finding->domain->peak_bytes : finding->domain->live_bytes;

	return finding->domain->id.kind == DOMAIN_TENSORS ? "the tensors"
	       : finding->whole_bytes != all_bytes        ? "that"
	                                                  : "it";
}

/* ---- what to do next ---- */

/* Too long for a sentence, or with a line break, it cannot be copied from there. */
static const char *
name_or(const char *name, const char *otherwise)
{
	for (const char *at = name; *at != '\0'; at++) {
		if ((unsigned char)*at < ' ' || *at == '`')
			return otherwise;
	}
	return name[0] != '\0' && strlen(name) <= NAME_BYTES_MAX ? name : otherwise;
}

static void
put_command(const struct told *told, char text[FIGURE_BYTES])
{
	const struct kmem_identity *identity = told->facts->model->processes[0].identity;
	OWNED char *command = shell_words_join(identity->command, identity->command_bytes);

	put(text, "%s", name_or(command, "COMMAND"));
}

static void
put_child(const struct told *told, char text[FIGURE_BYTES])
{
	const char *path = told->verdict->lost_child != NULL ? told->verdict->lost_child->path : "";
	OWNED char *child = shell_words_join(path, strlen(path));

	put(text, "%s%s", told->facts->model->needs_salvage ? "--salvage " : "", name_or(child, "CAPTURE"));
}

/* What is in the way of such a request, and how there can be more of it. */
static const char *
raise_words(const struct verdict_facts *facts)
{
	const struct kmem_identity *identity = facts->process->identity;

	if (facts->refused->is_by_guard)
		return "raise its guard (--guard)";
	if (ANY(limit, identity->limits, KMEM_LIMITS_MAX,
	        limit->kind == KMEM_LIMIT_ADDRESS_SPACE && limit->bytes != UINT64_MAX))
		return "raise the limit (ulimit -v)";
	if (facts->refused->space_limit_bytes != 0)
		return "raise the limit (RLIMIT_AS, which the program set)";
	return identity->overcommit_mode == 2 ? "let the machine promise more: add swap, or raise vm.overcommit_ratio"
	                                      : "raise the limit";
}

static const char *
other_users(const char *device, char text[PLACE_TEXT_BYTES])
{
	bool is_hip = text_starts(device, "hip");

	return memory_text_in(text, PLACE_TEXT_BYTES, "see with %s what else uses %s, or take another device (%s)",
	                      is_hip ? "rocm-smi" : "nvidia-smi", device,
	                      is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
}

static void
put_lasting_lines(const struct told *told, char text[FIGURE_BYTES])
{
	for (size_t i = 0; i < told->facts->lasting_count; i++)
		put(text, "%s%s", i == 0 ? "" : " and ", verdict_line_text(&told->facts->lasting[i], PLACE_ROOM));
}

static bool
is_built_in_arenas(const struct verdict_facts *facts)
{
	const struct model_site *built = facts->copies.built_count != 0 ? facts->copies.built[0].site : NULL;
	const struct rank_line line = { .site_count = 1, .domain = built != NULL ? built->domain : 0, .largest = built };

	return built != NULL && verdict_is_arena(facts, &line) && !verdict_is_rest_of_arenas(&line);
}

/* A line that a person is sent to; whether that is the one that holds most is kept. */
static const char *
place_of(const struct told *told, const struct rank_line *line, char text[PLACE_TEXT_BYTES])
{
	verdict_names(told->facts, line, told->verdict);
	return verdict_line_text(line, text);
}

/* ---- all of them ---- */

#define BYTES(name, bytes) FIGURE(name, (bytes) != 0, "%s", UNITS_BYTES(bytes))
#define COUNT(name, count) FIGURE(name, (count) != 0, "%s", UNITS_COUNT(count))
#define WORDS(name, words) FIGURE(name, true, "%s", words)
#define TEST(name, condition) FIGURE(name, condition, "+")
#define LINE(name, line) FIGURE(name, true, "%s", place_of(told, line, PLACE_ROOM))

#define FIGURES                                                                                                        \
	/* of a finding */                                                                                                 \
	FIGURE(bytes, true, "%s%s", line->sample_bytes != 0 ? "≈" : "", UNITS_BYTES(finding->bytes))                       \
	BYTES(whole, finding->whole_bytes)                                                                                 \
	FIGURE(rest, true, "%s", UNITS_BYTES(finding->whole_bytes - finding->bytes))                                       \
	FIGURE(share, true, "%s", UNITS_SHARE(verdict_share(finding->bytes, finding->whole_bytes)))                        \
	FIGURE(of_peak, finding->whole_bytes != 0, "%s", UNITS_SHARE(verdict_share(finding->bytes, finding->whole_bytes))) \
	FIGURE(error, line->sample_bytes != 0, ", ±%s",                                                                    \
	       UNITS_BYTES(model_estimate_error(line->sample_bytes, amount_less(finding->bytes, line->exact_bytes))))      \
	FIGURE(entered, line->site_count != 0 && model_entered_package(line->largest) != NULL, "%s",                       \
	       verdict_frame_text(model_entered_package(line->largest), PLACE_ROOM))                                       \
	FIGURE(where, line->site_count != 0, "%s", verdict_line_text(line, PLACE_ROOM))                                    \
	WORDS(how, verdict_where_word(facts, line, VERDICT_WORD_ROOM))                                                     \
	WORDS(domain, finding->domain->name)                                                                               \
	WORDS(line_domain, facts->model->domains[line->domain].name)                                                       \
	COUNT(count, finding->count)                                                                                       \
	TEST(unlisted, verdict_unlisted_refusals(facts) != 0 && verdict_has_device(facts))                                 \
	TEST(several_live, facts->live_count > 1)                                                                          \
	TEST(single, finding->count == 1)                                                                                  \
	WORDS(process, process_text(finding->process, PLACE_ROOM))                                                         \
	TEST(peak, finding->is_peak)                                                                                       \
	TEST(told, finding->is_told)                                                                                       \
	TEST(after_line, finding->is_after_line)                                                                           \
	BYTES(some, finding->bytes)                                                                                        \
	TEST(built, facts->copies.built_count != 0)                                                                        \
	/* how it ended */                                                                                                 \
	FIGURE(who, true, "%s%s%s", facts->is_descendant ? "A child process, " : "",                                       \
	       verdict_process_text(facts->process, PLACE_ROOM), facts->is_descendant ? "," : "")                          \
	PUT(end)                                                                                                           \
	PUT(with)                                                                                                          \
	PUT(proof)                                                                                                         \
	PUT(lost)                                                                                                          \
	PUT(first_lost)                                                                                                    \
	PUT(note)                                                                                                          \
	PUT(space_limit)                                                                                                   \
	TEST(descendant, facts->is_descendant)                                                                             \
	TEST(signalled, facts->end == VERDICT_END_SIGNAL)                                                                  \
	TEST(running, facts->end == VERDICT_END_RUNNING)                                                                   \
	WORDS(confidence, verdict_confidence_name(told->verdict->confidence))                                              \
	FIGURE(Sure, true, "%c%s", toupper(verdict_confidence_name(told->verdict->confidence)[0]),                         \
	       verdict_confidence_name(told->verdict->confidence) + 1)                                                     \
	FIGURE(dark, true, "%" PRIu64, verdict_dark_ns(facts->process, facts->now) / UINT64_C(1000000000) + 1)             \
	FIGURE(kills, facts->cgroup_kills != 0, "%s", processes_text(facts->cgroup_kills, PLACE_ROOM))                     \
	FIGURE(machine_kills, facts->machine_kills != 0, "%s", processes_text(facts->machine_kills, PLACE_ROOM))           \
	TEST(kill_counted, facts->is_kill_counted)                                                                         \
	TEST(kill_named, facts->cgroup_kills != 0 || facts->log.kind == VERDICT_LOG_MACHINE)                               \
	/* it is known that there was none */                                                                              \
	TEST(no_kill,                                                                                                      \
	     facts->is_kill_counted ? facts->cgroup_kills == 0 : facts->is_machine_counted && facts->machine_kills == 0)   \
	WORDS(killed_children, facts->lost_count == 1 ? "its child process" : "at least one of its child processes")       \
	FIGURE(limit, facts->limit_bytes != UINT64_MAX, "%s", UNITS_BYTES(facts->limit_bytes))                             \
	FIGURE(owner, limit_owner_of(facts->process->identity->limit_path, owner), "%s", owner)                            \
	BYTES(shm, facts->process->identity->shm_bytes)                                                                    \
	BYTES(machine, facts->process->identity->machine_bytes)                                                            \
	TEST(strict_overcommit, facts->process->identity->overcommit_mode == 2)                                            \
	FIGURE(wanted, true, "%s", verdict_wanted_text(facts->model, facts->refused, VERDICT_STEPS_ROOM))                  \
	TEST(memory_error, is_memory_error(facts))                                                                         \
	TEST(guard_refused, facts->refused->is_by_guard)                                                                   \
	TEST(caught, verdict_was_perhaps_caught(facts))                                                                    \
	TEST(end_unseen, verdict_is_end_unseen(facts))                                                                     \
	FIGURE(got, verdict_was_given_more(facts), "%s", UNITS_BYTES(facts->refused->got_bytes))                           \
	TEST(other_status, verdict_is_other_status(facts))                                                                 \
	FIGURE(daemon, facts->log.kind == VERDICT_LOG_DAEMON, "%s", facts->log.writer)                                     \
	TEST(by_guard, facts->signal == SIGINT && verdict_has_guard_interrupted(facts))                                    \
	FIGURE(refused_earlier, facts->process->failed_count != 0, "%s request%s",                                         \
	       UNITS_COUNT(facts->process->failed_count), facts->process->failed_count == 1 ? " was" : "s were")           \
	FIGURE(shell_signal, true, "%d (SIG%s)", facts->exit_code - 128, sigabbrev_np(facts->exit_code - 128) ?: "?")      \
	WORDS(log, log_of(told)->text)                                                                                     \
	WORDS(log_writer, strcmp(log_of(told)->writer, "kernel") == 0 ? "the kernel" : log_of(told)->writer)               \
	TEST(log_by_name, log_of(told)->is_by_name)                                                                        \
	TEST(log_of_thread, log_of(told)->is_of_thread)                                                                    \
	FIGURE(crash_places, verdict_crashes_anywhere(facts), "%u", facts->log.crash_places)                               \
	TEST(charged, facts->charged_bytes != 0 && facts->limit_bytes != UINT64_MAX)                                       \
	TEST(accumulates, verdict_is_accumulating(facts))                                                                  \
	FIGURE(refusals, true, "%s%s request%s",                                                                           \
	       verdict_unlisted_refusals(facts) != 0 && verdict_has_device(facts) ? "At least " : "",                      \
	       UNITS_COUNT(finding->count), finding->count == 1 ? " was" : "s were")                                       \
	TEST(several, process_count > 1)                                                                                   \
	TEST(many, process_count > 2)                                                                                      \
	/* what was live */                                                                                                \
	WORDS(moment, moment(facts, told->verdict->cause))                                                                 \
	FIGURE(look_age,                                                                                                   \
	       facts->end != VERDICT_END_RUNNING &&                                                                        \
	           memory->bar[VERDICT_BAR_LATER].bytes > memory->sample_bytes / CHANGED_PART,                             \
	       "%.1f s before the end", SECONDS(memory->age_ns))                                                           \
	/* Who ends by itself is looked at then. Others may have filled what they had asked for after the last look. */    \
	TEST(end_sampled,                                                                                                  \
	     facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED || facts->end == VERDICT_END_RUNNING)        \
	WORDS(filled, filled_words(facts))                                                                                 \
	FIGURE(in_memory, verdict_is_in_memory_told(facts), "%s", UNITS_BYTES(facts->live_bytes))                          \
	TEST(on_host, process_count == 1 && ((told->verdict->cause == VERDICT_RUNNING && facts->refused != NULL &&         \
	                                      verdict_is_device_request(facts)) ||                                         \
	                                     (is_more_than_peak(facts) && verdict_has_device(facts))))                     \
	TEST(in_all, process_count == 1 && is_more_than_peak(facts))                                                       \
	FIGURE(live_count, facts->live_count > 1, "%zu", facts->live_count)                                                \
	BYTES(live_process_bytes,                                                                                          \
	      facts->live_process_bytes + (verdict_is_in_memory_told(facts) ? 0 : facts->live_process_untouched_bytes))    \
	WORDS(live_process, process_text(facts->live_process, PLACE_ROOM))                                                 \
	WORDS(live_whole, facts->live_count > 1 ? "all that" : verdict_is_in_memory_told(facts) ? "that" : "it")           \
	PUT(kept_steps)                                                                                                    \
	PUT(generations)                                                                                                   \
	PUT(growth)                                                                                                        \
	FIGURE(growing, line->leaking_bytes < line->score_bytes / 10 * 9, "%s", UNITS_BYTES(line->leaking_bytes))          \
	FIGURE(generations_total, true, "%" PRIu32, line->telling->generations_total)                                      \
	WORDS(built_once, !rank_may_be_built_once(line->telling) || rank_is_of_allocator(facts->model, line->telling) ? "" \
	                  : rank_is_below_import(line->telling) ? "An import runs it."                                     \
	                  : rank_is_too_new(line->telling)      ? "So few do not tell a leak from a load."                 \
	                  : rank_is_of_constructor(facts->model, line->telling)                                            \
	                      ? "A constructor makes it, in rounds of its own."                                            \
	                      : "At least half of what was allocated meanwhile came from there.")                          \
	TEST(look_killed, facts->was_look_killed)                                                                          \
	TEST(same_line, strcmp(verdict_line_text(line, PLACE_ROOM), verdict_line_text(&facts->top_live, PLACE_ROOM)) == 0) \
	WORDS(next_growth, next_growth(facts, line))                                                                       \
	FIGURE(before_last, true, "%s", UNITS_BYTES(amount_less(finding->whole_bytes, finding->bytes)))                    \
	WORDS(beside_growth, rank_may_be_built_once(line->telling) ? "may be a leak" : "look like a leak")                 \
	TEST(top_leaks, facts->top_live.leak == MODEL_LEAK_LEAK)                                                           \
	WORDS(at_ends, finding->kind == FINDING_PEAK_LINE_OF_ALL ? "at their peaks" : "at their ends")                     \
	TEST(unsent, rank_is_unsent(facts->model, line->largest))                                                          \
	TEST(shared_line, facts->model->domains[line->domain].id.kind == DOMAIN_SHARED)                                    \
	WORDS(arena_words, arena_words(facts, finding))                                                                    \
	PUT(in_processes)                                                                                                  \
	COUNT(copies, facts->top_live_copies)                                                                              \
	/* the peak */                                                                                                     \
	PUT(peak_kind)                                                                                                     \
	TEST(own_peak, facts->peak_process == facts->process)                                                              \
	WORDS(peak_process, process_text(facts->peak_process, PLACE_ROOM))                                                 \
	FIGURE(peak_domain, facts->peak_domain != NULL, "%s", facts->peak_domain->name)                                    \
	FIGURE(peak_part, facts->peak_domain != NULL && finding->bytes != facts->peak_bytes, "%s",                         \
	       UNITS_BYTES(facts->peak_bytes))                                                                             \
	BYTES(peak_most, peak_most_bytes(facts))                                                                           \
	TEST(peak_within, peak_most_bytes(facts) >= finding->bytes && !verdict_is_peak_told_in_memory(facts))              \
	FIGURE(peak_touched,                                                                                               \
	       verdict_is_peak_told_in_memory(facts) && facts->peak_domain != NULL &&                                      \
	           (peak_most_bytes(facts) == 0 || facts->peak_bytes <= peak_most_bytes(facts)),                           \
	       "%s", UNITS_BYTES(facts->peak_bytes))                                                                       \
	WORDS(peak_import, facts->peak_import)                                                                             \
	WORDS(room_of, finding->whole_bytes < facts->peak_process->identity->machine_bytes ? "container" : "machine")      \
	/* freed memory, and what else was there */                                                                        \
	FIGURE(freed_process, process_count > 1, "%s", process_text(freed->process, PLACE_ROOM))                           \
	PUT(freed_when)                                                                                                    \
	FIGURE(used, true, "%s", UNITS_BYTES(used_bytes(freed)))                                                           \
	FIGURE(used_share, true, "%s", UNITS_SHARE(verdict_share(used_bytes(freed), freed->heap_bytes)))                   \
	FIGURE(sparse, verdict_sparse_of(freed) != 0, "%s", UNITS_BYTES(freed->sparse_bytes))                              \
	FIGURE(empty, freed->empty_bytes >= freed->freed_bytes / 10, "%s", UNITS_BYTES(freed->empty_bytes))                \
	TEST(lines_first,                                                                                                  \
	     memory->part_count != 0 && memory->parts[0].bar == VERDICT_BAR_LINES && !memory->is_written_first)            \
	TEST(written_first, memory->is_written_first)                                                                      \
	TEST(freed, freed->freed_bytes != 0)                                                                               \
	TEST(freed_later, freed->is_later)                                                                                 \
	WORDS(part, memory->part_count != 0 ? memory->parts[0].name : "")                                                  \
	FIGURE(files_line, memory->files.site_count != 0 && verdict_holds_a_third(facts, memory->files_bytes), "%s",       \
	       verdict_line_text(&memory->files, PLACE_ROOM))                                                              \
	FIGURE(builder_line, memory->inherited.site_count != 0 && verdict_holds_a_third(facts, memory->inherited_bytes),   \
	       "%s %s", verdict_where_word(facts, &memory->inherited, VERDICT_WORD_ROOM),                                  \
	       verdict_line_text(&memory->inherited, PLACE_ROOM))                                                          \
	FIGURE(stacks_line, memory->starter != NULL && verdict_holds_a_third(facts, memory->stacks_bytes), "%s",           \
	       verdict_frame_text(memory->starter->where, PLACE_ROOM))                                                     \
	COUNT(stacks_count, memory->starter != NULL ? memory->starter->live_count : 0)                                     \
	TEST(lines_released, verdict_was_mostly_released(facts))                                                           \
	/* children */                                                                                                     \
	WORDS(copying, facts->copies.child_count == 1 ? "One child process"                                                \
	                                              : TEXT(64, "%zu child processes", facts->copies.child_count))        \
	WORDS(copied_parent, process_text(facts->copies.parent, PLACE_ROOM))                                               \
	TEST(python_child, facts->copies.child->python_version != 0)                                                       \
	/* devices */                                                                                                      \
	TEST(device, facts->device.device != NULL)                                                                         \
	WORDS(device_name, facts->device.device != NULL ? facts->device.device->name : "")                                 \
	WORDS(device_holder, process_count == 1 ? "The process" : "Its processes, summed,")                                \
	FIGURE(refused_held, process_count > 1 && facts->refused->has_held, "%s", UNITS_BYTES(facts->refused_held_bytes))  \
	FIGURE(tensors, facts->device.tensors != NULL, "%s", UNITS_BYTES(facts->device.tensor_bytes))                      \
	PUT(pace)                                                                                                          \
	FIGURE(together, do_grow_together(facts), "%zu", facts->growing_count)                                             \
	FIGURE(round, do_grow_together(facts), "%s", UNITS_BYTES(finding->bytes / facts->growing_rounds))                  \
	COUNT(rounds, facts->growing_rounds)                                                                               \
	TEST(pools_enough, verdict_is_kept_by_pools(facts))                                                                \
	WORDS(blocks,                                                                                                      \
	      line->live_count == 1 ? "That is one block" : TEXT(64, "Those are %" PRIu64 " blocks", line->live_count))    \
	FIGURE(retried, true, "%zu", facts->retried_count)                                                                 \
	PUT(lasting)                                                                                                       \
	PUT(device_parts)                                                                                                  \
	WORDS(domain_whole, domain_whole(finding))                                                                         \
	WORDS(more_than_asked, facts->asked.name != NULL ? "domain" : "device")                                            \
	/* the forecast */                                                                                                 \
	BYTES(a_minute, forecast->bytes_per_minute)                                                                        \
	BYTES(forecast_limit, forecast->limit_bytes)                                                                       \
	WORDS(forecast_in, forecast->minutes < 2                                                                           \
	                       ? "within two minutes"                                                                      \
	                       : TEXT(64, "in about %" PRIu64 "%s",                                                        \
	                              forecast->minutes < 120 ? forecast->minutes : forecast->minutes / 60,                \
	                              forecast->minutes < 120 ? " minutes" : " hours"))                                    \
	FIGURE(forecast_steps, forecast->steps != 0, "%s %s", UNITS_COUNT(units_rounded(forecast->steps, 2)),              \
	       forecast->steps_source == KMEM_STEPS_LOOP ? "rounds" : "steps")                                             \
	/* what to do next */                                                                                              \
	LINE(top, &facts->top_live)                                                                                        \
	LINE(last_taker, &facts->last_taker)                                                                               \
	LINE(device_line, &facts->top_device)                                                                              \
	LINE(pinned_line, &facts->top_pinned)                                                                              \
	LINE(peak_line, &facts->top_peak)                                                                                  \
	LINE(before_line, facts->top_peak.site_count != 0 ? &facts->top_peak : &facts->top_live)                           \
	FIGURE(swept_line, facts->swept.site_count != 0, "%s", place_of(told, &facts->swept, PLACE_ROOM))                  \
	LINE(leaking_line, &facts->most_leaking)                                                                           \
	FIGURE(child_line, facts->peak_process != facts->process && facts->top_peak.site_count != 0, "%s",                 \
	       place_of(told, &facts->top_peak, PLACE_ROOM))                                                               \
	FIGURE(beside_line, facts->beside_arenas.site_count != 0, "%s", place_of(told, &facts->beside_arenas, PLACE_ROOM)) \
	FIGURE(pinning_line, freed->pinning[0].site_count != 0, "%s", verdict_line_text(&freed->pinning[0], PLACE_ROOM))   \
	FIGURE(                                                                                                            \
		request_line, facts->refused->site != NULL && facts->refused->site->where != NULL, "%s",                       \
		verdict_line_text(                                                                                             \
			&(struct rank_line){ .where = facts->refused->site->where, .largest = facts->refused->site }, PLACE_ROOM)) \
	WORDS(peak_how, verdict_where_word(facts, &facts->top_peak, VERDICT_WORD_ROOM))                                    \
	FIGURE(leaking, true, "%s", UNITS_BYTES(facts->leaking_bytes))                                                     \
	WORDS(if_data_set, if_data_set(told->verdict, &facts->top_live))                                                   \
	WORDS(if_asked_data_set,                                                                                           \
	      facts->asked.growing.site_count != 0 ? if_data_set(told->verdict, &facts->asked.growing) : "")               \
	WORDS(if_unfinished, if_unfinished(facts, &facts->top_live))                                                       \
	FIGURE(raise, facts->refused != NULL, "%s", raise_words(facts))                                                    \
	FIGURE(under_limit, true, "%" PRIu64, facts->refused->space_limit_bytes / 1024)                                    \
	FIGURE(parent_pid, true, "%" PRIu32, facts->process->identity->parent_pid)                                         \
	FIGURE(threads, freed->process != NULL && freed->process->thread_count > MANY_THREADS, "%u",                       \
	       freed->process->thread_count)                                                                               \
	FIGURE(capture, true, "%s%s", facts->model->needs_salvage ? "--salvage " : "",                                     \
	       name_or(facts->model->argument, "CAPTURE"))                                                                 \
	PUT(command)                                                                                                       \
	PUT(child)                                                                                                         \
	WORDS(refusing_device, refusing_device(facts))                                                                     \
	WORDS(other_users, other_users(refusing_device(facts), PLACE_ROOM))                                                \
	WORDS(asked_other_users, other_users(facts->asked.largest->name, PLACE_ROOM))                                      \
	PUT(lasting_lines)                                                                                                 \
	TEST(empty_worth, freed->empty_bytes != 0 && freed->empty_bytes >= freed->freed_bytes / 4)                         \
	TEST(sparse_worth, verdict_sparse_of(freed) != 0 && verdict_sparse_of(freed) >= freed->freed_bytes / 4)            \
	WORDS(trim, freed->process->python_version != 0 ? "ctypes.CDLL(None).malloc_trim(0)" : "malloc_trim(0)")           \
	TEST(built_in_arenas, is_built_in_arenas(facts))                                                                   \
	WORDS(asked, facts->asked.name)                                                                                    \
	WORDS(room_for_stacks, model_could_not_grow(facts->model) ? "the disk that holds captures, or ulimit -v"           \
	                                                          : "KMEMSHIM_SITES_MAX, KMEMSHIM_CAPTURE_MAX")            \
	FIGURE(cache, true, "%s", UNITS_BYTES(facts->device.cache_bytes))

#define PUT(name)
#define FIGURE(name, condition, ...)                                                                    \
	static void put_##name(const struct told *told, char text[FIGURE_BYTES])                            \
	{                                                                                                   \
		__attribute__((unused)) const struct verdict_facts *facts = told->facts;                        \
		__attribute__((unused)) const struct finding *finding = told->finding;                          \
		__attribute__((unused)) const struct rank_line *line = finding != NULL ? &finding->line : NULL; \
		__attribute__((unused)) const struct verdict_memory *memory = &facts->memory;                   \
		__attribute__((unused)) const struct verdict_freed *freed = &memory->freed;                     \
		__attribute__((unused)) const struct verdict_forecast *forecast = &facts->forecast;             \
		__attribute__((unused)) const size_t process_count = facts->model->process_count;               \
		__attribute__((unused)) char owner[LIMIT_OWNER_BYTES];                                          \
                                                                                                        \
		if (condition)                                                                                  \
			put(text, __VA_ARGS__);                                                                     \
	}
FIGURES
#undef FIGURE
#undef PUT

static const struct figure {
	const char *name;
	void (*put)(const struct told *told, char text[FIGURE_BYTES]);
} figures[] = {
#define FIGURE(name, condition, ...) { #name, put_##name },
#define PUT(name) { #name, put_##name },
	FIGURES
};

/* NULL: there is none of that name. */
static const struct figure *
figure_of(const char *name, size_t length)
{
	return FIRST(figure, figures, COUNT_OF(figures),
	             strlen(figure->name) == length && strncmp(figure->name, name, length) == 0);
}

bool
figure_is_known(const char *name, size_t length)
{
	return figure_of(name, length) != NULL;
}

void
figure_put(const struct told *told, const char *name, size_t length, char text[FIGURE_BYTES])
{
	const struct figure *figure = figure_of(name, length);

	if (figure != NULL)
		(figure->put)(told, text);
	else
		put(text, "{%.*s}", (int)length, name); // a mistake in a template is seen in tests
}
