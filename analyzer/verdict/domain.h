/*
 * domain.h - what is there to say about one domain alone?
 *
 * Safe from   one thread.
 */
#ifndef DOMAIN_H
#define DOMAIN_H

#include "verdict/facts.h"
#include "verdict/findings.h"

/* Of the domains that `wanted` matches, at least one: the whole paragraph; sets facts->asked. */
void verdict_tell_domain(struct verdict_facts *facts, const struct verdict_now *now, const char *wanted,
                         struct verdict *verdict);

/* The largest device, where it held enough to be worth it; sets growing_device. */
void verdict_tell_devices(struct verdict_facts *facts, struct verdict *verdict);

#endif
