/*
 * template.c - how does a sentence get its figures (see template.h)?
 *
 * When full  texts are cut.
 */
#include "verdict/template.h"

#include <string.h>

#include "base/memory.h"
#include "verdict/words.h"

/* Of one figure, from its brace on. False: its brackets are to be left out. */
static bool
expand_figure(const struct told *told, const char **at, char text[FIGURE_BYTES])
{
	char figure[FIGURE_BYTES] = "";
	const char *name = *at + 1;
	char test = name[0] == '?' || name[0] == '!' ? name[0] : '\0';

	name += test != '\0';
	figure_put(told, name, strcspn(name, "}"), figure);
	*at = name + strcspn(name, "}");
	*at += **at != '\0';
	if (test == '\0')
		memory_text_add(text, FIGURE_BYTES, "%s", figure);
	return (figure[0] != '\0') == (test != '!');
}

/* Up to one of the `ends` or the end of the template. False: a figure in it was empty. */
static bool
expand(const struct told *told, const char **at, const char *ends, char text[FIGURE_BYTES])
{
	bool is_whole = true;

	while (**at != '\0' && strchr(ends, **at) == NULL) {
		if (**at == '{') {
			is_whole = expand_figure(told, at, text) && is_whole;
		} else if (**at == '[') {
			char part[FIGURE_BYTES] = "";

			++*at;
			if (expand(told, at, "]", part))
				memory_text_add(text, FIGURE_BYTES, "%s", part);
			*at += **at != '\0';
		} else {
			size_t plain = 1 + strcspn(*at + 1, "{[]|");

			memory_text_add(text, FIGURE_BYTES, "%.*s", (int)plain, *at);
			*at += plain;
		}
	}
	return is_whole;
}

void
say_template(const struct told *told, const char *template)
{
	for (;;) {
		char text[FIGURE_BYTES] = "";

		(void)expand(told, &template, "|", text);
		say(told->verdict, "%s", text);
		if (*template == '\0')
			return;
		template ++;
		told->verdict->rank = RANK_EVIDENCE;
	}
}

void
say_next_template(const struct told *told, const char *template)
{
	char text[FIGURE_BYTES] = "";

	(void)expand(told, &template, "", text);
	say_next(told->verdict, "%s", text);
}
