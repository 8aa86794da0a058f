/*
 * threshold.h - does something hold from exactly this number on, and not at the one beside it?
 *
 * For tables of thresholds: `make test-thresholds` changes each constant by as little as it can, and a row here must fail then.
 * Include behind cmocka.h.
 */
#ifndef THRESHOLD_H
#define THRESHOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct threshold {
	const char *name;
	bool (*holds)(uint64_t number);
	uint64_t at;     // it holds
	uint64_t beside; // and here it does not
};

static inline void
thresholds_check(const struct threshold *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!rows[i].holds(rows[i].at))
			fail_msg("%s: does not hold at %llu", rows[i].name, (unsigned long long)rows[i].at);
		if (rows[i].holds(rows[i].beside))
			fail_msg("%s: holds at %llu, too", rows[i].name, (unsigned long long)rows[i].beside);
	}
}

#endif
