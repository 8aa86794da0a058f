/*
 * findings.h - what a verdict is made of.
 *
 * Safe from   one thread.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include "verdict/causes.h"
#include "verdict/facts.h"

#define VERDICT_ADVICE_MAX 8

/* In texts: what verdict.c replaces at the end, so that a command can be copied. */
#define VERDICT_CAPTURE "\1"
#define VERDICT_COMMAND "\2"
#define VERDICT_CHILD "\3" // the capture of lost_child

struct verdict {
	enum verdict_cause cause;
	enum verdict_confidence confidence;
	enum verdict_end end;
	const struct model_process *process;    // NULL only for an empty model
	const struct model_process *lost_child; // gone without a mark, though it is not what this is about; NULL = none
	struct verdict_memory memory;           // as in the facts
	uint64_t untouched_bytes;               // the same
	bool has_ended_well;                    // the program, and none of its processes was killed for memory
	size_t advice_count;
	const char *advice[VERDICT_ADVICE_MAX]; // names of what `next` says, in order; see advice.c
	char text[4096];                        // a paragraph, one line
	char next[1024];                        // one thing to do; a command in backquotes
};

#endif
