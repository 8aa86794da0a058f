/*
 * process_identity.c - which process is this (see process_identity.h)?
 *
 * A session id ends in ".PID" of the process that started the session: who has that pid is the first one, whatever its
 * environment says about the session; everybody who inherits the id is a descendant.
 */
#include "process_identity.h"

#include <string.h>
#include <time.h>

#include "diag.h"
#include "heartbeat.h"
#include "memory_limits.h"
#include "raw_sys.h"
#include "settings.h"
#include "version.h"

static uint64_t
realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Field 22 of /proc/self/stat. The second field may contain anything: counted from the last parenthesis. */
static uint64_t
start_ticks(void)
{
	static char text[1024]; // one thread, at its start; the stack may be small
	const char *at;
	uint64_t ticks = 0;

	memory_limits_read_file("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')');
	for (unsigned field = 2; at != NULL && field < 22; field++) {
		at = strchr(at + 1, ' ');
	}
	for (at = at != NULL ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
		ticks = ticks * 10 + (uint64_t)(*at - '0');
	return ticks;
}

static void
read_link(const char *path, char *buffer, size_t size)
{
	long length = syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size - 1);

	buffer[length > 0 ? length : 0] = '\0';
}

static uint32_t
pid_namespace(void)
{
	struct stat file;

	return raw_stat("/proc/self/ns/pid", &file) == 0 ? (uint32_t)file.st_ino : 0;
}

static bool
is_first(const char *session, uint32_t pid)
{
	char suffix[16];
	size_t length = diag_format(suffix, sizeof(suffix), ".%u", pid);
	size_t whole = strlen(session);

	return whole > length && strcmp(session + whole - length, suffix) == 0;
}

void
process_identity_read(struct kmem_identity *identity)
{
	uint32_t pid = (uint32_t)syscall(SYS_getpid);

	memset(identity, 0, sizeof(*identity));
	identity->pid = pid;
	identity->parent_pid = (uint32_t)getppid();
	identity->start_ticks = start_ticks();
	identity->pid_namespace = pid_namespace();
	identity->start_realtime_ns = realtime_ns();
	identity->start_monotonic_ns = heartbeat_now_ns();
	identity->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	identity->uid = getuid();
	memory_limits_read_file("/proc/sys/kernel/random/boot_id", identity->boot_id, sizeof(identity->boot_id));
	identity->boot_id[strcspn(identity->boot_id, "\n")] = '\0';
	if (settings.session != NULL)
		diag_format(identity->session, sizeof(identity->session), "%s", settings.session);
	else
		diag_format(identity->session, sizeof(identity->session), "%lx.%u", identity->start_realtime_ns / 1000, pid);
	identity->session[strcspn(identity->session, PROCESS_IDENTITY_REFUSED)] = '\0';
	identity->is_first = is_first(identity->session, pid);
	diag_format(identity->tool_version, sizeof(identity->tool_version), "%s", KMEMSHIM_VERSION_TEXT);
	read_link("/proc/self/exe", identity->executable, sizeof(identity->executable));
	read_link("/proc/self/cwd", identity->directory, sizeof(identity->directory));
	identity->command_bytes = (uint32_t)memory_limits_read_file("/proc/self/cmdline", identity->command,
	                                                     sizeof(identity->command));
	memory_limits_read(identity);
}

void
process_identity_name(const struct kmem_identity *identity, char *name, size_t size)
{
	const char *slash = strrchr(identity->executable, '/');
	const char *base = slash != NULL ? slash + 1 : identity->executable;

	char cut[100]; // a file name has 255 bytes

	diag_format(cut, sizeof(cut), "%s", *base != '\0' ? base : "program");
	diag_format(name, size, "%s.%u.%lu", cut, identity->pid, identity->start_ticks);
}
