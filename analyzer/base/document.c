/* document.c - see document.h: building it, and its text. */
#include "base/document.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/paragraph.h"
#include "base/text_clean.h"

#define GAP 2           // before a column of texts
#define BELOW_COLUMN 20 // where a line below a row begins,
#define LABEL_WIDTH 5   // and how wide its label is
#define HANGING 2       // further lines of a paragraph

static struct document_item *
add_item(struct document *document, enum document_part part)
{
	struct document_item *item = MEMORY_NEXT(document->items, document->count);

	*item = (struct document_item){ .part = part };
	return item;
}

void
document_add(struct document *document, enum document_part part, const char *label, const char *format, ...)
{
	struct document_item *item = add_item(document, part);
	va_list values;

	va_start(values, format);
	item->texts[0] = memory_vprinted(format, values);
	va_end(values);
	(void)text_cleaned(item->texts[0]);
	item->texts[1] = label != NULL ? text_cleaned(memory_text(label)) : NULL;
}

void
document_table(struct document *document, const char *caption, const struct document_column *columns)
{
	struct document_item *item = add_item(document, DOCUMENT_TABLE);

	item->columns = columns;
	item->texts[0] = caption != NULL ? text_cleaned(memory_text(caption)) : NULL;
}

void
document_row(struct document *document, const char *const *cells)
{
	struct document_item *item = add_item(document, DOCUMENT_ROW);

	for (size_t i = 0; cells[i] != NULL; i++)
		item->texts[i] = text_cleaned(memory_text(cells[i]));
}

void
document_clear(struct document *document)
{
	EACH (item, document->items, document->count) {
		for (size_t i = 0; i < DOCUMENT_COLUMNS_MOST; i++)
			free(item->texts[i]);
	}
	free(document->items);
	*document = (struct document){ .count = 0 };
}

size_t
document_used(const struct document_item *rows, size_t count, bool used[DOCUMENT_COLUMNS_MOST])
{
	size_t length = 0;

	for (; length < count && rows[length].part != DOCUMENT_TABLE; length++) {
		for (size_t i = 0; rows[length].part == DOCUMENT_ROW && i < DOCUMENT_COLUMNS_MOST; i++)
			used[i] = used[i] || (rows[length].texts[i] != NULL && rows[length].texts[i][0] != '\0');
	}
	return length;
}

/* ---- text ---- */

struct layout {
	const struct document_column *columns;
	size_t widths[DOCUMENT_COLUMNS_MOST]; // 0 = it is left out
};

static size_t
columns_of(const char *text)
{
	return text_columns(text, strlen(text));
}

static void
put_cells(const struct layout *layout, const char *const *cells, FILE *stream)
{
	size_t column = 0;
	size_t blanks = 0; // due before the next cell

	for (size_t i = 0; layout->columns[i].title != NULL; i++) {
		bool is_text = layout->columns[i].width < 0;
		size_t length = columns_of(cells[i]);
		size_t room = layout->widths[i] > length ? layout->widths[i] - length : 0;

		if (layout->widths[i] == 0)
			continue;
		blanks += !is_text ? room : column + blanks != 0 ? GAP : 0;
		if (length != 0) {
			(void)fprintf(stream, "%*s", (int)blanks, "");
			column += blanks;
			blanks = 0;
		}
		if (layout->columns[i].form == DOCUMENT_WRAPPED) {
			(void)paragraph_put(stream, PAGE_COLUMNS, cells[i], column, column);
			return;
		}
		(void)fputs(cells[i], stream);
		column += length;
		blanks += is_text ? room : 0;
	}
	(void)fputc('\n', stream);
}

/* Titles are written where there is a row. */
static void
begin_table(struct layout *layout, const struct document_item *table, size_t count, FILE *stream)
{
	const char *titles[DOCUMENT_COLUMNS_MOST] = { NULL };
	bool used[DOCUMENT_COLUMNS_MOST] = { false };
	size_t length = document_used(table + 1, count, used);
	bool has_titles = false;

	*layout = (struct layout){ .columns = table->columns };
	for (size_t i = 0; table->columns[i].title != NULL; i++) {
		bool is_number = table->columns[i].width >= 0;
		size_t least = (size_t)abs(table->columns[i].width);
		size_t widest = columns_of(table->columns[i].title);

		titles[i] = table->columns[i].title;
		if (!used[i])
			continue;
		has_titles = has_titles || widest != 0;
		EACH (item, table + 1, length) {
			if (item->part == DOCUMENT_ROW && columns_of(item->texts[i]) > widest)
				widest = columns_of(item->texts[i]);
		}
		widest += is_number && i != 0; // wide ones do not run into each other
		layout->widths[i] = widest > least ? widest : least;
	}
	if (table->texts[0] != NULL && length != 0 && table[1].part == DOCUMENT_ROW)
		(void)fprintf(stream, "%s\n", table->texts[0]);
	if (has_titles)
		put_cells(layout, titles, stream);
}

/* Behind its label, which is `room` wide at least; further lines begin below the text, or a little to the right of a paragraph's. */
static void
put_text(const struct document_item *item, size_t indent, size_t room, FILE *stream)
{
	const char *label = item->texts[1];
	size_t length = label != NULL ? columns_of(label) : 0;
	size_t column = indent + (length > room ? length : label != NULL ? room : 0);

	(void)fprintf(stream, "%*s%s%*s", (int)indent, "", label != NULL ? label : "", (int)(column - indent - length), "");
	if (item->part == DOCUMENT_SOURCE && strlen(item->texts[0]) > PAGE_COLUMNS - column)
		(void)strcpy(item->texts[0] + PAGE_COLUMNS - column - strlen("..."), "...");
	if (item->part == DOCUMENT_SOURCE)
		(void)fprintf(stream, "%s\n", text_cleaned(item->texts[0])); // a letter may be cut in two
	else
		(void)paragraph_put(stream, PAGE_COLUMNS, item->texts[0], column + (label == NULL && indent != 0 ? HANGING : 0),
		                    column);
}

void
document_put(struct document *document, FILE *stream)
{
	struct layout layout = { .columns = NULL };

	for (size_t i = 0; i < document->count; i++) {
		const struct document_item *item = &document->items[i];
		switch (item->part) {
		case DOCUMENT_TABLE:
			begin_table(&layout, item, document->count - i - 1, stream);
			break;
		case DOCUMENT_ROW:
			put_cells(&layout, (const char *const *)item->texts, stream);
			break;
		case DOCUMENT_BELOW:
		case DOCUMENT_SOURCE:
			put_text(item, BELOW_COLUMN, LABEL_WIDTH, stream);
			break;
		case DOCUMENT_PARAGRAPH:
			put_text(item, strspn(item->texts[0], " "), 0, stream);
			break;
		case DOCUMENT_HEADING:
			(void)fprintf(stream, "%s%s\n", i != 0 ? "\n" : "", item->texts[0]);
			break;
		case DOCUMENT_NOTE:
			(void)fprintf(stream, "note: %s\n", item->texts[0]);
			break;
		case DOCUMENT_COMMAND:
			(void)fprintf(stream, "%s: %s\n", item->texts[1], item->texts[0]);
			break;
		case DOCUMENT_LINE:
			(void)fprintf(stream, "%s\n", item->texts[0]);
			break;
		}
	}
	document_clear(document);
}
