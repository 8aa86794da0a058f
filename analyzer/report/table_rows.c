/*
 * table_rows.c - which lines of code get a row of their own in a table?
 *
 * When failing  it cannot.
 */
#include "report/table_rows.h"

/* The line that shows most memory; `count`: no line shows any. */
static size_t
find_largest(const struct table_line *lines, size_t count)
{
	size_t largest = count;
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		if (lines[i].is_address_space || lines[i].in_memory_bytes <= most)
			continue;
		most = lines[i].in_memory_bytes;
		largest = i;
	}
	return largest;
}

void
table_rows_choose(struct table_line *lines, size_t count, size_t top, struct table_rest *rest, struct table_rest *space)
{
	size_t largest = find_largest(lines, count);
	size_t shown = 0;

	*rest = *space = (struct table_rest){ .count = 0 };
	for (size_t i = 0; i < count; i++) {
		bool is_last = shown + 1 == top;
		bool is_kept_for_largest = shown != 0 && is_last && i < largest && largest < count;

		lines[i].has_row = shown < top && !is_kept_for_largest && (shown == 0 || !lines[i].is_small);
		if (lines[i].has_row) {
			shown++;
			continue;
		}
		struct table_rest *left = lines[i].is_address_space ? space : rest;

		left->count++;
		left->bytes += lines[i].bytes;
	}
}
