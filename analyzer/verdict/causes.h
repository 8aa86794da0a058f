/*
 * causes.h - which death do the facts support, and how sure is that?
 *
 * Safe from   one thread.
 */
#ifndef CAUSES_H
#define CAUSES_H

#include "verdict/facts.h"

/* In the order in which they are tried: from the most to the least specific. */
enum verdict_cause {
	VERDICT_NOT_CLOSED,
	VERDICT_RUNNING,
	VERDICT_EXEC_REPLACED,
	VERDICT_CHILD_KILLED,
	VERDICT_EXITED,
	VERDICT_CONTAINER_LIMIT,
	VERDICT_MACHINE_MEMORY,
	VERDICT_SHM_FULL,
	VERDICT_DEVICE_MEMORY,
	VERDICT_REQUEST_REFUSED,
	VERDICT_LOW_MEMORY_DAEMON,
	VERDICT_CRASHED,
	VERDICT_SIGNAL,
	VERDICT_FAILED,
	VERDICT_GONE,
	VERDICT_NO_PROCESS, // nothing was recorded
	VERDICT_CAUSES
};

enum verdict_confidence {
	VERDICT_NOT_SO, // the facts do not support it
	VERDICT_UNKNOWN,
	VERDICT_POSSIBLE,
	VERDICT_LIKELY,
	VERDICT_CERTAIN,
	VERDICT_CONFIDENCES
};

const char *verdict_cause_name(enum verdict_cause cause);                // "container-limit"
const char *verdict_confidence_name(enum verdict_confidence confidence); // "likely"

/* The first cause that the facts support, and how sure it is; never VERDICT_NO_PROCESS. */
enum verdict_cause verdict_cause_of(const struct verdict_facts *facts, enum verdict_confidence *confidence);

/* A child was killed for memory, though the program did well. */
bool verdict_was_child_killed(const struct verdict_facts *facts);

#endif
