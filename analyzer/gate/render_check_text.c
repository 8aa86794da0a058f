/*
 * render_check_text.c - the result of a check for a person.
 *
 * When failing  errors stay in the stream.
 */
#include <string.h>

#include "base/items.h"
#include "base/units.h"
#include "gate/check_outputs.h"
#include "gate/check_words.h"

#define RENAMED_SHOWN 5

static const char *
novelty(const struct check_rule *rule)
{
	if (rule->kind != CHECK_LEAK || !rule->is_new)
		return "";
	if (rule->is_grown && !rule->is_leak)
		return "new, kept most of what it allocated during the run, ";
	return rule->is_leak ? "new, " : "new, may leak (the run is too short to tell: measure a longer one), ";
}

/* The limit in its column; what is allowed on top of it follows. */
static void
put_limit(const char *limit, FILE *stream)
{
	size_t length = strcspn(limit, "+");
	bool is_alone = limit[length] == '\0';

	(void)fprintf(stream, "  limit %10.*s%s%s", (int)(is_alone ? length : length - 1), limit, is_alone ? "" : " ",
	              limit + length);
}

static void
put_rule(FILE *stream, const struct check_rule *rule, int domain_width)
{
	(void)fprintf(stream, "%-6s %-5s %-*s %10s %s %10s",
	              !rule->is_judged   ? "-"
	              : rule->has_failed ? "FAIL"
	                                 : "ok",
	              check_rule_name(rule), domain_width, rule->domain,
	              rule->has_before ? UNITS_BYTES(rule->before_bytes) : "", rule->has_before ? "->" : "  ",
	              UNITS_BYTES(rule->after_bytes));
	if (rule->is_judged)
		put_limit(check_limit_text(rule, CHECK_LIMIT_ROOM), stream);
	else
		(void)fputs("  not judged: address space", stream);
	if (rule->where[0] != '\0')
		(void)fprintf(stream, "  %s%s%s", novelty(rule), check_where_word(rule), rule->where);
	(void)fputc('\n', stream);
}

/* Does it fail for the same line, with no budget of its own? */
static bool
is_of_line(const struct check_rule *rule, const struct check_rule *other)
{
	return rule->has_failed && other->has_failed && other->budget == NULL && rule->where[0] != '\0' &&
	       strcmp(rule->where, other->where) == 0;
}

/* One leak has one row: what else it fails is told below. */
static void
put_rules(const struct check *check, FILE *stream)
{
	int domain_width = (int)MOST_OF(rule, check->rules, check->rule_count, strlen(rule->domain));

	for (size_t i = 0; i < check->rule_count; i++) {
		const struct check_rule *rule = &check->rules[i];
		const char *before = "       also  ";

		if (ANY(first, check->rules, i, is_of_line(first, rule)))
			continue;
		put_rule(stream, rule, domain_width);
		for (size_t j = i + 1; j < check->rule_count; j++) {
			const struct check_rule *other = &check->rules[j];

			if (!is_of_line(other, rule))
				continue;
			(void)fprintf(stream, "%s%s of %s %s, limit %s", before, check_rule_name(other), other->domain,
			              UNITS_BYTES(other->after_bytes), check_limit_text(other, CHECK_LIMIT_ROOM));
			before = "; ";
		}
		if (before[0] == ';')
			(void)fputc('\n', stream);
	}
}

/* Lines of small Python objects are in another domain where they were recorded one by one, and are not known where nothing was. */
static void
put_arena_note(const struct check *check, FILE *stream)
{
	bool were_sampled = baseline_find_domain(check->before, "python/object") != NULL;
	bool are_sampled = baseline_find_domain(check->after, "python/object") != NULL;
	bool were_arenas = baseline_find_domain(check->before, "python/arena") != NULL;
	bool are_arenas = baseline_find_domain(check->after, "python/arena") != NULL;
	bool has_failed = ANY(rule, check->rules, check->failed_count, rule->domain_kind == DOMAIN_PYTHON_ARENA);

	if (were_arenas != are_arenas && check->after->domain[0] == '\0')
		(void)fprintf(
			stream,
			"note: only the %s has Python's arenas; the other was recorded with --python-objects or PYTHONMALLOC=malloc, so their lines differ: record both in the same way\n",
			were_arenas ? "baseline" : "new run");
	else if (has_failed && !(were_sampled && are_sampled))
		(void)fprintf(
			stream,
			"note: lines of small Python objects are not known in %s: record both with KMEMSHIM_PYTHON_OBJECTS "
			"not set, or both with --python-objects\n",
			were_sampled  ? "the new run"
			: are_sampled ? "the baseline"
						  : "both");
}

/* Lines that were not new: the baseline has them under another name. */
static void
put_renamed(const struct check *check, FILE *stream)
{
	for (size_t i = 0; i < check->renamed_count && i < RENAMED_SHOWN; i++)
		(void)fprintf(
			stream,
			"note: %s is compared with %s of the baseline, which is gone: it holds the same amount (%s) and has the same callers\n",
			check->renamed[i].now->where, check->renamed[i].then->where,
			UNITS_BYTES(check->renamed[i].now->live_bytes.min));
	if (check->renamed_count > RENAMED_SHOWN)
		(void)fprintf(stream, "note: %zu more lines are compared with renamed ones\n",
		              check->renamed_count - RENAMED_SHOWN);
}

/* A leak that passes today and may fail in a longer run. */
static void
put_small_leak(const struct check *check, FILE *stream)
{
	char message[CHECK_MESSAGE_BYTES];

	if (check_small_leak_message(check, message))
		(void)fprintf(stream, "%s %s\n", check->failed_count != 0 ? "and" : "ok, but", message);
}

static void
put_sum(const struct check *check, FILE *stream)
{
	bool has_baseline = check->before->run_count != 0;

	(void)fprintf(stream, "%s: %s rule%s failed",
	              check->failed_count == 0 ? "ok"
	              : has_baseline           ? "worse than the baseline"
	                                       : "more than the budget",
	              UNITS_COUNT(check->failed_count), UNITS_S(check->failed_count));
	if (has_baseline)
		(void)fprintf(stream, ", %s line%s%s%s compared", UNITS_COUNT(check->compared_sites),
		              UNITS_S(check->compared_sites), check->after->domain[0] != '\0' ? " of " : "",
		              check->after->domain);
	(void)fprintf(stream, ", %llu run%s", (unsigned long long)check->after->run_count,
	              UNITS_S(check->after->run_count));
	if (has_baseline)
		(void)fprintf(stream, " against %llu", (unsigned long long)check->before->run_count);
	(void)fputc('\n', stream);
}

static void
put_repeat(const struct check *check, FILE *stream)
{
	if (check->repeat[0] != '\0')
		(void)fprintf(stream, "repeat: %s\n", check->repeat);
}

void
render_check_text(const struct check *check, FILE *stream)
{
	if (check->ended_badly != NULL) {
		(void)fprintf(stream, "FAIL   %s\n       %s\n", check->ended_path, check->ended_badly);
		put_repeat(check, stream);
		return;
	}
	put_rules(check, stream);
	put_sum(check, stream);
	put_small_leak(check, stream);
	put_renamed(check, stream);
	if (check->lost_child != NULL)
		(void)fprintf(stream, "note: %s\n", check->lost_child);
	for (size_t i = 0; i < check->note_count; i++)
		(void)fprintf(stream, "note: %s\n", check->notes[i]);
	if (check->failed_count == 0)
		return;
	if (check->before->python_version[0] != '\0')
		put_arena_note(check, stream);
	if (check->before->python_version[0] != '\0' &&
	    strcmp(check->before->python_version, check->after->python_version) != 0)
		(void)fprintf(stream, "note: the baseline was made with Python %s, these runs used %s\n",
		              check->before->python_version, check->after->python_version);
	put_repeat(check, stream);
}
