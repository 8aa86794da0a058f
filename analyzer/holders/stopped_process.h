/*
 * stopped_process.h - every thread of a process stands still, for a while.
 *
 * By ptrace: SEIZE, then INTERRUPT. Nothing is changed in the process: no signal, no register, no memory. When this command dies
 * meanwhile, the kernel lets the process go on. This command ends itself by SIGALRM when it is held up for too long, as a full cgroup
 * may do.
 *
 * When failing  false, and one line in `fail`: forbidden, traced by another process, gone, or a thread that did not stop in time. The
 *               process goes on.
 */
#ifndef STOPPED_PROCESS_H
#define STOPPED_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fail.h"
#include "base/machine.h"

struct stopped_thread {
	pid_t number;
	int signal; // that was on its way to it and is handed on; 0 = none
	uint64_t stack_addr;
	uint64_t thread_addr; // of its control block: thread-local variables lie below
	uint64_t code_addr;
	uint64_t registers[MACHINE_REGISTERS]; // general ones that may hold a pointer
};

struct stopped_process {
	pid_t pid;
	size_t count;
	struct stopped_thread *threads;
	bool is_image;     // no process: what a core has of it
	bool is_ending;    // its other threads are gone, and what stood on their stacks is not
	uint64_t since_ns; // CLOCK_MONOTONIC: when the first one stopped
	bool was_killed;   // meanwhile; known when it was let go
};

/* After wait_ns and so many seconds more this command is ended; tests have less. */
extern unsigned stopped_process_grace_s;

/* command: for the message. wait_ns: how long the threads may take until they stand still. */
bool stopped_process_stop(const char *command, pid_t pid, uint64_t wait_ns, struct stopped_process *process,
                          struct fail *fail);

/* Reads the registers of a thread that stands still; one file for each processor. Where they cannot be read they stay as they were. */
void stopped_registers_read(struct stopped_thread *thread);
/* The same from struct user_regs_struct, as a core has it. */
void stopped_registers_take(struct stopped_thread *thread, const void *registers, size_t bytes);

/* For each of `registers` its number in debug information; UINT8_MAX = none. */
extern const uint8_t stopped_registers_dwarf[MACHINE_REGISTERS];

/*
 * Lets the process go on. Returns how long it stood still. Nothing but SIGKILL ends a process that stands still; its memory is gone
 * then, and what was read of it is incomplete. The threads' list stays until stopped_process_free().
 */
uint64_t stopped_process_resume(struct stopped_process *process);
void stopped_process_free(struct stopped_process *process);

#endif
