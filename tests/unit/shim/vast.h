/* vast.h - has this process more addresses than any machine has memory, as under the address sanitizer? To go through them takes minutes. */
#ifndef VAST_H
#define VAST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static inline bool
is_vast(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	uint64_t pages = 0;

	if (statm == NULL || fscanf(statm, "%" SCNu64, &pages) != 1)
		pages = 0;
	if (statm != NULL)
		fclose(statm);
	return pages > UINT64_C(1) << 28;
}

#endif
