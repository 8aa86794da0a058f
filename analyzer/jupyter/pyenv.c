/*
 * pyenv.c - see pyenv.h.
 */
#include "jupyter/pyenv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"

#define VERSION_BYTES 256
#define FILE_BYTES 4096

/* The first word that is no comment. */
static bool
first_word(const char *text, char version[VERSION_BYTES])
{
	while (*text != '\0') {

		text += strspn(text, " \t\r\n:");

		size_t length = strcspn(text, " \t\r\n:");

		if (*text == '#') {
			text += strcspn(text, "\n");
			continue;
		}
		if (length == 0 || length >= VERSION_BYTES)
			return false;
		(void)snprintf(version, VERSION_BYTES, "%.*s", (int)length, text);
		return true;
	}
	return false;
}

static bool
version_in(const char *folder, const char *name, char version[VERSION_BYTES])
{
	char path[PATH_MAX];
	char text[FILE_BYTES];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return false;

	OWNED_FILE int file = regular_file_open(path, O_RDONLY, NULL);

	if (file < 0)
		return false;

	ssize_t length = read(file, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = '\0';
	return first_word(text, version);
}

static bool
version_here(char version[VERSION_BYTES])
{
	char folder[PATH_MAX];

	if (getcwd(folder, sizeof(folder)) == NULL || folder[0] != '/')
		return false;
	for (char *end; (end = strrchr(folder, '/')) != NULL; *end = '\0') {
		if (version_in(folder, ".python-version", version))
			return true;
	}
	return false;
}

static const char *sought; // scandir() has no room for it

/* "3.11.7" is a 3.11. */
static int
is_sought(const struct dirent *entry)
{
	size_t length = strlen(sought);

	return strncmp(entry->d_name, sought, length) == 0 &&
	       (entry->d_name[length] == '\0' || entry->d_name[length] == '.');
}

bool
pyenv_prefix(const char *root, int length, char prefix[PATH_MAX])
{
	const char *wish = getenv("PYENV_VERSION");
	char version[VERSION_BYTES];
	char folder[PATH_MAX];
	struct dirent **entries;
	bool is_found = false;

	(void)snprintf(folder, sizeof(folder), "%.*s", length, root);
	if (!(wish != NULL && first_word(wish, version)) && !version_here(version) &&
	    !version_in(folder, "version", version))
		return false;
	if (strchr(version, '/') != NULL ||
	    snprintf(folder, sizeof(folder), "%.*s/versions", length, root) >= (int)sizeof(folder))
		return false;
	sought = version;

	int count = scandir(folder, &entries, is_sought, versionsort);

	sought = NULL;
	if (count > 0)
		is_found = snprintf(prefix, PATH_MAX, "%s/%s", folder, entries[count - 1]->d_name) < PATH_MAX;
	for (int i = 0; i < count; i++) {
		/* The name itself before a longer one. */
		if (strcmp(entries[i]->d_name, version) == 0)
			is_found = snprintf(prefix, PATH_MAX, "%s/%s", folder, version) < PATH_MAX;
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return is_found;
}
