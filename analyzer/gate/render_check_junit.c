/*
 * render_check_junit.c - the result of a check for a CI system: JUnit XML, one test case per rule.
 *
 * Cases: "program ended well", "lines" (none grew), "peak DOMAIN" and "live DOMAIN" of every domain of the baseline or the runs.
 * Their names are the same in every run, so that a CI system can follow them; what failed stands in the failure: the line, and
 * the bytes before, after and allowed; file and line of the case are those of the code. When the program did not end well the others are skipped: its figures say nothing.
 *
 * When failing  errors stay in the stream. Texts are escaped here; they are UTF-8 without control characters already.
 */

#include "gate/check_outputs.h"
#include "gate/check_words.h"

static void
put_escaped(FILE *stream, const char *text)
{
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
			(void)fputc((unsigned char)*text < 0x20 ? '?' : *text, stream);
	}
}

static void
open_case(FILE *stream, const char *kind, const char *subject)
{
	(void)fputs("    <testcase classname=\"kmemshim\" name=\"", stream);
	put_escaped(stream, kind);
	(void)fputs(subject[0] != '\0' ? " " : "", stream);
	put_escaped(stream, subject);
	(void)fputs("\"", stream);
}

/* Where the code is. To be called after open_case(). */
static void
put_place(FILE *stream, const struct check_rule *rule)
{
	if (!check_has_file(rule->file))
		return;
	(void)fputs(" file=\"", stream);
	put_escaped(stream, check_relative(rule->file));
	(void)fputs("\"", stream);
	if (rule->line != 0)
		(void)fprintf(stream, " line=\"%u\"", (unsigned)rule->line);
}

/* In the text of a failure, which is longer than the message. */
static void
put_repeat(FILE *stream, const struct check *check)
{
	if (check->repeat[0] == '\0')
		return;
	(void)fputs("\nrepeat: ", stream);
	put_escaped(stream, check->repeat);
}

static void
put_failure(FILE *stream, const struct check *check, const char *type, const char *message)
{
	(void)fprintf(stream, ">\n      <failure type=\"%s\" message=\"", type);
	put_escaped(stream, message);
	(void)fputs("\">", stream);
	put_escaped(stream, message);
	put_repeat(stream, check);
	(void)fputs("</failure>\n    </testcase>\n", stream);
}

static void
put_domain(FILE *stream, const struct check *check, const struct check_rule *rule, bool is_skipped)
{
	char message[CHECK_MESSAGE_BYTES];

	open_case(stream, check_rule_name(rule), rule->domain);
	if (is_skipped) {
		(void)fputs("><skipped/></testcase>\n", stream);
	} else if (!rule->has_failed) {
		(void)fputs("/>\n", stream);
	} else {
		(void)check_message(check, rule, message);
		put_place(stream, rule);
		put_failure(stream, check, check_rule_name(rule), message);
	}
}

/* One case for all lines: which of them fail changes from run to run, and line numbers with every edit. */
static void
put_lines(FILE *stream, const struct check *check, size_t failed, bool is_skipped)
{
	char message[CHECK_MESSAGE_BYTES];

	open_case(stream, "lines", "");
	if (is_skipped || failed == 0) {
		(void)fputs(is_skipped ? "><skipped/></testcase>\n" : "/>\n", stream);
		return;
	}
	for (size_t i = 0; i < check->rule_count; i++) { // of several lines the worst, which comes first
		if (check->rules[i].kind == CHECK_LEAK) {
			put_place(stream, &check->rules[i]);
			break;
		}
	}
	(void)fprintf(stream, ">\n      <failure type=\"lines\" message=\"%zu line%s\">", failed,
	              failed == 1 ? " holds more than is allowed" : "s hold more than is allowed");
	for (size_t i = 0; i < check->rule_count; i++) {
		if (check->rules[i].kind != CHECK_LEAK)
			continue;
		(void)check_message(check, &check->rules[i], message);
		(void)fprintf(stream, "\n%s: ", check_rule_name(&check->rules[i]));
		put_escaped(stream, message);
	}
	put_repeat(stream, check);
	(void)fputs("\n      </failure>\n    </testcase>\n", stream);
}

static void
put_end(FILE *stream, const struct check *check)
{
	open_case(stream, "program", "ended well");
	if (check->ended_badly != NULL) {
		put_failure(stream, check, "killed", check->ended_badly);
	} else if (check->lost_child != NULL) {
		(void)fputs(">\n      <system-out>", stream);
		put_escaped(stream, check->lost_child);
		(void)fputs("</system-out>\n    </testcase>\n", stream);
	} else {
		(void)fputs("/>\n", stream);
	}
}

void
render_check_junit(const struct check *check, FILE *stream)
{
	bool ended_well = check->ended_badly == NULL;
	size_t lines = 0; // that failed: others are not among the rules
	size_t domains = 0;
	size_t failed = 0;

	for (size_t i = 0; i < check->rule_count; i++) {
		const struct check_rule *rule = &check->rules[i];

		lines += rule->kind == CHECK_LEAK;
		domains += rule->kind != CHECK_LEAK && rule->is_judged;
		failed += rule->kind != CHECK_LEAK && rule->has_failed;
	}
	(void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", stream);
	(void)fprintf(stream,
	              "<testsuites>\n  <testsuite name=\"kmemshim check\" tests=\"%zu\" failures=\"%zu\" "
	              "errors=\"0\" skipped=\"%zu\">\n",
	              domains + 2, ended_well ? failed + (lines != 0) : 1, ended_well ? 0 : domains + 1);
	put_end(stream, check);
	put_lines(stream, check, lines, !ended_well);
	for (size_t i = 0; i < check->rule_count; i++) {
		if (check->rules[i].kind != CHECK_LEAK && check->rules[i].is_judged)
			put_domain(stream, check, &check->rules[i], !ended_well);
	}
	(void)fputs("  </testsuite>\n</testsuites>\n", stream);
}
