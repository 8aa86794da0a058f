/*
 * table_rows.h - which lines of code get a row of their own in a table?
 *
 * The first ones of the ranking, and always the line that shows most memory.
 */
#ifndef TABLE_ROWS_H
#define TABLE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_line {
	size_t number;            // of the line in the report
	uint64_t bytes;           // what it holds
	uint64_t in_memory_bytes; // of what its row would show
	bool is_address_space;    // holds no memory
	bool is_small;            // too little of its domain for a row, unless it is the first
	bool has_row;             // by table_rows_choose()
};

/* Lines without a row. */
struct table_rest {
	uint64_t bytes;
	size_t count;
};

/*
 * lines: in ranking order. top: how many rows at most. rest, space: sums of the lines without a row, of memory and of address space,
 * which are not added up.
 */
void table_rows_choose(struct table_line *lines, size_t count, size_t top, struct table_rest *rest,
                       struct table_rest *space);

#endif
