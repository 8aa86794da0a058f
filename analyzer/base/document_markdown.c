/*
 * document_markdown.c - a document (document.h) as GitHub and GitLab read it, in a comment on a change or a job's summary.
 *
 * What comes from outside stands in code spans, or is escaped: no text can end its cell, name a person or become a link.
 */
#include "base/document.h"

#include <string.h>

/* The span is marked by more backticks than its longest run of them; a bar would end the cell. */
static void
put_code(const char *text, FILE *stream)
{
	size_t longest = 0;
	size_t run = 0;

	for (const char *at = text; *at != '\0'; at++) {
		run = *at == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	for (size_t i = 0; i <= longest; i++)
		(void)fputc('`', stream);
	(void)fputs(longest != 0 ? " " : "", stream);
	for (const char *at = text; *at != '\0'; at++)
		(void)fprintf(stream, *at == '|' ? "\\|" : "%c", *at);
	(void)fputs(longest != 0 ? " " : "", stream);
	for (size_t i = 0; i <= longest; i++)
		(void)fputc('`', stream);
}

static void
put_escaped(const char *text, FILE *stream)
{
	for (; *text != '\0'; text++) {
		if (strchr("\\`*_[]<>|#&~", *text) != NULL)
			(void)fputc('\\', stream);
		(void)fputc(*text, stream);
		if (*text == '@' || strncmp(text, "://", 3) == 0 || strncasecmp(text, "www.", 4) == 0)
			(void)fputs("<!-- -->", stream); // else a platform tells whom it names, or makes a link of it
	}
}

static void
put_labelled(const struct document_item *item, FILE *stream)
{
	const char *label = item->texts[1] != NULL ? item->texts[1] : "";

	put_escaped(label, stream);
	(void)fputs(label[0] == '\0' || label[strlen(label) - 1] == ' ' ? "" : " ", stream);
	put_escaped(item->texts[0] + strspn(item->texts[0], " "), stream);
}

static const struct document_item *
put_row(const struct document_column *columns, const bool *used, const struct document_item *item,
        const struct document_item *end, FILE *stream)
{
	const char *before = "| ";

	for (size_t i = 0; columns[i].title != NULL; i++) {
		if (!used[i])
			continue;
		(void)fputs(before, stream);
		before = " | ";
		if (columns[i].form == DOCUMENT_CODE && item->texts[i][0] != '\0')
			put_code(item->texts[i], stream);
		else
			put_escaped(item->texts[i], stream);
	}
	for (before = " "; item + 1 < end && (item[1].part == DOCUMENT_BELOW || item[1].part == DOCUMENT_SOURCE);
	     item++, before = "; ") {
		(void)fputs(before, stream);
		put_labelled(&item[1], stream);
	}
	(void)fputs(" |\n", stream);
	return item;
}

static void
put_titles(const struct document_column *columns, const bool *used, FILE *stream)
{
	for (unsigned is_alignment = 0; is_alignment < 2; is_alignment++) {
		(void)fputs(is_alignment ? "|" : "\n|", stream);
		for (size_t i = 0; columns[i].title != NULL; i++) {
			if (used[i])
				(void)fprintf(stream, is_alignment ? "%s|" : " %s |",
				              !is_alignment           ? columns[i].title
				              : columns[i].width >= 0 ? "---:"
				                                      : "---");
		}
		(void)fputs("\n", stream);
	}
}

void
document_put_markdown(struct document *document, FILE *stream)
{
	const struct document_item *end = document->items + document->count;
	const struct document_column *columns = NULL;
	bool used[DOCUMENT_COLUMNS_MOST];

	for (const struct document_item *item = document->items; item < end; item++) {
		const char *before = item == document->items ? "" : "\n";

		switch (item->part) {
		case DOCUMENT_TABLE:
			columns = item->columns;
			memset(used, 0, sizeof(used));
			if (item + 1 < end && document_used(item + 1, (size_t)(end - item - 1), used) != 0 &&
			    item[1].part == DOCUMENT_ROW)
				put_titles(columns, used, stream);
			break;
		case DOCUMENT_ROW:
			item = put_row(columns, used, item, end, stream);
			break;
		case DOCUMENT_COMMAND: // nothing in it can end an indented block
			(void)fprintf(stream, "\n%s:\n\n    %s\n", item->texts[1], item->texts[0]);
			break;
		default:
			(void)fprintf(stream, "%s%s", before,
			              item->part == DOCUMENT_HEADING ? "### "
			              : item->part == DOCUMENT_NOTE  ? "> "
			                                             : "");
			put_labelled(item, stream);
			(void)fputs("\n", stream);
		}
	}
	document_clear(document);
}
