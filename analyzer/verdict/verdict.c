/*
 * verdict.c - why did the program end, who held the memory, what to do next?
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/verdict.h"

#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "verdict/advice.h"
#include "verdict/phrases.h"
#include "verdict/words.h"

/* The mark stands for what docs/report.md says of it at length; here that it is no proof. */
static void
tell_what_while_is(struct verdict *verdict)
{
	if (ANY(finding, verdict->findings, verdict->finding_count,
	        finding->line.largest != NULL && finding->line.largest->where_relation == MODEL_RELATION_WHILE))
		say(verdict,
		    " [while] marks the last line known when threads that ran no line of yours allocated: look there, or near it.");
}

/* All of it: what is to be said, and what to do next. */
static void
tell(const struct verdict_facts *facts, void advise(const struct verdict_facts *facts, struct verdict *verdict),
     struct verdict *verdict)
{
	verdict_say(facts, verdict);
	advise(facts, verdict);
	tell_what_while_is(verdict);
	for (unsigned rank = 0; rank < RANKS_SAID; rank++) {
		char *said = verdict->said[rank];
		size_t blanks = strspn(said, " ");

		memmove(said, said + blanks, strlen(said + blanks) + 1);
		TEXT_ADD(verdict->text, "%s%s", verdict->text[0] != '\0' && said[0] != '\0' ? " " : "", said);
	}
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
		TEXT_ADD(verdict->text, "%s", verdict->said[RANK_HEADLINE]);
		say_next(verdict, "record with `kmemshim run -- ...`");
		return;
	}
	verdict_facts_gather(finished, now, facts);
	verdict->cause = verdict_cause_of(facts, &verdict->confidence);
	verdict->end = facts->end;
	verdict->process = facts->process;
	verdict->memory = facts->memory;
	verdict->has_bar = verdict_has_bar(facts);
	verdict->forecast = facts->forecast;
	verdict->untouched_bytes = facts->untouched.site_count != 0 ? facts->untouched_bytes : 0;
	verdict->lost_child = facts->lost_child != facts->process ? facts->lost_child : NULL;
	verdict->has_ended_well = facts->end == VERDICT_END_OK && !verdict_was_child_killed(facts);
	verdict_find(facts, verdict);
	tell(facts, verdict_advise, verdict);
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
	verdict->said[RANK_HEADLINE][0] = verdict->said[RANK_EVIDENCE][0] = '\0';
	verdict->text[0] = verdict->next[0] = '\0';
	verdict->has_bar = false;
	verdict->finding_count = 0;
	verdict->advice_count = 0;
	verdict_find_domain(&facts, domain, verdict);
	tell(&facts, verdict_advise_domain, verdict);
}
