/*
 * phrases.h - how is a finding said?
 *
 * When full   texts are cut.
 */
#ifndef PHRASES_H
#define PHRASES_H

#include "verdict/findings.h"

/* Says all findings: each in the rank of its kind, in the order in which they were found. */
void verdict_say(const struct verdict_facts *facts, struct verdict *verdict);

/* For tests: the template of a kind of finding, "" where a function says it; of a cause. NULL: nobody says it, which is a mistake. */
const char *phrase_template(enum finding_kind kind);
const char *ending_template(enum verdict_cause cause);

#endif
