/*
 * peak.h - who held the memory when the total was highest? Exactly, in O(1) per event, without a lock.
 *
 * Called by   tracker.c. Safe from any thread and signal handler: lock-free loops over one 16-byte word.
 */
#ifndef PEAK_H
#define PEAK_H

#include <stdint.h>

#include "kmem_format.h"

/*
 * Change the total of a domain; both return the event's epoch, which the site's update needs.
 * peak_add also returns the new total.
 */
uint32_t peak_add(struct kmem_peak_word *domain, uint64_t bytes, uint64_t *total);
uint32_t peak_sub(struct kmem_peak_word *domain, uint64_t bytes);

/* Change what a site holds, by an event of that epoch. delta may be negative. */
void peak_apply(struct kmem_peak_word *site, int64_t delta, uint32_t epoch);

#endif
