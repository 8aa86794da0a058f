/*
 * end_log.c - which line of the system's logs tells how the process ended (see end_log.h)?
 *
 * A line is of the process when it has its number and its name and was written while the process lived, or shortly after. Numbers are
 * used again: of several lines the first one after the start counts. A process may have given itself another name: then the line must
 * be of the moment of its end or, where that is not known, of its last sign of life. In a container the log has the numbers of the
 * host. Then a line fits by the program's name and the moment of the end, and that is said. So it does where a thread crashed: the line
 * has the number of the thread.
 *
 * When failing  there is no such line.
 */
#include "analysis/end_log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/place.h"

#define HOST_NAMESPACE UINT32_C(4026531836) // inode of the first pid namespace, the same on every Linux
#define CLOCKS_NS UINT64_C(30000000000)     // the kernel's clock and ours may be so far apart
#define END_NS UINT64_C(5000000000)         // by name: at most so far from the end
#define STACK_BYTES UINT64_C(65536)         // a frame of so much at most is pushed at once
#define CRASH_PLACES_MAX 8
#define PLACE_BYTES 96
#define COMM_BYTES 15 // of a name, in the kernel

/* The number behind `word` in the text; 0 = it is not there. */
static uint32_t
number_behind(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at != NULL ? (uint32_t)strtoul(at + strlen(word), NULL, 10) : 0;
}

/*
 * "Memory failure: 0x12345: Sending SIGBUS to python3:123 due to hardware memory corruption", "MCE: Killing python3:123 due to hardware
 * memory corruption fault at 7f12", "NVRM: Xid (PCI:0000:3b:00): 48, pid=123, name=python3, ...". Of NVIDIA's numbers those alone that
 * are broken hardware: others are often the program's own doing.
 */
static bool
parse_hardware(const char *text, uint32_t *pid, char name[COMM_BYTES + 1])
{
	static const char *const before[] = { "Sending SIGBUS to ", "Killing " };
	static const unsigned broken[] = { 48, 63, 64, 74, 79, 92, 94, 95 };
	unsigned xid = 0;

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const char *at = strstr(text, before[i]);

		if (at != NULL && strstr(at, " due to hardware memory corruption") != NULL &&
		    sscanf(at + strlen(before[i]), "%15[^:]:%u", name, pid) == 2)
			return true;
	}
	if (sscanf(text, "NVRM: Xid (%*[^)]): %u, pid=%u, name=%15[^,]", &xid, pid, name) == 3) {
		for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
			if (broken[i] == xid)
				return true;
		}
	}
	return false;
}

/* What the line tells, and of which process. *name: behind the number, "" where the line has none. */
static enum verdict_log_kind
parse_line(const struct system_log_line *line, uint32_t *pid, char name[COMM_BYTES + 1])
{
	static const char kill_words[] = "Killed process ";
	const char *text = line->text;
	const char *bracket;
	int end = 0;

	name[0] = '\0';
	*pid = 0;
	if (strcmp(line->writer, "kernel") == 0 && (*pid = number_behind(text, kill_words)) != 0) {
		(void)sscanf(strstr(text, kill_words), "Killed process %*u (%15[^)]", name);
		return strstr(text, "emory cgroup") != NULL ? VERDICT_LOG_LIMIT : VERDICT_LOG_MACHINE;
	}
	if (strcmp(line->writer, "kernel") == 0 && parse_hardware(text, pid, name))
		return VERDICT_LOG_HARDWARE;
	/* "python3[123]: segfault at 10 ip ..."; "traps: python3[123] general protection fault ip:..." */
	if (strcmp(line->writer, "kernel") == 0 && (bracket = strchr(text, '[')) != NULL &&
	    sscanf(bracket, "[%u]%n", pid, &end) == 1 && end != 0) {
		const char *start = strncmp(text, "traps: ", 7) == 0 ? text + 7 : text;

		(void)snprintf(name, COMM_BYTES + 1, "%.*s", (int)(bracket - start), start);
		return VERDICT_LOG_CRASH;
	}
	/* earlyoom: sending SIGTERM to process 123 uid 1000 "python3": badness 853, VmRSS 11000 MiB */
	if (strcmp(line->writer, "earlyoom") != 0)
		return VERDICT_LOG_NONE;
	if ((*pid = number_behind(text, "sending SIGTERM to process ")) != 0 ||
	    (*pid = number_behind(text, "sending SIGKILL to process ")) != 0) {
		const char *quote = strchr(text, '"');

		if (quote != NULL)
			(void)sscanf(quote, "\"%15[^\"]", name);
		return VERDICT_LOG_DAEMON;
	}
	return VERDICT_LOG_NONE;
}

/* systemd-oomd: "Killed /user.slice/.../run-u5.scope due to memory pressure for ...": it kills a cgroup, and names that. */
static bool
is_of_cgroup(const struct system_log_line *line, const char *cgroup_path)
{
	char named[400];

	return strcmp(line->writer, "systemd-oomd") == 0 && sscanf(line->text, "Killed %399s due to memory", named) == 1 &&
	       named[0] == '/' && named[1] != '\0' && strstr(cgroup_path, named) != NULL;
}

/* "segfault at 7ffe4d1f3ff8 ip 000055e0c8a6f1a9 sp 00007ffe4d1f4000": a stack that cannot grow any more. */
static bool
is_at_stack(const char *text)
{
	const char *at = strstr(text, "segfault at ");
	const char *sp = strstr(text, " sp ");
	uint64_t addr = at != NULL ? strtoull(at + sizeof("segfault at ") - 1, NULL, 16) : 0;
	uint64_t stack = sp != NULL ? strtoull(sp + sizeof(" sp ") - 1, NULL, 16) : 0;

	return addr != 0 && stack != 0 && (addr > stack ? addr - stack : stack - addr) < STACK_BYTES;
}

/* A thread or a link may have given the process a name of its own: one begins with the other. */
static bool
is_name(const char *name, const char *executable)
{
	const char *base = place_base(executable);
	size_t length = strlen(name) < strlen(base) ? strlen(name) : strlen(base);

	return length >= 3 && strncmp(name, base, length) == 0;
}

static bool
is_within(uint64_t a_ns, uint64_t b_ns, uint64_t most_ns)
{
	return (a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns) < most_ns;
}

static bool
is_crashed(const struct model_process *process)
{
	int status = process->launcher != NULL ? process->launcher->wait_status : 0;

	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS ||
	                               WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGFPE);
}

static bool
is_about(const struct model_process *process, const struct system_log_line *line, struct verdict_log *found)
{
	const struct kmem_identity *identity = process->identity;
	uint64_t ended_ns = model_ended_ns(process);
	char name[COMM_BYTES + 1];
	uint32_t pid;

	if (line->monotonic_ns + CLOCKS_NS < identity->start_monotonic_ns ||
	    (ended_ns != 0 && line->monotonic_ns > ended_ns + CLOCKS_NS))
		return false;
	if (is_of_cgroup(line, identity->cgroup_path)) {
		found->kind = VERDICT_LOG_DAEMON;
		return true;
	}
	found->kind = parse_line(line, &pid, name);
	if (found->kind == VERDICT_LOG_NONE)
		return false;

	bool has_its_name = is_name(name, identity->executable);

	found->is_by_name = identity->pid_namespace != HOST_NAMESPACE;
	if (found->is_by_name)
		return has_its_name && ended_ns != 0 && is_within(line->monotonic_ns, ended_ns, END_NS);
	/* The kernel names the thread that crashed, which has a number of its own. */
	found->is_of_thread = found->kind == VERDICT_LOG_CRASH && pid > identity->pid && is_crashed(process) &&
	                      has_its_name && ended_ns != 0 && is_within(line->monotonic_ns, ended_ns, END_NS);
	return found->is_of_thread ||
	       (pid == identity->pid &&
	        (has_its_name ||
	         (name[0] != '\0' && is_within(line->monotonic_ns, ended_ns ?: model_last_seen_ns(process), CLOCKS_NS))));
}

/* "total-vm:1519412kB, anon-rss:306032kB, file-rss:19464kB, shmem-rss:0kB, ..." */
static uint64_t
resident_of(const char *text)
{
	uint64_t kib = number_behind(text, "anon-rss:");

	kib += number_behind(text, "file-rss:");
	return (kib + number_behind(text, "shmem-rss:")) * 1024;
}

/* Up to what nobody needs: sizes of page tables, registers. */
static void
quote(const struct system_log_line *line, struct verdict_log *found)
{
	static const char *const ends[] = { ", shmem-rss", " UID:", " likely on " };
	size_t length = strlen(line->text);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const char *end = strstr(line->text, ends[i]);

		if (end != NULL && (size_t)(end - line->text) < length)
			length = (size_t)(end - line->text);
	}
	(void)snprintf(found->writer, sizeof(found->writer), "%s", line->writer);
	(void)snprintf(found->text, sizeof(found->text), "%.*s", (int)(length < 190 ? length : 190), line->text);
}

/*
 * Where code was when it crashed: a library and how far from its start, wherever that was loaded. False: the line does not tell, as that
 * of a call through a bad pointer.
 */
static bool
parse_place(const char *text, char *place, size_t bytes)
{
	const char *ip = strstr(text, " ip");
	const char *in = ip != NULL ? strstr(ip, " in ") : NULL;
	unsigned long address = 0;
	unsigned long base = 0;
	char library[64];

	if (in == NULL || (sscanf(ip, " ip %lx", &address) != 1 && sscanf(ip, " ip:%lx", &address) != 1) ||
	    sscanf(in, " in %63[^[][%lx+", library, &base) != 2)
		return false;
	(void)snprintf(place, bytes, "%s+%lx", library, address - base);
	return true;
}

/* Each distinct one, up to a few. */
static uint32_t
count_crash_places(const struct system_log *log, const char *name)
{
	char places[CRASH_PLACES_MAX][PLACE_BYTES];
	uint32_t count = 0;

	for (size_t i = 0; i < log->count && count < CRASH_PLACES_MAX; i++) {
		char of[COMM_BYTES + 1];
		uint32_t pid;
		uint32_t same = 0;

		if (parse_line(&log->lines[i], &pid, of) != VERDICT_LOG_CRASH || strcmp(of, name) != 0 ||
		    !parse_place(log->lines[i].text, places[count], PLACE_BYTES))
			continue;
		while (strcmp(places[same], places[count]) != 0)
			same++;
		count += same == count;
	}
	return count;
}

struct verdict_log
end_log_find(const struct model_process *process, const struct verdict_now *now)
{
	struct verdict_log result = { .kind = VERDICT_LOG_NONE };
	struct system_log log = { .count = 0 };

	if (now->read_log == NULL)
		return result;
	now->read_log(process, &log);
	for (size_t i = 0; i < log.count && result.kind == VERDICT_LOG_NONE; i++) {
		struct verdict_log found = { .kind = VERDICT_LOG_NONE };

		if (is_about(process, &log.lines[i], &found)) {
			quote(&log.lines[i], &found);
			if (found.kind == VERDICT_LOG_LIMIT || found.kind == VERDICT_LOG_MACHINE)
				found.resident_bytes = resident_of(log.lines[i].text);
			found.is_at_stack = found.kind == VERDICT_LOG_CRASH && is_at_stack(log.lines[i].text);
			if (found.kind == VERDICT_LOG_CRASH) {
				char name[COMM_BYTES + 1];
				uint32_t pid;

				(void)parse_line(&log.lines[i], &pid, name);
				found.crash_places = count_crash_places(&log, name);
			}
			result = found;
		}
	}
	system_log_free(&log);
	return result;
}
