/*
 * mappings.c - see mappings.h.
 *
 * A line is "7f00-7f10 r--p 00000000 08:01 42    /lib/libm.so.6"; behind a file that was deleted stands " (deleted)". It is taken
 * letter by letter: a path may be longer than any room here.
 */
#include "base/mappings.h"

#include <fcntl.h>

#include "base/raw_sys.h"

#define READ_BYTES 512 // on the stack

static const char mark[] = " (deleted)";
#define MARK_BYTES (sizeof(mark) - 1)

/* How far the line has been read. */
struct progress {
	unsigned bounds; // 0, 1: in the first, the second of its addresses
	size_t matched;  // of the mark
};

static void
take(struct mappings_line *line, struct progress *progress, char letter)
{
	if (progress->bounds < 2) {
		uint64_t *bound = progress->bounds == 0 ? &line->start : &line->end;

		if (letter == '-' || letter == ' ')
			progress->bounds++;
		else
			*bound = *bound << 4 | (uint64_t)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
		return;
	}
	if (progress->matched < MARK_BYTES && letter == mark[progress->matched])
		progress->matched++;
	else
		progress->matched = letter == mark[0];
	if (line->path_bytes == 0 && letter != '/')
		return;
	if (line->path_bytes < line->room)
		line->path[line->path_bytes] = letter;
	line->path_bytes++;
}

bool
mappings_visit(struct mappings_line *line, bool visit(const struct mappings_line *line, void *context), void *context)
{
	int fd = raw_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	struct progress progress = { 0 };
	bool is_enough = false;
	char text[READ_BYTES];
	ssize_t got = -1;

	line->start = line->end = line->path_bytes = 0;
	while (fd >= 0 && !is_enough && (got = raw_read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < got && !is_enough; i++) {
			if (text[i] != '\n') {
				take(line, &progress, text[i]);
				continue;
			}
			line->is_file_gone = progress.matched == MARK_BYTES;
			if (line->is_file_gone && line->path_bytes > MARK_BYTES)
				line->path_bytes -= MARK_BYTES;
			is_enough = visit(line, context);
			if (!is_enough)
				line->start = line->end = line->path_bytes = 0;
			progress = (struct progress){ 0 };
		}
	}
	if (fd >= 0)
		raw_close(fd);
	return is_enough || got == 0;
}
