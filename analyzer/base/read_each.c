/* read_each.c - see read_each.h. */
#include "base/read_each.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/regular_file.h"

struct read_lines
read_lines_open(const char *path, int end)
{
	int file = regular_file_open(path, O_RDONLY, NULL);

	return (struct read_lines){ .stream = file >= 0 ? fdopen(file, "r") : NULL, .end = end };
}

char *
read_lines_next(struct read_lines *lines)
{
	ssize_t length = getdelim(&lines->line, &lines->room, lines->end, lines->stream);

	if (length > 0 && lines->line[length - 1] == lines->end)
		lines->line[length - 1] = '\0';
	return length > 0 ? lines->line : NULL;
}

void
read_lines_close(struct read_lines *lines)
{
	free(lines->line);
	if (lines->stream != NULL)
		(void)fclose(lines->stream);
	*lines = (struct read_lines){ .stream = NULL };
}

uint64_t
read_number(const char *path, const char *name)
{
	size_t length = name != NULL ? strlen(name) : 0;
	uint64_t value = UINT64_MAX;

	EACH_LINE (line, path) {
		if (name != NULL && (strncmp(line, name, length) != 0 || (line[length] != ' ' && line[length] != '\t')))
			continue;
		return sscanf(line + length, "%" SCNu64, &value) == 1 ? value : UINT64_MAX;
	}
	return UINT64_MAX;
}

const char *
read_names_next(DIR *folder)
{
	const struct dirent *entry;

	do
		entry = readdir(folder);
	while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry != NULL ? entry->d_name : NULL;
}

void
read_names_close(DIR **folder)
{
	if (*folder != NULL)
		(void)closedir(*folder);
	*folder = NULL;
}
