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

#include <stdbool.h>
#include <stdint.h>

#include "gate/baseline.h"

/*
 * The larger of the two is allowed. Where the baseline has enough runs they are small: what differs between two places, such as the
 * length of paths; and a figure may differ from those of the baseline by twice as much as these differ from each other.
 */
struct check_tolerance {
	uint64_t absolute_bytes;
	uint32_t relative_ppm;
	bool is_from_runs;
};

#define CHECK_NOISE_RUNS 3 // of a baseline from which noise is known
#define CHECK_NOISE_BYTES 65536
#define CHECK_NOISE_PPM 10000

/* What a line or domain may hold that held so much. */
uint64_t check_limit(const struct baseline_figure *before, struct check_tolerance tolerance);

/* For each site of `after` that of `before`, or NULL: it is new. For free(). */
const struct baseline_site **check_match(const struct baseline *before, const struct baseline *after,
                                         struct check_tolerance tolerance);

#endif
