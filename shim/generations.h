/*
 * generations.h - from how many different times do the surviving blocks of a site come?
 *
 * The clock counts 1 to 255 and ticks with allocated volume: every 64 KiB until 512 KiB, then eight times per doubling.
 * A tick in which a site allocates is a generation of that site. A site gets counters when it allocates while it still holds
 * GENERATIONS_MIN_BYTES that are older: sites without survivors cost nothing, and most of the others hold next to nothing.
 *
 * Called by   tracker.c. Safe from any thread and signal handler.
 * When full   blocks are not counted (generation 0); the leak test then knows less.
 */
#ifndef GENERATIONS_H
#define GENERATIONS_H

#include <stdint.h>

#include "kmem_format.h"

#define GENERATIONS_MIN_BYTES 1024

/* The clock after `bytes` more were allocated. Volume is batched per thread, 64 KiB at a time. */
uint8_t generations_tick(uint64_t bytes);
uint8_t generations_clock(void);
uint8_t generations_clock_at(uint64_t volume_bytes); // the clock's definition

/*
 * A block is born, or dies, in a record. site_index is index + 1. A block that another thread allocated dies in the record of
 * the thread that releases it, as its bytes do: only the sums over the records of a call site tell. To be called before the birth
 * is added to the record's counters. Returns what must be given back at death: 0 = not counted; else the generation of the
 * site, 1 to KMEM_GENERATION_BUCKETS.
 */
uint8_t generations_born(struct kmem_site *site, uint32_t site_index, uint8_t clock);
void generations_died(struct kmem_site *site, uint32_t site_index, uint8_t generation);

#endif
