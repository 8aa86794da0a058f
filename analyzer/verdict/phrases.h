/*
 * phrases.h - how is a finding said?
 *
 * When full   texts are cut.
 */
#ifndef PHRASES_H
#define PHRASES_H

#include "verdict/findings.h"

/* Appends the sentences of all findings. */
void verdict_say(const struct verdict_facts *facts, struct verdict *verdict);

/* The one or two sentences of one kind of finding. */
struct phrase {
	const char *text; // as say_finding() takes it; NULL: `say` writes it
	void (*say)(const struct verdict_facts *facts, const struct finding *finding, struct verdict *verdict);
};

/* Each kind has one, in phrases_*.c: a kind without one does not link. */
#define PHRASE_DECLARED(kind, name) extern const struct phrase phrase_##kind;
FINDING_KINDS(PHRASE_DECLARED)

#define PHRASE_TEXT(kind, words) const struct phrase phrase_##kind = { .text = (words) };

/* The body follows. */
#define PHRASE(kind)                                                                                                   \
	static void say_##kind(const struct verdict_facts *facts, const struct finding *finding, struct verdict *verdict); \
	const struct phrase phrase_##kind = { .say = say_##kind };                                                         \
	static void say_##kind(__attribute__((unused)) const struct verdict_facts *facts,                                  \
	                       __attribute__((unused)) const struct finding *finding, struct verdict *verdict)

#endif
