/*
 * test_document.c - is a column as wide as its widest cell, and can a text from outside leave its cell?
 */
#include "test.h"

#include "base/document.h"

static const struct document_column columns[] = {
	{ "bytes", 9, 0 }, { "calls", 6, 0 },           { "never", 9, 0 },
	{ "of", -4, 0 },   { "at", -1, DOCUMENT_CODE }, { .title = NULL },
};

static void
build(struct document *document)
{
	document_add(document, DOCUMENT_HEADING, NULL, "Held");
	document_table(document, "nobody", columns); // has no row
	document_table(document, "all lines", columns);
	DOCUMENT_ROW(document, "≈1.0 MiB", "10,000,000,000", "", "heap", "a|b`c``d.py:1 <f>\n");
	document_add(document, DOCUMENT_BELOW, "f\033m", "main \033[1m");
	document_add(document, DOCUMENT_BELOW, NULL, "%095d %s", 0, "wrapped");
	document_add(document, DOCUMENT_SOURCE, "line", "%099d", 0);
	DOCUMENT_ROW(document, "12 B", "1", "", "", "g");
	document_add(document, DOCUMENT_NOTE, NULL, "<all> @me");
	document_add(document, DOCUMENT_COMMAND, "repeat", "a; b");
}

static void
is_printed(void (*put)(struct document *, FILE *), const char *wanted)
{
	struct document document = { .count = 0 };
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	build(&document);
	put(&document, stream);
	assert_int_equal(document.count, 0);
	assert_int_equal(fclose(stream), 0);
	assert_string_equal(text, wanted);
	free(text);
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000000000" // 70

TEST(as_text)
{
	is_printed(document_put, "Held\n"
	                         "all lines\n"
	                         "    bytes          calls  of    at\n"
	                         " ≈1.0 MiB 10,000,000,000  heap  a|b`c``d.py:1 <f>?\n"
	                         "                    f?m  main ?[1m\n"
	                         "                    " ZEROS "0000000000000000000000000\n"
	                         "                      wrapped\n"
	                         "                    line " ZEROS "00...\n"
	                         "     12 B              1        g\n"
	                         "note: <all> @me\n"
	                         "repeat: a; b\n");
}

TEST(as_markdown)
{
	is_printed(document_put_markdown,
	           "### Held\n"
	           "\n| bytes | calls | of | at |\n|---:|---:|---|---|\n"
	           "| ≈1.0 MiB | 10,000,000,000 | heap | ``` a\\|b`c``d.py:1 <f>? ``` f?m main ?\\[1m; " ZEROS
	           "0000000000000000000000000 wrapped; line " ZEROS "00000000000000000000000000000 |\n"
	           "| 12 B | 1 |  | `g` |\n"
	           "\n> \\<all\\> @<!-- -->me\n"
	           "\nrepeat:\n\n    a; b\n");
}

RUN_TESTS(NULL, NULL)
