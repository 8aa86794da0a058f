/*
 * causes.h - which death do the facts support, and how sure is that?
 */
#ifndef CAUSES_H
#define CAUSES_H

#include "verdict/facts.h"

/* In the order in which they are tried: from the most to the least specific. The last column is the name in JSON. */
#define VERDICT_CAUSE_ROWS(CAUSE)                                    \
	CAUSE(RESTARTED, restarted, "machine-restarted")                 \
	CAUSE(NOT_CLOSED, not_closed, "not-closed")                      \
	CAUSE(RUNNING, running, "running")                               \
	CAUSE(EXEC_REPLACED, exec_replaced, "exec-replaced")             \
	CAUSE(CHILD_KILLED, child_killed, "child-killed")                \
	CAUSE(EXITED, exited, "exited")                                  \
	CAUSE(CONTAINER_LIMIT, container_limit, "container-limit")       \
	CAUSE(MACHINE_MEMORY, machine_memory, "machine-memory")          \
	CAUSE(HARDWARE, hardware, "hardware")                            \
	CAUSE(SHM_FULL, shm_full, "shm-full")                            \
	CAUSE(DEVICE_MEMORY, device_memory, "device-memory")             \
	CAUSE(REQUEST_REFUSED, request_refused, "request-refused")       \
	CAUSE(LOW_MEMORY_DAEMON, low_memory_daemon, "low-memory-daemon") \
	CAUSE(TIME_UP, time_up, "time-up")                               \
	CAUSE(FILE_LIMIT, file_limit, "file-size-limit")                 \
	CAUSE(STACK_OVERFLOW, stack_overflow, "stack-overflow")          \
	CAUSE(ABORTED, aborted, "aborted")                               \
	CAUSE(CRASHED, crashed, "crashed")                               \
	CAUSE(SIGNAL, signal, "signal")                                  \
	CAUSE(FAILED, failed, "failed")                                  \
	CAUSE(GONE, gone, "gone")

enum verdict_cause {
#define VERDICT_CAUSE_OF_ROW(cause, function, name) VERDICT_##cause,
	VERDICT_CAUSE_ROWS(VERDICT_CAUSE_OF_ROW) VERDICT_NO_PROCESS, // nothing was recorded
	VERDICT_CAUSES
};

#define VERDICT_CONFIDENCE_ROWS(CONFIDENCE)                    \
	CONFIDENCE(NOT_SO, NULL) /* the facts do not support it */ \
	CONFIDENCE(UNKNOWN, "unknown")                             \
	CONFIDENCE(POSSIBLE, "possible")                           \
	CONFIDENCE(LIKELY, "likely")                               \
	CONFIDENCE(CERTAIN, "certain")

enum verdict_confidence {
#define VERDICT_CONFIDENCE_OF_ROW(confidence, name) VERDICT_##confidence,
	VERDICT_CONFIDENCE_ROWS(VERDICT_CONFIDENCE_OF_ROW) VERDICT_CONFIDENCES
};

/* By number; NULL behind the last. */
const char *verdict_cause_name(unsigned cause);           // "container-limit"
const char *verdict_confidence_name(unsigned confidence); // "likely"

/* The first cause that the facts support, and how sure it is; never VERDICT_NO_PROCESS. */
enum verdict_cause verdict_cause_of(const struct verdict_facts *facts, enum verdict_confidence *confidence);

/* More memory would have let the program go on. */
bool verdict_was_memory_short(enum verdict_cause cause);

/* Its guard was passed, and sent it SIGINT. */
bool verdict_has_guard_interrupted(const struct verdict_facts *facts);

/* A child was killed for memory, though the program did well. */
bool verdict_was_child_killed(const struct verdict_facts *facts);

#endif
