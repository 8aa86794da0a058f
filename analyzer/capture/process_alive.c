/*
 * process_alive.c - does the process of a capture run now (see process_alive.h)?
 */
#include "capture/process_alive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/read_each.h"
#include "base/text_start.h"
#include "base/regular_file.h"

#define NOT_RUNNING UINT64_MAX
#define OUTERMOST_NAMESPACE 0xeffffffcu // of pids, in which all are seen: PROC_PID_INIT_INO of linux/proc_ns.h

static size_t
read_text(const char *path, char *text, size_t room)
{
	OWNED_STREAM FILE *file = fopen(path, "re");
	size_t got = file != NULL ? fread(text, 1, room - 1, file) : 0;

	text[got] = '\0';
	return got;
}

/* When did the process of this name in /proc start? */
static uint64_t
start_of(const char *name)
{
	char text[2048];
	char state;
	uint64_t start_ticks;

	if (read_text(TEXT(48, "/proc/%.20s/stat", name), text, sizeof(text)) == 0)
		return NOT_RUNNING;

	/* The name in parentheses may hold anything; field 22 counts from its last parenthesis. */

	const char *after_name = strrchr(text, ')');

	if (after_name == NULL ||
	    sscanf(after_name, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
	           &state, &start_ticks) != 2)
		return NOT_RUNNING;
	return state != 'Z' && state != 'X' ? start_ticks : NOT_RUNNING;
}

bool
process_is_dead(const char *pid)
{
	return start_of(pid) == NOT_RUNNING;
}

static uint32_t
own_namespace(void)
{
	struct stat file;

	return stat("/proc/self/ns/pid", &file) == 0 ? (uint32_t)file.st_ino : 0;
}

uint32_t
process_inner_pid(const char *pid)
{
	EACH_LINE (line, TEXT(48, "/proc/%.20s/status", pid)) {
		if (text_starts(line, "NSpid:\t"))
			return (uint32_t)strtoul(strrchr(line, '\t') + 1, NULL, 10);
	}
	return 0;
}

struct running {
	char name[24]; // in /proc
	uint64_t start_ticks;
};

/* All that ran at the first look: captures may be many, and so may processes. Ends with one without a name. */
static const struct running *
all_running(void)
{
	static struct running *all;
	size_t count = 0;

	if (all != NULL)
		return all;
	EACH_NAME (name, "/proc") {
		struct running one = { .start_ticks = name[0] >= '0' && name[0] <= '9' ? start_of(name) : NOT_RUNNING };

		if (one.start_ticks == NOT_RUNNING)
			continue;
		(void)snprintf(one.name, sizeof(one.name), "%.20s", name);
		*MEMORY_NEXT(all, count) = one;
	}
	*MEMORY_NEXT(all, count) = (struct running){ 0 };
	return all;
}

/* In a container below ours its pid is another one here. name: filled where it runs. */
static bool
runs_below(const struct kmem_identity *identity, char name[24])
{
	for (const struct running *one = all_running(); one->name[0] != '\0'; one++) {
		if (one->start_ticks == identity->start_ticks && process_inner_pid(one->name) == identity->pid &&
		    start_of(one->name) == identity->start_ticks) {
			(void)snprintf(name, 24, "%s", one->name);
			return true;
		}
	}
	return false;
}

static bool
is_elsewhere(const struct kmem_identity *identity)
{
	return identity->pid_namespace != 0 && identity->pid_namespace != own_namespace();
}

bool
process_is_hidden(const struct kmem_identity *identity)
{
	return is_elsewhere(identity) && own_namespace() != OUTERMOST_NAMESPACE;
}

/* name: in /proc, filled where it runs. */
static bool
is_running(const struct kmem_identity *identity, char name[24])
{
	char text[64];

	if (identity->pid == 0 || identity->start_ticks == NOT_RUNNING || identity->boot_id[0] == '\0' ||
	    read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text)) == 0 ||
	    strncmp(text, identity->boot_id, strcspn(text, "\n")) != 0)
		return false;
	if (is_elsewhere(identity))
		return runs_below(identity, name);
	(void)snprintf(name, 24, "%" PRIu32, identity->pid);
	return start_of(name) == identity->start_ticks;
}

bool
process_is_alive(const struct kmem_identity *identity)
{
	char name[24];

	return is_running(identity, name);
}

uint64_t
process_resident_bytes(const struct kmem_identity *identity)
{
	char name[24];
	char text[128];
	uint64_t pages;

	return is_running(identity, name) && read_text(TEXT(48, "/proc/%s/statm", name), text, sizeof(text)) != 0 &&
	               sscanf(text, "%*u %" SCNu64, &pages) == 1
	           ? pages * identity->page_bytes
	           : 0;
}
