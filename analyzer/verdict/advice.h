/*
 * advice.h - what is the one thing to do?
 *
 * When failing  it cannot; long texts are cut.
 */
#ifndef ADVICE_H
#define ADVICE_H

#include "verdict/facts.h"
#include "verdict/findings.h"

/* Fills verdict->advice and verdict->next, after cause, end and lost_child were set. */
void verdict_advise(const struct verdict_facts *facts, struct verdict *verdict);

/* The same about facts->asked. */
void verdict_advise_domain(const struct verdict_facts *facts, struct verdict *verdict);

#endif
