/*
 * check_match.h - which line of the baseline is this line of the runs?
 *
 * The line of the same family. Else a line that is gone and did the same under another name, because a function was renamed or moved to
 * another file. That holds only where nothing got worse: the domain is the same, a leak stands only for a leak, it holds no more bytes
 * than the old line was allowed and no less than half, and all other frames that count are the same. Each line of the baseline is taken
 * once.
 *
 * When failing  it cannot.
 */
#ifndef CHECK_MATCH_H
#define CHECK_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/baseline.h"

/*
 * Two tolerances, of which the larger one is allowed. Where the baseline has enough runs both are small: they only cover what differs
 * between two places, such as the length of paths. A figure may then also differ from those of the baseline by twice as much as these
 * differ from each other.
 */
struct check_tolerance {
	uint64_t absolute_bytes;
	uint32_t relative_ppm;
	bool is_from_runs;
};

#define CHECK_NOISE_RUNS 3 // of a baseline from which noise is known
#define CHECK_NOISE_BYTES 65536
#define CHECK_NOISE_PPM 10000

/* The most that a line or domain may hold which held `before`. */
uint64_t check_limit(const struct baseline_figure *before, struct check_tolerance tolerance);

/* For each site of `after` the site of `before` that it is, or NULL: it is new. For free(). */
const struct baseline_site **check_match(const struct baseline *before, const struct baseline *after,
                                         struct check_tolerance tolerance);

#endif
