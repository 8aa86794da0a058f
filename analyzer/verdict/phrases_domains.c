/*
 * phrases_domains.c - how is it said what one domain held?
 *
 * A domain is told of alone where it was asked about, or as the largest device of a program that ended of something else.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>
#include <stdio.h>

#include "analysis/refused_requests.h"
#include "base/units.h"
#include "verdict/words.h"

PHRASE(DOMAIN)
{
	const struct model_domain *domain = finding->domain;
	size_t processes = facts->model->process_count;
	bool is_at_peak = domain->live_bytes == domain->peak_bytes;
	const char *now = facts->end == VERDICT_END_RUNNING ? "now, or " : "";
	char live[UNITS_TEXT_BYTES];
	char peak[UNITS_TEXT_BYTES];
	char name[PLACE_TEXT_BYTES];

	(void)snprintf(name, sizeof(name), "of %s%s", domain->name,
	               domain_is_address_space(domain->id.kind) ? " (address space, not memory)" : "");
	if (domain->peak_bytes == 0) {
		say(verdict, " Nothing %s was held.", name);
		return;
	}
	(void)units_bytes(domain->live_bytes, live);
	(void)units_bytes(domain->peak_bytes, peak);
	if (processes == 1 || domain->holder_count == 1) {
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
		return;
	}
	if (domain->holder_count < processes)
		say(verdict, " %zu of its", domain->holder_count);
	else
		say(verdict, " Its");
	say(verdict, " %zu processes held, in sum, %s %s %sat their ends", processes, live, name, now);
	say(verdict, is_at_peak ? ", which were their peaks" : " and %s at their peaks", peak);
	if (domain->together_live_bytes < domain->live_bytes || domain->concurrent_peak_bytes < domain->peak_bytes)
		say(verdict, "; at the same time at most %s and %s", units_bytes(domain->together_live_bytes, live),
		    units_bytes(domain->concurrent_peak_bytes, peak));
	say(verdict, ".");
}

PHRASE(DOMAIN_PARTS)
{
	struct device_parts parts;

	if (!device_parts_of(facts->model, (unsigned)(finding->domain - facts->model->domains), NULL, &parts))
		return;
	for (size_t i = 0; i < parts.part_count; i++)
		say(verdict, "%s%s %s", i == 0 ? " That is " : ", ", UNITS_BYTES(parts.parts[i].live_bytes),
		    parts.parts[i].name);
	say(verdict, ".");
}

PHRASE(DOMAIN_IN_MEMORY)
{
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

PHRASE(DOMAIN_IMPORTS)
{
	say_domain_part(finding, verdict);
	say(verdict, "left by imports.");
}

PHRASE(DOMAIN_LINE)
{
	if (verdict_is_rest_of_arenas(&finding->line)) {
		say_domain_part(finding, verdict);
		say(verdict, "left free in arenas of small Python objects.");
		return;
	}
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

PHRASE(DOMAIN_ACCUMULATES)
{
	const struct rank_line *line = &finding->line;

	say_finding(finding, finding->is_told ? " It" : " What is allocated at {where}", verdict);
	say(verdict, " looks like a leak%s: ", if_built_once(line));
	say_finding(finding, "{bytes} in ", verdict);
	say_generations(line, verdict);
	if (finding->count != 0)
		say(verdict, "; %s more line%s", UNITS_COUNT(finding->count),
		    finding->count == 1 ? " looks like a leak too" : "s look like leaks too");
	say(verdict, ".");
}

PHRASE(MORE_DOMAINS)
{
	say(verdict, " %" PRIu64 " more %s%s held %s.", finding->count, facts->asked.name != NULL ? "domain" : "device",
	    plural(finding->count, "s"),
	    finding->as_large_count == 0                ? "less"
	    : finding->as_large_count == finding->count ? "as much"
	                                                : "as much or less");
}

/* "3 requests for it were refused: 1 fatal, 2 recovered; the largest was for 30.0 MiB at train.py:41 step." */
PHRASE(REFUSED_REQUESTS)
{
	const struct model *model = facts->model;
	const struct model_failed *largest = NULL;
	uint64_t all_count = 0;
	size_t counts[REFUSAL_STATES] = { 0 };
	size_t count = 0;
	char text[UNITS_TEXT_BYTES];

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

PHRASE_TEXT(DOMAIN_STEADY, " No line of it is known to leak.")
