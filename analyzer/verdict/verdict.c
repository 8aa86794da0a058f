/*
 * verdict.c - the table of causes: which evidence is which death, how sure is that, what to do next?
 *
 * A cause is one row: `judge` looks at the facts alone and gives its confidence, or NULL when they do not support
 * it; `tell` (verdict_tell.c) writes the paragraph. Rows are tried in order, so a row may rely on those above it having declined.
 * The last row takes everything.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/place.h"
#include "base/shell_words.h"
#include "base/units.h"
#include "verdict/verdict_tell.h"

#define NAME_BYTES_MAX 300
#define WORTH_LEAKING_BYTES (UINT64_C(1) << 20) // as in a check
// of all that was allocated meanwhile: who reads a data set parses and converts it, and keeps so much as a rule
#define DATA_SET_PART 8

static const char certain[] = "certain";
static const char likely[] = "likely";
static const char possible[] = "possible";
static const char unknown[] = "unknown";

struct cause {
	const char *name;
	const char *(*judge)(const struct verdict_facts *facts);
	void (*tell)(const struct verdict_facts *facts, struct verdict *verdict);
	/* One action; NULL = the one about who held the memory. */
	const char *next;
};

/* It may have been SIGKILL: seen by the launcher, or nobody saw how it ended. */
static bool
was_perhaps_killed(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_GONE || (facts->end == VERDICT_END_SIGNAL && facts->signal == SIGKILL);
}

/*
 * A child that is gone while the session's launcher read the counters: nobody waited for the child itself, but the
 * counters are as good as for the first process.
 */
static const char *
counter_confidence(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_SIGNAL ? certain : likely;
}

static const char *
judge_machine_restarted(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_ELSEWHERE ? unknown : NULL;
}

static const char *
judge_running(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_RUNNING ? certain : NULL;
}

static const char *
judge_replaced(const struct verdict_facts *facts)
{
	return facts->process->state == KMEM_STATE_EXEC_REPLACED && facts->end == VERDICT_END_OK ? certain : NULL;
}

static const char *
judge_exited(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_OK ? certain : NULL;
}

/*
 * Recent kernels leave version 1's failure counter at 0. Then a kill counted in the cgroup is the limit's when the machine had memory
 * left at the last look, and most of the limit was charged, or what was left of it was less than the machine had: what grows fast
 * fills a container between two looks.
 */
static bool
is_version_1_limit(const struct verdict_facts *facts)
{
	uint64_t left_bytes = facts->limit_bytes > facts->charged_bytes ? facts->limit_bytes - facts->charged_bytes : 0;

	return facts->process->identity->cgroup_version == 1 && facts->limit_bytes != UINT64_MAX &&
	       facts->charged_bytes != 0 &&
	       (facts->charged_bytes >= facts->limit_bytes / 4 * 3 || facts->available_bytes > left_bytes) &&
	       facts->available_bytes != UINT64_MAX && !verdict_is_machine_low(facts);
}

/* Somebody ended it from outside, or it let itself be interrupted. */
static bool
was_stopped(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_SIGNAL &&
	       (facts->signal == SIGTERM || facts->signal == SIGINT || facts->signal == SIGHUP || facts->signal == SIGQUIT);
}

/*
 * It did well, or waited until it was stopped, but a child was killed for memory; pools end their workers by signals too, but the
 * kernel does not count those.
 */
static const char *
judge_child_killed(const struct verdict_facts *facts)
{
	bool is_about_child = facts->end == VERDICT_END_OK || (was_stopped(facts) && facts->refused == NULL);

	return is_about_child && facts->lost_child != NULL && facts->is_kill_counted && facts->cgroup_kills != 0 &&
	               !facts->counters_are_late
	           ? likely
	           : NULL;
}

static const char *
judge_container_limit(const struct verdict_facts *facts)
{
	if (!was_perhaps_killed(facts))
		return NULL;
	/* The kill is counted in the victim's cgroup for a full machine as well; the limit's own counter tells. */
	if (facts->is_kill_counted && facts->cgroup_kills != 0 && (facts->limit_hits != 0 || is_version_1_limit(facts)))
		return counter_confidence(facts);
	if (facts->is_kill_counted && !facts->counters_are_late)
		return NULL; // it did not move: not the kernel's doing
	return verdict_is_near_limit(facts) ? likely : NULL;
}

static const char *
judge_machine_memory(const struct verdict_facts *facts)
{
	if (!was_perhaps_killed(facts))
		return NULL;
	if (facts->is_kill_counted && facts->cgroup_kills != 0)
		return counter_confidence(facts);
	if (facts->is_machine_counted && facts->machine_kills != 0)
		return verdict_is_machine_low(facts) ? likely : facts->is_kill_counted ? NULL : possible;
	return !facts->is_machine_counted && verdict_is_machine_low(facts) ? likely : NULL;
}

static const char *
judge_shm_full(const struct verdict_facts *facts)
{
	uint64_t shm = facts->process->identity->shm_bytes;

	if (shm == 0 || facts->end != VERDICT_END_SIGNAL || facts->signal != SIGBUS)
		return NULL;
	for (size_t i = 0; i < facts->model->domain_count; i++) {
		const struct model_domain *domain = &facts->model->domains[i];

		if (strcmp(domain->name, "shared") == 0 && domain->live_bytes >= shm / 10 * 9)
			return likely;
	}
	return NULL;
}

/* Pinned memory is the host's, whoever gives it out. */
bool
verdict_is_device_request(const struct verdict_facts *facts)
{
	const char *domain = facts->refused != NULL ? facts->model->domains[facts->refused->domain].name : "heap";

	return device_parts_is_driver(domain) && !device_parts_is_pinned(domain);
}

static const char *
judge_device_memory(const struct verdict_facts *facts)
{
	return verdict_is_device_request(facts) ? likely : NULL;
}

static const char *
judge_request_refused(const struct verdict_facts *facts)
{
	if (facts->refused == NULL)
		return NULL;
	if (facts->end == VERDICT_END_SIGNAL && facts->signal != SIGABRT && facts->signal != SIGSEGV)
		return NULL;
	return verdict_was_perhaps_caught(facts) ? possible : likely;
}

static const char *
judge_low_memory_daemon(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_SIGNAL && (facts->signal == SIGKILL || facts->signal == SIGTERM) &&
	               verdict_is_machine_low(facts)
	           ? possible
	           : NULL;
}

static const char *
judge_crashed(const struct verdict_facts *facts)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	for (size_t i = 0; facts->end == VERDICT_END_SIGNAL && i < sizeof(crashes) / sizeof(crashes[0]); i++) {
		if (facts->signal == crashes[i])
			return certain;
	}
	return NULL;
}

static const char *
judge_signal(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_SIGNAL ? certain : NULL;
}

static const char *
judge_failed(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_FAILED ? certain : NULL;
}

static const char *
judge_gone(const struct verdict_facts *facts)
{
	(void)facts;
	return likely;
}

static const char record_with_run[] = "record it with `kmemshim run -- " VERDICT_COMMAND
									  "`: then how it ended is known";

static const char
	look_at_python_crash[] = "look at the crash itself: with PYTHONFAULTHANDLER=1 Python shows where it was";
static const char look_at_crash[] = "look at the crash itself, with a debugger";

static const char find_sender[] = "find out who sent the signal: a time limit, a scheduler, a person";
static const char
	find_interrupter[] = "if it was not Ctrl-C, find out who sent the signal: a time limit, a scheduler, a person";

static const struct cause causes[] = {
	{ "not-closed", judge_machine_restarted, verdict_tell_machine_restarted,
	  "read it with `kmemshim why` on the machine and boot that recorded it, or record with `kmemshim run`" },
	{ "running", judge_running, verdict_tell_running, "`kmemshim leaks " VERDICT_CAPTURE "` shows what grows" },
	{ "exec-replaced", judge_replaced, verdict_tell_replaced,
	  "see whether the program that it became is static or setuid: such programs cannot be recorded" },
	{ "child-killed", judge_child_killed, verdict_tell_child_killed, NULL },
	{ "exited", judge_exited, verdict_tell_exited, NULL },
	{ "container-limit", judge_container_limit, verdict_tell_container_limit, NULL },
	{ "machine-memory", judge_machine_memory, verdict_tell_machine_memory, NULL },
	{ "shm-full", judge_shm_full, verdict_tell_shm_full,
	  "give /dev/shm more room (docker run --shm-size), or use fewer workers or a smaller prefetch" },
	{ "device-memory", judge_device_memory, verdict_tell_device_memory, NULL },
	{ "request-refused", judge_request_refused, verdict_tell_request_refused, NULL },
	{ "low-memory-daemon", judge_low_memory_daemon, verdict_tell_low_memory_daemon, NULL },
	{ "crashed", judge_crashed, verdict_tell_crashed, look_at_python_crash },
	{ "signal", judge_signal, verdict_tell_signal, find_sender },
	{ "failed", judge_failed, verdict_tell_failed, "read the program's own error message" },
	{ "gone", judge_gone, verdict_tell_gone, record_with_run },
};

/* What limits the address space, of a refused request. */
static const char *
space_limit_name(const struct verdict_facts *facts)
{
	const struct kmem_identity *identity = facts->process->identity;

	for (size_t i = 0; i < KMEM_LIMITS_MAX; i++) {
		if (identity->limits[i].kind == KMEM_LIMIT_ADDRESS_SPACE && identity->limits[i].bytes != UINT64_MAX)
			return " (ulimit -v)";
	}
	return facts->refused->space_limit_bytes != 0 ? " (RLIMIT_AS, which the program set)" : "";
}

/* A session that a program opened by itself is named after its own start; a launcher's is older. */
static bool
was_launched(const struct kmem_identity *identity)
{
	return strtoull(identity->session, NULL, 16) != identity->start_realtime_ns / 1000;
}

static bool
is_built_in_arenas(const struct verdict_facts *facts)
{
	const struct rank_line line = { .site_count = 1,
		                            .domain = facts->copies.built[0].site != NULL ? facts->copies.built[0].site->domain
		                                                                          : 0 };

	return facts->copies.built_count != 0 && verdict_is_arena(facts, &line);
}

bool
verdict_does_next_grow(const struct verdict_facts *facts)
{
	const struct rank_line *next = &facts->next_live;

	return facts->top_live.leak != MODEL_LEAK_LEAK && next->site_count != 0 && next->leak == MODEL_LEAK_LEAK &&
	       next->leaking_bytes >= next->live_bytes / 2;
}

const char *
verdict_if_data_set(const struct verdict *verdict, const struct rank_line *line)
{
	uint64_t volume_bytes = line->leak == MODEL_LEAK_LEAK ? line->telling->volume_bytes : 0;

	if (volume_bytes == 0 || (verdict->end != VERDICT_END_OK && line->leaking_bytes < volume_bytes / DATA_SET_PART))
		return "";
	if (strcmp(verdict->cause, "child-killed") == 0)
		return "; if it is a data set, load less of it at once, or give the program more memory";
	if (verdict->end != VERDICT_END_OK)
		return "; if it is a data set, load less of it at once";
	if (line->released_bytes >= line->live_bytes / 2)
		return "; unless all of it is meant to be kept until the program exits";
	return verdict->lost_child == NULL ? "; if it is a data set, nothing needs doing" : "";
}

static void
advise(const struct verdict_facts *facts, struct verdict *verdict, const char *next)
{
	char place[PLACE_TEXT_BYTES];
	char bytes[UNITS_TEXT_BYTES];
	const struct rank_line *top = &facts->top_live;
	bool is_accumulating = verdict_is_accumulating(facts);
	/* What grows on a device comes before what may be a data set of a program that ended well. */
	bool is_growing = top->leak == MODEL_LEAK_LEAK &&
	                  !(verdict->end == VERDICT_END_OK && rank_may_be_built_once(top->telling) &&
	                    facts->growing_device.site_count != 0);
	bool is_much_in_arenas = top->leak == MODEL_LEAK_LEAK || top->live_bytes >= facts->live_bytes / 2;
	bool is_next_growing = verdict_does_next_grow(facts) &&
	                       !(verdict->end == VERDICT_END_OK && rank_may_be_built_once(facts->next_live.telling));
	bool is_childs_peak = facts->peak_process != facts->process && facts->top_peak.site_count != 0;

	if ((strcmp(verdict->cause, "device-memory") == 0 || facts->end == VERDICT_END_RUNNING) &&
	    verdict_advise_device(facts, verdict))
		return;
	if (verdict->end != VERDICT_END_OK && verdict->end != VERDICT_END_RUNNING && verdict_advise_pinned(facts, verdict))
		return;
	if (next == look_at_python_crash && facts->process->python_version == 0)
		next = look_at_crash;
	if (next == find_sender && facts->signal == SIGINT)
		next = find_interrupter;
	if (next != NULL && facts->refused == NULL && verdict_was_time_up(facts))
		next = "give it more time, or see what took it so long";
	if (next == record_with_run && !is_accumulating && facts->is_descendant) {
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               facts->model->process_count > 1
		                   ? "see what its parent (pid %" PRIu32 ") says: it alone knows how its child ended"
		                   : "look at the report of its parent (pid %" PRIu32 "), or of the whole folder of captures",
		               facts->process->identity->parent_pid);
		return;
	}
	if (next == record_with_run && was_launched(facts->process->identity))
		next = "`kmemshim peak " VERDICT_CAPTURE "` shows who held the memory";
	if (next != NULL && facts->refused == NULL && verdict_is_freed_first(facts) &&
	    (facts->end == VERDICT_END_SIGNAL || facts->end == VERDICT_END_RUNNING) &&
	    verdict_advise_freed(facts, verdict)) {
		if (facts->end == VERDICT_END_RUNNING)
			return;
		char *freed = memory_text(verdict->next);

		say_next(verdict, "%s; then %s", next, freed);
		free(freed);
		return;
	}
	if (is_accumulating && facts->refused == NULL && next != NULL &&
	    (facts->end == VERDICT_END_SIGNAL || facts->end == VERDICT_END_FAILED || verdict_was_time_up(facts)) &&
	    !verdict_is_arena(facts, top) && verdict_is_far_from_limits(facts)) {
		say_next(verdict, "%s; then look for what keeps the blocks of %s alive%s", next, verdict_line_text(top, place),
		         verdict_if_data_set(verdict, top)[0] != '\0' ? ", unless it is a data set" : "");
		return;
	}
	if ((is_accumulating || verdict_is_freed_first(facts)) &&
	    (facts->end == VERDICT_END_SIGNAL || facts->end == VERDICT_END_GONE) && facts->refused == NULL)
		next = NULL;
	if (next != NULL)
		(void)snprintf(verdict->next, sizeof(verdict->next), "%s", next);
	else if (facts->refused == NULL && verdict_is_freed_first(facts) && verdict_advise_freed(facts, verdict))
		return;
	else if (strcmp(verdict->cause, "request-refused") == 0 && verdict_was_perhaps_caught(facts))
		say_next(verdict,
		         "read the program's own error message; if it tells of a lack of memory, ask for less at once there%s",
		         verdict_is_beyond_machine(facts) ? "" : ", or raise what limits it");
	else if (facts->refused != NULL && verdict_is_beyond_machine(facts))
		say_next(verdict, "ask for less at once there (smaller pieces, a smaller type)");
	else if (facts->refused != NULL && verdict_is_of_recording(facts))
		say_next(verdict, "start it under that limit (`ulimit -v %" PRIu64 "`): recording then reserves less of it",
		         facts->refused->space_limit_bytes / 1024);
	else if (facts->refused != NULL && verdict_is_request_alone(facts))
		say_next(verdict, "ask for less at once there, or raise what limits it%s", space_limit_name(facts));
	else if (facts->refused == NULL && facts->model->needs_salvage &&
	         (facts->model->unlisted_bytes > facts->live_bytes / 2 || (top->site_count != 0 && top->where == NULL)))
		say_next(verdict, "record it again, or copy the capture again: the damage took the lines of what held most");
	else if (facts->refused == NULL && rank_elsewhere_worth_bytes(facts->model) != 0 &&
	         (top->site_count == 0 || rank_is_elsewhere(facts->model, top->largest) ||
	          (verdict->end == VERDICT_END_OK && !is_growing)))
		say_next(verdict, "record it again with more room for stacks (%s): then the lines that hold the rest are named",
		         model_could_not_grow(facts->model) ? "the disk that holds captures, or ulimit -v"
		                                            : "KMEMSHIM_SITES_MAX, KMEMSHIM_CAPTURE_MAX");
	else if (facts->refused == NULL && facts->copies.bytes > top->live_bytes / 2)
		(void)snprintf(
			verdict->next, sizeof(verdict->next), "%s%s",
			facts->copies.child->python_version != 0
				? "keep what the workers read in one NumPy array or tensor, or in shared memory, instead of many "
				  "Python objects; or let each worker load its own part"
				: "write to less of it after the fork, or fork before it is built",
			is_built_in_arenas(facts) ? "; `kmemshim run --python-objects -- " VERDICT_COMMAND
										"` names the lines that built them"
									  : "");
	else if (strcmp(verdict->cause, "child-killed") == 0 && is_childs_peak && verdict_is_arena(facts, &facts->top_peak))
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "record small Python objects too: `kmemshim run --python-objects -- " VERDICT_COMMAND
		               "` names the lines that hold them; or run fewer child processes at once, or "
		               "give the program more memory");
	else if (strcmp(verdict->cause, "child-killed") == 0 && (verdict_is_arena(facts, top) || !is_accumulating))
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "hold less in each child process%s%s%s, run fewer of them at once, or "
		               "give the program more memory",
		               is_childs_peak ? " (most at " : "",
		               is_childs_peak ? verdict_line_text(&facts->top_peak, place) : "", is_childs_peak ? ")" : "");
	else if (facts->refused != NULL && facts->refused->bytes < facts->peak_bytes / 8 &&
	         !(is_accumulating && (verdict_is_arena(facts, top) || !rank_may_be_built_once(top->telling))))
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "hold less before that (most at %s), or raise what limits it%s",
		               verdict_line_text(facts->top_peak.site_count != 0 ? &facts->top_peak : top, place),
		               space_limit_name(facts));
	else if (is_next_growing && facts->refused == NULL)
		(void)snprintf(verdict->next, sizeof(verdict->next), "look for what keeps the blocks of %s alive%s%s",
		               verdict_line_text(&facts->next_live, place), verdict_blocks_kept(facts),
		               verdict_if_data_set(verdict, &facts->next_live));
	else if (verdict_is_arena(facts, top) && !is_much_in_arenas && verdict->end != VERDICT_END_OK &&
	         facts->refused == NULL)
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "give the program more memory, or import less: no line of it holds much");
	else if (verdict_is_arena(facts, top) && (facts->refused == NULL || is_accumulating) &&
	         (is_growing || verdict->end != VERDICT_END_OK))
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "%s%s%srecord small Python objects too: "
		               "`kmemshim run --python-objects -- " VERDICT_COMMAND
		               "`; then the lines that hold them are named%s%s%s",
		               facts->beside_arenas.site_count != 0 ? "look for what keeps the blocks of " : "",
		               facts->beside_arenas.site_count != 0 ? verdict_line_text(&facts->beside_arenas, place) : "",
		               facts->beside_arenas.site_count != 0 ? " alive; or " : "", verdict_if_data_set(verdict, top),
		               facts->refused != NULL ? ". Or raise what limits it" : "",
		               facts->refused != NULL ? space_limit_name(facts) : "");
	else if (is_growing && (facts->refused == NULL || is_accumulating))
		(void)snprintf(verdict->next, sizeof(verdict->next), "look for what keeps the blocks of %s alive%s%s",
		               verdict_line_text(top, place), verdict_blocks_kept(facts), verdict_if_data_set(verdict, top));
	else if (facts->refused != NULL)
		say_next(verdict, "ask for less at once there, or raise what limits it%s", space_limit_name(facts));
	else if (verdict->end == VERDICT_END_OK && model_unrecorded_bytes(facts->model) != 0)
		say_next(verdict,
		         "record it again with more room for the recorder (ulimit -v, or the disk that holds captures)");
	else if (verdict->end == VERDICT_END_OK && facts->model->capture_damage_count != 0)
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "record it again where whole figures are needed: the notes of "
		               "`kmemshim report " VERDICT_CAPTURE "` name the damage");
	else if (verdict->end == VERDICT_END_OK && verdict_advise_growing_device(facts, verdict))
		return;
	else if (verdict->end == VERDICT_END_OK && verdict->lost_child != NULL)
		say_next(verdict, "`kmemshim report " VERDICT_CHILD
		                  "` shows what the child process held that was ended; if a pool ended it as "
		                  "it closed, nothing needs doing");
	else if (verdict->end == VERDICT_END_OK && verdict_advise_tight(facts, verdict))
		return;
	else if (verdict->end == VERDICT_END_OK && facts->refused == NULL && verdict_advise_freed(facts, verdict))
		return;
	else if (verdict->end == VERDICT_END_OK && facts->peak_bytes == 0)
		(void)snprintf(verdict->next, sizeof(verdict->next), "nothing needs doing");
	else if (verdict->end == VERDICT_END_OK && facts->leaking_bytes >= WORTH_LEAKING_BYTES)
		say_next(verdict,
		         "nothing needs doing yet; `kmemshim leaks " VERDICT_CAPTURE
		         "` shows which lines accumulate (%s in all, most at %s)",
		         units_bytes(facts->leaking_bytes, bytes), verdict_line_text(&facts->most_leaking, place));
	else if (verdict->end == VERDICT_END_OK)
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "nothing needs doing; `kmemshim peak " VERDICT_CAPTURE "` shows who "
		               "made the peak");
	else if (top->site_count != 0)
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "hold less at once at %s (smaller pieces, a smaller type, release earlier), or give the "
		               "program more memory",
		               verdict_line_text(top, place));
	else
		(void)snprintf(verdict->next, sizeof(verdict->next),
		               "`kmemshim peak " VERDICT_CAPTURE "` shows who held the memory");
}

/* A program that did well though a child of it did not. */
static void
point_to_child(struct verdict *verdict)
{
	size_t used = strlen(verdict->next);

	if (verdict->lost_child != NULL &&
	    (verdict->end == VERDICT_END_OK || strcmp(verdict->cause, "child-killed") == 0) &&
	    strchr(verdict->next, VERDICT_CHILD[0]) == NULL)
		(void)snprintf(verdict->next + used, sizeof(verdict->next) - used,
		               "; `kmemshim report " VERDICT_CHILD "` shows what the child process held that was ended");
}

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

/* Puts the capture and the program's command into the advice. */
static void
name_paths(const struct model *model, struct verdict *verdict)
{
	const struct kmem_identity *identity = model->processes[0].identity;
	char *command = shell_words_join(identity->command, identity->command_bytes);
	const char *capture = name_or(model->argument, "CAPTURE");
	const char *child_path = verdict->lost_child != NULL ? verdict->lost_child->path : "";
	char *child = shell_words_join(child_path, strlen(child_path));
	char *text = memory_text(verdict->next);
	size_t used = 0;

	for (const char *at = text; *at != '\0' && used < sizeof(verdict->next); at++) {
		if (*at == VERDICT_COMMAND[0])
			used += (size_t)snprintf(verdict->next + used, sizeof(verdict->next) - used, "%s",
			                         name_or(command, "COMMAND"));
		else if (*at == VERDICT_CAPTURE[0] || *at == VERDICT_CHILD[0])
			used += (size_t)snprintf(verdict->next + used, sizeof(verdict->next) - used, "%s%s",
			                         model->needs_salvage ? "--salvage " : "",
			                         *at == VERDICT_CAPTURE[0] ? capture : name_or(child, "CAPTURE"));
		else
			verdict->next[used++] = *at;
	}
	verdict->next[used < sizeof(verdict->next) ? used : sizeof(verdict->next) - 1] = '\0';
	free(text);
	free(child);
	free(command);
}

/* The mark stands for what README says of it at length; here that it is no proof. */
static void
tell_what_while_is(struct verdict *verdict)
{
	if (strstr(verdict->text, " [while]") != NULL || strstr(verdict->next, " [while]") != NULL)
		say(verdict,
		    " [while] marks the last line known when threads without Python frames allocated: look there, or near it.");
}

static void
decide(const struct model *model, const struct verdict_now *now, struct verdict_facts *facts, struct verdict *verdict)
{
	*verdict = (struct verdict){ .cause = "unknown", .confidence = unknown, .end = VERDICT_END_ELSEWHERE };
	if (model->process_count == 0) {
		(void)snprintf(verdict->text, sizeof(verdict->text), "No process was recorded.");
		(void)snprintf(verdict->next, sizeof(verdict->next), "record with `kmemshim run -- ...`");
		return;
	}
	verdict_facts_gather(model, now, facts);
	verdict->end = facts->end;
	verdict->process = facts->process;
	verdict->memory = facts->memory;
	verdict->untouched_bytes = facts->untouched.site_count != 0 ? facts->untouched_bytes : 0;
	verdict->lost_child = facts->lost_child != facts->process ? facts->lost_child : NULL;
	verdict->has_ended_well = facts->end == VERDICT_END_OK && judge_child_killed(facts) == NULL;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		const char *confidence = causes[i].judge(facts);

		if (confidence == NULL)
			continue;
		verdict->cause = causes[i].name;
		verdict->confidence = confidence;
		causes[i].tell(facts, verdict);
		if (strcmp(verdict->cause, "device-memory") != 0)
			verdict_tell_devices(facts, verdict);
		verdict_tell_copies(facts, verdict);
		verdict_tell_damage(facts, verdict);
		verdict_tell_hidden_heap(facts, verdict);
		advise(facts, verdict, causes[i].next);
		verdict_advise_library(facts, verdict);
		verdict_advise_hidden_heap(facts, verdict);
		point_to_child(verdict);
		tell_what_while_is(verdict);
		name_paths(model, verdict);
		return;
	}
}

void
verdict_decide(const struct model *model, const struct verdict_now *now, struct verdict *verdict)
{
	struct verdict_facts facts;

	decide(model, now, &facts, verdict);
}

void
verdict_decide_domain(const struct model *model, const struct verdict_now *now, const char *domain,
                      struct verdict *verdict)
{
	struct verdict_facts facts;
	const char *refused;

	decide(model, now, &facts, verdict);
	if (model->process_count == 0)
		return;
	refused = strcmp(verdict->cause, "device-memory") == 0 ? model->domains[facts.refused->domain].name : "";
	if (rank_domain_matches(refused, domain))
		return; // it ended for want of this memory: that is all about it
	verdict->text[0] = '\0';
	verdict->next[0] = '\0';
	verdict_tell_domain(&facts, now, domain, verdict);
	verdict_tell_damage(&facts, verdict);
	tell_what_while_is(verdict);
	name_paths(model, verdict);
}
