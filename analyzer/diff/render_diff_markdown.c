/*
 * render_diff_markdown.c - what changed, for a comment on a change: Markdown as GitHub and GitLab read it.
 *
 * When failing  errors stay in the stream. Places come from outside: they stand in code spans, which nothing in them can end.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "diff/diff_words.h"
#include "report/markdown.h"

static void
put_bytes(uint64_t bytes, FILE *stream)
{
	(void)fprintf(stream, " %s |", UNITS_BYTES(bytes));
}

static void
put_change(int64_t change, FILE *stream)
{
	(void)fprintf(stream, " %s |", diff_change_text(change, DIFF_CHANGE_ROOM));
}

static void
put_row(const struct diff *diff, const struct diff_row *row, FILE *stream)
{
	OWNED char *remark = diff_remark(diff, row);
	OWNED char *name = diff_name(diff, diff_row_where(diff, row));

	(void)fputs("|", stream);
	put_change(row->live_change, stream);
	put_bytes(row->then.live_bytes, stream);
	put_bytes(row->now.live_bytes, stream);
	put_change(row->peak_change, stream);
	put_bytes(row->then.peak_bytes, stream);
	put_bytes(row->now.peak_bytes, stream);
	(void)fprintf(stream, " %s | ", diff_row_domain(row));
	markdown_code(name, stream);
	if (remark[0] != '\0') {
		(void)fputs(" ", stream);
		markdown_escaped(remark, stream);
	}
	(void)fputs(" |\n", stream);
}

static void
put_section(const struct diff *diff, enum diff_state state, uint64_t top, FILE *stream)
{
	struct diff_section section = diff_section(diff, state, top);
	char rest[DIFF_REST_BYTES];

	if (diff->counts[state] == 0)
		return;
	(void)fprintf(stream, "\n### %s\n\n", diff_heading(diff, state));
	if (section.shown != 0)
		(void)fputs("| change at the end | old | new | change at the peak | old | new | domain | allocated at |\n"
		            "|---:|---:|---:|---:|---:|---:|---|---|\n",
		            stream);
	for (size_t i = 0; i < section.shown; i++)
		put_row(diff, &section.rows[i], stream);
	for (unsigned i = 0; diff_rest_text(diff, &section, i, rest); i++)
		(void)fprintf(stream, "%s- %s\n", i == 0 && section.shown != 0 ? "\n" : "", rest);
}

void
render_diff_markdown(const struct diff *diff, uint64_t top, FILE *stream)
{
	OWNED char *headline = diff_headline(diff);
	char *note;

	markdown_escaped(headline, stream);
	(void)fputs("\n", stream);
	for (unsigned i = 0; (note = diff_note(diff, i)) != NULL; i++) {
		(void)fputs("\n> ", stream);
		markdown_escaped(note, stream);
		(void)fputs("\n", stream);
		free(note);
	}
	for (enum diff_state state = DIFF_CHANGED; state < DIFF_SAME; state++)
		put_section(diff, state, top, stream);
}
