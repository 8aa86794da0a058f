/*
 * python_text.c - which source line is this instruction of a Python code object (see python_text.h)?
 */
#include "symbols/python_text.h"

#include <stdbool.h>

#define PYTHON_3_10 0x030a
#define PYTHON_3_11 0x030b
#define NO_LINE_3_10 (-128)

enum location_kind { // of the table from 3.11 on; kinds below are "same line" with short columns
	LOCATION_ONE_LINE_0 = 10,
	LOCATION_ONE_LINE_2 = 12,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Additions of hostile deltas must not overflow; nothing outside of 32 bits is a line. */
static uint32_t
as_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs (bytes, lines): the second applies from where the first has led to. */
static int64_t
lnotab_line(int64_t line, const uint8_t *table, size_t table_bytes, uint32_t offset)
{
	uint64_t address = 0;

	for (size_t at = 0; at + 1 < table_bytes; at += 2) {
		address += table[at];
		if (address > offset)
			break;
		line += (int8_t)table[at + 1];
	}
	return line;
}

/* Pairs (bytes, lines): the second applies to the range that the first measures. */
static int64_t
ranges_line(int64_t line, const uint8_t *table, size_t table_bytes, uint32_t offset)
{
	uint64_t end = 0;

	for (size_t at = 0; at + 1 < table_bytes; at += 2) {
		int8_t delta = (int8_t)table[at + 1];

		end += table[at];
		if (delta != NO_LINE_3_10)
			line += delta;
		if (offset < end)
			break;
	}
	return line;
}

/* Groups of 6 bits, least first, 0x40 means more; false when the table ends inside or the number is no 32-bit one. */
static bool
read_varint(const uint8_t *table, size_t table_bytes, size_t at, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift <= 30 && at < table_bytes; shift += 6, at++) {
		*value |= (uint64_t)(table[at] & 0x3f) << shift;
		if ((table[at] & 0x40) == 0)
			return true;
	}
	return false;
}

static int64_t
locations_line(int64_t line, const uint8_t *table, size_t table_bytes, uint32_t offset)
{
	uint64_t end = 0;

	for (size_t at = 0; at < table_bytes;) {
		unsigned kind = (table[at] >> 3) & 15;
		uint64_t number;

		if ((table[at] & 0x80) == 0) // an entry must begin here
			break;
		end += 2 * ((uint64_t)(table[at] & 7) + 1);
		at++;
		if (kind >= LOCATION_ONE_LINE_0 && kind <= LOCATION_ONE_LINE_2) {
			line += kind - LOCATION_ONE_LINE_0;
		} else if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG) {
			if (!read_varint(table, table_bytes, at, &number))
				break;
			line += (number & 1) != 0 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
		}
		if (offset < end)
			break;
		while (at < table_bytes && (table[at] & 0x80) == 0)
			at++;
	}
	return line;
}

uint32_t
python_text_line(uint32_t python_version, uint32_t first_line, const uint8_t *table, size_t table_bytes,
                 uint32_t offset_bytes)
{
	if (python_version >= PYTHON_3_11)
		return as_line(locations_line(first_line, table, table_bytes, offset_bytes));
	if (python_version == PYTHON_3_10)
		return as_line(ranges_line(first_line, table, table_bytes, offset_bytes));
	return as_line(lnotab_line(first_line, table, table_bytes, offset_bytes));
}
