/*
 * json_read.c - reads a JSON file.
 *
 * When failing  see json_read.h. A name that comes twice in an object is an error: one of the two would be lost. Messages show nothing
 * of the file: it may be another one than it seems, in a log that others read.
 */
#include "base/json_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

json_t *
json_read_file(int file, const char *path, struct fail *fail)
{
	json_error_t error;
	FILE *stream = fdopen(file, "r");
	struct stat status;

	if (stream == NULL) {
		(void)fail_set(fail, EXIT_USAGE, "%s: %s", path, strerror(errno));
		(void)close(file);
		return NULL;
	}
	if (fstat(file, &status) != 0 || status.st_size > JSON_READ_BYTES_MAX) {
		(void)fail_set(fail, EXIT_USAGE, "%s: has more than %u MiB: nothing that kmemshim reads has", path,
		               JSON_READ_BYTES_MAX >> 20);
		(void)fclose(stream);
		return NULL;
	}

	json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &error);

	(void)fclose(stream);
	if (root == NULL) {
		const char *content = strstr(error.text, " near ");
		int length = content != NULL ? (int)(content - error.text) : JSON_ERROR_TEXT_LENGTH;

		(void)fail_set(fail, EXIT_USAGE, "%s:%d:%d: is not JSON: %.*s", path, error.line, error.column, length,
		               error.text);
	}
	return root;
}

json_t *
json_read_text(const char *text, size_t bytes)
{
	return json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
}
