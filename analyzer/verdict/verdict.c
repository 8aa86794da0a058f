/*
 * verdict.c - why did the program end, who held the memory, what to do next?
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/verdict.h"

#include <string.h>

#include "base/memory.h"
#include "base/shell_words.h"
#include "verdict/advice.h"
#include "verdict/phrases.h"
#include "verdict/words.h"

#define NAME_BYTES_MAX 300

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
	OWNED char *command = shell_words_join(identity->command, identity->command_bytes);
	const char *capture = name_or(model->argument, "CAPTURE");
	const char *child_path = verdict->lost_child != NULL ? verdict->lost_child->path : "";
	OWNED char *child = shell_words_join(child_path, strlen(child_path));
	OWNED char *text = memory_text(verdict->next);

	verdict->next[0] = '\0';
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == VERDICT_COMMAND[0])
			say_next(verdict, "%s", name_or(command, "COMMAND"));
		else if (*at == VERDICT_CAPTURE[0] || *at == VERDICT_CHILD[0])
			say_next(verdict, "%s%s", model->needs_salvage ? "--salvage " : "",
			         *at == VERDICT_CAPTURE[0] ? capture : name_or(child, "CAPTURE"));
		else
			say_next(verdict, "%c", *at);
	}
}

/* The mark stands for what docs/report.md says of it at length; here that it is no proof. */
static void
tell_what_while_is(struct verdict *verdict)
{
	if (strstr(verdict->text, " [while]") != NULL || strstr(verdict->next, " [while]") != NULL)
		say(verdict,
		    " [while] marks the last line known when threads that ran no line of yours allocated: look there, or near it.");
}

static void
decide(struct finished_model finished, const struct verdict_now *now, struct verdict_facts *facts,
       struct verdict *verdict)
{
	const struct model *model = finished.model;

	*verdict = (struct verdict){ .cause = VERDICT_NO_PROCESS,
		                         .confidence = VERDICT_UNKNOWN,
		                         .end = VERDICT_END_ELSEWHERE };
	if (model->process_count == 0) {
		say(verdict, "No process was recorded.");
		say_next(verdict, "record with `kmemshim run -- ...`");
		return;
	}
	verdict_facts_gather(finished, now, facts);
	verdict->cause = verdict_cause_of(facts, &verdict->confidence);
	verdict->end = facts->end;
	verdict->process = facts->process;
	verdict->memory = facts->memory;
	verdict->forecast = facts->forecast;
	verdict->untouched_bytes = facts->untouched.site_count != 0 ? facts->untouched_bytes : 0;
	verdict->lost_child = facts->lost_child != facts->process ? facts->lost_child : NULL;
	verdict->has_ended_well = facts->end == VERDICT_END_OK && !verdict_was_child_killed(facts);
	verdict_find(facts, verdict);
	verdict_say(facts, verdict);
	verdict_advise(facts, verdict);
	tell_what_while_is(verdict);
	name_paths(model, verdict);
}

void
verdict_decide(struct finished_model finished, const struct verdict_now *now, struct verdict *verdict)
{
	struct verdict_facts facts;

	decide(finished, now, &facts, verdict);
}

void
verdict_decide_domain(struct finished_model finished, const struct verdict_now *now, const char *domain,
                      struct verdict *verdict)
{
	const struct model *model = finished.model;
	struct verdict_facts facts;

	decide(finished, now, &facts, verdict);
	if (model->process_count == 0)
		return;
	if (verdict->cause == VERDICT_DEVICE_MEMORY &&
	    rank_domain_matches(model->domains[facts.refused->domain].name, domain))
		return; // it ended for want of this memory: that is all about it
	verdict->text[0] = '\0';
	verdict->next[0] = '\0';
	verdict->finding_count = 0;
	verdict->advice_count = 0;
	verdict_find_domain(&facts, domain, verdict);
	verdict_say(&facts, verdict);
	verdict_advise_domain(&facts, verdict);
	tell_what_while_is(verdict);
	name_paths(model, verdict);
}
