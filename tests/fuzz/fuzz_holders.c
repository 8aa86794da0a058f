/*
 * fuzz_holders.c - can any text in the place of a look at who holds what crash or hang its reader?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is the text, as a capture holds it. What comes out is clean text
 * that ends, ways of our kinds alone, and a container that stands in its way.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text_clean.h"
#include "model/model_holders.h"

static void
check_text(const char *text)
{
	if (text == NULL || !text_is_clean(text, strlen(text)))
		abort();
}

static void
check_line(const struct holders_line *line)
{
	check_text(line->place);
	check_text(line->file);
	check_text(line->function);
	for (size_t i = 0; i < line->way_count; i++) {
		const struct holders_way *way = &line->ways[i];

		check_text(way->text);
		check_text(way->container);
		check_text(way->grown_at);
		check_text(way->module);
		check_text(way->grown_file);
		for (size_t k = 0; k < way->step_count; k++) {
			check_text(way->steps[k].name);
			check_text(way->steps[k].of);
			check_text(way->steps[k].member);
			check_text(way->steps[k].function);
		}

		char *words = model_way_words(way, 0, way->step_count, false);
		char *told = model_way_sentence(way, 3);

		if (way->kind >= HOLDERS_KINDS || (way->step_count != 0 && model_holders_container(way) >= way->step_count) ||
		    (told == NULL) != (way->kind == HOLDERS_UNFINISHED))
			abort();
		check_text(words);
		free(words);
		free(told);
	}
	(void)model_holders_way(line);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct holders *holders = model_holders_read((const char *)data, bytes);

	if (holders == NULL)
		return 0;
	check_text(holders->python);
	check_text(holders->why);
	for (size_t i = 0; i < holders->line_count; i++)
		check_line(&holders->lines[i]);
	model_holders_free(holders);
	free(holders);
	return 0;
}

#define WAY(kind, text, container)                                                                 \
	"{\"kind\": \"" kind "\", \"text\": \"" text "\", \"samples\": 3, \"container\": \"" container \
	"\", \"items\": 9, \"grown_at\": \"b:2\", \"steps\": [{\"kind\": \"global\", \"name\": \"x\"}, {\"kind\": \"object\", \"by\": \"item\"}]}"
#define LOOK(schema, ways)                                                                                     \
	"{\"schema\": " schema ", \"pid\": 7, \"why\": \"\", \"holders\": [{\"place\": \"a:1\", \"file\": \"a\", " \
	"\"line\": 1, \"samples\": 3, \"ways\": [" ways "]}]}"

static void
write_seeds(const char *folder)
{
	static const struct {
		const char *name, *text;
	} seeds[] = {
		{ "held", LOOK("1", WAY("held", "global `x` -> list of 9, grown at b:2, [*]", "list")) },
		{ "lost", LOOK("1", WAY("lost", "", "")) },
		{ "kinds", LOOK("1", WAY("taken", "", "") ", {}, 3, null") },
		{ "escapes", LOOK("1", WAY("held", "\\u0000 \\ud800 \\u001b[0m -> \\n of 3", "\\n")) },
		{ "version", LOOK("2", "") },
		{ "why", "{\"schema\": 1, \"why\": \"no time\", \"holders\": []}" },
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		write_seed(folder, seeds[i].name, seeds[i].text, strlen(seeds[i].text));
}
