/*
 * end_log.h - which line of the system's logs tells how the process ended?
 */
#ifndef END_LOG_H
#define END_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/endings.h"
#include "model/model.h"

/* A line of a log that tells how the process ended. */
enum verdict_log_kind {
	VERDICT_LOG_NONE,
	VERDICT_LOG_LIMIT,    // the kernel killed it for a cgroup's limit
	VERDICT_LOG_MACHINE,  // the same for the machine's memory
	VERDICT_LOG_DAEMON,   // a low-memory daemon killed it
	VERDICT_LOG_CRASH,    // it crashed
	VERDICT_LOG_HARDWARE, // memory or a GPU that it used is broken
};
struct verdict_log {
	enum verdict_log_kind kind;
	bool is_by_name;   // the log counts processes of the host: it fits by name and time, not by its number
	bool is_of_thread; // with CRASH: name and time fit, the number does not: it is taken for that of a thread
	bool is_at_stack;  // with CRASH: the address that could not be reached lies where the stack would grow
	// with CRASH: at how many different places programs of this name crashed since the machine started
	uint32_t crash_places;
	uint64_t resident_bytes; // with LIMIT and MACHINE: what it had in memory then; 0 = the line does not say
	char writer[32];         // "kernel", "earlyoom"
	char text[200];          // of the line, its end cut
};

/* VERDICT_LOG_NONE: none does, or nobody may ask. */
struct verdict_log end_log_find(const struct model_process *process, const struct verdict_now *now);

#endif
