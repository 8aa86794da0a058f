/*
 * process_look.h - a recorded process that stands still, with all that is needed to look into it.
 *
 * When failing  false, one line in `fail`, and the process goes on.
 */
#ifndef PROCESS_LOOK_H
#define PROCESS_LOOK_H

#include "holders/live_blocks.h"
#include "holders/process_memory.h"
#include "holders/root_ranges.h"
#include "holders/stopped_process.h"
#include "model/model_load.h"

#define PROCESS_LOOK_NS UINT64_C(1000000000) // for how long it may stand still, when nobody says otherwise

struct process_look {
	struct stopped_process process;
	struct process_memory memory;
	struct live_blocks *blocks;
	struct root_ranges ranges;
	uint64_t stopped_ns; // known when it goes on
};

/*
 * command  for the message
 * capture  that it writes, NULL = that is known to be its own; it is refused when it does not any more, for it became another program meanwhile
 * wait_ns  until its threads stand still, and the list of its blocks is read
 */
bool process_look_open(const char *command, pid_t pid, const char *capture, uint64_t wait_ns, struct process_look *look,
                       struct fail *fail);
/* What its capture says, with records and symbols. NULL: it cannot be read, or is gone: exec removes that of a small program. */
struct model *process_look_model(const char *command, pid_t pid, const char *capture, struct model_options *options,
                                 struct fail *fail);
/* The same for a process that stands still already; its threads become the look's. */
bool process_look_open_stopped(const char *command, const struct stopped_process *process, const char *capture,
                               uint64_t wait_ns, struct process_look *look, struct fail *fail);
/* The same for a process that has a core. */
bool process_look_open_core(const char *command, const char *path, uint64_t wait_ns, struct process_look *look,
                            struct fail *fail);
/* Lets the process go on. False: it was killed meanwhile, and what was found is worth nothing. command: for the message. */
bool process_look_resume(const char *command, struct process_look *look, struct fail *fail);
void process_look_close(struct process_look *look); // and lets it go on, if it stands still

#endif
