/* kernels.c - see kernels.h. */
#include "jupyter/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/ask_command.h"
#include "base/asset.h"
#include "base/memory.h"

ASSET(kernels_py, "analyzer/jupyter/kernels.py")

struct said {
	json_t *answer;
	char *last; // line that is none
};

static void
take(void *context, char *line)
{
	struct said *said = context;

	if (said->answer == NULL)
		said->answer = json_read_text(line, strlen(line));
	free(said->last);
	said->last = memory_text(line);
}

json_t *
kernels_ask(json_t *request, struct fail *fail)
{
	if (request == NULL) {
		(void)fail_set(fail, EXIT_USAGE, "jupyter: an option's text is not UTF-8");
		return NULL;
	}
	OWNED char *asked = json_dumps(request, JSON_COMPACT | JSON_ENSURE_ASCII);
	/* Not the modules of the folder that the user is in. */
	const char *const words[] = { "python3", "-I", "-c", asset_kernels_py, asked, NULL };
	struct said said = { .answer = NULL };

	ask_command(words, NULL, take, &said);
	json_decref(request);

	OWNED char *last = said.last;
	const char *refusal = json_string_value(json_object_get(said.answer, "refusal"));

	if (said.answer != NULL && refusal == NULL)
		return said.answer;
	if (refusal != NULL)
		(void)fail_set(fail, EXIT_USAGE, "%s", refusal);
	else
		(void)fail_set(fail, EXIT_USAGE, "jupyter: this needs python3 in PATH, which gave no answer: %s", last ?: "");
	json_decref(said.answer);
	return NULL;
}
