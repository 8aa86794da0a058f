/*
 * check_words.h - what do all outputs of a check say alike?
 */
#ifndef CHECK_WORDS_H
#define CHECK_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/check.h"

struct check_rule_text {
	const char *name;    // "leak"; stands in files that people keep: it never changes
	const char *summary; // one sentence
};

/* Of all rules. One of them is "ended": the program was killed or failed. */
extern const struct check_rule_text check_rule_texts[];
extern const size_t check_rule_text_count;

/* "live bytes of heap rose from 0 B to 30.0 MiB, allowed 1.0 MiB (0, 31457280, 1048576 bytes), allocated at train.py:52" */
#define CHECK_MESSAGE_BYTES 1024
const char *check_message(const struct check *check, const struct check_rule *rule, char message[CHECK_MESSAGE_BYTES]);

/* "11.0 MiB"; of a budget, what is allowed on top of it comes after it: "1.0 MiB + 9.8 MiB for suppressed lines". */
#define CHECK_LIMIT_BYTES 128
#define CHECK_LIMIT_ROOM ((char[CHECK_LIMIT_BYTES]){ 0 }) // as PLACE_ROOM
const char *check_limit_text(const struct check_rule *rule, char text[CHECK_LIMIT_BYTES]);

/* The new leaks that are within the tolerance, the largest named. False: there are none. */
bool check_small_leak_message(const struct check *check, char message[CHECK_MESSAGE_BYTES]);

/* Which file and line a CI system is shown. */
struct check_place {
	const char *file; // relative to the folder in which the check runs, if it is below that
	uint32_t line;    // never 0
	bool is_known;    // false: no file; `file` is the program's name
};
struct check_place check_place(const struct check *check, const char *file, uint32_t line);

/* What failed: that the program did not end well, which says it all, or each rule, and the new leaks within the tolerance. */
struct check_issue {
	const char *rule;
	const char *identity;
	enum { CHECK_WARNING, CHECK_ERROR, CHECK_ENDED } level;
	const char *message;
	const char *file;
	uint32_t line;
};
void check_visit(const struct check *check, void visit(const struct check *, void *, const struct check_issue *),
                 void *context);

/* Is it a file that a person can open, no notebook's cell and no "<string>"? */
bool check_has_file(const char *file);

/* The path below the folder in which the check runs, as CI systems want it. */
const char *check_relative(const char *file);

/* The name by which the next run's result is found to be the same, whatever its figures: "line/heap/0123456789ab". */
#define CHECK_IDENTITY_BYTES 160

#endif
