/*
 * capture_copy.h - words of a capture, once it is a private copy.
 *
 * They are atomics because the recorder's are. Nobody else looks at the copy, so relaxed is enough.
 *
 * Not for     a capture that is still being written: capture_head.h
 */
#ifndef CAPTURE_COPY_H
#define CAPTURE_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define COPY_OF(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

#define CAPTURE_SUM_MOST (INT64_C(1) << 48) // of bytes or blocks of one record, on either side of 0; more is damage

static inline bool
capture_is_sum(int64_t number)
{
	return number > -CAPTURE_SUM_MOST && number < CAPTURE_SUM_MOST;
}

struct capture;
struct kmem_generations;

/* The blocks of this record (its index + 1) by generation become those of the copy; NULL: none was alive by generation. */
void capture_rewind_generations(struct capture *capture, uint32_t site, const struct kmem_generations *copy);

#endif
