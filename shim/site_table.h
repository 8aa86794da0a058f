/*
 * site_table.h - which call site is this?
 *
 * Maps (stack, domain) to one dense record in the capture; the hash index is private memory.
 *
 * Called by   tracker.c, inside the reentry guard.
 * Safe from   any thread and signal handler; lock-free; no allocation.
 * When full   the one site of that domain that stands for all stacks without room (KMEM_STACK_FOLDED), and
 *             KMEM_LOST_SITES is raised; 0 when not even that can be had.
 */
#ifndef SITE_TABLE_H
#define SITE_TABLE_H

#include <stdint.h>

#include "call_stack.h"
#include "kmem_format.h"

/* Index + 1 of the site; 0 = none. `clock` is the generation clock, for a new site. */
uint32_t site_table_find(const struct call_stack *stack, unsigned domain, uint8_t clock);

struct kmem_site *site_table_at(uint32_t index_plus_one);

void site_table_clear(void); // forked child: one thread; the capture is empty

#endif
