/*
 * source_lines.c - source files, each read once (see source_lines.h).
 *
 * Lines end where Python ends them: "\n", "\r\n", "\r".
 */
#include "symbols/source_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/regular_file.h"
#include "base/text_clean.h"

#define FILE_BYTES_MAX ((off_t)32 << 20)
#define LINES_MAX 4000000u
#define WHY_HIDDEN \
	"not every user may read it, and a forged capture can name it: its lines are shown with --project DIR, below DIR"

struct source {
	char *path;
	char *text;          // lines end with '\0'; NULL: cannot be shown
	uint64_t written_ns; // 0: it was recorded
	uint64_t renamed_ns; // or anything else of it was changed
	uint32_t line_count;
	const char **lines;
	uint16_t *indents; // columns
	bool is_gone;
	UT_hash_handle hh;
};

struct source_lines {
	uint64_t started_ns;
	const char *project;
	size_t hidden_count;    // files that are not shown
	struct source *sources; // uthash
};

struct source_lines *
source_lines_new(uint64_t started_ns, const char *project)
{
	struct source_lines *lines = memory_zeroed(1, sizeof(*lines));

	lines->started_ns = started_ns;
	lines->project = project;
	return lines;
}

static void
free_source(struct source *source)
{
	free(source->path);
	free(source->text);
	free(source->lines);
	free(source->indents);
	free(source);
}

void
source_lines_free(struct source_lines *lines)
{
	if (lines == NULL)
		return;
	HASH_FREE(lines->sources, free_source);
	free(lines);
}

/* Fit to be shown: no indentation, no end, not too long. In place; what was behind it is lost. */
static const char *
trim(char *line)
{
	for (char *at = line; *at != '\0'; at++) {
		if (*at == '\t' || *at == '\f' || *at == '\v')
			*at = ' ';
	}
	line += strspn(line, " ");

	size_t length = strlen(line);

	if (length > SOURCE_LINE_BYTES) {
		length = text_whole(line, SOURCE_LINE_BYTES - 3);
		memcpy(line + length, "...", 3);
		length += 3;
	}
	while (length > 0 && line[length - 1] == ' ')
		length--;
	line[length] = '\0';
	(void)text_clean(line, length);
	return line;
}

#define TAB_COLUMNS 8

static uint16_t
indent_of(const char *line)
{
	unsigned columns = 0;

	for (; *line == ' ' || *line == '\t'; line++)
		columns = *line == ' ' ? columns + 1 : (columns / TAB_COLUMNS + 1) * TAB_COLUMNS;
	return (uint16_t)(columns < UINT16_MAX ? columns : UINT16_MAX);
}

static void
split(struct source *source, size_t bytes)
{
	char *at = source->text;
	char *end = source->text + bytes;

	if (bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) // a mark that Python skips
		at += 3;
	while (at < end && source->line_count < LINES_MAX) {
		char *line = at;

		for (; at < end && *at != '\n' && *at != '\r'; at++) {
			if (*at == '\0')
				*at = '?';
		}

		size_t left = (size_t)(end - at);

		if (left > 1 && at[0] == '\r' && at[1] == '\n')
			*at++ = '\0';
		*at++ = '\0'; // the text has room for one more byte
		source->lines = memory_grown(source->lines, source->line_count, sizeof(*source->lines));
		source->indents = memory_grown(source->indents, source->line_count, sizeof(*source->indents));
		source->indents[source->line_count] = indent_of(line);
		source->lines[source->line_count++] = trim(line);
	}
}

static uint64_t
ns_of(const struct timespec *time)
{
	return time->tv_sec < 0 ? UINT64_MAX : (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

/* Is the file not the one that ran? */
static bool
is_changed_since(const struct source *source, const struct source_lines *lines, const struct source_place *place)
{
	uint64_t started_ns = place->started_ns != 0 ? place->started_ns : lines->started_ns;
	bool is_built_before = place->built_ns != 0 && place->built_ns < started_ns;

	return source->written_ns > (is_built_before ? place->built_ns : started_ns) || source->renamed_ns > started_ns;
}

static void
read_file(struct source_lines *lines, struct source *source, bool is_told)
{
	struct stat status;
	OWNED_FILE int fd = regular_file_open(source->path, O_RDONLY, &status);

	if (fd < 0) {
		source->is_gone = errno == ENOENT || errno == ENOTDIR;
		return;
	}
	bool is_hidden = !regular_file_is_public(fd) &&
	                 (lines->project == NULL || !regular_file_is_below(fd, lines->project));

	if (is_hidden && is_told && lines->hidden_count++ == 0)
		(void)fprintf(stderr, "kmemshim: %s: " WHY_HIDDEN "\n", text_cleaned(TEXT(4096, "%s", source->path)));
	if (is_hidden || status.st_size > FILE_BYTES_MAX)
		return;
	source->written_ns = ns_of(&status.st_mtim);
	source->renamed_ns = ns_of(&status.st_ctim);
	source->text = memory_zeroed((size_t)status.st_size + 1, 1);

	ssize_t bytes = read(fd, source->text, (size_t)status.st_size);

	if (bytes == status.st_size)
		split(source, (size_t)bytes);
}

void
source_lines_add(struct source_lines *lines, const char *file, const char *text)
{
	struct source *source;

	if (!HASH_TEXT_MADE(lines->sources, path, file, source))
		return;
	source->text = memory_text(text);
	split(source, strlen(text));
}

/* Does a function of this name begin at that line, or a decorator of one? What has no name of its own can begin anywhere. */
static bool
is_definition(const char *line, const char *function)
{
	static const char *const keywords[] = { "def ", "class " };
	const char *dot = strrchr(function, '.');
	const char *name = dot != NULL ? dot + 1 : function;
	size_t length = strlen(name);

	if (strcmp(name, "<lambda>") == 0)
		return strstr(line, "lambda") != NULL;
	if (name[0] == '<' || name[0] == '\0' || line[0] == '@')
		return true;
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		const char *found = strstr(line, keywords[i]);

		if (found == NULL)
			continue;
		found += strlen(keywords[i]);
		found += strspn(found, " ");
		if (strncmp(found, name, length) == 0 && strchr(" (:[\\", found[length]) != NULL)
			return true;
	}
	return false;
}

static const char *
line_of(const struct source *source, uint32_t line)
{
	return line - 1 < source->line_count ? source->lines[line - 1] : ""; // 0 is none
}

static struct source *
find_file(struct source_lines *lines, const struct source_place *place)
{
	const char *file = place->path;
	char path[4096];
	struct source *source;

	if (lines->started_ns == 0 || file[0] == '<' || file[0] == '\0' || (file[0] != '/' && place->directory[0] == '\0'))
		return NULL;
	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", file[0] != '/' ? place->directory : "",
	                     file[0] != '/' ? "/" : "", file) >= sizeof(path))
		return NULL;
	if (HASH_TEXT_MADE(lines->sources, path, path, source))
		read_file(lines, source, place->is_user);
	return source;
}

/* NULL: nobody knows which file that is. */
static struct source *
find_source(struct source_lines *lines, const struct source_place *place)
{
	struct source *source;

	HASH_FIND_STR(lines->sources, place->file, source);
	return source == NULL || place->file[0] == '/' ? find_file(lines, place) : source;
}

/* A file of that name may be another one: then the function begins elsewhere. */
static bool
is_other_file(const struct source *source, const struct source_place *place)
{
	return place->first_line != 0 && !is_definition(line_of(source, place->first_line), place->function);
}

const char *
source_lines_find(struct source_lines *lines, const struct source_place *place, bool *is_changed)
{
	const struct source *source = find_source(lines, place);
	bool is_other = source != NULL && is_changed_since(source, lines, place);

	*is_changed = is_other && place->built_ns == 0;
	return source != NULL && !is_other && !is_other_file(source, place) ? line_of(source, place->line) : "";
}

enum source_state
source_lines_all(struct source_lines *lines, const struct source_place *place, struct source_text *text)
{
	const struct source *source = find_source(lines, place);

	if (source == NULL)
		return SOURCE_UNKNOWN;
	if (source->is_gone || is_changed_since(source, lines, place))
		return source->is_gone ? SOURCE_GONE : SOURCE_CHANGED;
	if (source->line_count == 0 || is_other_file(source, place))
		return SOURCE_UNKNOWN;
	*text = (struct source_text){ source->lines, source->indents, source->line_count };
	return SOURCE_KNOWN;
}
