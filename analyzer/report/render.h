/*
 * render.h - the ways in which a report is written.
 *
 * Each renderer writes to a stream and leaves its errors there; output.c checks them once.
 */
#ifndef RENDER_H
#define RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/grouping.h"

struct document;
struct fail;
struct model_site;
struct report;
struct report_line;
struct report_place;

/* Which parts of the report a text shows. The JSON always has everything. */
enum render_scope { RENDER_ALL, RENDER_HOST, RENDER_DEVICES };

struct render_options {
	bool is_native;          // show native frames in the text as well
	enum render_scope scope; // of lines in tables
	const char *heading;     // NULL = the ranking's own
};

void render_json(const struct report *report, FILE *stream);
extern const struct json_object report_object;

/* Parts of the text, in the order in which a page has them. */
void render_verdict(const struct report *report, struct document *document);
/* Its beginning alone, in lines of `columns`: what happened, what to do, and a bar of where the memory was. Returns how many lines it takes. */
size_t render_headline(const struct report *report, size_t columns, const char *bold, const char *off, FILE *stream);
void render_guard(const struct report *report, struct document *document); // nothing where no guard was passed
/* Steps and marks; nothing where there are none. */
void render_marks(const struct report *report, bool has_all, struct document *document);
void render_totals(const struct report *report, struct document *document);
void render_lines(const struct report *report, const struct render_options *options, struct document *document);
/* What the row's line of code says, under its row; nothing when it is not known. */
void render_source(const struct report_place *where, struct document *document);
void render_holder(const struct holders_way *way, uint64_t samples, struct document *document); // below a line
void render_stack(const struct report *report, const struct report_line *line, const struct render_options *options,
                  struct document *document);
void render_losses(const struct report *report, struct document *document); // nothing when there are none
void render_peak_error(const struct report *report,
                       struct document *document);                           // one line; nothing when peaks are exact
void render_efforts(const struct report *report, struct document *document); // nothing in older captures
void render_remarks(const struct report *report, struct document *document); // refused requests, losses, damage, notes

/* ", summed over 3 processes"; "" of one. What sums are of: a domain, or "the host's memory". And a line where devices are in none. */
#define RENDER_SUMMED_ROOM ((char[64]){ 0 })
const char *render_summed(const struct report *report, char text[64]);
const char *render_what(const struct report *report);
void render_left_devices(bool has_devices, struct document *document);

/*
 * One line that says that a process never held at once what its domains held at their peaks. peak_bytes: the sum of these. Nothing is
 * added where there is one domain or several processes, or where the peaks came at about the same time.
 */
#define CLEAR_PART 200 // of a figure: a smaller error does not show in its three digits
void render_peaks_apart(const struct report *report, uint64_t peak_bytes, struct document *document);
/*
 * "1.0 MiB of it in memory", below a row. Only where much of what it shows is not: else it says nothing, and is false. The other: below a
 * heading whose figure is what is in memory.
 */
const char *render_in_memory_text(uint64_t untouched_bytes, uint64_t shown_bytes, char text[64]);
bool render_in_memory(uint64_t untouched_bytes, uint64_t shown_bytes, struct document *document);
void render_untouched(uint64_t untouched_bytes, uint64_t held_bytes, struct document *document);

/* A tree of callers, made of sites of the report, of the domain that it is about. */
struct tree_options {
	const char *heading;
	uint64_t (*bytes_of)(const struct model_site *site); // what a site is given
	bool is_peak;                                        // what is given is that of the peak
	bool is_of_all_time;    // what is given was not held at once: of other figures what was not in memory is left out
	bool is_native;         // native frames, too
	bool has_all;           // every caller: what passes memory on, start-up, the import system, allocators
	enum grouping grouping; // what its nodes are
};
void render_tree(const struct report *report, const struct tree_options *options, struct document *document);

/* The report's ranking, by groups instead of lines. top: groups at most. */
void render_groups(const struct report *report, enum grouping grouping, uint64_t top, struct document *document);

/* A source file, and beside each line what it held. */
struct annotate_options {
	const char *file; // a path, the end of one, a module ("pkg.sub"), a cell ("In[3]")
	bool has_all;     // long stretches of lines without memory, too
};
/* notes: a stream for remarks. False and *fail: no file of that name allocated anything, or several did. */
bool render_annotate(const struct report *report, const struct annotate_options *options, struct document *document,
                     FILE *notes, struct fail *fail);

/* What was wasted, ranked by rank_sites; top: lines of each kind. */
void render_waste(const struct report *report, uint64_t top, struct document *document);

/* The short report that a person sees when the program has ended. */
struct glance_options {
	size_t columns; // of a line
	bool has_color;
	const char *domain; // lines of this one alone; NULL = all
};
/* Ranks the report anew. False and *fail: the domain is none of the capture's. */
bool render_glance(struct report *report, const struct glance_options *options, FILE *stream, struct fail *fail);

#endif
