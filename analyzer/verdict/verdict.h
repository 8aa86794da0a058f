/*
 * verdict.h - why did the program end?
 *
 * Facts (facts.h) support a cause of death (causes.h). Both make findings (findings.h), the findings make a paragraph (phrases.h),
 * and there is one thing to do (advice.h). A verdict says how sure it is and what that rests on, never more than the evidence: exit
 * status 137 alone is not "out of memory", and a line is where memory was allocated, not where the mistake is.
 */
#ifndef VERDICT_H
#define VERDICT_H

#include "verdict/findings.h"

void verdict_decide(struct finished_model finished, const struct verdict_now *now, struct verdict *verdict);

/* The same, but text and next are about the domains that rank_domain_matches() finds for `domain`, at least one. */
void verdict_decide_domain(struct finished_model finished, const struct verdict_now *now, const char *domain,
                           struct verdict *verdict);

#endif
