/* branch_file.c - see branch_file.h. */
#include "gate/branch_file.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/ask_command.h"
#include "base/regular_file.h"

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
}

int
branch_file_open(const char *name, struct fail *fail)
{
	const char *const words[] = { "git", "--no-pager", "show", name, NULL };
	int content = memfd_create("content", MFD_CLOEXEC);
	OWNED_FILE int errors = memfd_create("errors", MFD_CLOEXEC);
	char text[256];

	if (ask_command_into(words, NULL, content, errors))
		return content;
	read_error(errors, text, sizeof(text));
	(void)fail_set(fail, EXIT_USAGE, "%s: there is no such file, and git show says: %s", name, text);
	regular_file_close(&content);
	return -1;
}
