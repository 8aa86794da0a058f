/*
 * holder_skips.h - which blocks need not be read: large ones of lines whose blocks hold no pointers?
 */
#ifndef HOLDER_SKIPS_H
#define HOLDER_SKIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holders/process_look.h"

struct holder_skips {
	size_t count;
	struct address_range *ranges; // that are left out, by address
	uint64_t bytes;               // of blocks in them
	size_t large_count;
	struct live_block *large; // blocks that may be left out
};

/* Each live block, before they are looked for. */
void holder_skips_show(struct holder_skips *skips, const struct live_block *block);
void holder_skips_find(struct holder_skips *skips, struct process_look *look);
/* Is all of it left out? */
bool holder_skips_has(const struct holder_skips *skips, uint64_t start, uint64_t end);
void holder_skips_free(struct holder_skips *skips);

#endif
