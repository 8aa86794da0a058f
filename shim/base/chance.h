/*
 * chance.h - random numbers for samples: each byte that is asked for is drawn with the same probability, whatever came before.
 *
 * Safe from   anywhere: no memory, no lock, no system call but for the process's number at the seed. Changes errno at the seed alone.
 */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

/* The start of a generator, other than any other thread's. own: an address that no other thread has. Never 0. */
uint64_t chance_seed(const void *own);

/* How many bytes until the next draw: exponentially distributed with this mean. *state: of chance_seed(). */
int64_t chance_draw(uint64_t *state, uint64_t mean_bytes);

#endif
