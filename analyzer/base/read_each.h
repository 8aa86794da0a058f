/*
 * read_each.h - loops over the lines of a file, and over the names in a folder; a number in a file of the kernel's.
 *
 *     EACH_LINE (line, "/etc/os-release")
 *         is_ubuntu = is_ubuntu || text_starts(line, "ID=ubuntu");
 *
 * `line` and `name` are the loop's own, and last until its next turn. What is open is closed when the loop is left, by whatever way.
 *
 * When failing  what cannot be opened has no lines, and no names.
 */
#ifndef READ_EACH_H
#define READ_EACH_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct read_lines {
	FILE *stream; // NULL = none is open
	int end;      // of a line
	char *line;
	size_t room;
};

struct read_lines read_lines_open(const char *path, int end);
char *read_lines_next(struct read_lines *lines); // without its end; NULL = there are no more
void read_lines_close(struct read_lines *lines); // none may be open

const char *read_names_next(DIR *folder); // "." and ".." are left out; NULL = there are no more
void read_names_close(DIR **folder);      // none may be open

/* end: of what counts as a line, such as '\0'. */
#define EACH_PART(line, path, end)                                                                            \
	for (struct read_lines line##_of __attribute__((cleanup(read_lines_close))) = read_lines_open(path, end); \
	     line##_of.stream != NULL; read_lines_close(&line##_of))                                              \
		for (char *line; (line = read_lines_next(&line##_of)) != NULL;)
#define EACH_LINE(line, path) EACH_PART (line, path, '\n')

/* The first number behind `name` and a space or tab, in the line that begins so; NULL: in the first line. UINT64_MAX = there is none. */
uint64_t read_number(const char *path, const char *name);

#define EACH_NAME(name, folder)                                                                           \
	for (DIR * name##_of __attribute__((cleanup(read_names_close))) = opendir(folder); name##_of != NULL; \
	     read_names_close(&name##_of))                                                                    \
		for (const char *name; (name = read_names_next(name##_of)) != NULL;)

#endif
