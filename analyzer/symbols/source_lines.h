/*
 * source_lines.h - what does this line of source say, if it is still what ran?
 *
 * The recorder looks at no source file: that would be a system call inside somebody's malloc. A file that was neither written nor
 * renamed since before the program started (mtime, and ctime, which nobody can set back) is what the program read; of any other
 * nothing is shown, nor of a file of another machine. A file that is another one all the same (in a container, in a folder that the
 * program had left) is told by its functions: they begin elsewhere. Of compiled code the source is what was there when the program was
 * built, and has not been replaced since it started. Texts that were recorded (cells) need no file.
 *
 * A capture says who recorded it, and may lie: it names what its reader alone can get at. Such a file is shown only where it lies below the
 * folder that the reader has named; else one line on stderr says why the first of the user's own is not.
 *
 * When failing  no text.
 */
#ifndef SOURCE_LINES_H
#define SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#define SOURCE_LINE_BYTES 200 // of a line; longer ones are cut

struct source_lines;

/* started_ns: CLOCK_REALTIME when the first process that reads sources started, else the first one; 0: no file is looked at.
   project: the folder that the reader has named; NULL: none */
struct source_lines *source_lines_new(uint64_t started_ns, const char *project);
void source_lines_free(struct source_lines *lines);

/* A text that stands for `file`. */
void source_lines_add(struct source_lines *lines, const char *file, const char *text);

/* A line that was run, and what else is known of it. */
struct source_place {
	const char *directory; // where a relative file name begins; "" = unknown
	const char *file;
	const char *path;    // the same as it is on disk
	uint64_t started_ns; // CLOCK_REALTIME when the process that read it started; 0 = the first one
	uint64_t built_ns;   // of compiled code: the file must be older; 0 = it was read when the program ran
	uint32_t line;
	uint32_t first_line;  // of the function that it is in; 0 = unknown
	const char *function; // its name, qualified or not
	bool is_user;         // the user's own code: where it is not shown, that is said
};

/*
 * The line without the space around it, fit to be shown; "" when it is not known. Owned by `lines`.
 *
 * is_changed  set when there is a file, but not the one that ran; of compiled code it is not told
 */
const char *source_lines_find(struct source_lines *lines, const struct source_place *place, bool *is_changed);

/* The whole file, as long as `lines` lives; each line as source_lines_find() gives it, and how many columns it is indented. */
struct source_text {
	const char *const *lines;
	const uint16_t *indents;
	uint32_t line_count;
};
enum source_state {
	SOURCE_KNOWN,
	SOURCE_CHANGED, // written since it ran
	SOURCE_GONE,    // there is no such file any more
	SOURCE_UNKNOWN, // of another machine, another file of that name, not readable
};
/* text: filled where it is known. */
enum source_state source_lines_all(struct source_lines *lines, const struct source_place *place,
                                   struct source_text *text);

#endif
