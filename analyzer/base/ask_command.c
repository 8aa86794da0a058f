/*
 * ask_command.c - see ask_command.h.
 */
#include "base/ask_command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

static void
become(const char *const *words, const char *preload, const int pipe_ends[2])
{
	if (preload != NULL)
		(void)setenv("LD_PRELOAD", preload, 1);
	else
		(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("LD_DEBUG");
	(void)dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	(void)dup2(pipe_ends[1], STDOUT_FILENO);
	(void)dup2(pipe_ends[1], STDERR_FILENO);
	(void)execvp(words[0], (char *const *)words);
	_exit(127);
}

void
ask_command(const char *const *words, const char *preload, void (*take)(void *context, char *line), void *context)
{
	OWNED char *line = NULL;
	size_t room = 0;
	int pipe_ends[2];
	FILE *lines;

	if (pipe2(pipe_ends, O_CLOEXEC) != 0)
		return;
	(void)fflush(NULL);

	pid_t pid = fork();

	if (pid == 0)
		become(words, preload, pipe_ends);
	(void)close(pipe_ends[1]);
	lines = fdopen(pipe_ends[0], "r");
	if (lines == NULL)
		(void)close(pipe_ends[0]);
	while (pid > 0 && lines != NULL && getline(&line, &room, lines) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		take(context, line);
	}
	if (lines != NULL)
		(void)fclose(lines);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}
