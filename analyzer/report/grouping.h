/*
 * grouping.h - to which function, file, module, package or thread do the bytes of a stack belong?
 *
 * function, file   of the line that the report names, which is the user's own where there is one
 * module           of the innermost code that asked for them, whoever's that is
 * package          the installed package that this line called; the user's own code, where it called none
 * thread           what the thread runs: the capture does not tell threads apart that run the same
 *
 * What imports and the interpreter's start left belongs to its package, and is one group of its own elsewhere.
 */
#ifndef GROUPING_H
#define GROUPING_H

#include <stdbool.h>

#include "base/place.h"
#include "report/report.h"

#define GROUPING_NAMES "line, function, file, module, package or thread"
enum grouping {
	GROUPING_LINE,
	GROUPING_FUNCTION,
	GROUPING_FILE,
	GROUPING_MODULE,
	GROUPING_PACKAGE,
	GROUPING_THREAD,
	GROUPINGS
};

/* False: no such word. */
bool grouping_of(const char *word, enum grouping *grouping);
const char *grouping_name(enum grouping grouping);

/* part: the line or function in the group that says most of it; "" = none. Both without control characters. */
void grouping_of_site(enum grouping grouping, const struct report_site *site, char group[PLACE_TEXT_BYTES],
                      char part[PLACE_TEXT_BYTES]);

/* "main thread", "threads of worker". */
void grouping_thread(const struct report_site *site, char text[PLACE_TEXT_BYTES]);

/* The group of one frame, for a tree. False: the frame belongs to its caller's group. */
bool grouping_of_frame(enum grouping grouping, const struct report_frame *frame, char text[PLACE_TEXT_BYTES]);

#define GROUPING_IMPORTS "left by imports and the interpreter"

#endif
