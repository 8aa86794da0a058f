/*
 * fail.h - one error, carried up to the one place that prints it.
 *
 * Functions that can fail return false and fill a struct fail; only main prints it ("kmemshim: " and the text, one
 * line) and exits with its code.
 */
#ifndef FAIL_H
#define FAIL_H

#include <stdbool.h>

/* Exit codes of the contract. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_REGRESSION = 1, // check: something is worse than the baseline allows
	EXIT_PROBLEM = 1,    // doctor: something keeps the program from being recorded
	EXIT_USAGE = 2,      // wrong option, missing path, bad baseline or configuration
	EXIT_CAPTURE = 3,    // the capture cannot be used
	EXIT_KILLED = 4,     // check: the measured program was killed or failed
	EXIT_SKIPPED = 77,   // check: nothing to judge, where that was asked for; as Automake has it
};

struct fail {
	enum exit_code code;
	bool needs_time; // the program stood still for as long as it may: the text lacks the option that allows more
	char text[1024]; // what is wrong, where, what to do next; no newline, control characters replaced
};

/* Fills `fail` and returns false, for `return fail_set(...)`. */
bool fail_set(struct fail *fail, enum exit_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same after it, for a look that had too little time. */
bool fail_late(struct fail *fail);

#endif
