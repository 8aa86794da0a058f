/*
 * render_check_markdown.c - the result of a check as Markdown: GitHub's job summary, a comment on a change.
 *
 * When failing  errors stay in the stream. Texts from outside stand in code spans or are escaped (markdown.h).
 */

#include "base/units.h"
#include "gate/check_outputs.h"
#include "gate/check_words.h"
#include "report/markdown.h"

#define ROWS_MAX 20

static void
put_row(const struct check_rule *rule, FILE *stream)
{
	(void)fprintf(stream, "| %s | %s | ",
	              !rule->is_judged   ? "-"
	              : rule->has_failed ? "**FAIL**"
	                                 : "ok",
	              check_rule_name(rule));
	markdown_escaped(rule->domain, stream); // a pattern, too
	(void)fprintf(stream, " | %s | %s | %s | ", rule->has_before ? UNITS_BYTES(rule->before_bytes) : "",
	              UNITS_BYTES(rule->after_bytes),
	              rule->is_judged ? check_limit_text(rule, CHECK_LIMIT_ROOM) : "not judged: address space");
	if (rule->where[0] != '\0')
		markdown_code(rule->where, stream);
	(void)fputs(" |\n", stream);
}

static void
put_note(const char *note, FILE *stream)
{
	(void)fputs("\n> ", stream);
	markdown_escaped(note, stream);
	(void)fputc('\n', stream);
}

/* An indented block: nothing in the command can end it. */
static void
put_repeat(const struct check *check, FILE *stream)
{
	if (check->repeat[0] != '\0')
		(void)fprintf(stream, "\nRepeat it:\n\n    %s\n", check->repeat);
}

void
render_check_markdown(const struct check *check, FILE *stream)
{
	char message[CHECK_MESSAGE_BYTES];

	if (check->ended_badly != NULL) {
		(void)fputs("### Memory: the program did not end well\n", stream);
		put_note(check->ended_badly, stream);
		put_repeat(check, stream);
		return;
	}
	if (check->failed_count != 0)
		(void)fprintf(stream, "### Memory: %zu rule%s failed\n", check->failed_count, UNITS_S(check->failed_count));
	else
		(void)fputs("### Memory: ok\n", stream);
	(void)fputs("\n| | rule | of | before | now | allowed | line |\n|---|---|---|---:|---:|---:|---|\n", stream);
	for (size_t i = 0; i < check->rule_count && i < ROWS_MAX; i++)
		put_row(&check->rules[i], stream);
	if (check->rule_count > ROWS_MAX)
		(void)fprintf(stream, "\n%zu more rows are left out.\n", check->rule_count - ROWS_MAX);
	if (check_small_leak_message(check, message))
		put_note(message, stream);
	if (check->lost_child != NULL)
		put_note(check->lost_child, stream);
	for (size_t i = 0; i < check->note_count; i++)
		put_note(check->notes[i], stream);
	if (check->failed_count != 0)
		put_repeat(check, stream);
}
