/* branch_file.c - see branch_file.h. */
#include "gate/branch_file.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "base/text_clean.h"

extern char **environ;

bool
branch_file_is(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon != NULL && colon != name && colon[1] != '\0' && name[0] != '-' && access(name, F_OK) != 0;
}

/* git's first line, without "fatal: ", for a message of ours. */
static void
read_error(int file, char *text, size_t room)
{
	ssize_t bytes = pread(file, text, room - 1, 0);

	text[bytes > 0 ? bytes : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (strncmp(text, "fatal: ", 7) == 0)
		memmove(text, text + 7, strlen(text + 7) + 1);
	(void)text_clean(text, strlen(text));
}

/* Returns an errno, or 0 and git's status. */
static int
run_git(const char *name, int content, int errors, int *status)
{
	char *const arguments[] = { "git", "--no-pager", "show", (char *)name, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error = posix_spawn_file_actions_init(&actions);

	if (error != 0)
		return error;
	(void)posix_spawn_file_actions_adddup2(&actions, content, STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
	error = posix_spawnp(&pid, "git", &actions, NULL, arguments, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	while (error == 0 && waitpid(pid, status, 0) < 0) {
		if (errno != EINTR)
			error = errno;
	}
	return error;
}

int
branch_file_open(const char *name, struct fail *fail)
{
	int content = memfd_create("content", MFD_CLOEXEC);
	OWNED_FILE int errors = memfd_create("errors", MFD_CLOEXEC);
	int status = 0;
	int error = content < 0 || errors < 0 ? errno : run_git(name, content, errors, &status);
	char text[256] = "";

	if (error == 0 && status != 0)
		read_error(errors, text, sizeof(text));
	if (error != 0 || status != 0)
		(void)fail_set(fail, EXIT_USAGE, "%s: there is no such file, and git show says: %s", name,
		               error != 0 ? strerror(error) : text);
	if (error == 0 && status == 0 && lseek(content, 0, SEEK_SET) == 0)
		return content;
	regular_file_close(&content);
	return -1;
}
