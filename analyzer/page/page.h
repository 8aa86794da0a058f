/*
 * page.h - the report as a page for a browser: one file, which needs nothing else.
 *
 * page_data.c writes what is known as JSON, page.js draws it, page.css says how it looks; d3 (Debian's libjs-d3) is in the file, too.
 * All texts of the program are hostile: they stand in the JSON alone, without a '<', and page.js never makes HTML of them.
 *
 * When failing  errors stay in the stream.
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdbool.h>
#include <stdio.h>

struct report;

struct page_options {
	bool has_source; // texts of the program's lines and of its own files
};

/* report: of all lines, ranked by rank_sites. */
void page_render(const struct report *report, const struct page_options *options, FILE *stream);

/* The JSON in it. */
void page_data_write(const struct report *report, const struct page_options *options, FILE *stream);

#endif
