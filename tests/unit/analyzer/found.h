/*
 * found.h - what was found and advised, as short texts for tests?
 *
 * The same that the JSON carries: names, amounts, lines. How it is said to a person is held by tests/golden/situations.
 */
#ifndef FOUND_H
#define FOUND_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "verdict/words.h"

/*
 * "live 1.4 GiB; line 400 MiB of 1.4 GiB at train.py:41 epoch; accumulates 400 MiB of 400 MiB at train.py:41 epoch, likely", with the
 * domain in brackets, "+2" for further ones, and marks for a line that was told of before and for figures of the peak.
 */
static inline const char *
found_text(const struct verdict *verdict)
{
	static char text[4096];
	char part[PLACE_TEXT_BYTES];
	size_t used = 0;

#define FOUND_ADD(...) used += (size_t)snprintf(text + used, sizeof(text) - used, __VA_ARGS__)
	text[0] = '\0';
	for (size_t i = 0; i < verdict->finding_count; i++) {
		const struct finding *finding = &verdict->findings[i];

		FOUND_ADD("%s%s", i == 0 ? "" : "; ", finding_name(finding->kind));
		if (finding->domain != NULL)
			FOUND_ADD(" [%s]", finding->domain->name);
		if (finding->bytes != 0 || finding->whole_bytes != 0)
			FOUND_ADD(" %s", units_bytes(finding->bytes, part));
		if (finding->whole_bytes != 0)
			FOUND_ADD(" of %s", units_bytes(finding->whole_bytes, part));
		if (finding->line.site_count != 0)
			FOUND_ADD(" at %s", verdict_line_text(&finding->line, part));
		if (finding->count != 0)
			FOUND_ADD(" +%llu", (unsigned long long)finding->count);
		if (finding->is_peak)
			FOUND_ADD(" (peak)");
		if (finding->is_told)
			FOUND_ADD(" (told)");
		if (finding->kind != FINDING_ENDING && finding->confidence != VERDICT_CERTAIN)
			FOUND_ADD(", %s", verdict_confidence_name(finding->confidence));
	}
#undef FOUND_ADD
	return text;
}

/* "170 MiB live at recorded lines; 20.0 MiB the recorder's own": where what was in memory was. */
static inline const char *
parts_text(const struct verdict *verdict)
{
	static char text[1024];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < verdict->memory.part_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s", i == 0 ? "" : "; ",
		                         UNITS_BYTES(verdict->memory.parts[i].bytes), verdict->memory.parts[i].name);
	return text;
}

/* "read-error, release-blocks" */
static inline const char *
advised_text(const struct verdict *verdict)
{
	static char text[512];
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < verdict->advice_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i == 0 ? "" : ", ", verdict->advice[i]);
	return text;
}

/* Include behind cmocka.h. A part of the findings, or all of them. */
#define assert_found(verdict, part)                                                       \
	do {                                                                                  \
		if (strstr(found_text(verdict), (part)) == NULL)                                  \
			fail_msg("%s\nnot in: %s\n%s", (part), found_text(verdict), (verdict)->text); \
	} while (0)
#define assert_not_found(verdict, part)                                               \
	do {                                                                              \
		if (strstr(found_text(verdict), (part)) != NULL)                              \
			fail_msg("%s\nin: %s\n%s", (part), found_text(verdict), (verdict)->text); \
	} while (0)
#define assert_parts(verdict, part)                                  \
	do {                                                             \
		if (strstr(parts_text(verdict), (part)) == NULL)             \
			fail_msg("%s\nnot in: %s", (part), parts_text(verdict)); \
	} while (0)
#define assert_advised(verdict, names)                                                                   \
	do {                                                                                                 \
		if (strcmp(advised_text(verdict), (names)) != 0)                                                 \
			fail_msg("%s: advised is %s\n%s\nNext: %s", (names), advised_text(verdict), (verdict)->text, \
			         (verdict)->next);                                                                   \
	} while (0)
#define assert_cause(verdict, name) assert_string_equal(verdict_cause_name((verdict)->cause), name)

#endif
