/*
 * ask_command.c - see ask_command.h.
 */
#include "base/ask_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/regular_file.h"

static void
become(const char *const *words, const char *preload, int output, int errors)
{
	if (preload != NULL)
		(void)setenv("LD_PRELOAD", preload, 1);
	else
		(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("LD_DEBUG");
	(void)dup2(output, STDOUT_FILENO); // may be 0, where that was closed
	(void)dup2(errors, STDERR_FILENO);
	(void)dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	(void)execvp(words[0], (char *const *)words);
	(void)dprintf(STDERR_FILENO, "%s\n", strerror(errno));
	_exit(127);
}

bool
ask_command_into(const char *const *words, const char *preload, int output, int errors)
{
	int status = -1;

	(void)fflush(NULL);

	pid_t pid = output >= 0 && errors >= 0 ? fork() : -1;

	if (pid == 0)
		become(words, preload, output, errors);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status == 0 && lseek(output, 0, SEEK_SET) == 0;
}

void
ask_command(const char *const *words, const char *preload, void (*take)(void *context, char *line), void *context)
{
	OWNED char *line = NULL;
	size_t room = 0;
	int output = memfd_create("output", MFD_CLOEXEC);
	OWNED_STREAM FILE *lines = output >= 0 ? fdopen(output, "r") : NULL;

	if (lines == NULL)
		return;
	(void)ask_command_into(words, preload, output, output);
	rewind(lines);
	while (getline(&line, &room, lines) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		take(context, line);
	}
}
