/*
 * render_check.c - the result of a check for a person: in a terminal, and as Markdown in GitHub's job summary or a comment on a change.
 */
#include <string.h>

#include "base/document.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/units.h"
#include "gate/check_outputs.h"
#include "gate/check_words.h"

#define RENAMED_SHOWN 5
#define MARKDOWN_ROWS 20

static const struct document_column columns[] = {
	{ "", -4, 0 },
	{ "rule", -5, 0 },
	{ "of", -4, 0 },
	{ "before", 11, 0 },
	{ "now", 11, 0 },
	{ "allowed", -9, 0 },
	{ "line", -1, DOCUMENT_CODE },
	{ .title = NULL },
};

static const char *
novelty(const struct check_rule *rule)
{
	if (rule->kind != CHECK_LEAK || !rule->is_new)
		return NULL;
	if (rule->is_grown && !rule->is_leak)
		return "new, kept most of what it allocated during the run";
	return rule->is_leak ? "new" : "new, may leak (the run is too short to tell: measure a longer one)";
}

static void
add_rule(const struct check_rule *rule, struct document *document)
{
	DOCUMENT_ROW(document,
	             !rule->is_judged   ? "-"
	             : rule->has_failed ? "FAIL"
	                                : "ok",
	             check_rule_name(rule), rule->domain, rule->has_before ? UNITS_BYTES(rule->before_bytes) : "",
	             UNITS_BYTES(rule->after_bytes),
	             rule->is_judged ? check_limit_text(rule, CHECK_LIMIT_ROOM) : "not judged: address space", rule->where);
	if (rule->where[0] != '\0' && novelty(rule) != NULL)
		document_add(document, DOCUMENT_BELOW, NULL, "%s", novelty(rule));
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
add_rules(const struct check *check, size_t most, struct document *document)
{
	size_t left_out = 0;
	size_t shown = 0;

	document_table(document, NULL, columns);
	for (size_t i = 0; i < check->rule_count; i++) {
		const struct check_rule *rule = &check->rules[i];

		if (ANY(first, check->rules, i, is_of_line(first, rule)))
			continue;
		if (++shown > most) {
			left_out++;
			continue;
		}
		add_rule(rule, document);
		EACH (other, rule + 1, check->rule_count - i - 1) {
			if (is_of_line(other, rule))
				document_add(document, DOCUMENT_BELOW, NULL, "also %s of %s: %s, allowed %s", check_rule_name(other),
				             other->domain, UNITS_BYTES(other->after_bytes), check_limit_text(other, CHECK_LIMIT_ROOM));
		}
	}
	if (left_out != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%zu more rows are left out", left_out);
}

static const char *
which_of(bool is_of_baseline)
{
	return is_of_baseline ? "the baseline" : "the new run";
}

/* Lines of small Python objects are in another domain where they were recorded one by one, and are not known where nothing was. */
static void
add_arena_note(const struct check *check, struct document *document)
{
	bool were_sampled = baseline_find_domain(check->before, "python/object") != NULL;
	bool are_sampled = baseline_find_domain(check->after, "python/object") != NULL;
	bool were_arenas = baseline_find_domain(check->before, "python/arena") != NULL;
	bool are_arenas = baseline_find_domain(check->after, "python/arena") != NULL;
	bool has_failed = ANY(rule, check->rules, check->failed_count, rule->domain_kind == DOMAIN_PYTHON_ARENA);

	if (were_arenas != are_arenas && check->after->domain[0] == '\0')
		document_add(
			document, DOCUMENT_NOTE, NULL,
			"only %s has Python's arenas; the other was recorded with --python-objects or PYTHONMALLOC=malloc, so their lines differ: record both in the same way",
			which_of(were_arenas));
	else if (has_failed && !(were_sampled && are_sampled))
		document_add(document, DOCUMENT_NOTE, NULL,
		             "lines of small Python objects are not known in %s: record both with KMEMSHIM_PYTHON_OBJECTS not "
		             "set, or both with --python-objects",
		             were_sampled || are_sampled ? which_of(are_sampled) : "both");
}

/* Lines that were not new: the baseline has them under another name. */
static void
add_renamed(const struct check *check, struct document *document)
{
	for (size_t i = 0; i < check->renamed_count && i < RENAMED_SHOWN; i++)
		document_add(
			document, DOCUMENT_NOTE, NULL,
			"%s is compared with %s of the baseline, which is gone: it holds the same amount (%s) and has the same callers",
			check->renamed[i].now->where, check->renamed[i].then->where,
			UNITS_BYTES(check->renamed[i].now->live_bytes.min));
	if (check->renamed_count > RENAMED_SHOWN)
		document_add(document, DOCUMENT_NOTE, NULL, "%zu more lines are compared with renamed ones",
		             check->renamed_count - RENAMED_SHOWN);
}

static void
add_sum(const struct check *check, struct document *document)
{
	unsigned long long runs = check->after->run_count;

	if (check->before->run_count != 0)
		document_add(document, DOCUMENT_LINE, NULL, "%s line%s%s%s compared, %llu run%s against %llu",
		             UNITS_COUNT(check->compared_sites), UNITS_S(check->compared_sites),
		             check->after->domain[0] != '\0' ? " of " : "", check->after->domain, runs, UNITS_S(runs),
		             (unsigned long long)check->before->run_count);
	else
		document_add(document, DOCUMENT_LINE, NULL, "%llu run%s against the budget", runs, UNITS_S(runs));
}

static const char *
heap_recorded(const struct baseline *baseline, char text[64])
{
	if (baseline->heap_sample_bytes == 0)
		return "each block";
	return memory_text_in(text, 64, "a sample (KMEMSHIM_SAMPLE=%s)", UNITS_BYTES(baseline->heap_sample_bytes));
}

static void
add_notes(const struct check *check, struct document *document)
{
	const char *python = check->before->python_version;
	char message[CHECK_MESSAGE_BYTES];

	if (check_small_leak_message(check, message)) // it passes today, and may fail in a longer run
		document_add(document, DOCUMENT_NOTE, NULL, "%s", message);
	add_renamed(check, document);
	if (check->lost_child != NULL)
		document_add(document, DOCUMENT_NOTE, NULL, "%s", check->lost_child);
	for (size_t i = 0; i < check->note_count; i++)
		document_add(document, DOCUMENT_NOTE, NULL, "%s", check->notes[i]);
	if (check->before->run_count != 0 && check->before->heap_sample_bytes != check->after->heap_sample_bytes)
		document_add(
			document, DOCUMENT_NOTE, NULL,
			"of the heap the baseline has %s, and these runs %s, so their lines differ: record both in the same way",
			heap_recorded(check->before, (char[64]){ "" }), heap_recorded(check->after, (char[64]){ "" }));
	if (check->failed_count == 0 || python[0] == '\0')
		return;
	add_arena_note(check, document);
	if (strcmp(python, check->after->python_version) != 0)
		document_add(document, DOCUMENT_NOTE, NULL, "the baseline was made with Python %s, these runs used %s", python,
		             check->after->python_version);
}

static void
build(const struct check *check, size_t most, struct document *document)
{
	if (check->ended_badly != NULL) {
		document_add(document, DOCUMENT_HEADING, NULL, "Memory: the program did not end well");
		document_add(document, DOCUMENT_NOTE, NULL, "%s: %s", check->ended_path, check->ended_badly);
	} else {
		const char *failed = TEXT(64, "%s rule%s failed", UNITS_COUNT(check->failed_count),
		                          UNITS_S(check->failed_count));

		document_add(document, DOCUMENT_HEADING, NULL, "Memory: %s", check->failed_count != 0 ? failed : "ok");
		add_rules(check, most, document);
		add_sum(check, document);
		add_notes(check, document);
	}
	if (check->repeat[0] != '\0' && (check->failed_count != 0 || check->ended_badly != NULL))
		document_add(document, DOCUMENT_COMMAND, "repeat", "%s", check->repeat);
}

void
render_check_text(const struct check *check, FILE *stream)
{
	struct document document = { .count = 0 };

	build(check, SIZE_MAX, &document);
	document_put(&document, stream);
}

void
render_check_markdown(const struct check *check, FILE *stream)
{
	struct document document = { .count = 0 };

	build(check, MARKDOWN_ROWS, &document);
	document_put_markdown(&document, stream);
}
