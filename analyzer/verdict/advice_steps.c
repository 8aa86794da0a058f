/*
 * advice_steps.c - what is to be done first, where it has nothing to do with memory (see advice_rows.h)?
 */
#include <signal.h>
#include <stdlib.h>

#include "base/items.h"
#include "verdict/advice_rows.h"

bool
is_time_up(const struct verdict_facts *facts, __attribute__((unused)) const struct verdict *verdict)
{
	return facts->refused == NULL && verdict_was_time_up(&facts->model->processes[0], facts->cgroup_kills);
}

ADVICE_TEST(has_no_threads_left, verdict_note_of(facts->process, KMEM_NOTE_THREAD) != NULL)
ADVICE_TEST(has_no_processes_left, verdict_note_of(facts->process, KMEM_NOTE_PROCESS) != NULL)
ADVICE_TEST(has_no_files_left, verdict_note_of(facts->process, KMEM_NOTE_FILES) != NULL)
ADVICE_TEST(has_no_cuda, verdict_note_of(facts->process, KMEM_NOTE_CUDA) != NULL)
/* A program that handles such a signal says so by its status, as a shell does of what it ran. */
ADVICE_TEST(was_told_to_stop, facts->exit_code == 128 + SIGTERM || facts->exit_code == 128 + SIGINT)
ADVICE_TEST(crashes_anywhere, verdict_crashes_anywhere(facts))
ADVICE_TEST(is_without_python, facts->process->python_version == 0)
ADVICE_TEST(is_interrupted, facts->signal == SIGINT)
ADVICE_TEST(is_stopped_by_guard, facts->signal == SIGINT && facts->process->guard.number != 0 &&
                                     facts->process->guard.action == KMEM_GUARD_INTERRUPT)
/* A session that a program opened by itself is named after its own start; a launcher's is older. */
ADVICE_TEST(was_launched,
            strtoull(facts->process->identity->session, NULL, 16) != facts->process->identity->start_realtime_ns / 1000)

static const struct step time_up = { VERDICT_CAUSES, "give-more-time", is_time_up,
	                                 "give it more time, or see what took it so long" };
static const struct step steps[] = {
	{ VERDICT_NOT_CLOSED, "read-where-recorded", NULL,
	  "read it with `kmemshim why` on the machine that recorded it, unless that was restarted, or record again with `kmemshim run`" },
	{ VERDICT_RESTARTED, "see-machine", NULL,
	  "see why the machine started anew: `journalctl -b -1 -e` shows the end of its log before" },
	{ VERDICT_HARDWARE, "test-hardware", NULL,
	  "test the machine's memory and devices, or run it elsewhere: the program is not at fault" },
	{ VERDICT_RUNNING, "watch-growth", NULL, "`kmemshim leaks {capture}` shows what grows" },
	{ VERDICT_EXEC_REPLACED, "look-at-next-program", NULL,
	  "see whether the program that it became is static or setuid: such programs cannot be recorded" },
	{ VERDICT_SHM_FULL, "enlarge-shm", NULL,
	  "give /dev/shm more room (docker run --shm-size), or share less at once: fewer workers, or a smaller prefetch" },
	{ VERDICT_TIME_UP, "give-more-time", NULL, "give it more time, or see what took it so long" },
	{ VERDICT_FILE_LIMIT, "raise-file-limit", NULL, "write less into one file, or raise the limit (ulimit -f)" },
	{ VERDICT_STACK_OVERFLOW, "end-recursion", NULL,
	  "look for a recursion without an end; if it must be so deep, raise the limit (ulimit -s, or the stack size of the thread)" },
	{ VERDICT_ABORTED, "read-error", is_without_python,
	  "read the program's last message; a debugger shows where it was" },
	{ VERDICT_ABORTED, "show-python-crash", NULL,
	  "read the program's last message; run it again with PYTHONFAULTHANDLER=1: then Python shows where it was" },
	{ VERDICT_CRASHED, "test-memory", crashes_anywhere,
	  "look at the crash itself, with a debugger; if it crashes elsewhere each time, test the machine's memory (memtest86+)" },
	{ VERDICT_CRASHED, "debug-crash", is_without_python, "look at the crash itself, with a debugger" },
	{ VERDICT_CRASHED, "show-python-crash", NULL,
	  "look at the crash itself: run it again with PYTHONFAULTHANDLER=1, then Python shows where it was" },
	{ VERDICT_SIGNAL, "see-guard", is_stopped_by_guard, "see below what it held then" },
	{ VERDICT_SIGNAL, "find-interrupter", is_interrupted,
	  "if it was not Ctrl-C, find out who sent the signal: a time limit, a scheduler, a person" },
	{ VERDICT_SIGNAL, "find-sender", NULL, "find out who sent the signal: a time limit, a scheduler, a person" },
	{ VERDICT_FAILED, "use-fewer-threads", has_no_threads_left,
	  "start fewer threads, or raise the limit (ulimit -u, pids.max of the container)" },
	{ VERDICT_FAILED, "use-fewer-processes", has_no_processes_left,
	  "start fewer processes or threads, or raise the limit (ulimit -u, pids.max of the container)" },
	{ VERDICT_FAILED, "close-files", has_no_files_left,
	  "close files that are not needed any more, or raise the limit (ulimit -n)" },
	{ VERDICT_FAILED, "match-driver", has_no_cuda,
	  "read the program's own error message; nvidia-smi shows the driver, and for which CUDA it is" },
	{ VERDICT_FAILED, "find-sender", was_told_to_stop,
	  "find out who sent signal {shell_signal}: Ctrl-C, a time limit, a scheduler, a person" },
	{ VERDICT_FAILED, "read-error", NULL, "read the program's own error message" },
	{ VERDICT_GONE, "see-system-log", was_launched,
	  "see what ended it: the kernel's log of that time (`journalctl -k`, or `dmesg -T`), and the log of the scheduler or "
	  "supervisor that started it" },
	{ VERDICT_GONE, "record-with-run", NULL,
	  "see what ended it: the kernel's log of that time (`journalctl -k`, or `dmesg -T`), and the log of the scheduler or "
	  "supervisor that started it; record it with `kmemshim run -- {command}`: then how it ended is known" },
};

const struct step *
step_of(const struct verdict_facts *facts, const struct verdict *verdict)
{
	const struct step *found = FIRST(step, steps, COUNT_OF(steps),
	                                 step->cause == verdict->cause &&
	                                     (step->applies == NULL || step->applies(facts, verdict)));

	return found != NULL && is_time_up(facts, verdict) ? &time_up : found;
}
