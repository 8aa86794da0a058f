/*
 * render_check_github.c - the result of a check as workflow commands of GitHub: annotations beside the lines of the change.
 *
 * GitHub shows ten errors and ten warnings of a step: the worst rules come first, and a notice counts the rest.
 *
 * When failing  errors stay in the stream. What would end a command or a property is written as %0A and the like.
 */
#include <inttypes.h>
#include <string.h>

#include "gate/check_outputs.h"
#include "gate/check_words.h"

#define ANNOTATIONS_MAX 10

static void
put_escaped(FILE *stream, const char *text, const char *special)
{
	for (; *text != '\0'; text++) {
		if (strchr(special, *text) != NULL)
			(void)fprintf(stream, "%%%02X", (unsigned)*text);
		else
			(void)fputc(*text, stream);
	}
}

/* file: "" = the whole step */
static void
put_command(const struct check *check, FILE *stream, const char *command, const char *file, uint32_t line,
            const char *title, const char *message)
{
	struct check_place place = check_place(check, file, line);

	(void)fprintf(stream, "::%s ", command);
	if (place.is_known) {
		(void)fputs("file=", stream);
		put_escaped(stream, place.file, "%\r\n:,");
		(void)fprintf(stream, ",line=%" PRIu32 ",", place.line);
	}
	(void)fputs("title=", stream);
	put_escaped(stream, title, "%\r\n:,");
	(void)fputs("::", stream);
	put_escaped(stream, message, "%\r\n");
	if (strcmp(command, "error") == 0 && check->repeat[0] != '\0') {
		(void)fputs("%0Arepeat: ", stream);
		put_escaped(stream, check->repeat, "%\r\n");
	}
	(void)fputc('\n', stream);
}

void
render_check_github(const struct check *check, FILE *stream)
{
	char message[CHECK_MESSAGE_BYTES];
	char title[64];

	if (check->ended_badly != NULL) {
		put_command(check, stream, "error", "", 0, "kmemshim: the program did not end well", check->ended_badly);
		return;
	}
	for (size_t i = 0; i < check->failed_count && i < ANNOTATIONS_MAX; i++) {
		const struct check_rule *rule = &check->rules[i];

		(void)snprintf(title, sizeof(title), "kmemshim: %s", check_rule_name(rule));
		put_command(check, stream, "error", rule->file, rule->line, title, check_message(check, rule, message));
	}
	if (check->failed_count > ANNOTATIONS_MAX)
		(void)fprintf(stream, "::notice title=kmemshim::%zu more rules failed, see the log\n",
		              check->failed_count - ANNOTATIONS_MAX);
	if (check_small_leak_message(check, message))
		put_command(check, stream, "warning", check->small_leak->file, check->small_leak->line, "kmemshim: leak",
		            message);
	if (check->lost_child != NULL)
		put_command(check, stream, "warning", "", 0, "kmemshim: a process is gone", check->lost_child);
	for (size_t i = 0; i < check->note_count; i++)
		put_command(check, stream, "warning", "", 0, "kmemshim: note", check->notes[i]);
}
