/*
 * document.h - what a command tells a person, in parts: tables, lines, notes. It is built first, and printed as text or as Markdown.
 *
 *     document_table(&document, NULL, columns);
 *     DOCUMENT_ROW(&document, UNITS_BYTES(line->bytes), line->place);
 *     document_add(&document, DOCUMENT_BELOW, "from", "%s", caller);
 *
 * A column is as wide as its widest cell. One without any cell is left out, and so is a table without rows, with its caption. Texts may come from outside:
 * control characters are replaced.
 *
 * When failing  errors stay in the stream. Without memory the command ends with a message (memory.h).
 */
#ifndef DOCUMENT_H
#define DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct document_column {
	const char *title; // NULL: behind the last one. A table of which all are "" has no line of titles
	int width; // in text, at least; of numbers with the blanks before them; negative: what is no number, to the left
	enum {
		DOCUMENT_CUT,
		DOCUMENT_WRAPPED,
		DOCUMENT_CODE
	} form; // a last column that is wrapped; of Markdown what is code
};

enum document_part {
	DOCUMENT_HEADING,   // above what follows, behind an empty line
	DOCUMENT_LINE,      // as it is
	DOCUMENT_PARAGRAPH, // wrapped; behind its label
	DOCUMENT_BELOW,     // below a row, wrapped; behind its label
	DOCUMENT_SOURCE,    // the same, cut
	DOCUMENT_NOTE,
	DOCUMENT_COMMAND, // for a shell, behind its label
	DOCUMENT_TABLE,
	DOCUMENT_ROW,
};

#define DOCUMENT_COLUMNS_MOST 10

struct document_item {
	enum document_part part;
	const struct document_column *columns; // of a table
	char *texts[DOCUMENT_COLUMNS_MOST];    // of a row its cells; else the text and its label
};

/* All 0 is an empty one. */
struct document {
	struct document_item *items;
	size_t count;
};

/* label: NULL = none */
void document_add(struct document *document, enum document_part part, const char *label, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * What is added next are its rows and what stands below them. caption: a line above it; NULL = none. columns: must outlive the document.
 */
void document_table(struct document *document, const char *caption, const struct document_column *columns);

/* cells: one for each column, then NULL */
void document_row(struct document *document, const char *const *cells);
#define DOCUMENT_ROW(document, ...) document_row(document, (const char *const[]){ __VA_ARGS__, NULL })

/* Both leave it empty. */
void document_put(struct document *document, FILE *stream);
void document_put_markdown(struct document *document, FILE *stream);

/* ---- for the printers ---- */

void document_clear(struct document *document);
/* Marks the columns that have a cell in the rows of a table. rows: behind it. Returns how many items are of the table. */
size_t document_used(const struct document_item *rows, size_t count, bool used[DOCUMENT_COLUMNS_MOST]);

#endif
