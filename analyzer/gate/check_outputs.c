/* check_outputs.c - see check_outputs.h. */
#include "gate/check_outputs.h"

#include <string.h>

const struct check_output check_outputs[] = {
	{ "text", render_check_text, NULL, false },
	{ "junit", render_check_junit, NULL, false },
	{ "markdown", render_check_markdown, NULL, false },
	{ "github", render_check_github, NULL, false },
	{ "github-summary", render_check_markdown, "GITHUB_STEP_SUMMARY", true },
	{ "gitlab", render_check_gitlab, NULL, false },
	{ "sarif", render_check_sarif, NULL, false },
};
const size_t check_output_count = sizeof(check_outputs) / sizeof(check_outputs[0]);

const struct check_output *
check_output_find(const char *word, const char **file)
{
	size_t length = strcspn(word, "=");

	*file = word[length] == '=' ? word + length + 1 : "";
	if (word[length] == '=' && **file == '\0')
		return NULL;
	for (size_t i = 0; i < check_output_count; i++) {
		if (strlen(check_outputs[i].name) == length && strncmp(check_outputs[i].name, word, length) == 0)
			return &check_outputs[i];
	}
	return NULL;
}
