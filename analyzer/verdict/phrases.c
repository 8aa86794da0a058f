/*
 * phrases.c - how is a finding said?
 *
 * phrases_*.c have the sentences, by subject. Numbers carry units, a conclusion carries its confidence and what it rests on.
 *
 * phrases_end.c       how a program ended; signals, counters, limits
 * phrases_memory.c    what was in memory, live or at the peak; what figures leave out
 * phrases_lines.c     which line held it; does it accumulate?
 * phrases_children.c  child processes
 * phrases_devices.c   what filled a device
 * phrases_domains.c   one domain alone
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <string.h>

#include "verdict/words.h"

static const struct {
	const char *name; // in JSON
	const struct phrase *phrase;
} rows[] = {
#define ROW(kind, name) [FINDING_##kind] = { name, &phrase_##kind },
	FINDING_KINDS(ROW)
};

const char *
finding_name(unsigned kind)
{
	return kind < FINDINGS ? rows[kind].name : NULL;
}

void
verdict_say(const struct verdict_facts *facts, struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->finding_count; i++) {
		struct finding *finding = &verdict->findings[i];
		const struct phrase *phrase = rows[finding->kind].phrase;

		finding->said_at = strlen(verdict->text);

		if (phrase->say != NULL)
			(phrase->say)(facts, finding, verdict);
		else
			say_finding(finding, phrase->text, verdict);
		finding->said_bytes = strlen(verdict->text) - finding->said_at;
	}
}
