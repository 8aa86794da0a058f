/*
 * launcher.c - runs a program with the shim preloaded and tells how it ended.
 *
 * When failing  before the start: one line and exit 2, nothing has been run. Afterwards nothing fails: the program's
 *               status is the caller's result whatever happens to the report.
 */
#include "launch/launcher.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/make_folders.h"
#include "base/machine.h"
#include "base/owner.h"
#include "capture/capture_folder.h"
#include "launch/launcher_guard.h"
#include "launch/launcher_memory.h"
#include "launch/launcher_preload.h"
#include "launch/program.h"

#define FOLDER_MODE 0755   // others may look, and put nothing there whatever the umask is
#define TWICE_NS 500000000 // between two signals of one sender
#define LOOK_SECONDS \
	1 // between two looks for the server of a kernel; a kernel looks as often; and at captures in memory
#define ENDING_LOOKS 60  // after which a program goes on that was asked to end
#define PATIENCE_LOOKS 5 // that a kernel without a server has for its end

static const char shim_name[] = "libkmemshim.so";

/* Signals that a terminal or a supervisor sends: they are passed on while the program runs. */
static const struct {
	int number;
	bool is_key; // what comes from the terminal (the kernel) the program gets by itself
	bool is_end; // asks for an end, of the report too
} signals[] = {
	{ SIGINT, true, true },  { SIGQUIT, true, true },   { SIGTERM, false, true },
	{ SIGHUP, false, true }, { SIGUSR1, false, false }, { SIGUSR2, false, false },
};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

/* How signals were handled when we started; the program gets that back. */
struct dispositions {
	struct sigaction signals[SIGNAL_COUNT];
	struct sigaction child;
	sigset_t mask;
};

static volatile sig_atomic_t program_pid;
static volatile sig_atomic_t passed_on;   // number of the last signal that the program got from us
static volatile sig_atomic_t server_pid;  // that started us and this kernel
static volatile sig_atomic_t is_of_group; // who interrupts signals our whole group, and so the program
static _Atomic uint64_t ended_ns;         // CLOCK_MONOTONIC

static void
forward(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool is_from_kernel = info->si_code > 0;

	(void)context;
	for (size_t i = 0; i < SIGNAL_COUNT; i++) {
		bool is_there_already = signals[i].is_key && (is_from_kernel || (is_of_group && number == SIGINT));

		if (signals[i].number == number && program_pid > 0 && !is_there_already) {
			passed_on = number;
			(void)kill((pid_t)program_pid, number);
		}
	}
	errno = saved;
}

/*
 * The server of a kernel died. A kernel sees that it has a new parent, and ends; but its parent is this process, so we end it. If it
 * does not answer it is killed.
 */
static void
look_for_server(int number)
{
	static int looks; // of this handler alone
	int saved = errno;

	(void)number;
	if (program_pid > 0 && getppid() != server_pid) {
		passed_on = SIGTERM;
		(void)kill((pid_t)program_pid, looks++ < PATIENCE_LOOKS ? SIGTERM : SIGKILL);
	}
	errno = saved;
}

/* Jupyter names itself to a kernel that is to end with it. To be called after the fork: a child inherits neither timer nor handler. */
static void
watch_server(pid_t parent)
{
	const char *named = getenv("JPY_PARENT_PID");
	const struct sigaction look = { .sa_handler = look_for_server, .sa_flags = SA_RESTART };
	const struct itimerval often = { { LOOK_SECONDS, 0 }, { LOOK_SECONDS, 0 } };
	sigset_t alarm;

	if (named == NULL || strtol(named, NULL, 10) != parent || parent <= 1)
		return;
	server_pid = parent;
	(void)sigemptyset(&alarm);
	(void)sigaddset(&alarm, SIGALRM);
	(void)sigaction(SIGALRM, &look, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	(void)setitimer(ITIMER_REAL, &often, NULL);
}

/*
 * While the report is made a signal ends us, as it would end any program. But `timeout` sends its signal twice, to us and to our group:
 * the second one is meant for the program, and may come when the program has ended by the first.
 */
static void
end_report(int number)
{
	int saved = errno;

	/* relaxed: see there */
	if (number != passed_on ||
	    clock_monotonic_ns() - atomic_load_explicit(&ended_ns, memory_order_relaxed) > TWICE_NS) {
		(void)signal(number, SIG_DFL);
		(void)raise(number); // taken when this handler returns
	}
	errno = saved;
}

/* The program has ended: nothing is passed on any more. What nohup ignores stays ignored. */
static void
release_signals(const struct dispositions *before)
{
	const struct sigaction ending = { .sa_handler = end_report, .sa_flags = SA_RESTART };
	const struct itimerval never = { 0 };

	program_pid = 0;
	(void)setitimer(ITIMER_REAL, &never, NULL);
	/* relaxed: read in this thread alone, by the handlers that are installed below */
	atomic_store_explicit(&ended_ns, clock_monotonic_ns(), memory_order_relaxed);
	for (size_t i = 0; i < SIGNAL_COUNT; i++) {
		if (signals[i].is_end && before->signals[i].sa_handler != SIG_IGN)
			(void)sigaction(signals[i].number, &ending, NULL);
	}
}

/* Blocked until the program's pid is known, so that no signal is lost in between. */
static void
take_signals(struct dispositions *before)
{
	const struct sigaction ours = { .sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART };
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t blocked;

	(void)sigemptyset(&blocked);
	for (size_t i = 0; i < SIGNAL_COUNT; i++) {
		(void)sigaddset(&blocked, signals[i].number);
		(void)sigaction(signals[i].number, NULL, &before->signals[i]);
		if (before->signals[i].sa_handler != SIG_IGN) // nohup stays nohup
			(void)sigaction(signals[i].number, &ours, NULL);
	}
	(void)sigaction(SIGCHLD, &plain, &before->child); // where it is ignored nobody learns how a child ended
	(void)sigprocmask(SIG_BLOCK, &blocked, &before->mask);
}

bool
launcher_find_shim(const char *command, char *path, struct fail *fail)
{
	static const char *const places[] = { "../lib/older-glibc/", "", "../lib/", "../lib/" MACHINE_TRIPLET "/",
		                                  "../lib/" MACHINE_TRIPLET "/kmemshim/" };
	char self[PATH_MAX];

	if (command != NULL)
		(void)snprintf(self, sizeof(self), "%s", command);
	else
		program_own(self);
	if (strrchr(self, '/') == NULL)
		return fail_set(fail, EXIT_USAGE, "cannot find %s: /proc is not mounted: mount it", shim_name);
	strrchr(self, '/')[1] = '\0';
	/* A wheel has two: the first is for a glibc before 2.35. */
	for (size_t i = dlsym(RTLD_DEFAULT, "_dl_find_object") != NULL; i < sizeof(places) / sizeof(places[0]); i++) {
		char wanted[PATH_MAX + 64];

		(void)snprintf(wanted, sizeof(wanted), "%s%s%s", self, places[i], shim_name);
		if (realpath(wanted, path) == NULL || access(path, R_OK) != 0)
			continue;
		if (strpbrk(path, " :") != NULL)
			return fail_set(fail, EXIT_USAGE,
			                "%s: the loader cannot preload a path with a blank or a colon: install kmemshim elsewhere",
			                path);
		return true;
	}
	return fail_set(fail, EXIT_USAGE,
	                "cannot find %s in %s or its ../lib: build it with make, or install kmemshim again", shim_name,
	                self);
}

const char *
launcher_folder(const char *named, bool *is_named)
{
	const char *wanted = named != NULL ? named : getenv("KMEMSHIM_OUT");

	*is_named = wanted != NULL && wanted[0] != '\0';
	return *is_named ? wanted : CAPTURE_FOLDER_DEFAULT;
}

bool
launcher_make_folder(const char *named, char *path, struct fail *fail)
{
	bool is_named;
	const char *folder = launcher_folder(named, &is_named);
	uid_t owner;

	if (!is_named && owner_is_anothers(folder, &owner))
		return fail_set(fail, EXIT_USAGE,
		                "%s: this folder belongs to %s: choose another one with -o, or name this one with -o to use it",
		                folder, owner_text(owner, OWNER_ROOM));

	char probe[PATH_MAX + 40];
	bool is_made = make_folders(folder, FOLDER_MODE) && realpath(folder, path) != NULL;
	int file = -1;

	if (is_made) {
		(void)snprintf(probe, sizeof(probe), "%s/.kmemshim.%ld", path, (long)getpid());
		file = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (file < 0)
		return fail_set(fail, EXIT_USAGE, "%s: cannot write captures here (%s): choose another folder with -o", folder,
		                strerror(errno));
	(void)close(file);
	(void)unlink(probe);
	return true;
}

static uint64_t
realtime_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A session has the number of the process that starts it in its name: by that the shim knows the first process. */
static void
name_session(char session[40], uint64_t started_ns, pid_t pid)
{
	(void)snprintf(session, 40, "%" PRIx64 ".%ld", started_ns / 1000, (long)pid);
}

/* Each is from its library's documentation, and was tried. A value that the user has set stays. */
static void
set_system_allocators(void)
{
	static const struct {
		const char *name;
		const char *value;
	} switches[] = {
		// Arrow, so pyarrow and pandas' strings: instead of mimalloc or jemalloc
		{ "ARROW_DEFAULT_MEMORY_POOL", "system" },
		// jemalloc in Rust, so polars: freed pages go back at once
		{ "_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0" },
		{ "G_SLICE", "always-malloc" }, // GLib before 2.76, for small objects
		{ "GLIBCXX_FORCE_NEW", "1" },   // libstdc++'s __pool_alloc and __mt_alloc
	};

	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		(void)setenv(switches[i].name, switches[i].value, 0);
}

static void __attribute__((noreturn))
become_program(const struct launch *launch, pid_t launcher, uint64_t started_ns, const struct dispositions *before,
               const char *preload, pid_t looker, const char *memory, int error_pipe)
{
	char session[40];
	char number[24];

	for (size_t i = 0; i < SIGNAL_COUNT; i++)
		(void)sigaction(signals[i].number, &before->signals[i], NULL);
	(void)sigaction(SIGCHLD, &before->child, NULL);
	name_session(session, started_ns, getpid());
	(void)setenv("KMEMSHIM_SESSION", session, 1);
	if (launch->folder != NULL)
		(void)setenv("KMEMSHIM_OUT", launch->folder, 1);
	if (launch->has_python_objects)
		(void)setenv("KMEMSHIM_PYTHON_OBJECTS", "1", 1);
	if (launch->sample != NULL)
		(void)setenv("KMEMSHIM_SAMPLE", launch->sample, 1);
	if (launch->guard != NULL)
		(void)setenv("KMEMSHIM_GUARD", launch->guard, 1);
	if (launch->snapshots != NULL)
		(void)setenv("KMEMSHIM_SNAPSHOTS", launch->snapshots, 1);
	if (launch->guard_action != NULL)
		(void)setenv("KMEMSHIM_GUARD_ACTION", launch->guard_action, 1);
	(void)snprintf(number, sizeof(number), "%ld", (long)looker);
	if (looker != 0)
		(void)setenv("KMEMSHIM_LOOKER", number, 1);
	else
		(void)unsetenv("KMEMSHIM_LOOKER"); // of a launcher that runs us
	if (memory != NULL)
		(void)setenv("KMEMSHIM_MEMORY", memory, 1);
	else
		(void)unsetenv("KMEMSHIM_MEMORY");
	if (launch->has_system_allocators)
		set_system_allocators();
	if (preload != NULL)
		(void)setenv("LD_PRELOAD", preload, 1);
	if (launch->is_kernel) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != launcher)
			_exit(127); // the server has killed us meanwhile, and counts on the program's end
	}
	(void)sigprocmask(SIG_SETMASK, &before->mask, NULL);
	(void)execvp(launch->arguments[0], launch->arguments);

	int error = errno;

	(void)!write(error_pipe, &error, sizeof(error));
	_exit(127);
}

static void
wait_for(struct launch *launch)
{
	struct rusage usage;
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, launch->pid, 0), .events = POLLIN };
	unsigned looks = 0; // since the program was asked to end

	/* Before Linux 5.3 captures lie in memory until the end. */
	while (end.fd >= 0 && poll(&end, 1, LOOK_SECONDS * 1000) <= 0) {
		bool is_ending = passed_on == SIGTERM && looks++ < ENDING_LOOKS;

		launcher_memory_look(is_ending);
	}
	if (end.fd >= 0)
		(void)close(end.fd);
	while (wait4(launch->pid, &launch->wait_status, 0, &usage) < 0) {
		if (errno != EINTR)
			return;
	}
	launch->ended_realtime_ns = realtime_ns();
	launch->max_resident_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

bool
launcher_run(struct launch *launch, struct fail *fail)
{
	struct dispositions before;
	uint64_t started_ns = realtime_ns();
	pid_t own_pid = getpid();
	pid_t parent = getppid();
	const struct guard_task guard = { launch->folder, launch->guard_action, launch->look, launch->look_stop_ns };
	int pipe_ends[2];

	(void)fflush(NULL);
	pid_t looker = launcher_guard_start(&guard, started_ns); // before there is anything to inherit
	const char *memory = launcher_memory_begin(launch->folder);
	if (pipe2(pipe_ends, O_CLOEXEC) != 0)
		return fail_set(fail, EXIT_USAGE, "%s: cannot start it: %s", launch->arguments[0], strerror(errno));

	char *preload = launch->shim != NULL ? launcher_preload(launch->shim, !launch->is_trial) : NULL;

	/* Jupyter starts a kernel as the leader of a group, and interrupts the whole group; VS Code does neither. */
	is_of_group = launch->is_kernel && getpgrp() == getpid();
	take_signals(&before);
	(void)fflush(NULL);
	launch->pid = fork();
	if (launch->pid == 0)
		become_program(launch, own_pid, started_ns, &before, preload, looker, memory, pipe_ends[1]);
	free(preload);
	(void)close(pipe_ends[1]);
	if (launch->pid < 0) {
		(void)fail_set(fail, EXIT_USAGE, "%s: cannot start it: %s", launch->arguments[0], strerror(errno));
		(void)launcher_guard_end();
		launcher_memory_end();
		return false;
	}
	program_pid = launch->pid;
	(void)sigprocmask(SIG_SETMASK, &before.mask, NULL);
	if (launch->is_kernel)
		watch_server(parent);

	name_session(launch->session, started_ns, launch->pid);
	launch->start_error = 0;
	while (read(pipe_ends[0], &launch->start_error, sizeof(launch->start_error)) < 0 && errno == EINTR)
		continue;
	(void)close(pipe_ends[0]);
	wait_for(launch);
	launch->passed_on = passed_on;
	release_signals(&before); // before a look is waited for: the number of the program may be another's by then
	launch->killed_looks = launcher_guard_end();
	launch->capture[0] = '\0';
	if (launch->folder != NULL && launch->start_error == 0)
		launcher_sign(launch, launch->capture);
	launcher_memory_end(); // last: a copy may take its time
	return true;
}
