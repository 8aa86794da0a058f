/*
 * system_log.c - lines of the kernel's buffer and of the journal (see system_log.h).
 *
 * When failing  see system_log.h. A line in a form that is not known is passed over.
 */
#include "base/system_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/items.h"
#include "base/json_read.h"
#include "base/memory.h"
#include "base/text_clean.h"

#define KLOG_READ_ALL 3 // syslog(2)
#define KLOG_SIZE 10
#define JOURNAL_WAIT_MS 2000
#define JOURNAL_MAX_BYTES (8u << 20)
#define MARGIN_SECONDS 3600

/* Parts of messages that tell of an end, from the kernel's source, systemd's and earlyoom's. */
static const char *const telling[] = {
	"Killed process ",    " segfault at ",   "traps: ",         " general protection",
	"sending SIGTERM to", "sending SIGKILL", " due to memory ", " due to hardware memory corruption",
	"NVRM: Xid",
};

static bool
is_telling(const char *text)
{
	return ANY(word, telling, COUNT_OF(telling), strstr(text, *word) != NULL);
}

static void
add_line(struct system_log *log, uint64_t monotonic_ns, const char *writer, const char *text)
{
	if (!is_telling(text))
		return;

	struct system_log_line *line = MEMORY_NEXT(log->lines, log->count);

	*line = (struct system_log_line){ .monotonic_ns = monotonic_ns };
	(void)snprintf(line->writer, sizeof(line->writer), "%s", writer);
	(void)snprintf(line->text, sizeof(line->text), "%s", text);
	(void)text_clean(line->text, strlen(line->text));
}

/* "<6>[40450.271326] text": without times in the buffer (printk.time=0) nothing says when that was. */
static void
take_kernel_line(struct system_log *log, char *line)
{
	double seconds;
	int end = 0;
	char *text = line[0] == '<' ? strchr(line, '>') : NULL;

	if (text == NULL || sscanf(text + 1, "[%lf] %n", &seconds, &end) != 1 || end == 0)
		return;
	text += 1 + end;
	/* Between time and text there may be the thread or processor that wrote it: "[T123] ". */
	if (text[0] == '[' && strchr(text, ']') != NULL)
		text = strchr(text, ']') + 1;
	add_line(log, (uint64_t)(seconds * 1e9), "kernel", text + strspn(text, " "));
}

void
system_log_read_kernel(struct system_log *log)
{
	int size = klogctl(KLOG_SIZE, NULL, 0);
	char *line;

	if (size <= 0)
		return;

	OWNED char *buffer = memory_zeroed((size_t)size + 1, 1);
	int length = klogctl(KLOG_READ_ALL, buffer, size);

	buffer[length > 0 ? length : 0] = '\0';

	char *rest = buffer;

	while ((line = strsep(&rest, "\n")) != NULL)
		take_kernel_line(log, line);
}

/* ---- the journal ---- */

static pid_t
start_journal(const char *boot_id, uint64_t from, uint64_t to, int *output)
{
	char boot[64] = "_BOOT_ID=";
	size_t length = strlen(boot);
	int ends[2];

	for (const char *at = boot_id; *at != '\0' && length < sizeof(boot) - 1; at++) {
		if (*at != '-')
			boot[length++] = *at;
	}
	char *since = TEXT(40, "@%llu", (unsigned long long)(from > MARGIN_SECONDS ? from - MARGIN_SECONDS : 0));
	char *until = TEXT(40, "@%llu", (unsigned long long)to + MARGIN_SECONDS);

	char *const words[] = { (char[]){ "journalctl" },
		                    (char[]){ "-q" },
		                    (char[]){ "--no-pager" },
		                    (char[]){ "-o" },
		                    (char[]){ "json" },
		                    (char[]){ "-S" },
		                    since,
		                    (char[]){ "-U" },
		                    until,
		                    (char[]){ "-t" },
		                    (char[]){ "kernel" },
		                    (char[]){ "-t" },
		                    (char[]){ "systemd" },
		                    (char[]){ "-t" },
		                    (char[]){ "systemd-oomd" },
		                    (char[]){ "-t" },
		                    (char[]){ "earlyoom" },
		                    boot,
		                    NULL };

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;

	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		(void)dup2(null, STDIN_FILENO);
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
		(void)unsetenv("LD_PRELOAD");
		(void)execvp(words[0], words);
		_exit(127);
	}
	(void)close(ends[1]);
	*output = ends[0];
	if (pid < 0)
		(void)close(ends[0]);
	return pid;
}

static uint64_t
now_ms(void)
{
	return clock_monotonic_ns() / 1000000;
}

/* What it prints until it ends or the time is up; to be freed. */
static char *
read_output(int output)
{
	uint64_t end = now_ms() + JOURNAL_WAIT_MS;
	size_t room = 0;
	size_t bytes = 0;
	char *text = memory_grown_zeroed(NULL, &room, 65536, 1);

	while (bytes < JOURNAL_MAX_BYTES) {
		struct pollfd ready = { .fd = output, .events = POLLIN };
		uint64_t now = now_ms();

		if (now >= end || poll(&ready, 1, (int)(end - now)) <= 0)
			break;
		text = memory_grown_zeroed(text, &room, bytes + 65536, 1);

		ssize_t length = read(output, text + bytes, 65535);

		if (length <= 0)
			break;
		bytes += (size_t)length;
	}
	return text;
}

/* Users of the system, and those that systemd makes for a service (SYSTEM_UID_MAX, DynamicUser=). */
static bool
is_system_user(const char *text)
{
	char *end;
	unsigned long user = text != NULL && text[0] != '\0' ? strtoul(text, &end, 10) : ULONG_MAX;

	return user != ULONG_MAX && *end == '\0' && (user < 1000 || (user >= 61184 && user <= 65519));
}

/* Anybody may write to the journal and name himself as he likes. Fields that begin with "_" are journald's own. */
static bool
is_believed(const json_t *root, const char *writer)
{
	const char *transport = json_string_value(json_object_get(root, "_TRANSPORT"));

	if (strcmp(writer, "kernel") == 0)
		return transport != NULL && strcmp(transport, "kernel") == 0;
	return is_system_user(json_string_value(json_object_get(root, "_UID")));
}

static void
take_journal_line(struct system_log *log, const char *line)
{
	json_t *root = json_loads(line, 0, NULL);
	const char *message = json_string_value(json_object_get(root, "MESSAGE"));
	const char *writer = json_string_value(json_object_get(root, "SYSLOG_IDENTIFIER"));
	const char *when = json_string_value(json_object_get(root, "__MONOTONIC_TIMESTAMP")); // microseconds

	if (message != NULL && writer != NULL && when != NULL && is_believed(root, writer))
		add_line(log, strtoull(when, NULL, 10) * 1000, writer, message);
	json_decref(root);
}

void
system_log_read_journal(struct system_log *log, const char *boot_id, uint64_t from, uint64_t to)
{
	int output;
	pid_t pid = boot_id[0] != '\0' ? start_journal(boot_id, from, to, &output) : -1;
	char *line;

	if (pid < 0)
		return;

	OWNED char *text = read_output(output);

	(void)close(output);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;

	char *rest = text;

	while ((line = strsep(&rest, "\n")) != NULL) {
		if (line[0] == '{' && is_telling(line))
			take_journal_line(log, line);
	}
}

void
system_log_free(struct system_log *log)
{
	free(log->lines);
	*log = (struct system_log){ .count = 0 };
}
