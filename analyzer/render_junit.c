/*
 * render_junit.c - the result of a check for a CI system: JUnit XML, one test case per rule.
 *
 * Rules: "program" (it ended well), "peak DOMAIN", "live DOMAIN", "leaks" (no site grew), and one case for each line
 * that leaks. The failure's message names the line and the bytes before, after and allowed.
 *
 * Called by   cmd_check.c.
 * When failing  errors stay in the stream. Texts are escaped here; they are UTF-8 without control characters already.
 */

#include "check.h"
#include "render.h"
#include "units.h"

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

static void
put_failure(FILE *stream, const char *type, const char *message)
{
	(void)fprintf(stream, ">\n      <failure type=\"%s\" message=\"", type);
	put_escaped(stream, message);
	(void)fputs("\"/>\n    </testcase>\n", stream);
}

static void
put_rule(FILE *stream, const struct check_rule *rule)
{
	char before[UNITS_TEXT_BYTES];
	char after[UNITS_TEXT_BYTES];
	char limit[UNITS_TEXT_BYTES];
	char message[768];

	open_case(stream, check_kind_name(rule->kind), rule->kind == CHECK_LEAK ? rule->where : rule->domain);
	if (!rule->has_failed) {
		(void)fputs("/>\n", stream);
		return;
	}
	(void)snprintf(message, sizeof(message), "%s of %s rose from %s to %s, allowed %s (%llu, %llu, %llu bytes)%s%s",
	               rule->kind == CHECK_PEAK ? "peak" : "live bytes", rule->domain,
	               units_bytes(rule->before_bytes, before), units_bytes(rule->after_bytes, after),
	               units_bytes(rule->limit_bytes, limit), (unsigned long long)rule->before_bytes,
	               (unsigned long long)rule->after_bytes, (unsigned long long)rule->limit_bytes,
	               rule->where[0] != '\0' ? ", allocated at " : "", rule->where);
	put_failure(stream, check_kind_name(rule->kind), message);
}

void
render_check_junit(const struct check *check, FILE *stream)
{
	bool ended_well = check->ended_badly == NULL;
	size_t leaks = 0;
	size_t domain_rules = 0;
	size_t cases;

	for (size_t i = 0; ended_well && i < check->rule_count; i++) {
		leaks += check->rules[i].kind == CHECK_LEAK;
		domain_rules += check->rules[i].kind != CHECK_LEAK && check->rules[i].is_judged;
	}
	cases = ended_well ? 1 + domain_rules + (leaks != 0 ? leaks : 1) : 1;
	(void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", stream);
	(void)fprintf(stream, "<testsuites>\n  <testsuite name=\"kmemshim check\" tests=\"%zu\" failures=\"%zu\" "
	                      "errors=\"0\" skipped=\"0\">\n",
	              cases, ended_well ? check->failed_count : 1);
	open_case(stream, "program", "ended well");
	if (ended_well && check->lost_child != NULL) {
		(void)fputs(">\n      <system-out>", stream);
		put_escaped(stream, check->lost_child);
		(void)fputs("</system-out>\n    </testcase>\n", stream);
	} else if (ended_well) {
		(void)fputs("/>\n", stream);
	} else {
		put_failure(stream, "killed", check->ended_badly);
	}
	for (size_t i = 0; ended_well && i < check->rule_count; i++) {
		if (check->rules[i].is_judged)
			put_rule(stream, &check->rules[i]);
	}
	if (ended_well && leaks == 0) {
		open_case(stream, "leak", "none");
		(void)fputs("/>\n", stream);
	}
	(void)fputs("  </testsuite>\n</testsuites>\n", stream);
}
