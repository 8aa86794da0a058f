/*
 * process_identity.c - which process is this (see process_identity.h)?
 *
 * A session id ends in ".PID" of the process that started the session. The process with that pid is the first one, whatever its
 * environment says about the session. A process that inherits the id is a descendant.
 */
#include "periodic/process_identity.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "base/settings.h"
#include "version.h"

static uint64_t
realtime_ns(void)
{
	struct timespec now = { 0 };

	(void)raw_sys_clock(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Field 22 of /proc/self/stat. The second field may contain anything: counted from the last parenthesis. */
static uint64_t
start_ticks(void)
{
	static char text[1024]; // one thread, at its start; the stack may be small
	uint64_t ticks = 0;

	memory_limits_read_file("/proc/self/stat", text, sizeof(text));

	const char *at = strrchr(text, ')');

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
	long length = raw_syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size - 1);

	buffer[length > 0 ? length : 0] = '\0';
}

static void
leave_out_folder(char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash != NULL)
		memmove(path, slash + 1, strlen(slash + 1) + 1);
}

static const char version[] = KMEMSHIM_VERSION_MARK KMEMSHIM_VERSION_TEXT;

static uint32_t
pid_namespace(void)
{
	struct stat file;

	return raw_stat("/proc/self/ns/pid", &file) == 0 ? (uint32_t)file.st_ino : 0;
}

void
process_identity_read(struct kmem_identity *identity)
{
	uint32_t pid = (uint32_t)raw_syscall(SYS_getpid);

	memset(identity, 0, sizeof(*identity));
	identity->pid = pid;
	identity->parent_pid = (uint32_t)getppid();
	identity->start_realtime_ns = realtime_ns();
	identity->start_monotonic_ns = clock_now_ns();
	identity->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	identity->uid = getuid();
	if (settings.session != NULL)
		diag_format(identity->session, sizeof(identity->session), "%s", settings.session);
	else
		diag_format(identity->session, sizeof(identity->session), "%lx.%u", identity->start_realtime_ns / 1000, pid);
	identity->session[strcspn(identity->session, SETTINGS_SESSION_MARKS)] = '\0';
	identity->is_first = settings_session_is_of(identity->session, pid);
	diag_format(identity->tool_version, sizeof(identity->tool_version), "%s",
	            version + sizeof(KMEMSHIM_VERSION_MARK) - 1);
	read_link("/proc/self/exe", identity->executable, sizeof(identity->executable));
	if (settings.is_private) {
		leave_out_folder(identity->executable);
	} else {
		read_link("/proc/self/cwd", identity->directory, sizeof(identity->directory));
		identity->command_bytes = (uint32_t)memory_limits_read_file("/proc/self/cmdline", identity->command,
		                                                            sizeof(identity->command));
	}
}

void
process_identity_read_more(struct kmem_identity *identity)
{
	identity->start_ticks = start_ticks();
	identity->pid_namespace = pid_namespace();
	memory_limits_read_file("/proc/sys/kernel/random/boot_id", identity->boot_id, sizeof(identity->boot_id));
	identity->boot_id[strcspn(identity->boot_id, "\n")] = '\0';
	memory_limits_read(identity);
}

void
process_identity_name(const struct kmem_identity *identity, uint32_t pid, uint64_t start_ticks, char *name, size_t size)
{
	const char *slash = strrchr(identity->executable, '/');
	const char *base = slash != NULL ? slash + 1 : identity->executable;

	char cut[100]; // a file name has 255 bytes

	diag_format(cut, sizeof(cut), "%s", *base != '\0' ? base : "program");
	diag_format(name, size, "%s.%u.%lu", cut, pid, start_ticks);
}

uint64_t
process_identity_static_bytes(void)
{
	const Elf64_Phdr *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
	uint64_t bytes = 0;

	for (unsigned long i = 0; headers != NULL && i < getauxval(AT_PHNUM); i++) {
		if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_W) != 0)
			bytes += headers[i].p_memsz;
	}
	return bytes;
}

/* Is it Python that will become the command: the script `kmemshim` of a wheel, or python -m kmemshim? */
static bool
will_be_our_own_command(void)
{
	static char text[1024]; // one thread, at its start; the stack may be small
	size_t length = memory_limits_read_file("/proc/self/cmdline", text, sizeof(text));
	const char *arguments[3] = { "", "", "" };
	size_t at = 0;

	for (unsigned i = 0; i < 3 && at < length; i++) {
		arguments[i] = text + at;
		at += strlen(text + at) + 1;
	}
	if (strcmp(arguments[1], "-m") == 0)
		return strcmp(arguments[2], "kmemshim") == 0;
	const char *slash = strrchr(arguments[1], '/');
	return slash != NULL && strcmp(slash, "/kmemshim") == 0;
}

bool
process_identity_is_our_own_command(void)
{
	char path[KMEM_TEXT_BYTES];

	read_link("/proc/self/exe", path, sizeof(path));
	const char *slash = strrchr(path, '/');
	return slash != NULL &&
	       (strcmp(slash, "/kmemshim") == 0 || (strstr(slash, "py") != NULL && will_be_our_own_command()));
}
