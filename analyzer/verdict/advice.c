/*
 * advice.c - what is the one thing to do?
 *
 * Advice is a row: a name, when it applies, and how it is said. The first row that applies is taken. Some causes have a first step
 * that has nothing to do with memory ("find out who sent the signal"): a row may be said after it, joined by "then".
 */
#include "verdict/advice.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_start.h"
#include "base/units.h"
#include "model/model_library.h"
#include "verdict/cell_result.h"
#include "verdict/words.h"

#define WORTH_CHILD_BYTES (UINT64_C(1) << 20)
#define WORTH_LEAKING_BYTES (UINT64_C(1) << 20) // as in a check
#define SWEPT_PART 2                            // of the peak: less is not what made it
// of all that was allocated meanwhile: a program that reads a data set parses and converts it, and keeps so much as a rule
#define DATA_SET_PART 8
#define ROUNDS_TELLING 8     // that are recognised: a table that is read at once takes fewer
#define COLLECTED_PERCENT 90 // of the peak: more of it in one line is not said to need no action
#define COLLECTED_BLOCKS 8   // fewer are no collection
#define MANY_THREADS 8       // as many arenas as threads, up to eight for each processor

struct advice {
	const char *name; // NULL: the first step alone
	bool (*applies)(const struct verdict_facts *facts, const struct verdict *verdict);
	void (*say)(const struct verdict_facts *facts, struct verdict *verdict);
	const char *text; // instead of `say`, as say_advice() takes it
	size_t kept_line; // instead of `say`: what keeps the blocks of this rank_line of the facts alive? 0 = not so
	const struct advice *rows; // instead of `say`: a table, in which the first row that applies is taken; may have none
	bool is_after_step;        // the first step, then this
	bool is_nothing;           // there is nothing to do, or nobody can tell: not worth a row of a glance
};

static void
add_name(const char *name, struct verdict *verdict)
{
	if (verdict->advice_count < VERDICT_ADVICE_MAX)
		verdict->advice[verdict->advice_count++] = name;
}

/* ---- what may be said of a line that accumulates ---- */

/*
 * For a line that accumulates: perhaps it loads a data set. A program that ended well had room for it, and may have kept very little of
 * what reading it took. "" = hardly a data set.
 */
static const char *
if_data_set(const struct verdict *verdict, const struct rank_line *line)
{
	uint64_t volume_bytes = line->leak == MODEL_LEAK_LEAK ? line->telling->volume_bytes : 0;

	if (volume_bytes == 0 || (verdict->end != VERDICT_END_OK && line->leaking_bytes < volume_bytes / DATA_SET_PART))
		return "";
	if (verdict->cause == VERDICT_CHILD_KILLED)
		return "; if it is a data set, load less of it at once, or give the program more memory";
	if (verdict->end != VERDICT_END_OK)
		return "; if it is a data set, load less of it at once";
	if (line->released_bytes >= line->live_bytes / 2)
		return "; unless all of it is meant to be kept until the program exits";
	/* Of a sure leak it would take back what was just said. */
	return verdict->lost_child == NULL && rank_may_be_built_once(line->telling)
	           ? "; if it is a data set, no action is needed"
	           : "";
}

/* What leads nowhere is no data set. */
static bool
are_lost(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);

	return held != NULL && held->way_count != 0 && strcmp(held->ways[0].kind, "lost") == 0;
}

static bool
is_holder_known(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);
	const struct holders_way *way = held != NULL ? model_holders_way(held) : NULL;

	return way != NULL && (strcmp(way->kind, "held") == 0 || strcmp(way->kind, "lost") == 0);
}

/* What is to be done where a look has found what keeps the blocks alive. False: it has not. */
static bool
say_holder(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	static const char cache[] = " -> functools._lru_cache_wrapper";
	const struct holders_line *held = verdict_holders_of(facts, line);
	const struct holders_way *way = held != NULL ? model_holders_way(held) : NULL;
	bool is_held = way != NULL && strcmp(way->kind, "held") == 0;
	const char *wrapper = is_held ? strstr(way->text, cache) : NULL;
	bool is_grown_elsewhere;
	size_t container = is_held ? model_holders_container(way) : 0;
	char place[PLACE_TEXT_BYTES];
	char text[VERDICT_WAY_BYTES];
	char items[UNITS_TEXT_BYTES];

	(void)verdict_line_text(line, place);
	is_grown_elsewhere = is_held && way->grown_at[0] != '\0' && strcmp(way->grown_at, place) != 0;
	if (way != NULL && model_holders_are_circles(way))
		say_next(
			verdict,
			"nothing but themselves holds the objects of %s: such circles wait for the garbage collector. Is it off "
			"(gc.disable), or does it come too seldom? Call gc.collect(), or break the circle (weakref)",
			place);
	else if (way != NULL && strcmp(way->kind, "lost") == 0)
		say_next(verdict, "free the blocks of %s: nothing leads to them any more", place);
	else if (wrapper != NULL)
		say_next(verdict, "bound the cache that is %s (maxsize of lru_cache): it keeps the blocks of %s alive",
		         verdict_way_text(way, (size_t)(wrapper - way->text), text), place);
	else if (container != 0)
		say_next(
			verdict,
			"bound the %s at %s (%s items%s%s), or drop what is not needed from it: it keeps the blocks of %s alive",
			way->container, verdict_way_text(way, container, text), units_count(way->items, items),
			is_grown_elsewhere ? ", grown at " : "", is_grown_elsewhere ? way->grown_at : "", place);
	else if (is_held)
		say_next(verdict, "let go of the blocks of %s: they are held by %s", place,
		         verdict_way_text(way, strlen(way->text), text));
	else
		return false;
	return true;
}

/* One caller forgets what the others do. False: there is none. */
static bool
say_forgetful(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	const struct verdict_kept *kept = &facts->top_kept;
	char place[PLACE_TEXT_BYTES];
	char through[PLACE_TEXT_BYTES];
	char count[UNITS_TEXT_BYTES];
	char all[UNITS_TEXT_BYTES];

	if (kept->count == 0 || line->largest != facts->top_live.largest)
		return false;
	say_next(verdict,
	         "look at %s: %s of %s blocks that %s allocated for it stay, and those of other callers are released",
	         verdict_frame_text(kept->through, through), units_count(kept->count, count),
	         units_count(kept->allocated_count, all), verdict_line_text(line, place));
	if (kept->released_at != NULL)
		say_next(verdict, ", most at %s", verdict_frame_text(kept->released_at, place));
	return true;
}

/* The look had too little time. */
static const char *
if_unfinished(const struct verdict_facts *facts, const struct rank_line *line)
{
	const struct holders_line *held = verdict_holders_of(facts, line);

	return held != NULL && held->way_count != 0 && strcmp(held->ways[0].kind, "unfinished") == 0
	           ? "; `kmemshim run --holders-stop 5s` gives the search more time"
	           : "";
}

static void
say_blocks_kept(const struct verdict_facts *facts, const struct rank_line *line, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	if (say_holder(facts, line, verdict) || say_forgetful(facts, line, verdict)) {
		say_next(verdict, "%s", are_lost(facts, line) ? "" : if_data_set(verdict, line));
		return;
	}
	say_next(
		verdict, "look for what keeps the blocks of %s alive: %s%s%s", verdict_line_text(line, place),
		facts->live_process->python_version == 0 ? "often a container that grows, a cache, or a release that is missing"
		: verdict_has_tensors(facts->model) ? "often a list that is appended to, a running sum of tensors, or a cache"
											: "often a list that is appended to, or a cache",
		if_unfinished(facts, line), if_data_set(verdict, line));
}

static void
say_tensors_kept(const struct rank_line *line, const char *otherwise, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	say_next(
		verdict,
		"look for what keeps the tensors of %s alive: often losses in a list or a running sum (take loss.item()), or outputs "
		"that are collected (.detach().cpu())%s",
		verdict_line_text(line, place), otherwise);
}

/* ---- the first step of a cause ---- */

#define ADVICE_TEST(name, condition)                                                   \
	static bool name(const struct verdict_facts *facts, const struct verdict *verdict) \
	{                                                                                  \
		(void)facts;                                                                   \
		(void)verdict;                                                                 \
		return condition;                                                              \
	}

ADVICE_TEST(is_time_up, facts->refused == NULL && verdict_was_time_up(&facts->model->processes[0], facts->cgroup_kills))
ADVICE_TEST(has_no_threads_left, verdict_note_of(facts->process, KMEM_NOTE_THREAD) != NULL)
ADVICE_TEST(has_no_processes_left, verdict_note_of(facts->process, KMEM_NOTE_PROCESS) != NULL)
ADVICE_TEST(has_no_files_left, verdict_note_of(facts->process, KMEM_NOTE_FILES) != NULL)
ADVICE_TEST(has_no_cuda, verdict_note_of(facts->process, KMEM_NOTE_CUDA) != NULL)
ADVICE_TEST(crashes_anywhere, verdict_crashes_anywhere(facts))
ADVICE_TEST(is_without_python, facts->process->python_version == 0)
ADVICE_TEST(is_interrupted, facts->signal == SIGINT)
ADVICE_TEST(is_stopped_by_guard, facts->signal == SIGINT && facts->process->guard.number != 0 &&
                                     facts->process->guard.action == KMEM_GUARD_INTERRUPT)
/* A session that a program opened by itself is named after its own start; a launcher's is older. */
ADVICE_TEST(was_launched,
            strtoull(facts->process->identity->session, NULL, 16) != facts->process->identity->start_realtime_ns / 1000)

struct step {
	enum verdict_cause cause;
	const char *name;
	bool (*applies)(const struct verdict_facts *facts, const struct verdict *verdict); // NULL: always
	const char *text;
};

static const struct step time_up = { VERDICT_CAUSES, "give-more-time", is_time_up,
	                                 "give it more time, or see what took it so long" };
static const struct step steps[] = {
	{ VERDICT_NOT_CLOSED, "read-where-recorded", NULL,
	  "read it with `kmemshim why` on the machine that recorded it, unless that was restarted, or record again with `kmemshim run`" },
	{ VERDICT_RESTARTED, "see-machine", NULL,
	  "see why the machine started anew: `journalctl -b -1 -e` shows the end of its log before" },
	{ VERDICT_HARDWARE, "test-hardware", NULL,
	  "test the machine's memory and devices, or run it elsewhere: the program is not at fault" },
	{ VERDICT_RUNNING, "watch-growth", NULL, "`kmemshim leaks " VERDICT_CAPTURE "` shows what grows" },
	{ VERDICT_EXEC_REPLACED, "look-at-next-program", NULL,
	  "see whether the program that it became is static or setuid: such programs cannot be recorded" },
	{ VERDICT_SHM_FULL, "enlarge-shm", NULL,
	  "give /dev/shm more room (docker run --shm-size), or share less at once: fewer workers, or a smaller prefetch" },
	{ VERDICT_TIME_UP, "give-more-time", NULL, "give it more time, or see what took it so long" },
	{ VERDICT_FILE_LIMIT, "raise-file-limit", NULL, "write less into one file, or raise the limit (ulimit -f)" },
	{ VERDICT_STACK_OVERFLOW, "end-recursion", NULL,
	  "look for a recursion without an end; if it must be so deep, raise the limit (ulimit -s, or the stack size of the thread)" },
	{ VERDICT_ABORTED, "read-error", is_without_python,
	  "read the program's last message; a debugger shows where it was" },
	{ VERDICT_ABORTED, "show-python-crash", NULL,
	  "read the program's last message; run it again with PYTHONFAULTHANDLER=1: then Python shows where it was" },
	{ VERDICT_CRASHED, "test-memory", crashes_anywhere,
	  "look at the crash itself, with a debugger; if it crashes elsewhere each time, test the machine's memory (memtest86+)" },
	{ VERDICT_CRASHED, "debug-crash", is_without_python, "look at the crash itself, with a debugger" },
	{ VERDICT_CRASHED, "show-python-crash", NULL,
	  "look at the crash itself: run it again with PYTHONFAULTHANDLER=1, then Python shows where it was" },
	{ VERDICT_SIGNAL, "see-guard", is_stopped_by_guard, "see below what it held then" },
	{ VERDICT_SIGNAL, "find-interrupter", is_interrupted,
	  "if it was not Ctrl-C, find out who sent the signal: a time limit, a scheduler, a person" },
	{ VERDICT_SIGNAL, "find-sender", NULL, "find out who sent the signal: a time limit, a scheduler, a person" },
	{ VERDICT_FAILED, "use-fewer-threads", has_no_threads_left,
	  "start fewer threads, or raise the limit (ulimit -u, pids.max of the container)" },
	{ VERDICT_FAILED, "use-fewer-processes", has_no_processes_left,
	  "start fewer processes or threads, or raise the limit (ulimit -u, pids.max of the container)" },
	{ VERDICT_FAILED, "close-files", has_no_files_left,
	  "close files that are not needed any more, or raise the limit (ulimit -n)" },
	{ VERDICT_FAILED, "match-driver", has_no_cuda,
	  "read the program's own error message; nvidia-smi shows the driver, and for which CUDA it is" },
	{ VERDICT_FAILED, "read-error", NULL, "read the program's own error message" },
	{ VERDICT_GONE, "see-system-log", was_launched,
	  "see what ended it: the kernel's log of that time (`journalctl -k`, or `dmesg -T`), and the log of the scheduler or "
	  "supervisor that started it" },
	{ VERDICT_GONE, "record-with-run", NULL,
	  "see what ended it: the kernel's log of that time (`journalctl -k`, or `dmesg -T`), and the log of the scheduler or "
	  "supervisor that started it; record it with `kmemshim run -- " VERDICT_COMMAND "`: then how it ended is known" },
};

/* NULL: the cause has none, what held the memory is the first thing to look at. */
static const struct step *
step_of(const struct verdict_facts *facts, const struct verdict *verdict)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i].cause == verdict->cause && (steps[i].applies == NULL || steps[i].applies(facts, verdict)))
			return is_time_up(facts, verdict) ? &time_up : &steps[i];
	}
	return NULL;
}

/* ---- devices ---- */

static const char *
device_name(const struct verdict_facts *facts)
{
	return facts->model->domains[device_parts_device(facts->model, facts->refused->domain)].name;
}

static bool
is_taken_in_advance(const struct verdict_facts *facts, const char *taker)
{
	return verdict_is_device_request(facts) && verdict_is_preallocated(facts) &&
	       (facts->device.tensors == NULL || !verdict_is_device_growth_the_story(facts)) &&
	       (taker == NULL || strcmp(facts->device.part_count != 0 ? facts->device.parts[0].name : "", taker) == 0);
}

ADVICE_TEST(is_exception_kept, facts->kept_bytes != 0)
ADVICE_TEST(is_used_by_others,
            verdict_is_device_request(facts) && (verdict_is_held_by_others(facts) ||
                                                 (facts->device.device == NULL && !verdict_is_kept_by_pools(facts))))
ADVICE_TEST(is_kept_by_pools, verdict_is_device_request(facts) && verdict_is_kept_by_pools(facts) &&
                                  !verdict_is_device_growth_the_story(facts))
ADVICE_TEST(is_taken_by_jax, is_taken_in_advance(facts, "JAX"))
ADVICE_TEST(is_taken_by_tensorflow, is_taken_in_advance(facts, "TensorFlow"))
ADVICE_TEST(is_taken_by_another, is_taken_in_advance(facts, NULL))
ADVICE_TEST(is_in_pieces, verdict_is_device_request(facts) && verdict_is_device_fragmented(facts) &&
                              !verdict_is_device_growth_the_story(facts))
ADVICE_TEST(are_tensors_growing,
            verdict_is_device_request(facts) && verdict_does_device_grow(facts) && facts->device.tensors != NULL)
ADVICE_TEST(are_device_blocks_growing, verdict_is_device_request(facts) && verdict_does_device_grow(facts))
ADVICE_TEST(is_device_full, verdict_is_device_request(facts))
ADVICE_TEST(is_about_device, verdict->cause == VERDICT_DEVICE_MEMORY || facts->end == VERDICT_END_RUNNING)

static void
say_other_users(const char *device, struct verdict *verdict)
{
	bool is_hip = strncmp(device, "hip", 3) == 0;

	say_next(verdict, "see with %s what else uses %s, or take another device (%s)", is_hip ? "rocm-smi" : "nvidia-smi",
	         device, is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
}

static void
say_others(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_other_users(device_name(facts), verdict);
}

static void
say_expandable(const struct verdict_facts *facts, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	say_next(
		verdict,
		"run with PYTORCH_ALLOC_CONF=expandable_segments:True (before PyTorch 2.9: PYTORCH_CUDA_ALLOC_CONF): then the %s that "
		"PyTorch had free in pieces can be used",
		units_bytes(facts->device.cache_bytes, bytes));
}

static void
say_device_tensors(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_tensors_kept(&facts->top_device, "", verdict);
}

static const struct advice device_rows[] = {
	{ "release-exception", is_exception_kept,
	  .text = "let go of the exception before going on: leave the except block, keep no reference to it, in a notebook `import sys, gc; "
	          "sys.last_value = sys.last_traceback = sys.last_exc = None; gc.collect()`" },
	{ "see-other-users", is_used_by_others, .say = say_others },
	{ "trim-driver-pools", is_kept_by_pools,
	  .text = "give back what the driver's pools keep before such a request: cudaMemPoolTrimTo(pool, 0), or a smaller "
	          "cudaMemPoolAttrReleaseThreshold (RMM: release_threshold)" },
	{ "no-jax-preallocation", is_taken_by_jax,
	  .text = "JAX takes most of a device when it starts: XLA_PYTHON_CLIENT_PREALLOCATE=false shows what is really used, "
	          "XLA_PYTHON_CLIENT_MEM_FRACTION=.50 leaves room for others" },
	{ "no-tensorflow-preallocation", is_taken_by_tensorflow,
	  .text = "TensorFlow takes most of a device when it starts: TF_FORCE_GPU_ALLOW_GROWTH=true shows what is really used" },
	{ "preallocate-less", is_taken_by_another,
	  .text = "take less in advance at {device line}: a framework has a switch for that (vLLM: --gpu-memory-utilization; a memory pool: its initial size)" },
	{ "expandable-segments", is_in_pieces, .say = say_expandable },
	{ "release-tensors", are_tensors_growing, .say = say_device_tensors },
	{ "release-device-blocks", are_device_blocks_growing,
	  .text = "look for what keeps the blocks of {device line} alive" },
	{ "see-device-peak", is_device_full,
	  .text = "`kmemshim peak " VERDICT_CAPTURE " --domain {device}` shows which lines held it" },
	{ NULL, NULL, .say = NULL },
};

/* ---- pinned memory ---- */

static bool
is_pinned_much(const struct verdict_facts *facts, const struct verdict *verdict)
{
	bool is_refused = facts->refused != NULL && facts->model->domains[facts->refused->domain].id.kind == DOMAIN_PINNED;

	return verdict->end != VERDICT_END_OK && verdict->end != VERDICT_END_RUNNING && facts->top_pinned.site_count != 0 &&
	       (is_refused || facts->pinned_bytes > facts->live_bytes);
}

ADVICE_TEST(is_pinned_rounded, is_pinned_much(facts, verdict) && facts->rounded_bytes > facts->pinned_bytes / 2)

/* ---- the container ---- */

static bool
is_container_full_of(const struct verdict_facts *facts, uint64_t bytes)
{
	return facts->refused == NULL && verdict_holds_a_third(facts, bytes) && bytes > facts->top_live.live_bytes &&
	       bytes > facts->memory.freed.freed_bytes;
}

ADVICE_TEST(is_full_of_files, facts->memory.memory_files_bytes > facts->memory.others_bytes &&
                                  is_container_full_of(facts, facts->memory.memory_files_bytes))
ADVICE_TEST(is_full_of_others,
            facts->memory.others_bytes != 0 && is_container_full_of(facts, facts->memory.others_bytes))

/* ---- freed memory ---- */

ADVICE_TEST(is_freed_first, facts->refused == NULL && verdict_is_freed_first(facts))
ADVICE_TEST(is_freed_first_running,
            is_freed_first(facts, verdict) && step_of(facts, verdict) != NULL && facts->end == VERDICT_END_RUNNING)
ADVICE_TEST(is_freed_after_step,
            is_freed_first(facts, verdict) && step_of(facts, verdict) != NULL && facts->end == VERDICT_END_SIGNAL)

static void
say_freed(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_freed *freed = &facts->memory.freed;
	bool is_empty_worth = freed->empty_bytes != 0 && freed->empty_bytes >= freed->freed_bytes / 4;
	bool is_sparse_worth = verdict_sparse_of(freed) >= freed->freed_bytes / 4 && verdict_sparse_of(freed) != 0;
	const char *trim = freed->process->python_version != 0 ? "ctypes.CDLL(None).malloc_trim(0)" : "malloc_trim(0)";
	char place[PLACE_TEXT_BYTES];

	if (freed->empty_bytes == 0 && freed->sparse_bytes == 0) {
		say_next(
			verdict,
			"call %s after much was freed; where that does not help, few blocks keep whole pages: allocate those that stay "
			"apart from those that are freed",
			trim);
		return;
	}
	if (is_empty_worth)
		say_next(verdict, "call %s after much was freed%s", trim, is_sparse_worth ? "; and " : "");
	if (is_sparse_worth) {
		say_next(verdict, "allocate the blocks that stay");
		if (freed->pinning[0].site_count != 0)
			say_next(verdict, " (most of them at %s)", verdict_line_text(&freed->pinning[0], place));
		say_next(verdict, " before those that are freed, or from a pool of their own");
	}
	if (freed->process->thread_count > MANY_THREADS)
		say_next(verdict, "; with %u threads also set MALLOC_ARENA_MAX=2", freed->process->thread_count);
}

/* ---- the first step, and what may come before or after it ---- */

ADVICE_TEST(is_parents_knowledge, verdict->cause == VERDICT_GONE && !is_time_up(facts, verdict) &&
                                      !verdict_is_accumulating(facts) && facts->is_descendant)

static void
say_ask_parent(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_next(verdict,
	         facts->model->process_count > 1
	             ? "see what its parent (pid %" PRIu32 ") says: it alone knows how its child ended"
	             : "look at the report of its parent (pid %" PRIu32 "), or of the whole folder of captures",
	         facts->process->identity->parent_pid);
}

ADVICE_TEST(is_growth_after_step,
            verdict_is_accumulating(facts) && facts->refused == NULL && step_of(facts, verdict) != NULL &&
                (facts->end == VERDICT_END_SIGNAL || facts->end == VERDICT_END_FAILED || is_time_up(facts, verdict)) &&
                !verdict_is_arena(facts, &facts->top_live) && verdict_is_far_from_limits(facts))

static void
say_growth_after_step(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	if (say_holder(facts, &facts->top_live, verdict)) {
		say_next(verdict, "%s", if_data_set(verdict, &facts->top_live));
		return;
	}
	say_next(verdict, "look for what keeps the blocks of %s alive%s", verdict_line_text(&facts->top_live, place),
	         if_data_set(verdict, &facts->top_live)[0] != '\0' ? ", unless it is a data set" : "");
}

/* Of a program that runs; NULL: nothing is known to grow that a look can follow. */
static const struct rank_line *
growing_line(const struct verdict_facts *facts)
{
	const struct rank_line *top = &facts->top_live;
	const struct rank_line *most = &facts->most_leaking;
	bool is_top_known = !verdict_is_arena(facts, top);

	if (verdict_is_accumulating(facts))
		return is_top_known ? top : NULL;
	if (facts->leaking_bytes >= WORTH_LEAKING_BYTES && !verdict_is_arena(facts, most))
		return most;
	return is_top_known && top->leak == MODEL_LEAK_LEAK && top->leaking_bytes >= WORTH_LEAKING_BYTES ? top : NULL;
}

ADVICE_TEST(is_growing_running,
            verdict->cause == VERDICT_RUNNING && facts->refused == NULL && growing_line(facts) != NULL)

/* There is still time, and a program that runs can be looked into. */
static void
say_growth_running(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *line = growing_line(facts);
	char place[PLACE_TEXT_BYTES];

	if (facts->live_process->is_hidden || verdict_holders_of(facts, line) != NULL) {
		say_blocks_kept(facts, line, verdict);
		return;
	}
	say_next(verdict, "look for what keeps the blocks of %s alive: `kmemshim holders %" PRIu32 "` shows it%s",
	         verdict_line_text(line, place), facts->live_process->identity->pid, if_data_set(verdict, line));
}

/* Where memory was the reason, as far as is known, it comes before who sent a signal. */
static bool
is_step_alone(const struct verdict_facts *facts, const struct verdict *verdict)
{
	bool is_memory_first = (verdict_is_accumulating(facts) || verdict_is_freed_first(facts)) &&
	                       (facts->end == VERDICT_END_SIGNAL || facts->end == VERDICT_END_GONE) &&
	                       facts->refused == NULL;

	return step_of(facts, verdict) != NULL && !is_memory_first;
}

/* ---- a request that was refused ---- */

/* What is in the way of such a request, and how there can be more of it. */
static const char *
raise_words(const struct verdict_facts *facts)
{
	const struct kmem_identity *identity = facts->process->identity;

	if (facts->refused->is_by_guard)
		return "raise its guard (--guard)";
	for (size_t i = 0; i < KMEM_LIMITS_MAX; i++) {
		if (identity->limits[i].kind == KMEM_LIMIT_ADDRESS_SPACE && identity->limits[i].bytes != UINT64_MAX)
			return "raise the limit (ulimit -v)";
	}
	if (facts->refused->space_limit_bytes != 0)
		return "raise the limit (RLIMIT_AS, which the program set)";
	return identity->overcommit_mode == 2 ? "let the machine promise more: add swap, or raise vm.overcommit_ratio"
	                                      : "raise the limit";
}

/* " at train.py:41 epoch" */
static void
say_request_place(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_site *site = facts->refused->site;
	const struct rank_line line = { .where = site != NULL ? site->where : NULL, .largest = site };
	char place[PLACE_TEXT_BYTES];

	if (line.where != NULL)
		say_next(verdict, " at %s", verdict_line_text(&line, place));
}

ADVICE_TEST(is_refused, facts->refused != NULL)
ADVICE_TEST(is_perhaps_caught, verdict->cause == VERDICT_REQUEST_REFUSED && verdict_was_perhaps_caught(facts))
ADVICE_TEST(is_perhaps_caught_beyond_machine, is_perhaps_caught(facts, verdict) && verdict_is_beyond_machine(facts))
ADVICE_TEST(is_beyond_machine, facts->refused != NULL && verdict_is_beyond_machine(facts))
ADVICE_TEST(is_of_recording, facts->refused != NULL && verdict_is_of_recording(facts))
ADVICE_TEST(is_request_alone, facts->refused != NULL && verdict_is_request_alone(facts))
ADVICE_TEST(is_request_small,
            facts->refused != NULL && facts->refused->bytes < facts->peak_bytes / 8 &&
                !(verdict_is_accumulating(facts) &&
                  (verdict_is_arena(facts, &facts->top_live) || !rank_may_be_built_once(facts->top_live.telling))))

static void
say_start_under_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_next(verdict, "start it under that limit (`ulimit -v %" PRIu64 "`): recording then reserves less of it",
	         facts->refused->space_limit_bytes / 1024);
}

/* A look has found what holds it: to act on that is more than to hold less. */
ADVICE_TEST(is_request_held, is_request_small(facts, verdict) && is_holder_known(facts, &facts->top_live))

static void
say_holder_or_raise(const struct verdict_facts *facts, struct verdict *verdict)
{
	(void)say_holder(facts, &facts->top_live, verdict);
	say_next(verdict, "; or %s", raise_words(facts));
}

static void
say_hold_less_before(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	say_next(verdict, "hold less before that (most at %s), or %s",
	         verdict_line_text(facts->top_peak.site_count != 0 ? &facts->top_peak : &facts->top_live, place),
	         raise_words(facts));
}

/* ---- what was not recorded ---- */

/* What grows on a device comes before what may be a data set of a program that ended well. */
static bool
is_first_line_growing(const struct verdict_facts *facts, const struct verdict *verdict)
{
	return facts->top_live.leak == MODEL_LEAK_LEAK &&
	       !(verdict->end == VERDICT_END_OK && rank_may_be_built_once(facts->top_live.telling) &&
	         facts->growing_device.site_count != 0);
}

ADVICE_TEST(is_damage_the_story, facts->refused == NULL && facts->model->needs_salvage &&
                                     (facts->model->unlisted_bytes > facts->live_bytes / 2 ||
                                      (facts->top_live.site_count != 0 && facts->top_live.where == NULL)))
ADVICE_TEST(is_elsewhere_the_story,
            facts->refused == NULL && rank_elsewhere_worth_bytes(facts->model) != 0 &&
                (facts->top_live.site_count == 0 || rank_is_elsewhere(facts->model, facts->top_live.largest) ||
                 (verdict->end == VERDICT_END_OK && !is_first_line_growing(facts, verdict))))
ADVICE_TEST(is_unrecorded, verdict->end == VERDICT_END_OK && model_unrecorded_bytes(facts->model) != 0)
ADVICE_TEST(is_damaged, verdict->end == VERDICT_END_OK && facts->model->capture_damage_count != 0)

static void
say_more_stacks(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_next(verdict, "record it again with more room for stacks (%s): then the lines that hold the rest are named",
	         model_could_not_grow(facts->model) ? "the disk that holds captures, or ulimit -v"
	                                            : "KMEMSHIM_SITES_MAX, KMEMSHIM_CAPTURE_MAX");
}

/* ---- children ---- */

static bool
is_childs_peak(const struct verdict_facts *facts)
{
	return facts->peak_process != facts->process && facts->top_peak.site_count != 0;
}

ADVICE_TEST(is_copied, facts->refused == NULL && facts->copies.bytes > facts->top_live.live_bytes / 2)
ADVICE_TEST(is_copied_too, facts->refused == NULL && facts->copies.child_count != 0 && facts->top_live.site_count != 0)
ADVICE_TEST(is_killed_child_in_arenas, verdict->cause == VERDICT_CHILD_KILLED && is_childs_peak(facts) &&
                                           verdict_is_arena(facts, &facts->top_peak) &&
                                           !verdict_is_rest_of_arenas(&facts->top_peak))
ADVICE_TEST(is_child_killed, verdict->cause == VERDICT_CHILD_KILLED &&
                                 (verdict_is_arena(facts, &facts->top_live) || !verdict_is_accumulating(facts)))
ADVICE_TEST(is_child_lost, verdict->end == VERDICT_END_OK && verdict->lost_child != NULL)

static void
say_share_reads(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_site *built = facts->copies.built_count != 0 ? facts->copies.built[0].site : NULL;
	const struct rank_line line = { .site_count = 1, .domain = built != NULL ? built->domain : 0, .largest = built };

	say_next(verdict, "%s",
	         facts->copies.child->python_version != 0
	             ? "put what the workers read into one NumPy array or tensor, or into shared memory, instead of many "
	               "Python objects; or let each worker load its own part"
	             : "write to less of it after the fork, or fork before it is built");
	if (built != NULL && verdict_is_arena(facts, &line) && !verdict_is_rest_of_arenas(&line))
		say_next(verdict, "; `kmemshim run --python-objects -- " VERDICT_COMMAND "` names the lines that built them");
}

/* What they copied is worth a sentence, and not the most of it. */
static void
say_share_or_hold_less(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	say_next(verdict, "hold less at once at %s, or run fewer workers; or ", verdict_line_text(&facts->top_live, place));
	say_share_reads(facts, verdict);
}

static void
say_children_hold_less(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	say_next(verdict, "hold less in each child process");
	if (is_childs_peak(facts))
		say_next(verdict, " (most at %s)", verdict_line_text(&facts->top_peak, place));
	say_next(verdict, ", run fewer of them at once, or give the program more memory");
}

/* ---- who held the memory ---- */

static bool
is_next_line_growing(const struct verdict_facts *facts, const struct verdict *verdict)
{
	return facts->refused == NULL && verdict_does_next_grow(facts) &&
	       !(verdict->end == VERDICT_END_OK && rank_may_be_built_once(facts->next_live.telling));
}

static bool
is_little_in_arenas(const struct verdict_facts *facts, const struct verdict *verdict)
{
	return verdict_is_arena(facts, &facts->top_live) && !verdict_is_rest_of_arenas(&facts->top_live) &&
	       facts->top_live.leak != MODEL_LEAK_LEAK && facts->top_live.live_bytes < facts->live_bytes / 2 &&
	       verdict->end != VERDICT_END_OK && facts->refused == NULL;
}

ADVICE_TEST(is_free_in_arenas,
            verdict_is_rest_of_arenas(&facts->top_live) && facts->refused == NULL && verdict->end != VERDICT_END_OK)
ADVICE_TEST(is_in_arenas, verdict_is_arena(facts, &facts->top_live) && !verdict_is_rest_of_arenas(&facts->top_live) &&
                              (facts->refused == NULL || verdict_is_accumulating(facts)) &&
                              (is_first_line_growing(facts, verdict) || verdict->end != VERDICT_END_OK))
ADVICE_TEST(is_growing,
            is_first_line_growing(facts, verdict) && (facts->refused == NULL || verdict_is_accumulating(facts)))
ADVICE_TEST(is_device_growing, verdict->end == VERDICT_END_OK && facts->growing_device.site_count != 0)
ADVICE_TEST(is_tight,
            verdict->end == VERDICT_END_OK && verdict_fullest(facts) != NULL && facts->top_peak.site_count != 0)
ADVICE_TEST(is_well_but_freed,
            verdict->end == VERDICT_END_OK && facts->refused == NULL && facts->memory.freed.freed_bytes != 0)
ADVICE_TEST(is_well_and_empty, verdict->end == VERDICT_END_OK && facts->peak_bytes == 0)
ADVICE_TEST(is_well_but_leaking, verdict->end == VERDICT_END_OK && facts->leaking_bytes >= WORTH_LEAKING_BYTES)
ADVICE_TEST(is_well_but_swept, verdict->end == VERDICT_END_OK && facts->refused == NULL &&
                                   facts->swept.swept_bytes >= WORTH_LEAKING_BYTES &&
                                   facts->swept.swept_bytes >= facts->peak_bytes / SWEPT_PART)

/* Blocks of the usual size of the line that it held at the peak. */
static uint64_t
blocks_at_peak(const struct rank_line *line)
{
	uint64_t block_bytes = line->allocated_count != 0 ? line->allocated_bytes / line->allocated_count : 0;

	return block_bytes != 0 ? line->peak_bytes / block_bytes : 0;
}

/* Nobody can tell from outside whether all of it was needed at once. */
static bool
is_well_but_collected(const struct verdict_facts *facts, const struct verdict *verdict)
{
	const struct rank_line *line = &facts->top_peak;

	return verdict->end == VERDICT_END_OK && facts->refused == NULL && line->site_count != 0 && line->where != NULL &&
	       !line->is_import && !rank_is_below_import(line->largest) && facts->top_peak_processes == 0 &&
	       !verdict_is_arena(facts, line) && line->peak_bytes >= WORTH_LEAKING_BYTES &&
	       line->peak_bytes >= facts->peak_bytes / 100 * COLLECTED_PERCENT &&
	       facts->peak_bytes >= facts->peak_whole_bytes / 2 && blocks_at_peak(line) >= COLLECTED_BLOCKS;
}

ADVICE_TEST(is_well, verdict->end == VERDICT_END_OK)
ADVICE_TEST(are_imports_most, facts->import_bytes > verdict_told_live_bytes(facts) / 2)
ADVICE_TEST(is_line_known, facts->top_live.site_count != 0)
/* Too few generations to judge, but it kept blocks in round after round. */
ADVICE_TEST(is_perhaps_growing, facts->top_live.site_count != 0 && rank_may_accumulate(facts->top_live.telling) &&
                                    facts->top_live.telling->steps >= ROUNDS_TELLING)
ADVICE_TEST(is_anything, true)

static void
say_kept_or_needed(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_blocks_kept(facts, &facts->top_live, verdict);
	say_next(verdict, "; if all of it is needed at once, hold less (smaller pieces, a smaller type)");
}

static void
say_python_objects(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	if (facts->beside_arenas.site_count != 0)
		say_next(verdict, "look for what keeps the blocks of %s alive; or ",
		         verdict_line_text(&facts->beside_arenas, place));
	say_next(verdict,
	         "record small Python objects too: `kmemshim run --python-objects -- " VERDICT_COMMAND
	         "`; then the lines that hold them are named%s",
	         if_data_set(verdict, &facts->top_live));
	if (facts->refused != NULL)
		say_next(verdict, "; or %s", raise_words(facts));
}

/* More of it would have let the program go on. */
static bool
was_memory_short(const struct verdict *verdict)
{
	return verdict->cause == VERDICT_CONTAINER_LIMIT || verdict->cause == VERDICT_MACHINE_MEMORY ||
	       verdict->cause == VERDICT_LOW_MEMORY_DAEMON;
}

static void
say_growth_kept(const struct verdict_facts *facts, const struct rank_line *growing, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	if (facts->model->domains[growing->domain].id.kind == DOMAIN_TENSORS)
		say_tensors_kept(growing, if_data_set(verdict, growing), verdict);
	else
		say_blocks_kept(facts, growing, verdict);
	if (facts->pace_bytes != 0 && was_memory_short(verdict) && facts->refused == NULL) {
		add_name("more-memory", verdict);
		say_next(verdict, "; to finish this run first, give it more memory: it took %s more each minute",
		         units_bytes(facts->pace_bytes, bytes));
	}
}

static void
say_little_room(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];
	char word[VERDICT_WORD_BYTES];

	say_next(verdict, "little room was left: hold less at once (most was %s %s), or give the program more memory",
	         verdict_where_word(facts, &facts->top_peak, word), verdict_line_text(&facts->top_peak, place));
}

static void
say_nothing_yet(const struct verdict_facts *facts, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say_next(verdict,
	         "no action is needed yet; `kmemshim leaks " VERDICT_CAPTURE
	         "` shows what looks like a leak (%s in all, most at %s)",
	         units_bytes(facts->leaking_bytes, bytes), verdict_line_text(&facts->most_leaking, place));
}

static void
say_swept(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	say_next(verdict,
	         "look at %s: what it held grew until the peak, then was released as the program ended; release "
	         "earlier what it no longer needs; if it collects results for the end, no action is needed",
	         verdict_line_text(&facts->swept, place));
}

static void
say_collected(const struct verdict_facts *facts, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];
	char bytes[UNITS_TEXT_BYTES];

	say_next(verdict, "if a peak of %s is too much, look at %s: it held nearly all of that at once",
	         units_bytes(facts->peak_bytes, bytes), verdict_line_text(&facts->top_peak, place));
}

static const struct advice rows[] = {
	{ "device", is_about_device, .rows = device_rows },
	{ "pin-exact-sizes", is_pinned_rounded,
	  .text = "pin pieces just below a power of two at {pinned line}, or run with PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:1 (PyTorch of 2026 and later)" },
	{ "pin-less", is_pinned_much,
	  .text = "pin less of the host's memory at {pinned line}: fewer workers or smaller batches with pin_memory, or none" },
	{ "ask-parent", is_parents_knowledge, .say = say_ask_parent },
	{ "return-freed-memory", is_freed_first_running, .say = say_freed },
	{ "return-freed-memory", is_freed_after_step, .say = say_freed, .is_after_step = true },
	{ "release-blocks", is_growth_after_step, .say = say_growth_after_step, .is_after_step = true },
	{ "release-blocks", is_growing_running, .say = say_growth_running },
	{ NULL, is_step_alone, .say = NULL, .is_after_step = true },
	{ "return-freed-memory", is_freed_first, .say = say_freed },
	{ "read-error", is_perhaps_caught_beyond_machine,
	  .text = "read the program's own error message; if it says that memory ran out, ask for less at once{ at request}" },
	{ "read-error", is_perhaps_caught,
	  .text = "read the program's own error message; if it says that memory ran out, ask for less at once{ at request}, or {raise}" },
	{ "ask-for-less", is_beyond_machine, .text = "ask for less at once{ at request} (smaller pieces, a smaller type)" },
	{ "start-under-limit", is_of_recording, .say = say_start_under_limit },
	{ "ask-for-less-or-raise-limit", is_request_alone, .text = "ask for less at once{ at request}, or {raise}" },
	{ "record-again", is_damage_the_story,
	  .text = "record it again, or copy the capture again: the damage took the lines of what held most" },
	{ "more-room-for-stacks", is_elsewhere_the_story, .say = say_more_stacks },
	{ "remove-files-in-memory", is_full_of_files,
	  .text = "remove files that are not needed any more from folders that lie in memory (/dev/shm, a /tmp in memory), or write them to a disk: "
	          "`df -h -t tmpfs` shows how much each such folder holds" },
	{ "share-what-children-read", is_copied, .say = say_share_reads },
	{ "record-python-objects", is_killed_child_in_arenas,
	  .text = "record small Python objects too: `kmemshim run --python-objects -- " VERDICT_COMMAND
	          "` names the lines that hold them; or run fewer child processes at once, or "
	          "give the program more memory" },
	{ "hold-less-in-children", is_child_killed, .say = say_children_hold_less },
	{ "release-blocks", is_request_held, .say = say_holder_or_raise },
	{ "hold-less-before", is_request_small, .say = say_hold_less_before },
	{ "see-container", is_full_of_others,
	  .text = "see what else runs in this container: `ps -eo pid,rss,args --sort -rss` inside it shows what each process has in memory" },
	{ "release-next-blocks", is_next_line_growing, .kept_line = offsetof(struct verdict_facts, next_live) },
	{ "import-less", is_little_in_arenas,
	  .text = "give the program more memory, or import less: no line of it holds much" },
	{ "reuse-arenas", is_free_in_arenas,
	  .text = "make many small objects in a child process that ends, or hold fewer of them at once: Python gives an arena "
	          "back when the last object in it is released" },
	{ "record-python-objects", is_in_arenas, .say = say_python_objects },
	{ "release-blocks", is_growing, .kept_line = offsetof(struct verdict_facts, top_live) },
	{ "ask-for-less-or-raise-limit", is_refused, .text = "ask for less at once{ at request}, or {raise}" },
	{ "more-room-for-recorder", is_unrecorded,
	  .text = "record it again with more room for the recorder (ulimit -v, or the disk that holds captures)" },
	{ "record-whole", is_damaged,
	  .text = "record it again where whole figures are needed: the notes of "
	          "`kmemshim report " VERDICT_CAPTURE "` name the damage" },
	{ "release-device-growth", is_device_growing, .kept_line = offsetof(struct verdict_facts, growing_device) },
	{ "see-child", is_child_lost,
	  .text = "`kmemshim report " VERDICT_CHILD
	          "` shows what the child process held before it ended; if a pool ended it as "
	          "it closed, no action is needed" },
	{ "little-room", is_tight, .say = say_little_room },
	{ "return-freed-memory", is_well_but_freed, .say = say_freed },
	{ "nothing", is_well_and_empty, .text = "no action is needed", .is_nothing = true },
	{ "release-before-end", is_well_but_swept, .say = say_swept },
	{ "nothing-yet", is_well_but_leaking, .say = say_nothing_yet, .is_nothing = true },
	{ "hold-less-at-peak", is_well_but_collected, .say = say_collected, .is_nothing = true },
	{ "nothing", is_well,
	  .text = "no action is needed; `kmemshim peak " VERDICT_CAPTURE "` shows which lines made the peak",
	  .is_nothing = true },
	{ "import-less", are_imports_most,
	  .text = "give the program more memory, or import less: most of what was live was left by imports" },
	{ "release-blocks-or-hold-less", is_perhaps_growing, .say = say_kept_or_needed },
	{ "share-what-children-read", is_copied_too, .say = say_share_or_hold_less },
	{ "hold-less", is_line_known,
	  .text = "hold less at once at {line} (smaller pieces, a smaller type, release earlier), or give the program more memory" },
	{ "see-peak", is_anything, .text = "`kmemshim peak " VERDICT_CAPTURE "` shows which lines held the memory" },
	{ NULL, NULL, .say = NULL },
};

/* ---- one domain alone ---- */

static bool
is_asked_arena(const struct verdict_facts *facts)
{
	const struct model_domain *largest = facts->asked.largest;

	return largest->id.kind == DOMAIN_PYTHON_ARENA && facts->model->sample_bytes == 0 && // "python" is wanted, too
	       verdict_left_by_imports(facts, largest, false) <= largest->live_bytes / 2;
}

ADVICE_TEST(is_asked_refused,
            facts->refused != NULL &&
                rank_domain_matches(facts->model->domains[facts->refused->domain].name, facts->asked.name))
ADVICE_TEST(is_asked_device_empty,
            facts->asked.largest->peak_bytes == 0 && facts->asked.largest->id.kind == DOMAIN_DEVICE)
ADVICE_TEST(is_asked_empty, facts->asked.largest->peak_bytes == 0)
ADVICE_TEST(is_asked_steady, facts->asked.growing.site_count == 0 && !is_asked_arena(facts))
ADVICE_TEST(is_asked_in_arenas, facts->asked.growing.site_count == 0 ||
                                    (verdict_is_arena(facts, &facts->asked.growing) && facts->model->sample_bytes == 0))

static void
say_asked_others(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_other_users(facts->asked.largest->name, verdict);
}

static void
say_asked_objects(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_next(verdict,
	         "record small Python objects too: `kmemshim run --python-objects -- " VERDICT_COMMAND
	         "`; then the lines that hold them are named%s",
	         facts->asked.growing.site_count != 0 ? if_data_set(verdict, &facts->asked.growing) : "");
}

static const struct advice domain_rows[] = {
	{ "device", is_asked_refused, .rows = device_rows },
	{ "see-other-users", is_asked_device_empty, .say = say_asked_others },
	{ "ask-about-all", is_asked_empty, .text = "`kmemshim why " VERDICT_CAPTURE "` is about the whole program" },
	{ "see-peak", is_asked_steady,
	  .text = "`kmemshim peak " VERDICT_CAPTURE " --domain {domain}` shows which lines held most of it" },
	{ "record-python-objects", is_asked_in_arenas, .say = say_asked_objects },
	{ "release-blocks", is_anything, .kept_line = offsetof(struct verdict_facts, asked.growing) },
	{ NULL, NULL, .say = NULL },
};

/* ---- all of it ---- */

static const struct advice *
first_of(const struct advice *table, const struct verdict_facts *facts, const struct verdict *verdict)
{
	for (; table->applies != NULL; table++) {
		const struct advice *found = table;

		if (!table->applies(facts, verdict))
			continue;
		if (table->rows != NULL)
			found = first_of(table->rows, facts, verdict);
		if (found != NULL)
			return found;
	}
	return NULL;
}

/* What a text may name in braces. */
static const struct {
	const char *name;
	size_t line_offset; // of a struct rank_line in the facts
} places[] = {
	{ "{line}", offsetof(struct verdict_facts, top_live) },
	{ "{device line}", offsetof(struct verdict_facts, top_device) },
	{ "{pinned line}", offsetof(struct verdict_facts, top_pinned) },
};

static const struct rank_line *
line_at(const struct verdict_facts *facts, size_t offset)
{
	return (const struct rank_line *)(const void *)((const char *)facts + offset);
}

/* Appends the text, with the facts for {line}, {device line}, {pinned line}, {device}, {domain}, {raise} and { at request}. */
static void
say_advice(const struct verdict_facts *facts, const char *text, struct verdict *verdict)
{
	char place[PLACE_TEXT_BYTES];

	for (;;) {
		size_t plain = strcspn(text, "{");

		say_next(verdict, "%.*s", (int)plain, text);
		text += plain;
		if (*text == '\0')
			return;
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			if (text_starts(text, places[i].name))
				say_next(verdict, "%s", verdict_line_text(line_at(facts, places[i].line_offset), place));
		}
		if (strncmp(text, "{device}", 8) == 0)
			say_next(verdict, "%s", device_name(facts));
		else if (strncmp(text, "{domain}", 8) == 0)
			say_next(verdict, "%s", facts->asked.name);
		else if (strncmp(text, "{raise}", 7) == 0)
			say_next(verdict, "%s", raise_words(facts));
		else if (strncmp(text, "{ at request}", 13) == 0)
			say_request_place(facts, verdict);
		text += strcspn(text, "}") + 1;
	}
}

static void
say_row(const struct advice *row, const struct verdict_facts *facts, struct verdict *verdict)
{
	if (row->is_after_step) {
		const struct step *step = step_of(facts, verdict);

		add_name(step->name, verdict);
		say_next(verdict, "%s%s", step->text, row->name != NULL ? "; then " : "");
	}
	if (row->name == NULL)
		return;
	add_name(row->name, verdict);
	if (row->say != NULL)
		row->say(facts, verdict);
	else if (row->kept_line != 0)
		say_growth_kept(facts, line_at(facts, row->kept_line), verdict);
	else
		say_advice(facts, row->text, verdict);
}

/* A library with an allocator of its own, or a language whose heap it is, knows better who holds what. begin: of this row's text. */
static void
advise_library(const struct verdict_facts *facts, size_t begin, size_t names_begin, struct verdict *verdict)
{
	const struct model_site *site = facts->top_live.site_count != 0 ? facts->top_live.largest : NULL;
	const struct model_library_switch *one = site != NULL && site->library != NULL ? model_library_switch(site) : NULL;
	const struct model_runtime *runtime = site != NULL ? model_runtime_of(facts->model, site) : NULL;
	char place[PLACE_TEXT_BYTES];

	if (one != NULL && !facts->has_system_allocators) {
		add_name("system-allocators", verdict);
		say_next(verdict, "; with `kmemshim run --system-allocators -- " VERDICT_COMMAND "` (%s) %s", one->setting,
		         one->effect);
	}
	if (runtime == NULL || strstr(verdict->next + begin, verdict_line_text(&facts->top_live, place)) == NULL)
		return;
	// its own code: who asked for the objects is not known
	if (site->where != NULL && site->where->kind == MODEL_FRAME_NATIVE) {
		verdict->next[begin] = '\0';
		verdict->advice_count = names_begin;
		say_next(verdict, "%s", runtime->advice);
	} else {
		say_next(verdict, "; or %s", runtime->advice);
	}
	add_name("ask-runtime", verdict);
}

/* The value that the last line of a cell gave is in Out[], unless it was None: nobody looks for it there. begin: of this row's text. */
static void
advise_out(const struct verdict_facts *facts, size_t begin, struct verdict *verdict)
{
	const struct model_site *site = facts->top_live.site_count != 0 ? facts->top_live.largest : NULL;
	char place[PLACE_TEXT_BYTES];

	if (site == NULL || cell_result_of(facts->model, site) == NULL ||
	    strstr(verdict->next + begin, verdict_line_text(&facts->top_live, place)) == NULL)
		return;
	add_name("see-out", verdict);
	say_next(verdict, "; IPython keeps what a cell shows in Out[] (%%kmem out lists it): end such a cell with ;");
}

/* A program that did well though a child of it did not. */
static void
point_to_child(struct verdict *verdict)
{
	if (verdict->lost_child == NULL || strchr(verdict->next, VERDICT_CHILD[0]) != NULL ||
	    (verdict->end != VERDICT_END_OK && verdict->cause != VERDICT_CHILD_KILLED))
		return;
	if (verdict->end == VERDICT_END_OK && verdict->lost_child->live_bytes != 0 &&
	    verdict->lost_child->live_bytes < WORTH_CHILD_BYTES)
		return; // a worker that a pool ended: its report would show nothing; 0 = not known
	add_name("see-child", verdict);
	say_next(verdict, "; `kmemshim report " VERDICT_CHILD "` shows what the child process held before it ended");
}

void
verdict_advise(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct advice *row = first_of(rows, facts, verdict);
	const char *hidden = verdict_hidden_heap(facts->model);
	bool is_preload_wrong = hidden != NULL && strstr(hidden, "LD_PRELOAD") != NULL; // else it is part of the program
	size_t begin;
	size_t names_begin;

	if (is_preload_wrong) {
		add_name("preload-first", verdict);
		say_next(verdict,
		         "put libkmemshim.so first in LD_PRELOAD and record it again: then the heap is in the figures%s",
		         row->is_nothing ? "" : "; or ");
	}
	verdict->needs_nothing = row->is_nothing && !is_preload_wrong;
	begin = strlen(verdict->next);
	names_begin = verdict->advice_count;
	if (!is_preload_wrong || !row->is_nothing) {
		say_row(row, facts, verdict);
		advise_library(facts, begin, names_begin, verdict);
		advise_out(facts, begin, verdict);
	}
	point_to_child(verdict);
}

void
verdict_advise_domain(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_row(first_of(domain_rows, facts, verdict), facts, verdict);
}
