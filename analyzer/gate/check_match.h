/*
 * check_match.h - which line of the baseline is this line of the runs?
 *
 * The one of its family, else one that is gone and does the same under another name: a function that was renamed, or moved to another file.
 * That holds only where nothing got worse by it: the same domain, leak only for leak, no more bytes than the old line was allowed and
 * no less than half, all other frames that count the same. Each line of the baseline is taken once.
 *
 * When failing  it cannot.
 */
#ifndef CHECK_MATCH_H
#define CHECK_MATCH_H

#include <stdint.h>

#include "gate/baseline.h"

struct check_tolerance {
	uint64_t absolute_bytes;
	uint32_t relative_ppm;
};

/* What a line may hold that held so much. */
uint64_t check_limit(uint64_t before_bytes, struct check_tolerance tolerance);

/* For each site of `after` that of `before`, or NULL: it is new. For free(). */
const struct baseline_site **check_match(const struct baseline *before, const struct baseline *after,
                                         struct check_tolerance tolerance);

#endif
