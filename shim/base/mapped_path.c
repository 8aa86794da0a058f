/*
 * mapped_path.c - see mapped_path.h.
 *
 * A line is "7f00-7f10 r--p 00000000 08:01 42    /lib/libm.so.6"; behind a file that was deleted stands " (deleted)".
 *
 * Not chosen  the current folder and the relative name: the program may have changed its folder since; /proc/self/map_files: for
 *             privileged processes only.
 */
#include "base/mapped_path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/raw_sys.h"

#define READ_BYTES 256 // on the stack

struct line {
	uint64_t start;
	bool has_start;
	size_t length; // of its path, so far
};

static uint64_t
digit(char letter)
{
	return (uint64_t)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

/* True: the line of that mapping ended, and `path` has what it says. */
static bool
take(struct line *line, char letter, uint64_t start_addr, char *path, size_t room)
{
	if (letter == '\n') {
		bool is_it = line->has_start && line->start == start_addr;

		if (!is_it)
			*line = (struct line){ 0 };
		return is_it;
	}
	if (!line->has_start && letter == '-')
		line->has_start = true;
	else if (!line->has_start)
		line->start = line->start << 4 | digit(letter);
	else if (line->start == start_addr && (line->length > 0 || letter == '/') && line->length < room)
		path[line->length++] = letter;
	return false;
}

size_t
mapped_path(uint64_t start_addr, char *path, size_t room)
{
	static const char mark[] = " (deleted)";
	const size_t mark_bytes = sizeof mark - 1;
	int fd = raw_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	struct line line = { 0 };
	bool is_found = false;
	char text[READ_BYTES];
	ssize_t got;

	while (fd >= 0 && !is_found && (got = raw_read(fd, text, sizeof text)) > 0) {
		for (ssize_t i = 0; i < got && !is_found; i++)
			is_found = take(&line, text[i], start_addr, path, room);
	}
	if (fd >= 0)
		raw_close(fd);
	if (!is_found || line.length == room)
		return 0;
	if (line.length > mark_bytes && memcmp(path + line.length - mark_bytes, mark, mark_bytes) == 0)
		line.length -= mark_bytes;
	path[line.length] = '\0';
	return line.length;
}
