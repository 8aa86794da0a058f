/*
 * domain.c - what is there to say about one domain alone: how much, by which line, does it grow, was it refused?
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/domain.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "analysis/failed_requests.h"
#include "verdict/phrases.h"

#define DOMAINS_SHOWN 4u                       // "cuda" may be 32 devices
#define DEVICE_WORTH_BYTES (UINT64_C(1) << 20) // less is not worth a sentence about another end

/* Is the domain a part of another one that is told as well? Tensors lie in their device. */
static bool
is_part(const struct model *model, unsigned domain, const char *wanted)
{
	unsigned device = device_parts_device(model, domain);

	return device != domain && rank_domain_matches(model->domains[device].name, wanted);
}

struct left_out {
	unsigned count;
	unsigned as_large; // of these: as the last one that is told
};

/* The wanted domains, the largest peak first. */
static unsigned
choose(const struct model *model, const char *wanted, unsigned chosen[DOMAINS_SHOWN], struct left_out *left_out)
{
	unsigned count = 0;

	*left_out = (struct left_out){ .count = 0 };
	for (unsigned i = 0; i < model->domain_count; i++) {
		unsigned place = count;

		if (!rank_domain_matches(model->domains[i].name, wanted) || is_part(model, i, wanted))
			continue;
		while (place > 0 && model->domains[chosen[place - 1]].peak_bytes < model->domains[i].peak_bytes)
			place--;
		left_out->count += count == DOMAINS_SHOWN;
		if (place == DOMAINS_SHOWN)
			continue;
		count += count < DOMAINS_SHOWN;
		memmove(&chosen[place + 1], &chosen[place], (count - 1 - place) * sizeof(chosen[0]));
		chosen[place] = i;
	}
	for (unsigned i = 0; i < model->domain_count && left_out->count != 0; i++) {
		bool is_told = false;

		for (unsigned k = 0; k < count; k++)
			is_told = is_told || chosen[k] == i;
		left_out->as_large += !is_told && rank_domain_matches(model->domains[i].name, wanted) &&
		                      !is_part(model, i, wanted) &&
		                      model->domains[i].peak_bytes == model->domains[chosen[count - 1]].peak_bytes;
	}
	return count;
}

/* Training on several devices holds the same on each. */
static void
say_left_out(const struct left_out *left_out, const char *what, struct verdict *verdict)
{
	if (left_out->count != 0)
		say(verdict, " %u more %s%s held %s.", left_out->count, what, left_out->count == 1 ? "" : "s",
		    left_out->as_large == 0                 ? "less"
		    : left_out->as_large == left_out->count ? "as much"
		                                            : "as much or less");
}

static void
say_amount(const struct verdict_facts *facts, const struct model_domain *domain, struct verdict *verdict)
{
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
	if (processes == 1) {
		say(verdict, "it held %s %s", live,
		    domain->is_at_refusal               ? "when the request that ended it was refused"
		    : facts->end == VERDICT_END_RUNNING ? "just now"
		    : facts->process->is_at_exit        ? "when it began to exit"
		    : facts->process->is_finalizing     ? "when Python began to shut down"
		                                        : "at the end");
		say(verdict, is_at_peak ? ", its peak." : ", %s at its peak.", peak);
		return;
	}
	if (domain->holder_count == 1) {
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

static void
say_parts(const struct model *model, unsigned domain, struct verdict *verdict)
{
	struct device_parts parts;
	char bytes[UNITS_TEXT_BYTES];

	if (!device_parts_of(model, domain, NULL, &parts) || parts.part_count < 2)
		return;
	for (size_t i = 0; i < parts.part_count; i++)
		say(verdict, "%s%s %s", i == 0 ? " That is " : ", ", units_bytes(parts.parts[i].live_bytes, bytes),
		    parts.parts[i].name);
	say(verdict, ".");
}

/* The first line of the program's own that holds any; NULL: there is none. */
static const struct rank_line *
first_line(const struct ranked *ranked, bool is_peak)
{
	for (size_t i = 0; i < ranked->line_count; i++) {
		const struct rank_line *line = &ranked->lines[i];

		if (!line->is_import && (is_peak ? line->peak_bytes : line->live_bytes) != 0)
			return line;
	}
	return NULL;
}

/* Before it may stand a line that cannot be judged. */
static const struct rank_line *
first_to_grow(const struct ranked *ranked)
{
	for (size_t i = 0; i < ranked->line_count; i++) {
		if (ranked->lines[i].leak == MODEL_LEAK_LEAK)
			return &ranked->lines[i];
	}
	return first_line(ranked, false);
}

/*
 * Who holds most at the end or, when little of it is left, who held most at the peak. Returns one of its sites; NULL = nobody. As lines
 * are in the order of what is in memory, so are the figures where much of the domain is not.
 */
static const struct model_site *
say_holder(const struct verdict_facts *facts, const struct model_domain *lines, struct verdict *verdict)
{
	bool is_peak = lines->live_bytes < lines->peak_bytes / 2;
	const struct ranking *asked = is_peak ? &rank_peak_asked : &rank_sites_asked;
	struct ranked *ranked = rank_run(facts->judged,
	                                 facts->refused != NULL ? asked
	                                 : is_peak              ? &rank_peak
	                                                        : &rank_sites,
	                                 lines->name);
	const struct rank_line *top = first_line(ranked, is_peak);
	const struct model_site *site = top != NULL ? top->largest : NULL;
	uint64_t whole = is_peak ? lines->peak_bytes : lines->live_bytes;
	uint64_t part = top == NULL ? 0 : is_peak ? top->peak_bytes : top->live_bytes;
	uint64_t imports = verdict_left_by_imports(facts->model, lines, is_peak);
	uint64_t in_memory = verdict_less_untouched(facts, whole, lines->untouched_bytes);
	bool is_told = verdict_tells_in_memory(in_memory, whole - in_memory);
	const char *whole_name = lines->id.kind == DOMAIN_TENSORS ? "the tensors" : is_told ? "that" : "it";
	char bytes[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (is_told) {
		say(verdict, " %s of it was in memory%s.", units_bytes(in_memory, bytes), is_peak ? " at the peak" : "");
		part = top != NULL ? verdict_less_untouched(facts, part, top->untouched_bytes) : 0;
		whole = in_memory;
	}
	if (imports > part)
		say(verdict, " %s of %s (%s) was left by imports.", units_bytes(imports, bytes), whole_name,
		    units_share(verdict_share(imports, whole), share));
	if (top != NULL && verdict_is_arena(facts, top))
		say(verdict, " %s is arenas of small Python objects, of which no line is known.",
		    imports > part ? "The rest" : "It");
	else if (top != NULL)
		say(verdict, "%s %s of %s (%s) was allocated at %s.",
		    !is_peak || is_told               ? ""
		    : facts->model->process_count > 1 ? " At the peaks"
		                                      : " At the peak",
		    units_bytes(part, bytes), whole_name, units_share(verdict_share(part, whole), share),
		    verdict_line_text(top, place));
	rank_free(ranked);
	return site;
}

/* The line, or "It" when it was told of right before: `told` is one of its sites. */
static const char *
subject(const struct rank_line *line, const struct model_site *told, char text[PLACE_TEXT_BYTES + 32])
{
	char place[PLACE_TEXT_BYTES];

	if (told != NULL && rank_compare_places(line->largest, told) == 0)
		return "It";
	(void)snprintf(text, PLACE_TEXT_BYTES + 32, "What is allocated at %s", verdict_line_text(line, place));
	return text;
}

/* True when there was something to say; a line that accumulates is put in *growing. */
static bool
say_growth(const struct verdict_facts *facts, const struct model_domain *lines, const struct model_site *told,
           struct rank_line *growing, struct verdict *verdict)
{
	struct ranked *ranked = rank_run(facts->judged, &rank_leaks, lines->name);
	const struct rank_line *top = first_to_grow(ranked);
	bool is_growing = top != NULL && top->leak == MODEL_LEAK_LEAK;
	bool may_grow = top != NULL && rank_may_accumulate(top->telling);
	size_t more = 0;
	char bytes[UNITS_TEXT_BYTES];
	char text[PLACE_TEXT_BYTES + 32];

	for (size_t i = 0; i < ranked->line_count; i++)
		more += ranked->lines[i].leak == MODEL_LEAK_LEAK && &ranked->lines[i] != top;
	if (is_growing) {
		*growing = *top;
		say(verdict, " %s accumulates%s: %s in blocks from %" PRIu32 " of %" PRIu32 " generations are still alive",
		    subject(top, told, text), rank_may_be_built_once(top->telling) ? VERDICT_BUILT_ONCE : "",
		    units_bytes(top->leaking_bytes, bytes), top->telling->generations_alive, top->telling->generations_total);
		if (more != 0)
			say(verdict, "; so do%s %s more line%s", more == 1 ? "es" : "", units_count(more, bytes),
			    more == 1 ? "" : "s");
		say(verdict, ".");
	} else if (may_grow) {
		say(verdict,
		    " %s may accumulate: nothing of its %" PRIu32 " generations was released, which are too few to tell.",
		    subject(top, told, text), top->telling->generations_total);
	}
	rank_free(ranked);
	return is_growing || may_grow;
}

/* "3 requests for it were refused: 1 fatal, 2 recovered; the largest was for 30.0 MiB at train.py:41 step." */
static void
say_failed_requests(const struct verdict_facts *facts, const struct verdict_now *now, const char *wanted,
                    struct verdict *verdict)
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

		if (!rank_domain_matches(model->domains[failed->domain].name, wanted))
			continue;
		count++;
		counts[refusal_state(model, now, failed)]++;
		if (largest == NULL || failed->bytes >= largest->bytes) // a tensor comes after what the driver was asked for it
			largest = failed;
	}
	(void)snprintf(text, sizeof(text), count != 0 ? "%zu" : "No", count);
	say(verdict, " %s request%s for it %s refused", text, count > 1 ? "s" : "", count > 1 ? "were" : "was");
	if (all_count > model->failed_count)
		say(verdict, " among the last %zu of %s", model->failed_count, units_count(all_count, text));
	for (enum refusal_state k = 0, told = 0; k < REFUSAL_STATES; k++) {
		if (counts[k] != 0)
			say(verdict, "%s %zu %s", told++ == 0 ? ":" : ",", counts[k], refusal_state_name(k));
	}
	if (count != 0)
		say(verdict, "; %s ", count == 1 ? "it was" : "the largest was");
	if (largest != NULL)
		verdict_say_wanted(model, largest, verdict);
	say(verdict, ".");
}

/* What of the domain is told by lines: tensors, where they are known. */
static const struct model_domain *
lines_of(const struct model *model, unsigned domain)
{
	const struct model_domain *tensors = device_parts_tensors(model, domain);

	return tensors != NULL ? tensors : &model->domains[domain];
}

void
verdict_tell_domain(struct verdict_facts *facts, const struct verdict_now *now, const char *wanted,
                    struct verdict *verdict)
{
	const struct model *model = facts->model;
	unsigned chosen[DOMAINS_SHOWN] = { 0 };
	struct left_out left_out;
	unsigned count = choose(model, wanted, chosen, &left_out);

	facts->asked = (struct verdict_asked){ .name = wanted, .largest = &model->domains[chosen[0]] };
	verdict_say_death(facts, verdict);
	for (unsigned i = 0; i < count; i++) {
		const struct model_domain *domain = &model->domains[chosen[i]];
		const struct model_domain *lines = lines_of(model, chosen[i]);
		struct rank_line line = { .site_count = 0 };
		const struct model_site *told;

		say_amount(facts, domain, verdict);
		say_parts(model, chosen[i], verdict);
		told = say_holder(facts, lines, verdict);
		if (!say_growth(facts, lines, told, &line, verdict) && lines->live_bytes != 0 &&
		    lines->id.kind != DOMAIN_PYTHON_ARENA)
			say(verdict, " No line of it is known to accumulate.");
		if (facts->untouched.site_count != 0 && &model->domains[facts->untouched.domain] == lines)
			verdict_tell_untouched(facts, verdict);
		if (line.leaking_bytes > facts->asked.growing.leaking_bytes)
			facts->asked.growing = line;
	}
	say_left_out(&left_out, "domain", verdict);
	say_failed_requests(facts, now, wanted, verdict);
}

void
verdict_tell_devices(struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model *model = facts->model;
	const struct model_domain *most = NULL;
	const struct model_domain *lines;
	struct left_out more = { .count = 0 };

	for (unsigned i = 0; i < model->domain_count; i++) {
		const struct model_domain *domain = &model->domains[i];

		if (domain->id.kind != DOMAIN_DEVICE || domain->peak_bytes < DEVICE_WORTH_BYTES)
			continue;
		more.count += most != NULL;
		if (most != NULL && domain->peak_bytes == most->peak_bytes)
			more.as_large++;
		if (most != NULL && domain->peak_bytes <= most->peak_bytes)
			continue;
		more.as_large = 0;
		most = domain;
	}
	if (most == NULL)
		return;
	lines = lines_of(model, (unsigned)(most - model->domains));
	say_amount(facts, most, verdict);
	say_parts(model, (unsigned)(most - model->domains), verdict);
	(void)say_growth(facts, lines, say_holder(facts, lines, verdict), &facts->growing_device, verdict);
	say_left_out(&more, "device", verdict);
}
