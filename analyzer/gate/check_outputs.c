/* check_outputs.c - see check_outputs.h. */
#include "gate/check_outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/owner.h"

const struct check_output check_outputs[] = {
	{ "text", render_check_text, NULL, false },
	{ "junit", render_check_junit, NULL, false },
	{ "markdown", render_check_markdown, NULL, false },
	{ "github", render_check_github, NULL, false },
	{ "github-summary", render_check_markdown, "GITHUB_STEP_SUMMARY", true },
	{ "gitlab", render_check_gitlab, NULL, false },
	{ "sarif", render_check_sarif, NULL, false },
};
const size_t check_output_count = COUNT_OF(check_outputs);

/* The row of "NAME" or "NAME=FILE"; *file: "" = none was given. NULL: there is none of that name, or no file behind "=". */
static const struct check_output *
find_output(const char *word, const char **file)
{
	size_t length = strcspn(word, "=");

	*file = word[length] == '=' ? word + length + 1 : "";
	if (word[length] == '=' && **file == '\0')
		return NULL;
	return FIRST(output, check_outputs, check_output_count,
	             strlen(output->name) == length && strncmp(output->name, word, length) == 0);
}

/* Appends: others have written into the file, or will. A FIFO that nobody reads is refused, not waited for. */
static bool
append(const struct check *check, const struct check_output *output, const char *path, struct fail *fail)
{
	int fd = owner_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, OUTPUT_OF_ALL);
	FILE *stream = fd >= 0 ? fdopen(fd, "a") : NULL;

	if (stream == NULL)
		return fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", path, OWNER_WHY(errno));
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	output->render(check, stream);

	bool is_written = ferror(stream) == 0;

	if (fclose(stream) != 0 || !is_written)
		return fail_set(fail, EXIT_USAGE, "%s: cannot write: %s", path, strerror(errno));
	return true;
}

static bool
write_output(const struct check *check, const struct check_output *output, const char *path, struct fail *fail)
{
	if (path[0] == '\0' && output->environment != NULL && getenv(output->environment) != NULL)
		path = getenv(output->environment);
	if (path[0] == '\0') {
		output->render(check, stdout);
		return true;
	}
	if (output->is_appended)
		return append(check, output, path, fail);

	struct output_file *file = output_open(path, OUTPUT_OF_ALL, fail);

	if (file == NULL)
		return false;
	output->render(check, output_stream(file));
	return output_close(file, fail);
}

static bool
refuse_format(const char *word, struct fail *fail)
{
	char names[256] = "";

	for (size_t i = 0; i < check_output_count; i++)
		TEXT_ADD(names, "%s%s", i != 0 ? ", " : "", check_outputs[i].name);
	return fail_set(fail, EXIT_USAGE, "check: --format \"%s\": not one of %s, nor one of them with =FILE", word, names);
}

bool
check_outputs_write(const struct check *check, const char *formats, struct fail *fail)
{
	OWNED char *list = memory_text(formats);
	char *rest = list;
	bool is_done = true;

	for (char *word = strsep(&rest, ","); word != NULL && is_done; word = strsep(&rest, ",")) {
		const char *path;
		const struct check_output *output = find_output(word, &path);

		if (output == NULL)
			is_done = refuse_format(word, fail);
		else if (check != NULL)
			is_done = write_output(check, output, path, fail);
	}
	return is_done;
}
