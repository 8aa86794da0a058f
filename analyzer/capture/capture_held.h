/*
 * capture_held.h - what did each record hold at another moment? A list of sites: at the exit, at the guard, at a mark.
 *
 * Context     the capture is a private copy, whose records may be changed.
 */
#ifndef CAPTURE_HELD_H
#define CAPTURE_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/capture.h"
#include "kmem_format.h"

/* Does the list fit into its record, with so many counters by generation behind it, and does it name no site twice? */
bool capture_held_is_possible(const struct capture *capture, const struct kmem_record *record,
                              const struct kmem_exit_site *sites, uint32_t count, uint32_t generation_count);

/* The entry of a site (its index + 1), when all sites are asked for in their order; NULL: it held nothing. *next: 0 at first. */
const struct kmem_exit_site *capture_held_next(const struct kmem_exit_site *sites, uint32_t count, uint32_t site,
                                               uint32_t *next);

/* The record, to be changed. */
struct kmem_site *capture_site_copy(struct capture *capture, size_t index);

/*
 * What a record (its index + 1) has released becomes what it was then, with its counters by generation.
 *
 * then      NULL: it held nothing
 * copies    of the counters; NULL: they stay
 */
void capture_held_set(struct capture *capture, uint32_t number, const struct kmem_exit_site *then,
                      const struct kmem_generations *copies);

/* The same of all records, from a list. */
void capture_held_rewind(struct capture *capture, const struct kmem_exit_site *sites, uint32_t count,
                         const struct kmem_generations *copies);

/* What it holds and held at its peak becomes what is more than the same record of another copy holds. */
void capture_held_take_off(struct kmem_site *site, const struct kmem_site *then);

#endif
