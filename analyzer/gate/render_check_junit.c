/*
 * render_check_junit.c - the result of a check for a CI system: JUnit XML, one test case per rule.
 *
 * Cases: "program ended well", "lines" (none grew), "peak DOMAIN" and "live DOMAIN" of every domain of the baseline or the runs.
 * Their names are the same in every run, so that a CI system can follow them; what failed stands in the failure: the line, and
 * the bytes before, after and allowed; file and line of the case are those of the code. When the program did not end well the others are skipped: its figures say nothing.
 *
 * When failing  errors stay in the stream. Texts are escaped here; they are UTF-8 without control characters already.
 */

#include "base/items.h"
#include "base/memory.h"
#include "gate/check_outputs.h"
#include "gate/check_words.h"

/* For free(). */
static char *
escaped(const char *text)
{
	char *made;
	FILE *stream = memory_stream(&made, NULL);

	for (; *text != '\0'; text++) {
		const char *entity = *text == '<'    ? "&lt;"
		                     : *text == '>'  ? "&gt;"
		                     : *text == '&'  ? "&amp;"
		                     : *text == '"'  ? "&quot;"
		                     : *text == '\'' ? "&apos;"
		                                     : NULL;

		if (entity != NULL)
			(void)fputs(entity, stream);
		else
			(void)fputc((unsigned char)*text < 0x20 && *text != '\n' ? '?' : *text, stream);
	}
	memory_stream_close(stream);
	return made;
}

/* place: NULL = it is no place in the code. inside: what is in its element; NULL = it passed. */
static void
put_case(FILE *stream, const char *name, const struct check_rule *place, const char *inside)
{
	OWNED char *safe = escaped(name);

	(void)fprintf(stream, "    <testcase classname=\"kmemshim\" name=\"%s\"", safe);
	if (place != NULL && check_has_file(place->file)) {
		OWNED char *file = escaped(check_relative(place->file));

		(void)fprintf(stream, " file=\"%s\"", file);
		if (place->line != 0)
			(void)fprintf(stream, " line=\"%u\"", (unsigned)place->line);
	}
	if (inside == NULL)
		(void)fputs("/>\n", stream);
	else
		(void)fprintf(stream, ">%s</testcase>\n", inside);
}

/* text: longer than the message, and the command that repeats it comes behind it. For free(). */
static char *
failure_of(const struct check *check, const char *type, const char *message, const char *text, const char *end)
{
	OWNED char *safe = escaped(message);
	OWNED char *whole = memory_printed("%s%s%s%s", text, check->repeat[0] != '\0' ? "\nrepeat: " : "", check->repeat,
	                                   end);
	OWNED char *inside = escaped(whole);

	return memory_printed("\n      <failure type=\"%s\" message=\"%s\">%s</failure>\n    ", type, safe, inside);
}

static void
put_domain(FILE *stream, const struct check *check, const struct check_rule *rule)
{
	char message[CHECK_MESSAGE_BYTES];
	OWNED char *name = memory_printed("%s %s", check_rule_name(rule), rule->domain);
	OWNED char *failure = NULL;

	(void)check_message(check, rule, message);
	if (rule->has_failed && check->ended_badly == NULL)
		failure = failure_of(check, check_rule_name(rule), message, message, "");
	put_case(stream, name, failure != NULL ? rule : NULL, check->ended_badly != NULL ? "<skipped/>" : failure);
}

/* One case for all lines: which of them fail changes from run to run, and line numbers with every edit. */
static void
put_lines(FILE *stream, const struct check *check, size_t failed)
{
	const struct check_rule *worst = FIRST(rule, check->rules, check->rule_count, rule->kind == CHECK_LEAK);
	char message[CHECK_MESSAGE_BYTES];
	char *text;
	FILE *all = memory_stream(&text, NULL);

	EACH (rule, check->rules, check->rule_count) {
		if (rule->kind == CHECK_LEAK)
			(void)fprintf(all, "\n%s: %s", check_rule_name(rule), check_message(check, rule, message));
	}
	memory_stream_close(all);
	OWNED char *lines = text;
	OWNED char *failure = failure_of(
		check, "lines",
		TEXT(64, "%zu line%s", failed, failed == 1 ? " holds more than is allowed" : "s hold more than is allowed"),
		lines, "\n      ");

	if (check->ended_badly != NULL)
		put_case(stream, "lines", NULL, "<skipped/>");
	else
		put_case(stream, "lines", worst, failed != 0 ? failure : NULL);
}

static void
put_end(FILE *stream, const struct check *check)
{
	OWNED char *lost = escaped(check->lost_child != NULL ? check->lost_child : "");
	OWNED char *inside = check->ended_badly != NULL
	                         ? failure_of(check, "killed", check->ended_badly, check->ended_badly, "")
	                     : lost[0] != '\0' ? memory_printed("\n      <system-out>%s</system-out>\n    ", lost)
	                                       : NULL;

	put_case(stream, "program ended well", NULL, inside);
}

void
render_check_junit(const struct check *check, FILE *stream)
{
	bool ended_well = check->ended_badly == NULL;
	size_t lines = SUM_OF(rule, check->rules, check->rule_count,
	                      rule->kind == CHECK_LEAK); // that failed: others are no rules
	size_t domains = SUM_OF(rule, check->rules, check->rule_count, rule->kind != CHECK_LEAK && rule->is_judged);
	size_t failed = SUM_OF(rule, check->rules, check->rule_count, rule->kind != CHECK_LEAK && rule->has_failed);

	(void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", stream);
	(void)fprintf(stream,
	              "<testsuites>\n  <testsuite name=\"kmemshim check\" tests=\"%zu\" failures=\"%zu\" "
	              "errors=\"0\" skipped=\"%zu\">\n",
	              domains + 2, ended_well ? failed + (lines != 0) : 1, ended_well ? 0 : domains + 1);
	put_end(stream, check);
	put_lines(stream, check, lines);
	EACH (rule, check->rules, check->rule_count) {
		if (rule->kind != CHECK_LEAK && rule->is_judged)
			put_domain(stream, check, rule);
	}
	(void)fputs("  </testsuite>\n</testsuites>\n", stream);
}
